package slab_test

import (
	"errors"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/gccost/slab"
)

// oneThread sets GOMAXPROCS to 1 for a test, so that Flush finds all slabs that are being
// handed out: a sync.Pool does not give those of other threads.
func oneThread(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("under the race detector, a sync.Pool drops items at random")
	}
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestFlushEndsOpenSlabs checks that one collection finds the handles forgotten before a
// Flush, and that the pool works as before.
func TestFlushEndsOpenSlabs(t *testing.T) {
	oneThread(t)
	h := newHeap()
	p := h.pool()
	for round := 0; round < 3; round++ {
		p.Flush() // also of slabs that it has ended already
		kept := []handle{get(t, p), p.Adopt(h.alloc())}
		for i := 0; i < 10; i++ {
			get(t, p)
			p.Adopt(h.alloc())
		}
		p.Flush()
		for _, one := range kept {
			if !h.isLive(objectOf(t, one)) {
				t.Fatal("Flush frees an object in use")
			}
		}
		kept = nil
		runtime.GC()
		if !eventually(func() bool { p.Flush(); return h.held() == 0 }) {
			t.Fatalf("%d of %d objects are left after Flush and a collection", h.held(), h.made)
		}
	}
	checkFrees(t, h)
}

// TestFlushFreesUnusedObjects checks that Flush frees what Make made and Get did not return.
func TestFlushFreesUnusedObjects(t *testing.T) {
	oneThread(t)
	h := newHeap()
	p := h.pool()
	one := get(t, p)
	p.Flush()
	if h.held() != 1 || !h.isLive(objectOf(t, one)) {
		t.Errorf("%d objects are held for one handle", h.held())
	}
	_ = one.Close()
	p.Flush()
	if h.held() != 0 {
		t.Errorf("%d objects are left", h.held())
	}
	checkFrees(t, h)
}

// TestFlushFreesWhatFreeCloses closes a chain of objects, each from the Free of another.
func TestFlushFreesWhatFreeCloses(t *testing.T) {
	const n = 100
	var chain []handle
	freed := 0
	p := &slab.Pool[object]{Serial: true, Free: func(dead []object) error {
		for range dead {
			if freed++; freed < n {
				_ = chain[freed].Close()
			}
		}
		return nil
	}}
	for i := 1; i <= n; i++ {
		chain = append(chain, p.Adopt(object(i)))
	}
	_ = chain[0].Close()
	p.Flush()
	if freed != n {
		t.Errorf("Flush freed %d of a chain of %d", freed, n)
	}
}

// TestSerialPoolTakesTurns checks that no two calls of Free and Make run at once.
func TestSerialPoolTakesTurns(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		var running, overlaps atomic.Int32
		alone := func(f func([]object) error, objects []object) error {
			if running.Add(1) > 1 {
				overlaps.Add(1)
			}
			runtime.Gosched()
			defer running.Add(-1)
			return f(objects)
		}
		p := &slab.Pool[object]{
			Serial: true,
			AtOnce: atOnce,
			Free:   func(dead []object) error { return alone(h.free, dead) },
			Make:   func(fresh []object) error { return alone(h.make, fresh) },
		}
		var all sync.WaitGroup
		for g := 0; g < 8; g++ {
			g := g
			all.Add(1)
			go func() {
				defer all.Done()
				for i := 0; i < 500; i++ {
					one := p.Adopt(h.alloc())
					if i%2 == 0 {
						_ = one.Close()
					}
					_ = get(t, p).Close()
					if i%100 == g {
						runtime.GC()
						p.Flush()
					}
				}
			}()
		}
		all.Wait()
		if left := collectUntil(h, 0); left != 0 {
			t.Errorf("AtOnce %v: %d objects are never freed", atOnce, left)
		}
		if n := overlaps.Load(); n != 0 {
			t.Errorf("AtOnce %v: %d calls overlapped", atOnce, n)
		}
		checkFrees(t, h)
	}
}

// TestFreeOfSerialPoolMayUseIt checks that Free can close handles and adopt objects of its
// serial pool, whatever the size of the objects and the number of CPUs. Make may do so too.
func TestFreeOfSerialPoolMayUseIt(t *testing.T) {
	for _, with := range []struct{ cpus, bytes, n int }{
		{2, 0, 10_000}, {2, 9 << 20, 200}, {128, 200 << 10, 2000},
	} {
		before := runtime.GOMAXPROCS(with.cpus)
		freeUsesSerialPool(t, with.bytes, with.n)
		runtime.GOMAXPROCS(before)
	}
}

func freeUsesSerialPool(t *testing.T, bytes, n int) {
	h := newHeap()
	var mu sync.Mutex
	var parts []handle
	part := func() {
		mu.Lock()
		var one handle
		if n := len(parts); n > 0 {
			one, parts = parts[n-1], parts[:n-1]
		}
		mu.Unlock()
		_ = one.Close()
	}
	var p *slab.Pool[object]
	p = &slab.Pool[object]{
		Serial: true,
		Bytes:  bytes,
		Free: func(dead []object) error {
			for range dead {
				part()
			}
			p.Adopt(h.alloc())
			return h.free(dead)
		},
		Make: func(fresh []object) error { part(); return h.make(fresh) },
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < n; i++ {
			one := p.Adopt(h.alloc())
			mu.Lock()
			parts = append(parts, one)
			mu.Unlock()
			_ = get(t, p).Close()
		}
		p.Flush()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("deadlock, with Bytes %d on %d CPUs", bytes, runtime.GOMAXPROCS(0))
	}
	checkFrees(t, h)
}

// TestOnlyAtOnceFreesInClose checks that the size of its objects does not make a pool AtOnce:
// Close does not return the error of Free.
func TestOnlyAtOnceFreesInClose(t *testing.T) {
	want := errors.New("cannot free")
	for _, bytes := range []int{-1, 0, 64 << 10, 9 << 20} {
		for _, atOnce := range []bool{false, true} {
			reported := make(chan error, 1)
			p := &slab.Pool[object]{
				AtOnce:  atOnce,
				Bytes:   bytes,
				Free:    func([]object) error { return want },
				OnError: func(err error) { reported <- err },
			}
			got := p.Adopt(1).Close()
			if !atOnce && got == nil {
				got = <-reported
			} else if !atOnce {
				t.Errorf("Bytes %d: Close returns the error of Free", bytes)
			}
			if got != want {
				t.Errorf("Bytes %d, AtOnce %v: the error is %v", bytes, atOnce, got)
			}
		}
	}
}

// TestPanicInSerialPoolEndsTheTurn checks that the pool goes on after Free or Make panicked.
func TestPanicInSerialPoolEndsTheTurn(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		failing := true
		p := &slab.Pool[object]{
			Serial: true,
			AtOnce: atOnce,
			Free: func(dead []object) error {
				err := h.free(dead)
				if failing {
					panic("in Free")
				}
				return err
			},
			Make: func(fresh []object) error {
				if failing {
					panic("in Make")
				}
				return h.make(fresh)
			},
		}
		survives := func(f func()) {
			defer func() { recover() }()
			f()
		}
		survives(func() { p.Get() })
		// Flush follows at once, so no timer calls Free.
		survives(func() { p.Adopt(h.alloc()).Close(); p.Flush() })
		failing = false
		_ = get(t, p).Close()
		_ = p.Adopt(h.alloc()).Close()
		p.Flush()
		if left := collectUntil(h, 0); left != 0 {
			t.Errorf("AtOnce %v: %d objects are never freed", atOnce, left)
		}
		checkFrees(t, h)
	}
}

// TestGoexitEndsAUse checks that an object can be freed after Goexit in Use, as t.Fatal does.
func TestGoexitEndsAUse(t *testing.T) {
	h := newHeap()
	p := h.pool()
	one := p.Adopt(h.alloc())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = one.Use(func(object) error { runtime.Goexit(); return nil })
	}()
	<-ended
	_ = one.Close()
	p.Flush()
	if !eventually(func() bool { return h.held() == 0 }) {
		t.Error("the object is never freed")
	}
}

// TestStatsCountForgottenObjects checks the numbers of closed and forgotten objects. Objects
// that Make made and Get did not return are neither.
func TestStatsCountForgottenObjects(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		p := h.pool()
		p.AtOnce = atOnce
		if got := p.Stats(); got != (slab.Stats{}) {
			t.Errorf("AtOnce %v: a new pool has %+v", atOnce, got)
		}
		const n, closed = 1000, 1000 // so many that lanes fill up
		made := 0
		for i := 0; i < n; i++ {
			for _, one := range []handle{get(t, p), p.Adopt(h.alloc())} {
				made++
				if i%2 == 0 {
					_ = one.Close()
				}
			}
		}
		if got := p.Stats(); got.Closed+got.Waiting < closed || got.Closed > closed {
			t.Errorf("AtOnce %v: %+v after %d were closed", atOnce, got, closed)
		}
		if left := collectUntil(h, 0); left != 0 {
			t.Errorf("AtOnce %v: %d objects are never freed", atOnce, left)
		}
		want := slab.Stats{Closed: closed, Forgotten: int64(made - closed)}
		if !eventually(func() bool { return p.Stats() == want }) {
			t.Errorf("AtOnce %v: %+v, want %+v; Make made %d", atOnce, p.Stats(), want, h.made)
		}
	}
}

// TestLargeObjectsNeedBytes checks what a pool of objects of 1 MiB holds that are forgotten at
// once: fewer if the collector is shown them.
func TestLargeObjectsNeedBytes(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector slows the collector behind the loop")
	}
	const n = 2000
	most := func(bytes, handles int) (most int) {
		h := newHeap()
		p := h.pool()
		p.Bytes, p.Handles = bytes, handles
		for i := 0; i < n; i++ {
			p.Adopt(h.alloc())
			if now := h.held(); now > most {
				most = now
			}
		}
		p.Flush()
		collectUntil(h, 0)
		return most
	}
	blind, slabs, alone := most(-1, 1), most(1<<20, 64), most(1<<20, 1)
	t.Logf("at most %d of %d objects are held, %d with Bytes, %d with Handles 1 too", blind, n, slabs, alone)
	if slabs > blind*3/4 || alone > blind*3/4 {
		t.Errorf("at most %d of %d objects are held, %d with Bytes, %d with Handles 1 too", blind, n, slabs, alone)
	}
}

// TestPanicOfFreeInTimerEndsTheProgram checks what the package says of a panic of Free.
func TestPanicOfFreeInTimerEndsTheProgram(t *testing.T) {
	if os.Getenv("SLAB_PANIC") != "" {
		p := &slab.Pool[object]{Free: func([]object) error { panic("in Free") }}
		p.Adopt(1).Close()
		time.Sleep(time.Minute)
		return
	}
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("cannot start a process")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPanicOfFreeInTimerEndsTheProgram$")
	child.Env = append(os.Environ(), "SLAB_PANIC=1")
	if out, err := child.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: in Free") {
		t.Errorf("the program ends with %v: %.2000s", err, out)
	}
}

// TestResurrectedHandleWorks checks that a finalizer of the program's own can store a handle
// that was unreachable: its object is not freed before.
func TestResurrectedHandleWorks(t *testing.T) {
	type wrapper struct{ handle handle }
	const n = 1000
	h := newHeap()
	p := h.pool()
	p.Handles = 1
	saved := make(chan handle, n)
	for i := 0; i < n; i++ {
		runtime.SetFinalizer(&wrapper{p.Adopt(h.alloc())}, func(w *wrapper) { saved <- w.handle })
	}
	for i := 0; i < 100 && len(saved) < n; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	if len(saved) < n {
		t.Fatalf("%d of %d handles are resurrected", len(saved), n)
	}
	for i := 0; i < n; i++ {
		if o := objectOf(t, <-saved); !h.isLive(o) {
			t.Fatal("the object of a resurrected handle was freed")
		}
	}
	checkFrees(t, h)
}

// TestHandlesAreComparable checks that handles can be keys of a map. Copies are equal.
func TestHandlesAreComparable(t *testing.T) {
	h := newHeap()
	p := h.pool()
	names := map[handle]int{}
	var all []handle
	for i := 0; i < 200; i++ {
		one := p.Adopt(h.alloc())
		names[one] = i
		all = append(all, one)
	}
	for i, one := range all {
		if same := one; names[same] != i {
			t.Fatalf("handle %d is found as %d", i, names[same])
		}
	}
}

// TestRandomLifetimes checks the documented limit on what objects hold that end in random
// order: 1 + 1/2 + ... + 1/n times the live ones, with n handles in a slab.
func TestRandomLifetimes(t *testing.T) {
	const live = 5_000
	for _, handles := range []int{1, 8, 64} {
		limit := 0.0
		for i := 1; i <= handles; i++ {
			limit += 1 / float64(i)
		}
		h := newHeap()
		p := h.pool()
		p.Handles = handles
		rng := rand.New(rand.NewSource(1))
		kept := make([]handle, live)
		for i := 0; i < 10*live; i++ {
			kept[rng.Intn(live)] = p.Adopt(h.alloc())
		}
		want := int(live * limit * 1.1)
		if left := collectUntil(h, want); left > want {
			t.Errorf("slabs of %d: %d objects are held for %d handles, %.2f times", handles, left, live, float64(left)/live)
		}
		// The race detector makes sync.Pool drop slabs before they are full.
		if left := h.held(); !raceEnabled && float64(left) < live*limit*0.5 {
			t.Errorf("slabs of %d: only %d objects are held for %d handles", handles, left, live)
		}
		runtime.KeepAlive(kept)
		checkFrees(t, h)
	}
}

// TestLifetimesApart checks that the limit of TestRandomLifetimes is one for objects of like
// lifetimes: a pool for each holds less than a pool for both.
func TestLifetimesApart(t *testing.T) {
	if slotBits < 32 {
		t.Skip("a heap tells too few objects apart")
	}
	const short, long = 4500, 500 // live objects; the long-lived ones are replaced a hundredth as often
	held := func(apart bool) float64 {
		h := newHeap()
		p, q := h.pool(), h.pool()
		if !apart {
			q = p
		}
		rng := rand.New(rand.NewSource(1))
		shorts, longs := make([]handle, short), make([]handle, long)
		for i := range longs {
			longs[i] = q.Adopt(h.alloc())
		}
		for i := 0; i < 1_500_000; i++ {
			if rng.Intn(100*short+long) < long {
				longs[rng.Intn(long)] = q.Adopt(h.alloc())
			} else {
				shorts[rng.Intn(short)] = p.Adopt(h.alloc())
			}
		}
		for i := 0; i < 10; i++ {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
			p.Flush()
			q.Flush()
		}
		runtime.KeepAlive(shorts)
		runtime.KeepAlive(longs)
		return float64(h.held()) / (short + long)
	}
	mixed, apart := held(false), held(true)
	t.Logf("%.2f objects are held for each live one, %.2f with a pool for each lifetime", mixed, apart)
	if raceEnabled {
		return // sync.Pool drops slabs before they are full
	}
	if mixed < 6 || apart > 4.744*1.1 {
		t.Errorf("%.2f objects are held for each live one, %.2f with a pool for each lifetime", mixed, apart)
	}
}

// TestLargeSlabs checks slabs far larger than the default, and that negative settings mean
// the default.
func TestLargeSlabs(t *testing.T) {
	for _, handles := range []int{-1, 1 << 14} {
		h := newHeap()
		p := h.pool()
		p.Handles = handles
		for i := 0; i < 60_000; i++ {
			p.Adopt(h.alloc())
		}
		if left := collectUntil(h, 0); left != 0 {
			t.Errorf("slabs of %d: %d objects are never freed", handles, left)
		}
		if handles < 0 && h.largest > 128 {
			t.Errorf("%d objects in one call", h.largest)
		}
		checkFrees(t, h)
	}
}

// TestReadmeNamesTests checks that the tests in the README's list of situations exist.
func TestReadmeNamesTests(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests += string(text)
	}
	named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(readme), -1)
	if len(named) < 30 {
		t.Errorf("the README names %d tests", len(named))
	}
	for _, name := range named {
		if !strings.Contains(tests, "func "+name+"(t *testing.T)") {
			t.Errorf("the README names %s, which does not exist", name)
		}
	}
}
