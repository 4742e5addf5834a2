//go:build race

package slab_test

// raced: the race detector has sync.Pool lose a quarter of what it holds, so that slabs are
// given up early.
const raced = true
