// Overlay writes, from the Go that builds it or another, an overlay for `go build`
// with a runtime that puts a special record into its span's list without walking
// there. A finalizer, cleanup or weak pointer, or stopping one, then costs the same
// wherever its object lies.
//
//	go run ./overlay -o DIR [-variant NAME] [-goroot GOROOT]
//	GOROOT=DIR/goroot go build -overlay=DIR/overlay.json ./program
//	go run ./overlay -patch [-goroot GOROOT]
//
// DIR/goroot is a link to GOROOT, needed where that is in Go's module cache: Go
// refuses to replace files there, but goes by their name. Elsewhere `go build
// -overlay=DIR/overlay.json` is enough. Nothing is written to GOROOT.
//
// Variants:
//
//	hint     a pointer per span to the record before the last change: no walk in ascending order
//	index    no walk in any order, and no other change (the default)
//	plus     index, one allocation for a cleanup whose argument is a pointer instead of
//	         three, and no marking of records that hold nothing to mark
//	checked-hint, checked, checked-plus
//	         hint, index and plus with a checker that compares each lookup with the walk,
//	         and throws at the first difference: for tests, as it is slow
//
// The command prints the name of the overlay.json that it wrote. It refuses a runtime
// whose source it does not know, as an overlay that overlooks one place that changes
// lists would corrupt memory: see known.go for what it knows, README.md for what the
// index is and why it is right.
//
// With -patch it prints the index as a patch for Go's own tree instead: see upstream/.
//
// It serves the claims M7, X2 to X4, X11 and X12.
package main
