//go:build go1.24

package handles

import (
	"runtime"
	"unsafe"
)

// Cleanup has, for each size of a handle in bytes, a function that returns a handle whose
// cleanup frees its block.
var Cleanup = map[int]func() any{
	8:    cleaned[handle8](),
	16:   cleaned[handle16](),
	24:   cleaned[handle24](),
	32:   cleaned[handle32](),
	48:   cleaned[handle48](),
	64:   cleaned[handle64](),
	128:  cleaned[handle128](),
	256:  cleaned[handle256](),
	1024: cleaned[handle1024](),
}

func cleaned[T handle]() func() any {
	return func() any {
		h := newHandle[T]()
		runtime.AddCleanup(h, Free, *block(h))
		return h
	}
}

// unshared is a handle of 16 bytes without a pointer. For a handle with an argument of 8
// bytes, AddCleanup allocates objects of 8 and 16 bytes, which all contain pointers; so these
// lie in other spans than this handle.
type unshared struct{ block, _ uintptr }

// CleanupUnshared returns a handle without a pointer whose cleanup frees its block.
func CleanupUnshared() any {
	c := Allocate()
	h := &unshared{block: uintptr(unsafe.Pointer(c))}
	runtime.AddCleanup(h, Free, c)
	return h
}
