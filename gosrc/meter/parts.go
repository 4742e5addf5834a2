package meter

import "time"

// A loop has at most mostParts parts. Each has at least leastPart operations, unless it
// is the only one.
const (
	mostParts = 64
	leastPart = 256
)

// parts counts the parts of a loop; all is 0 if the loop is not divided into parts.
type parts struct{ all, begun int }

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

// Part reads the probe and returns the number of operations in the next part, or 0 when
// all b.N operations are done.
func (m *Meter) Part() int {
	p := &m.parts
	if p.all == 0 {
		p.all = partsOf(m.b.N)
	}
	if p.begun <= p.all {
		p.begun++
	}
	if p.begun > p.all {
		return 0
	}
	m.Probe()
	bound := func(i int) int64 { return int64(m.b.N) * int64(i) / int64(p.all) }
	return int(bound(p.begun) - bound(p.begun-1))
}

// Probe reads the probe, as [Meter.Part] does. It is for loops that have parts of their own.
func (m *Meter) Probe() { m.probe.Read() }

// subtractProbe subtracts the probe from the readings of a loop, and reports the metrics of
// a loop that has read it.
func (m *Meter) subtractProbe(wall, cpu *time.Duration) {
	if m.parts.begun <= m.parts.all && m.parts.all > 0 {
		m.b.Fatal("the loop ended before Part returned 0")
	}
	perLoad, read := m.probe.PerLoad()
	if !read {
		return
	}
	*wall -= m.probe.Total
	*cpu -= m.probe.Total
	m.b.ReportMetric(float64(wall.Nanoseconds())/float64(m.b.N), "ns/op")
	m.b.ReportMetric(perLoad, "probe-ns/op")
}
