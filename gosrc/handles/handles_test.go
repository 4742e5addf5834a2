package handles

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"runtime"
	"testing"
	"time"

	"example.org/gccost/slab"

	"gccost/meter"
	"gccost/parallel"
)

// TestMain sets a short benchtime for tests that call testing.Benchmark. A run with -bench
// keeps its benchtime.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "100000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func manual(n int) {
	for i := 0; i < n; i++ {
		p := Allocate()
		Free(p)
	}
}

// loop measures an operation that allocates on the Go heap.
func loop(b *testing.B, count func() meter.Blocks, operation func()) {
	settle()
	m := meter.Start(b, count)
	for i := 0; i < b.N; i++ {
		operation()
	}
	m.Stop()
}

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

// sizes are the sizes of handles in bytes, few those that are measured with many live
// handles and on several goroutines.
var (
	sizes = []int{8, 16, 24, 32, 48, 64, 128, 256, 1024}
	few   = []int{8, 16, 64}
)

// opened are functions that return a handle, by its size in bytes.
type opened = map[int]func() any

// over runs a benchmark for handles of each size.
func over(b *testing.B, sizes []int, open opened, bench func(b *testing.B, open func() any)) {
	each(b, "bytes", sizes, func(b *testing.B, bytes int) { bench(b, open[bytes]) })
}

func dropped(b *testing.B, open func() any) { loop(b, Count, func() { open() }) }

// flushed returns a function that counts blocks for the meter. From the third call on, which
// is the meter's drain, it flushes the pool first, so that no block waits for others.
func flushed(p *slab.Pool[uintptr]) func() meter.Blocks {
	calls := 0
	return func() meter.Blocks {
		if calls++; calls > 2 {
			p.Flush()
		}
		return Count()
	}
}

func BenchmarkHandleFree(b *testing.B) {
	m := meter.Start(b, Count)
	manual(b.N)
	m.Stop()
}

func BenchmarkHandleFinalizer(b *testing.B) { over(b, sizes, Finalizer, dropped) }

// BenchmarkHandleAdopted lets slabs adopt the blocks, and drops the handles.
func BenchmarkHandleAdopted(b *testing.B) {
	p := NewPool()
	loop(b, flushed(p), func() { Adopt(p) })
}

// BenchmarkHandleAdoptedClose is [BenchmarkHandleAdopted], but closes the handles.
func BenchmarkHandleAdoptedClose(b *testing.B) {
	p := NewPool()
	loop(b, flushed(p), func() {
		if err := Adopt(p).Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// each runs a benchmark for each of some numbers.
func each(b *testing.B, name string, numbers []int, bench func(b *testing.B, n int)) {
	for _, n := range numbers {
		n := n
		b.Run(fmt.Sprintf("%s=%d", name, n), func(b *testing.B) { bench(b, n) })
	}
}

var goroutines = []int{1, 2}

// share divides the work among goroutines.
func share(b *testing.B, goroutines int, count func() meter.Blocks, operation func()) {
	settle()
	m := meter.Start(b, count)
	parallel.Share(b.N, goroutines, operation)
	m.Stop()
}

func shared(b *testing.B, open func() any) {
	each(b, "goroutines", goroutines, func(b *testing.B, n int) { share(b, n, Count, func() { open() }) })
}

func BenchmarkHandleSharedFree(b *testing.B) {
	shared(b, func() any { Free(Allocate()); return nil })
}

func BenchmarkHandleSharedFinalizer(b *testing.B) { over(b, few, Finalizer, shared) }

func BenchmarkHandleSharedAdopted(b *testing.B) {
	each(b, "goroutines", goroutines, func(b *testing.B, n int) {
		p := NewPool()
		share(b, n, flushed(p), func() { Adopt(p) })
	})
}

var lives = []int{1000, 100_000, 1_000_000}

// replace keeps live handles. Each operation drops a random one and makes another. It reports
// the blocks held after the loop and a drain, for each live handle, as c-held/live, and, as
// c-unfreed-drained, the blocks held after it has dropped all handles.
func replace[T any](b *testing.B, live int, count func() meter.Blocks, open func() T, drop func(T)) {
	if live > 100*b.N {
		live = 100 * b.N // the first run, with one operation
	}
	settle()
	before := Count()
	held := func() float64 {
		now := Count()
		return float64((now.Allocated - now.Freed) - (before.Allocated - before.Freed))
	}
	chance := rand.New(rand.NewSource(1))
	handles := make([]T, live)
	for i := range handles {
		handles[i] = open()
	}
	m := meter.Start(b, count)
	for i := 0; i < b.N; i++ {
		at := chance.Intn(live)
		drop(handles[at])
		handles[at] = open()
	}
	m.Stop()
	b.ReportMetric(held()/float64(live), "c-held/live")
	for i, handle := range handles {
		drop(handle)
		var none T
		handles[i] = none
	}
	for i := 0; i < 100 && held() > 0; i++ {
		runtime.GC()
		count()
	}
	b.ReportMetric(held(), "c-unfreed-drained")
}

func replaced(b *testing.B, open func() any) {
	each(b, "live", lives, func(b *testing.B, n int) { replace(b, n, Count, open, func(any) {}) })
}

func BenchmarkHandleLivesFree(b *testing.B) {
	each(b, "live", lives, func(b *testing.B, n int) { replace(b, n, Count, Allocate, Free) })
}

func BenchmarkHandleLivesFinalizer(b *testing.B) { over(b, few, Finalizer, replaced) }

func BenchmarkHandleLivesAdopted(b *testing.B) { each(b, "live", lives, adopted) }

// adopted is [replace] for handles in slabs.
func adopted(b *testing.B, live int) {
	p := NewPool()
	open := func() slab.Handle[uintptr] { return Adopt(p) }
	replace(b, live, flushed(p), open, func(slab.Handle[uintptr]) {})
}

// tolerance is how many blocks may be unfreed after a drain: stock Go occasionally does not
// run a cleanup, and the stack may still refer to the last handle.
const tolerance = 8

// allocations are the Go allocations of an operation, by the kind of handle.
var allocations = map[string]struct {
	open opened
	most int64
}{"finalizer": {Finalizer, 1}}

// TestHandles tests that handles have their sizes, that each owns one C block, which is freed
// once, and that a finalizer takes no allocation of its own.
func TestHandles(t *testing.T) {
	for kind, c := range allocations {
		for _, bytes := range sizes {
			r := testing.Benchmark(func(b *testing.B) { dropped(b, c.open[bytes]) })
			if got := int(r.Extra["c-allocated"]); got != r.N {
				t.Errorf("%s, %d bytes: %d C blocks in %d operations", kind, bytes, got, r.N)
			}
			if got := r.Extra["c-misfreed"]; got != 0 {
				t.Errorf("%s, %d bytes: %v frees of blocks that were not allocated", kind, bytes, got)
			}
			if got := r.Extra["c-unfreed-drained"]; got > tolerance {
				t.Errorf("%s, %d bytes: %v blocks are unfreed after the drain", kind, bytes, got)
			}
			if got := r.AllocsPerOp(); got < 1 || got > c.most {
				t.Errorf("%s, %d bytes: %d Go allocations in an operation, want at most %d", kind, bytes, got, c.most)
			}
			if got := reflect.TypeOf(c.open[bytes]()).Elem().Size(); int(got) != bytes {
				t.Errorf("%s: the handle of %d bytes has %d", kind, bytes, got)
			}
		}
	}
}

// TestSlabs tests that slabs free every adopted block once.
func TestSlabs(t *testing.T) {
	for name, benchmark := range map[string]func(*testing.B){
		"dropped": BenchmarkHandleAdopted, "closed": BenchmarkHandleAdoptedClose,
	} {
		r := testing.Benchmark(benchmark)
		allocated, left := r.Extra["c-allocated"], r.Extra["c-unfreed-drained"]
		if int(allocated) != r.N || r.Extra["c-misfreed"] != 0 || left > tolerance {
			t.Errorf("%s: %v blocks in %d operations, %v unfreed, %v misfreed", name, allocated, r.N, left, r.Extra["c-misfreed"])
		}
	}
}

// TestHeld tests that live handles hold a block each, and that handles in slabs hold more
// when they die in random order.
func TestHeld(t *testing.T) {
	const live = 10_000
	single := testing.Benchmark(func(b *testing.B) { replace(b, live, Count, Finalizer[16], func(any) {}) })
	if held := single.Extra["c-held/live"]; held < 1 || held > 1.1 {
		t.Errorf("%v blocks are held for each live handle with a finalizer, want about 1", held)
	}
	slabs := testing.Benchmark(func(b *testing.B) { adopted(b, live) })
	if held := slabs.Extra["c-held/live"]; held < 3.5 || held > 5.5 {
		t.Errorf("%v blocks are held for each live handle with slabs, want about 4.7", held)
	}
}

// TestManualFreesAtOnce tests that the baseline leaves no block and does not allocate.
func TestManualFreesAtOnce(t *testing.T) {
	settle() // so that no finalizers run, which would allocate
	r := testing.Benchmark(BenchmarkHandleFree)
	if r.Extra["c-unfreed-loop"] != 0 || r.AllocsPerOp() != 0 {
		t.Errorf("%v blocks unfreed, %d allocations in an operation", r.Extra["c-unfreed-loop"], r.AllocsPerOp())
	}
}
