package meter

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gccost/rundelay"
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

func TestUsageCountsCPUAndMemory(t *testing.T) {
	before := readUsage()
	for start := time.Now(); readUsage().cpu == before.cpu; {
		if time.Since(start) > time.Minute {
			t.Fatal("no CPU time was counted in a minute of spinning")
		}
	}
	if rss := peakRSS(); rss < 1<<20 || rss > 1<<40 {
		t.Errorf("the peak resident set size is %d bytes: is the unit wrong?", rss)
	}
}

// TestPeakRSSIsTheProgramsOwn starts this binary from a large parent process and tests that
// the child does not report its parent's peak.
func TestPeakRSSIsTheProgramsOwn(t *testing.T) {
	if os.Getenv("GCCOST_PRINT_RSS") != "" {
		fmt.Printf("peak=%d\n", peakRSS())
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc/self/status; getrusage may return the parent's peak")
	}
	const large = 300 << 20
	block := make([]byte, large)
	for i := 0; i < large; i += 4096 {
		block[i] = 1
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPeakRSSIsTheProgramsOwn$", "-test.v")
	child.Env = append(os.Environ(), "GCCOST_PRINT_RSS=1")
	out, err := child.Output()
	runtime.KeepAlive(block)
	if err != nil {
		t.Fatal(err)
	}
	var peak int64
	if _, err := fmt.Sscanf(string(out[bytes.Index(out, []byte("peak=")):]), "peak=%d", &peak); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if peak >= large/2 || peakRSS() < large {
		t.Errorf("the child reports a peak of %d bytes, its parent %d", peak, peakRSS())
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

// TestRunDelayIsReported tests that every loop reports run-delay-share, where the system has
// the counters, and that the share is plausible.
func TestRunDelayIsReported(t *testing.T) {
	if rundelay.Read() == nil {
		t.Skip("this system does not count how long threads wait for a CPU")
	}
	for name, loop := range map[string]func(*testing.B){"whole": inOnePiece, "slices": inSlices} {
		share, reported := benchmarkTimes(t, 1_000_000, loop).Extra["run-delay-share"]
		if !reported || share < 0 || share > 1000 {
			t.Errorf("%s: run-delay-share is %v (reported: %v)", name, share, reported)
		}
	}
}

var sink int

func operation(i int) { sink += i & (i >> 1) }

func inOnePiece(b *testing.B) {
	m := Start(b, nil)
	for i := 0; i < b.N; i++ {
		operation(i)
	}
	m.Stop()
}

func inSlices(b *testing.B) {
	m := Start(b, nil)
	for n := m.Slice(); n > 0; n = m.Slice() {
		for i := 0; i < n; i++ {
			operation(i)
		}
	}
	m.Stop()
}
