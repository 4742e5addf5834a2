package meter

import (
	"flag"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"gccost/rundelay"
	"gccost/usage"
)

// held is a Go object in place of a C block; its finalizer counts it as freed.
type held struct{ p *int }

func TestDrainFreesWhatTheLoopLeft(t *testing.T) {
	const n = 1000
	var freed int64
	count := func() Blocks { return Blocks{Allocated: n, Freed: atomic.LoadInt64(&freed)} }
	for i := 0; i < n; i++ {
		runtime.SetFinalizer(&held{new(int)}, func(*held) { atomic.AddInt64(&freed, 1) })
	}
	m := &Meter{count: count}
	if left := m.drain().held(); left > 1 { // this stack may still refer to one
		t.Errorf("%d of %d objects were not freed by the drain", left, n)
	}
}

func TestDrainGivesUpOnALeak(t *testing.T) {
	calls := 0
	m := &Meter{count: func() Blocks { calls++; return Blocks{Allocated: 1} }}
	if left := m.drain().held(); left != 1 {
		t.Errorf("%d blocks held after one leaked, want 1", left)
	}
	if want := 1 + fruitless; calls != want {
		t.Errorf("the drain counted %d times, want %d: once and after each fruitless cycle", calls, want)
	}
}

func TestDrainWithNothingToFreeDoesNotCollect(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	(&Meter{count: func() Blocks { return Blocks{Allocated: 5, Freed: 5} }}).drain()
	runtime.ReadMemStats(&after)
	if after.NumGC != before.NumGC {
		t.Error("the drain ran a GC cycle although no block was held")
	}
}

// benchmarkTimes runs a benchmark with b.N = n.
func benchmarkTimes(t *testing.T, n int, benchmark func(*testing.B)) testing.BenchmarkResult {
	set := flag.Lookup("test.benchtime").Value
	before := set.String()
	defer set.Set(before)
	if err := set.Set(fmt.Sprintf("%dx", n)); err != nil {
		t.Fatal(err)
	}
	r := testing.Benchmark(benchmark)
	if r.N != n {
		t.Fatalf("the benchmark did %d operations, want %d", r.N, n)
	}
	return r
}

// TestRunDelayIsReported tests that a loop reports run-delay-share, where the system has the
// counters, and that the share is plausible.
func TestRunDelayIsReported(t *testing.T) {
	if rundelay.Read() == nil {
		t.Skip("this system does not count how long threads wait for a CPU")
	}
	share, reported := benchmarkTimes(t, 1_000_000, loop).Extra["run-delay-share"]
	if !reported || share < 0 || share > 1000 {
		t.Errorf("run-delay-share is %v (reported: %v)", share, reported)
	}
}

// TestTimesAreThoseOfTheLoop tests that the CPU time is the process's own, and that without a
// drain the settled time is that of the loop.
func TestTimesAreThoseOfTheLoop(t *testing.T) {
	before := usage.Read().CPU
	r := benchmarkTimes(t, 10_000_000, loop)
	most := float64((usage.Read().CPU - before).Nanoseconds()) / float64(r.N)
	if cpu := r.Extra["cpu-ns/op"]; cpu <= 0 || cpu > most {
		t.Errorf("cpu-ns/op is %v, but the process used %v ns per operation", cpu, most)
	}
	printed := float64(r.T.Nanoseconds()) / float64(r.N)
	if settled := r.Extra["settled-ns/op"]; settled < printed/2 || settled > 2*printed {
		t.Errorf("settled-ns/op is %v, but an operation took %v ns and left nothing", settled, printed)
	}
}

var sink int

func loop(b *testing.B) {
	m := Start(b, nil)
	for i := 0; i < b.N; i++ {
		sink += i & (i >> 1)
	}
	m.Stop()
}
