package cycles

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sort"
	"testing"
	"time"
	"unsafe"

	"gccost/meter"
)

var lives = []int{10_000, 100_000, 1_000_000, 10_000_000}

const steps = 8

// trial reports whether this is the run of one operation that package testing begins with.
// It needs no large setup.
func trial(b *testing.B) bool { return b.N == 1 }

func ignore(*handle) {}

// A func variable would be called through a closure in the loop.
var finalizer interface{} = ignore

func finalized(h *handle) { runtime.SetFinalizer(h, finalizer) }

func plain(*handle) {}

// cycle allocates b.N handles and registers them in equal steps. Before the first step and
// after each step it runs GC cycles, more of them the fewer handles there are. It reports
//
//	at-N-records-ns   minimum CPU time of a cycle when N handles are registered
//	mark-ns/special   marking time that a record adds: the slope of a straight line
//	sweep-ns/special  sweeping time that a record adds, likewise
//	rss-bytes/special memory that a record adds to the resident set, where it is known
//
// All handles are live throughout, so only what is registered differs between the steps: the
// records, and for cleanups and weak pointers the objects that come with them on the heap.
// The time per operation includes everything and means nothing by itself.
func cycle(b *testing.B, register func(*handle)) {
	for _, live := range lives {
		live := live
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			if b.N > live {
				b.Skipf("there are only %[2]d handles for %[1]d operations", b.N, live)
			}
			if trial(b) {
				return
			}
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			handles := allocate(b.N)
			cycles := 3_000_000 / b.N
			if cycles > 10 {
				cycles = 10
			}
			collect() // clean up after the allocations
			var records, mark, sweep []float64
			var before, after int
			known := false
			m := meter.Start(b, nil)
			for step := 0; step <= steps; step++ {
				at := b.N * step / steps
				if step > 0 {
					backwards(handles[b.N-at:b.N-int(records[step-1])], register)
				}
				took := least(cycles)
				records = append(records, float64(at))
				mark = append(mark, float64(took.mark))
				sweep = append(sweep, float64(took.sweep))
				if after, known = residentBytes(); step == 0 {
					before = after
				}
			}
			m.Stop()
			for i, at := range records {
				b.ReportMetric(mark[i]+sweep[i], fmt.Sprintf("at-%.0f-records-ns", at))
			}
			b.ReportMetric(slope(records, mark), "mark-ns/special")
			b.ReportMetric(slope(records, sweep), "sweep-ns/special")
			if known && after > before {
				b.ReportMetric(float64(after-before)/float64(b.N), "rss-bytes/special")
			}
			runtime.KeepAlive(handles)
		})
	}
}

// BenchmarkCycleFinalizer times GC cycles by the number of live finalizers.
func BenchmarkCycleFinalizer(b *testing.B) { cycle(b, finalized) }

// kilobyte is what an operation allocates. It is large enough that GC cycles run during the
// loop, and small enough that allocating it takes no lock.
type kilobyte [1024]byte

// kept makes a kilobyte escape to the heap.
var kept *kilobyte

// tail allocates and registers handles that stay live, in several numbers. For each number
// it times, one by one and with the GC on, operations that allocate a kilobyte, and reports
//
//	op-p50-ns, op-p99-ns, op-p99.9-ns, op-max-ns  percentiles of the time of an operation
//	pause-max-ns                                  longest stop-the-world pause of the GC
func tail(b *testing.B, register func(*handle)) {
	for _, live := range lives[1:] {
		live := live
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			if trial(b) {
				return
			}
			before := debug.SetGCPercent(-1)
			handles := allocate(live)
			backwards(handles, register)
			debug.SetGCPercent(before)
			times := make([]uint32, b.N)
			runtime.GC()
			var start, end runtime.MemStats
			runtime.ReadMemStats(&start)
			m := meter.Start(b, nil)
			last := time.Now()
			for i := range times {
				kept = new(kilobyte)
				now := time.Now()
				times[i] = uint32(now.Sub(last))
				last = now
			}
			m.Stop()
			runtime.ReadMemStats(&end)
			sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
			for _, shown := range []struct {
				part float64
				unit string
			}{{0.5, "op-p50-ns"}, {0.99, "op-p99-ns"}, {0.999, "op-p99.9-ns"}, {1, "op-max-ns"}} {
				b.ReportMetric(float64(times[int(shown.part*float64(b.N-1))]), shown.unit)
			}
			b.ReportMetric(longest(end.PauseNs[:], start.NumGC, end.NumGC), "pause-max-ns")
			runtime.KeepAlive(handles)
		})
	}
}

// longest returns the longest pause in the cycles after from up to and including to, as far
// as the ring buffer still holds them.
func longest(ring []uint64, from, to uint32) float64 {
	most := uint64(0)
	for n := to; n > from && to-n < uint32(len(ring)); n-- {
		if pause := ring[(n+uint32(len(ring))-1)%uint32(len(ring))]; pause > most {
			most = pause
		}
	}
	return float64(most)
}

// BenchmarkTailPlain times operations in a heap with live handles without records.
func BenchmarkTailPlain(b *testing.B) { tail(b, plain) }

// BenchmarkTailFinalizer times operations in a heap with live finalizers.
func BenchmarkTailFinalizer(b *testing.B) { tail(b, finalized) }

// --- Tests ----------------------------------------------------------------------------

func TestSlope(t *testing.T) {
	if got := slope([]float64{0, 1, 2, 3}, []float64{5, 7, 9, 11}); math.Abs(got-2) > 1e-12 {
		t.Errorf("the slope is %v, want 2", got)
	}
	if got := slope([]float64{0, 1}, []float64{3, 2}); got != 0 {
		t.Errorf("the slope of a falling line is %v, want 0", got)
	}
}

func TestLongest(t *testing.T) {
	ring := []uint64{9, 3, 4, 2} // pauses of the cycles 1 to 4, or 5 to 8
	for _, c := range []struct {
		from, to uint32
		want     float64
	}{{0, 0, 0}, {0, 2, 9}, {1, 4, 4}, {5, 7, 4}, {0, 6, 9}, {6, 8, 4}} {
		if got := longest(ring, c.from, c.to); got != c.want {
			t.Errorf("the longest pause after cycle %d up to %d is %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// TestBackwardsDescends tests that handles are registered in order of descending addresses,
// except for the few that fill gaps in the heap. Such registrations need no walk.
func TestBackwardsDescends(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var seen []*handle
	backwards(allocate(10_000), func(h *handle) { seen = append(seen, h) })
	descents := 0
	for i := 1; i < len(seen); i++ {
		if uintptr(unsafe.Pointer(seen[i])) < uintptr(unsafe.Pointer(seen[i-1])) {
			descents++
		}
	}
	if descents < 9_900 {
		t.Errorf("only %d of %d handles have a lower address than the one before", descents, len(seen)-1)
	}
}

// TestPhases tests that both phases take time, together at most what the process used.
func TestPhases(t *testing.T) {
	start := cpuTime()
	took := least(3)
	if all := cpuTime() - start; took.mark <= 0 || took.sweep <= 0 || took.all() > all {
		t.Errorf("marking took %v and sweeping %v, the process %v", took.mark, took.sweep, all)
	}
}

// TestFinalizersSlowACycle tests that the cost of live finalizers in a cycle is measurable.
func TestFinalizersSlowACycle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	handles := allocate(200_000)
	before := least(5)
	backwards(handles, finalized)
	after := least(5)
	if after.all() <= before.all() {
		t.Errorf("a cycle takes %v with finalizers and %v without", after.all(), before.all())
	}
	runtime.KeepAlive(handles)
}
