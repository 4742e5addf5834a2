//go:build go1.24

package truths

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unique"
)

// before reports whether this is a release before Go 1.minor.
func before(minor string) bool {
	return runtime.Version() < "go1."+minor // of two digits each, from 1.24 on
}

// inChild runs the calling test again, in a process with these variables. It returns what that
// printed, whether it passed, and whether this process is the child.
func inChild(t *testing.T, variables ...string) (printed string, passed, child bool) {
	const mark = "GCCOST_CHILD"
	if os.Getenv(mark) != "" {
		return "", false, true
	}
	command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(append(os.Environ(), mark+"=1"), variables...)
	out, err := command.CombinedOutput()
	return string(out), err == nil, false
}

type selfish struct {
	self *selfish
	_    [6]uintptr
}

func TestAPointerToItselfIsNoCycle(t *testing.T) {
	var ran atomic.Int64
	for i := 0; i < 100; i++ {
		s := new(selfish)
		s.self = s
		runtime.SetFinalizer(s, func(*selfish) { ran.Add(1) })
	}
	clearStack(64)
	if collect(&ran, 100); ran.Load() < 99 {
		t.Errorf("%d of 100 finalizers ran, want all", ran.Load())
	}
}

// twice registers two cleanups on an object.
//
//go:noinline
func twice(ran chan int) {
	o := new(object)
	for i := 1; i <= 2; i++ {
		runtime.AddCleanup(o, func(i int) { ran <- i }, i)
	}
}

func TestTheOrderOfCleanupsDependsOnTheRelease(t *testing.T) {
	ran := make(chan int, 2)
	twice(ran)
	clearStack(64)
	for len(ran) < 2 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	first, want := <-ran, 2
	if before("25") {
		want = 1
	}
	if first != want {
		t.Errorf("cleanup %d ran first, want %d", first, want)
	}
}

func TestSchedGoroutinesCountsTheRuntimesOwnSince126(t *testing.T) {
	read := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}}
	metrics.Read(read)
	all, ours := read[0].Value.Uint64(), uint64(runtime.NumGoroutine())
	if counts := all > ours; counts == before("26") {
		t.Errorf("%d goroutines, of which %d are the program's", all, ours)
	}
}

var numbers []unique.Handle[int]

func TestCheckFinalizersEndsACorrectProgram(t *testing.T) {
	printed, passed, child := inChild(t, "GODEBUG=checkfinalizers=1")
	if child {
		for i := 0; i < 100; i++ {
			numbers = append(numbers, unique.Make(i))
		}
		runtime.GC()
		return
	}
	if ended := !passed; ended == before("25") {
		t.Errorf("the program ended: %v\n%.1000s", ended, printed)
	}
	if said := strings.Contains(printed, "LIKELY CLEANUP/FINALIZER ISSUES"); said == before("25") {
		t.Errorf("it reports an object: %v\n%.1000s", said, printed)
	}
}

func TestAfterGoexitNoFinalizerRunsAndTheQueuesStayApart(t *testing.T) {
	printed, passed, child := inChild(t)
	if !child {
		if !passed {
			t.Error(printed)
		}
		return
	}
	var ran atomic.Int64
	runtime.SetFinalizer(new(object), func(*object) {
		ran.Add(1)
		runtime.Goexit()
	})
	clearStack(64)
	collect(&ran, 1)
	for i := 0; i < 100; i++ {
		runtime.SetFinalizer(new(object), func(*object) { ran.Add(1) })
	}
	collect(&ran, 101)
	if ran.Load() != 1 {
		t.Errorf("%d finalizers ran, want the first alone", ran.Load())
	}
	read := []metrics.Sample{{Name: "/gc/finalizers/queued:finalizers"}}
	metrics.Read(read)
	if done, counted := executed("finalizers"); counted && done >= float64(read[0].Value.Uint64()) {
		t.Errorf("%v finalizers count as executed, of %v", done, read[0].Value.Uint64())
	}
	if strings.Contains(stacks(), "Finalizers(") {
		t.Error("a goroutine runs finalizers")
	}
}

func TestABenchmarkPaysForFinalizersOfOthers(t *testing.T) {
	r := testing.Benchmark(func(b *testing.B) {
		var ran atomic.Int64
		for i := 0; i < 1000; i++ {
			runtime.SetFinalizer(new(object), func(*object) {
				for j := 0; j < 100; j++ {
					garbage = make([]byte, 100)
				}
				ran.Add(1)
			})
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := 0; i < b.N; i++ { // a loop that allocates nothing
			sum += i
		}
		collect(&ran, 990)
	})
	if r.MemAllocs < 99_000 {
		t.Errorf("%d allocations count, want those of the finalizers, 100,000", r.MemAllocs)
	}
}

func TestUniqueIntegersAreFreedSince126(t *testing.T) {
	objects := func() uint64 {
		for i := 0; i < 6; i++ {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapObjects
	}
	had := objects()
	for i := 1000; i < 101_000; i++ {
		unique.Make(i)
	}
	if stay := int64(objects() - had); stay > 50_000 != before("26") {
		t.Errorf("%d objects stay of 100,000 dropped handles", stay)
	}
}
