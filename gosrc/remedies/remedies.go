// Package remedies frees C blocks in ways that are said to be cheaper than a finalizer or a
// cleanup for each: slabs (package slab), manual frees in batches, a manual Close with a
// finalizer or cleanup as a safety net, handles that are further apart or handed out in
// descending order of address, a registry of weak pointers, reuse of blocks, and no C memory
// at all.
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

// Exchange frees the blocks of dead and puts new ones into fresh, in one call into C. Callers
// take turns, each holding a lock for its whole call. If crowded is true, Exchange does not
// take that lock, and callers compete for the C heap's own lock for each block.
func Exchange(dead, fresh []uintptr, crowded bool) {
	var inTurn C.int
	if !crowded {
		inTurn = 1
	}
	// If memory runs out, the C side aborts, as in package cstr.
	C.remedies_exchange(first(dead), C.size_t(len(dead)), first(fresh), C.size_t(len(fresh)), inTurn)
}

// Blocks provides the functions of a pool of C blocks.
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

// Touch calls C to write to a block of Go memory.
func Touch(block *[blockBytes]byte) { C.remedies_touch(unsafe.Pointer(block)) }

// Allocate returns one block, to be freed by [Free].
func Allocate() uintptr { return uintptr(C.remedies_allocate()) }

// Free frees one block.
func Free(block uintptr) { C.remedies_free(C.uintptr_t(block)) }

// Reusing hands freed blocks out again, and calls C only if there are too few. This suits
// blocks that need no initialization.
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

// Flush frees the kept blocks.
func (r *Reusing) Flush() {
	r.mu.Lock()
	Exchange(r.kept, nil, false)
	r.kept = nil
	r.mu.Unlock()
}

// Finalized is a handle with a manual Close, and a finalizer as a safety net.
type Finalized struct {
	block uintptr
	_     *byte // the tiny allocator does not batch objects with pointers
}

// NewFinalized returns a handle of a new block.
func NewFinalized() *Finalized {
	h := &Finalized{block: Allocate()}
	runtime.SetFinalizer(h, func(h *Finalized) { Free(h.block) })
	return h
}

// Count returns the numbers of blocks that the C side has allocated and freed so far.
func Count() meter.Blocks {
	n := C.remedies_count()
	return meter.Blocks{Allocated: int64(n.allocated), Freed: int64(n.freed), Misfreed: int64(n.misfreed)}
}
