//go:build race

package slab_test

// raceEnabled relaxes tests that count slabs: under the race detector, sync.Pool randomly
// drops a quarter of its items, and slabs with them.
const raceEnabled = true
