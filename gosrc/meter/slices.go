package meter

import (
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// SliceOperations is the number of operations in a slice. With operations of about 50 ns,
// slices of 256 to 4,096 operations have the same low quantiles. Slices of 16,384
// operations have higher ones, because few slices of that length are undisturbed. With
// 1,024, reading the clock, some 50 ns a slice, takes a thousandth of the loop.
const SliceOperations = 1024

// slicesFile is the environment variable that names the file for the slices' times.
const slicesFile = "GCCOST_SLICES"

// percentiles are the reported percentiles of the slices' times.
var percentiles = []struct {
	unit string
	part float64
}{
	{"slice-min-ns/op", 0},
	{"slice-p01-ns/op", 0.01},
	{"slice-p05-ns/op", 0.05},
	{"slice-p10-ns/op", 0.10},
	{"slice-p25-ns/op", 0.25},
	{"slice-p50-ns/op", 0.50},
}

// slices records the slices of a loop; times is nil if the loop is not timed in slices.
type slices struct {
	times   []time.Duration
	begun   time.Time // when the current slice began
	started int       // operations in the slices begun so far
}

// Slice ends the current slice, if any, and returns the number of operations in the next
// one, or 0 when all b.N are done. It reads the probe before the first slice of each of 64
// parts of the loop, or of fewer. The first call allocates the buffer for the times and then
// repeats the readings of the loop's start.
func (m *Meter) Slice() int {
	s := &m.slices
	if s.times == nil {
		s.times = make([]time.Duration, (m.b.N+SliceOperations-1)/SliceOperations)
		for i := range s.times {
			s.times[i] = -1 // fault the pages in before the loop
		}
		s.times = s.times[:0]
		m.begin()
	} else {
		s.times = append(s.times, time.Since(s.begun))
	}
	n := m.b.N - s.started
	if n > SliceOperations {
		n = SliceOperations
	}
	if n > 0 && len(s.times)%(cap(s.times)/mostParts+1) == 0 {
		m.Probe()
	}
	s.started += n
	s.begun = time.Now()
	return n
}

// reportSlices reports the metrics of a loop that is timed in slices.
func (m *Meter) reportSlices() {
	if m.slices.times == nil {
		return
	}
	perOp := make([]float64, len(m.slices.times))
	if len(perOp) < cap(m.slices.times) {
		m.b.Fatal("the loop ended before Slice returned 0")
	}
	var sum time.Duration
	left := m.b.N
	for i, took := range m.slices.times {
		n := SliceOperations
		if left < n {
			n = left
		}
		left -= n
		perOp[i] = float64(took.Nanoseconds()) / float64(n)
		sum += took
	}
	m.b.ReportMetric(float64(len(perOp)), "slices")
	m.b.ReportMetric(float64(sum.Nanoseconds())/float64(m.b.N), "slices-ns/op")
	if path := os.Getenv(slicesFile); path != "" {
		if err := writeLines(path, perOp); err != nil {
			m.b.Fatalf("%s: %v", slicesFile, err)
		}
	}
	whole := perOp
	if last := len(whole) - 1; last > 0 && m.b.N%SliceOperations != 0 {
		whole = whole[:last]
	}
	sort.Float64s(whole)
	for _, p := range percentiles {
		m.b.ReportMetric(quantile(whole, p.part), p.unit)
	}
}

// quantile returns the given quantile of sorted values, interpolated linearly.
func quantile(sorted []float64, part float64) float64 {
	at := part * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// writeLines writes numbers to a file, one per line.
func writeLines(path string, numbers []float64) error {
	var lines strings.Builder
	for _, number := range numbers {
		lines.WriteString(strconv.FormatFloat(number, 'f', 3, 64) + "\n")
	}
	return os.WriteFile(path, []byte(lines.String()), 0o666)
}
