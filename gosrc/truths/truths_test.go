//go:build go1.24

package truths

import (
	"bufio"
	"bytes"
	"container/list"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/gccost/slab"
)

// forgotten is how many objects a benchmark forgets.
const forgotten = 1000

// A variant is a benchmark with a value of its key.
type variant struct {
	value string
	bench func(b *testing.B)
}

func each(b *testing.B, key string, variants []variant) {
	for _, v := range variants {
		b.Run(key+"="+v.value, v.bench)
	}
}

// collect runs the collector until n have run, or until none has in 5 collections.
func collect(ran *atomic.Int64, n int64) {
	for idle := 0; ran.Load() < n && idle < 5; idle++ {
		before := ran.Load()
		runtime.GC()
		for wait := 0; wait < 20 && ran.Load() < n; wait++ {
			time.Sleep(time.Millisecond)
		}
		if ran.Load() > before {
			idle = 0
		}
	}
}

// share reports how many of the forgotten objects' finalizers or cleanups run.
func share(b *testing.B, ran *atomic.Int64) {
	collect(ran, forgotten)
	b.ReportMetric(float64(ran.Load())/forgotten, "ran-share")
}

// --- Handles without pointers --------------------------------------------------------------

// A descriptor is a handle of 8 bytes without pointers, such as a file's. The runtime puts
// several into one block of 16 bytes.
type descriptor struct{ fd int }

var kept []*byte

// freed counts the descriptors that were freed. It is no variable of a benchmark's: that
// would be a value of 8 bytes too, in somebody's block.
var freed atomic.Int64

// tiny forgets descriptors. If it keeps, the program keeps a byte that it allocated right
// after each.
func tiny(b *testing.B, keeps bool, arm func(d *descriptor)) {
	freed.Store(0)
	for i := 0; i < forgotten; i++ {
		arm(&descriptor{i})
		if keeps {
			kept = append(kept, new(byte))
		}
	}
	share(b, &freed)
	kept = nil
}

func armFinalizer(d *descriptor) {
	runtime.SetFinalizer(d, func(*descriptor) { freed.Add(1) })
}

// armCleanup passes the descriptor's number, as a program does that closes it.
func armCleanup(d *descriptor) {
	runtime.AddCleanup(d, func(int) { freed.Add(1) }, d.fd)
}

func tinies(b *testing.B, arm func(d *descriptor)) {
	each(b, "neighbour", []variant{
		{"dropped", func(b *testing.B) { tiny(b, false, arm) }},
		{"kept", func(b *testing.B) { tiny(b, true, arm) }},
	})
}

func BenchmarkTinyFinalizer(b *testing.B) { tinies(b, armFinalizer) }
func BenchmarkTinyCleanup(b *testing.B)   { tinies(b, armCleanup) }

// BenchmarkNeighbour counts the calls of AddCleanup that panic because the cleanup's function
// uses another value, which lies in the object's block.
func BenchmarkNeighbour(b *testing.B) {
	panicked := 0
	for i := 0; i < forgotten; i++ {
		if besides(i) {
			panicked++
		}
	}
	b.ReportMetric(float64(panicked)/forgotten, "panic-share")
}

func besides(i int) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	before, d, after := new(int), &descriptor{i}, new(int)
	runtime.AddCleanup(d, func(int) { *before, *after = 1, 1 }, 0)
	return false
}

// --- Cycles ----------------------------------------------------------------------------------

// Objects that lead back to themselves through a type of the standard library.
type (
	waiter struct {
		mu   sync.Mutex
		cond *sync.Cond
	}
	queue struct {
		items list.List
	}
	writer struct {
		out *bufio.Writer
		all []byte
	}
	lazy struct {
		value func() int
		n     int
	}
	// A buffer leads nowhere back.
	buffer struct {
		text strings.Builder
	}
)

func (w *writer) Write(p []byte) (int, error) {
	w.all = append(w.all, p...)
	return len(p), nil
}

func (l *lazy) compute() int { return l.n }

func newWaiter() *waiter {
	w := new(waiter)
	w.cond = sync.NewCond(&w.mu)
	return w
}

func newQueue() *queue {
	q := new(queue)
	q.items.PushBack(1)
	return q
}

func newWriter() *writer {
	w := new(writer)
	w.out = bufio.NewWriterSize(w, 16)
	io.WriteString(w.out, "text")
	return w
}

func newLazy() *lazy {
	l := new(lazy)
	l.value = sync.OnceValue(l.compute)
	return l
}

func newBuffer() *buffer {
	t := new(buffer)
	t.text.WriteString("text")
	return t
}

// owner returns a benchmark of objects with a finalizer or a cleanup each.
func owner[T any](make func() *T, finalizes bool) func(b *testing.B) {
	return func(b *testing.B) {
		var ran atomic.Int64
		for i := 0; i < forgotten; i++ {
			if object := make(); finalizes {
				runtime.SetFinalizer(object, func(*T) { ran.Add(1) })
			} else {
				runtime.AddCleanup(object, func(ran *atomic.Int64) { ran.Add(1) }, &ran)
			}
		}
		clearStack(64)
		share(b, &ran)
	}
}

// clearStack overwrites the stack below its caller, which may hold the last object.
//
//go:noinline
func clearStack(depth int) byte {
	var frame [512]byte
	if depth > 0 {
		frame[depth] = clearStack(depth - 1)
	}
	return frame[depth]
}

func owners(b *testing.B, finalizes bool) {
	each(b, "owns", []variant{
		{"cond", owner(newWaiter, finalizes)},
		{"list", owner(newQueue, finalizes)},
		{"writer", owner(newWriter, finalizes)},
		{"once", owner(newLazy, finalizes)},
		{"builder", owner(newBuffer, finalizes)},
	})
}

func BenchmarkOwnerFinalizer(b *testing.B) { owners(b, true) }
func BenchmarkOwnerCleanup(b *testing.B)   { owners(b, false) }

// --- What AddCleanup allocates -------------------------------------------------------------

type object struct {
	p *byte
	_ [7]uintptr
}

// argument registers a cleanup on each of b.N objects that are there already, and counts what
// that allocates.
func argument(register func(o *object)) func(b *testing.B) {
	return func(b *testing.B) {
		objects := make([]*object, b.N)
		for i := range objects {
			objects[i] = new(object)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for _, o := range objects {
			register(o)
		}
		b.StopTimer()
		runtime.KeepAlive(objects)
	}
}

var used = new(atomic.Int64)

func BenchmarkArgument(b *testing.B) {
	each(b, "of", []variant{
		{"int", argument(func(o *object) { runtime.AddCleanup(o, func(int) {}, 7) })},
		{"pointer", argument(func(o *object) { runtime.AddCleanup(o, func(*atomic.Int64) {}, used) })},
		{"empty", argument(func(o *object) { runtime.AddCleanup(o, func(struct{}) {}, struct{}{}) })},
		{"string", argument(func(o *object) { runtime.AddCleanup(o, func(string) {}, "text") })},
		{"closure", argument(func(o *object) {
			n, to := used.Load(), used // a number and a pointer, which the function captures
			runtime.AddCleanup(o, func(int) { to.Add(n) }, 7)
		})},
	})
}

// --- A constructor in a benchmark's loop -------------------------------------------------------

type pair struct{ a, b int }

func newPair(a int) *pair { return &pair{a, a + 1} }

var sum int

// BenchmarkInlined and BenchmarkInlinedLoop call a constructor whose object need not reach the
// heap, in a loop over b.N and in one with b.Loop.
func BenchmarkInlined(b *testing.B) {
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		sum += newPair(i).b
	}
}

func BenchmarkInlinedLoop(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p := newPair(1)
		sum += p.b
	}
}

// --- One that blocks -----------------------------------------------------------------------

// executed returns how many finalizers or cleanups the runtime counts as executed, and whether
// the release counts them.
func executed(kind string) (float64, bool) {
	read := []metrics.Sample{{Name: "/gc/" + kind + "/executed:" + kind}}
	metrics.Read(read)
	if read[0].Value.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return float64(read[0].Value.Uint64()), true
}

// block forgets n objects. The last whose finalizer or cleanup begins blocks. It reports what
// shows that.
func block(b *testing.B, n int64, kind string, arm func(o *object, run func())) {
	before, counted := executed(kind)
	goroutines, profile := runtime.NumGoroutine(), pprof.Lookup("goroutine")
	inProfile := profile.Count()
	var ran, begun atomic.Int64
	open := make(chan struct{})
	for i := int64(0); i < n; i++ {
		arm(new(object), func() {
			if begun.Add(1) == n {
				<-open
			}
			ran.Add(1)
		})
	}
	collect(&ran, n-1)
	for begun.Load() < n {
		runtime.Gosched()
	}
	time.Sleep(10 * time.Millisecond) // until it waits
	now, _ := executed(kind)
	b.ReportMetric(float64(ran.Load()), "returned")
	if counted {
		b.ReportMetric(now-before, "executed")
	}
	shown := func(seen bool, means string) {
		value := 0.0
		if seen {
			value = 1
		}
		b.ReportMetric(value, "by-"+means)
	}
	shown(runtime.NumGoroutine() > goroutines, "numgoroutine")
	shown(profile.Count() > inProfile, "profile-count")
	shown(strings.Contains(written(profile, 2), "truths.block."), "profile-text")
	shown(strings.Contains(stacks(), "truths.block."), "stack")
	close(open)
	if leaks := pprof.Lookup("goroutineleak"); leaks != nil {
		shown(strings.Contains(leaked(leaks, arm), "truths.leaked."), "leak-profile")
	}
}

func written(profile *pprof.Profile, debug int) string {
	var text bytes.Buffer
	if err := profile.WriteTo(&text, debug); err != nil {
		panic(err)
	}
	return text.String()
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// leaked lets one wait for ever, and returns the profile of leaked goroutines.
func leaked(leaks *pprof.Profile, arm func(o *object, run func())) string {
	var begun atomic.Int64
	func() {
		never := make(chan struct{})
		arm(new(object), func() {
			begun.Add(1)
			<-never
		})
	}()
	collect(&begun, 1)
	time.Sleep(10 * time.Millisecond)
	return written(leaks, 1)
}

func BenchmarkBlockingFinalizer(b *testing.B) {
	block(b, 100, "finalizers", func(o *object, run func()) {
		runtime.SetFinalizer(o, func(*object) { run() })
	})
}

func BenchmarkBlockingCleanup(b *testing.B) {
	block(b, 20, "cleanups", func(o *object, run func()) {
		runtime.AddCleanup(o, func(run func()) { run() }, run)
	})
}

// --- Memory that stays -----------------------------------------------------------------------

var garbage []byte

// limited returns how many collections a gigabyte of garbage takes under a memory limit alone.
func limited() float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(96 << 20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := 0; i < 1<<14; i++ {
		garbage = make([]byte, 64<<10)
	}
	runtime.ReadMemStats(&after)
	garbage = nil
	return float64(after.NumGC - before.NumGC)
}

const million = 1000 * 1000

// records forgets a million objects at once, frees all, and reports what stays.
func records(b *testing.B, arm func()) {
	debug.FreeOSMemory()
	var before, after runtime.MemStats
	cycles := limited()
	debug.FreeOSMemory()
	runtime.ReadMemStats(&before)
	freed.Store(0)
	old := debug.SetGCPercent(-1)
	for i := 0; i < million; i++ {
		arm()
	}
	debug.SetGCPercent(old)
	collect(&freed, million)
	debug.FreeOSMemory()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(freed.Load())/million, "ran-share")
	off := func(m runtime.MemStats) float64 { return float64(m.Sys - m.HeapSys) }
	b.ReportMetric((off(after)-off(before))/million, "off-heap-bytes")
	b.ReportMetric(cycles, "gc-cycles-before")
	b.ReportMetric(limited(), "gc-cycles-after")
}

var plain *object

// BenchmarkRecordsPlain registers nothing.
func BenchmarkRecordsPlain(b *testing.B) {
	records(b, func() {
		plain = new(object)
		freed.Add(1)
	})
}

func BenchmarkRecordsFinalizer(b *testing.B) {
	records(b, func() {
		runtime.SetFinalizer(new(object), func(*object) { freed.Add(1) })
	})
}

func BenchmarkRecordsCleanup(b *testing.B) {
	records(b, func() {
		runtime.AddCleanup(new(object), func(n *atomic.Int64) { n.Add(1) }, &freed)
	})
}

func BenchmarkRecordsAdopted(b *testing.B) {
	pool := slab.Pool[*resource]{Free: func(dead []*resource) error {
		freed.Add(int64(len(dead)))
		return nil
	}}
	one := new(resource)
	records(b, func() { pool.Adopt(one) })
}

// A resource stands for a C object.
type resource struct{ n int }
