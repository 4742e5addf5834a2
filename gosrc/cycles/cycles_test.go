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

// trial tells whether this is the run of one operation that testing begins with,
// for which nothing large need be made ready.
func trial(b *testing.B) bool { return b.N == 1 }

func ignore(*handle) {}

// A func variable would be called through a closure in the loop.
var finalizer interface{} = ignore

func finalized(h *handle) { runtime.SetFinalizer(h, finalizer) }

func plain(*handle) {}

// cycle allocates b.N handles and registers them in equal steps. Before the first step and
// after each it runs GC cycles, the more the fewer handles there are, and reports
//
//	at-N-records-ns   CPU time of a cycle when N handles are registered: the least
//	mark-ns/special   what each one more adds to marking: the slope of a straight line
//	sweep-ns/special  the same of sweeping
//	rss-bytes/special what each adds to the resident set, where the system tells it
//
// All handles live all the time, so that only the records differ between the steps. The
// time per operation is that of everything, and means nothing by itself.
func cycle(b *testing.B, register func(*handle)) {
	for _, live := range lives {
		live := live
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			if b.N > live {
				b.Skipf("%d operations on %d handles", b.N, live)
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
			collect() // what the allocations left
			var records, mark, sweep []float64
			var before, after int
			told := false
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
				if after, told = residentBytes(); step == 0 {
					before = after
				}
			}
			m.Stop()
			for i, at := range records {
				b.ReportMetric(mark[i]+sweep[i], fmt.Sprintf("at-%.0f-records-ns", at))
			}
			b.ReportMetric(slope(records, mark), "mark-ns/special")
			b.ReportMetric(slope(records, sweep), "sweep-ns/special")
			if told && after > before {
				b.ReportMetric(float64(after-before)/float64(b.N), "rss-bytes/special")
			}
			runtime.KeepAlive(handles)
		})
	}
}

// BenchmarkCycleFinalizer times GC cycles by the number of live finalizers.
func BenchmarkCycleFinalizer(b *testing.B) { cycle(b, finalized) }

// kilobyte is what an operation allocates: large enough that the collector runs now and
// then, small enough that allocating it takes no lock.
type kilobyte [1024]byte

// kept makes what an operation allocates escape to the heap.
var kept *kilobyte

// tail registers as many handles as are to live, times operations that allocate a kilobyte,
// each by itself, while the collector runs when it must, and reports the slowest:
//
//	op-p50-ns, op-p99-ns, op-p99.9-ns, op-max-ns  of an operation
//	pause-max-ns                                  the longest that a GC cycle stopped the world
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

// longest is the longest pause of the cycles after `from` up to `to`, of which the ring
// holds the newest.
func longest(ring []uint64, from, to uint32) float64 {
	most := uint64(0)
	for n := to; n > from && to-n < uint32(len(ring)); n-- {
		if pause := ring[(n+uint32(len(ring))-1)%uint32(len(ring))]; pause > most {
			most = pause
		}
	}
	return float64(most)
}

// BenchmarkTailPlain times operations beside as many live handles without records.
func BenchmarkTailPlain(b *testing.B) { tail(b, plain) }

// BenchmarkTailFinalizer times operations beside live finalizers.
func BenchmarkTailFinalizer(b *testing.B) { tail(b, finalized) }

// --- Tests ----------------------------------------------------------------------------

func TestSlope(t *testing.T) {
	if got := slope([]float64{0, 1, 2, 3}, []float64{5, 7, 9, 11}); math.Abs(got-2) > 1e-12 {
		t.Errorf("the slope is %v, want 2", got)
	}
	if got := slope([]float64{0, 1}, []float64{3, 2}); got != 0 {
		t.Errorf("a falling line has the slope %v, want 0", got)
	}
}

func TestLongest(t *testing.T) {
	ring := []uint64{9, 3, 4, 2} // of the cycles 1 to 4, or 5 to 8
	for _, c := range []struct {
		from, to uint32
		want     float64
	}{{0, 0, 0}, {0, 2, 9}, {1, 4, 4}, {5, 7, 4}, {0, 6, 9}, {6, 8, 4}} {
		if got := longest(ring, c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// TestBackwardsAscends: handles have ascending addresses, but for a few that fill gaps, so
// that registering them backwards needs no walk.
func TestBackwardsAscends(t *testing.T) {
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
		t.Errorf("%d of %d handles lie below the one before", descents, len(seen)-1)
	}
}

// TestPhases: a cycle has both, and they add up to no more than the process used.
func TestPhases(t *testing.T) {
	start := cpuTime()
	took := least(3)
	if all := cpuTime() - start; took.mark <= 0 || took.sweep <= 0 || took.all() > all {
		t.Errorf("mark %v and sweep %v of %v", took.mark, took.sweep, all)
	}
}

// TestRecordsCost: what finalizers cost a cycle is seen.
func TestRecordsCost(t *testing.T) {
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
