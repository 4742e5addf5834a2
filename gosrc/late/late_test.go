package late

import (
	"flag"
	"fmt"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"example.org/gccost/slab"

	"gccost/meter"
)

const (
	small = 100     // bytes of an object, as in package cstr
	large = 7 << 10 // as of a small zlib stream
)

// trial reports whether this is the run of one operation that package testing begins with.
func trial(b *testing.B) bool { return b.N == 1 }

func each(b *testing.B, key string, values []int, bench func(b *testing.B, value int)) {
	for _, value := range values {
		value := value
		b.Run(fmt.Sprintf("%s=%d", key, value), func(b *testing.B) { bench(b, value) })
	}
}

// --- One that blocks -------------------------------------------------------------------

// A blocker registers an object, forgets it and waits until what frees it blocks, which it
// does until the returned function is called.
type blocker func() (release func())

// A valve blocks the first who passes it.
type valve struct {
	first         sync.Once
	entered, open chan struct{}
}

func newValve() *valve { return &valve{entered: make(chan struct{}), open: make(chan struct{})} }

func (v *valve) pass() {
	v.first.Do(func() {
		close(v.entered)
		<-v.open
	})
}

func (v *valve) release() { close(v.open) }

// collectUntilEntered runs the collector until somebody blocks in the valve.
func (v *valve) collectUntilEntered() func() {
	for {
		runtime.GC()
		select {
		case <-v.entered:
			return v.release
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func blockedFinalizer() func() {
	v := newValve()
	runtime.SetFinalizer(&handle64{}, func(*handle64) { v.pass() })
	return v.collectUntilEntered()
}

// blockedFree returns a pool whose Free blocks in the pool's timer, and its release.
func blockedFree() (p *slab.Pool[object], release func()) {
	v := newValve()
	bad := newObject(small)
	p = &slab.Pool[object]{Free: func(dead []object) error {
		if dead[0] == bad {
			v.pass()
		}
		return freeAll(dead)
	}}
	if err := p.Adopt(bad).Close(); err != nil {
		panic(err)
	}
	return p, v.collectUntilEntered()
}

// blockers are what may block, by its name.
var blockers = map[string]blocker{
	"nothing":   func() func() { return func() {} },
	"finalizer": blockedFinalizer,
}

// queued returns how many finalizers or cleanups are queued and have not run, and whether
// the release counts them.
func queued(kind string) (float64, bool) {
	read := []metrics.Sample{
		{Name: "/gc/" + kind + "/queued:" + kind},
		{Name: "/gc/" + kind + "/executed:" + kind},
	}
	metrics.Read(read)
	if read[0].Value.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return float64(read[0].Value.Uint64()) - float64(read[1].Value.Uint64()), true
}

// forgets makes and forgets objects while something blocks. Then it collects three times,
// because the last slab of a pool is freed after the third, and waits each time until all
// objects are freed or none was for a tenth of a second. A program that goes on makes another
// object before each collection: AddCleanup starts the goroutines that run cleanups.
// forgets reports
//
//	freed-share         the part of the objects that is freed, at most 1
//	finalizers-waiting  queued finalizers that have not run, as the runtime's metrics count them
//	cleanups-waiting    the same of cleanups
func forgets(b *testing.B, w way, goesOn bool) {
	before, freed := count(), 0
	for i := 0; i < b.N; i++ {
		w(newObject(small))
	}
	for i := 0; i < 3; i++ {
		if goesOn {
			w(newObject(small))
		}
		forgotten, kept = nil, nil
		runtime.GC()
		for quiet := 0; quiet < 100 && freed < b.N; quiet++ {
			time.Sleep(time.Millisecond)
			if now := int(count().Freed - before.Freed); now > freed {
				freed, quiet = now, 0
			}
		}
	}
	b.ReportMetric(math.Min(float64(freed)/float64(b.N), 1), "freed-share")
	for _, kind := range []string{"finalizers", "cleanups"} {
		if n, known := queued(kind); known {
			b.ReportMetric(n, kind+"-waiting")
		}
	}
}

// blocked measures a way while each of the blockers blocks.
func blocked(b *testing.B, new func() way) {
	for name, block := range blockers {
		block := block
		b.Run("blocks="+name, func(b *testing.B) {
			if trial(b) {
				return
			}
			defer block()()
			forgets(b, new(), true)
		})
	}
}

func always(w way) func() way { return func() way { return w } }

func adopting() way { return adopts(newPool(0)) }

func BenchmarkBlockedFinalizer(b *testing.B) { blocked(b, always(finalized64)) }

func BenchmarkBlockedGuardian(b *testing.B) { blocked(b, always(guard)) }

func BenchmarkBlockedAdopted(b *testing.B) {
	blocked(b, adopting)
	for name, same := range map[string]bool{"free": true, "elsewhere": false} {
		same := same
		b.Run("blocks="+name, func(b *testing.B) {
			if trial(b) {
				return
			}
			p, release := blockedFree()
			defer release()
			if !same {
				p = newPool(0)
			}
			forgets(b, adopts(p), true)
		})
	}
}

// --- How late --------------------------------------------------------------------------

// garbage is what else the program allocates for each object.
var garbage []byte

// paced makes and forgets objects at a pace, a thousandth of a second's at once, and times
// b.N of them. Then it goes on at the same pace until all of these are freed, or until as
// many others were made. It reports
//
//	delay-p50-ms, delay-p99-ms  the time from forgetting an object until it is freed
//	c-held-mean, c-held-peak    objects that are not freed, while the timed ones are made
//	late-share                  the part of the timed objects that is not freed by the end,
//	                            and which has the longest delays
func paced(b *testing.B, w way, rate, other int) {
	if trial(b) {
		return
	}
	runtime.GC()
	before := count()
	held := func() float64 {
		now := count()
		return float64((now.Allocated - now.Freed) - (before.Allocated - before.Freed))
	}
	made, ticks, sum, peak := 0, 0, 0.0, 0.0
	start := time.Now()
	makeUntil := func(objects int, enough func() bool) {
		for made < objects && !enough() {
			time.Sleep(time.Until(start.Add(time.Duration(made) * time.Second / time.Duration(rate))))
			for i := 0; i < rate/1000; i++ {
				garbage = make([]byte, other)
				w(newObject(small))
			}
			made += rate / 1000
			ticks++
			now := held()
			sum += now
			if now > peak {
				peak = now
			}
		}
	}
	timed := timeNext(b.N + rate/1000)
	makeUntil(b.N, func() bool { return false })
	timed.stop()
	b.ReportMetric(sum/float64(ticks), "c-held-mean")
	b.ReportMetric(peak, "c-held-peak")
	objects := made
	makeUntil(2*objects, func() bool { return len(timed.all()) == objects })
	freed := append([]int64(nil), timed.all()...)
	sort.Slice(freed, func(i, j int) bool { return freed[i] < freed[j] })
	at := func(part float64) float64 {
		if i := int(part * float64(objects)); i < len(freed) {
			return float64(freed[i]) / 1e6
		}
		return time.Since(start).Seconds() * 1e3 // at least
	}
	b.ReportMetric(at(0.5), "delay-p50-ms")
	b.ReportMetric(at(0.99), "delay-p99-ms")
	b.ReportMetric(1-float64(len(freed))/float64(objects), "late-share")
}

// late measures a way at each pace, and by how many bytes the program allocates besides.
func late(b *testing.B, new func() way) {
	each(b, "rate", []int{1000, 100_000}, func(b *testing.B, rate int) {
		each(b, "garbage", []int{0, 4096}, func(b *testing.B, other int) { paced(b, new(), rate, other) })
	})
}

func BenchmarkLateFinalizer(b *testing.B) {
	ways := map[int]way{8: finalized8, 64: finalized64}
	each(b, "bytes", []int{8, 64}, func(b *testing.B, bytes int) { late(b, always(ways[bytes])) })
}

func BenchmarkLateGuardian(b *testing.B) { late(b, always(guard)) }

func BenchmarkLateAdopted(b *testing.B) { late(b, adopting) }

// --- Objects of kilobytes --------------------------------------------------------------

// larges makes large objects and forgets them.
func larges(b *testing.B, w way, count func() meter.Blocks) {
	if trial(b) {
		return
	}
	m := meter.Start(b, count)
	for i := 0; i < b.N; i++ {
		w(newObject(large))
	}
	m.Stop()
}

func BenchmarkLargeFree(b *testing.B) { larges(b, free, count) }

func BenchmarkLargeFinalizer(b *testing.B) {
	b.Run("bytes=8", func(b *testing.B) { larges(b, finalized8, count) })
	b.Run("bytes=64", func(b *testing.B) { larges(b, finalized64, count) })
}

func BenchmarkLargeBallast(b *testing.B) {
	var shown ballast
	larges(b, func(o object) {
		shown.show(large)
		finalized64(o)
	}, count)
}

func BenchmarkLargeGuardian(b *testing.B) { larges(b, guard, count) }

// flushing counts the objects. From the third count on, which is the meter's drain, it first
// frees those that wait.
func flushing(flush func()) func() meter.Blocks {
	calls := 0
	return func() meter.Blocks {
		if calls++; calls > 2 {
			flush()
		}
		return count()
	}
}

// BenchmarkLargeLate frees objects by hand, but as late as finalizers on 64 bytes do: when 4 MiB
// of such handles would have been allocated.
func BenchmarkLargeLate(b *testing.B) {
	waiting := make([]object, 0, 4<<20/64)
	freeWaiting := func() {
		for _, o := range waiting {
			free(o)
		}
		waiting = waiting[:0]
	}
	larges(b, func(o object) {
		if waiting = append(waiting, o); len(waiting) == cap(waiting) {
			freeWaiting()
		}
	}, flushing(freeWaiting))
}

// largeSlabs has slabs adopt large objects.
func largeSlabs(b *testing.B, bytes int) {
	p := newPool(bytes)
	larges(b, adopts(p), flushing(func() {
		kept = nil
		p.Flush()
	}))
}

func BenchmarkLargeAdopted(b *testing.B) { largeSlabs(b, large) }

func BenchmarkLargeUnseen(b *testing.B) { largeSlabs(b, 0) }

// largeLives keeps 10,000 large objects. Each operation closes a random one and opens another.
func largeLives(b *testing.B, open func(o object) closer) {
	if trial(b) {
		return
	}
	chance := rand.New(rand.NewSource(1))
	live := make([]closer, 10_000)
	for i := range live {
		live[i] = open(newObject(large))
	}
	m := meter.Start(b, count)
	for i := 0; i < b.N; i++ {
		at := chance.Intn(len(live))
		live[at].close()
		live[at] = open(newObject(large))
	}
	m.Stop()
	for _, one := range live {
		one.close()
	}
}

func BenchmarkLargeLivesFree(b *testing.B) {
	largeLives(b, func(o object) closer { return &handle8{o} })
}

func BenchmarkLargeLivesFinalizer(b *testing.B) {
	largeLives(b, func(o object) closer {
		h := &handle64{handle8: handle8{o}}
		runtime.SetFinalizer(h, func(h *handle64) { h.free() })
		return h
	})
}

// largeLivesSlabs has slabs adopt the objects; with atOnce each Close frees its object itself.
func largeLivesSlabs(b *testing.B, atOnce bool) {
	p := &slab.Pool[object]{Free: freeAll, Bytes: large, AtOnce: atOnce}
	largeLives(b, func(o object) closer { return &adopted{handle: p.Adopt(o)} })
}

func BenchmarkLargeLivesAdopted(b *testing.B) { largeLivesSlabs(b, false) }

func BenchmarkLargeLivesAtOnce(b *testing.B) { largeLivesSlabs(b, true) }

// --- Tests -----------------------------------------------------------------------------

// TestMain sets a short benchtime for tests that call testing.Benchmark.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "20000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// settle waits until so few objects of earlier tests are held, and returns how many are.
func settle(few int64) int64 {
	for i := 0; ; i++ {
		now := count()
		if held := now.Allocated - now.Freed; held <= few || i == 200 {
			return held
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func TestSizes(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"handle8":  {unsafe.Sizeof(handle8{}), 8},
		"handle64": {unsafe.Sizeof(handle64{}), 64},
		"guarded":  {unsafe.Sizeof(guarded{}), 24},
		"guardian": {unsafe.Sizeof(guardian{}), 32},
		"adopted":  {unsafe.Sizeof(adopted{}), 24},
	} {
		if size[0] != size[1] {
			t.Errorf("%s has %d bytes, want %d", name, size[0], size[1])
		}
	}
}

// TestTimes checks that each timed object writes its time when it is freed, and no other.
func TestTimes(t *testing.T) {
	before := newObject(small)
	timed := timeNext(2)
	slow, quick := newObject(small), newObject(small)
	timed.stop()
	after := newObject(small)
	for _, o := range []object{before, after, quick} {
		free(o)
	}
	time.Sleep(20 * time.Millisecond)
	free(slow)
	times := timed.all()
	if len(times) != 2 || times[0] < 0 || times[1] < times[0]+20e6 {
		t.Errorf("the times are %v, want two, the second 20 ms longer", times)
	}
}

// shares returns what the benchmarks of blocked ways print as freed-share, by their names, and
// the most finalizers or cleanups that they report as waiting.
func shares(t *testing.T, procs, pattern string) (share, waiting map[string]float64) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$", "-test.bench="+pattern, "-test.benchtime=1000x")
	child.Env = append(os.Environ(), "GOMAXPROCS="+procs)
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	share, waiting = map[string]float64{}, map[string]float64{}
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		for i := 3; i < len(fields); i++ {
			name := strings.TrimSuffix(strings.TrimPrefix(fields[0], "BenchmarkBlocked"), "-"+procs)
			value, _ := strconv.ParseFloat(fields[i-1], 64)
			switch {
			case fields[i] == "freed-share":
				share[name] = value
			case strings.HasSuffix(fields[i], "-waiting") && value > waiting[name]:
				waiting[name] = value
			}
		}
	}
	return share, waiting
}

// TestWhatABlockerStops checks that a finalizer that blocks stops finalizers and what is built
// on them, and that a pool whose Free blocks does not stop another. How much its own callers still
// free depends on when the collector runs.
func TestWhatABlockerStops(t *testing.T) {
	share, waiting := shares(t, "2", "Blocked(Finalizer|Guardian|Adopted)$")
	for name, want := range map[string]float64{
		"Finalizer/blocks=nothing":   1,
		"Guardian/blocks=nothing":    1,
		"Adopted/blocks=nothing":     1,
		"Finalizer/blocks=finalizer": 0,
		"Guardian/blocks=finalizer":  0,
		"Adopted/blocks=finalizer":   0,
		"Adopted/blocks=elsewhere":   1,
	} {
		got, known := share[name]
		if !known || math.Abs(got-want) > 0.2 {
			t.Errorf("%s: the part %v of the objects is freed (reported: %v), want %v", name, got, known, want)
		}
	}
	if _, counted := queued("finalizers"); counted && waiting["Finalizer/blocks=finalizer"] < 1001 {
		t.Errorf("%v finalizers wait, want those of 1000 objects and the one that blocks",
			waiting["Finalizer/blocks=finalizer"])
	}
}

// ways are all ways, by name.
var ways = map[string]func() way{
	"finalizer of 8 bytes":  always(finalized8),
	"finalizer of 64 bytes": always(finalized64),
	"guardian":              always(guard),
	"slab":                  adopting,
}

// TestPaced checks that timed objects are freed, and later than they were forgotten. On a busy
// machine slabs free some only when the loop has ended.
func TestPaced(t *testing.T) {
	for name, new := range ways {
		settle(64)
		r := testing.Benchmark(func(b *testing.B) { paced(b, new(), 100_000, 4096) }).Extra
		if r["late-share"] > 0.5 || r["delay-p50-ms"] <= 0 || r["delay-p99-ms"] < r["delay-p50-ms"] {
			t.Errorf("%s: %v", name, r)
		}
		if r["c-held-mean"] <= 0 || r["c-held-peak"] < r["c-held-mean"] || r["c-held-peak"] > 20_100 {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// TestPacedLeak checks that objects that are never freed are reported as late.
func TestPacedLeak(t *testing.T) {
	settle(64)
	var leaked []object
	r := testing.Benchmark(func(b *testing.B) {
		paced(b, func(o object) { leaked = append(leaked, o) }, 100_000, 0)
	}).Extra
	for _, o := range leaked {
		free(o)
	}
	if r["late-share"] != 1 || r["delay-p50-ms"] < 200 || r["c-held-peak"] < 19_900 {
		t.Errorf("%v", r)
	}
}

// TestLarge checks that all large objects are freed once the loop has settled, and that what
// shows them to the collector has it run during the loop.
func TestLarge(t *testing.T) {
	for name, bench := range map[string]func(b *testing.B){
		"ballast": BenchmarkLargeBallast, "slabs": BenchmarkLargeAdopted,
	} {
		settle(64)
		r := testing.Benchmark(bench).Extra
		if r["c-unfreed-drained"] > 64 || r["gc-cycles"] < 5 {
			t.Errorf("%s: %v objects are left, after %v collections", name, r["c-unfreed-drained"], r["gc-cycles"])
		}
	}
	if held := settle(64); held > 64 {
		t.Errorf("%d objects are held", held)
	}
}
