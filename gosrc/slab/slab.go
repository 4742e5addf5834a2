// Package slab hands out handles on memory that Go does not manage, such as C
// blocks, and frees each block once: when its handle is closed, or else some time
// after the handle has become unreachable.
//
// A finalizer or cleanup for every handle is dear, because the runtime links each
// into a list that it walks. Here so many handles as a [Config] says share a slab
// with one cleanup for them all, their blocks are allocated and freed in one call,
// and what a cleanup finds dead is freed by the next allocation, in the same call.
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
	// CollectCost is how many nanoseconds a handle may cost for collections that the
	// pool itself begins: 10 if it is 0, none are begun if it is negative. The collector
	// knows nothing of the blocks, and comes so late by itself that they have left the
	// CPU's caches, which costs more. Where a collection takes long, as on a large heap,
	// few are begun. With GOGC=off too.
	CollectCost int
	// Waiting is how many dead blocks may wait for the next allocation to free
	// them: 65,536 if it is 0. What dies beyond that is freed by the cleanup itself.
	Waiting int
}

// A Pool hands out handles. Use [New] to make one.
type Pool struct {
	allocator Allocator
	handles   int
	weight    int // words of Go memory a slab that stand for its blocks
	most      int64

	cost       int64 // ns a handle for collections begun here; none if negative
	handedOut  atomic.Int64
	collectAt  atomic.Int64 // of handedOut
	collecting atomic.Bool

	filling sync.Pool            // of *filling: the slabs that are being handed out
	dead    atomic.Pointer[slab] // a stack of slabs that nobody can reach any more
	waiting atomic.Int64         // how many handles those have
}

// A slab is what outlives its handles: their blocks' addresses.
type slab struct {
	pool  *Pool
	slots []atomic.Uintptr // zero: closed
	next  *slab
}

// filling is a slab's handles that are not handed out yet.
type filling struct{ left []Handle }

// A Handle stands for one block. A copy of it is no handle.
type Handle struct {
	slot *atomic.Uintptr
	pool *Pool
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
		p.weight = p.handles * config.BlockBytes / int(unsafe.Sizeof(uintptr(0)))
	}
	return p
}

// leastCollect is how many handles are handed out at least between collections
// that a pool begins.
const leastCollect = 1 << 14

// pace begins a collection when enough handles were handed out since the last one
// that it costs each of them no more than it may.
func (p *Pool) pace() {
	n := p.handedOut.Add(int64(p.handles))
	if p.cost < 0 || n < p.collectAt.Load() || !p.collecting.CompareAndSwap(false, true) {
		return
	}
	start := time.Now()
	runtime.GC() // the caller waits: so it does not run ahead of what is found dead
	enough := time.Since(start).Nanoseconds() / p.cost
	if enough < leastCollect {
		enough = leastCollect
	}
	p.collectAt.Store(p.handedOut.Load() + enough)
	p.collecting.Store(false)
}

// Get returns a handle on a new block, or the allocator's error.
func (p *Pool) Get() (*Handle, error) {
	f, _ := p.filling.Get().(*filling)
	if f == nil {
		f = new(filling)
	}
	if len(f.left) == 0 {
		handles, err := p.fill()
		if err != nil {
			p.filling.Put(f)
			return nil, err
		}
		f.left = handles
	}
	h := &f.left[0]
	if f.left = f.left[1:]; len(f.left) == 0 {
		f.left = nil // an empty slice would still hold the slab
	}
	p.filling.Put(f)
	return h, nil
}

// fill makes a slab, and frees one that is dead in the same call of the allocator.
func (p *Pool) fill() ([]Handle, error) {
	p.pace()
	fresh := &slab{pool: p, slots: make([]atomic.Uintptr, p.handles+p.weight)[:p.handles:p.handles]}
	// Two die for one that is made, so that what waits becomes fewer.
	var dead []uintptr
	for i := 0; i < 2; i++ {
		s := p.pop()
		if s == nil {
			break
		}
		if dead == nil {
			dead = make([]uintptr, 0, 2*p.handles)
		}
		dead = s.blocks(dead)
	}
	// No one else has the slots yet: the allocator may write them as plain words.
	slots := unsafe.Slice((*uintptr)(unsafe.Pointer(&fresh.slots[0])), len(fresh.slots))
	if err := p.allocator.Exchange(dead, slots); err != nil {
		if failed := p.allocator.Exchange(slots, nil); failed != nil {
			err = fmt.Errorf("%w (and %w)", err, failed)
		}
		return nil, err
	}
	handles := make([]Handle, p.handles)
	for i := range handles {
		handles[i] = Handle{slot: &fresh.slots[i], pool: p}
	}
	watch(handles, fresh)
	return handles, nil
}

// blocks appends the addresses of the blocks that were not closed.
func (s *slab) blocks(to []uintptr) []uintptr {
	for i := range s.slots {
		if block := s.slots[i].Load(); block != 0 {
			to = append(to, block)
		}
	}
	return to
}

// died is called once nobody can reach a slab's handles any more.
func (s *slab) died() {
	p := s.pool
	n := int64(len(s.slots))
	if p.waiting.Add(n) > p.most {
		p.waiting.Add(-n)
		p.free(s)
		return
	}
	for {
		s.next = p.dead.Load()
		if p.dead.CompareAndSwap(s.next, s) {
			return
		}
	}
}

// pop takes a dead slab, if there is one. A slab is pushed only once, so the same
// one at the top is the same stack.
func (p *Pool) pop() *slab {
	for {
		s := p.dead.Load()
		if s == nil {
			return nil
		}
		if p.dead.CompareAndSwap(s, s.next) {
			p.waiting.Add(-int64(len(s.slots)))
			return s
		}
	}
}

// free frees what is left of a dead slab. There is nobody to take an error: an
// allocator that cannot free must say so by a panic.
func (p *Pool) free(s *slab) {
	if err := p.allocator.Exchange(s.blocks(nil), nil); err != nil {
		panic(err)
	}
}

// Flush frees the blocks that the collector has found dead and that wait for
// an allocation to free them: for when there will be none for a while.
func (p *Pool) Flush() {
	for s := p.pop(); s != nil; s = p.pop() {
		p.free(s)
	}
}

// Close frees the handle's block now. It returns [ErrClosed] if it was closed
// before, and the allocator's error if there is one. Of several goroutines that
// close a handle at once, one frees the block. Nobody may use the block then.
func (h *Handle) Close() error {
	if h == nil {
		return ErrClosed
	}
	block := h.slot.Swap(0)
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
	block := h.slot.Load()
	if block == 0 {
		return ErrClosed
	}
	f(*(*unsafe.Pointer)(unsafe.Pointer(&block)))
	runtime.KeepAlive(h)
	return nil
}
