//go:build race

package remedies

// Under the race detector sync.Pool forgets at random, so that slabs are given up
// half handed out.
const racing = true
