package meter

import (
	"sort"
	"time"
)

// A loop in parts has at most mostParts of them. Each has leastPart operations or more,
// unless it is the only one.
const (
	mostParts = 64
	leastPart = 256
)

// ReferenceOperations is how many reference operations are timed before each part:
// some 100 microseconds of manual frees, long enough for the clock, and together a few
// hundredths of a loop of five million operations with a finalizer.
const ReferenceOperations = 2000

// parts are the parts of a loop; without one, all is 0.
type parts struct {
	all, ended int
	begun      time.Duration            // of the part in progress, since the loop's start
	times      [mostParts]time.Duration // of the parts that have ended
	references [mostParts]time.Duration // of the reading before each part
}

// partsOf returns how many parts a loop of n operations has.
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

// Part ends the part in progress, if there is one, has reference do
// [ReferenceOperations] operations and times them, begins the next part, and returns
// how many operations that has: 0 when all b.N are done.
//
// A reference operation allocates a C block and frees it by hand, and allocates nothing
// on the Go heap. The function that was given to [Start], if any, must count the block:
// Stop subtracts it.
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

// operations returns how many reference operations were done.
func (p *parts) operations() int64 { return int64(p.ended) * ReferenceOperations }

// wall returns the time of all parts, without the references.
func (p *parts) wall() (sum time.Duration) {
	for _, d := range p.times[:p.ended] {
		sum += d
	}
	return sum
}

// reference returns the nanoseconds of a reference operation, from all readings: their
// trimmed mean and their minimum.
func (p *parts) reference() (mean, least float64) {
	perOp := make([]float64, p.ended)
	for i, d := range p.references[:p.ended] {
		perOp[i] = float64(d.Nanoseconds()) / ReferenceOperations
	}
	sort.Float64s(perOp)
	return trimmedMean(perOp), perOp[0]
}

// trimmedMean returns the mean of the sorted values without a tenth of them, rounded
// down, at each end: 6 of 64.
func trimmedMean(sorted []float64) float64 {
	cut := len(sorted) / 10
	kept := sorted[cut : len(sorted)-cut]
	sum := 0.0
	for _, v := range kept {
		sum += v
	}
	return sum / float64(len(kept))
}

// cutReferences takes the references of a loop in parts out of what the loop used, and
// reports the metrics of such a loop.
func (m *Meter) cutReferences(wall, cpu *time.Duration, loop, drained *Blocks) {
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
