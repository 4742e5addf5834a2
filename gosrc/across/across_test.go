package across

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sort"
	"testing"
	"time"
	"unsafe"

	"gccost/usage"
)

// benchmarks maps names to benchmarks; cleanup_test.go adds one for later releases.
var benchmarks = map[string]func(b *testing.B){
	"AcrossFree":               BenchmarkAcrossFree,
	"AcrossCall":               BenchmarkAcrossCall,
	"AcrossMalloc":             BenchmarkAcrossMalloc,
	"AcrossHeapFree":           BenchmarkAcrossHeapFree,
	"AcrossFinalizer":          BenchmarkAcrossFinalizer,
	"AcrossSlab":               BenchmarkAcrossSlab,
	"AcrossAllocate/words=1":   func(b *testing.B) { allocate(b, small) },
	"AcrossAllocate/words=512": func(b *testing.B) { allocate(b, large) },
	"AcrossFinalize/words=1":   func(b *testing.B) { finalize(b, small) },
	"AcrossFinalize/words=512": func(b *testing.B) { finalize(b, large) },
	"AcrossAttach":             BenchmarkAcrossAttach,
	"AcrossLive":               BenchmarkAcrossLive,
}

// --- Ways to free a C block ---------------------------------------------------------

func BenchmarkAcrossFree(b *testing.B) {
	measure(b, func(n int) {
		for i := 0; i < n; i++ {
			Pair()
		}
	})
}

func BenchmarkAcrossCall(b *testing.B) {
	measure(b, func(n int) {
		for i := 0; i < n; i++ {
			Call()
		}
	})
}

func BenchmarkAcrossMalloc(b *testing.B) { measure(b, Pairs) }

func BenchmarkAcrossHeapFree(b *testing.B) {
	measure(b, func(n int) {
		for i := 0; i < n; i++ {
			Heap().Free()
		}
	})
}

func BenchmarkAcrossFinalizer(b *testing.B) {
	measure(b, func(n int) {
		for i := 0; i < n; i++ {
			Finalized()
		}
	})
}

func BenchmarkAcrossSlab(b *testing.B) {
	next := Slabs()
	measure(b, func(n int) {
		for i := 0; i < n; i++ {
			next()
		}
	})
}

// --- Objects without C --------------------------------------------------------------

type object struct{ pointer *byte }

type largeObject struct{ pointers [512]*byte }

// kept makes objects escape to the heap.
var kept interface{}

// sized has the operations on n objects of one size.
type sized struct{ allocate, finalize func(n int) }

var small = sized{
	func(n int) {
		for i := 0; i < n; i++ {
			drop(new(object))
		}
	},
	func(n int) {
		for i := 0; i < n; i++ {
			runtime.SetFinalizer(new(object), ignore)
		}
	},
}

var large = sized{
	func(n int) {
		for i := 0; i < n; i++ {
			dropLarge(new(largeObject))
		}
	},
	func(n int) {
		for i := 0; i < n; i++ {
			runtime.SetFinalizer(new(largeObject), ignoreLarge)
		}
	},
}

func ignore(*object)           {}
func ignoreLarge(*largeObject) {}

// drop forces the compiler to allocate its argument on the heap.
//
//go:noinline
func drop(o *object) {
	if o == nil {
		kept = o
	}
}

//go:noinline
func dropLarge(o *largeObject) {
	if o == nil {
		kept = o
	}
}

func allocate(b *testing.B, s sized) { measure(b, s.allocate) }

func finalize(b *testing.B, s sized) { measure(b, s.finalize) }

func overSizes(b *testing.B, run func(b *testing.B, s sized)) {
	b.Run("words=1", func(b *testing.B) { run(b, small) })
	b.Run("words=512", func(b *testing.B) { run(b, large) })
}

func BenchmarkAcrossAllocate(b *testing.B) { overSizes(b, allocate) }

func BenchmarkAcrossFinalize(b *testing.B) { overSizes(b, finalize) }

// --- One registration, by the length of its span's list of specials -----------------

const (
	page  = 8192 // a span of small objects is one page
	parts = 8    // of a span, each timed separately
)

// BenchmarkAcrossAttach times only SetFinalizer, on the objects of whole spans in ascending
// order, with the GC off. It reports at-N-records-ns, the median over the spans of the time
// of a call when the list holds N records, and call-ns, the mean time of a call over a
// whole span.
func BenchmarkAcrossAttach(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	spans := wholeSpans(b.N)
	size := len(spans[0]) / parts
	times := make([][]float64, parts)
	measure(b, func(int) {
		for _, span := range spans {
			for part := range times {
				begin := time.Now()
				for _, o := range span[part*size : (part+1)*size] {
					runtime.SetFinalizer(o, ignore)
				}
				ns := float64(time.Since(begin).Nanoseconds())
				times[part] = append(times[part], ns/float64(size))
			}
		}
	})
	mean := 0.0
	for part := range times {
		ns := quantile(times[part], 0.5)
		report(ns, fmt.Sprintf("at-%g-records-ns", (float64(part)+0.5)*float64(size)-0.5))
		mean += ns / parts
	}
	report(mean, "call-ns")
	runtime.KeepAlive(spans)
}

// wholeSpans allocates at least n objects and returns them grouped by span, in ascending
// order, without the spans that hold other objects too.
func wholeSpans(n int) (spans [][]*object) {
	objects := make([]*object, n+4*page)
	for i := range objects {
		objects[i] = new(object)
	}
	sort.Slice(objects, func(i, j int) bool { return address(objects[i]) < address(objects[j]) })
	pages, most := [][]*object{}, 0
	for from, i := 0, 1; i <= len(objects); i++ {
		if i == len(objects) || address(objects[i])/page != address(objects[from])/page {
			pages = append(pages, objects[from:i])
			if i-from > most {
				most = i - from
			}
			from = i
		}
	}
	for _, found := range pages {
		if len(found) == most {
			spans = append(spans, found)
		}
	}
	return spans
}

func address(o *object) uintptr { return uintptr(unsafe.Pointer(o)) }

// --- The cost of special records in each GC cycle -----------------------------------

// BenchmarkAcrossLive keeps b.N objects alive and runs GC cycles, first without finalizers
// and then with one per object. It reports special-ns, the difference in CPU time per
// object and cycle.
func BenchmarkAcrossLive(b *testing.B) {
	objects := make([]*object, b.N)
	for i := range objects {
		objects[i] = new(object)
	}
	measure(b, func(int) {
		before := cycle()
		for i := range objects { // in descending order, which needs no walk of the list
			runtime.SetFinalizer(objects[len(objects)-1-i], ignore)
		}
		added := cycle() - before
		if added < 0 { // noise, with few objects
			added = 0
		}
		report(float64(added.Nanoseconds())/float64(b.N), "special-ns")
	})
	runtime.KeepAlive(objects)
}

// cycle runs several GC cycles and returns the minimum CPU time of one, on all threads.
func cycle() time.Duration {
	least := time.Hour
	for i := 0; i < 6; i++ {
		begin := usage.Read().CPU
		runtime.GC()
		if used := usage.Read().CPU - begin; used < least {
			least = used
		}
	}
	return least
}

// --- Tests --------------------------------------------------------------------------

// run runs a benchmark and returns its metrics.
func run(name string, n int) map[string]float64 {
	found = nil
	benchmarks[name](&testing.B{N: n})
	metrics := map[string]float64{}
	for _, m := range found {
		metrics[m.unit] = m.value
	}
	return metrics
}

// TestAllocations tests how many times an operation allocates on the Go heap.
func TestAllocations(t *testing.T) {
	const n = 20480
	for name, want := range map[string]float64{
		"AcrossFree": 0, "AcrossCall": 0, "AcrossMalloc": 0, "AcrossHeapFree": 1, "AcrossFinalizer": 1,
		"AcrossFinalize/words=1": 1, "AcrossSlab": 1.0 / slabHandles, "AcrossAllocate/words=512": 1,
	} {
		metrics := run(name, n)
		if got := metrics["allocs/op"]; got < want || got > want+0.02 {
			t.Errorf("%s: %v Go allocations per operation, want %v", name, got, want)
		}
		if metrics["ns/op"] <= 0 {
			t.Errorf("%s: %v ns/op", name, metrics["ns/op"])
		}
	}
}

// TestAttach tests that each part of a span is timed.
func TestAttach(t *testing.T) {
	metrics, timed := run("AcrossAttach", 50000), 0
	for unit := range metrics {
		if len(unit) > 3 && unit[:3] == "at-" {
			timed++
		}
	}
	if timed != parts {
		t.Errorf("%d parts of a span were timed, want %d: %v", timed, parts, metrics)
	}
}

// TestSlabFinalizerRuns tests that the GC runs the finalizer of a dropped slab.
func TestSlabFinalizerRuns(t *testing.T) {
	freed := make(chan struct{}, 1)
	func() {
		s := newSlab()
		runtime.SetFinalizer(s, nil)
		runtime.SetFinalizer(s, func(s *slab) { s.free(); freed <- struct{}{} })
	}()
	for i := 0; i < 100; i++ {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("a dropped slab was not freed within 100 GC cycles")
}

// TestMatches tests that patterns select benchmarks as go test -bench does.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		asked, name string
		want        bool
	}{
		{"^Benchmark(AcrossFree)$", "BenchmarkAcrossFree", true},
		{"^Benchmark(AcrossFree)$", "BenchmarkAcrossFinalizer", false},
		{"^Benchmark(A)$/^words=1$", "BenchmarkA/words=1", true},
		{"^Benchmark(A)$/^words=1$", "BenchmarkA/words=512", false},
		{"^Benchmark(A)$/^words=1$", "BenchmarkA", false},
	} {
		if got := matches(patterns(c.asked), c.name); got != c.want {
			t.Errorf("%s matches %s: got %v", c.asked, c.name, got)
		}
	}
}
