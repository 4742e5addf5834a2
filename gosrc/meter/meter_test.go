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

// held is a Go object that stands for a C block: its finalizer counts it freed.
type held struct{ p *int }

func TestDrainFreesWhatTheLoopLeft(t *testing.T) {
	const n = 1000
	var freed int64
	count := func() Blocks { return Blocks{Allocated: n, Freed: atomic.LoadInt64(&freed)} }
	for i := 0; i < n; i++ {
		runtime.SetFinalizer(&held{new(int)}, func(*held) { atomic.AddInt64(&freed, 1) })
	}
	m := &Meter{count: count}
	if left := m.drain().held(); left > 1 { // one may still stand on this stack
		t.Errorf("%d of %d objects are not freed after the drain", left, n)
	}
}

func TestDrainGivesUpOnALeak(t *testing.T) {
	calls := 0
	m := &Meter{count: func() Blocks { calls++; return Blocks{Allocated: 1} }}
	if left := m.drain().held(); left != 1 {
		t.Errorf("a leaked block counts as %d held, want 1", left)
	}
	if want := 1 + fruitless; calls != want {
		t.Errorf("the drain looked %d times, want %d: once and after each fruitless cycle", calls, want)
	}
}

func TestDrainLeavesNothingToDoAlone(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	(&Meter{count: func() Blocks { return Blocks{Allocated: 5, Freed: 5} }}).drain()
	runtime.ReadMemStats(&after)
	if after.NumGC != before.NumGC {
		t.Error("a drain with nothing to free collected")
	}
}

func TestUsageCountsCPUAndMemory(t *testing.T) {
	before := readUsage()
	for start := time.Now(); readUsage().cpu == before.cpu; {
		if time.Since(start) > time.Minute {
			t.Fatal("a minute's spinning shows no CPU time")
		}
	}
	if rss := peakRSS(); rss < 1<<20 || rss > 1<<40 {
		t.Errorf("peak resident set of %d bytes: wrong unit?", rss)
	}
}

// TestPeakRSSIsTheProgramsOwn starts this binary from a parent that is large: the
// child must not be given its parent's peak.
func TestPeakRSSIsTheProgramsOwn(t *testing.T) {
	if os.Getenv("GCCOST_PRINT_RSS") != "" {
		fmt.Printf("peak=%d\n", peakRSS())
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("getrusage is all there is here")
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
		t.Errorf("the child's peak is %d bytes, its parent's %d", peak, peakRSS())
	}
}

// benchmarkTimes runs a benchmark with a b.N of n.
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

// TestRunDelayIsToldOfEveryLoop: it is there where the system has it, in slices or not,
// and no more than all threads could have waited.
func TestRunDelayIsToldOfEveryLoop(t *testing.T) {
	if rundelay.Read() == nil {
		t.Skip("this system does not tell how long threads waited for a CPU")
	}
	for name, loop := range map[string]func(*testing.B){"whole": inOnePiece, "slices": inSlices} {
		share, told := benchmarkTimes(t, 1_000_000, loop).Extra["run-delay-share"]
		if !told || share < 0 || share > 1000 {
			t.Errorf("%s: the threads waited %v times the loop's wall time, told %v", name, share, told)
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
