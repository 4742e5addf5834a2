// Package objects sets finalizers and cleanups on Go objects that own nothing to free, to
// measure only the mechanism.
//
// It serves the claims S3 to S8 (Siebenmann): the empty finalizer, the cost by object size,
// and the number of GC cycles until an object's memory is freed.
package objects

import (
	"fmt"
	"runtime"
)

// Empty is the object of [EmptyFinalizer]: a nil pointer.
type Empty struct {
	pointer *byte
}

// EmptyFinalizer returns an object with a finalizer that does nothing.
func EmptyFinalizer() *Empty {
	answer := &Empty{}
	runtime.SetFinalizer(answer, func(*Empty) {})
	return answer
}

// tinySize is the maximum size at which the runtime batches objects without pointers.
// Several share a block, and their finalizers and cleanups may never run.
const tinySize = 16

// Batched returns an error if the runtime may batch an object with others. Such an object
// should have no finalizer or cleanup; the error says why.
func Batched(bytes uintptr, pointers bool) error {
	if pointers || bytes > tinySize {
		return nil
	}
	return fmt.Errorf("an object of %d bytes without pointers may share its block with others "+
		"(up to %d bytes): its finalizer or cleanup may never run", bytes, tinySize)
}
