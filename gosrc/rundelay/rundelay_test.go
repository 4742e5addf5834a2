package rundelay

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestThreadsThatStartCountFromZeroAndThoseThatEndAreLost(t *testing.T) {
	before := Reading{"1": 10, "2": 100, "3": 5}
	after := Reading{"1": 12, "4": 7, "3": 2} // 2 has ended, 4 is new, 3 is another thread
	if waited, known := after.Since(before); !known || waited != 2+7+2 {
		t.Errorf("waited %v, known %v, want 11ns", waited, known)
	}
}

func TestWithoutAReadingNothingIsKnown(t *testing.T) {
	for _, c := range []struct{ before, after Reading }{{nil, nil}, {nil, Reading{}}, {Reading{}, nil}} {
		if _, known := c.after.Since(c.before); known {
			t.Errorf("%v and %v are taken for readings", c.before, c.after)
		}
	}
}

// read is Read, on systems that have the counters.
func read(t *testing.T) Reading {
	found := Read()
	if found == nil {
		if runtime.GOOS == "linux" {
			t.Log("this kernel has no /proc/self/task/*/schedstat, or only zeros there")
		}
		t.Skip("nothing to read here")
	}
	return found
}

// TestWaitingIsCounted: more busy threads than CPUs must wait for each other.
func TestWaitingIsCounted(t *testing.T) {
	before := read(t)
	procs := 2*runtime.NumCPU() + 2
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	var stop int32
	var done sync.WaitGroup
	defer done.Wait()
	defer atomic.StoreInt32(&stop, 1)
	for i := 1; i < procs; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			for atomic.LoadInt32(&stop) == 0 {
				runtime.Gosched() // for the GC: before Go 1.14 it cannot stop a loop without calls
			}
		}()
	}
	for start := time.Now(); ; {
		if waited, known := read(t).Since(before); known && waited > time.Millisecond {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatal("a minute with more busy threads than CPUs shows no millisecond of waiting")
		}
	}
}

// TestThreadsAreTold: every reading has the threads that are alive, each by its own id.
func TestThreadsAreTold(t *testing.T) {
	before := len(read(t))
	const more = 3
	release := make(chan struct{})
	var running, done sync.WaitGroup
	running.Add(more)
	done.Add(more)
	for i := 0; i < more; i++ {
		go func() {
			defer done.Done()
			runtime.LockOSThread() // a thread each, for as long as it takes
			defer runtime.UnlockOSThread()
			running.Done()
			<-release
		}()
	}
	running.Wait()
	if during := len(read(t)); during < more || during < before {
		t.Errorf("%d threads, and %d with %d more goroutines that hold one each", before, during, more)
	}
	close(release)
	done.Wait()
}
