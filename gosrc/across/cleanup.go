//go:build go1.24
// +build go1.24

package across

/*
#include "across.h"
*/
import "C"

import "runtime"

// Cleaned returns a handle whose cleanup frees its block.
func Cleaned() *Handle {
	h := Heap()
	runtime.AddCleanup(h, func(block *C.char) { C.across_free(block) }, h.block)
	return h
}
