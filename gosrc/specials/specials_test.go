package specials

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
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

const seed = 75188 // for every random order, so that all samples use the same orders

// class holds the operations on objects of one size.
type class struct {
	bytes    int
	allocate func(n int) []unsafe.Pointer
	finalize func(objects []unsafe.Pointer)
	clear    func(objects []unsafe.Pointer) // their finalizers
	dummies  func(n int)                    // allocates and drops n objects
}

// classes holds sizes whose spans are one page. 48 bytes is not a power of two. Objects of
// 48 bytes or more share no span with those that AddCleanup allocates.
var classes = []class{
	of[[1]*byte](), of[[2]*byte](), of[[4]*byte](), of[[6]*byte](), of[[8]*byte](),
	of[[16]*byte](), of[[32]*byte](), of[[64]*byte](),
}

func of[T any]() class {
	var zero T
	// Inside the loops, each iteration would allocate the value of a generic function.
	var finalizer interface{} = ignore[T]
	return class{
		bytes: int(unsafe.Sizeof(zero)),
		allocate: func(n int) []unsafe.Pointer {
			objects := make([]unsafe.Pointer, n)
			for i := range objects {
				objects[i] = unsafe.Pointer(new(T))
			}
			return objects
		},
		finalize: func(objects []unsafe.Pointer) {
			for _, object := range objects {
				runtime.SetFinalizer((*T)(object), finalizer)
			}
		},
		clear: func(objects []unsafe.Pointer) {
			for _, object := range objects {
				runtime.SetFinalizer((*T)(object), nil)
			}
		},
		dummies: func(n int) {
			for i := 0; i < n; i++ {
				drop(new(T))
			}
		},
	}
}

// ignore is a finalizer that does nothing.
func ignore[T any](*T) {}

// keep makes the compiler allocate the argument of drop on the heap.
var keep interface{}

// drop drops an object that the compiler must have allocated on the heap.
//
//go:noinline
func drop[T any](object *T) {
	if object == nil {
		keep = object
	}
}

// disableGC turns the GC off until the benchmark ends, because a collection would shorten
// the lists that are measured.
func disableGC(b *testing.B) {
	before := debug.SetGCPercent(-1)
	b.Cleanup(func() { debug.SetGCPercent(before) })
}

// --- One call, by its position ------------------------------------------------------

// fullSpans allocates n objects of a class that fill their spans.
func fullSpans(c class, n int) (spans [][]unsafe.Pointer, err error) {
	objects := c.allocate(n + 4*Page/c.bytes)
	// The first objects fill gaps in spans that hold other objects. Spans skips those.
	for tries := 0; tries < 8; tries++ {
		if spans, err = Spans(objects, n); err == nil {
			return spans, nil
		}
		objects = append(objects, c.allocate(n+Page/c.bytes)...)
	}
	return nil, err
}

// prepared allocates n objects of a class that fill their spans, each span in the given
// order, and turns the GC off.
func prepared(b *testing.B, c class, n int, order Order) [][]unsafe.Pointer {
	disableGC(b)
	spans, err := fullSpans(c, n)
	if err != nil {
		b.Fatal(err)
	}
	draw := rand.New(rand.NewSource(seed))
	for _, span := range spans {
		order.Arrange(span, draw)
	}
	return spans
}

const (
	parts     = 16 // parts of a span that are timed separately
	leastPart = 32 // minimum calls in a part: reading the clock takes as long as a few calls
)

// overSpans times do on the objects of each span, in parts, and reports from the medians
// over the spans:
//
//	at-N-records-ns      time of a call when the list holds N records (mean over the part)
//	call-ns              time of a call, mean over a span
//	records              records in the list at a call, mean over a span
//	off-heap-bytes/span  memory that the runtime allocates for its own data
//
// It uses medians because the kernel now and then runs another process on the CPU. None of
// these metrics includes ready, which runs before each span; only ns/op does. It loads the
// span's records into the cache, so that the first calls do not pay for it.
func overSpans(b *testing.B, spans [][]unsafe.Pointer, records func(done, all int) float64, ready func(span int), do func(span, from, to int)) {
	all := len(spans[0])
	size := all
	if all/parts >= leastPart {
		size = (all + parts - 1) / parts
	} else if all >= 2*leastPart {
		size = leastPart
	}
	times := make([][]float64, (all+size-1)/size)
	for i := range times {
		times[i] = make([]float64, 0, len(spans))
	}
	clock := clockCost()
	before := offHeap()
	m := meter.Start(b, nil)
	for i, span := range spans {
		ready(i)
		for from := 0; from < len(span); from += size {
			to := from + size
			if to > len(span) {
				to = len(span)
			}
			start := time.Now()
			do(i, from, to)
			elapsed := time.Since(start) - clock
			if to-from == size || to == all {
				times[from/size] = append(times[from/size], float64(elapsed)/float64(to-from))
			}
		}
	}
	m.Stop()
	b.ReportMetric(float64(offHeap()-before)/float64(len(spans)), "off-heap-bytes/span")
	total, found := 0.0, 0.0
	for i, part := range times {
		from, to := i*size, (i+1)*size
		if to > all {
			to = all
		}
		if len(part) == 0 {
			return // b.N is less than the number of objects in a span
		}
		sort.Float64s(part)
		ns := part[len(part)/2]
		if ns < 0 { // the clock's own cost varies too
			ns = 0
		}
		at := (records(from, all) + records(to-1, all)) / 2
		b.ReportMetric(ns, fmt.Sprintf("at-%g-records-ns", at))
		total += ns * float64(to-from)
		found += at * float64(to-from)
	}
	b.ReportMetric(total/float64(all), "call-ns")
	b.ReportMetric(found/float64(all), "records")
}

// noSetup prepares nothing before a span is measured.
func noSetup(int) {}

// ascend sorts objects by address.
func ascend(objects []unsafe.Pointer) {
	sort.Slice(objects, func(i, j int) bool { return uintptr(objects[i]) < uintptr(objects[j]) })
}

// growing returns the length of a list after done objects were registered.
func growing(done, _ int) float64 { return float64(done) }

// shrinking returns the length of a list, not counting the next record to remove, after
// done records were removed.
func shrinking(done, all int) float64 { return float64(all - 1 - done) }

// clockCost returns the median time of reading the clock.
func clockCost() time.Duration {
	costs := make([]float64, 1001)
	for i := range costs {
		start := time.Now()
		costs[i] = float64(time.Since(start))
	}
	sort.Float64s(costs)
	return time.Duration(costs[len(costs)/2])
}

// offHeap returns the memory that the runtime has obtained from the system for purposes
// other than the heap.
func offHeap() uint64 {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.Sys - mem.HeapSys
}

func overOrders(b *testing.B, bench func(*testing.B, class, Order)) {
	for _, order := range Orders {
		for _, c := range classes {
			order, c := order, c
			b.Run(fmt.Sprintf("order=%s/bytes=%d", order, c.bytes), func(b *testing.B) { bench(b, c, order) })
		}
	}
}

// BenchmarkAttachFinalizer times only SetFinalizer, span by span.
func BenchmarkAttachFinalizer(b *testing.B) {
	overOrders(b, func(b *testing.B, c class, order Order) {
		spans := prepared(b, c, b.N, order)
		overSpans(b, spans, growing, noSetup, func(span, from, to int) { c.finalize(spans[span][from:to]) })
		runtime.KeepAlive(spans)
	})
}

// BenchmarkClearFinalizer times only SetFinalizer(object, nil). The finalizers are set in
// descending order of address, which needs no walk.
func BenchmarkClearFinalizer(b *testing.B) {
	overOrders(b, func(b *testing.B, c class, order Order) {
		spans := prepared(b, c, b.N, Descending)
		draw := rand.New(rand.NewSource(seed))
		ready := func(i int) {
			c.finalize(spans[i])
			ascend(spans[i])
			order.Arrange(spans[i], draw)
		}
		overSpans(b, spans, shrinking, ready, func(span, from, to int) { c.clear(spans[span][from:to]) })
		runtime.KeepAlive(spans)
	})
}

// --- Many live objects ----------------------------------------------------------------

var lives = []int{10_000, 100_000, 1_000_000, 10_000_000}

// scattered holds live objects and their roles in a measurement.
type scattered struct {
	spans [][]unsafe.Pointer
	lists [][]unsafe.Pointer // by span: objects registered beforehand, in descending order
	next  []unsafe.Pointer   // measured objects, in random order over all spans
}

// scatter chooses the objects to register beforehand and the n objects to measure, from
// spans in random order. While all live objects are registered one by one, the lists are on
// average half as long as at the end. So the n measured calls are centered on half-full lists.
//
// If grow is true, the measured calls add records for objects that are not yet registered.
// Otherwise they remove the records of objects that were registered beforehand.
func scatter(spans [][]unsafe.Pointer, n, live int, grow bool) scattered {
	s := scattered{spans: spans}
	share := float64(live-n) / 2 / float64(live) // registered beforehand and not measured
	var rest []unsafe.Pointer
	for _, span := range spans {
		middle := int(share * float64(len(span)))
		stay := append([]unsafe.Pointer(nil), span[:middle]...)
		move := span[middle : len(span)-middle]
		rest = append(rest, move...)
		if !grow {
			stay = append(stay, move...)
		}
		sort.Slice(stay, func(i, j int) bool { return uintptr(stay[i]) > uintptr(stay[j]) })
		s.lists = append(s.lists, stay)
	}
	draw := rand.New(rand.NewSource(seed))
	draw.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	s.next = rest[:n] // rounding may leave more than n
	return s
}

// register calls do for the objects to register beforehand. It passes over the spans
// repeatedly, each time in another random order, and takes one object of each span, the last
// first. This needs no walk. As with a random order over all objects, the records of a list
// end up apart in memory, at irregular distances.
func (s scattered) register(do func(object unsafe.Pointer)) {
	draw := rand.New(rand.NewSource(seed))
	order := draw.Perm(len(s.lists))
	for i, left := 0, true; left; i++ {
		left = false
		draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, span := range order {
			if list := s.lists[span]; i < len(list) {
				do(list[i])
				left = true
			}
		}
	}
}

// measure times do on the measured objects.
func (s scattered) measure(b *testing.B, do func(objects []unsafe.Pointer)) {
	m := meter.Start(b, nil)
	do(s.next)
	m.Stop()
	runtime.KeepAlive(s)
}

func overLives(b *testing.B, grow bool, bench func(b *testing.B, s scattered)) {
	for _, live := range lives {
		live := live
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			if b.N > live {
				b.Skipf("%d operations on %d objects", b.N, live)
			}
			if !trial(b) {
				bench(b, scatter(prepared(b, classes[0], live, Shuffled), b.N, live, grow))
			}
		})
	}
}

// trial reports whether this is the run with one operation that package testing makes
// first. It needs no expensive setup.
func trial(b *testing.B) bool { return b.N == 1 }

// each adapts a function of many objects to one object.
func each(do func(objects []unsafe.Pointer)) func(unsafe.Pointer) {
	var one [1]unsafe.Pointer
	return func(object unsafe.Pointer) {
		one[0] = object
		do(one[:])
	}
}

// BenchmarkScatteredFinalizer times SetFinalizer on random objects among many live ones.
func BenchmarkScatteredFinalizer(b *testing.B) {
	overLives(b, true, func(b *testing.B, s scattered) {
		s.register(each(classes[0].finalize))
		s.measure(b, classes[0].finalize)
	})
}

// --- A loop that allocates and registers ------------------------------------------------

// reportStride allocates handles as the loop does, with the GC off, and reports
//
//	stride-bytes  distance from one handle to the next
func reportStride(b *testing.B, next func() unsafe.Pointer) {
	if trial(b) {
		return // its handles would lie between those of the next run
	}
	before := debug.SetGCPercent(-1)
	addresses := make([]uintptr, 1<<13)
	for i := range addresses {
		addresses[i] = uintptr(next())
	}
	debug.SetGCPercent(before)
	b.Cleanup(func() { b.ReportMetric(float64(Stride(addresses)), "stride-bytes") })
}

// BenchmarkLoopFinalizer allocates an object and sets a finalizer that does nothing. Then it
// allocates dummies, objects of the same size, and drops them immediately.
func BenchmarkLoopFinalizer(b *testing.B) {
	for _, bench := range []struct {
		bytes int
		run   func(b *testing.B, dummies int)
	}{
		{8, loopFinalizer[[1]*byte]}, {16, loopFinalizer[[2]*byte]},
		{48, loopFinalizer[[6]*byte]}, {64, loopFinalizer[[8]*byte]},
	} {
		for dummies := 0; dummies <= 3; dummies++ {
			bench, dummies := bench, dummies
			b.Run(fmt.Sprintf("bytes=%d/dummies=%d", bench.bytes, dummies), func(b *testing.B) { bench.run(b, dummies) })
		}
	}
}

func loopFinalizer[T any](b *testing.B, dummies int) {
	var finalizer interface{} = ignore[T]
	operation := func() unsafe.Pointer {
		handle := new(T)
		runtime.SetFinalizer(handle, finalizer)
		for i := 0; i < dummies; i++ {
			drop(new(T))
		}
		return unsafe.Pointer(handle)
	}
	reportStride(b, operation)
	m := meter.Start(b, nil)
	for i := 0; i < b.N; i++ {
		operation()
	}
	m.Stop()
}

// --- Programs that allocate other objects as well ------------------------------------------

// handle is a program's wrapper of a C object: a pointer and a word of state.
type handle struct {
	pointer *byte
	state   uintptr
}

// registering registers a new handle. measured is false during setup.
type registering func(h *handle, measured bool)

// program allocates handles. After each it allocates others objects of the same size class
// and drops them immediately. It keeps live handles: each new handle replaces a random one.
// If live is 0, it drops the handles immediately too.
type program struct {
	live, others int
	register     registering
	measured     bool
	slots        []*handle
	draw         *rand.Rand
}

func (p *program) prepare() {
	p.draw = rand.New(rand.NewSource(seed))
	p.slots = make([]*handle, p.live)
	for i := range p.slots {
		p.slots[i] = p.next()
	}
	p.measured = true
}

func (p *program) next() *handle {
	h := new(handle)
	p.register(h, p.measured)
	for i := 0; i < p.others; i++ {
		drop(new(handle))
	}
	return h
}

func (p *program) step() {
	h := p.next()
	if p.live > 0 {
		p.slots[p.draw.Intn(p.live)] = h
	}
}

var mixes = []int{0, 1, 3, 9, 31}

// overPrograms runs a benchmark for each program. It calls ready before each for the
// function that registers its handles.
func overPrograms(b *testing.B, ready func(b *testing.B) registering) {
	for _, live := range []int{0, 1_000, 100_000, 1_000_000} {
		for _, others := range mixes {
			live, others := live, others
			b.Run(fmt.Sprintf("live=%d/others=%d", live, others), func(b *testing.B) {
				if trial(b) {
					return
				}
				p := program{live: live, others: others, register: ready(b)}
				p.prepare()
				m := meter.Start(b, nil)
				for i := 0; i < b.N; i++ {
					p.step()
				}
				m.Stop()
				runtime.KeepAlive(p.slots)
			})
		}
	}
}

// BenchmarkProgramPlain runs the program without finalizers or cleanups.
func BenchmarkProgramPlain(b *testing.B) {
	overPrograms(b, func(*testing.B) registering { return func(*handle, bool) {} })
}

// BenchmarkProgramFinalizer runs the program with a finalizer on each handle.
func BenchmarkProgramFinalizer(b *testing.B) {
	var finalizer interface{} = ignore[handle]
	overPrograms(b, func(*testing.B) registering {
		return func(h *handle, _ bool) { runtime.SetFinalizer(h, finalizer) }
	})
}

// --- Tests ---------------------------------------------------------------------------------

func TestFullSpansHoldNoOtherObjects(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, c := range classes {
		const n = 5000
		spans, err := fullSpans(c, n)
		if err != nil {
			t.Fatalf("%d bytes: %v", c.bytes, err)
		}
		total := 0
		for i, span := range spans {
			total += len(span)
			if last := i == len(spans)-1; len(span) != len(spans[0]) && !last {
				t.Errorf("%d bytes: spans have %d and %d objects", c.bytes, len(spans[0]), len(span))
			}
			for j := 1; j < len(span); j++ {
				if step := uintptr(span[j]) - uintptr(span[j-1]); step != uintptr(c.bytes) {
					t.Fatalf("%d bytes: neighbours %d bytes apart", c.bytes, step)
				}
			}
		}
		if total != n {
			t.Errorf("%d bytes: %d objects, want %d", c.bytes, total, n)
		}
		// Besides objects, a span may hold its bitmaps, which use up to 3 % of a page.
		if most := Page / c.bytes; len(spans[0]) > most || len(spans[0]) < most*95/100-1 {
			t.Errorf("%d bytes: a span has %d objects, want about %d", c.bytes, len(spans[0]), most)
		}
	}
}

func TestSpansLeavesOutSharedSpans(t *testing.T) {
	page := make([]byte, 4*Page)
	start := unsafe.Pointer(&page[Page-uintptr(unsafe.Pointer(&page[0]))%Page])
	at := func(page, slot int) unsafe.Pointer { return unsafe.Add(start, page*Page+slot*8) }
	objects := []unsafe.Pointer{at(1, 2), at(0, 0), at(1, 0), at(2, 0), at(2, 1), at(1, 1), at(2, 2)}
	spans, err := Spans(objects, 4)
	if err != nil || len(spans) != 2 || len(spans[0]) != 3 || len(spans[1]) != 1 || spans[0][0] != at(1, 0) {
		t.Errorf("got %v, %v", spans, err)
	}
	if _, err := Spans(objects, 7); err == nil {
		t.Error("Spans found seven objects, but only six are in unshared spans")
	}
}

func TestOrders(t *testing.T) {
	var place [100]byte
	var span []unsafe.Pointer
	for i := range place {
		span = append(span, unsafe.Pointer(&place[i]))
	}
	for _, order := range Orders {
		got := append([]unsafe.Pointer(nil), span...)
		order.Arrange(got, rand.New(rand.NewSource(1)))
		ups, seen := 0, map[unsafe.Pointer]bool{got[0]: true}
		for i := 1; i < len(got); i++ {
			seen[got[i]] = true
			if uintptr(got[i]) > uintptr(got[i-1]) {
				ups++
			}
		}
		low, high := map[Order]int{Ascending: 99, Shuffled: 25, Descending: 0}[order], map[Order]int{Ascending: 99, Shuffled: 75}[order]
		if len(seen) != len(span) || ups < low || ups > high {
			t.Errorf("%s: %d of %d objects, %d ascending steps", order, len(seen), len(span), ups)
		}
	}
}

func TestStride(t *testing.T) {
	for _, c := range []struct {
		addresses []uintptr
		want      uintptr
	}{
		{nil, 0},
		{[]uintptr{8, Page}, 0},
		{[]uintptr{0, 8, 16, 40, 48}, 8},
		{[]uintptr{0, 24, 48, Page + 8, Page + 32}, 24},
	} {
		if got := Stride(c.addresses); got != c.want {
			t.Errorf("Stride(%v) = %d, want %d", c.addresses, got, c.want)
		}
	}
}

func TestListsCountAsTheRuntimeWalks(t *testing.T) {
	page := make([]byte, 3*Page)
	start := unsafe.Pointer(&page[Page-uintptr(unsafe.Pointer(&page[0]))%Page])
	lists := NewLists()
	var third *int32
	for i, c := range []struct{ slot, passed, held int }{
		{5, 0, 0}, {9, 1, 1}, {7, 1, 2}, {3, 0, 3}, {7, 2, 4}, {Page / 8, 0, 0},
	} {
		passed, held := lists.Count(unsafe.Add(start, c.slot*8))
		record := lists.Add(unsafe.Add(start, c.slot*8))
		if passed != c.passed || held != c.held {
			t.Errorf("step %d: passed %d of %d, want %d of %d", i, passed, held, c.passed, c.held)
		}
		if i == 2 {
			third = record
		}
	}
	Drop(third)
	if passed, held := lists.Count(unsafe.Add(start, 80)); passed != 4 || held != 4 {
		t.Errorf("after a Drop: passed %d of %d, want 4 of 4", passed, held)
	}
}

// metrics runs a benchmark once and returns the metrics that it reported.
func metrics(t *testing.T, benchmark func(*testing.B)) map[string]float64 {
	r := testing.Benchmark(benchmark)
	if r.N == 0 {
		t.Fatal("the benchmark failed")
	}
	return r.Extra
}

// TestLongerWalksCostMore checks that in ascending order the last calls in a span cost
// several times as much as the first, and in descending order not.
func TestLongerWalksCostMore(t *testing.T) {
	if racing {
		t.Skip("under the race detector the walk hardly shows")
	}
	ends := map[Order]float64{}
	for _, order := range Orders {
		found := metrics(t, func(b *testing.B) {
			spans := prepared(b, classes[0], b.N, order)
			overSpans(b, spans, growing, noSetup, func(span, from, to int) { classes[0].finalize(spans[span][from:to]) })
		})
		var at []float64
		for unit := range found {
			var records float64
			if n, _ := fmt.Sscanf(unit, "at-%f-records-ns", &records); n == 1 {
				at = append(at, records)
			}
		}
		if len(at) != parts {
			t.Fatalf("%s: got %d parts, want %d", order, len(at), parts)
		}
		sort.Float64s(at)
		ends[order] = found[fmt.Sprintf("at-%g-records-ns", at[parts-1])] / found[fmt.Sprintf("at-%g-records-ns", at[0])]
	}
	if up, down := ends[Ascending], ends[Descending]; up < 2*down {
		t.Errorf("the last call takes %.1f times as long as the first in ascending order, %.1f times in descending order", up, down)
	}
}

// TestScatteredIsHalfRegistered checks that the records registered beforehand make the lists
// half full in the middle of the measured calls.
func TestScatteredIsHalfRegistered(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, c := range []struct {
		n, live int
		grow    bool
		want    int
	}{{2000, 10_000, true, 4000}, {2000, 10_000, false, 6000}, {10_000, 10_000, true, 0}, {10_000, 10_000, false, 10_000}} {
		spans, err := fullSpans(classes[0], c.live)
		if err != nil {
			t.Fatal(err)
		}
		draw := rand.New(rand.NewSource(seed))
		for _, span := range spans {
			Shuffled.Arrange(span, draw)
		}
		s := scatter(spans, c.n, c.live, c.grow)
		registered := map[unsafe.Pointer]bool{}
		last := map[uintptr]uintptr{}
		s.register(func(object unsafe.Pointer) {
			registered[object] = true
			if before, ok := last[PageOf(object)]; ok && before < uintptr(object) {
				t.Fatal("register does not insert each record at the head of its list")
			}
			last[PageOf(object)] = uintptr(object)
		})
		if off := len(registered) - c.want; off < -50 || off > 50 || len(s.next) != c.n {
			t.Errorf("%+v: %d objects are registered and %d to be measured", c, len(registered), len(s.next))
		}
		for _, object := range s.next {
			if registered[object] == c.grow {
				t.Fatalf("%+v: a measured object is registered beforehand: %v", c, registered[object])
			}
		}
	}
}

// TestStrides checks that an object is next to the next handle, or to the dummies between.
func TestStrides(t *testing.T) {
	for dummies := 0; dummies <= 3; dummies++ {
		found := metrics(t, func(b *testing.B) { loopFinalizer[[1]*byte](b, dummies) })
		if want := float64(8 * (1 + dummies)); found["stride-bytes"] != want {
			t.Errorf("%d dummies: the stride is %v bytes, want %v", dummies, found["stride-bytes"], want)
		}
	}
}

func TestProgram(t *testing.T) {
	registered, measured := 0, 0
	p := program{live: 10, others: 2, register: func(_ *handle, now bool) {
		if registered++; now {
			measured++
		}
	}}
	p.prepare()
	for i := 0; i < 100; i++ {
		p.step()
	}
	seen := map[*handle]bool{}
	for _, h := range p.slots {
		seen[h] = true
	}
	if registered != 110 || measured != 100 || len(seen) != 10 || seen[nil] {
		t.Errorf("%d handles registered, %d of them measured, %d live, want 110, 100 and 10", registered, measured, len(seen))
	}
}
