//go:build go1.24

package remedies

import (
	"testing"

	"gccost/meter"
)

// BenchmarkOneHeapCleanup adds a cleanup to each handle and drops it; see
// [BenchmarkOneHeapFinalizer].
func BenchmarkOneHeapCleanup(b *testing.B) { loop(b, Count, func() { NewStopped() }) }

func BenchmarkLifetimesCleanup(b *testing.B) {
	overLifetimes(b, Count, NewStopped, func(*Stopped) {})
}

func BenchmarkPadded(b *testing.B) { loop(b, Count, func() { NewPadded() }) }

func BenchmarkHeapCleanup(b *testing.B) {
	onHeap(b, BenchmarkOneHeapCleanup)
}

func BenchmarkLastFirst(b *testing.B) {
	handles, calls := NewLastFirst(), 0
	loop(b, func() meter.Blocks {
		if calls++; calls > 2 { // the drain
			handles.Flush()
		}
		return Count()
	}, func() { handles.Get() })
}

func BenchmarkRegistry(b *testing.B) {
	var registry Registry
	calls := 0
	loop(b, func() meter.Blocks {
		if calls++; calls > 2 { // the drain
			registry.Sweep()
		}
		return Count()
	}, func() { registry.Get() })
}

func BenchmarkPinned(b *testing.B) { loop(b, Count, func() { Pinned() }) }

// TestConservationOfCleanups checks that each remedy frees every block once.
func TestConservationOfCleanups(t *testing.T) {
	for name, benchmark := range map[string]func(*testing.B){
		"Cleanup": BenchmarkOneHeapCleanup, "Padded": BenchmarkPadded, "LastFirst": BenchmarkLastFirst,
		"Registry": BenchmarkRegistry,
	} {
		r := testing.Benchmark(benchmark)
		// LastFirst allocates in batches, so some blocks may be left over.
		if got := int(r.Extra["c-allocated"]); got < r.N || got >= r.N+together {
			t.Errorf("%s: %d C blocks in %d operations", name, got, r.N)
		}
		if got := r.Extra["c-misfreed"]; got != 0 {
			t.Errorf("%s: %v blocks were freed twice", name, got)
		}
		if got := r.Extra["c-unfreed-drained"]; got > 8 {
			t.Errorf("%s: %v blocks are not freed after the drain", name, got)
		}
	}
}

func BenchmarkLatencyCleanup(b *testing.B) { latency(b, Count, func() { NewStopped() }) }
