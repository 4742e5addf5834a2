//go:build race

package specials

// The race detector makes the calls themselves so dear that the walk hardly shows.
const racing = true
