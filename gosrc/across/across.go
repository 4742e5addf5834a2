// Package across is what is measured on every Go release: the ways to free a C block,
// and the parts that their costs are made of.
//
// It serves chapter 06. Go 1.9 must build it, so that one source is compared on all
// releases: no modules, no metrics of package testing, no generics.
package across

/*
#include "across.h"
*/
import "C"

import "runtime"

// Handle ties a C block to the Go heap. It holds a pointer, so the tiny allocator does
// not batch it.
type Handle struct {
	block *C.char
}

// Pair allocates a block and frees it by hand: two calls into C.
func Pair() { C.across_free(C.across_allocate()) }

// Call calls into C, where nothing is done.
func Call() { C.across_nothing() }

// Pairs allocates n blocks and frees each at once, all in one call into C.
func Pairs(n int) { C.across_pairs(C.int(n)) }

// Heap returns a handle on the Go heap that the caller must [Handle.Free].
//
// It must not be inlined: the handle would then stay on the caller's stack.
//
//go:noinline
func Heap() *Handle { return &Handle{C.across_allocate()} }

// Free frees the block of a handle.
func (h *Handle) Free() { C.across_free(h.block) }

// Finalized returns a handle whose finalizer frees its block.
func Finalized() *Handle {
	h := Heap()
	runtime.SetFinalizer(h, (*Handle).Free)
	return h
}

const slabHandles = 64

// slab holds the blocks of its handles, which are pointers into it: any of them keeps
// all of it alive. One finalizer frees all blocks in one call into C.
type slab struct {
	blocks [slabHandles]C.uintptr_t
	used   int
}

func newSlab() *slab {
	s := &slab{}
	C.across_fill(&s.blocks[0], slabHandles)
	runtime.SetFinalizer(s, (*slab).free)
	return s
}

func (s *slab) free() { C.across_empty(&s.blocks[0], slabHandles) }

// Slabs returns a function that returns handles in slabs.
func Slabs() (next func() *C.uintptr_t) {
	s := newSlab()
	return func() *C.uintptr_t {
		if s.used == slabHandles {
			s = newSlab()
		}
		s.used++
		return &s.blocks[s.used-1]
	}
}
