//go:build go1.24

package handles

import "testing"

func init() {
	kind := allocations["cleanup"]
	kind.open, kind.most = Cleanup, 5
	allocations["cleanup"] = kind
}

func BenchmarkHandleCleanup(b *testing.B) { over(b, sizes, Cleanup, dropped) }

func BenchmarkHandleLivesCleanup(b *testing.B) { over(b, few, Cleanup, replaced) }

// BenchmarkHandleCleanupUnshared compares with handles of 16 bytes.
func BenchmarkHandleCleanupUnshared(b *testing.B) { dropped(b, CleanupUnshared) }
