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

// TestABlockingFreeHoldsOneGoroutine of the pool's own, however long it takes, and what is
// closed meanwhile is freed afterwards.
func TestABlockingFreeHoldsOneGoroutine(t *testing.T) {
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
		if err := p.Adopt(h.next()).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond) // the last tick came and went
	if n := runtime.NumGoroutine() - before; calls.Load() != 1 || n > 2 {
		t.Errorf("%d goroutines are in %d calls of Free", n, calls.Load())
	}
	close(on)
	if !soon(func() bool { return h.held() == 0 }) {
		t.Errorf("%d closed objects are held for good", h.held())
	}
	sound(t, h)
}

// TestAFreeThatEndsItsGoroutineLosesNothingElse, as one that fails a test does.
func TestAFreeThatEndsItsGoroutineLosesNothingElse(t *testing.T) {
	h := newHeap()
	var ended atomic.Bool
	p := &slab.Pool[object]{Free: func(dead []object) error {
		err := h.free(dead)
		if !ended.Swap(true) {
			runtime.Goexit()
		}
		return err
	}}
	const slabs = 64 // so many that they use more than one lane
	var open []handle
	for i := 0; i < slabs*64; i++ {
		open = append(open, p.Adopt(h.next()))
	}
	for i := 0; i < len(open); i += 64 {
		if err := open[i].Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !soon(func() bool { return h.held() == len(open)-slabs }) {
		t.Errorf("%d of %d closed objects are held for good", h.held()-len(open)+slabs, slabs)
	}
	runtime.KeepAlive(open)
}

// TestAPanicLosesNothing: what Make made before it is freed, and so is what is adopted in a
// call whose Free of other objects panics.
func TestAPanicLosesNothing(t *testing.T) {
	h := newHeap()
	p := &slab.Pool[object]{Free: h.free, Make: func(fresh []object) error {
		fresh[3] = h.next()
		panic("so")
	}}
	func() {
		defer func() { recover() }()
		p.Get()
	}()
	if h.held() != 0 {
		t.Error("what Make made is held")
	}
	sound(t, h)

	h = newHeap()
	p = &slab.Pool[object]{Handles: 8, Free: func(dead []object) error {
		err := h.free(dead)
		if strings.Contains(string(debug.Stack()), ").Adopt(") {
			panic("so")
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
			p.Adopt(h.next())
		}()
		if i%500 == 0 {
			runtime.GC()
		}
	}
	if left := settles(h, 0); left != 0 {
		t.Errorf("%d objects are held for good after %d panics", left, panics)
	}
	sound(t, h)
}

// TestCloseAtOnceKeepsTheOrder, and calls Free for no other object, so that Free may close
// what it must not free before.
func TestCloseAtOnceKeepsTheOrder(t *testing.T) {
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
			t.Fatalf("after %d are closed %v are freed", want, freed)
		}
	}
}

// TestTheCollectorSeesLargeObjects in full.
func TestTheCollectorSeesLargeObjects(t *testing.T) {
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
		t.Errorf("it sees %d MB of %d", seen>>20, each*n>>20)
	}
}

func TestAFlushOfAnUnusedPoolDoesNothing(t *testing.T) { new(slab.Pool[object]).Flush() }

// TestTheRuntimeFindsNoFault with the finalizers, where it looks for some.
func TestTheRuntimeFindsNoFault(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no other process can be started")
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
