//go:build go1.25

package late

import (
	"runtime"
	"testing"
	"unsafe"
)

func init() {
	blockers["cleanup"] = blockedCleanup
	ways["cleanup"] = always(clean)
}

func blockedCleanup() func() {
	v := newValve()
	runtime.AddCleanup(&handle64{}, (*valve).pass, v)
	return v.collectUntilEntered()
}

func BenchmarkBlockedCleanup(b *testing.B) { blocked(b, always(clean)) }

// BenchmarkBlockedIdle is the same of a program that registers no further cleanup.
func BenchmarkBlockedIdle(b *testing.B) {
	b.Run("blocks=cleanup", func(b *testing.B) {
		if trial(b) {
			return
		}
		defer blockedCleanup()()
		forgets(b, clean, false)
	})
}

func BenchmarkLateCleanup(b *testing.B) { late(b, always(clean)) }

func BenchmarkLargeCleanup(b *testing.B) { larges(b, clean, count) }

// TestWhatABlockedCleanupStops checks that a cleanup that blocks stops the others on four Ps
// and not on eight, and never finalizers.
func TestWhatABlockedCleanupStops(t *testing.T) {
	if size := unsafe.Sizeof(cleaned{}); size != 24 {
		t.Errorf("cleaned has %d bytes, want 24", size)
	}
	for procs, want := range map[string]float64{"4": 0, "8": 1} {
		share, waiting := shares(t, procs, "Blocked(Finalizer|Cleanup)$")
		if got, known := share["Cleanup/blocks=cleanup"]; !known || got != want {
			t.Errorf("%s Ps: the part %v is freed (reported: %v), want %v", procs, got, known, want)
		}
		for _, name := range []string{"Finalizer/blocks=cleanup", "Cleanup/blocks=finalizer"} {
			if got := share[name]; got < 0.98 {
				t.Errorf("%s: the part %v is freed on %s Ps, want all", name, got, procs)
			}
		}
		_, counted := queued("cleanups")
		if got := waiting["Cleanup/blocks=cleanup"]; counted && (got < 1 || (got > 1000) != (want == 0)) {
			t.Errorf("%s Ps: %v cleanups wait", procs, got)
		}
	}
}
