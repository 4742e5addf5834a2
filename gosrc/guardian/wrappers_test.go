package guardian

import (
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"gccost/meter"
	"gccost/parallel"
)

// settle waits until earlier benchmarks have freed their blocks.
func settle() {
	for i := 0; i < 100; i++ {
		if now := Count(); now.Allocated == now.Freed {
			return
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

// counter returns a function that counts blocks for the meter. From the third call on, which
// is the meter's drain, no block waits for others.
func counter(w way) func() meter.Blocks {
	calls := 0
	return func() meter.Blocks {
		if calls++; calls > 2 && w.flush != nil {
			w.flush()
		}
		return Count()
	}
}

// over measures wrappers of each size.
func over(b *testing.B, ways map[int]way, measure func(b *testing.B, w way)) {
	for _, bytes := range []int{8, 16, 24, 64} {
		if w, ok := ways[bytes]; ok {
			b.Run(fmt.Sprintf("bytes=%d", bytes), func(b *testing.B) { measure(b, w) })
		}
	}
}

func each(b *testing.B, name string, numbers []int, bench func(b *testing.B, n int)) {
	for _, n := range numbers {
		n := n
		b.Run(fmt.Sprintf("%s=%d", name, n), func(b *testing.B) { bench(b, n) })
	}
}

// closed makes wrappers and closes them at once, all but the given percentage. The forgotten
// ones are spread evenly.
func closed(b *testing.B, w way, forgotten int) {
	settle()
	m := meter.Start(b, counter(w))
	if forgotten == 0 {
		for i := 0; i < b.N; i++ {
			w.close(w.open())
		}
	} else {
		every := 100 / forgotten
		for i := 0; i < b.N; i++ {
			if one := w.open(); i%every != 0 {
				w.close(one)
			}
		}
	}
	m.Stop()
}

func forgotten(b *testing.B, w way) {
	each(b, "forgotten", []int{0, 1, 10, 100}, func(b *testing.B, n int) { closed(b, w, n) })
}

func BenchmarkWrapperFree(b *testing.B) {
	over(b, manually, func(b *testing.B, w way) { closed(b, w, 0) })
}

func BenchmarkWrapperGuardian(b *testing.B) { over(b, byGuardian, forgotten) }

func BenchmarkWrapperFinalizer(b *testing.B) { over(b, byFinalizer, forgotten) }

func BenchmarkWrapperAdopted(b *testing.B) { over(b, bySlab, forgotten) }

// shared divides the work among goroutines, which close each wrapper at once.
func shared(b *testing.B, w way) {
	each(b, "goroutines", []int{1, 2}, func(b *testing.B, n int) {
		settle()
		m := meter.Start(b, counter(w))
		parallel.Share(b.N, n, func() { w.close(w.open()) })
		m.Stop()
	})
}

func BenchmarkWrapperSharedFree(b *testing.B) { over(b, manually, shared) }

func BenchmarkWrapperSharedGuardian(b *testing.B) { over(b, byGuardian, shared) }

func BenchmarkWrapperSharedFinalizer(b *testing.B) { over(b, byFinalizer, shared) }

func BenchmarkWrapperSharedAdopted(b *testing.B) { over(b, bySlab, shared) }

// burst opens 1,000 wrappers, closes them, and runs the collector three times, so that a
// sync.Pool is empty again. An operation is one wrapper.
func burst(b *testing.B, w way) {
	settle()
	var wrappers [1000]any
	m := meter.Start(b, counter(w))
	for left := b.N; left > 0; left -= len(wrappers) {
		some := wrappers[:]
		if left < len(some) {
			some = some[:left]
		}
		for i := range some {
			some[i] = w.open()
		}
		for _, one := range some {
			w.close(one)
		}
		for i := 0; i < 3; i++ {
			runtime.GC()
		}
	}
	m.Stop()
}

func BenchmarkWrapperBurstFree(b *testing.B) { over(b, manually, burst) }

func BenchmarkWrapperBurstGuardian(b *testing.B) { over(b, byGuardian, burst) }

func BenchmarkWrapperBurstFinalizer(b *testing.B) { over(b, byFinalizer, burst) }

func BenchmarkWrapperBurstAdopted(b *testing.B) { over(b, bySlab, burst) }

// replaced keeps live wrappers. Each operation closes a random one and opens another.
func replaced(b *testing.B, w way) {
	each(b, "live", []int{1000, 100_000, 1_000_000}, func(b *testing.B, live int) { replace(b, w, live) })
}

// warmUp is the most replacements before the timer starts. With 100,000 live wrappers each has
// then been replaced twice, so that the runtime's records and the slabs lie where they do in a
// program that has run for a while.
const warmUp = 200_000

// replace reports the blocks held after the loop and a drain, for each live wrapper, as
// c-held/live.
func replace(b *testing.B, w way, live int) {
	if live > 100*b.N {
		live = 100 * b.N // the first run, with one operation
	}
	settle()
	before := Count()
	chance := rand.New(rand.NewSource(1))
	wrappers := make([]any, live)
	for i := range wrappers {
		wrappers[i] = w.open()
	}
	replaceOne := func() {
		at := chance.Intn(live)
		w.close(wrappers[at])
		wrappers[at] = w.open()
	}
	for i := 0; i < 2*live && i < warmUp; i++ {
		replaceOne()
	}
	m := meter.Start(b, counter(w))
	for i := 0; i < b.N; i++ {
		replaceOne()
	}
	m.Stop()
	now := Count()
	b.ReportMetric(float64((now.Allocated-now.Freed)-(before.Allocated-before.Freed))/float64(live), "c-held/live")
	for _, one := range wrappers {
		w.close(one)
	}
	if w.flush != nil {
		w.flush()
	}
}

func BenchmarkWrapperLivesFree(b *testing.B) { over(b, manually, replaced) }

func BenchmarkWrapperLivesGuardian(b *testing.B) { over(b, byGuardian, replaced) }

func BenchmarkWrapperLivesFinalizer(b *testing.B) { over(b, byFinalizer, replaced) }

func BenchmarkWrapperLivesAdopted(b *testing.B) { over(b, bySlab, replaced) }

// reused takes a wrapper from a pool, calls C once, which stands for resetting its block, and
// puts it back.
func reused(b *testing.B, w way, reset func(w any) error) {
	settle()
	pool := sync.Pool{New: w.open}
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		one := pool.Get()
		if err := reset(one); err != nil {
			b.Fatal(err)
		}
		pool.Put(one)
	}
	m.Stop()
}

func BenchmarkWrapperReusedFree(b *testing.B) {
	reused(b, manually[8], func(w any) error { return w.(*wrapper8).use() })
}

func BenchmarkWrapperReusedGuardian(b *testing.B) {
	reused(b, byGuardian[8], func(w any) error { return w.(*Block).Use() })
}

var ways = map[string]map[int]way{"manual": manually, "guardian": byGuardian, "finalizer": byFinalizer, "slab": bySlab}

// tolerance is how many blocks may be unfreed after a drain: stock Go occasionally does not
// run a cleanup, the stack may refer to the last wrapper, and a slab may keep its others.
const tolerance = 64

// TestWrappers checks that each wrapper has its size, owns one C block, and frees it once, also
// if it is closed twice or forgotten.
func TestWrappers(t *testing.T) {
	for name, ways := range ways {
		for bytes, w := range ways {
			one := w.open()
			if got := reflect.TypeOf(one).Elem().Size(); int(got) != bytes {
				t.Errorf("%s: the wrapper of %d bytes has %d", name, bytes, got)
			}
			w.close(one)
			for _, part := range []int{0, 10, 100} {
				if name == "manual" && part > 0 {
					continue
				}
				r := testing.Benchmark(func(b *testing.B) { closed(b, w, part) })
				allocated, left := int(r.Extra["c-allocated"]), r.Extra["c-unfreed-drained"]
				if allocated != r.N || r.Extra["c-misfreed"] != 0 || left > tolerance {
					t.Errorf("%s, %d bytes, %d %% forgotten: %d blocks in %d operations, %v unfreed, %v freed twice",
						name, bytes, part, allocated, r.N, left, r.Extra["c-misfreed"])
				}
			}
			before := Count()
			one = w.open()
			w.close(one)
			w.close(one)
			if w.flush != nil {
				w.flush()
			}
			if now := Count(); now.Freed != before.Freed+1 || now.Misfreed != before.Misfreed {
				t.Errorf("%s, %d bytes: %d blocks freed by two calls of Close", name, bytes, now.Freed-before.Freed)
			}
		}
	}
}

// TestReplacedAreHeld checks that nothing but live wrappers holds blocks when others were
// closed at random.
func TestReplacedAreHeld(t *testing.T) {
	for name, ways := range ways {
		r := testing.Benchmark(func(b *testing.B) { replace(b, ways[64], 10_000) })
		if held := r.Extra["c-held/live"]; held < 0.99 || held > 1.01 {
			t.Errorf("%s: %v blocks are held for each live wrapper, want 1", name, held)
		}
	}
}
