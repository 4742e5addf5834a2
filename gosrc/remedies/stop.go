//go:build go1.24

package remedies

import (
	"math"
	"runtime"
	"sync"
	"unsafe"
	"weak"
)

// Stopped is a handle with a cleanup that could be stopped.
type Stopped struct {
	block   uintptr
	cleanup runtime.Cleanup
}

// NewStopped returns a handle of a new block.
func NewStopped() *Stopped {
	h := &Stopped{block: Allocate()}
	h.cleanup = runtime.AddCleanup(h, Free, h.block)
	return h
}

// Padded is a handle as large as a cache line, so that fewer handles share a span.
type Padded struct {
	block uintptr
	_     [6]uintptr
	_     *byte // a pointer, as in small
}

// NewPadded returns a handle whose cleanup frees its block.
func NewPadded() *Padded {
	h := &Padded{block: Allocate()}
	runtime.AddCleanup(h, Free, h.block)
	return h
}

// small is the smallest handle: the argument of its cleanup holds the block's address.
type small struct{ _ *byte }

// LastFirst allocates the handles of a span in advance and hands out the last one first.
// Each cleanup is then inserted at the head of its span's list, as long as Go allocates in
// ascending order, which it does not guarantee. The collector frees each handle separately;
// only calls into C are shared by several blocks. LastFirst is not safe for concurrent use.
type LastFirst struct {
	ahead       []*small  // handles of one span, not yet handed out
	next        *small    // first handle of the next span
	freed       []uintptr // blocks to be freed by the next call into C
	fresh, room []uintptr // blocks for handles, and the buffer that holds them
	dead        *waiting
	drop        func(uintptr) // dead.add, evaluated once
}

// waiting holds the blocks of collected handles.
type waiting struct {
	mu     sync.Mutex
	blocks []uintptr
}

// together is the number of blocks allocated in one call into C.
const together = 64

// NewLastFirst returns a LastFirst without handles.
func NewLastFirst() *LastFirst {
	dead := new(waiting)
	return &LastFirst{room: make([]uintptr, together), dead: dead, drop: dead.add}
}

// add adds the block of a collected handle. Cleanups call it instead of freeing the block,
// and the next allocation frees it: this keeps the blocks in one CPU's caches.
func (w *waiting) add(block uintptr) {
	w.mu.Lock()
	w.blocks = append(w.blocks, block)
	w.mu.Unlock()
}

// take moves up to most blocks to a list.
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

// Get returns a handle and its block, which is freed after the handle was collected.
func (l *LastFirst) Get() (any, uintptr) {
	if len(l.ahead) == 0 {
		l.fill()
	}
	if len(l.fresh) == 0 {
		// Free twice as many as are allocated, so that the number of waiting blocks falls.
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

// Flush frees the blocks of collected handles and the blocks that have no handle yet.
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

// Registry frees the blocks of collected handles whenever it has grown by half since its
// last sweep. It is not safe for concurrent use.
type Registry struct {
	entries []entry
	sweepAt int
}

type entry struct {
	handle weak.Pointer[small]
	block  uintptr
}

// leastSweep is the minimum number of entries at which Get sweeps.
const leastSweep = 1 << 16

// Get returns a handle and its block, which a later sweep frees after the handle was
// collected.
func (r *Registry) Get() (any, uintptr) {
	if len(r.entries) >= max(r.sweepAt, leastSweep) {
		r.Sweep()
	}
	h, block := new(small), Allocate()
	r.entries = append(r.entries, entry{weak.Make(h), block})
	return h, block
}

// Sweep frees the blocks of collected handles.
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

// Pinned calls C with pinned Go memory instead of a C block, so there is nothing to free.
func Pinned() *[blockBytes]byte {
	block := new([blockBytes]byte)
	var pinner runtime.Pinner
	pinner.Pin(block)
	Touch(block)
	pinner.Unpin()
	return block
}
