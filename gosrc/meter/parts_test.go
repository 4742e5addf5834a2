package meter

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func inParts(b *testing.B) {
	m := Start(b, nil)
	for n := m.Part(); n > 0; n = m.Part() {
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
		benchmarkTimes(t, c.n, func(b *testing.B) {
			got = nil
			m := Start(b, nil)
			for n := m.Part(); n > 0; n = m.Part() {
				got = append(got, n)
			}
			if again := m.Part(); again != 0 {
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
	}
}

// TestProbeTimeIsExcluded tests that no time includes the probe.
func TestProbeTimeIsExcluded(t *testing.T) {
	var probed, cpu time.Duration
	r := benchmarkTimes(t, 100_000, func(b *testing.B) {
		before := readUsage().cpu
		m := Start(b, nil)
		for n := m.Part(); n > 0; n = m.Part() {
			for i := 0; i < n; i++ {
				operation(i)
			}
		}
		m.Stop()
		cpu = readUsage().cpu - before
		probed = m.probe.Total
	})
	perOp, operations := r.Extra["ns/op"], float64(r.N)
	if loop := time.Duration(perOp * operations); loop <= 0 || probed <= 0 || loop+probed > r.T {
		t.Errorf("the loop took %v and the probe %v, the whole %v", loop, probed, r.T)
	}
	// NsPerOp and the printed line must not include the probe either.
	if got := r.NsPerOp(); got != int64(perOp) {
		t.Errorf("NsPerOp is %d, but an operation took %v", got, perOp)
	}
	var n int
	var printed float64
	if _, err := fmt.Sscanf(r.String(), "%d %g ns/op", &n, &printed); err != nil ||
		math.Abs(printed-perOp) > 0.01*perOp || strings.Count(r.String(), " ns/op") != 1 {
		t.Errorf("the printed line is %q, but an operation took %v ns: %v", r.String(), perOp, err)
	}
	if r.Extra["settled-ns/op"] < perOp {
		t.Errorf("settled-ns/op is %v, but an operation took %v", r.Extra["settled-ns/op"], perOp)
	}
	for _, unit := range []string{"cpu-ns/op", "settled-cpu-ns/op"} {
		if loop := r.Extra[unit] * operations; loop+float64(probed) > float64(cpu)+1000 {
			t.Errorf("%s adds up to %v ns and the probe to %v, together more than %v", unit, loop, probed, cpu)
		}
	}
}

// TestProbeMetric tests that a loop in parts reports the probe, and that one in a piece does not.
func TestProbeMetric(t *testing.T) {
	for _, n := range []int{1, 1000, 100_000} {
		extra := benchmarkTimes(t, n, inParts).Extra
		if perLoad := extra["probe-ns/op"]; perLoad <= 0 || perLoad > 1e6 {
			t.Errorf("N = %d: a load takes %v ns", n, perLoad)
		}
		for unit := range extra {
			if strings.HasPrefix(unit, "slice") {
				t.Errorf("%s is reported", unit)
			}
		}
	}
	for unit := range benchmarkTimes(t, 5000, inOnePiece).Extra {
		if strings.HasPrefix(unit, "probe") || unit == "ns/op" {
			t.Errorf("%s is reported", unit)
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
		m.Part()
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
