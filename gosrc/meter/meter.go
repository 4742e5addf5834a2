// Package meter reads a benchmark's clocks and counters around its timed loop
// and reports them as metrics, so that a plain `go test -bench` prints what the
// measured samples record.
//
// A benchmark calls [Start] before its loop and [Meter.Stop] after it:
//
//	m := meter.Start(b, blocks)
//	for i := 0; i < b.N; i++ {
//		...
//	}
//	m.Stop()
//
// A loop is stationary if it allocates nothing on the Go heap, and if the cost of an
// operation does not depend on how many came before it. Time a stationary loop in
// slices of [SliceOperations] operations:
//
//	m := meter.Start(b, blocks)
//	for n := m.Slice(); n > 0; n = m.Slice() {
//		for i := 0; i < n; i++ {
//			...
//		}
//	}
//	m.Stop()
//
// Other load on the machine comes in bursts of milliseconds and can only slow a loop
// down. So most slices of a stationary loop are undisturbed, and a low quantile of the
// slices is the undisturbed cost of an operation. A loop that allocates on the Go heap
// has no such quantile: the garbage collector's work is part of its cost and differs
// between slices.
//
// The meter also reads the probe (see package probe) before up to 64 of the slices.
//
// Time a loop that allocates on the Go heap in parts instead: 64 equal ones, or fewer if
// it has fewer than 64 x 256 operations. The meter reads the probe before each part:
//
//	m := meter.Start(b, blocks)
//	for n := m.Part(); n > 0; n = m.Part() {
//		for i := 0; i < n; i++ {
//			...
//		}
//	}
//	m.Stop()
//
// Contention for the machine's memory slows down the loop, but does not show in the time
// that threads waited for a CPU. It does show in the probe, which runs in the same process
// at about the same time.
//
// Metrics in addition to ns/op, B/op and allocs/op:
//
//	cpu-ns/op           user and system time of the whole process, all threads
//	settled-ns/op       wall time of the loop and of the drain after it
//	settled-cpu-ns/op   CPU time of the loop and of the drain after it
//	gc-cycles           GC cycles completed during the loop
//	faults              minor page faults during the loop
//	peak-rss-bytes      peak resident set size of the program so far
//	c-allocated         C blocks allocated by the loop
//	c-freed             C blocks freed by the end of the loop
//	c-unfreed-loop      C blocks still held when the loop ended
//	c-unfreed-drained   C blocks still held after the drain
//	c-misfreed          frees of a block that was not allocated at the time
//	run-delay-share     time that threads waited for a CPU, over the loop's wall time
//
// run-delay-share adds up the waiting times of all threads, so it can exceed 1. It counts
// only the time when a thread was runnable and the kernel ran something else; see package
// rundelay. A thread that starts during the loop counts from zero. The waiting time of a
// thread that ends during the loop is lost. The metric is missing where the kernel does
// not count this time.
//
// Additional metrics of a loop in slices:
//
//	slices              number of slices, including a shorter last one
//	slices-ns/op        wall time of all slices together; agrees with ns/op
//	slice-min-ns/op     wall time per operation of the fastest slice
//	slice-p01-ns/op     1st percentile of the slices' wall time per operation
//	slice-p05-ns/op     5th percentile
//	slice-p10-ns/op     10th percentile
//	slice-p25-ns/op     25th percentile
//	slice-p50-ns/op     median
//
// The minimum and the percentiles exclude a last slice that is shorter than the others,
// unless it is the only one. A percentile that falls between two slices is interpolated
// linearly. If the environment variable GCCOST_SLICES names a file, Stop writes the wall
// time per operation of every slice to it, in nanoseconds, one slice per line in the order
// of the loop. Each run of a benchmark overwrites the file.
//
// Additional metric of a loop in slices or in parts, and of one that calls [Meter.Probe]:
//
//	probe-ns/op         wall time per load of the probe: the mean of all readings
//
// The other metrics of such a loop treat the probe as follows. ns/op and settled-ns/op do
// not include its wall time. The meter subtracts the same time from cpu-ns/op and
// settled-cpu-ns/op; this is an estimate, because the process's CPU clock does not
// distinguish threads. The work of the GC and of finalizers on other threads while the probe
// is read counts as CPU time, but not as wall time. gc-cycles, faults and run-delay-share
// include the probe, which allocates nothing. peak-rss-bytes includes its 4 MiB.
//
// The drain runs GC cycles until every block is freed or until they free no more blocks.
// So the settled times include the work that the loop left behind. Without the drain, a
// variant that frees late would be compared with one that has already freed.
package meter

import (
	"runtime"
	"testing"
	"time"

	"gccost/probe"
	"gccost/rundelay"
)

// Blocks counts the C blocks allocated and freed since the process started.
type Blocks struct {
	Allocated int64
	Freed     int64
	Misfreed  int64 // frees of a block that was not allocated at the time
}

func (b Blocks) held() int64 { return b.Allocated - b.Freed }

// Meter holds the readings taken at the start of a timed loop.
type Meter struct {
	b      *testing.B
	count  func() Blocks
	blocks Blocks
	delays rundelay.Reading
	mem    runtime.MemStats
	usage  usage
	start  time.Time
	slices slices
	parts  parts
	probe  probe.Probe
}

// Start resets b's timer and takes the readings of the loop's start.
// A nil count means that the benchmark allocates no C blocks.
func Start(b *testing.B, count func() Blocks) *Meter {
	if count == nil {
		count = func() Blocks { return Blocks{} }
	}
	m := &Meter{b: b, count: count, blocks: count()}
	b.ReportAllocs()
	m.begin()
	return m
}

// begin resets the timer and takes the readings of the loop's start, the clock's last.
func (m *Meter) begin() {
	m.delays = rundelay.Read()
	runtime.ReadMemStats(&m.mem)
	m.b.ResetTimer()
	m.usage = readUsage()
	m.start = time.Now()
}

// Stop stops b's timer, takes the readings of the loop's end, drains, and
// reports the metrics.
func (m *Meter) Stop() {
	wall := time.Since(m.start)
	usage, loop := readUsage(), m.count()
	m.b.StopTimer()
	delayed, delaysKnown := rundelay.Read().Since(m.delays)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)

	// The readings above are not part of the drain's cost.
	drainStart, drainUsage := time.Now(), readUsage()
	drained := m.drain()
	drainWall, drainCPU := time.Since(drainStart), readUsage().cpu-drainUsage.cpu

	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(m.b.N) }
	cpu := usage.cpu - m.usage.cpu
	report := m.b.ReportMetric
	if delaysKnown {
		report(delayed.Seconds()/wall.Seconds(), "run-delay-share")
	}
	m.subtractProbe(&wall, &cpu)
	report(per(cpu), "cpu-ns/op")
	report(per(wall+drainWall), "settled-ns/op")
	report(per(cpu+drainCPU), "settled-cpu-ns/op")
	report(float64(mem.NumGC-m.mem.NumGC), "gc-cycles")
	report(float64(usage.faults-m.usage.faults), "faults")
	report(float64(peakRSS()), "peak-rss-bytes")
	report(float64(loop.Allocated-m.blocks.Allocated), "c-allocated")
	report(float64(loop.Freed-m.blocks.Freed), "c-freed")
	report(float64(loop.held()-m.blocks.held()), "c-unfreed-loop")
	report(float64(drained.held()-m.blocks.held()), "c-unfreed-drained")
	report(float64(drained.Misfreed-m.blocks.Misfreed), "c-misfreed")
	m.reportSlices()
}

// fruitless is the number of GC cycles in a row that free nothing after which a drain
// gives up. An object with a finalizer needs two cycles to be reclaimed, and stock Go
// occasionally leaves a cleanup for a later cycle.
const fruitless = 3

// drain runs GC cycles until every block is freed or fruitless cycles in a row free none.
func (m *Meter) drain() Blocks {
	blocks := m.count()
	for idle := 0; blocks.held() > m.blocks.held() && idle < fruitless; {
		before := blocks
		collectAndRunQueues()
		if blocks = m.count(); blocks.Freed == before.Freed {
			idle++
		} else {
			idle = 0
		}
	}
	return blocks
}

// sentinels are functions that each allocate an object with a finalizer, or with a
// cleanup where the release has them, which closes done when it runs.
var sentinels = []func(done chan struct{}){
	func(done chan struct{}) {
		runtime.SetFinalizer(&sentinel{done}, func(s *sentinel) { close(s.done) })
	},
}

// sentinel contains a pointer to keep it out of the tiny allocator, which would batch it
// with objects that may stay alive.
type sentinel struct{ done chan struct{} }

// collectAndRunQueues runs GC cycles until a finalizer and a cleanup that it registers have
// run. Others queued by the same cycle may still run after them, because neither queue is
// ordered. The drain therefore repeats the call until the cycles free nothing more.
func collectAndRunQueues() {
	waiting := make([]chan struct{}, len(sentinels))
	for i, arm := range sentinels {
		waiting[i] = make(chan struct{})
		arm(waiting[i])
	}
	for {
		runtime.GC()
		again := time.After(100 * time.Millisecond)
		for len(waiting) > 0 {
			select {
			case <-waiting[0]:
				waiting = waiting[1:]
				continue
			case <-again:
				// A stale copy of a pointer to the sentinel may have kept it alive.
			}
			break
		}
		if len(waiting) == 0 {
			return
		}
	}
}
