//go:build ignore

// Queued reproduces a bug: cleanups remain queued on a P that GOMAXPROCS removed, and run
// only when GOMAXPROCS is raised again. Run it with
//
//	go run overlay/upstream/queued.go
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

type handle struct{ _ *byte }

const most = 8

var ran atomic.Int64

func main() {
	registered := int64(0)
	for round := 1; round <= 200; round++ {
		runtime.GOMAXPROCS(most)
		registered += register()
		done := make(chan struct{})
		go func() { // sweeps, and so queues cleanups, on all Ps while GOMAXPROCS falls
			defer close(done)
			runtime.GC()
		}()
		time.Sleep(time.Duration(round%20) * 100 * time.Microsecond)
		runtime.GOMAXPROCS(1)
		<-done
		if left := settled(registered); left > 0 {
			fmt.Printf("round %d: %d of %d cleanups did not run in 10 GC cycles with GOMAXPROCS=1\n", round, left, registered)
			runtime.GOMAXPROCS(most)
			fmt.Printf("with GOMAXPROCS=%d again: %d left\n", most, settled(registered))
			os.Exit(1)
		}
	}
	fmt.Printf("all %d cleanups ran\n", registered)
}

// register adds cleanups to handles on all Ps, drops the handles, and returns the number
// of cleanups.
func register() int64 {
	const each = 5_000
	done := make(chan struct{})
	for range most {
		go func() {
			for range each {
				runtime.AddCleanup(new(handle), func(int) { ran.Add(1) }, 0)
			}
			done <- struct{}{}
		}()
	}
	for range most {
		<-done
	}
	return most * each
}

// settled runs up to ten GC cycles and returns how many cleanups have not run.
func settled(registered int64) int64 {
	for range 10 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		if ran.Load() == registered {
			return 0
		}
	}
	return registered - ran.Load()
}
