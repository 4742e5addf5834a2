// Package cstr frees a small block of C memory in every way that Go offers:
// with a manual free, a deferred free, a finalizer and a cleanup.
//
// The claims L1 to L4 (Lemire), S1 and S2 (Siebenmann) and, with AddCleanup,
// M1 to M4 (Go issue 75188) are tested with it. The C side allocates blocks of
// 100 bytes and counts allocations and frees.
package cstr

/*
#include "cstr.h"
*/
import "C"

import (
	"runtime"

	"gccost/meter"
)

// Count returns how many blocks the C side has allocated and freed so far.
func Count() meter.Blocks {
	n := C.cstr_count()
	return meter.Blocks{Allocated: int64(n.allocated), Freed: int64(n.freed), Misfreed: int64(n.misfreed)}
}

// Cstr is the handle of a C block. It contains a pointer, so the tiny allocator
// does not batch it.
type Cstr struct {
	cpointer *C.char
}

// Allocate returns a C block that the caller must [Free].
func Allocate() *C.char { return C.cstr_allocate() }

// Free frees a block returned by [Allocate].
func Free(c *C.char) { C.cstr_free(c) }

// AllocateDefer allocates a block and frees it with a deferred call.
func AllocateDefer() {
	c := Allocate()
	defer Free(c)
}

// AllocateHeap returns a handle on the Go heap whose block the caller must free
// with [FreeHeap]. It separates the cost of the heap from that of the finalizer.
//
// It must not be inlined: the handle would then stay on the caller's stack.
//
//go:noinline
func AllocateHeap() *Cstr { return &Cstr{C.cstr_allocate()} }

// FreeHeap frees the block of a handle returned by [AllocateHeap].
func FreeHeap(c *Cstr) { C.cstr_free(c.cpointer) }

// AllocateAuto returns a handle whose finalizer frees its block.
func AllocateAuto() *Cstr {
	answer := &Cstr{C.cstr_allocate()}
	runtime.SetFinalizer(answer, func(c *Cstr) {
		C.cstr_free(c.cpointer)
		runtime.KeepAlive(c)
	})
	return answer
}

// AllocateDummy returns a handle whose finalizer does nothing. As in the
// document, its block leaks, so the number of operations must be bounded.
func AllocateDummy() *Cstr {
	answer := &Cstr{C.cstr_allocate()}
	runtime.SetFinalizer(answer, func(*Cstr) {})
	return answer
}
