//go:build go1.24

package cstr

/*
#include "cstr.h"
*/
import "C"

import "runtime"

// AllocateCleanup returns a handle whose cleanup frees its block.
func AllocateCleanup() *Cstr {
	answer := &Cstr{C.cstr_allocate()}
	runtime.AddCleanup(answer, func(c *C.char) { C.cstr_free(c) }, answer.cpointer)
	return answer
}
