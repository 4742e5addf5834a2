// Package across measures, on every Go release, the ways to free a C block and the
// components of their costs.
//
// It belongs to chapter 06. Go 1.9 must be able to build it, so that all releases are
// compared with the same source. It therefore uses no modules, no benchmark metrics of
// package testing and no generics.
package across

/*
#include "across.h"
*/
import "C"

import "runtime"

// A Handle is an object on the Go heap that owns a C block. It contains a pointer, so the
// tiny allocator does not batch it.
type Handle struct {
	block *C.char
}

// Pair allocates and frees a block in two calls into C.
func Pair() { C.across_free(C.across_allocate()) }

// Call calls a C function that does nothing.
func Call() { C.across_nothing() }

// Pairs allocates n blocks, frees each immediately, and makes only one call into C.
func Pairs(n int) { C.across_pairs(C.int(n)) }

// Heap returns a handle whose block the caller must free with [Handle.Free].
//
// It must not be inlined: the handle would then stay on the caller's stack.
//
//go:noinline
func Heap() *Handle { return &Handle{C.across_allocate()} }

// Free frees the handle's block.
func (h *Handle) Free() { C.across_free(h.block) }

// Finalized returns a handle whose finalizer frees its block.
func Finalized() *Handle {
	h := Heap()
	runtime.SetFinalizer(h, (*Handle).Free)
	return h
}

const slabHandles = 64

// slab holds C blocks. Its handles are pointers into it, so each of them keeps the whole
// slab alive. One finalizer frees all blocks in one call into C.
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

// Slabs returns a function that returns the next handle and allocates slabs as needed.
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
