//go:build go1.24

package remedies

import (
	"runtime"
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

// handle is as small as can be: the block's address stands with its cleanup.
type handle struct{ _ *byte }

// LastFirst hands out handles that were allocated ahead, the last one of a span
// first: each cleanup is then linked in at the head of its span's list, as long as
// Go allocates in ascending order, which nothing promises. Every handle is still
// collected by itself. It is not safe for use by several goroutines.
type LastFirst struct {
	ahead []*handle // of one span
	next  *handle   // the first of the next
}

// spanBytes is the size of a span of small objects.
const spanBytes = 8 << 10

func span(h *handle) uintptr { return uintptr(unsafe.Pointer(h)) / spanBytes }

// Get returns a handle whose cleanup frees its block, and the block.
func (l *LastFirst) Get() (any, uintptr) {
	if len(l.ahead) == 0 {
		l.fill()
	}
	last := len(l.ahead) - 1
	h := l.ahead[last]
	l.ahead[last] = nil
	l.ahead = l.ahead[:last]
	block := Allocate()
	runtime.AddCleanup(h, Free, block)
	return h, block
}

func (l *LastFirst) fill() {
	h := l.next
	if h == nil {
		h = new(handle)
	}
	for first := h; span(h) == span(first); h = new(handle) {
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
	handle weak.Pointer[handle]
	block  uintptr
}

// leastSweep is how many entries a registry has at least when it is swept.
const leastSweep = 1 << 16

// Get returns a handle, and the block that is freed once it is gone.
func (r *Registry) Get() (any, uintptr) {
	if len(r.entries) >= max(r.sweepAt, leastSweep) {
		r.Sweep()
	}
	h, block := new(handle), Allocate()
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
	if err := (Blocks{}).Exchange(dead, nil); err != nil {
		panic(err)
	}
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
