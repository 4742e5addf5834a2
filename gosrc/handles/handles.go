// Package handles frees C blocks through Go objects of 8 to 1,024 bytes, by a finalizer or a
// cleanup for each, and manually. All of them use the same C code, which makes blocks of 100
// bytes and counts them.
//
// It serves the claims X16, about the size of a handle, and X19, about cleanups and finalizers.
package handles

/*
#include "handles.h"
*/
import "C"

import (
	"runtime"
	"unsafe"

	"gccost/meter"
)

// Handles have a pointer to a C block and, except the smallest, padding. An object's own
// state would serve as well as padding.
type (
	handle8    struct{ block *C.char }
	handle16   padded[[8]byte]
	handle24   padded[[16]byte]
	handle32   padded[[24]byte]
	handle48   padded[[40]byte]
	handle64   padded[[56]byte]
	handle128  padded[[120]byte]
	handle256  padded[[248]byte]
	handle1024 padded[[1016]byte]
)

type padded[P any] struct {
	block *C.char
	_     P
}

type handle interface {
	handle8 | handle16 | handle24 | handle32 | handle48 | handle64 | handle128 | handle256 | handle1024
}

// block returns a pointer to the first field of a handle.
func block[T handle](h *T) **C.char { return (**C.char)(unsafe.Pointer(h)) }

// newHandle returns a handle of a new C block.
func newHandle[T handle]() *T {
	h := new(T)
	*block(h) = Allocate()
	return h
}

// Finalizer has, for each size of a handle in bytes, a function that returns a handle whose
// finalizer frees its block.
var Finalizer = map[int]func() any{
	8:    finalized[handle8](),
	16:   finalized[handle16](),
	24:   finalized[handle24](),
	32:   finalized[handle32](),
	48:   finalized[handle48](),
	64:   finalized[handle64](),
	128:  finalized[handle128](),
	256:  finalized[handle256](),
	1024: finalized[handle1024](),
}

func finalized[T handle]() func() any {
	free := func(h *T) { Free(*block(h)) } // made once: in a generic function it is a closure
	return func() any {
		h := newHandle[T]()
		runtime.SetFinalizer(h, free)
		return h
	}
}

// Allocate returns a C block that the caller must [Free].
func Allocate() *C.char { return C.handles_allocate() }

// Free frees a block returned by [Allocate].
func Free(c *C.char) { C.handles_free(c) }

// Count returns how many blocks the C side has allocated and freed so far.
func Count() meter.Blocks {
	n := C.handles_count()
	return meter.Blocks{Allocated: int64(n.allocated), Freed: int64(n.freed), Misfreed: int64(n.misfreed)}
}
