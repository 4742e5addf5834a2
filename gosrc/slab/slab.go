// Package slab frees C objects in batches, after their handles are closed or
// garbage collected.
//
// A [Pool] adopts the pointers that a C library returns, or has the library make
// objects in batches. Its handles keep the objects alive. An object is freed once:
// soon after [Handle.Close], or else after the garbage collector finds that nobody
// holds its handle any more.
//
//	var trees = slab.Pool[*C.TSTree]{Free: func(dead []*C.TSTree) error {
//		C.delete_trees(unsafe.SliceData(dead), C.size_t(len(dead)))
//		return nil
//	}}
//
//	tree := trees.Adopt(C.ts_parser_parse(...))
//	err := tree.Use(func(t *C.TSTree) error { ... })
//	tree.Close() // if you forget it, the collector sees to it
//
// # When to use it
//
// Use it for small C objects of which a program makes very many, and whose users may
// forget to close them. [runtime.SetFinalizer] and [runtime.AddCleanup] register each
// object with the garbage collector, which is expensive: the runtime keeps a sorted list
// of registrations for every few kilobytes of heap, walks it to insert one, and visits
// each of them in every collection. Here the handles are in slabs. Only a slab is
// registered, and the objects in it are freed in one call of C.
//
// Do not use it
//
//   - where `defer x.Close()` does the job: it costs next to nothing and frees at once.
//   - for few or large objects, such as connections: a cleanup for each is simpler, and
//     frees each as soon as the collector can.
//   - where the order of frees matters.
//   - where objects are used and freed on one goroutine only: a thread may be tied to a
//     C library, and [Pool.Free] runs on any.
//   - for a group of objects with one end of life: free them together, as an arena.
//   - as a cache: handles are not weak pointers. While a handle can be reached, its
//     object stays.
//
// # What it costs
//
// Memory: a handle that stays in use keeps its whole slab. The forgotten objects that
// share its slab are not freed before it is gone; those that were closed are. See
// [Pool.Handles].
//
// Time: an object that was closed waits for others, but no longer than a few
// milliseconds. A forgotten object waits for the garbage collector, as with a finalizer,
// which in an idle program comes every two minutes. The collector cannot see C memory, so
// it comes late if objects are large. See [Pool.Bytes].
//
// # What can go wrong
//
//   - Free must not keep the slice that it is given.
//   - A pointer that f of [Handle.Use] returns or stores may be freed when Use returns.
//   - An object that refers to another in C (a statement to its connection) needs that
//     other one alive. Let the Go type of the first hold the handle of the second; since
//     both may be found dead at once, the library must allow either order.
//   - A Free that leads to a handle of its own pool keeps that handle alive for good, as
//     a finalizer would. Let Free be a function, not a method of what holds handles.
//   - When the program exits, objects that live then are not freed.
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

// A Pool makes handles for objects of one kind. P is what C calls them by: a C
// pointer, such as *C.sqlite3_stmt, or a C.uintptr_t. It must not be a pointer to Go
// memory: the garbage collector does not see it.
//
// Set Free and what else is needed before the first use; later changes have no effect.
// A Pool may be used by several goroutines at once. Do not copy it. It need not be
// closed: its handles work on without it, and nothing is lost.
type Pool[P any] struct {
	// Free frees objects. It is called by any goroutine, also by the one that runs
	// all finalizers, and by several at once. It may use the pool and its handles. It
	// must not keep the slice.
	Free func(dead []P) error

	// Make puts new objects into fresh, whose entries are zero. If it returns an error,
	// those that it made before are freed. Only Get needs it.
	Make func(fresh []P) error

	// OnError is called with the errors of Free, for which there may be no caller to
	// return them to. It is called by any goroutine. If it is nil they are logged.
	OnError func(error)

	// Handles is how many handles share a slab at most: 64 if it is 0. The more, the
	// cheaper a handle, and the more objects one handle in use may keep. The first
	// slabs have fewer.
	Handles int

	// Bytes is about how much C memory an object takes: 128 if it is 0. The garbage
	// collector, which runs the more often the more is allocated, is made to see it: as
	// much Go memory is allocated, and left to it, but not touched. If Bytes is negative
	// it sees nothing, and comes too late by itself.
	Bytes int

	// Waiting is how many closed or dead objects may wait to be freed with others: 65,536
	// if it is 0. If it is negative none waits: every Close calls Free.
	Waiting int

	// WaitingBytes is the same in bytes, for objects of Bytes: 64 MiB if it is 0.
	WaitingBytes int

	core atomic.Pointer[core[P]]
}

// A Handle stands for an object. It is small and may be copied: all copies are the same
// handle. It may be used by several goroutines at once. The zero Handle is closed.
type Handle[P any] struct {
	core *core[P]
	cell *cell
}

// A cell is what a handle points to. A slab is an array of cells, with a finalizer:
// whoever holds one holds them all. A cell has no pointers, so the collector need not
// look at slabs.
type cell struct {
	object uintptr // 0: none, or it was closed
	state  atomic.Uint32
	cells  uint32 // of the slab, in its first cell
}

// closed is the bit of a cell's state that says so. The others count the uses.
const closed = 1 << 31

// core is what handles and slabs know of their pool. It leads to no slab but those that
// are being handed out, and the runtime takes these away in two collections.
type core[P any] struct {
	free    func([]P) error
	make    func([]P) error
	onError func(error)

	handles int
	keep    int // a lane frees so many together; 0: none waits
	most    int // cells of dead slabs that wait

	adopting, making sync.Pool // of *opening
	buffers          sync.Pool // of *buffer

	lanes []lane
	shift int // from a hash to a lane

	mu      sync.Mutex
	dead    []*cell // the first ones of slabs that nobody can reach
	waiting int     // their cells

	died  func(*cell)
	armed atomic.Bool

	bytes  int  // of an object
	seen   bool // by the collector
	unseen atomic.Int64
}

// A lane is one of the places where closed objects wait.
type lane struct {
	mu   sync.Mutex
	kept *buffer
	_    [128 - 16]byte // the next lane is in another cache line
}

// A buffer holds objects to free. It is allocated without pointers, so that the
// collector, and cgo's checks, need not look into it.
type buffer struct{ objects []uintptr }

// opening is a slab whose handles are being handed out.
type opening struct {
	cells []cell
	next  int
	size  int // of the slab before
}

const (
	leastHandles = 8                     // of a pool's first slabs
	delay        = 10 * time.Millisecond // that objects wait at most for others
	weighed      = 256 << 10             // bytes that the collector sees at a time, at least
)

// started returns the pool's core.
func (p *Pool[P]) started() *core[P] {
	if c := p.core.Load(); c != nil {
		return c
	}
	return p.start()
}

func (p *Pool[P]) start() *core[P] {
	var object P
	if unsafe.Sizeof(object) != unsafe.Sizeof(uintptr(0)) {
		panic(fmt.Sprintf("slab: a Pool is of C pointers or a type of their size, not of %T", object))
	}
	if p.Free == nil {
		panic("slab: the Pool has no Free")
	}
	c := &core[P]{free: p.Free, make: p.Make, onError: p.OnError, handles: p.Handles, bytes: p.bytes(), seen: p.Bytes >= 0}
	if c.onError == nil {
		c.onError = func(err error) { log.Printf("slab: objects could not be freed: %v", err) }
	}
	if c.handles <= 0 {
		c.handles = 64
	}
	lanes := 1 << bits.Len(uint(2*runtime.GOMAXPROCS(0)-1))
	c.lanes = make([]lane, lanes)
	c.shift = 64 - bits.Len(uint(lanes-1))
	// Half of what may wait is for closed objects, at most twice a slab in each lane.
	limit := p.limit()
	c.keep = limit / 2 / lanes
	if c.keep > 2*c.handles {
		c.keep = 2 * c.handles
	}
	if c.keep < 2 {
		c.keep = 0
	}
	c.most = limit - lanes*c.keep
	c.died = func(first *cell) { c.collect(first) }
	if !p.core.CompareAndSwap(nil, c) {
		return p.core.Load()
	}
	return c
}

// bytes is how many an object is taken to have.
func (p *Pool[P]) bytes() int {
	if p.Bytes <= 0 {
		return 128
	}
	return p.Bytes
}

// limit is how many objects may wait.
func (p *Pool[P]) limit() int {
	if p.Waiting < 0 {
		return 0
	}
	limit := p.Waiting
	if limit == 0 {
		limit = 1 << 16
	}
	most := p.WaitingBytes
	if most <= 0 {
		most = 64 << 20
	}
	if most /= p.bytes(); most < limit {
		limit = most
	}
	return limit
}

// Adopt returns a handle for an object, which the pool frees from now on. That of a
// nil pointer is the zero Handle.
func (p *Pool[P]) Adopt(object P) Handle[P] {
	c := p.started()
	word := *(*uintptr)(unsafe.Pointer(&object))
	if word == 0 {
		return Handle[P]{}
	}
	o, _ := c.adopting.Get().(*opening)
	if o == nil || o.next == len(o.cells) {
		c.freeSome()
		o = c.newSlab(o)
	}
	h := c.hand(o)
	h.cell.object = word // nobody else has the cell yet
	c.adopting.Put(o)
	return h
}

// Get returns a handle for a new object, or the error of Make.
func (p *Pool[P]) Get() (Handle[P], error) {
	c := p.started()
	o, _ := c.making.Get().(*opening)
	if o == nil || o.next == len(o.cells) {
		c.freeSome()
		var err error
		if o, err = c.made(o); err != nil {
			return Handle[P]{}, err
		}
	}
	h := c.hand(o)
	c.making.Put(o)
	return h, nil
}

// hand hands out the next cell of a slab.
func (c *core[P]) hand(o *opening) Handle[P] {
	cell := &o.cells[o.next]
	if o.next++; o.next == len(o.cells) {
		o.cells, o.next = nil, 0 // it would still hold the slab
	}
	return Handle[P]{c, cell}
}

// newSlab returns a slab to be handed out. Where one was used up the next is twice as
// large: a pool that is seldom used has small ones, as the collector takes away what is
// not handed out for long.
func (c *core[P]) newSlab(o *opening) *opening {
	if o == nil {
		o = &opening{size: leastHandles / 2}
	}
	if o.size *= 2; o.size > c.handles {
		o.size = c.handles
	}
	n := o.size
	if n < 2 {
		n = 2 // what is less than 16 bytes may share its memory with others
	}
	o.cells = make([]cell, n)[:o.size:o.size]
	c.weigh(o.size)
	o.cells[0].cells = uint32(o.size)
	o.next = 0
	runtime.SetFinalizer(&o.cells[0], c.died)
	return o
}

// weigh has the collector see objects that were made and not closed, many at a time. And
// since it may have found slabs dead, it lets their finalizers run, which would otherwise
// wait for the scheduler to take the processor from a program that keeps it busy. The
// number is negative for objects that were closed.
func (c *core[P]) weigh(objects int) {
	unseen := c.unseen.Add(int64(objects) * int64(c.bytes))
	switch {
	case unseen >= weighed:
		if !c.unseen.CompareAndSwap(unseen, 0) {
			return // another goroutine does it
		}
	case unseen < -weighed:
		c.unseen.CompareAndSwap(unseen, -weighed) // they were seen before they were closed
		return
	default:
		return
	}
	if unseen > 64*weighed {
		unseen = 64 * weighed
	}
	if c.seen {
		var b strings.Builder // since Go 1.22 it does not touch what it allocates
		b.Grow(int(unseen))
	}
	runtime.Gosched()
}

// made returns a slab of new objects.
func (c *core[P]) made(o *opening) (*opening, error) {
	if c.make == nil {
		return nil, errors.New("slab: the Pool has no Make")
	}
	o = c.newSlab(o)
	b := c.buffer()
	b.objects = b.objects[:0]
	for range o.cells {
		b.objects = append(b.objects, 0)
	}
	err := c.make(objects[P](b))
	n := 0
	for _, object := range b.objects {
		if object != 0 {
			b.objects[n] = object
			n++
		}
	}
	if err == nil && n < len(o.cells) {
		err = fmt.Errorf("slab: Make made %d objects of %d, and returned no error", n, len(o.cells))
	}
	if err != nil {
		b.objects = b.objects[:n]
		c.release(b)
		return nil, err
	}
	for i, object := range b.objects {
		o.cells[i].object = object
	}
	c.buffers.Put(b)
	return o, nil
}

func (c *core[P]) buffer() *buffer {
	b, _ := c.buffers.Get().(*buffer)
	if b == nil {
		b = &buffer{make([]uintptr, 0, 2*c.handles)}
	}
	b.objects = b.objects[:0]
	return b
}

// objects returns a buffer's objects as what C calls them by.
func objects[P any](b *buffer) []P {
	if len(b.objects) == 0 {
		return nil
	}
	return unsafe.Slice((*P)(unsafe.Pointer(&b.objects[0])), len(b.objects))
}

// release frees what a buffer holds, and gives the buffer back.
func (c *core[P]) release(b *buffer) {
	if len(b.objects) > 0 {
		if err := c.free(objects[P](b)); err != nil {
			c.onError(err)
		}
	}
	c.buffers.Put(b)
}

// releaseClosed is release for objects that were closed.
func (c *core[P]) releaseClosed(b *buffer) {
	c.weigh(-len(b.objects))
	c.release(b)
}

// collect is the finalizer of a slab.
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
		return
	}
	b := c.buffer()
	b.take(first)
	c.release(b)
}

// take adds the objects of a dead slab.
func (b *buffer) take(first *cell) {
	cells := unsafe.Slice(first, int(first.cells))
	for i := range cells {
		if object := cells[i].object; object != 0 {
			b.objects = append(b.objects, object)
		}
	}
}

// freeSome frees the objects of dead slabs, of twice as many as a new one has, so that
// those that wait become fewer. It returns whether there may be more.
func (c *core[P]) freeSome() bool {
	var some [2]*cell
	c.mu.Lock()
	n := 0
	for ; n < len(some) && len(c.dead) > 0; n++ {
		last := len(c.dead) - 1
		some[n], c.dead[last] = c.dead[last], nil
		c.dead = c.dead[:last]
		c.waiting -= int(some[n].cells)
	}
	c.mu.Unlock()
	if n == 0 {
		return false
	}
	b := c.buffer()
	for _, first := range some[:n] {
		b.take(first)
	}
	c.release(b)
	return true
}

// arm sees to it that what waits is freed soon, whatever the program does.
func (c *core[P]) arm() {
	if !c.armed.Load() && c.armed.CompareAndSwap(false, true) {
		time.AfterFunc(delay, c.tick)
	}
}

func (c *core[P]) tick() {
	c.armed.Store(false)
	c.flush()
}

// flush frees all that waits.
func (c *core[P]) flush() {
	for i := range c.lanes {
		l := &c.lanes[i]
		l.mu.Lock()
		b := l.kept
		l.kept = nil
		l.mu.Unlock()
		if b != nil {
			c.releaseClosed(b)
		}
	}
	for c.freeSome() {
	}
}

// Flush frees the objects that were closed or found dead, and wait to be freed with
// others. It does not wait for other goroutines, which may be freeing some already.
func (p *Pool[P]) Flush() { p.started().flush() }

// Use calls f with the object, and returns what f returns. The object is not freed
// before f returns, even if the handle is closed meanwhile. Use returns ErrClosed, and
// does not call f, if it was closed before.
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
		h.core.discard(h.cell)
	}
}

// Close gives the object up. It is freed once nobody uses it, together with others or
// at once. Close returns ErrClosed if the handle was closed before.
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
			if state == 0 {
				h.core.discard(h.cell)
			}
			return nil
		}
	}
}

// discard has the object of a closed handle freed. Exactly one goroutine calls it.
func (c *core[P]) discard(given *cell) {
	object := given.object
	given.object = 0
	if c.keep == 0 {
		runtime.KeepAlive(given)
		b := c.buffer()
		b.objects = append(b.objects, object)
		c.releaseClosed(b)
		return
	}
	// Cells of one slab mostly belong to one goroutine.
	place := uint64(uintptr(unsafe.Pointer(given))>>10) * 0x9e3779b97f4a7c15 >> c.shift
	l := &c.lanes[place]
	l.mu.Lock()
	b := l.kept
	if b == nil {
		b = c.buffer()
	}
	b.objects = append(b.objects, object)
	full := len(b.objects) >= c.keep
	l.kept = b
	if full {
		l.kept = nil
	}
	l.mu.Unlock()
	runtime.KeepAlive(given) // its slab was not to be found dead before
	if !full {
		c.arm()
		return
	}
	c.releaseClosed(b)
}
