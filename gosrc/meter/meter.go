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
// The drain runs GC cycles until every block is freed or until they free no more blocks.
// So the settled times include the work that the loop left behind. Without the drain, a
// variant that frees late would be compared with one that has already freed.
package meter

import (
	"runtime"
	"testing"
	"time"

	"gccost/rundelay"
	"gccost/usage"
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
	usage  usage.Usage
	start  time.Time
}

// Start resets b's timer and takes the readings of the loop's start.
// A nil count means that the benchmark allocates no C blocks.
func Start(b *testing.B, count func() Blocks) *Meter {
	if count == nil {
		count = func() Blocks { return Blocks{} }
	}
	m := &Meter{b: b, count: count, blocks: count(), delays: rundelay.Read()}
	b.ReportAllocs()
	runtime.ReadMemStats(&m.mem)
	b.ResetTimer()
	m.usage = usage.Read()
	m.start = time.Now()
	return m
}

// Stop stops b's timer, takes the readings of the loop's end, drains, and
// reports the metrics.
func (m *Meter) Stop() {
	wall := time.Since(m.start)
	used, loop := usage.Read(), m.count()
	m.b.StopTimer()
	delayed, delaysKnown := rundelay.Read().Since(m.delays)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)

	// The readings above are not part of the drain's cost.
	drainStart, drainUsage := time.Now(), usage.Read()
	drained := m.drain()
	drainWall, drainCPU := time.Since(drainStart), usage.Read().CPU-drainUsage.CPU

	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(m.b.N) }
	cpu := used.CPU - m.usage.CPU
	report := m.b.ReportMetric
	if delaysKnown {
		report(delayed.Seconds()/wall.Seconds(), "run-delay-share")
	}
	report(per(cpu), "cpu-ns/op")
	report(per(wall+drainWall), "settled-ns/op")
	report(per(cpu+drainCPU), "settled-cpu-ns/op")
	report(float64(mem.NumGC-m.mem.NumGC), "gc-cycles")
	report(float64(used.Faults-m.usage.Faults), "faults")
	report(float64(usage.PeakRSS()), "peak-rss-bytes")
	report(float64(loop.Allocated-m.blocks.Allocated), "c-allocated")
	report(float64(loop.Freed-m.blocks.Freed), "c-freed")
	report(float64(loop.held()-m.blocks.held()), "c-unfreed-loop")
	report(float64(drained.held()-m.blocks.held()), "c-unfreed-drained")
	report(float64(drained.Misfreed-m.blocks.Misfreed), "c-misfreed")
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
