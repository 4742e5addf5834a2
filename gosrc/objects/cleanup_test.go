//go:build go1.24

package objects

import (
	"fmt"
	"runtime"
	"testing"

	"gccost/meter"
)

func init() {
	untilFreeWants["cleanup"] = untilFreeWant{BenchmarkUntilFreeCleanup, 1}
}

// BenchmarkCleanup is [BenchmarkFinalize] with a cleanup that does nothing.
func BenchmarkCleanup(b *testing.B) {
	for _, c := range []struct {
		words int
		bench func(*testing.B)
	}{
		{1, benchmarkCleanup[[1]*byte]}, {2, benchmarkCleanup[[2]*byte]}, {4, benchmarkCleanup[[4]*byte]},
		{8, benchmarkCleanup[[8]*byte]}, {16, benchmarkCleanup[[16]*byte]}, {32, benchmarkCleanup[[32]*byte]},
		{64, benchmarkCleanup[[64]*byte]}, {128, benchmarkCleanup[[128]*byte]}, {256, benchmarkCleanup[[256]*byte]},
		{512, benchmarkCleanup[[512]*byte]},
	} {
		b.Run(fmt.Sprintf("words=%d", c.words), c.bench)
	}
}

func benchmarkCleanup[T any](b *testing.B) {
	m := meter.Start(b, nil)
	for i := 0; i < b.N; i++ {
		runtime.AddCleanup(new(T), func(int) {}, 0)
	}
	m.Stop()
}

func BenchmarkUntilFreeCleanup(b *testing.B) {
	untilFree(b, func(object *large, ran chan<- struct{}) {
		runtime.AddCleanup(object, func(ran chan<- struct{}) { ran <- struct{}{} }, ran)
	})
}

// TestCleanupAllocations checks that an operation allocates the object and only what
// AddCleanup adds.
func TestCleanupAllocations(t *testing.T) {
	r := testing.Benchmark(benchmarkCleanup[[8]*byte])
	if got := r.AllocsPerOp(); got < 2 || got > 4 {
		t.Errorf("%d allocations per operation, want 2 to 4", got)
	}
}
