package rates

import (
	"sync/atomic"
	"testing"

	"gccost/rundelay"
)

// TestMeasureDoesAllOperations tests that Measure does exactly n operations and prepares
// each goroutine once.
func TestMeasureDoesAllOperations(t *testing.T) {
	for _, goroutines := range []int{1, 3, 64} {
		var prepared, done int64
		Measure(1000, goroutines, func() func() {
			atomic.AddInt64(&prepared, 1)
			return func() { atomic.AddInt64(&done, 1) }
		})
		if prepared != int64(goroutines) || done != 1000 {
			t.Errorf("%d goroutines: %d prepared, %d operations", goroutines, prepared, done)
		}
	}
}

var sink [64][]byte

// TestMetricsAgree tests that the metrics are consistent and that bytes are counted.
func TestMetricsAgree(t *testing.T) {
	const n, size = 20000, 4096
	var i int64
	found := map[string]float64{}
	for _, m := range Measure(n, 2, func() func() {
		own := int(atomic.AddInt64(&i, 1))
		return func() { sink[own] = make([]byte, size) }
	}) {
		if _, twice := found[m.Unit]; twice {
			t.Errorf("%s is reported twice", m.Unit)
		}
		found[m.Unit] = m.Value
	}
	if b := found["B/op"]; b < size || b > 1.1*size {
		t.Errorf("%v bytes per operation, want about %d", b, size)
	}
	for _, c := range []struct{ left, right float64 }{
		{found["ns/op"] * found["op/s"], 1e9},
		{found["cpu-ns/op"] * found["op/cpu-s"], 1e9},
		{found["cpus-busy"] * found["ns/op"], found["cpu-ns/op"]},
		{found["gc-cycle-op"] * found["gc-cycles"], n},
		{found["gc-cycle-bytes"] * found["gc-cycles"], n * found["B/op"]},
	} {
		if c.left < 0.999*c.right || c.left > 1.001*c.right || c.right == 0 {
			t.Errorf("%v and %v should be equal", c.left, c.right)
		}
	}
	if found["gc-cycles"] < 2 {
		t.Errorf("%v GC cycles for %d bytes of garbage, want 2 or more", found["gc-cycles"], n*size)
	}
	if share, reported := found["run-delay-share"]; reported != (rundelay.Read() != nil) || share < 0 || share > 1000 {
		t.Errorf("run-delay-share is %v (reported: %v)", share, reported)
	}
	if hasClasses {
		// No upper bound: it counts the time for which the GC's workers wait for a CPU.
		if share := found["gc-share-classes"]; share < 0 {
			t.Errorf("the GC's share of the CPU time is %v", share)
		}
	}
}

// TestGoroutines tests that the numbers ascend and include the document's sweep.
func TestGoroutines(t *testing.T) {
	seen := map[int]bool{}
	for i, g := range Goroutines {
		if i > 0 && g <= Goroutines[i-1] {
			t.Errorf("%d comes after %d", g, Goroutines[i-1])
		}
		seen[g] = true
	}
	for _, g := range []int{1, 2, 4, 17, 48} {
		if !seen[g] {
			t.Errorf("no sub-benchmark for %d goroutines", g)
		}
	}
}
