package rundelay

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestSinceWithStartedAndEndedThreads(t *testing.T) {
	before := Reading{"1": 10, "2": 100, "3": 5}
	after := Reading{"1": 12, "4": 7, "3": 2} // 2 has ended, 4 is new, the ID 3 is reused
	if waited, known := after.Since(before); !known || waited != 2+7+2 {
		t.Errorf("waited %v, known %v, want 11ns", waited, known)
	}
}

func TestSinceWithoutReadings(t *testing.T) {
	for _, c := range []struct{ before, after Reading }{{nil, nil}, {nil, Reading{}}, {Reading{}, nil}} {
		if _, known := c.after.Since(c.before); known {
			t.Errorf("Since returned true for the readings %v and %v", c.before, c.after)
		}
	}
}

// read returns a reading, or skips the test on a system without the counters.
func read(t *testing.T) Reading {
	found := Read()
	if found == nil {
		if runtime.GOOS == "linux" {
			t.Log("this kernel has no /proc/self/task/*/schedstat, or only zeros in it")
		}
		t.Skip("this system does not count how long threads wait for a CPU")
	}
	return found
}

// TestWaitingIsCounted runs more busy threads than CPUs, some of which must wait.
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
				runtime.Gosched() // before Go 1.14 the GC cannot stop a loop without calls
			}
		}()
	}
	for start := time.Now(); ; {
		if waited, known := read(t).Since(before); known && waited > time.Millisecond {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatal("with more busy threads than CPUs, less than a millisecond of waiting was counted in a minute")
		}
	}
}

// TestReadingHasAllThreads tests that a reading has every live thread, by its own ID.
func TestReadingHasAllThreads(t *testing.T) {
	before := len(read(t))
	const more = 3
	release := make(chan struct{})
	var running, done sync.WaitGroup
	running.Add(more)
	done.Add(more)
	for i := 0; i < more; i++ {
		go func() {
			defer done.Done()
			runtime.LockOSThread() // one thread per goroutine
			defer runtime.UnlockOSThread()
			running.Done()
			<-release
		}()
	}
	running.Wait()
	if during := len(read(t)); during < more || during < before {
		t.Errorf("%d threads before, %d while %d more goroutines each hold one", before, during, more)
	}
	close(release)
	done.Wait()
}
