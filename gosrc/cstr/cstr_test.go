package cstr

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"gccost/meter"
	"gccost/rundelay"
)

// TestMain sets a short benchtime for the tests below, which call
// testing.Benchmark. A run with -bench keeps its benchtime.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "200000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func BenchmarkAllocateFree(b *testing.B) {
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		p := Allocate()
		Free(p)
	}
	m.Stop()
}

func BenchmarkAllocateDefer(b *testing.B) {
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		AllocateDefer()
	}
	m.Stop()
}

func BenchmarkAllocateHeapFree(b *testing.B) {
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		p := AllocateHeap()
		FreeHeap(p)
	}
	m.Stop()
}

func BenchmarkAllocateAuto(b *testing.B) {
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		AllocateAuto()
	}
	m.Stop()
}

// laps is the number of parts of the loop that BenchmarkAllocateAutoLaps times.
const laps = 16

// BenchmarkAllocateAutoLaps is BenchmarkAllocateAuto that also reports the time
// per operation of each sixteenth of the loop, as lap01-ns/op to lap16-ns/op.
func BenchmarkAllocateAutoLaps(b *testing.B) {
	var ends [laps]time.Duration
	m := meter.Start(b, Count)
	start := time.Now()
	for lap := 0; lap < laps; lap++ {
		for i := b.N * lap / laps; i < b.N*(lap+1)/laps; i++ {
			AllocateAuto()
		}
		ends[lap] = time.Since(start)
	}
	m.Stop()
	for lap, before := 0, time.Duration(0); lap < laps; lap++ {
		n := b.N*(lap+1)/laps - b.N*lap/laps
		if n > 0 {
			b.ReportMetric(float64((ends[lap]-before).Nanoseconds())/float64(n), fmt.Sprintf("lap%02d-ns/op", lap+1))
		}
		before = ends[lap]
	}
}

// leakable is how many blocks BenchmarkAllocateDummy may leak, together half a gigabyte.
const leakable = 5_000_000

func BenchmarkAllocateDummy(b *testing.B) {
	if b.N > leakable {
		b.Skipf("%d operations would leak %[1]d C blocks: use -benchtime=%dx or less", b.N, leakable)
	}
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		AllocateDummy()
	}
	m.Stop()
}

// variant is a benchmark and what it must do.
type variant struct {
	benchmark func(*testing.B)
	allocs    []int64 // Go allocations per operation; several values where releases differ
	leaks     bool    // by design
}

var variants = map[string]variant{
	"AllocateFree":     {benchmark: BenchmarkAllocateFree, allocs: []int64{0}},
	"AllocateDefer":    {benchmark: BenchmarkAllocateDefer, allocs: []int64{0}},
	"AllocateHeapFree": {benchmark: BenchmarkAllocateHeapFree, allocs: []int64{1}},
	"AllocateAuto":     {benchmark: BenchmarkAllocateAuto, allocs: []int64{1}},
	"AllocateDummy":    {benchmark: BenchmarkAllocateDummy, allocs: []int64{1}, leaks: true},
}

// tolerance is how many blocks may be unfreed after a drain: stock Go occasionally
// does not run a cleanup, and the stack may still refer to the last handle.
const tolerance = 8

// TestVariants tests that every benchmark allocates one C block per operation,
// frees each once (except in the variant that leaks by design), and makes the
// expected number of Go allocations. It would detect that the compiler removed an
// operation.
func TestVariants(t *testing.T) {
	for name, v := range variants {
		v := v
		t.Run(name, func(t *testing.T) {
			r := testing.Benchmark(v.benchmark)
			if got := int64(r.Extra["c-allocated"]); got != int64(r.N) {
				t.Errorf("%d C blocks in %d operations, want one per operation", got, r.N)
			}
			known := false
			for _, allocs := range v.allocs {
				known = known || allocs == r.AllocsPerOp()
			}
			if !known {
				t.Errorf("%d Go allocations per operation, want %d", r.AllocsPerOp(), v.allocs)
			}
			if got := r.Extra["c-misfreed"]; got != 0 {
				t.Errorf("%v frees of blocks that were not allocated", got)
			}
			left := int(r.Extra["c-unfreed-drained"])
			if v.leaks {
				if freed := r.Extra["c-freed"]; freed != 0 || left != r.N {
					t.Errorf("%v of %[3]d blocks freed and %[2]d leaked, want all leaked", freed, left, r.N)
				}
			} else if left > tolerance {
				t.Errorf("%d of %d blocks are unfreed after the drain", left, r.N)
			}
		})
	}
}

// TestManualFreesAtOnce tests that manual frees leave no block unfreed at the loop's end.
func TestManualFreesAtOnce(t *testing.T) {
	for _, name := range []string{"AllocateFree", "AllocateDefer", "AllocateHeapFree"} {
		r := testing.Benchmark(variants[name].benchmark)
		if left := r.Extra["c-unfreed-loop"]; left != 0 {
			t.Errorf("%s: %v blocks are unfreed when the loop ends", name, left)
		}
	}
}

// TestGCFreesDuringTheLoop tests that, once the loop is long enough for the GC to
// run, finalizers free blocks during the loop and not only after it.
func TestGCFreesDuringTheLoop(t *testing.T) {
	before := Count().Freed
	var start, now runtime.MemStats
	runtime.ReadMemStats(&start)
	for i := 0; i < 5_000_000 && Count().Freed == before; i++ {
		AllocateAuto()
	}
	runtime.ReadMemStats(&now)
	if now.NumGC == start.NumGC || Count().Freed == before {
		t.Error("no block was freed although five million handles were dropped")
	}
}

// TestDoubleFreeIsCounted tests that a double free counts as a misfree. It runs in
// its own process, because it may corrupt the C heap.
func TestDoubleFreeIsCounted(t *testing.T) {
	if os.Getenv("GCCOST_MISFREE") != "" {
		p := Allocate()
		Free(p)
		Free(p) // LIVE has been overwritten by DEAD or by the allocator
		fmt.Printf("misfreed=%d\n", Count().Misfreed)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestDoubleFreeIsCounted$", "-test.v")
	child.Env = append(os.Environ(), "GCCOST_MISFREE=1")
	out, err := child.Output()
	if err != nil || !strings.Contains(string(out), "misfreed=1\n") {
		t.Errorf("a double free was not counted as one misfree: %v, %q", err, out)
	}
}

// TestLaps tests that the laps' times add up to about the loop's time.
func TestLaps(t *testing.T) {
	r := testing.Benchmark(BenchmarkAllocateAutoLaps)
	var sum float64
	for lap := 1; lap <= laps; lap++ {
		sum += r.Extra[fmt.Sprintf("lap%02d-ns/op", lap)] / laps
	}
	if loop := float64(r.T.Nanoseconds()) / float64(r.N); sum < 0.5*loop || sum > 1.5*loop {
		t.Errorf("the laps add up to %.0f ns/op, but the loop takes %.0f", sum, loop)
	}
}

// TestMetrics tests that a plain go test -bench prints the metrics that samples record.
func TestMetrics(t *testing.T) {
	units := []string{
		"ns/op", "cpu-ns/op", "settled-ns/op", "settled-cpu-ns/op", "gc-cycles", "faults",
		"peak-rss-bytes", "c-allocated", "c-freed", "c-unfreed-loop", "c-unfreed-drained", "c-misfreed",
	}
	if rundelay.Read() != nil {
		units = append(units, "run-delay-share")
	}
	line := testing.Benchmark(BenchmarkAllocateFree).String()
	for _, unit := range units {
		if !strings.Contains(line+"\t", " "+unit+"\t") {
			t.Errorf("no %s in %q", unit, line)
		}
	}
}
