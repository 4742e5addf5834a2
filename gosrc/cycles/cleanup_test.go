//go:build go1.24

package cycles

import (
	"runtime"
	"testing"
	"weak"
)

// argument stands for a C block: the cleanups get a pointer that is not into the heap.
var argument byte

func nothing(*byte) {}

func cleaned(h *handle) { runtime.AddCleanup(h, nothing, &argument) }

// pointed makes a weak pointer and drops it; its special record remains.
func pointed(h *handle) { weak.Make(h) }

// BenchmarkCycleCleanup times GC cycles by the number of live cleanups.
func BenchmarkCycleCleanup(b *testing.B) { cycle(b, cleaned) }

// BenchmarkCycleWeak times GC cycles by the number of live weak pointers.
func BenchmarkCycleWeak(b *testing.B) { cycle(b, pointed) }

// BenchmarkTailCleanup times operations in a heap with live cleanups.
func BenchmarkTailCleanup(b *testing.B) { tail(b, cleaned) }
