package objects

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
	"unsafe"

	"gccost/meter"
)

// TestMain sets a short benchtime for the benchmarks that tests run. A -bench run keeps its
// own benchtime.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "20000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func BenchmarkEmptyFinalizer(b *testing.B) {
	m := meter.Start(b, nil)
	for i := 0; i < b.N; i++ {
		EmptyFinalizer()
	}
	m.Stop()
}

// sizeBenchmark is a benchmark of objects of one size.
type sizeBenchmark struct {
	words int
	bytes uintptr
	bench func(b *testing.B, how mechanism)
}

// mechanism is what a benchmark does with a new object.
type mechanism int

const (
	allocate mechanism = iota // nothing
	finalize                  // sets a finalizer that does nothing
)

// keep makes the compiler allocate the argument of drop on the heap.
var keep interface{}

// ignore is a finalizer that does nothing.
func ignore[T any](*T) {}

func of[T any]() sizeBenchmark {
	var zero T
	bytes := unsafe.Sizeof(zero)
	return sizeBenchmark{
		words: int(bytes / unsafe.Sizeof(uintptr(0))),
		bytes: bytes,
		bench: func(b *testing.B, how mechanism) {
			// Inside the loop, each iteration would allocate the value of a generic
			// function.
			finalizer := ignore[T]
			m := meter.Start(b, nil)
			if how == allocate {
				for i := 0; i < b.N; i++ {
					drop(new(T))
				}
			} else {
				for i := 0; i < b.N; i++ {
					runtime.SetFinalizer(new(T), finalizer)
				}
			}
			m.Stop()
		},
	}
}

// drop drops an object that the compiler must have allocated on the heap.
//
//go:noinline
func drop[T any](object *T) {
	if object == nil {
		keep = object
	}
}

// curve holds the sizes of the published curve, in pointer words.
var curve = []sizeBenchmark{
	of[[1]*byte](), of[[2]*byte](), of[[4]*byte](), of[[8]*byte](), of[[16]*byte](),
	of[[32]*byte](), of[[64]*byte](), of[[128]*byte](), of[[256]*byte](), of[[512]*byte](),
}

func BenchmarkAllocate(b *testing.B) { overSizes(b, allocate) }

func BenchmarkFinalize(b *testing.B) { overSizes(b, finalize) }

func overSizes(b *testing.B, how mechanism) {
	for _, size := range curve {
		size := size
		b.Run(fmt.Sprintf("words=%d", size.words), func(b *testing.B) { size.bench(b, how) })
	}
}

// BenchmarkFinalizeBytes is [BenchmarkFinalize] with objects that hold no pointers. It skips
// those that the runtime may batch.
func BenchmarkFinalizeBytes(b *testing.B) {
	for _, size := range []sizeBenchmark{of[[8]byte](), of[[16]byte](), of[[24]byte](), of[[64]byte]()} {
		size := size
		b.Run(fmt.Sprintf("bytes=%d", size.bytes), func(b *testing.B) {
			if err := Batched(size.bytes, false); err != nil {
				b.Skip(err)
			}
			size.bench(b, finalize)
		})
	}
}

// large is an object whose freeing shows in the size of the heap: nothing else in the
// program changes the heap as much.
type large [4 << 20]byte

func newLarge(arm func(*large)) {
	object := new(large)
	arm(object)
}

// untilFree reports gc-cycles-to-free: the mean number of collections until the memory of a
// dropped object is freed.
func untilFree(b *testing.B, arm func(object *large, ran chan<- struct{})) {
	const most = 10
	// Run only the cycles that are counted: allocating the object would trigger another.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	total := 0
	for i := 0; i < b.N; i++ {
		ran := make(chan struct{}, 1)
		runtime.GC()
		before := heap()
		newLarge(func(object *large) {
			if arm != nil {
				arm(object, ran)
			}
		})
		clearStack(64)
		cycles := 0
		for heap() > before+uint64(unsafe.Sizeof(large{}))/2 && cycles < most {
			runtime.GC()
			cycles++
			// Wait for the finalizer, if this cycle queued it: it keeps its object until
			// it has run.
			select {
			case <-ran:
			case <-time.After(20 * time.Millisecond):
			}
		}
		total += cycles
	}
	b.ReportMetric(float64(total)/float64(b.N), "gc-cycles-to-free")
}

// clearStack overwrites the stack below the caller, which may still contain a pointer to a
// dropped object.
//
//go:noinline
func clearStack(depth int) byte {
	var block [64]byte
	if depth == 0 {
		return block[0]
	}
	return clearStack(depth-1) + block[depth%len(block)]
}

func heap() uint64 {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc
}

func BenchmarkUntilFreePlain(b *testing.B) { untilFree(b, nil) }

func finalizeLarge(object *large, ran chan<- struct{}) {
	runtime.SetFinalizer(object, func(*large) { ran <- struct{}{} })
}

func BenchmarkUntilFreeFinalizer(b *testing.B) { untilFree(b, finalizeLarge) }

// TestAllocations checks that each operation allocates one object of the declared size, and
// that its finalizer allocates nothing more.
func TestAllocations(t *testing.T) {
	for _, size := range curve {
		for _, how := range []mechanism{allocate, finalize} {
			r := testing.Benchmark(func(b *testing.B) { size.bench(b, how) })
			if r.AllocsPerOp() != 1 {
				t.Errorf("%d words, mechanism %d: %d allocations per operation, want 1", size.words, how, r.AllocsPerOp())
			}
			// Sizes are rounded up to a size class. Since Go 1.22, a header can add 8 bytes.
			if got := uintptr(r.AllocedBytesPerOp()); got < size.bytes || got > size.bytes+size.bytes/4+8 {
				t.Errorf("%d words, mechanism %d: %d bytes per operation, want about %d", size.words, how, got, size.bytes)
			}
		}
	}
	if r := testing.Benchmark(BenchmarkEmptyFinalizer); r.AllocsPerOp() != 1 {
		t.Errorf("EmptyFinalizer: %d allocations per operation, want 1", r.AllocsPerOp())
	}
}

// TestFinalizersRun checks that the runtime runs the finalizers of dropped objects.
func TestFinalizersRun(t *testing.T) {
	const n = 1000
	ran := make(chan struct{}, n)
	for i := 0; i < n; i++ {
		object := new([4]*byte)
		runtime.SetFinalizer(object, func(*[4]*byte) { ran <- struct{}{} })
	}
	timeout := time.After(time.Minute)
	for seen := 0; seen < n-8; seen++ { // the stack may still refer to a few objects
		if seen == 0 {
			runtime.GC()
		}
		select {
		case <-ran:
		case <-timeout:
			t.Fatalf("%d of %d finalizers ran", seen, n)
		}
	}
}

func TestUntilFree(t *testing.T) {
	for name, c := range untilFreeWants {
		r := benchmarkTimes(3, c.benchmark)
		if got := r.Extra["gc-cycles-to-free"]; got != c.want {
			t.Errorf("%s: %v GC cycles until the memory is freed, want %v", name, got, c.want)
		}
	}
}

type untilFreeWant struct {
	benchmark func(*testing.B)
	want      float64
}

var untilFreeWants = map[string]untilFreeWant{
	"plain":     {BenchmarkUntilFreePlain, 1},
	"finalizer": {BenchmarkUntilFreeFinalizer, 2},
}

// benchmarkTimes runs a benchmark with b.N = n.
func benchmarkTimes(n int, benchmark func(*testing.B)) testing.BenchmarkResult {
	set := flag.Lookup("test.benchtime").Value
	before := set.String()
	defer set.Set(before)
	if err := set.Set(fmt.Sprintf("%dx", n)); err != nil {
		panic(err)
	}
	return testing.Benchmark(benchmark)
}

// TestBatched checks which objects Batched refuses.
func TestBatched(t *testing.T) {
	for _, c := range []struct {
		bytes    uintptr
		pointers bool
		refused  bool
	}{{8, false, true}, {16, false, true}, {17, false, false}, {8, true, false}, {4096, true, false}} {
		if err := Batched(c.bytes, c.pointers); (err != nil) != c.refused {
			t.Errorf("Batched(%d, %v) = %v, want refused %v", c.bytes, c.pointers, err, c.refused)
		}
	}
}
