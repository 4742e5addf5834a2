//go:build go1.24

package annotated

import "testing"

// BenchmarkPairPlain and BenchmarkPairAnnotated allocate a block with malloc and free it.
func BenchmarkPairPlain(b *testing.B)     { pairs(b, plainPair) }
func BenchmarkPairAnnotated(b *testing.B) { pairs(b, bothPair) }

func pairs(b *testing.B, pair func()) {
	for i := 0; i < b.N; i++ {
		pair()
	}
}

// BenchmarkPass passes the address of a local array to C.
func BenchmarkPass(b *testing.B) {
	for _, c := range []struct {
		name string
		pass func(a array) int
	}{{"none", none}, {"noescape", noescape}, {"nocallback", nocallback}, {"both", both}} {
		b.Run("annotations="+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if got := c.pass(array{0: 1, 63: 2}); got != 3 {
					b.Fatalf("C read %d, want 3", got)
				}
			}
		})
	}
}
