//go:build go1.24

package remedies

import (
	"math"
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// Stopped is a handle that is closed by hand, with a cleanup as its net, which
// Close takes away. Most would take it for the cheap way.
type Stopped struct {
	block   uintptr
	cleanup runtime.Cleanup
}

// NewStopped returns a handle on a new block.
func NewStopped() *Stopped {
	h := &Stopped{block: Allocate()}
	h.cleanup = runtime.AddCleanup(h, Free, h.block)
	return h
}

// Close frees the block now, and takes the net away.
func (h *Stopped) Close() {
	h.cleanup.Stop()
	Free(h.block)
	runtime.KeepAlive(h) // else the cleanup might have freed the block already
}

// Padded is a handle of a cache line, so that fewer share a span.
type Padded struct {
	block uintptr
	_     [6]uintptr
	_     *byte // a pointer, as small handles have one
}

// NewPadded returns a handle whose cleanup frees its block.
func NewPadded() *Padded {
	h := &Padded{block: Allocate()}
	runtime.AddCleanup(h, Free, h.block)
	return h
}

// A small handle is as small as can be: the block's address stands with its cleanup.
type small struct{ _ *byte }

// LastFirst hands out handles that were allocated ahead, the last one of a span
// first: each cleanup is then linked in at the head of its span's list, as long as
// Go allocates in ascending order, which nothing promises. Every handle is still
// collected by itself; only the calls of C are shared by many blocks. It is not safe
// for use by several goroutines.
type LastFirst struct {
	ahead       []*small  // of one span
	next        *small    // the first of the next
	freed       []uintptr // blocks to be freed by the next call of C
	fresh, room []uintptr // blocks for handles, and the memory that they stand in
	dead        *waiting
	drop        func(uintptr) // dead.add, made once
}

// waiting are the blocks of handles that are gone.
type waiting struct {
	mu     sync.Mutex
	blocks []uintptr
}

// together is how many blocks are allocated in one call of C.
const together = 64

// NewLastFirst returns one that has no handles yet.
func NewLastFirst() *LastFirst {
	dead := new(waiting)
	return &LastFirst{room: make([]uintptr, together), dead: dead, drop: dead.add}
}

// add takes a block that nobody uses any more. It is called by cleanups, which leave
// it to the next allocation to free it: that keeps the blocks in one CPU's caches.
func (w *waiting) add(block uintptr) {
	w.mu.Lock()
	w.blocks = append(w.blocks, block)
	w.mu.Unlock()
}

// take moves up to so many blocks to a list.
func (w *waiting) take(most int, to []uintptr) []uintptr {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := max(len(w.blocks)-most, 0)
	to = append(to, w.blocks[left:]...)
	w.blocks = w.blocks[:left]
	return to
}

// spanBytes is the size of a span of small objects.
const spanBytes = 8 << 10

func span(h *small) uintptr { return uintptr(unsafe.Pointer(h)) / spanBytes }

// Get returns a handle whose cleanup frees its block, and the block.
func (l *LastFirst) Get() (any, uintptr) {
	if len(l.ahead) == 0 {
		l.fill()
	}
	if len(l.fresh) == 0 {
		// Twice as many as are allocated, so that what waits becomes fewer.
		l.freed = l.dead.take(2*together, l.freed[:0])
		clear(l.room)
		Exchange(l.freed, l.room, false)
		l.fresh = l.room
	}
	last := len(l.ahead) - 1
	h := l.ahead[last]
	l.ahead[last] = nil
	l.ahead = l.ahead[:last]
	block := l.fresh[0]
	l.fresh = l.fresh[1:]
	runtime.AddCleanup(h, l.drop, block)
	return h, block
}

// Flush frees the blocks that wait for the next allocation, or for a handle.
func (l *LastFirst) Flush() {
	l.freed = append(l.dead.take(math.MaxInt, l.freed[:0]), l.fresh...)
	l.fresh = nil
	Exchange(l.freed, nil, false)
}

func (l *LastFirst) fill() {
	h := l.next
	if h == nil {
		h = new(small)
	}
	for first := h; span(h) == span(first); h = new(small) {
		l.ahead = append(l.ahead, h)
	}
	l.next = h
}

// Registry frees the blocks of handles that are gone whenever it has grown by
// half since it was swept last. It is not safe for use by several goroutines.
type Registry struct {
	entries []entry
	sweepAt int
}

type entry struct {
	handle weak.Pointer[small]
	block  uintptr
}

// leastSweep is how many entries a registry has at least when it is swept.
const leastSweep = 1 << 16

// Get returns a handle, and the block that is freed once it is gone.
func (r *Registry) Get() (any, uintptr) {
	if len(r.entries) >= max(r.sweepAt, leastSweep) {
		r.Sweep()
	}
	h, block := new(small), Allocate()
	r.entries = append(r.entries, entry{weak.Make(h), block})
	return h, block
}

// Sweep frees the blocks of handles that are gone.
func (r *Registry) Sweep() {
	var dead []uintptr
	kept := r.entries[:0]
	for _, e := range r.entries {
		if e.handle.Value() == nil {
			dead = append(dead, e.block)
		} else {
			kept = append(kept, e)
		}
	}
	r.entries = kept
	r.sweepAt = len(kept) + len(kept)/2
	Exchange(dead, nil, false)
}

// Pinned calls C with Go memory in place of a block: there is nothing to free.
func Pinned() *[blockBytes]byte {
	block := new([blockBytes]byte)
	var pinner runtime.Pinner
	pinner.Pin(block)
	Touch(block)
	pinner.Unpin()
	return block
}
