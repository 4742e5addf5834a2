package meter

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// referenced counts blocks in place of the C side.
type referenced struct{ allocated, freed int64 }

func (r *referenced) count() Blocks {
	return Blocks{Allocated: atomic.LoadInt64(&r.allocated), Freed: atomic.LoadInt64(&r.freed)}
}

func (r *referenced) manual(n int) {
	for i := 0; i < n; i++ {
		atomic.AddInt64(&r.allocated, 1)
		atomic.AddInt64(&r.freed, 1)
	}
}

var reference referenced

func manual(n int) { reference.manual(n) }

func inParts(b *testing.B) {
	m := Start(b, nil)
	for n := m.Part(manual); n > 0; n = m.Part(manual) {
		for i := 0; i < n; i++ {
			operation(i)
		}
	}
	m.Stop()
}

func TestPartsCoverAllOperations(t *testing.T) {
	for _, c := range []struct{ n, parts int }{
		{1, 1}, {255, 1}, {511, 1}, {512, 2}, {2570, 10}, {64*256 - 1, 63}, {64 * 256, 64}, {1_000_001, 64},
	} {
		var got []int
		var references int
		benchmarkTimes(t, c.n, func(b *testing.B) {
			got, references = nil, 0
			counting := func(n int) { references += n }
			m := Start(b, nil)
			for n := m.Part(counting); n > 0; n = m.Part(counting) {
				got = append(got, n)
			}
			if again := m.Part(counting); again != 0 {
				t.Errorf("N = %d: Part returned %d after the last part, want 0", c.n, again)
			}
			m.Stop()
		})
		sum, least, most := 0, c.n, 0
		for _, n := range got {
			sum += n
			if n < least {
				least = n
			}
			if n > most {
				most = n
			}
		}
		if len(got) != c.parts || sum != c.n || most-least > 1 {
			t.Errorf("N = %d: %d parts of %d to %d operations with a sum of %d, want %d equal parts",
				c.n, len(got), least, most, sum, c.parts)
		}
		if references != c.parts*ReferenceOperations {
			t.Errorf("N = %d: %d reference operations for %d parts", c.n, references, c.parts)
		}
	}
}

// TestReferenceTimeIsExcluded tests that ns/op is the time of the parts and that the
// references' CPU time is subtracted.
func TestReferenceTimeIsExcluded(t *testing.T) {
	var parts, references, cpu time.Duration
	r := benchmarkTimes(t, 100_000, func(b *testing.B) {
		before := readUsage().cpu
		m := Start(b, nil)
		for n := m.Part(manual); n > 0; n = m.Part(manual) {
			for i := 0; i < n; i++ {
				operation(i)
			}
		}
		m.Stop()
		cpu = readUsage().cpu - before
		parts, references = 0, 0
		for i := 0; i < m.parts.ended; i++ {
			parts += m.parts.times[i]
			references += m.parts.references[i]
		}
	})
	perOp := float64(parts.Nanoseconds()) / float64(r.N)
	if got := r.Extra["ns/op"]; perOp <= 0 || math.Abs(got-perOp) > 1e-9*perOp {
		t.Errorf("ns/op is %v, but the parts took %v", got, perOp)
	}
	if parts+references > r.T {
		t.Errorf("parts took %v and references %v, together more than the total of %v", parts, references, r.T)
	}
	// NsPerOp and the printed line must not include the references either.
	if got := r.NsPerOp(); got != int64(perOp) {
		t.Errorf("NsPerOp is %d, but the parts took %v", got, perOp)
	}
	var n int
	var printed float64
	if _, err := fmt.Sscanf(r.String(), "%d %g ns/op", &n, &printed); err != nil ||
		math.Abs(printed-perOp) > 0.01*perOp || strings.Count(r.String(), " ns/op") != 1 {
		t.Errorf("the printed line is %q, but the parts took %v ns/op: %v", r.String(), perOp, err)
	}
	if r.Extra["settled-ns/op"] < perOp {
		t.Errorf("settled-ns/op is %v, but the parts took %v", r.Extra["settled-ns/op"], perOp)
	}
	of := r.Extra["reference-ns/op"] * mostParts * ReferenceOperations
	for _, unit := range []string{"cpu-ns/op", "settled-cpu-ns/op"} {
		if loop := r.Extra[unit] * float64(r.N); loop+of > float64(cpu.Nanoseconds())+1000 {
			t.Errorf("%s adds up to %v ns and the references to %v, together more than %v", unit, loop, of, cpu)
		}
	}
}

// TestReferenceBlocksAreExcluded tests that the references' blocks are subtracted if there
// is a count function.
func TestReferenceBlocksAreExcluded(t *testing.T) {
	for _, n := range []int{1, 1000, 100_000} {
		r := benchmarkTimes(t, n, func(b *testing.B) {
			m := Start(b, reference.count)
			for n := m.Part(manual); n > 0; n = m.Part(manual) {
				for i := 0; i < n; i++ {
					atomic.AddInt64(&reference.allocated, 1)
					if i > 0 {
						atomic.AddInt64(&reference.freed, 1)
					}
				}
			}
			m.Stop()
			atomic.StoreInt64(&reference.freed, reference.allocated)
		})
		parts := partsOf(n) // each leaves one block unfreed
		for unit, want := range map[string]int{
			"c-allocated": n, "c-freed": n - parts, "c-unfreed-loop": parts, "c-unfreed-drained": parts,
		} {
			if got := r.Extra[unit]; got != float64(want) {
				t.Errorf("N = %d: %s is %v, want %d", n, unit, got, want)
			}
		}
	}
	r := benchmarkTimes(t, 1000, inParts)
	if allocated, freed := r.Extra["c-allocated"], r.Extra["c-freed"]; allocated != 0 || freed != 0 {
		t.Errorf("without a count function: %v blocks allocated and %v freed, want 0", allocated, freed)
	}
}

// TestReferenceMetrics tests that a loop in parts reports the reference's metrics, and that
// no other loop does.
func TestReferenceMetrics(t *testing.T) {
	for _, n := range []int{1, 1000, 100_000} {
		extra := benchmarkTimes(t, n, inParts).Extra
		mean, least := extra["reference-ns/op"], extra["reference-min-ns/op"]
		if least <= 0 || mean < least {
			t.Errorf("N = %d: a reference operation takes %v ns on average, %v ns at least", n, mean, least)
		}
		for unit := range extra {
			if strings.HasPrefix(unit, "slice") {
				t.Errorf("%s is reported", unit)
			}
		}
	}
	for _, loop := range []func(*testing.B){inOnePiece, inSlices} {
		for unit := range benchmarkTimes(t, 5000, loop).Extra {
			if strings.HasPrefix(unit, "reference") || unit == "ns/op" {
				t.Errorf("%s is reported", unit)
			}
		}
	}
}

func TestTrimmedMean(t *testing.T) {
	ramp := make([]float64, 64) // with outliers at both ends, all of which are trimmed
	for i := range ramp {
		ramp[i] = float64(i)
		if i < 6 {
			ramp[i] = 0
		} else if i >= 64-6 {
			ramp[i] = 1000
		}
	}
	for _, c := range []struct {
		sorted []float64
		want   float64
	}{
		{[]float64{7}, 7}, {[]float64{1, 2, 6}, 3}, {[]float64{-90, 1, 1, 1, 1, 3, 3, 3, 3, 500}, 2}, {ramp, 31.5},
	} {
		if got := trimmedMean(c.sorted); got != c.want {
			t.Errorf("the trimmed mean of %v is %v, want %v", c.sorted, got, c.want)
		}
	}
}

// TestPartsEndingEarlyFailTheBenchmark tests that a loop which stops before Part returns 0,
// and so before b.N operations, fails.
func TestPartsEndingEarlyFailTheBenchmark(t *testing.T) {
	failed := false
	testing.Benchmark(func(b *testing.B) {
		defer func() { failed = failed || b.Failed() }()
		m := Start(b, nil)
		m.Part(manual)
		m.Stop()
	})
	if !failed {
		t.Error("the loop ended before Part returned 0, but the benchmark did not fail")
	}
}

// TestPartsAllocateNothing tests that Part allocates nothing. The readings around the loop
// allocate, but fewer times than there are parts.
func TestPartsAllocateNothing(t *testing.T) {
	whole, parts := benchmarkTimes(t, 100_000, inOnePiece), benchmarkTimes(t, 100_000, inParts)
	if parts.MemAllocs > whole.MemAllocs+mostParts/2 || parts.AllocsPerOp() != 0 {
		t.Errorf("%d allocations with %d parts, %d without", parts.MemAllocs, mostParts, whole.MemAllocs)
	}
}
