//go:build go1.24

package cstr

import (
	"testing"

	"gccost/meter"
)

func init() {
	variants["AllocateCleanup"] = variant{benchmark: BenchmarkAllocateCleanup, allocs: []int64{3, 4}}
}

func BenchmarkAllocateCleanup(b *testing.B) {
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		AllocateCleanup()
	}
	m.Stop()
}
