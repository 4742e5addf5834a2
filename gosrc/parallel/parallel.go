// Package parallel runs the variants of package cstr on many goroutines at once.
// They contend for the locks of the spans' specials, for the allocator and for the
// one goroutine that runs all finalizers.
//
// AllocateOnly belongs to chapter 03, the others to chapter 08.
package parallel

import "sync"

// Share divides n calls of operation among the given number of concurrent goroutines,
// and returns when all calls are done.
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
