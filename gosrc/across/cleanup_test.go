//go:build go1.24
// +build go1.24

package across

import "testing"

func init() { benchmarks["AcrossCleanup"] = BenchmarkAcrossCleanup }

func BenchmarkAcrossCleanup(b *testing.B) {
	measure(b, func(n int) {
		for i := 0; i < n; i++ {
			Cleaned()
		}
	})
}
