package guardian

/*
#include "guardian.h"
*/
import "C"

import (
	"runtime"
	"unsafe"

	"example.org/gccost/slab"
)

// A way makes and closes wrappers of new C blocks. Each wrapper is a Go object of its own, as
// users of a library hold it, and may be closed twice. If flush is not nil, it frees the
// blocks that wait for others.
type way struct {
	open  func() any
	close func(any)
	flush func()
}

// Wrappers have a pointer to a C block and, except the smallest, padding, which stands for
// state of their own.
type (
	wrapper8  struct{ block *C.block }
	wrapper24 padded[[16]byte]
	wrapper64 padded[[56]byte]
)

type padded[P any] struct {
	block *C.block
	_     P
}

type wrapper interface {
	wrapper8 | wrapper24 | wrapper64
}

// take returns the C block of a wrapper and clears it.
func take[T wrapper](w *T) *C.block {
	at := (**C.block)(unsafe.Pointer(w))
	block := *at
	*at = nil
	return block
}

func open[T wrapper]() *T {
	w := new(T)
	*(**C.block)(unsafe.Pointer(w)) = C.block_new()
	return w
}

func (w *wrapper8) use() error { return check(C.block_use(w.block)) }

func free(block *C.block) {
	if block != nil {
		C.block_free(block)
	}
}

// manual are wrappers without a safety net: one that is forgotten leaks its block.
func manual[T wrapper]() way {
	return way{
		open:  func() any { return open[T]() },
		close: func(w any) { free(take(w.(*T))) },
	}
}

// finalized are wrappers with a finalizer, which Close clears.
func finalized[T wrapper]() way {
	finalizer := func(w *T) { free(take(w)) }
	return way{
		open: func() any {
			w := open[T]()
			runtime.SetFinalizer(w, finalizer)
			return w
		},
		close: func(w any) {
			runtime.SetFinalizer(w, nil)
			free(take(w.(*T)))
		},
	}
}

// Guarded wrappers embed the [Block] of the example.
type (
	guarded24 struct {
		Block
		_ [16]byte
	}
	guarded64 struct {
		Block
		_ [56]byte
	}
)

// guarded are wrappers with a guardian.
func guarded[T any]() way {
	block := func(w *T) *Block { return (*Block)(unsafe.Pointer(w)) }
	return way{
		open: func() any {
			w := new(T)
			block(w).adopt(C.block_new())
			return w
		},
		close: func(w any) { _ = block(w.(*T)).Close() },
	}
}

// Adopted wrappers have a handle of a slab, which is 16 bytes.
type (
	adopted16 struct{ handle slab.Handle[*C.block] }
	adopted24 struct {
		adopted16
		_ [8]byte
	}
	adopted64 struct {
		adopted16
		_ [48]byte
	}
)

func freeAll(dead []*C.block) error {
	first := &dead[0] // passing &dead[0] itself has cgo check every entry
	C.block_free_all(first, C.size_t(len(dead)))
	return nil
}

// adopted are wrappers whose block a pool has adopted.
func adopted[T any]() way {
	p := &slab.Pool[*C.block]{Free: freeAll}
	handle := func(w *T) *slab.Handle[*C.block] { return &(*adopted16)(unsafe.Pointer(w)).handle }
	return way{
		open: func() any {
			w := new(T)
			*handle(w) = p.Adopt(C.block_new())
			return w
		},
		close: func(w any) { _ = handle(w.(*T)).Close() },
		flush: p.Flush,
	}
}

// The ways, by the size of the wrapper in bytes.
var (
	manually    = map[int]way{8: manual[wrapper8](), 24: manual[wrapper24](), 64: manual[wrapper64]()}
	byFinalizer = map[int]way{8: finalized[wrapper8](), 24: finalized[wrapper24](), 64: finalized[wrapper64]()}
	byGuardian  = map[int]way{8: guarded[Block](), 24: guarded[guarded24](), 64: guarded[guarded64]()}
	bySlab      = map[int]way{16: adopted[adopted16](), 24: adopted[adopted24](), 64: adopted[adopted64]()}
)
