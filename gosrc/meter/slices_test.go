package meter

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestSlicesHaveAllOperations(t *testing.T) {
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

// TestSlicesAddUp: the slices' times add up to the loop's, which ns/op is.
func TestSlicesAddUp(t *testing.T) {
	var loop float64
	r := benchmarkTimes(t, 1_000_000, func(b *testing.B) {
		m := Start(b, nil)
		for n := m.Slice(); n > 0; n = m.Slice() {
			for i := 0; i < n; i++ {
				operation(i)
			}
		}
		loop = float64(m.slices.ends[len(m.slices.ends)-1].Nanoseconds()) / float64(b.N)
		m.Stop()
	})
	sum, all := r.Extra["slices-ns/op"], float64(r.T.Nanoseconds())/float64(r.N)
	if math.Abs(sum-loop) > 1e-9*loop {
		t.Errorf("the slices take %v ns/op together, the last one ends after %v", sum, loop)
	}
	// The loop has readings before and after it that no slice has.
	if sum <= 0 || sum > all {
		t.Errorf("the slices take %v ns/op together, the benchmark %v", sum, all)
	}
}

func TestQuantilesOfSlicesAreOrdered(t *testing.T) {
	for _, n := range []int{1, 1025, 1_000_000} {
		r := benchmarkTimes(t, n, inSlices)
		before := 0.0
		for _, p := range percentiles {
			now, told := r.Extra[p.unit]
			if !told || now < before {
				t.Errorf("N = %d: %s is %v, told %v, after %v", n, p.unit, now, told, before)
			}
			before = now
		}
		if n > SliceOperations && before <= 0 { // a clock may not tell one operation from none
			t.Errorf("N = %d: half of the slices take no time", n)
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
			t.Errorf("the quantile %v of %v is %v, want %v", c.part, c.sorted, got, c.want)
		}
	}
}

// TestAShorterSliceIsLeftOut: the one operation of the last slice has a reading of the
// clock to itself, which is no operation's cost.
func TestAShorterSliceIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices")
	t.Setenv(slicesFile, path)
	r := benchmarkTimes(t, SliceOperations+1, inSlices)
	times := lines(t, path)
	if len(times) != 2 {
		t.Fatalf("%d slices, want 2", len(times))
	}
	for _, p := range percentiles {
		if got := r.Extra[p.unit]; math.Abs(got-times[0]) > 0.001 {
			t.Errorf("%s is %v, and the only slice of full length took %v", p.unit, got, times[0])
		}
	}
}

// TestSlicesAreWritten: the file has every slice of the last run, in order, and they
// make what is reported.
func TestSlicesAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slices")
	t.Setenv(slicesFile, path)
	const n = 5000
	r := benchmarkTimes(t, n, inSlices)
	times := lines(t, path)
	if len(times) != 5 {
		t.Fatalf("%d lines for 5 slices", len(times))
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
		t.Errorf("the slices in the file make %v ns/op, the metric is %v", sum/n, want)
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

func TestSlicesThatCannotBeWrittenFailTheBenchmark(t *testing.T) {
	t.Setenv(slicesFile, filepath.Join(t.TempDir(), "no such folder", "slices"))
	failed := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { failed = failed || b.Failed() }()
		inSlices(b)
	})
	if !failed {
		t.Error("nobody is told that the file was not written")
	}
}

// TestALoopThatEndsEarlyFailsTheBenchmark: it did not do b.N operations.
func TestALoopThatEndsEarlyFailsTheBenchmark(t *testing.T) {
	failed := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { failed = failed || b.Failed() }()
		m := Start(b, nil)
		m.Slice()
		m.Stop()
	})
	if !failed {
		t.Error("a loop that left out operations counts as done")
	}
}

// TestSlicesAllocateNothing in the loop: many slices, and fewer allocations than the
// readings around the loop may take.
func TestSlicesAllocateNothing(t *testing.T) {
	r := benchmarkTimes(t, 1_000_000, inSlices)
	if slices := uint64(r.Extra["slices"]); r.MemAllocs > slices/10 {
		t.Errorf("%d allocations in %d slices", r.MemAllocs, slices)
	}
}

// TestALoopInOnePieceHasNoSlices: their metrics tell which loops are stationary.
func TestALoopInOnePieceHasNoSlices(t *testing.T) {
	for unit := range benchmarkTimes(t, 5000, inOnePiece).Extra {
		if strings.HasPrefix(unit, "slice") {
			t.Errorf("%s is reported", unit)
		}
	}
}
