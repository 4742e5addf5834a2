// Package slab frees C objects in batches, after their handles were closed or
// garbage collected.
//
// A [Pool] adopts the pointers that a C library returns, or has the library make
// objects in batches. It returns a [Handle] for each object. The pool frees the object
// once: soon after [Handle.Close], or else after the garbage collector finds that
// nothing refers to the handle any more.
//
//	var trees = slab.Pool[*C.TSTree]{Free: func(dead []*C.TSTree) error {
//		C.delete_trees(unsafe.SliceData(dead), C.size_t(len(dead)))
//		return nil
//	}}
//
//	tree := trees.Adopt(C.ts_parser_parse(...))
//	err := tree.Use(func(t *C.TSTree) error { ... })
//	tree.Close() // if you forget this, the collector frees the tree
//
// # When to use it
//
// Use it for small C objects that a program makes in large numbers, and that its users may
// forget to close. [runtime.SetFinalizer] and [runtime.AddCleanup] register each object
// with the garbage collector, which is expensive: the runtime keeps a sorted list of
// registrations for every few kilobytes of heap, walks the list to insert one, and visits
// each registration in every collection. This package keeps handles in slabs of up to 64.
// Only a slab is registered, and the objects of a slab are freed in one call of C.
//
// Do not use it
//
//   - where defer x.Close() does the job: it costs next to nothing and frees at once.
//   - for few or large objects, such as connections: a cleanup for each is simpler, and
//     frees each as soon as the collector can.
//   - where the order of frees matters.
//   - where the C library must be called from one thread: [Pool.Free] runs on any.
//   - for objects that all end at the same time: free them together, as an arena.
//   - as a cache: handles are not weak pointers. While a handle can be reached, its
//     object stays.
//
// # What it costs
//
// Memory: a slab is garbage only when nothing refers to any of its handles. So one handle
// that stays in use keeps the forgotten objects of its slab, up to 63 of them. Closed
// objects are freed all the same. See [Pool.Handles].
//
// Time: a closed object waits for others, usually less than 0.04 seconds; see [Pool.AtOnce].
// A forgotten object waits for the garbage collector, as with a finalizer; in an idle
// program the collector runs every two minutes. The collector cannot see C memory, so it
// would run too seldom; see [Pool.Bytes]. Of closed objects and of those that the collector
// has found, at most 64 MiB wait to be freed.
//
// The slab that is being handed out counts as in use. So in a pool that is seldom used, a
// forgotten object may wait until the other handles of its slab were handed out.
//
// # What can go wrong
//
//   - Free must not keep the slice that it is given. It must not take a lock that is held
//     around a call of the pool or of a handle: any such call may call Free.
//   - In an AtOnce pool, a Free that closes other handles is called again within itself.
//   - A Free that blocks forever blocks its caller, at worst the goroutine that runs all
//     finalizers.
//   - Do not use an object after f of [Handle.Use] has returned: it may be freed then.
//   - An object that refers to another one in C (a statement to its connection) needs that
//     other one alive. Let the Go type of the first hold the handle of the second. The
//     collector may find both dead at once, so the library must allow either order.
//   - If Free refers to a handle of its own pool, that object is never freed, as with a
//     finalizer. So let Free be a function, not a method of a value that holds handles.
//   - When the program exits, live objects are not freed, nor are closed ones that still
//     wait: call [Pool.Flush] before.
package slab

import (
	"errors"
	"fmt"
	"log"
	"math/bits"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrClosed is what a handle returns after it was closed. A zero Handle is closed.
var ErrClosed = errors.New("slab: the handle is closed")

// A Pool makes handles for objects of one kind. P is the type that C uses for an object: a
// C pointer, such as *C.sqlite3_stmt, or a C.uintptr_t. It must not be a pointer to Go
// memory, which the garbage collector would not see.
//
// Set Free, and other fields as needed, before the first use; later changes have no effect.
// Several goroutines may use a Pool at once. Do not copy it. It need not be closed: its
// handles work without it, and their objects are freed.
type Pool[P any] struct {
	// Free frees objects. Any call of the pool or of a handle may call it, for any objects
	// of the pool; so may a timer, and the goroutine that runs finalizers. So it must not
	// take a lock that is held around such a call. It may use the pool and its handles. It
	// must not keep the slice.
	Free func(dead []P) error

	// Make puts new objects into fresh, whose entries are zero. If it returns an error
	// or panics, those that it made before are freed. Only Get needs it.
	Make func(fresh []P) error

	// OnError gets the errors of Free that Close does not return, on the goroutine that
	// called Free. If it is nil they are logged.
	OnError func(error)

	// With AtOnce, Close frees its object itself and returns the error of Free. Without it,
	// a closed object waits for others, and is not freed if the program ends meanwhile.
	AtOnce bool

	// Handles is how many handles share a slab at most; below 1 it means 64. The more, the
	// cheaper a handle, and the more forgotten objects one handle in use may keep. The first
	// slabs have fewer.
	Handles int

	// Bytes is about how much C memory an object takes; 0 means 128. The garbage collector
	// runs after a certain amount of Go memory was allocated, and cannot see C memory. So
	// the pool allocates as much Go memory as its objects take, and drops it untouched. If
	// Bytes is negative it does not, and the collector runs too seldom.
	Bytes int

	started atomic.Pointer[started[P]]
}

// A Handle stands for an object. It is two words and may be copied: all copies are the same
// handle. Several goroutines may use it at once. The zero Handle is closed.
type Handle[P any] struct {
	core *core[P]
	cell *cell
}

// A cell is what a handle points to. A slab is an array of cells, so whoever holds one
// holds them all. A cell has no pointers: the collector need not look at slabs.
type cell struct {
	object uintptr
	state  atomic.Uint32
	cells  uint32 // of the slab, in its first cell
}

// closed is the bit of a cell's state that says so. The others count the uses.
const closed = 1 << 31

// started is what a pool has once it is used. The slabs that it hands out are here and
// not in core, to which their finalizers lead.
type started[P any] struct {
	core             *core[P]
	make             func([]P) error
	handles          int
	adopting, making sync.Pool // of *opening
}

// An opening is a slab that is handed out, by one goroutine at a time.
type opening struct {
	cells []cell
	next  int
	fresh []uintptr // is room for what Make makes
}

// core is what handles and slabs know of their pool.
type core[P any] struct {
	free    func([]P) error
	onError func(error)
	died    func(first *cell)
	bytes   int          // of an object; 0: the collector sees none
	unseen  atomic.Int64 // bytes that it was not yet shown

	keep  int // so many closed objects are freed together
	lanes []lane
	shift int // from a hash to a lane

	mu      sync.Mutex
	dead    []*cell // the first ones of slabs that nobody can reach
	waiting int     // their cells
	most    int     // of waiting

	traded atomic.Uint32 // new slabs for which a dead one was freed

	busy  atomic.Bool  // calls freed dead slabs since the last tick
	due   atomic.Int64 // when the next tick comes; 0: none does
	ticks atomic.Int32 // came since the one under way began, which counts
}

// A lane is one of the places where closed objects wait.
type lane struct {
	mu      sync.Mutex
	objects []uintptr
	_       [128 - 8 - 3*word]byte // the next lane is in another cache line
}

const word = unsafe.Sizeof(uintptr(0))

const (
	leastHandles = 8                                // of a pool's first slabs
	mostWaiting  = 64 << 20                         // bytes that wait to be freed with others
	mostClosed   = 128                              // objects of a lane
	extra        = 16                               // new slabs for which one dead slab more is freed
	delay        = 20 * time.Millisecond            // after which a tick frees what waits
	bubbles      = 40 * 365 * 24 * int64(time.Hour) // since 1970: 2010
	leastShown   = 8 << 20                          // bytes that the collector is shown at a time
	mostShown    = 16 << 20
)

// start returns what a pool has once it is used.
func (p *Pool[P]) start() *started[P] {
	if s := p.started.Load(); s != nil {
		return s
	}
	p.started.CompareAndSwap(nil, p.newStarted())
	return p.started.Load()
}

func (p *Pool[P]) newStarted() *started[P] {
	var object P
	if unsafe.Sizeof(object) != word {
		panic(fmt.Sprintf("slab: a Pool is of C pointers or a type of their size, not of %T", object))
	}
	if p.Free == nil {
		panic("slab: the Pool has no Free")
	}
	c := &core[P]{free: p.Free, onError: p.OnError, bytes: p.Bytes}
	c.died = func(first *cell) { c.collect(first) }
	if c.onError == nil {
		c.onError = func(err error) { log.Printf("slab: objects could not be freed: %v", err) }
	}
	if c.bytes == 0 {
		c.bytes = 128
	}
	c.most = mostWaiting / 128
	if c.bytes > 0 {
		c.most = mostWaiting / c.bytes
	}
	lanes := 1 << bits.Len(uint(2*runtime.GOMAXPROCS(0)-1))
	c.lanes, c.shift = make([]lane, lanes), 64-bits.Len(uint(lanes-1))
	// Half of it for closed objects.
	if c.keep = c.most / 2 / len(c.lanes); c.keep > mostClosed {
		c.keep = mostClosed
	}
	if p.AtOnce {
		c.keep = 0
	}
	c.most -= c.keep * len(c.lanes)
	if c.bytes < 0 {
		c.bytes = 0
	}
	s := &started[P]{core: c, make: p.Make, handles: p.Handles}
	if s.handles <= 0 {
		s.handles = 64
	}
	return s
}

// Adopt returns a handle for an object, and the pool will free the object. Adopt of a nil
// pointer returns the zero Handle.
func (p *Pool[P]) Adopt(object P) Handle[P] {
	s := p.start()
	given := *(*uintptr)(unsafe.Pointer(&object))
	if given == 0 {
		return Handle[P]{}
	}
	o, _ := s.adopting.Get().(*opening)
	full := o == nil || o.next == len(o.cells)
	if full {
		o = s.open(o)
	}
	cell := &o.cells[o.next]
	cell.object = given // nobody else has the cell yet
	o.next++
	s.adopting.Put(o)
	if full {
		s.core.freeSome() // comes last, for Free may panic
	}
	return Handle[P]{s.core, cell}
}

// Get returns a handle for a new object, or the error of Make.
func (p *Pool[P]) Get() (Handle[P], error) {
	s := p.start()
	o, _ := s.making.Get().(*opening)
	full := o == nil || o.next == len(o.cells)
	if full {
		o = s.open(o)
		if err := s.fill(o); err != nil {
			return Handle[P]{}, err
		}
	}
	cell := &o.cells[o.next]
	o.next++
	s.making.Put(o)
	if full {
		s.core.freeSome()
	}
	return Handle[P]{s.core, cell}, nil
}

// open returns a slab to be handed out. Where one was used up the next is twice as
// large: a pool that is seldom used has small ones, as the runtime takes what was not
// used for two collections out of a sync.Pool.
func (s *started[P]) open(o *opening) *opening {
	n := leastHandles
	if o == nil {
		o = new(opening)
		runtime.SetFinalizer(o, s.core.retire)
	} else {
		n = 2 * len(o.cells)
		s.core.retire(o)
	}
	if n > s.handles {
		n = s.handles
	}
	room := n
	if room < 2 {
		room = 2 // what is less than 16 bytes may share its memory with others
	}
	o.cells, o.next = make([]cell, room)[:n], 0
	o.cells[0].cells = uint32(n)
	s.core.show(n)
	return o
}

// fill has Make make the objects of a slab.
func (s *started[P]) fill(o *opening) error {
	if s.make == nil {
		return errors.New("slab: the Pool has no Make")
	}
	if len(o.fresh) != len(o.cells) {
		o.fresh = make([]uintptr, len(o.cells))
	}
	for i := range o.fresh {
		o.fresh[i] = 0
	}
	made := 0
	defer func() {
		if made < len(o.cells) { // Make may have panicked
			dead := o.fresh[:0]
			for _, object := range o.fresh {
				if object != 0 {
					dead = append(dead, object)
				}
			}
			s.core.release(dead)
		}
	}()
	if err := s.make(as[P](o.fresh)); err != nil {
		return err
	}
	for _, object := range o.fresh {
		if object != 0 {
			made++
		}
	}
	if made < len(o.cells) {
		return fmt.Errorf("slab: Make made %d objects of %d, and returned no error", made, len(o.cells))
	}
	for i, object := range o.fresh {
		o.cells[i].object = object
	}
	return nil
}

// as returns words as what C calls objects by.
func as[P any](words []uintptr) []P {
	return unsafe.Slice((*P)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// retire leaves a slab that was used up to the collector, unless all its handles were
// closed. It is also the finalizer of an opening.
func (c *core[P]) retire(o *opening) {
	for i := range o.cells {
		if o.cells[i].state.Load()&closed == 0 {
			runtime.SetFinalizer(&o.cells[0], c.died)
			return
		}
	}
}

// show has the collector see new objects, many at a time. And since it may have found slabs
// dead, it lets their finalizers run, which would otherwise wait for the scheduler to take
// the processor from a program that keeps it busy.
func (c *core[P]) show(objects int) {
	unseen := c.unseen.Add(int64(objects) * int64(c.bytes))
	if unseen < leastShown || !c.unseen.CompareAndSwap(unseen, 0) {
		return
	}
	for ; unseen > 0; unseen -= mostShown {
		n := unseen
		if n > mostShown {
			n = mostShown
		}
		var b strings.Builder // since Go 1.22 it does not touch what it allocates
		b.Grow(int(n))
	}
	runtime.Gosched()
}

// collect is the finalizer of a slab. It leaves the slab to the next call, unless too many
// wait: objects are freed sooner by who made them than by another thread.
func (c *core[P]) collect(first *cell) {
	n := int(first.cells)
	c.mu.Lock()
	waits := c.waiting+n <= c.most
	if waits {
		c.waiting += n
		c.dead = append(c.dead, first)
	}
	c.mu.Unlock()
	if waits {
		c.arm()
	} else {
		c.freeSlab(first)
	}
}

// freeSlab frees the objects of a dead slab. They move to its beginning.
func (c *core[P]) freeSlab(first *cell) {
	cells := unsafe.Slice(first, int(first.cells))
	dead := unsafe.Slice((*uintptr)(unsafe.Pointer(first)), len(cells))[:0]
	for i := range cells {
		if object := cells[i].object; object != 0 && cells[i].state.Load()&closed == 0 {
			dead = append(dead, object)
		}
	}
	c.release(dead)
}

// release frees objects for which there is no caller to return an error to.
func (c *core[P]) release(dead []uintptr) {
	if len(dead) == 0 {
		return
	}
	if err := c.free(as[P](dead)); err != nil {
		c.onError(err)
	}
}

// freeOne frees the objects of a dead slab, if there is one.
func (c *core[P]) freeOne() bool {
	c.mu.Lock()
	last := len(c.dead) - 1
	if last < 0 {
		c.mu.Unlock()
		return false
	}
	first := c.dead[last]
	c.dead[last] = nil
	c.dead = c.dead[:last]
	c.waiting -= int(first.cells)
	c.mu.Unlock()
	c.freeSlab(first)
	return true
}

// freeSome frees the objects of a dead slab for a new one, and for every sixteenth those of a
// second one, so that dead slabs become fewer. With two each time C would have more memory at
// hand than it needs soon: what it handed out would have left the processor's caches.
func (c *core[P]) freeSome() {
	if c.freeOne() {
		c.busy.Store(true)
		if c.traded.Add(1)%extra == 0 {
			c.freeOne()
		}
	}
}

// arm has a tick come, if none is to. One that a bubble of testing/synctest was to have
// may never come. The time of a bubble begins in 2000.
func (c *core[P]) arm() {
	due := c.due.Load()
	if due > bubbles {
		return
	}
	now := time.Now().UnixNano()
	if (due == 0 || now > bubbles) && c.due.CompareAndSwap(due, now+int64(delay)) {
		time.AfterFunc(delay, c.tick)
	}
}

// tick frees what waits, though no call comes. While calls come they free what was
// forgotten: two threads would wait for each other in C. One tick is under way at a time,
// however long Free takes.
func (c *core[P]) tick() {
	c.due.Store(0)
	if c.ticks.Add(1) > 1 {
		return
	}
	again := true // if Free ends the goroutine
	defer func() {
		if c.ticks.Swap(0) > 1 || again {
			c.arm()
		}
	}()
	c.freeClosed()
	if !c.busy.Swap(false) {
		for c.freeOne() {
		}
	}
	c.mu.Lock()
	again = len(c.dead) > 0
	c.mu.Unlock()
}

// freeClosed frees the objects of all lanes.
func (c *core[P]) freeClosed() {
	for i := range c.lanes {
		l := &c.lanes[i]
		l.mu.Lock()
		dead := l.objects
		l.objects = nil
		l.mu.Unlock()
		c.unshow(len(dead))
		c.release(dead)
	}
}

// unshow has the collector see fewer of the objects to come, as some were closed.
func (c *core[P]) unshow(objects int) {
	if c.unseen.Add(-int64(objects)*int64(c.bytes)) < -leastShown {
		c.unseen.Store(-leastShown) // it saw them before
	}
}

// Flush frees the objects that wait: closed ones, and forgotten ones that the collector has
// found. It does not wait for other goroutines, which may be freeing some already.
func (p *Pool[P]) Flush() {
	if s := p.started.Load(); s != nil {
		s.core.freeClosed()
		for s.core.freeOne() {
		}
	}
}

// Use calls f with the object, and returns what f returns. The object is not freed
// before f returns, even if the handle is closed meanwhile. If the handle was closed before,
// Use returns ErrClosed and does not call f.
func (h Handle[P]) Use(f func(object P) error) error {
	if h.cell == nil {
		return ErrClosed
	}
	for {
		state := h.cell.state.Load()
		if state&closed != 0 {
			return ErrClosed
		}
		if h.cell.state.CompareAndSwap(state, state+1) {
			break
		}
	}
	defer h.used()
	return f(*(*P)(unsafe.Pointer(&h.cell.object)))
}

// used ends a use. The last one after a close gives the object up.
func (h Handle[P]) used() {
	if h.cell.state.Add(^uint32(0)) == closed {
		if err := h.core.discard(h.cell); err != nil {
			h.core.onError(err)
		}
	}
}

// Close gives the object up. The pool frees it after its last use: together with others, or
// before Close returns if the pool is AtOnce and nobody uses it. If the handle was closed
// before, Close returns ErrClosed.
func (h Handle[P]) Close() error {
	if h.cell == nil {
		return ErrClosed
	}
	for {
		state := h.cell.state.Load()
		if state&closed != 0 {
			return ErrClosed
		}
		if h.cell.state.CompareAndSwap(state, state|closed) {
			if state != 0 {
				return nil
			}
			return h.core.discard(h.cell)
		}
	}
}

// discard has the object of a closed handle freed. Exactly one goroutine calls it.
func (c *core[P]) discard(given *cell) error {
	if c.keep == 0 {
		c.unshow(1)
		return c.free(unsafe.Slice((*P)(unsafe.Pointer(&given.object)), 1))
	}
	// Cells of one slab mostly belong to one goroutine.
	l := &c.lanes[uint64(uintptr(unsafe.Pointer(given))>>10)*0x9e3779b97f4a7c15>>c.shift]
	l.mu.Lock()
	if l.objects == nil {
		l.objects = make([]uintptr, 0, c.keep)
	}
	l.objects = append(l.objects, given.object)
	var full []uintptr
	if len(l.objects) == c.keep {
		full, l.objects = l.objects, nil
	}
	l.mu.Unlock()
	if full == nil {
		c.arm()
		return nil
	}
	c.unshow(len(full))
	c.release(full)
	l.mu.Lock()
	if l.objects == nil {
		l.objects = full[:0]
	}
	l.mu.Unlock()
	return nil
}
