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
	"weak"
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

// made is the last value of which there was a handle.
var made = 1000

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
	for i := 0; i < 100_000; i++ {
		made++ // another value each time, as those before may still be there
		unique.Make(made)
	}
	if stay := int64(objects() - had); stay > 50_000 != before("26") {
		t.Errorf("%d objects stay of 100,000 dropped handles", stay)
	}
}

// both registers a finalizer and a cleanup on an object, to which it makes a weak pointer.
//
//go:noinline
func both(ran chan string) {
	o := new(object)
	w := weak.Make(o)
	said := func(what string) {
		if w.Value() != nil {
			what += ", weak pointer alive"
		}
		ran <- what
	}
	runtime.AddCleanup(o, func(string) { said("cleanup") }, "")
	runtime.SetFinalizer(o, func(*object) { said("finalizer") })
}

func TestAFinalizerRunsACollectionBeforeACleanup(t *testing.T) {
	ran := make(chan string, 2)
	both(ran)
	clearStack(64)
	for _, want := range []string{"finalizer", "cleanup"} {
		runtime.GC()
		select {
		case got := <-ran:
			if got != want {
				t.Errorf("%s ran, want %s", got, want)
			}
		case <-time.After(time.Second):
			t.Fatalf("no %s ran in its collection", want)
		}
	}
}

func TestStopLetsTheArgumentGo(t *testing.T) {
	kept := new(object)
	arg := new(object)
	w := weak.Make(arg)
	c := runtime.AddCleanup(kept, func(*object) {}, arg)
	clearStack(64)
	runtime.GC()
	if w.Value() == nil {
		t.Error("the argument is freed while its object lives")
	}
	c.Stop()
	clearStack(64)
	if runtime.GC(); w.Value() != nil {
		t.Error("the argument lives after Stop and a collection")
	}
	runtime.KeepAlive(kept)
}

func TestWhereSetFinalizerIsAccepted(t *testing.T) {
	var ran atomic.Int64
	small := make([]descriptor, 100)
	runtime.SetFinalizer(&small[3], func(*descriptor) { ran.Add(1) }) // inside its array
	o := new(object)
	runtime.AddCleanup(o, func(ran *atomic.Int64) { ran.Add(1) }, &ran)
	runtime.SetFinalizer(o, nil) // leaves the cleanup
	small, o = nil, nil
	clearStack(64)
	if collect(&ran, 2); ran.Load() != 2 {
		t.Errorf("%d of a finalizer and a cleanup ran, want both", ran.Load())
	}
}
