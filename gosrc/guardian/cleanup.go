//go:build go1.24

package guardian

/*
#include "guardian.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Stopped wrappers have a cleanup, which Close stops. They store it, so they have 24 bytes at
// least.
type (
	stopped24 struct {
		block   *C.block
		cleanup runtime.Cleanup
	}
	stopped64 struct {
		stopped24
		_ [40]byte
	}
)

// stopped are wrappers with a cleanup, which Close stops.
func stopped[T any]() way {
	first := func(w *T) *stopped24 { return (*stopped24)(unsafe.Pointer(w)) }
	return way{
		open: func() any {
			w, block := new(T), C.block_new()
			first(w).block = block
			first(w).cleanup = runtime.AddCleanup(w, free, block)
			return w
		},
		close: func(w any) {
			s := first(w.(*T))
			s.cleanup.Stop()
			free(s.block)
			s.block = nil
			runtime.KeepAlive(w) // otherwise the cleanup might run first and free the block
		},
	}
}

var byCleanup = map[int]way{24: stopped[stopped24](), 64: stopped[stopped64]()}
