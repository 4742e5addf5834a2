// Package objects ties a finalizer or a cleanup to Go objects that hold nothing
// to free, so that what is measured is the mechanism alone.
//
// It serves the claims S3 to S8 (Siebenmann): the empty finalizer, the curve over
// the object's size, and how many GC cycles it takes until the memory is gone.
package objects

import (
	"fmt"
	"runtime"
)

// Empty is the object of [EmptyFinalizer]: one pointer, to nothing.
type Empty struct {
	pointer *byte
}

// EmptyFinalizer returns an object with a finalizer that does nothing.
func EmptyFinalizer() *Empty {
	answer := &Empty{}
	runtime.SetFinalizer(answer, func(*Empty) {})
	return answer
}

// tinySize is the size up to which the runtime batches objects without
// pointers: several share one block, whose finalizers and cleanups may never run.
const tinySize = 16

// Batched tells whether the runtime may batch an object with others; the error
// says why it should have no finalizer or cleanup then.
func Batched(bytes uintptr, pointers bool) error {
	if pointers || bytes > tinySize {
		return nil
	}
	return fmt.Errorf("an object of %d bytes without pointers may share its block with others "+
		"(up to %d bytes): its finalizer or cleanup may never run", bytes, tinySize)
}
