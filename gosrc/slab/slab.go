// Package slab frees C objects in batches, after their handles are closed or
// garbage collected.
//
// A [Pool] adopts pointers that a C library returns, or asks the library to make
// objects in batches. It returns a [Handle] for each object. The pool frees each object
// exactly once: soon after [Handle.Close], or after the garbage collector finds the
// handle unreachable.
//
//	var trees = slab.Pool[*C.TSTree]{Free: func(dead []*C.TSTree) error {
//		C.delete_trees(unsafe.SliceData(dead), C.size_t(len(dead)))
//		return nil
//	}}
//
//	tree := trees.Adopt(C.ts_parser_parse(...))
//	err := tree.Use(func(t *C.TSTree) error { ... })
//	node, err := slab.Use(tree, func(t *C.TSTree) (C.TSNode, error) { ... })
//	tree.Close() // if you forget this, the collector frees the tree
//
// An object that takes more than 128 bytes of C memory, as a tree does, needs [Pool.Bytes].
//
// # When to use it
//
// Use it for small C objects that a program makes in large numbers, and that its users may
// forget to close. [runtime.SetFinalizer] and [runtime.AddCleanup] register each object
// with the garbage collector, which is expensive: the runtime keeps a sorted list of
// registrations for every few kilobytes of heap, walks the list to insert one, and visits
// each registration in every collection. First try a larger handle: one of 64 bytes has a
// list an eighth as long as one of 8. If that is not enough, use this package. It groups
// handles in slabs of up to 64, registers only the slab, and frees a slab's objects in one
// call into C.
//
// Do not use it
//
//   - where defer x.Close() is enough: that costs next to nothing and frees immediately.
//   - for few objects, such as connections: a cleanup for each is simpler, and frees each as
//     soon as the collector can. Large objects that callers may forget need more than a
//     cleanup, because the collector does not see their memory: see [Pool.Bytes].
//   - where the order of frees matters.
//   - where the C library must be called from one thread: [Pool.Free] runs on any thread, and
//     on several at once unless the pool is [Pool.Serial].
//   - for objects that all end at the same time: free them together, as an arena does.
//   - as a cache: handles are not weak pointers. A reachable handle keeps its object.
//   - for a C object that uses Go memory until it is freed (pinned by [runtime.Pinner], in a
//     slice that only its wrapper refers to, or behind a cgo.Handle), if Adopt gets the C
//     object: a pool frees it later than its wrapper dies, so the memory dies first, and a
//     Pinner panics. Adopt a cgo.Handle for a struct that has the C object and what it uses;
//     Free then frees the object, unpins, and deletes the handle. The README has the code.
//
// # What it costs
//
// Memory: a slab is garbage only when nothing refers to any of its handles. One handle in
// use therefore keeps all forgotten objects of its slab, up to 63 of them. Objects forgotten
// in random order hold up to 4.74 times the C memory of the live ones, if all live about as
// long. Use a pool for each lifetime: among objects that live a hundred times as long, those
// that live shortly wait for them. Closed objects are freed regardless. See [Pool.Handles].
// [Pool.Stats] counts the objects that were forgotten and those that wait.
//
// Time: a closed object waits to be freed with others, usually less than 0.04 seconds; see
// [Pool.AtOnce]. A forgotten object waits for the garbage collector, as with a finalizer;
// in an idle program the collector runs every two minutes, once a first collection has run and
// unless GOGC=off. The collector cannot see C
// memory, so by itself it would run too seldom; see [Pool.Bytes]. If more than 64 MiB of
// objects that the collector has found wait to be freed, counted in [Pool.Bytes], each new
// slab frees four of them: a slow Free then slows the calls that make handles.
//
// The slab that a pool is handing out counts as in use, until two collections have passed
// without a call. The last slab of a pool is therefore freed after the third collection, or
// after the first one that follows a [Pool.Flush].
//
// # What can go wrong
//
//   - Free must not keep its slice. It must not take a lock that a caller of the pool or
//     of a handle holds: any such call may call Free.
//   - In an AtOnce pool, a Free that closes other handles is called recursively.
//   - A Free that blocks blocks its caller. If that is the pool's timer, nothing more is freed by
//     time until it returns: objects wait for calls that free them, and those of an idle program
//     for ever ([Pool.Stats] counts them). Flush frees them on a goroutine of yours, unless the
//     pool is Serial. So Free must not wait for a network or another program; let it queue such
//     work for a goroutine of yours.
//   - A finalizer of any package that blocks, or calls runtime.Goexit, stops all finalizers of
//     the program, and so the pool's, which find the forgotten objects: they stay, also after
//     Flush. Closed objects are freed. A goroutine profile shows a finalizer that blocks (in
//     runtime.runFinalizers, before Go 1.25 runtime.runfinq), but none that called Goexit.
//   - A panic of Free reaches the caller of the pool or handle that called Free. If the timer
//     called it, the panic ends the program, as a panic of a finalizer does. Either way the
//     pool does not free the objects of that call again.
//   - Objects closed in a testing/synctest bubble may wait for the next call outside of it.
//   - Do not use an object after the f of [Handle.Use] returns: it may have been freed.
//   - If a C object refers to another (a statement to its connection), the other must stay
//     alive. Store the handle of the second in the Go type of the first. The collector may
//     find both dead at once, so the library must allow frees in either order.
//   - If Free refers to a handle of its own pool, that object is never freed, as with a
//     finalizer. Make Free a function, not a method of a value that holds handles.
//   - GODEBUG=checkfinalizers=1 (Go 1.25 and later) ends a program with a pool whose Free leads
//     to the pool, such as a method of the struct that has the pool, though such a pool is
//     collected: "Value of type slab.opening … is reachable from finalizer". Let Free refer to a
//     value that does not lead to the pool, or leave such pools out when you use the setting.
//   - When the program exits, neither live objects nor closed objects that still wait are
//     freed: call [Pool.Flush] first.
package slab

import (
	"errors"
	"fmt"
	"log"
	"math/bits"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrClosed is returned by methods of a closed handle. A zero Handle is closed.
var ErrClosed = errors.New("slab: the handle is closed")

// A Pool makes handles for objects of one kind. P is the C type of a reference to an
// object: a pointer, such as *C.sqlite3_stmt, or C.uintptr_t. It must not point to Go
// memory: the garbage collector does not see the pointers that a pool holds.
//
// Set Free, and other fields as needed, before the first use; later changes have no effect.
// A Pool is safe for concurrent use. It must not be copied. It need not be closed: its
// handles work after the Pool itself is gone, and their objects are still freed.
type Pool[P any] struct {
	// Free frees objects. Unlike a finalizer, it may run on many goroutines at once; see
	// Serial. Any method of the pool or of its handles may call it, and so may a timer, with
	// any objects of the pool. It must not take a lock that is held around such a call, and
	// must not keep the slice. It may use the pool and its handles.
	Free func(dead []P) error

	// Make puts new objects into fresh, whose entries are zero. It may run on many goroutines
	// at once; see Serial. It must not keep the slice. If it returns an error or panics, the
	// pool frees those that it had made. Only Get needs Make.
	Make func(fresh []P) error

	// Serial makes the calls of Free and Make take turns, as finalizers do. They and OnError
	// must then not call Get or Flush, nor Close if the pool is AtOnce. If Free is slower than
	// the program, objects wait without limit, as for finalizers. The functions that
	// Handle.Use calls take no turns: if the C library is not thread-safe, leave Serial unset
	// and take a lock of your own in Free, in Make and in each function passed to Use.
	Serial bool

	// OnError receives the errors of Free that Close does not return, on the goroutine
	// that called Free. If OnError is nil, they are logged.
	OnError func(error)

	// AtOnce makes Close free its object itself and return the error of Free. Otherwise a
	// closed object waits for others, and is not freed if the program exits before.
	AtOnce bool

	// Handles is the maximum number of handles in a slab; values below 1 mean 64. Larger
	// slabs make a handle cheaper, but one handle in use may keep more forgotten objects. If
	// objects are forgotten in random order, the collector leaves up to 1 + 1/2 + ... +
	// 1/Handles times the live ones: 4.74 times with 64, 2.72 with 8, 1.00 with 1, which
	// costs as much as a finalizer for each. It leaves more if they live for very different
	// times, so give each lifetime a pool of its own. The first slabs have fewer handles.
	Handles int

	// Bytes is the approximate C memory that an object uses; 0 means 128. Objects of
	// kilobytes need it, and those of a megabyte also Handles: 1. The garbage collector starts
	// after a certain amount of Go allocation, and cannot see C memory. So the pool allocates
	// as much Go memory as its objects use, and drops it untouched. It counts towards
	// GOMEMLIMIT until the next collection. The collector does not run before the Go heap
	// reaches 4 MiB (at GOGC=100). If Bytes is negative, the pool does not allocate it, and the
	// collector runs too seldom. Bytes also bounds how many closed objects wait together: 128,
	// or 32 KiB of them, so that they are still in the CPU's caches when they are freed.
	Bytes int

	started atomic.Pointer[started[P]]
}

// A Handle refers to an object. It is two words and may be copied: all copies are the same
// handle. It is safe for concurrent use. The zero Handle is closed.
type Handle[P any] struct {
	core *core[P]
	cell *cell
}

// A cell is what a handle points to. A slab is an array of cells, so a pointer to one cell
// keeps them all. Cells contain no pointers, so the collector does not scan slabs.
type cell struct {
	object uintptr
	state  atomic.Uint32
	cells  uint32 // number of cells in the slab; set in its first cell only
}

// Bits of a cell's state. The other bits count the uses in progress.
const (
	closed = 1 << 31 // a closed handle
	unused = 1 << 30 // a cell that was never handed out
)

// started is the state of a pool after its first use. It, and not core, holds the slabs
// being handed out: their finalizers refer to core, so core would keep them alive.
type started[P any] struct {
	core             *core[P]
	make             func([]P) error
	handles          int
	adopting, making sync.Pool // of *opening
}

// An opening is a slab whose cells are being handed out, by one goroutine at a time.
type opening struct {
	cells []cell
	next  int
	fresh []uintptr // buffer for Make
}

// core is the part of a pool that its handles and slabs refer to.
type core[P any] struct {
	free    func([]P) error
	onError func(error)
	died    func(first *cell)
	bytes   int          // C memory per object; 0 if the collector is shown none
	unseen  atomic.Int64 // bytes not yet shown to the collector

	atOnce bool
	keep   int    // number of closed objects freed together, or, in an AtOnce pool, unshown together
	lanes  []lane // none in an AtOnce pool
	shift  int    // reduces a hash to a lane's index

	mu      sync.Mutex
	dead    []*cell // first cells of unreachable slabs
	waiting int     // number of cells in those slabs
	most    int     // value of waiting above which new slabs free more dead ones
	traded  int     // new slabs for which a dead one was freed

	serial bool
	turn   sync.Mutex // in a serial pool, held while Free or Make runs

	closed    atomic.Int64 // see Stats
	forgotten atomic.Int64

	busy  atomic.Int32 // dead slabs that calls freed since the last tick
	due   atomic.Int64 // time of the next tick; 0 if none is scheduled
	ticks atomic.Int32 // ticks that fired since the running one began, including it
}

// A lane is a buffer of closed objects. A pool has several, to reduce lock contention.
type lane struct {
	mu      sync.Mutex
	objects []uintptr
	_       [128 - 8 - 3*word]byte // keeps lanes in separate cache lines
}

const word = unsafe.Sizeof(uintptr(0))

const (
	leastHandles = 8                                // handles in a pool's first slabs
	mostWaiting  = 64 << 20                         // bytes waiting above which they are freed faster
	mostClosed   = 128                              // maximum objects in a lane
	mostLane     = 32 << 10                         // maximum bytes in a lane: closed objects should stay in the CPU's caches
	extra        = 16                               // every 16th new slab frees a second dead slab
	catchUp      = 4                                // dead slabs that a new one frees if too many wait
	delay        = 20 * time.Millisecond            // until a tick frees the waiting objects
	bubbles      = 40 * 365 * 24 * int64(time.Hour) // the year 2010; times of synctest bubbles are earlier
	leastShown   = 8 << 20                          // minimum bytes shown to the collector at once
	mostShown    = 16 << 20                         // maximum bytes of one allocation that shows them
)

// start returns the state of the pool, which its first use creates.
func (p *Pool[P]) start() *started[P] {
	if s := p.started.Load(); s != nil {
		return s
	}
	p.started.CompareAndSwap(nil, p.newStarted())
	return p.started.Load()
}

func (p *Pool[P]) newStarted() *started[P] {
	var object P
	switch t := reflect.TypeOf(&object).Elem(); t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Map: // always in Go memory
		panic(fmt.Sprintf("slab: the type parameter of a Pool is a C pointer or uintptr, not %v", t))
	default:
		if t.Size() != word {
			panic(fmt.Sprintf("slab: the type parameter of a Pool has the size of a pointer, not that of %v", t))
		}
	}
	if p.Free == nil {
		panic("slab: Pool.Free is nil")
	}
	c := &core[P]{free: p.Free, onError: p.OnError, bytes: p.Bytes, serial: p.Serial, atOnce: p.AtOnce}
	c.died = func(first *cell) { c.collect(first) }
	if c.onError == nil {
		c.onError = func(err error) { log.Printf("slab: Free failed: %v", err) }
	}
	if c.bytes == 0 {
		c.bytes = 128
	}
	c.most, c.keep = mostWaiting/128, mostClosed
	if c.bytes > 0 {
		c.most = mostWaiting / c.bytes
		if n := mostLane / c.bytes; n < c.keep {
			c.keep = n
		}
		if c.keep < 1 {
			c.keep = 1 // freed by Close, which does not wait for its turn
		}
	}
	if !c.atOnce {
		lanes := 1 << bits.Len(uint(2*runtime.GOMAXPROCS(0)-1))
		c.lanes, c.shift = make([]lane, lanes), 64-bits.Len(uint(lanes-1))
	}
	if inLanes := c.keep * len(c.lanes); inLanes < c.most/2 {
		c.most -= inLanes
	} else {
		c.most -= c.most / 2
	}
	if c.bytes < 0 {
		c.bytes = 0
	}
	s := &started[P]{core: c, make: p.Make, handles: p.Handles}
	if s.handles <= 0 {
		s.handles = 64
	}
	return s
}

// Adopt returns a handle for an object, which the pool will free. If the object is nil or
// zero, Adopt returns the zero Handle.
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
	cell.object = given // no other goroutine has the cell yet
	o.next++
	s.adopting.Put(o)
	if full {
		s.core.freeSome() // last, because Free may panic
	}
	return Handle[P]{s.core, cell}
}

// Get returns a handle for an object that Make made, or the error of Make.
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

// open returns a new slab to hand out. It is twice as large as the slab in o, which is
// used up. A pool that is seldom used keeps small slabs: a sync.Pool drops what was not
// used during two collections, so o is nil and the size starts again at leastHandles.
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
		room = 2 // the runtime may put objects under 16 bytes into a shared block
	}
	o.cells, o.next = make([]cell, room)[:n], 0
	o.cells[0].cells = uint32(n)
	s.core.show(n)
	return o
}

// fill calls Make to make the objects of a slab.
func (s *started[P]) fill(o *opening) error {
	if s.make == nil {
		return errors.New("slab: Pool.Make is nil")
	}
	if len(o.fresh) != len(o.cells) {
		o.fresh = make([]uintptr, len(o.cells))
	}
	for i := range o.fresh {
		o.fresh[i] = 0
	}
	s.core.enter(true)
	defer s.core.leave()
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
		return fmt.Errorf("slab: Make returned no error but made only %d of %d objects", made, len(o.cells))
	}
	for i, object := range o.fresh {
		o.cells[i].object = object
	}
	return nil
}

// as converts words to a slice of the pool's type without copying.
func as[P any](words []uintptr) []P {
	return unsafe.Slice((*P)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// retire sets the finalizer of a slab that was used up, unless all its handles are closed.
// It is also the finalizer of an opening, which may have cells that were not handed out.
func (c *core[P]) retire(o *opening) {
	for i := range o.cells[o.next:] {
		o.cells[o.next+i].state.CompareAndSwap(0, unused)
	}
	for i := range o.cells {
		if o.cells[i].state.Load()&closed == 0 {
			runtime.SetFinalizer(&o.cells[0], c.died)
			return
		}
	}
}

// show allocates as much Go memory as new objects use in C, so that the collector accounts
// for them, and drops it. It does so for many objects at a time. Then it yields: collections
// may have found dead slabs, whose finalizers would otherwise wait until the scheduler
// preempts the program's own goroutines.
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
		var b strings.Builder // since Go 1.22 it does not clear the memory that it allocates
		b.Grow(int(n))
	}
	runtime.Gosched()
}

// collect is the finalizer of a slab. It only queues the slab, so that a slow Free does not
// delay other finalizers, and so that the runtime's own queue stays short.
func (c *core[P]) collect(first *cell) {
	c.mu.Lock()
	c.waiting += int(first.cells)
	c.dead = append(c.dead, first)
	c.mu.Unlock()
	c.arm()
}

// enter begins a call of Free or Make. In a serial pool it takes the turn. It reports false
// if another goroutine has the turn and wait is false.
func (c *core[P]) enter(wait bool) bool {
	if !c.serial {
		return true
	}
	if !wait {
		return c.turn.TryLock()
	}
	c.turn.Lock()
	return true
}

// leave ends what enter began.
func (c *core[P]) leave() {
	if c.serial {
		c.turn.Unlock()
	}
}

// freeSlab frees the objects of a dead slab. It first moves them to the start of the slab's
// memory, to pass them as a slice.
func (c *core[P]) freeSlab(first *cell) {
	cells := unsafe.Slice(first, int(first.cells))
	dead := unsafe.Slice((*uintptr)(unsafe.Pointer(first)), len(cells))[:0]
	forgotten := 0
	for i := range cells {
		object, state := cells[i].object, cells[i].state.Load()
		if object == 0 || state&closed != 0 {
			continue
		}
		if state != unused {
			forgotten++
		}
		dead = append(dead, object)
	}
	c.forgotten.Add(int64(forgotten))
	c.release(dead)
}

// release frees objects and reports an error to onError, where no caller can receive it.
func (c *core[P]) release(dead []uintptr) {
	if len(dead) == 0 {
		return
	}
	if err := c.free(as[P](dead)); err != nil {
		c.onError(err)
	}
}

// freeOne frees the objects of one dead slab. It reports whether there was one.
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

// freeSome frees dead slabs for a new slab. See share.
func (c *core[P]) freeSome() {
	if !c.enter(false) {
		return
	}
	defer c.leave()
	for n := c.share(); n > 0 && c.freeOne(); n-- {
		c.busy.Add(1)
	}
}

// share returns how many dead slabs to free for a new slab: one, and every sixteenth time
// two, so that their number falls. Always freeing two would give C more free memory than it
// reuses soon, and the memory would leave the CPU's caches before C hands it out.
func (c *core[P]) share() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.dead) == 0 {
		return 0
	}
	c.traded++
	switch {
	case c.waiting > c.most:
		return catchUp
	case c.traded%extra == 0:
		return 2
	}
	return 1
}

// arm schedules a tick unless one is scheduled. A timer that was set in a testing/synctest
// bubble may never fire, so arm does not wait for one. Time in a bubble begins in 2000.
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

// tick frees waiting objects when calls do not free them soon. If calls would free the dead
// slabs within 16 ticks, tick leaves the slabs to them, because two threads would contend in
// C. Only one tick runs at a time, however long Free takes.
func (c *core[P]) tick() {
	c.due.Store(0)
	if c.ticks.Add(1) > 1 {
		return
	}
	again := true // in case Free ends the goroutine
	defer func() {
		if c.ticks.Swap(0) > 1 || again {
			c.arm()
		}
	}()
	c.enter(true)
	defer c.leave()
	c.freeClosed()
	if n := c.slabs(); n > 16*int(c.busy.Swap(0)) {
		for ; n > 0 && c.freeOne(); n-- {
		}
	}
	again = c.slabs() > 0
}

// slabs returns the number of dead slabs that wait.
func (c *core[P]) slabs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.dead)
}

// freeClosed frees the objects in all lanes. It reports whether there were any.
func (c *core[P]) freeClosed() (found bool) {
	for i := range c.lanes {
		l := &c.lanes[i]
		l.mu.Lock()
		dead := l.objects
		l.objects = nil
		l.mu.Unlock()
		c.closed.Add(int64(len(dead)))
		c.unshow(len(dead))
		c.release(dead)
		found = found || len(dead) > 0
	}
	return found
}

// unshow subtracts closed objects from those that the collector has yet to be shown.
func (c *core[P]) unshow(objects int) {
	if c.unseen.Add(-int64(objects)*int64(c.bytes)) < -leastShown {
		c.unseen.Store(-leastShown) // bounds the credit for objects that were shown already
	}
}

// Flush frees the objects that wait: closed objects, forgotten ones that the collector has
// found, and those that Make made and Get has not returned. It also frees what Free closes
// meanwhile. It ends the slabs that are being handed out, so that the next collection finds
// their forgotten handles; those that other threads hand out can escape it. Frequent calls
// therefore keep slabs small. Flush does not wait for other goroutines that are freeing
// objects, unless the pool is Serial.
func (p *Pool[P]) Flush() {
	s := p.started.Load()
	if s == nil {
		return
	}
	c := s.core
	c.enter(true)
	defer c.leave()
	var open []*opening // first all, because Free may open others
	for _, pool := range []*sync.Pool{&s.adopting, &s.making} {
		for o, ok := pool.Get().(*opening); ok; o, ok = pool.Get().(*opening) {
			open = append(open, o)
		}
	}
	for _, o := range open {
		runtime.SetFinalizer(o, nil)
		c.abandon(o)
	}
	for c.freeClosed() || c.freeOne() {
	}
}

// Stats are numbers of objects since the first use of a pool. The share of objects that users
// forget to close is Forgotten / (Closed + Forgotten).
type Stats struct {
	Closed    int64 // freed after Close
	Forgotten int64 // freed without Close, because the collector found their handles unreachable
	Waiting   int64 // not freed yet, although closed or in a slab that the collector has found
}

// Stats returns the pool's numbers. Objects that other goroutines are freeing may be missing
// from them. Waiting counts all handles of a slab, also closed ones.
func (p *Pool[P]) Stats() Stats {
	s := p.started.Load()
	if s == nil {
		return Stats{}
	}
	c := s.core
	c.mu.Lock()
	waiting := c.waiting
	c.mu.Unlock()
	for i := range c.lanes {
		l := &c.lanes[i]
		l.mu.Lock()
		waiting += len(l.objects)
		l.mu.Unlock()
	}
	return Stats{c.closed.Load(), c.forgotten.Load(), int64(waiting)}
}

// abandon retires a slab that is not used up, and frees the objects without a handle.
func (c *core[P]) abandon(o *opening) {
	var unused []uintptr
	for i := range o.cells[o.next:] {
		cell := &o.cells[o.next+i]
		cell.state.Store(closed)
		if cell.object != 0 {
			unused = append(unused, cell.object)
		}
	}
	c.retire(o)
	c.release(unused)
}

// Use calls f with the object and returns the result of f. The object is not freed before
// f returns, even if the handle is closed meanwhile. If the handle is already closed, Use
// returns ErrClosed and does not call f. Use takes no lock: many goroutines may use an object
// at once, also while Free and Make run for others.
func (h Handle[P]) Use(f func(object P) error) error {
	if !h.use() {
		return ErrClosed
	}
	defer h.used()
	return f(h.object())
}

// Use is [Handle.Use] for an f that returns a value besides its error. If the handle is
// already closed, the value is zero.
func Use[P, R any](h Handle[P], f func(object P) (R, error)) (result R, err error) {
	if !h.use() {
		return result, ErrClosed
	}
	defer h.used()
	return f(h.object())
}

func (h Handle[P]) object() P { return *(*P)(unsafe.Pointer(&h.cell.object)) }

// use begins a use, which used ends. It reports false if the handle is closed.
func (h Handle[P]) use() bool {
	if h.cell == nil {
		return false
	}
	for {
		state := h.cell.state.Load()
		if state&closed != 0 {
			return false
		}
		if h.cell.state.CompareAndSwap(state, state+1) {
			return true
		}
	}
}

// used ends a use. If the handle is closed and this was the last use, it discards the object.
func (h Handle[P]) used() {
	if h.cell.state.Add(^uint32(0)) == closed {
		if err := h.core.discard(h.cell); err != nil {
			h.core.onError(err)
		}
	}
}

// Close closes the handle. The pool frees the object after its last use: together with
// others, or, if the pool is AtOnce and the object is not in use, before Close returns. If
// the handle is already closed, Close returns ErrClosed.
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

// discard frees the object of a closed handle, or adds it to a lane. It is called exactly
// once per object.
func (c *core[P]) discard(given *cell) error {
	if c.atOnce {
		if c.closed.Add(1)%int64(c.keep) == 0 {
			c.unshow(c.keep)
		}
		c.enter(true)
		defer c.leave()
		return c.free(unsafe.Slice((*P)(unsafe.Pointer(&given.object)), 1))
	}
	// Hash by slab, because one goroutine uses most of a slab's cells.
	l := &c.lanes[uint64(uintptr(unsafe.Pointer(given))>>10)*0x9e3779b97f4a7c15>>c.shift]
	l.mu.Lock()
	if l.objects == nil {
		l.objects = make([]uintptr, 0, c.keep)
	}
	l.objects = append(l.objects, given.object)
	var full []uintptr
	if len(l.objects) >= c.keep && c.enter(false) {
		full, l.objects = l.objects, nil
	}
	l.mu.Unlock()
	if full == nil {
		c.arm()
		return nil
	}
	defer c.leave()
	c.closed.Add(int64(len(full)))
	c.unshow(len(full))
	c.release(full)
	l.mu.Lock()
	if l.objects == nil {
		l.objects = full[:0]
	}
	l.mu.Unlock()
	return nil
}
