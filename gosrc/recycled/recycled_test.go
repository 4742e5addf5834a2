//go:build go1.24

package recycled

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"gccost/guardian"
)

const million = 1000 * 1000

var garbage []byte

// limited returns how many collections a gigabyte of garbage takes under a memory limit alone, as
// package truths counts them.
func limited() float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(96 << 20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := 0; i < 1<<14; i++ {
		garbage = make([]byte, 64<<10)
	}
	runtime.ReadMemStats(&after)
	garbage = nil
	return float64(after.NumGC - before.NumGC)
}

// offHeap returns the runtime's memory outside the heap.
func offHeap() float64 {
	debug.FreeOSMemory()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return float64(now.Sys - now.HeapSys)
}

// records makes a million blocks, waits until all are freed, and reports what stays.
func records(b *testing.B, use func()) {
	debug.FreeOSMemory()
	cycles, stays, freed := limited(), offHeap(), guardian.Count().Freed
	old := debug.SetGCPercent(-1)
	for i := 0; i < million; i++ {
		use()
	}
	debug.SetGCPercent(old)
	since := func() int64 { return guardian.Count().Freed - freed }
	for idle, last := 0, int64(0); since() < million && idle < 5; idle++ {
		runtime.GC()
		for wait := 0; wait < 20 && since() < million; wait++ {
			time.Sleep(time.Millisecond)
		}
		if now := since(); now > last {
			idle, last = 0, now
		}
	}
	b.ReportMetric(float64(since())/million, "ran-share")
	b.ReportMetric((offHeap()-stays)/million, "off-heap-bytes")
	b.ReportMetric(cycles, "gc-cycles-before")
	b.ReportMetric(limited(), "gc-cycles-after")
}

func BenchmarkRecordsGuardian(b *testing.B) {
	records(b, func() { guardian.New() })
}

func BenchmarkRecordsClosed(b *testing.B) {
	records(b, func() {
		if err := guardian.New().Close(); err != nil {
			b.Fatal(err)
		}
	})
}
