// Package slab hands out handles on memory that Go does not manage, such as C
// blocks, and frees each block once: after its handle is closed, or else some time
// after the handle has become unreachable.
//
// A finalizer or cleanup for every handle is dear, because the runtime links each
// into a list that it walks, and so is a call of C for every block. Here so many
// handles as a [Config] says share a slab with one finalizer for them all, their
// blocks are allocated in one call, and what was closed or found dead is freed by the
// next allocation, in the same call.
//
// The price is memory: a handle that stays in use keeps its slab, so the blocks
// of the others that were not closed stay too. With slabs of 64, one survivor
// holds up to 64 blocks. And a closed block may wait for the next allocation; see
// Config.Closed.
//
//	pool := slab.New(allocator, slab.Config{})
//	h, err := pool.Get()
//	...
//	err = h.Use(func(block unsafe.Pointer) { C.work(block) })
//	h.Close() // if it is forgotten, the collector sees to it
//
// It serves the claims X6 to X8. A Pool and its handles may be used by many
// goroutines at once. No goroutine of its own is left behind.
package slab

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrClosed is returned for a handle that was closed before, or is nil.
var ErrClosed = errors.New("slab: the handle is closed")

// An Allocator allocates and frees blocks of one kind, many in one call.
// It may be called by several goroutines at once. Where its heap has a lock that is
// taken for every block, as malloc's may have, it pays to let them take turns.
type Allocator interface {
	// Exchange frees the blocks of dead, leaving zeros there, and puts the
	// addresses of new blocks into fresh, whose entries are zero. An entry of dead
	// that is zero stands for no block. Either may be empty. If a block cannot be
	// allocated Exchange returns an error; the entries of fresh that are not
	// zero then are blocks nevertheless, and are freed by another Exchange.
	Exchange(dead, fresh []uintptr) error

	// Free frees one block.
	Free(block uintptr) error
}

// Config says how a [Pool] trades time for memory; the zero value has defaults.
type Config struct {
	// Handles is how many share a slab: 64 if it is 0. The more, the cheaper, and
	// the more memory a handle holds that stays in use.
	Handles int
	// Closed is how many blocks of closed handles may wait to be freed together, in
	// each of the places that goroutines allocate from (about two a CPU): twice
	// Handles if it is 0. If it is negative none waits: Close frees its block itself,
	// and pays for a call of the allocator.
	Closed int
	// BlockBytes is the size of a block as the garbage collector is to see it. It
	// knows nothing of memory that it does not manage, so it collects too late where
	// the blocks are large. Go memory of that size, which nobody touches, is set
	// aside for each block. None if it is 0.
	BlockBytes int
	// CollectCost is how many nanoseconds of CPU time a handle that was not closed may
	// cost for collections that the pool itself begins: 20 if it is 0, none are begun if it is
	// negative. The collector knows nothing of the blocks, and comes so late by itself
	// that they have left the CPU's caches, which costs more. Where a collection takes
	// long, as on a large heap, few are begun. With GOGC=off too.
	CollectCost int
	// Waiting is how many dead blocks may wait for the next allocation to free
	// them: 65,536 if it is 0. What dies beyond that is freed by the finalizer itself.
	Waiting int
}

// A Pool hands out handles. Use [New] to make one. When the pool itself is dropped,
// its handles can still be used and closed, and nothing is lost.
type Pool struct {
	*store
	weight int // handles more in the memory of a slab, which nobody gets
	open   []lane[filling]
}

// store is what slabs know of their pool. It leads to none that is in use, for what
// leads back to itself is never found dead.
type store struct {
	allocator Allocator
	number    uint64       // among the stores
	uses      atomic.Int64 // by the pool and by slabs
	handles   int          // of a slab
	keep      int          // how many closed blocks a lane keeps; none if negative
	most      int64

	cost       int64        // ns a handle for collections begun here; none if negative
	left       atomic.Int64 // handles that were left open when their slab was used up
	collectAt  atomic.Int64 // of left
	collecting atomic.Bool

	closed  []lane[[]uintptr]
	dead    atomic.Pointer[dead] // a stack of slabs that nobody can reach any more
	waiting atomic.Int64         // how many handles those have
	dropped atomic.Bool          // nobody allocates any more: what dies is freed at once
}

// filling is what goroutines take handles from, together if they share the lane, and
// room for what the allocator takes and gives, for the one that is in the lane.
type filling struct {
	slab         atomic.Pointer[handing] // nil: used up
	freed, fresh []uintptr
}

// handing is a slab that is being handed out.
type handing struct {
	slab []Handle
	out  atomic.Int64 // how many of its handles were asked for
}

// dead is a slab that nobody else can reach, on the stack of those.
type dead struct {
	slab  []Handle
	below *dead
}

// A Handle stands for one block. A copy of it is no handle.
//
// A slab is an array of handles, so whoever holds one holds them all, and a
// finalizer of the array is told when nobody does. It finds the addresses in the
// handles: a finalizer is given its object once more, as a cleanup is not.
//
// A handle has no pointers, so that the collector need not look at slabs, and is one
// word, so that as many as can be lie in the caches: closing one that was not touched
// for long then takes one miss, seldom more.
type Handle struct {
	word atomic.Uint64 // the block, none if it is closed; above it the number of its store
}

// blockBits are those of a block's address: the systems that Go runs on use no more
// than 48.
const blockBits = 52

const blockMask = 1<<blockBits - 1

func (h *Handle) block() uintptr { return uintptr(h.word.Load() & blockMask) }

// take takes the block from the handle; 0 if it has none.
func (h *Handle) take() uintptr {
	number := h.word.Load() &^ blockMask
	return uintptr(h.word.Swap(number) & blockMask)
}

// stores are those that handles lead to, by number: one for each pool that is in use.
var stores [1 << (64 - blockBits)]atomic.Pointer[store]

// register gives a store a number, which is its own until it is released.
func (s *store) register() {
	for i := range stores {
		if stores[i].Load() == nil && stores[i].CompareAndSwap(nil, s) {
			s.number = uint64(i)
			return
		}
	}
	panic(fmt.Sprintf("slab: %d pools are in use, which is as many as there can be", len(stores)))
}

// release gives up one use of a store: the pool's, or that of a slab which nobody
// can reach. After the last one no handle leads to it.
func (s *store) release() {
	if s.uses.Add(-1) == 0 {
		stores[s.number].Store(nil)
	}
}

// from is the store that the handle's block is from.
func (h *Handle) from() *store { return stores[h.word.Load()>>blockBits].Load() }

// New returns a pool that gets its blocks from an allocator.
func New(allocator Allocator, config Config) *Pool {
	s := &store{
		allocator: allocator,
		handles:   config.Handles,
		keep:      config.Closed,
		cost:      int64(config.CollectCost),
		most:      int64(config.Waiting),
	}
	if s.handles <= 0 {
		s.handles = 64
	}
	if s.keep == 0 {
		s.keep = 2 * s.handles
	}
	if s.cost == 0 {
		s.cost = 20
	}
	if s.most <= 0 {
		s.most = 1 << 16
	}
	s.collectAt.Store(leastCollect)
	s.uses.Store(1)
	s.register()
	lanes := 1
	for lanes < 2*runtime.GOMAXPROCS(0) {
		lanes *= 2
	}
	s.closed = make([]lane[[]uintptr], lanes)
	p := &Pool{store: s, open: make([]lane[filling], lanes)}
	if config.BlockBytes > 0 {
		p.weight = s.handles * config.BlockBytes / int(unsafe.Sizeof(Handle{}))
	}
	runtime.SetFinalizer(p, (*Pool).drop)
	return p
}

// drop frees what waits for an allocation once there can be none.
func (p *Pool) drop() {
	p.dropped.Store(true)
	if err := p.Flush(); err != nil {
		panic(err) // as in free
	}
	p.release()
}

// A lane is a place that one goroutine is in at a time.
type lane[T any] struct {
	busy atomic.Bool
	its  T
	_    [128]byte // a cache line and its neighbour are no other lane's
}

// own is the place of the caller's lane among so many, a power of two. Which that is
// depends on where the goroutine's stack lies: it is good enough that the same
// goroutine mostly finds the same lane, and others mostly find others.
func own(lanes int) int {
	var here byte
	stack := uint64(uintptr(unsafe.Pointer(&here))) >> 11 // none is smaller than 2 KB
	return int(stack*0x9e3779b97f4a7c15>>40) & (lanes - 1)
}

// next is the place of another lane, for the caller that cannot use the one at a place.
func next(at, lanes int) int {
	if at = (at + 1) & (lanes - 1); at == 0 {
		runtime.Gosched()
	}
	return at
}

// enter returns a lane that nobody else is in, the caller's own if it can.
func enter[T any](lanes []lane[T]) *lane[T] {
	at := own(len(lanes))
	for !lanes[at].busy.CompareAndSwap(false, true) {
		at = next(at, len(lanes))
	}
	return &lanes[at]
}

func (l *lane[T]) leave() { l.busy.Store(false) }

// leastCollect is how many handles are left open at least between collections
// that a pool begins.
const leastCollect = 1 << 14

// pace begins a collection when enough handles were left open since the last one
// that it costs each of them no more than it may. What is closed needs none.
func (s *store) pace(used []Handle) {
	open := int64(0)
	for i := range used {
		if used[i].block() != 0 {
			open++
		}
	}
	if open == 0 {
		return
	}
	n := s.left.Add(open)
	if s.cost < 0 || n < s.collectAt.Load() || !s.collecting.CompareAndSwap(false, true) {
		return
	}
	before := collecting()
	runtime.GC() // the caller waits: so it does not run ahead of what is found dead
	enough := (collecting() - before).Nanoseconds() / s.cost
	if enough < leastCollect {
		enough = leastCollect
	}
	s.collectAt.Store(s.left.Load() + enough)
	s.collecting.Store(false)
}

// collecting is the CPU time that all collections have taken so far. By the clock a
// collection takes the longer the more goroutines run beside it, and the more of them
// there are, the more handles wait for it.
func collecting() time.Duration {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return time.Duration(sample[0].Value.Float64() * float64(time.Second))
}

// Get returns a handle on a new block, or the allocator's error.
func (p *Pool) Get() (*Handle, error) {
	at := own(len(p.open))
	for {
		l := &p.open[at]
		from := l.its.slab.Load()
		if from == nil {
			// Another goroutine fills it, or this one does.
			if !l.busy.CompareAndSwap(false, true) {
				at = next(at, len(p.open))
			} else if err := p.fill(l); err != nil {
				return nil, err
			}
			continue
		}
		out := int(from.out.Add(1))
		if out < len(from.slab) {
			return &from.slab[out-1], nil
		}
		l.its.slab.CompareAndSwap(from, nil) // it would still hold the slab
		if out == len(from.slab) {
			p.pace(from.slab)
			return &from.slab[out-1], nil
		}
	}
}

// fill makes a slab for a lane that has none, and leaves the lane. What was closed
// and two slabs that are dead are freed in the same call of the allocator, so that
// what waits becomes fewer.
func (p *Pool) fill(l *lane[filling]) error {
	defer l.leave() // an allocator may panic
	f := &l.its
	if f.slab.Load() != nil {
		return nil // another goroutine was quicker
	}
	if f.fresh == nil {
		f.fresh = make([]uintptr, p.handles)
	}
	closed := enter(p.closed)
	f.freed = append(f.freed[:0], closed.its...)
	closed.its = closed.its[:0]
	closed.leave()
	for i := 0; i < 2; i++ {
		if d := p.pop(); d != nil {
			f.freed = blocks(d.slab, f.freed)
		}
	}
	err := p.allocator.Exchange(f.freed, f.fresh)
	for _, block := range f.fresh {
		if err == nil && uint64(block)>>blockBits != 0 {
			err = fmt.Errorf("slab: a block at %#x: a handle holds %d bits of an address", block, blockBits)
		}
	}
	if err != nil {
		if failed := p.allocator.Exchange(f.fresh, nil); failed != nil {
			err = fmt.Errorf("%w (and %w)", err, failed)
		}
		for i := range f.fresh {
			f.fresh[i] = 0
		}
		return err
	}
	n := p.handles + p.weight
	if n < 2 {
		n = 2 // what is less than 16 bytes might share its memory with others
	}
	slab := make([]Handle, n)[:p.handles:p.handles]
	for i, block := range f.fresh {
		// Nobody else has the slab yet: no atomic store is needed.
		*(*uint64)(unsafe.Pointer(&slab[i].word)) = uint64(block) | p.number<<blockBits
		f.fresh[i] = 0
	}
	p.uses.Add(1)
	runtime.SetFinalizer(&slab[0], died)
	f.slab.Store(&handing{slab: slab})
	return nil
}

// blocks appends the addresses of the blocks of the handles that were not closed.
func blocks(slab []Handle, to []uintptr) []uintptr {
	for i := range slab {
		if block := slab[i].block(); block != 0 {
			to = append(to, block)
		}
	}
	return to
}

// died is called with a slab's first handle once nobody can reach any of them.
func died(first *Handle) {
	s := first.from()
	slab := unsafe.Slice(first, s.handles)
	defer s.release()
	n := int64(len(slab))
	if s.waiting.Add(n) > s.most {
		s.waiting.Add(-n)
		s.free(slab)
		return
	}
	d := &dead{slab: slab}
	for {
		d.below = s.dead.Load()
		if s.dead.CompareAndSwap(d.below, d) {
			break
		}
	}
	if s.dropped.Load() {
		s.freeDead()
	}
}

// pop takes a dead slab, if there is one. A slab is pushed only once, so the same
// one at the top is the same stack.
func (s *store) pop() *dead {
	for {
		d := s.dead.Load()
		if d == nil {
			return nil
		}
		if s.dead.CompareAndSwap(d, d.below) {
			s.waiting.Add(-int64(len(d.slab)))
			return d
		}
	}
}

// free frees what is left of a dead slab. There is nobody to take an error: an
// allocator that cannot free must say so by a panic.
func (s *store) free(slab []Handle) {
	left := blocks(slab, nil)
	if len(left) == 0 {
		return
	}
	if err := s.allocator.Exchange(left, nil); err != nil {
		panic(err)
	}
}

func (s *store) freeDead() {
	for d := s.pop(); d != nil; d = s.pop() {
		s.free(d.slab)
	}
}

// Flush frees the blocks that were closed or found dead and that wait for an
// allocation to free them: for when there will be none for a while. It returns the
// allocator's error on closed ones if there is one.
func (p *Pool) Flush() error {
	var failed error
	for i := range p.closed {
		l := &p.closed[i]
		for !l.busy.CompareAndSwap(false, true) {
			runtime.Gosched()
		}
		if err := p.freeClosed(l); err != nil {
			failed = err
		}
	}
	p.freeDead()
	runtime.KeepAlive(p)
	return failed
}

// freeClosed frees the closed blocks of a lane, and leaves it.
func (s *store) freeClosed(l *lane[[]uintptr]) error {
	defer l.leave() // an allocator may panic
	closed := l.its
	l.its = closed[:0]
	if len(closed) == 0 {
		return nil
	}
	return s.allocator.Exchange(closed, nil)
}

// Close gives the handle's block back: nobody may use it any more. It is freed
// together with others, soon after or at once; see Config.Closed. Close returns
// [ErrClosed] if the handle was closed before, and the allocator's error if it was
// called and there is one, which may then concern other closed blocks. Of several
// goroutines that close a handle at once, one gives back the block.
func (h *Handle) Close() error {
	if h == nil {
		return ErrClosed
	}
	block := h.take()
	if block == 0 {
		return ErrClosed
	}
	s := h.from()
	if s.keep < 0 {
		return s.allocator.Free(block)
	}
	runtime.KeepAlive(h) // until here its slab must not be taken for dead
	l := enter(s.closed)
	l.its = append(l.its, block)
	if len(l.its) < s.keep && !s.dropped.Load() {
		l.leave()
		return nil
	}
	return s.freeClosed(l)
}

// Use calls f with the address of the handle's block, which is not freed by the
// collector meanwhile. It returns [ErrClosed] if the handle is closed. That the
// handle is not closed while f runs is for the caller to see to.
func (h *Handle) Use(f func(block unsafe.Pointer)) error {
	if h == nil {
		return ErrClosed
	}
	block := h.block()
	if block == 0 {
		return ErrClosed
	}
	f(*(*unsafe.Pointer)(unsafe.Pointer(&block)))
	runtime.KeepAlive(h)
	return nil
}
