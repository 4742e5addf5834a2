package meter

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestSlicesCoverAllOperations(t *testing.T) {
	for _, c := range []struct {
		n    int
		want []int
	}{
		{1, []int{1}},
		{1023, []int{1023}},
		{1024, []int{1024}},
		{1025, []int{1024, 1}},
		{5000, []int{1024, 1024, 1024, 1024, 904}},
	} {
		var got []int
		r := benchmarkTimes(t, c.n, func(b *testing.B) {
			got = nil
			m := Start(b, nil)
			for n := m.Slice(); n > 0; n = m.Slice() {
				got = append(got, n)
			}
			m.Stop()
		})
		same := len(got) == len(c.want)
		for i := range got {
			same = same && got[i] == c.want[i]
		}
		if !same || int(r.Extra["slices"]) != len(c.want) {
			t.Errorf("N = %d: %v slices of %v operations, want %v", c.n, r.Extra["slices"], got, c.want)
		}
	}
}

// TestSlicesAddUp tests that the slices' times add up to the loop's time.
func TestSlicesAddUp(t *testing.T) {
	r := benchmarkTimes(t, 1_000_000, func(b *testing.B) {
		m := Start(b, nil)
		for n := m.Slice(); n > 0; n = m.Slice() {
			for i := 0; i < n; i++ {
				operation(i)
			}
		}
		m.Stop()
	})
	// The loop's time includes readings of the clock between the slices.
	sum, loop := r.Extra["slices-ns/op"], r.Extra["ns/op"]
	if sum <= 0 || sum > loop {
		t.Errorf("the slices took %v ns/op together, the loop %v", sum, loop)
	}
}

func TestSlicePercentilesAreOrdered(t *testing.T) {
	for _, n := range []int{1, 1025, 1_000_000} {
		r := benchmarkTimes(t, n, inSlices)
		before := 0.0
		for _, p := range percentiles {
			now, reported := r.Extra[p.unit]
			if !reported || now < before {
				t.Errorf("N = %d: %s is %v (reported: %v), the percentile before it %v", n, p.unit, now, reported, before)
			}
			before = now
		}
		if n > SliceOperations && before <= 0 { // the clock may not resolve a single operation
			t.Errorf("N = %d: the median slice takes no time", n)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		sorted []float64
		part   float64
		want   float64
	}{
		{[]float64{7}, 0, 7}, {[]float64{7}, 0.5, 7},
		{[]float64{1, 2, 4}, 0, 1}, {[]float64{1, 2, 4}, 0.25, 1.5},
		{[]float64{1, 2, 4}, 0.5, 2}, {[]float64{1, 2, 4}, 1, 4},
	} {
		if got := quantile(c.sorted, c.part); got != c.want {
			t.Errorf("quantile %v of %v is %v, want %v", c.part, c.sorted, got, c.want)
		}
	}
}

// TestShortSliceIsExcluded tests that the percentiles exclude a last slice of a single
// operation, whose time is mostly that of reading the clock.
func TestShortSliceIsExcluded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices")
	t.Setenv(slicesFile, path)
	r := benchmarkTimes(t, SliceOperations+1, inSlices)
	times := lines(t, path)
	if len(times) != 2 {
		t.Fatalf("%d slices, want 2", len(times))
	}
	for _, p := range percentiles {
		if got := r.Extra[p.unit]; math.Abs(got-times[0]) > 0.001 {
			t.Errorf("%s is %v, but the only full slice took %v", p.unit, got, times[0])
		}
	}
}

// TestSlicesAreWritten tests that the file has every slice of the last run, and that they
// add up to the reported time.
func TestSlicesAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices")
	t.Setenv(slicesFile, path)
	const n = 5000
	r := benchmarkTimes(t, n, inSlices)
	times := lines(t, path)
	if len(times) != 5 {
		t.Fatalf("the file has %d lines, want 5", len(times))
	}
	sum := 0.0
	for i, ns := range times {
		operations := float64(SliceOperations)
		if i == 4 {
			operations = n - 4*SliceOperations
		}
		sum += ns * operations
	}
	if want := r.Extra["slices-ns/op"]; math.Abs(sum/n-want) > 0.001 {
		t.Errorf("the slices in the file add up to %v ns/op, the metric is %v", sum/n, want)
	}
}

func lines(t *testing.T, path string) (numbers []float64) {
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(content)) {
		number, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

func TestFailureToWriteSlicesFailsTheBenchmark(t *testing.T) {
	t.Setenv(slicesFile, filepath.Join(t.TempDir(), "no such folder", "slices"))
	failed := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { failed = failed || b.Failed() }()
		inSlices(b)
	})
	if !failed {
		t.Error("the file could not be written, but the benchmark did not fail")
	}
}

// TestSlicesEndingEarlyFailTheBenchmark tests that a loop which stops before Slice returns
// 0, and so before b.N operations, fails.
func TestSlicesEndingEarlyFailTheBenchmark(t *testing.T) {
	failed := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { failed = failed || b.Failed() }()
		m := Start(b, nil)
		m.Slice()
		m.Stop()
	})
	if !failed {
		t.Error("the loop ended before Slice returned 0, but the benchmark did not fail")
	}
}

// TestSlicesAllocateNothing tests that Slice allocates nothing. The readings around the
// loop allocate, but far fewer times than there are slices.
func TestSlicesAllocateNothing(t *testing.T) {
	r := benchmarkTimes(t, 1_000_000, inSlices)
	if slices := uint64(r.Extra["slices"]); r.MemAllocs > slices/10 {
		t.Errorf("%d allocations in %d slices", r.MemAllocs, slices)
	}
}

// TestPlainLoopReportsNoSlices tests that only a loop in slices reports their metrics,
// which show that a loop is stationary.
func TestPlainLoopReportsNoSlices(t *testing.T) {
	for unit := range benchmarkTimes(t, 5000, inOnePiece).Extra {
		if strings.HasPrefix(unit, "slice") {
			t.Errorf("%s is reported", unit)
		}
	}
}
