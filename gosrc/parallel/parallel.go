// Package parallel runs the variants of package cstr from many goroutines at
// once, where the lock of a span's records, the allocator and the one goroutine
// that runs all finalizers meet.
//
// It serves chapter 03 beside the claims M1 to M6 (Go issue 75188).
package parallel

import "sync"

// Share calls operation n times altogether, from so many goroutines at once,
// and returns when all of them are done.
func Share(n, goroutines int, operation func()) {
	var done sync.WaitGroup
	done.Add(goroutines)
	for g := 0; g < goroutines; g++ {
		own := n*(g+1)/goroutines - n*g/goroutines
		go func() {
			defer done.Done()
			for i := 0; i < own; i++ {
				operation()
			}
		}()
	}
	done.Wait()
}
