//go:build race

package specials

// racing disables the test of the walk: the race detector makes the calls themselves so
// expensive that the cost of the walk hardly shows.
const racing = true
