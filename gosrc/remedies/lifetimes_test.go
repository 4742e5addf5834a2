package remedies

import (
	"fmt"
	"math/rand"
	"runtime"
	"testing"
	"time"

	"gccost/meter"
)

// orders are functions that return which of live objects operation i replaces. With lifo it
// is the newest, then the next, through the newest tenth and back again.
var orders = map[string]func(chance *rand.Rand, i, live int) int{
	"random": func(chance *rand.Rand, _, live int) int { return chance.Intn(live) },
	"fifo":   func(_ *rand.Rand, i, live int) int { return i % live },
	"lifo": func(_ *rand.Rand, i, live int) int {
		tenth := (live + 9) / 10
		depth := i % (2 * tenth)
		if depth >= tenth {
			depth = 2*tenth - 1 - depth
		}
		return live - 1 - depth
	},
}

// stallOperations is the number of operations whose time is read together, so that reading
// the clock costs little.
const stallOperations = 16

// overLifetimes measures lifetimes with several numbers of live objects, in each order.
func overLifetimes[T any](b *testing.B, count func() meter.Blocks, open func() T, drop func(T)) {
	for live := 1000; live <= 1_000_000; live *= 10 {
		for _, order := range []string{"random", "fifo", "lifo"} {
			live, order := live, order
			b.Run(fmt.Sprintf("live=%d/order=%s", live, order), func(b *testing.B) {
				lifetimes(b, live, order, count, open, drop)
			})
		}
	}
}

// lifetimes keeps live objects. Each operation drops one of them and makes another. It
// reports
//
//	c-held-peak/live  blocks held at the peak of the loop, for each live object
//	c-held/live       blocks held after the loop and a drain, for each live object
//	stall-max-ns      the longest time of 16 operations in a row
//
// and, as c-unfreed-drained, the blocks held after it has dropped all objects.
func lifetimes[T any](b *testing.B, live int, order string, count func() meter.Blocks, open func() T, drop func(T)) {
	if live > 100*b.N {
		live = 100 * b.N // the first run, with one operation
	}
	settle()
	chance, next := rand.New(rand.NewSource(1)), orders[order]
	before := Count()
	held := func() int64 {
		now := Count()
		return (now.Allocated - now.Freed) - (before.Allocated - before.Freed)
	}
	objects := make([]T, live)
	for i := range objects {
		objects[i] = open()
	}
	var peak int64
	var stall time.Duration
	m := meter.Start(b, count)
	read := time.Now()
	for i := 0; i < b.N; i++ {
		at := next(chance, i, live)
		drop(objects[at])
		objects[at] = open()
		if i%stallOperations == stallOperations-1 {
			now := time.Now()
			if took := now.Sub(read); took > stall {
				stall = took
			}
			read = now
		}
		if i%(1<<12) == 1<<12-1 || i == b.N-1 {
			if now := held(); now > peak {
				peak = now
			}
		}
	}
	m.Stop()
	b.ReportMetric(float64(peak)/float64(live), "c-held-peak/live")
	b.ReportMetric(float64(held())/float64(live), "c-held/live")
	b.ReportMetric(float64(stall.Nanoseconds()), "stall-max-ns")
	for i, object := range objects {
		drop(object)
		var none T
		objects[i] = none
	}
	for i := 0; i < 100 && held() > 0; i++ {
		runtime.GC()
		count()
	}
	b.ReportMetric(float64(held()), "c-unfreed-drained")
}

// BenchmarkLifetimesManual frees each object by hand.
func BenchmarkLifetimesManual(b *testing.B) { overLifetimes(b, Count, Allocate, Free) }

func BenchmarkLifetimesFinalizer(b *testing.B) {
	overLifetimes(b, Count, NewFinalized, func(*Finalized) {})
}

func BenchmarkLifetimesSlab(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		overLifetimes(b, flushed(p), func() handle { return get(b, p) }, func(handle) {})
	})
}

// TestOrders checks the first replaced objects of each order, and that all are in range.
func TestOrders(t *testing.T) {
	chance := rand.New(rand.NewSource(1))
	for order, want := range map[string][]int{
		"fifo": {0, 1, 2}, "lifo": {29, 28, 27, 27, 28, 29, 29}, "random": nil,
	} {
		for i := 0; i < 100; i++ {
			got := orders[order](chance, i, 30)
			if got < 0 || got >= 30 || i < len(want) && got != want[i] {
				t.Errorf("%s: operation %d replaces object %d of 30, want %v", order, i, got, want)
			}
		}
	}
}

// TestLifetimes checks what is held when objects die in random order: as many blocks as
// objects with a finalizer each, and more with slabs.
func TestLifetimes(t *testing.T) {
	of := func(bench func(b *testing.B)) float64 {
		return testing.Benchmark(bench).Extra["c-held/live"]
	}
	single := of(func(b *testing.B) {
		lifetimes(b, 10_000, "random", Count, NewFinalized, func(*Finalized) {})
	})
	if single < 1 || single > 1.1 {
		t.Errorf("with finalizers, %v blocks are held for each live object, want about 1", single)
	}
	shared := of(func(b *testing.B) {
		p := newPool(8)
		lifetimes(b, 10_000, "random", flushed(p), func() handle { return get(b, p) }, func(handle) {})
	})
	if shared < 2 || shared > 3.5 {
		t.Errorf("with slabs of 8, %v blocks are held for each live object, want about 2.7", shared)
	}
}
