//go:build go1.24
// +build go1.24

package across

import "testing"

func init() { benchmarks["AcrossCleanup"] = BenchmarkAcrossCleanup }

func BenchmarkAcrossCleanup(b *testing.B) {
	measure(b, func() {
		for i := 0; i < b.N; i++ {
			Cleaned()
		}
	})
}
