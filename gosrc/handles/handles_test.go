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

	"gccost/meter"
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

// sizes are the sizes of handles in bytes, few those that are measured with many live handles.
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

func BenchmarkHandleFree(b *testing.B) {
	m := meter.Start(b, Count)
	manual(b.N)
	m.Stop()
}

func BenchmarkHandleFinalizer(b *testing.B) { over(b, sizes, Finalizer, dropped) }

// each runs a benchmark for each of some numbers.
func each(b *testing.B, name string, numbers []int, bench func(b *testing.B, n int)) {
	for _, n := range numbers {
		n := n
		b.Run(fmt.Sprintf("%s=%d", name, n), func(b *testing.B) { bench(b, n) })
	}
}

var lives = []int{1000, 100_000, 1_000_000}

// replace keeps live handles. Each operation drops a random one and makes another. It reports
// the blocks held after the loop and a drain, for each live handle, as c-held/live, and, as
// c-unfreed-drained, the blocks held after it has dropped all handles.
func replace(b *testing.B, live int, open func() any) {
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
	handles := make([]any, live)
	for i := range handles {
		handles[i] = open()
	}
	m := meter.Start(b, Count)
	for i := 0; i < b.N; i++ {
		handles[chance.Intn(live)] = open()
	}
	m.Stop()
	b.ReportMetric(held()/float64(live), "c-held/live")
	for i := range handles {
		handles[i] = nil
	}
	for i := 0; i < 100 && held() > 0; i++ {
		runtime.GC()
	}
	b.ReportMetric(held(), "c-unfreed-drained")
}

func replaced(b *testing.B, open func() any) {
	each(b, "live", lives, func(b *testing.B, n int) { replace(b, n, open) })
}

func BenchmarkHandleLivesFinalizer(b *testing.B) { over(b, few, Finalizer, replaced) }

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

// TestHeld tests that live handles hold a block each.
func TestHeld(t *testing.T) {
	r := testing.Benchmark(func(b *testing.B) { replace(b, 10_000, Finalizer[16]) })
	if held := r.Extra["c-held/live"]; held < 1 || held > 1.1 {
		t.Errorf("%v blocks are held for each live handle with a finalizer, want about 1", held)
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
