package meter

import (
	"sort"
	"time"
)

// A loop has at most mostParts parts. Each has at least leastPart operations, unless it
// is the only one.
const (
	mostParts = 64
	leastPart = 256
)

// ReferenceOperations is the number of reference operations timed before each part. As
// manual frees they take some 100 microseconds, which the clock resolves, and all of them
// together take a few hundredths of a loop of five million operations with a finalizer.
const ReferenceOperations = 2000

// parts records the parts of a loop; all is 0 if the loop is not timed in parts.
type parts struct {
	all, ended int
	begun      time.Duration            // when the current part began, since the loop's start
	times      [mostParts]time.Duration // how long each ended part took
	references [mostParts]time.Duration // how long the reference before each part took
}

// partsOf returns the number of parts in a loop of n operations.
func partsOf(n int) int {
	all := n / leastPart
	if all > mostParts {
		all = mostParts
	}
	if all < 1 {
		all = 1
	}
	return all
}

// Part ends the current part, if any. If operations are left, it then times a call of
// reference for [ReferenceOperations] operations, begins the next part and returns the
// number of operations in it. When all b.N operations are done, it returns 0.
//
// A reference operation allocates and frees a C block, and allocates nothing on the Go
// heap. If [Start] was given a count function, that function must count these blocks,
// because Stop subtracts them.
func (m *Meter) Part(reference func(n int)) int {
	now := time.Since(m.start)
	p := &m.parts
	if p.all == 0 {
		p.all = partsOf(m.b.N)
	} else if p.ended < p.all {
		p.times[p.ended] = now - p.begun
		p.ended++
	}
	if p.ended == p.all {
		return 0
	}
	reference(ReferenceOperations)
	p.begun = time.Since(m.start)
	p.references[p.ended] = p.begun - now
	bound := func(i int) int64 { return int64(m.b.N) * int64(i) / int64(p.all) }
	return int(bound(p.ended+1) - bound(p.ended))
}

// operations returns the number of reference operations done.
func (p *parts) operations() int64 { return int64(p.ended) * ReferenceOperations }

// wall returns the total time of the parts, without the references.
func (p *parts) wall() (sum time.Duration) {
	for _, d := range p.times[:p.ended] {
		sum += d
	}
	return sum
}

// reference returns the trimmed mean and the minimum, over all readings, of the
// nanoseconds per reference operation.
func (p *parts) reference() (mean, least float64) {
	perOp := make([]float64, p.ended)
	for i, d := range p.references[:p.ended] {
		perOp[i] = float64(d.Nanoseconds()) / ReferenceOperations
	}
	sort.Float64s(perOp)
	return trimmedMean(perOp), perOp[0]
}

// trimmedMean returns the mean of the sorted values after removing a tenth of them,
// rounded down, from each end (6 of 64).
func trimmedMean(sorted []float64) float64 {
	cut := len(sorted) / 10
	kept := sorted[cut : len(sorted)-cut]
	sum := 0.0
	for _, v := range kept {
		sum += v
	}
	return sum / float64(len(kept))
}

// subtractReferences subtracts the references from the readings of a loop that is timed
// in parts, and reports the metrics of such a loop.
func (m *Meter) subtractReferences(wall, cpu *time.Duration, loop, drained *Blocks) {
	p := &m.parts
	if p.all == 0 {
		return
	}
	if p.ended < p.all {
		m.b.Fatal("the loop ended before Part returned 0")
	}
	mean, least := p.reference()
	*wall = p.wall()
	*cpu -= time.Duration(mean * float64(p.operations()))
	if m.counted {
		for _, blocks := range []*Blocks{loop, drained} {
			blocks.Allocated -= p.operations()
			blocks.Freed -= p.operations()
		}
	}
	m.b.ReportMetric(float64(wall.Nanoseconds())/float64(m.b.N), "ns/op")
	m.b.ReportMetric(mean, "reference-ns/op")
	m.b.ReportMetric(least, "reference-min-ns/op")
}
