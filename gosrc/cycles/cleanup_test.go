//go:build go1.24

package cycles

import (
	"runtime"
	"testing"
	"weak"
)

// argument is what the cleanups are given: a pointer outside of the heap, as to a C block.
var argument byte

func nothing(*byte) {}

func cleaned(h *handle) { runtime.AddCleanup(h, nothing, &argument) }

// pointed makes a weak pointer, which the record keeps.
func pointed(h *handle) { weak.Make(h) }

// BenchmarkCycleCleanup times GC cycles by the number of live cleanups.
func BenchmarkCycleCleanup(b *testing.B) { cycle(b, cleaned) }

// BenchmarkCycleWeak times GC cycles by the number of live weak pointers.
func BenchmarkCycleWeak(b *testing.B) { cycle(b, pointed) }

// BenchmarkTailCleanup times operations beside live cleanups.
func BenchmarkTailCleanup(b *testing.B) { tail(b, cleaned) }
