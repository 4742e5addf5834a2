package slab_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.org/gccost/slab"
)

// TestBlockedFreeHoldsOneGoroutine checks that a blocked Free blocks only one goroutine of
// the pool, and that objects closed meanwhile are freed afterwards.
func TestBlockedFreeHoldsOneGoroutine(t *testing.T) {
	h := newHeap()
	on := make(chan struct{})
	var calls atomic.Int64
	p := &slab.Pool[object]{Free: func(dead []object) error {
		calls.Add(1)
		<-on
		return h.free(dead)
	}}
	before := runtime.NumGoroutine()
	for i := 0; i < 20; i++ {
		if err := p.Adopt(h.alloc()).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // until the last tick has fired
	if n := runtime.NumGoroutine() - before; calls.Load() != 1 || n > 2 {
		t.Errorf("%d goroutines are in %d calls of Free", n, calls.Load())
	}
	close(on)
	if !eventually(func() bool { return h.held() == 0 }) {
		t.Errorf("%d closed objects are never freed", h.held())
	}
	checkFrees(t, h)
}

// TestGoexitInFreeLeaksNothingElse calls Goexit in Free, as t.Fatal does.
func TestGoexitInFreeLeaksNothingElse(t *testing.T) {
	h := newHeap()
	var ended atomic.Bool
	p := &slab.Pool[object]{Free: func(dead []object) error {
		err := h.free(dead)
		if !ended.Swap(true) {
			runtime.Goexit()
		}
		return err
	}}
	const slabs = 64 // enough to use more than one lane
	var open []handle
	for i := 0; i < slabs*64; i++ {
		open = append(open, p.Adopt(h.alloc()))
	}
	for i := 0; i < len(open); i += 64 {
		if err := open[i].Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !eventually(func() bool { return h.held() == len(open)-slabs }) {
		t.Errorf("%d of %d closed objects are never freed", h.held()-len(open)+slabs, slabs)
	}
	runtime.KeepAlive(open)
}

// TestPanicLeaksNothing panics in Make, which must free the objects made before, and in a
// Free that Adopt calls, which must not leak the adopted object.
func TestPanicLeaksNothing(t *testing.T) {
	h := newHeap()
	p := &slab.Pool[object]{Free: h.free, Make: func(fresh []object) error {
		fresh[3] = h.alloc()
		panic("in Make")
	}}
	func() {
		defer func() { recover() }()
		p.Get()
	}()
	if h.held() != 0 {
		t.Error("the object that Make made is never freed")
	}
	checkFrees(t, h)

	h = newHeap()
	p = &slab.Pool[object]{Handles: 8, Free: func(dead []object) error {
		err := h.free(dead)
		if strings.Contains(string(debug.Stack()), ").Adopt(") {
			panic("in Free")
		}
		return err
	}}
	panics := 0
	for i := 0; i < 4000; i++ {
		func() {
			defer func() {
				if recover() != nil {
					panics++
				}
			}()
			p.Adopt(h.alloc())
		}()
		if i%500 == 0 {
			runtime.GC()
		}
	}
	if left := collectUntil(h, 0); left != 0 {
		t.Errorf("%d objects are never freed after %d panics", left, panics)
	}
	checkFrees(t, h)
}

// TestCloseAtOnceFreesInOrder checks that Close frees only its own object, so that a program
// can free objects in the order that the C library requires.
func TestCloseAtOnceFreesInOrder(t *testing.T) {
	var freed []object
	p := &slab.Pool[object]{AtOnce: true, Handles: 8}
	p.Free = func(dead []object) error {
		freed = append(freed, dead...)
		return nil
	}
	var open []handle
	for i := 1; i <= 100; i++ {
		open = append(open, p.Adopt(object(i)))
	}
	for i := len(open) - 1; i >= 0; i-- {
		if err := open[i].Close(); err != nil {
			t.Fatal(err)
		}
		if want := 100 - i; len(freed) != want || freed[want-1] != object(i+1) {
			t.Fatalf("after %d were closed, %v were freed", want, freed)
		}
	}
}

// TestCollectorIsShownLargeObjects checks that the pool allocates as much Go memory as large
// objects use.
func TestCollectorIsShownLargeObjects(t *testing.T) {
	const each, n = 8 << 20, 128
	var before, after runtime.MemStats
	h := newHeap()
	p := h.pool()
	p.Bytes = each
	runtime.ReadMemStats(&before)
	for i := 0; i < n; i++ {
		get(t, p)
	}
	runtime.ReadMemStats(&after)
	if seen := after.TotalAlloc - before.TotalAlloc; seen < each*n*9/10 {
		t.Errorf("the pool allocated %d MB for %d MB of objects", seen>>20, each*n>>20)
	}
}

func TestFlushOfUnusedPoolDoesNothing(t *testing.T) { new(slab.Pool[object]).Flush() }

// TestCheckFinalizersFindsNothing runs tests with the runtime's own checks of finalizers.
func TestCheckFinalizersFindsNothing(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("cannot start a process")
	}
	child := exec.Command(os.Args[0], "-test.run=^(TestForgottenObjectsAreFreed|TestCloseFreesOnce)$")
	child.Env = append(os.Environ(), "GODEBUG=checkfinalizers=1")
	if out, err := child.CombinedOutput(); err != nil {
		text := string(out)
		if at := strings.Index(text, "checkfinalizers"); at >= 0 {
			text = text[at:]
		}
		t.Errorf("%v: %.2000s", err, text)
	}
}
