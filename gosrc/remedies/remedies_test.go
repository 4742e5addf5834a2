package remedies

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"testing"
	"time"

	"example.org/gccost/slab"

	"gccost/cstr"
	"gccost/meter"
	"gccost/parallel"
)

// TestMain shortens what testing.Benchmark runs for the tests below; a -bench
// run keeps the benchtime it was given.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "200000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// pool is a pool of blocks, and handle a handle of one.
type (
	pool   = slab.Pool[uintptr]
	handle = slab.Handle[uintptr]
)

// newPool returns a pool with slabs of so many handles.
func newPool(handles int) *pool {
	return &pool{Free: Blocks{}.Free, Make: Blocks{}.Make, Handles: handles}
}

// flushed counts blocks for the meter. Its drain, from the third call on, flushes
// the pool, for a block that waits for others is not freed yet.
func flushed(p *pool) func() meter.Blocks {
	calls := 0
	return func() meter.Blocks {
		if calls++; calls > 2 {
			p.Flush()
		}
		return Count()
	}
}

// settle waits until what went before has freed its blocks. A benchmark is called
// with one operation first, and the pool of that call would be freed in the next.
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

// slabSizes are how many handles share a slab.
var slabSizes = []int{8, 64, 256}

// overSlabs runs a benchmark with slabs of several sizes.
func overSlabs(b *testing.B, bench func(*testing.B, *pool)) {
	for _, handles := range slabSizes {
		handles := handles
		b.Run(fmt.Sprintf("handles=%d", handles), func(b *testing.B) { bench(b, newPool(handles)) })
	}
}

// batched is how many blocks BenchmarkBatch has in a call of C.
const batched = 256

// BenchmarkBatch allocates and frees by hand, 256 at a time: what is left of the
// cost when nothing is automatic and calls into C are shared.
func BenchmarkBatch(b *testing.B) {
	var blocks [batched]uintptr
	m := meter.Start(b, Count)
	for n := m.Slice(); n > 0; n = m.Slice() { // whole batches, but for the last
		for left := n; left > 0; left -= len(blocks) {
			batch := blocks[:]
			if left < len(batch) {
				batch = batch[:left]
			}
			Exchange(nil, batch, false)
			Exchange(batch, nil, false)
		}
	}
	m.Stop()
}

// pieces is how a loop of n operations is divided: next returns how many operations
// the next piece has, 0 at the end.
type pieces func(m *meter.Meter, n int) (next func() int)

// sliced is for operations that allocate nothing on the Go heap.
func sliced(m *meter.Meter, _ int) func() int { return m.Slice }

// parted is for operations that do: parts with a reference before each.
func parted(m *meter.Meter, _ int) func() int {
	return func() int { return m.Part(manual) }
}

// manual is the reference: that of package cstr, for the counters of this package are
// shared by all threads, so that its own manual free would wait for those that finalizers
// do. Its block comes from the one C heap of the process, and goes back at once.
func manual(n int) {
	for i := 0; i < n; i++ {
		p := cstr.Allocate()
		cstr.Free(p)
	}
}

// withReference counts the reference's blocks too, as [meter.Meter.Part] wants.
func withReference(count func() meter.Blocks) func() meter.Blocks {
	return func() meter.Blocks {
		n, reference := count(), cstr.Count()
		n.Allocated += reference.Allocated
		n.Freed += reference.Freed
		n.Misfreed += reference.Misfreed
		return n
	}
}

// whole is for such operations without a reference: one piece.
func whole(_ *meter.Meter, n int) func() int {
	return func() int {
		piece := n
		n = 0
		return piece
	}
}

// loop measures an operation that allocates on the Go heap, as loopIn does.
func loop(b *testing.B, count func() meter.Blocks, operation func()) {
	loopIn(parted, b, withReference(count), operation)
}

// A look is how many blocks are held at a time.
type look struct {
	held int64
	at   time.Duration // since the loop began
}

// loopIn measures an operation, and reports how many blocks are held meanwhile:
// c-held-peak and c-held-mean, and up to 48 looks in order, c-held-00 at c-held-00-ms
// and so on. What is held on average over what is freed in a second is how long a block
// waits to be freed.
func loopIn(pieces pieces, b *testing.B, count func() meter.Blocks, operation func()) {
	const every = 1 << 14
	var peak, sum, looks int64
	var shown [48]look
	apart := int64(b.N/every/len(shown) + 1)
	settle()
	start := Count()
	m := meter.Start(b, count)
	began := time.Now()
	next := pieces(m, b.N)
	for i, n := 0, next(); n > 0; n = next() {
		for end := i + n; i < end; i++ {
			if i%every == every-1 {
				now := Count()
				held := (now.Allocated - now.Freed) - (start.Allocated - start.Freed)
				if looks%apart == 0 {
					shown[looks/apart] = look{held, time.Since(began)}
				}
				sum, looks = sum+held, looks+1
				if held > peak {
					peak = held
				}
			}
			operation()
		}
	}
	m.Stop()
	if looks > 0 {
		b.ReportMetric(float64(peak), "c-held-peak")
		b.ReportMetric(float64(sum)/float64(looks), "c-held-mean")
	}
	for i := int64(0); i*apart < looks; i++ {
		unit := fmt.Sprintf("c-held-%02d", i)
		b.ReportMetric(float64(shown[i].held), unit)
		b.ReportMetric(float64(shown[i].at.Microseconds())/1000, unit+"-ms")
	}
}

func dropped(b *testing.B, p *pool) { loop(b, flushed(p), func() { get(b, p) }) }

// BenchmarkSlab drops every handle: all blocks are freed by way of the slabs' finalizers.
func BenchmarkSlab(b *testing.B) { overSlabs(b, dropped) }

// BenchmarkManual calls C to make each block, and to free it.
func BenchmarkManual(b *testing.B) { loopIn(sliced, b, Count, func() { Free(Allocate()) }) }

// BenchmarkAdopted calls C to make each block, has a pool adopt it, and drops the handle.
func BenchmarkAdopted(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) { loop(b, flushed(p), func() { p.Adopt(Allocate()) }) })
}

// BenchmarkAdoptedClose does the same, and closes the handle.
func BenchmarkAdoptedClose(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		loop(b, flushed(p), func() {
			if err := p.Adopt(Allocate()).Close(); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkParallelSlab has goroutines share the work, and drop every handle.
func BenchmarkParallelSlab(b *testing.B) { shared(b, Blocks{}) }

// BenchmarkParallelSlabCrowded is the same with all of them in the C heap at once.
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

// BenchmarkSlabUnseen is BenchmarkSlab where the collector knows nothing of the blocks.
func BenchmarkSlabUnseen(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		p.Bytes = -1
		dropped(b, p)
	})
}

// BenchmarkReuse drops every handle; the blocks are used again, not freed.
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

// BenchmarkSlabClose closes every handle: the slab's finalizer is a net only.
func BenchmarkSlabClose(b *testing.B) { overSlabs(b, closed) }

// BenchmarkSlabCloseAtOnce is the same where each Close calls C.
func BenchmarkSlabCloseAtOnce(b *testing.B) {
	overSlabs(b, func(b *testing.B, p *pool) {
		p.AtOnce = true
		closed(b, p)
	})
}

// BenchmarkSlabSurvivors drops all handles but every hundredth, and reports how
// many blocks each of those holds once the rest is collected.
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

// onHeap runs a benchmark beside so many MB of live Go memory, which every collection
// must mark: on an empty heap collections are cheap.
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
				nodes = 1000 * b.N // the try of one operation that goes before needs no more
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

// BenchmarkOneHeapFinalizer gives each object a finalizer, as package cstr does, on the
// one C heap that all remedies use: what they gain by that heap is no merit of theirs.
func BenchmarkOneHeapFinalizer(b *testing.B) { loop(b, Count, func() { NewFinalized() }) }

func BenchmarkHeapSlab(b *testing.B) {
	onHeap(b, func(b *testing.B) { dropped(b, newPool(64)) })
}

func BenchmarkHeapManual(b *testing.B) { onHeap(b, BenchmarkManual) }

func BenchmarkHeapFinalizer(b *testing.B) {
	onHeap(b, BenchmarkOneHeapFinalizer)
}

// overLives measures replace with several numbers of live handles.
func overLives[T any](b *testing.B, pieces pieces, open func() T, close func(T)) {
	for live := 10; live <= 10_000_000; live *= 10 {
		live := live
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) { replace(b, live, pieces, open, close) })
	}
}

// replace holds so many handles at once, and closes one at random in each
// operation, to put a new one in its place. It returns those that it holds at the end.
//
// No blocks are counted: every operation frees one and allocates one, and which
// of those that were there before go with a slab is not its doing.
func replace[T any](b *testing.B, live int, pieces pieces, open func() T, close func(T)) []T {
	chance := rand.New(rand.NewSource(1))
	if live > 100*b.N {
		live = 100 * b.N // the try of one operation that goes before would leave as many
	}
	handles := make([]T, live)
	for i := range handles {
		handles[i] = open()
	}
	chance.Shuffle(len(handles), func(i, j int) { handles[i], handles[j] = handles[j], handles[i] })
	m := meter.Start(b, nil)
	next := pieces(m, b.N)
	for n := next(); n > 0; n = next() {
		for i := 0; i < n; i++ {
			at := chance.Intn(live)
			close(handles[at])
			handles[at] = open()
		}
	}
	m.Stop()
	return handles
}

func BenchmarkLiveManual(b *testing.B) { overLives(b, sliced, Allocate, Free) }

func BenchmarkLiveFinalizer(b *testing.B) { overLives(b, whole, NewFinalized, (*Finalized).Close) }

func BenchmarkLiveSlab(b *testing.B) {
	p := newPool(64)
	overLives(b, whole, func() handle { return get(b, p) }, func(h handle) {
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// closers make a handle and close it.
var closers = map[string]func(){
	"manual":    func() { Free(Allocate()) },
	"finalizer": func() { NewFinalized().Close() },
}

// tolerance is how many blocks may stay unfreed after a drain: slabs that stand on
// a stack or are being handed out, and what stock Go leaves for a later cycle.
const tolerance = 4 * 256

// TestConservation: every block is freed once, whichever way.
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
		// A slab's blocks are allocated together, so the last has some to spare.
		if got := int(r.Extra["c-allocated"]); got < r.N || got > r.N+tolerance {
			t.Errorf("%s: %d C blocks in %d operations", name, got, r.N)
		}
		if got := r.Extra["c-misfreed"]; got != 0 {
			t.Errorf("%s: %v blocks were freed twice", name, got)
		}
		// Fewer than before: of another call's.
		if got := r.Extra["c-unfreed-drained"]; got < 0 || got > tolerance {
			t.Errorf("%s: %v blocks are held after the drain", name, got)
		}
	}
}

// TestStationary: what is timed in slices allocates nothing on the Go heap in its loop,
// and the variants it is compared with, which do, are not timed so.
func TestStationary(t *testing.T) {
	liveManual := func(b *testing.B) {
		for _, block := range replace(b, 1000, sliced, Allocate, Free) {
			Free(block) // else settle would wait for it
		}
	}
	for name, c := range map[string]struct {
		benchmark  func(*testing.B)
		stationary bool
		reference  bool
	}{
		"Batch":            {BenchmarkBatch, true, false},
		"Manual":           {BenchmarkManual, true, false},
		"OneHeapFinalizer": {BenchmarkOneHeapFinalizer, false, true},
		"LiveManual":       {liveManual, true, false},
		"LiveFinalizer":    {func(b *testing.B) { replace(b, 1000, whole, NewFinalized, (*Finalized).Close) }, false, false},
	} {
		settle() // finalizers that run meanwhile allocate
		r := testing.Benchmark(c.benchmark)
		slices := r.Extra["slices"]
		if (slices > 0) != c.stationary {
			t.Errorf("%s: %v slices, want some: %v", name, slices, c.stationary)
		}
		if reference := r.Extra["reference-ns/op"]; (reference > 0) != c.reference {
			t.Errorf("%s: a reference operation takes %v ns, want one: %v", name, reference, c.reference)
		}
		if c.stationary && r.MemAllocs > uint64(r.N/batched/2) { // fewer than batches
			t.Errorf("%s: %d Go allocations in %d operations, want none in the loop", name, r.MemAllocs, r.N)
		}
	}
}

// TestLooks: they are in order, and no more are held than were allocated by then.
func TestLooks(t *testing.T) {
	r := testing.Benchmark(func(b *testing.B) { dropped(b, newPool(64)) })
	before := -1.0
	for i := 0; i < r.N>>14; i++ {
		unit := fmt.Sprintf("c-held-%02d", i)
		held, at := r.Extra[unit], r.Extra[unit+"-ms"]
		if most := float64((i+1)<<14 + tolerance); held <= 0 || held > most || at <= before {
			t.Errorf("look %d: %v blocks after %v ms, the one before after %v ms", i, held, at, before)
		}
		before = at
	}
}

// TestSlicesHoldWholeBatches: else a slice would have more calls of C than others.
func TestSlicesHoldWholeBatches(t *testing.T) {
	if rest := meter.SliceOperations % batched; rest != 0 {
		t.Errorf("a slice ends with a batch of %d blocks of %d", rest, batched)
	}
}

func TestClosersFreeAtOnce(t *testing.T) {
	for name, makeAndClose := range closers {
		before := Count()
		for i := 0; i < 1000; i++ {
			makeAndClose()
		}
		after := Count()
		if allocated, freed := after.Allocated-before.Allocated, after.Freed-before.Freed; allocated != 1000 || freed != 1000 {
			t.Errorf("%s: %d blocks allocated and %d freed of 1000", name, allocated, freed)
		}
		if after.Misfreed != 0 {
			t.Errorf("%s: %d blocks were freed twice", name, after.Misfreed)
		}
	}
}
