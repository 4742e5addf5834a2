package remedies

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"example.org/gccost/slab"

	"gccost/meter"
	"gccost/parallel"
)

// TestMain sets a short benchtime for the benchmarks that tests run. A -bench run keeps its
// own benchtime.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "200000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// A pool holds C blocks; a handle refers to one of them.
type (
	pool   = slab.Pool[uintptr]
	handle = slab.Handle[uintptr]
)

// newPool returns a pool whose slabs have the given number of handles.
func newPool(handles int) *pool {
	return &pool{Free: Blocks{}.Free, Make: Blocks{}.Make, Handles: handles}
}

// flushed returns a function that counts blocks for the meter. From the third call on, which
// is the meter's drain, it flushes the pool first, so that no block waits for others.
func flushed(p *pool) func() meter.Blocks {
	calls := 0
	return func() meter.Blocks {
		if calls++; calls > 2 {
			p.Flush()
		}
		return Count()
	}
}

// settle waits until earlier benchmarks have freed their blocks. Package testing first calls
// a benchmark with one operation, and the pool of that call must not be freed in the next.
func settle() {
	for i := 0; i < 100; i++ {
		if now := Count(); now.Allocated == now.Freed {
			return
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func get(b *testing.B, p *pool) handle {
	h, err := p.Get()
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// slabSizes are the numbers of handles per slab.
var slabSizes = []int{8, 64, 256}

// overSlabs runs a benchmark for each of slabSizes.
func overSlabs(b *testing.B, bench func(*testing.B, *pool)) {
	for _, handles := range slabSizes {
		handles := handles
		b.Run(fmt.Sprintf("handles=%d", handles), func(b *testing.B) { bench(b, newPool(handles)) })
	}
}

// batchSize is the number of blocks that BenchmarkBatch passes in a call into C.
const batchSize = 256

// BenchmarkBatch allocates and manually frees 256 blocks at a time. It shows the cost that
// is left without any automatic mechanism and with shared calls into C.
func BenchmarkBatch(b *testing.B) {
	var blocks [batchSize]uintptr
	m := meter.Start(b, Count)
	for left := b.N; left > 0; left -= len(blocks) {
		batch := blocks[:]
		if left < len(batch) {
			batch = batch[:left]
		}
		Exchange(nil, batch, false)
		Exchange(batch, nil, false)
	}
	m.Stop()
}

// loop measures an operation and reports the number of blocks held meanwhile: c-held-peak
// and c-held-mean. The mean divided by the number of blocks freed per second is the mean time
// that a block waits to be freed.
func loop(b *testing.B, count func() meter.Blocks, operation func()) {
	const every = 1 << 14
	var peak, sum, observations int64
	settle()
	start := Count()
	m := meter.Start(b, count)
	for i := 0; i < b.N; i++ {
		if i%every == every-1 {
			now := Count()
			held := (now.Allocated - now.Freed) - (start.Allocated - start.Freed)
			sum, observations = sum+held, observations+1
			if held > peak {
				peak = held
			}
		}
		operation()
	}
	m.Stop()
	if observations > 0 {
		b.ReportMetric(float64(peak), "c-held-peak")
		b.ReportMetric(float64(sum)/float64(observations), "c-held-mean")
	}
}

func dropped(b *testing.B, p *pool) { loop(b, flushed(p), func() { get(b, p) }) }

// BenchmarkSlab drops every handle, so the slabs' finalizers free all blocks.
func BenchmarkSlab(b *testing.B) { overSlabs(b, dropped) }

// BenchmarkManual calls C to allocate each block, and to free it.
func BenchmarkManual(b *testing.B) { loop(b, Count, func() { Free(Allocate()) }) }

// BenchmarkAdopted calls C to allocate each block, lets a pool adopt it, and drops the handle.
func BenchmarkAdopted(b *testing.B) { overSlabs(b, adoptedDropped) }

func adoptedDropped(b *testing.B, p *pool) { loop(b, flushed(p), func() { p.Adopt(Allocate()) }) }

// BenchmarkSlabLocked is [BenchmarkSlab] on a goroutine that stays on its thread, and thus
// uses one arena of the C heap.
func BenchmarkSlabLocked(b *testing.B) { overSlabs(b, locked(dropped)) }

// BenchmarkAdoptedLocked is [BenchmarkAdopted] on a goroutine that stays on its thread.
func BenchmarkAdoptedLocked(b *testing.B) { overSlabs(b, locked(adoptedDropped)) }

func locked(bench func(*testing.B, *pool)) func(*testing.B, *pool) {
	return func(b *testing.B, p *pool) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		bench(b, p)
	}
}

// BenchmarkAdoptedClose is [BenchmarkAdopted], but closes the handle.
func BenchmarkAdoptedClose(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		loop(b, flushed(p), func() {
			if err := p.Adopt(Allocate()).Close(); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkParallelSlab divides the work among goroutines, which drop every handle.
func BenchmarkParallelSlab(b *testing.B) { shared(b, Blocks{}) }

// BenchmarkParallelSlabCrowded is [BenchmarkParallelSlab] with all goroutines in the C heap
// at the same time.
func BenchmarkParallelSlabCrowded(b *testing.B) { shared(b, Blocks{Crowded: true}) }

func shared(b *testing.B, blocks Blocks) {
	for goroutines := 1; goroutines <= 64; goroutines *= 2 {
		goroutines := goroutines
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			settle()
			p := &pool{Free: blocks.Free, Make: blocks.Make}
			m := meter.Start(b, flushed(p))
			parallel.Share(b.N, goroutines, func() {
				if _, err := p.Get(); err != nil {
					panic(err)
				}
			})
			m.Stop()
		})
	}
}

// BenchmarkSlabUnseen is [BenchmarkSlab] with a collector that does not account for blocks.
func BenchmarkSlabUnseen(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		p.Bytes = -1
		dropped(b, p)
	})
}

// BenchmarkReuse drops every handle. The blocks are reused, not freed.
func BenchmarkReuse(b *testing.B) {
	var blocks Reusing
	p := &pool{Free: blocks.Free, Make: blocks.Make}
	count := flushed(p)
	calls := 0
	loop(b, func() meter.Blocks {
		n := count()
		if calls++; calls > 2 { // the drain
			blocks.Flush()
			n = Count()
		}
		return n
	}, func() { get(b, p) })
}

func closed(b *testing.B, p *pool) {
	loop(b, flushed(p), func() {
		if err := get(b, p).Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkSlabCloseAtOnce closes every handle, with a call into C in each Close.
func BenchmarkSlabCloseAtOnce(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		p.AtOnce = true
		closed(b, p)
	})
}

// BenchmarkSlabSurvivors drops all handles but every hundredth. It reports the number of
// blocks held for each surviving handle after the others are collected.
func BenchmarkSlabSurvivors(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		settle()
		kept := make([]handle, 0, b.N/100+1)
		held := Count()
		m := meter.Start(b, flushed(p))
		for i := 0; i < b.N; i++ {
			if h := get(b, p); i%100 == 0 {
				kept = append(kept, h)
			}
		}
		m.Stop()
		now := Count()
		blocks := (now.Allocated - now.Freed) - (held.Allocated - held.Freed)
		b.ReportMetric(float64(blocks)/float64(len(kept)), "c-held/survivor")
		for _, h := range kept {
			if err := h.Use(func(uintptr) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// onHeap runs a benchmark with 0, 100 and 1000 MB of live Go memory, which every collection
// must mark: on an empty heap, collections are cheap.
func onHeap(b *testing.B, bench func(*testing.B)) {
	type node struct {
		next *node
		_    [7]uintptr
	}
	for _, mb := range []int{0, 100, 1000} {
		mb := mb
		b.Run(fmt.Sprintf("mb=%d", mb), func(b *testing.B) {
			nodes := mb * 1_000_000 / 64
			if nodes > 1000*b.N {
				nodes = 1000 * b.N // the first run, with one operation, needs no more
			}
			var list *node
			for i := 0; i < nodes; i++ {
				list = &node{next: list}
			}
			bench(b)
			runtime.KeepAlive(list)
		})
	}
}

// BenchmarkOneHeapFinalizer sets a finalizer on each object, as package cstr does, but with
// the C functions that all remedies use. This excludes what they lose or gain by these.
func BenchmarkOneHeapFinalizer(b *testing.B) { loop(b, Count, func() { NewFinalized() }) }

func BenchmarkHeapSlab(b *testing.B) {
	onHeap(b, func(b *testing.B) { dropped(b, newPool(64)) })
}

// tolerance is the number of blocks that may stay unfreed after a drain: those of slabs that
// a stack refers to or that are being handed out, and those that stock Go leaves for a later
// cycle.
const tolerance = 4 * 256

// TestConservation checks that each remedy frees every block once.
func TestConservation(t *testing.T) {
	crowded := Blocks{Crowded: true}
	for name, benchmark := range map[string]func(*testing.B){
		"Batch":        BenchmarkBatch,
		"Slab":         func(b *testing.B) { dropped(b, newPool(64)) },
		"Slab crowded": func(b *testing.B) { dropped(b, &pool{Free: crowded.Free, Make: crowded.Make}) },
		"Slab close":   func(b *testing.B) { closed(b, newPool(64)) },
		"At once":      func(b *testing.B) { closed(b, &pool{Free: Blocks{}.Free, Make: Blocks{}.Make, AtOnce: true}) },
		"Slab unseen":  func(b *testing.B) { dropped(b, &pool{Free: Blocks{}.Free, Make: Blocks{}.Make, Bytes: -1}) },
		"Adopted": func(b *testing.B) {
			p := newPool(64)
			loop(b, flushed(p), func() { p.Adopt(Allocate()) })
		},
	} {
		r := testing.Benchmark(benchmark)
		// The blocks of a slab are allocated together, so some may be left over.
		if got := int(r.Extra["c-allocated"]); got < r.N || got > r.N+tolerance {
			t.Errorf("%s: %d C blocks allocated in %d operations", name, got, r.N)
		}
		if got := r.Extra["c-misfreed"]; got != 0 {
			t.Errorf("%s: %v blocks were freed twice", name, got)
		}
		// A negative number means that blocks of an earlier run were freed.
		if got := r.Extra["c-unfreed-drained"]; got < 0 || got > tolerance {
			t.Errorf("%s: %v blocks are not freed after the drain", name, got)
		}
	}
}

// TestManualAllocatesNothing checks that manual frees do not allocate on the Go heap.
func TestManualAllocatesNothing(t *testing.T) {
	for name, benchmark := range map[string]func(*testing.B){"Batch": BenchmarkBatch, "Manual": BenchmarkManual} {
		settle() // so that no finalizers run, which would allocate
		r := testing.Benchmark(benchmark)
		if r.MemAllocs > uint64(r.N/batchSize/2) { // fewer than one per batch
			t.Errorf("%s: %d Go allocations in %d operations, want none in the loop", name, r.MemAllocs, r.N)
		}
	}
}

// TestHeld checks that the blocks held meanwhile are at most those allocated.
func TestHeld(t *testing.T) {
	r := testing.Benchmark(func(b *testing.B) { dropped(b, newPool(64)) })
	peak, mean := r.Extra["c-held-peak"], r.Extra["c-held-mean"]
	if mean <= 0 || peak < mean || peak > float64(r.N+tolerance) {
		t.Errorf("%v blocks at the peak, %v on average, of %d", peak, mean, r.N)
	}
}
