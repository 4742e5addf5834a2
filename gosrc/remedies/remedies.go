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

// Exchange frees the blocks of dead and puts new ones into fresh, in one call of C.
// A caller lets no other into the C heap meanwhile, unless it is crowded: then all are in
// it at once, each for every block anew.
func Exchange(dead, fresh []uintptr, crowded bool) {
	var inTurn C.int
	if !crowded {
		inTurn = 1
	}
	// The C side aborts where memory is out, as package cstr does.
	C.remedies_exchange(first(dead), C.size_t(len(dead)), first(fresh), C.size_t(len(fresh)), inTurn)
}

// Blocks are what a pool of C blocks needs.
type Blocks struct{ Crowded bool }

// Free frees blocks.
func (b Blocks) Free(dead []uintptr) error {
	Exchange(dead, nil, b.Crowded)
	return nil
}

// Make puts new blocks into fresh.
func (b Blocks) Make(fresh []uintptr) error {
	Exchange(nil, fresh, b.Crowded)
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

// Reusing calls C only for more blocks than were freed: what is freed is handed out
// again. That suits blocks which need no new start.
type Reusing struct {
	mu   sync.Mutex
	kept []uintptr
}

// Free keeps the blocks.
func (r *Reusing) Free(dead []uintptr) error {
	r.mu.Lock()
	r.kept = append(r.kept, dead...)
	r.mu.Unlock()
	return nil
}

// Make puts kept or new blocks into fresh.
func (r *Reusing) Make(fresh []uintptr) error {
	r.mu.Lock()
	left := len(r.kept)
	n := len(fresh)
	if n > left {
		n = left
	}
	copy(fresh, r.kept[left-n:])
	r.kept = r.kept[:left-n]
	r.mu.Unlock()
	Exchange(nil, fresh[n:], false)
	return nil
}

// Flush frees the blocks that are kept.
func (r *Reusing) Flush() {
	r.mu.Lock()
	Exchange(r.kept, nil, false)
	r.kept = nil
	r.mu.Unlock()
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
