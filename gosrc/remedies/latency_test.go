package remedies

import (
	"math/bits"
	"testing"
	"time"

	"gccost/meter"
)

// latencies is a histogram of operation times with 32 buckets per power of two.
type latencies struct {
	counts [64 * 32]int64
	n      int64
	most   time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.n++
	if d > l.most {
		l.most = d
	}
	at := uint64(d)
	if power := bits.Len64(at); power > 6 {
		at = uint64(power-6)*32 + at>>(power-6)
	}
	l.counts[at]++
}

// quantile returns the time that the given part of the operations did not exceed. The
// result may be up to 1/32 too low.
func (l *latencies) quantile(part float64) float64 {
	left := int64(part * float64(l.n))
	for at, count := range l.counts {
		if left -= count; left < 0 {
			if power := at/32 - 1; power > 0 {
				return float64(uint64(at%32+32) << power)
			}
			return float64(at)
		}
	}
	return float64(l.most)
}

// latency times each operation and reports op-p50-ns, op-p99-ns, op-p99.9-ns and op-max-ns.
// Each includes one reading of the clock, about 20 ns.
func latency(b *testing.B, count func() meter.Blocks, operation func()) {
	var seen latencies
	start := time.Now()
	var before time.Duration
	loop(b, count, func() {
		if before == 0 {
			start = time.Now() // first operation
		}
		operation()
		now := time.Since(start)
		seen.add(now - before)
		before = now
	})
	for _, shown := range []struct {
		part float64
		unit string
	}{{0.5, "op-p50-ns"}, {0.99, "op-p99-ns"}, {0.999, "op-p99.9-ns"}} {
		b.ReportMetric(seen.quantile(shown.part), shown.unit)
	}
	b.ReportMetric(float64(seen.most.Nanoseconds()), "op-max-ns")
}

func BenchmarkLatencyManual(b *testing.B) { latency(b, Count, func() { Free(Allocate()) }) }

func BenchmarkLatencyFinalizer(b *testing.B) { latency(b, Count, func() { NewFinalized() }) }

func BenchmarkLatencySlab(b *testing.B) {
	p := newPool(64)
	latency(b, flushed(p), func() { get(b, p) })
}

func BenchmarkLatencyAdopted(b *testing.B) {
	p := newPool(64)
	latency(b, flushed(p), func() { p.Adopt(Allocate()) })
}

func BenchmarkLatencySlabClose(b *testing.B) {
	p := newPool(64)
	latency(b, flushed(p), func() {
		if err := get(b, p).Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// TestLatencies checks that a quantile is at most 1/32 too low.
func TestLatencies(t *testing.T) {
	var seen latencies
	for i := 1; i <= 100_000; i++ {
		seen.add(time.Duration(i))
	}
	for _, part := range []float64{0.0001, 0.01, 0.5, 0.99, 0.999} {
		got, want := seen.quantile(part), part*100_000
		if got > want+1 || got < want*31/32 {
			t.Errorf("quantile %v is %v, want about %v", part, got, want)
		}
	}
	if seen.most != 100_000 {
		t.Errorf("the maximum is %v, want 100µs", seen.most)
	}
}
