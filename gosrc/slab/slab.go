// Package slab hands out handles on memory that Go does not manage, such as C
// blocks, and frees each block once: when its handle is closed, or else some time
// after the handle has become unreachable.
//
// A finalizer or cleanup for every handle is dear, because the runtime links each
// into a list that it walks. Here so many handles as a [Config] says share a slab
// with one finalizer for them all, their blocks are allocated and freed in one call,
// and what is found dead is freed by the next allocation, in the same call.
//
// The price is memory: a handle that stays in use keeps its slab, so the blocks
// of the others that were not closed stay too. With slabs of 64, one survivor
// holds up to 64 blocks.
//
//	pool := slab.New(allocator, slab.Config{})
//	h, err := pool.Get()
//	...
//	err = h.Use(func(block unsafe.Pointer) { C.work(block) })
//	h.Close() // at once; if it is forgotten, the collector sees to it
//
// It serves the claims X6 to X8. A Pool and its handles may be used by many
// goroutines at once. No goroutine of its own is left behind.
package slab

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrClosed is returned for a handle that was closed before, or is nil.
var ErrClosed = errors.New("slab: the handle is closed")

// An Allocator allocates and frees blocks of one kind, many in one call.
// It may be called by several goroutines at once.
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
	// BlockBytes is the size of a block as the garbage collector is to see it. It
	// knows nothing of memory that it does not manage, so it collects too late where
	// the blocks are large. Go memory of that size, which nobody touches, is set
	// aside for each block. None if it is 0.
	BlockBytes int
	// CollectCost is how many nanoseconds a handle that was not closed may cost for
	// collections that the pool itself begins: 20 if it is 0, none are begun if it is
	// negative. The collector knows nothing of the blocks, and comes so late by itself
	// that they have left the CPU's caches, which costs more. Where a collection takes
	// long, as on a large heap, few are begun. With GOGC=off too.
	CollectCost int
	// Waiting is how many dead blocks may wait for the next allocation to free
	// them: 65,536 if it is 0. What dies beyond that is freed by the finalizer itself.
	Waiting int
}

// A Pool hands out handles. Use [New] to make one.
type Pool struct {
	allocator Allocator
	handles   int
	weight    int // handles more in the memory of a slab, which nobody gets
	most      int64

	cost       int64        // ns a handle for collections begun here; none if negative
	left       atomic.Int64 // handles that were left open when their slab was used up
	collectAt  atomic.Int64 // of left
	collecting atomic.Bool

	filling sync.Pool            // of *filling: the slabs that are being handed out
	dead    atomic.Pointer[dead] // a stack of slabs that nobody can reach any more
	waiting atomic.Int64         // how many handles those have
}

// filling is a slab that is being handed out, and where the allocator puts what
// the next one begins with.
type filling struct {
	slab   []Handle
	next   int // of slab, to be handed out
	blocks []uintptr
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
// handles: a finalizer is given its object once more, as a cleanup is not. Closing
// a handle so touches the handle and the block, and nothing else.
type Handle struct {
	block atomic.Uintptr // zero: closed
	pool  *Pool
}

// New returns a pool that gets its blocks from an allocator.
func New(allocator Allocator, config Config) *Pool {
	p := &Pool{allocator: allocator, handles: config.Handles, most: int64(config.Waiting)}
	if p.handles <= 0 {
		p.handles = 64
	}
	if p.cost = int64(config.CollectCost); p.cost == 0 {
		p.cost = 20
	}
	p.collectAt.Store(leastCollect)
	if p.most <= 0 {
		p.most = 1 << 16
	}
	if config.BlockBytes > 0 {
		p.weight = p.handles * config.BlockBytes / int(unsafe.Sizeof(Handle{}))
	}
	return p
}

// leastCollect is how many handles are left open at least between collections
// that a pool begins.
const leastCollect = 1 << 14

// pace begins a collection when enough handles were left open since the last one
// that it costs each of them no more than it may. What is closed needs none.
func (p *Pool) pace(slab []Handle) {
	open := int64(0)
	for i := range slab {
		if slab[i].block.Load() != 0 {
			open++
		}
	}
	if open == 0 {
		return
	}
	n := p.left.Add(open)
	if p.cost < 0 || n < p.collectAt.Load() || !p.collecting.CompareAndSwap(false, true) {
		return
	}
	start := time.Now()
	runtime.GC() // the caller waits: so it does not run ahead of what is found dead
	enough := time.Since(start).Nanoseconds() / p.cost
	if enough < leastCollect {
		enough = leastCollect
	}
	p.collectAt.Store(p.left.Load() + enough)
	p.collecting.Store(false)
}

// Get returns a handle on a new block, or the allocator's error.
func (p *Pool) Get() (*Handle, error) {
	f, _ := p.filling.Get().(*filling)
	if f == nil {
		f = &filling{blocks: make([]uintptr, 3*p.handles)}
	}
	if f.slab == nil {
		if err := p.fill(f); err != nil {
			p.filling.Put(f)
			return nil, err
		}
	}
	h := &f.slab[f.next]
	if f.next++; f.next == len(f.slab) {
		used := f.slab
		f.slab, f.next = nil, 0 // it would still hold the slab
		p.filling.Put(f)
		p.pace(used)
		return h, nil
	}
	p.filling.Put(f)
	return h, nil
}

// fill makes a slab, and frees two that are dead in the same call of the
// allocator, so that what waits becomes fewer.
func (p *Pool) fill(f *filling) error {
	fresh, freed := f.blocks[:p.handles], f.blocks[p.handles:p.handles]
	for i := 0; i < 2; i++ {
		if d := p.pop(); d != nil {
			freed = open(d.slab, freed)
		}
	}
	if err := p.allocator.Exchange(freed, fresh); err != nil {
		if failed := p.allocator.Exchange(fresh, nil); failed != nil {
			err = fmt.Errorf("%w (and %w)", err, failed)
		}
		for i := range fresh {
			fresh[i] = 0
		}
		return err
	}
	slab := make([]Handle, p.handles+p.weight)[:p.handles:p.handles]
	for i := range slab {
		// Nobody else has the slab yet: no atomic store is needed.
		*(*uintptr)(unsafe.Pointer(&slab[i].block)) = fresh[i]
		slab[i].pool = p
		fresh[i] = 0
	}
	runtime.SetFinalizer(&slab[0], died)
	f.slab = slab
	return nil
}

// open appends the addresses of the blocks of the handles that were not closed.
func open(slab []Handle, to []uintptr) []uintptr {
	for i := range slab {
		if block := slab[i].block.Load(); block != 0 {
			to = append(to, block)
		}
	}
	return to
}

// died is called with a slab's first handle once nobody can reach any of them.
func died(first *Handle) {
	p := first.pool
	slab := unsafe.Slice(first, p.handles)
	n := int64(len(slab))
	if p.waiting.Add(n) > p.most {
		p.waiting.Add(-n)
		p.free(slab)
		return
	}
	d := &dead{slab: slab}
	for {
		d.below = p.dead.Load()
		if p.dead.CompareAndSwap(d.below, d) {
			return
		}
	}
}

// pop takes a dead slab, if there is one. A slab is pushed only once, so the same
// one at the top is the same stack.
func (p *Pool) pop() *dead {
	for {
		d := p.dead.Load()
		if d == nil {
			return nil
		}
		if p.dead.CompareAndSwap(d, d.below) {
			p.waiting.Add(-int64(len(d.slab)))
			return d
		}
	}
}

// free frees what is left of a dead slab. There is nobody to take an error: an
// allocator that cannot free must say so by a panic.
func (p *Pool) free(slab []Handle) {
	blocks := open(slab, nil)
	if len(blocks) == 0 {
		return
	}
	if err := p.allocator.Exchange(blocks, nil); err != nil {
		panic(err)
	}
}

// Flush frees the blocks that the collector has found dead and that wait for
// an allocation to free them: for when there will be none for a while.
func (p *Pool) Flush() {
	for d := p.pop(); d != nil; d = p.pop() {
		p.free(d.slab)
	}
}

// Close frees the handle's block now. It returns [ErrClosed] if it was closed
// before, and the allocator's error if there is one. Of several goroutines that
// close a handle at once, one frees the block. Nobody may use the block then.
func (h *Handle) Close() error {
	if h == nil {
		return ErrClosed
	}
	block := h.block.Swap(0)
	if block == 0 {
		return ErrClosed
	}
	err := h.pool.allocator.Free(block)
	runtime.KeepAlive(h) // until here the slab must not be taken for dead
	return err
}

// Use calls f with the address of the handle's block, which is not freed by the
// collector meanwhile. It returns [ErrClosed] if the handle is closed. That the
// handle is not closed while f runs is for the caller to see to.
func (h *Handle) Use(f func(block unsafe.Pointer)) error {
	if h == nil {
		return ErrClosed
	}
	block := h.block.Load()
	if block == 0 {
		return ErrClosed
	}
	f(*(*unsafe.Pointer)(unsafe.Pointer(&block)))
	runtime.KeepAlive(h)
	return nil
}
