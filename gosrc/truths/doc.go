// Package truths counts what Go's runtime does where a good guess is wrong: no times, only counts
// and shares. Chapter 8b ("What surprises") shows them by release.
//
// Each benchmark makes b.N objects and reports
//
//	ran-share           the part of the objects whose finalizer or cleanup ran
//	panic-share         the part of the calls of AddCleanup that panicked
//	returned            finalizers or cleanups that have returned
//	executed            how many the runtime's metrics count as executed
//	off-heap-bytes      memory of the runtime outside the heap that stays, per object
//	gc-cycles-before    collections for the same garbage under a memory limit, before the objects
//	gc-cycles-after     and after all of them were freed
//	outside             1 if a cleanup ran outside the bubble in which it was registered
//	by-...              1 if that means shows a finalizer or cleanup that blocks
package truths
