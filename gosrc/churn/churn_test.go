package churn

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"gccost/rates"
)

// BenchmarkServe runs one goroutine per P, with GOGC and GOMEMLIMIT from the
// environment.
func BenchmarkServe(b *testing.B) { serve(b) }

func serve(b *testing.B) { rates.Report(b, runtime.GOMAXPROCS(0), Serve) }

// goals are the heap goals of the benchmarks, in MiB.
var goals = []int{8, 16, 32, 64, 128, 256}

// BenchmarkServeBallast has a ballast of half the goal: with GOGC=100, the other half is
// for garbage.
func BenchmarkServeBallast(b *testing.B) {
	for _, mib := range goals {
		b.Run(fmt.Sprintf("mib=%d", mib), func(b *testing.B) {
			release := Ballast(mib << 20 / 2)
			serve(b)
			release()
		})
	}
}

func BenchmarkServeTuner(b *testing.B) {
	for _, mib := range goals {
		b.Run(fmt.Sprintf("mib=%d", mib), func(b *testing.B) {
			tuner := Tune(uint64(mib) << 20)
			serve(b)
			tuner.Stop()
		})
	}
}

// TestServeMakesGarbage tests that an operation allocates a tree and that the live heap
// does not grow.
func TestServeMakesGarbage(t *testing.T) {
	operation := Serve()
	if allocs := testing.AllocsPerRun(100, operation); allocs != 127+64 {
		t.Errorf("%v allocations per operation, want %d", allocs, 127+64)
	}
	before := live()
	for i := 0; i < 50*kept*often; i++ {
		operation()
	}
	if after := live(); after > before+before/2 {
		t.Errorf("the live heap grew from %d to %d bytes", before, after)
	}
	operation()
}

func live() uint64 {
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc
}

func TestTreeHasAllNodes(t *testing.T) {
	// The levels have the seeds 1, 2 to 3 and 4 to 7; each of the four leaves has 128 bytes.
	if got, want := tree(3, 1).sum(), uint64(1+2+3+4+5+6+7+4*128); got != want {
		t.Errorf("the sum is %d, want %d", got, want)
	}
}

// TestBallastRaisesTheGoal tests that the GC counts a ballast as live heap.
func TestBallastRaisesTheGoal(t *testing.T) {
	const bytes = 64 << 20
	before := goal()
	release := Ballast(bytes)
	during := goal()
	release()
	if during < before+bytes {
		t.Errorf("a ballast of %[3]d bytes changed the heap goal from %[1]d to %[2]d", before, during, bytes)
	}
}

func goal() uint64 {
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.NextGC
}

// TestTunerKeepsTheGoal tests that the heap goal approaches the tuner's after a few cycles.
func TestTunerKeepsTheGoal(t *testing.T) {
	const want = 48 << 20
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	tuner := Tune(want)
	for deadline := time.Now().Add(time.Minute); atomic.LoadInt64(&tuner.Cycles) < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("the tuner set GOGC after %d GC cycles in a minute, want 3", atomic.LoadInt64(&tuner.Cycles))
		}
		runtime.GC()
		time.Sleep(time.Millisecond) // the finalizer runs after the cycle
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	if mem.NextGC < want/2 || mem.NextGC > want*2 {
		t.Errorf("the heap goal is %d bytes, want about %d", mem.NextGC, want)
	}
	tuner.Stop()
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC is %d after the tuner stopped, want 100", got)
	}
}
