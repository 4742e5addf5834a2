// Overlay writes an overlay for `go build` that patches the Go runtime. The patched
// runtime finds a special record's place in its span's list without walking the
// list. Adding or removing a finalizer, cleanup or weak pointer then costs the same
// wherever its object lies in the span.
//
//	go run ./overlay -o DIR [-variant NAME] [-goroot GOROOT]
//	GOROOT=DIR/goroot go build -overlay=DIR/overlay.json ./program
//	go run ./overlay -series DIR [-goroot GOROOT]
//
// DIR/goroot is a symbolic link to GOROOT. It is needed if GOROOT is in Go's module
// cache: Go refuses to replace files there, but only compares path names. Otherwise
// `go build -overlay=DIR/overlay.json` is enough. Nothing is written to GOROOT.
//
// Variants:
//
//	hint     a pointer per span to the record before the last change; avoids the walk in
//	         ascending order
//	index    an index per span; avoids the walk in any order (the default)
//	plus     index; also allocates once instead of three times for a cleanup whose
//	         argument is a pointer, and skips records that hold nothing to mark
//	requeue  keeps the walk; a goroutine that was preempted to stop the world goes to the
//	         global queue of goroutines, as until Go 1.25 (chapter 4)
//	checked-hint, checked, checked-plus
//	         hint, index and plus with a checker that compares each search with the walk
//	         and throws at the first difference; slow, for tests
//
// The command prints the path of the overlay.json that it wrote. It refuses a runtime
// whose source it does not know: an overlay that misses one place that changes lists
// would corrupt memory. See known.go for the known source, and README.md for the index
// and why it is correct.
//
// With -series it instead writes hint and index as two patches for Go's own tree: see
// upstream/.
//
// The claims M7, X2 to X4, X11d, X12, X14a to X14c and X26 use it.
package main
