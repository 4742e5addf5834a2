// Package remedies frees C blocks in the ways that are said to be cheaper than a
// finalizer or a cleanup for each: with slabs (package slab), in batches by hand,
// closed by hand with a net below, with handles that lie further apart or are
// handed out last first, by a registry of weak pointers, by using blocks again, and
// without C memory.
//
// It serves the claims X6 to X8 and L6.
package remedies

/*
#include "remedies.h"
*/
import "C"

import (
	"runtime"
	"sync"
	"unsafe"

	"gccost/meter"
)

// Blocks allocates and frees C blocks, many in one call. It is a slab.Allocator.
type Blocks struct {
	// Crowded lets callers into the C heap at once, each for every block anew. Else
	// they take turns, a call each.
	Crowded bool
}

// Exchange frees the blocks of dead and puts new ones into fresh.
func (b Blocks) Exchange(dead, fresh []uintptr) error {
	var inTurn C.int
	if !b.Crowded {
		inTurn = 1
	}
	C.remedies_exchange(first(dead), C.size_t(len(dead)), first(fresh), C.size_t(len(fresh)), inTurn)
	return nil // the C side aborts where memory is out, as package cstr does
}

// Free frees one block.
func (Blocks) Free(block uintptr) error {
	Free(block)
	return nil
}

func first(words []uintptr) *C.uintptr_t {
	if len(words) == 0 {
		return nil
	}
	return (*C.uintptr_t)(unsafe.Pointer(&words[0]))
}

// blockBytes is the size of a block on the C side.
const blockBytes = 100

// Touch has C write to a block that it did not allocate.
func Touch(block *[blockBytes]byte) { C.remedies_touch(unsafe.Pointer(block)) }

// Allocate returns one block, to be freed by [Free].
func Allocate() uintptr { return uintptr(C.remedies_allocate()) }

// Free frees one block.
func Free(block uintptr) { C.remedies_free(C.uintptr_t(block)) }

// Reusing is an allocator that calls C only for more blocks than were freed: what
// is freed is handed out again. That suits blocks which need no new start.
type Reusing struct {
	mu   sync.Mutex
	free []uintptr
}

// Free keeps a block.
func (r *Reusing) Free(block uintptr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, block)
	return nil
}

// Exchange keeps the blocks of dead, and puts such or new ones into fresh.
func (r *Reusing) Exchange(dead, fresh []uintptr) error {
	r.mu.Lock()
	for i, block := range dead {
		if block != 0 {
			r.free = append(r.free, block)
			dead[i] = 0
		}
	}
	n := len(fresh)
	if n > len(r.free) {
		n = len(r.free)
	}
	copy(fresh, r.free[len(r.free)-n:])
	r.free = r.free[:len(r.free)-n]
	r.mu.Unlock()
	return Blocks{}.Exchange(nil, fresh[n:])
}

// Flush frees the blocks that are kept.
func (r *Reusing) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := Blocks{}.Exchange(r.free, nil)
	r.free = nil
	return err
}

// Finalized is a handle that is closed by hand, with a finalizer as its net.
type Finalized struct {
	block uintptr
	_     *byte // a pointer, so that the tiny allocator does not batch it
}

// NewFinalized returns a handle on a new block.
func NewFinalized() *Finalized {
	h := &Finalized{block: Allocate()}
	runtime.SetFinalizer(h, func(h *Finalized) { Free(h.block) })
	return h
}

// Close frees the block now, and takes the net away.
func (h *Finalized) Close() {
	runtime.SetFinalizer(h, nil)
	Free(h.block)
}

// Count returns what the C side has allocated and freed so far.
func Count() meter.Blocks {
	n := C.remedies_count()
	return meter.Blocks{Allocated: int64(n.allocated), Freed: int64(n.freed), Misfreed: int64(n.misfreed)}
}
