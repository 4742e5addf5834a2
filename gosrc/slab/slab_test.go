package slab_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/gccost/slab"
)

func TestForgottenObjectsAreFreed(t *testing.T) {
	for _, handles := range []int{1, 2, 8, 64, 256} {
		h := newHeap()
		p := h.pool()
		p.Handles = handles
		for i := 0; i < 5000; i++ {
			get(t, p)
			p.Adopt(h.alloc())
		}
		// The pool is not called any more. The slab it was handing out must be freed as well.
		if left := collectUntil(h, 0); left != 0 {
			t.Errorf("slabs of %d: %d of %d objects are never freed", handles, left, h.made)
		}
		checkFrees(t, h)
		runtime.KeepAlive(p)
	}
}

func TestHandleInUseKeepsItsObject(t *testing.T) {
	for _, handles := range []int{1, 8, 64} {
		h := newHeap()
		p := h.pool()
		p.Handles = handles
		kept := map[object]handle{}
		for i := 0; i < 8000; i++ {
			if o := h.alloc(); i%100 == 0 {
				kept[o] = p.Adopt(o)
			} else {
				p.Adopt(o)
			}
		}
		if left := collectUntil(h, len(kept)); left > len(kept)*handles {
			t.Errorf("slabs of %d: %d handles keep %d objects", handles, len(kept), left)
		}
		for o, one := range kept {
			if got := objectOf(t, one); got != o {
				t.Fatalf("the handle of %#x returns %#x", o, got)
			}
			if !h.isLive(o) {
				t.Fatalf("slabs of %d: an object in use was freed", handles)
			}
		}
		kept = nil
		if left := collectUntil(h, 0); left != 0 {
			t.Errorf("slabs of %d: %d objects are never freed", handles, left)
		}
		checkFrees(t, h)
	}
}

func TestCloseFreesOnce(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		p := h.pool()
		p.AtOnce = atOnce
		o := h.alloc()
		one := p.Adopt(o)
		same := one // a copy is the same handle
		if err := same.Close(); err != nil {
			t.Error(err)
		}
		if atOnce && h.isLive(o) {
			t.Error("Close does not free the object immediately")
		}
		p.Flush()
		if !h.waitFreed(o) {
			t.Errorf("AtOnce %v: a closed object is live after Flush", atOnce)
		}
		if err := one.Close(); !errors.Is(err, slab.ErrClosed) {
			t.Errorf("AtOnce %v: a second Close returns %v", atOnce, err)
		}
		used := one.Use(func(object) error { t.Error("a closed handle was used"); return nil })
		if !errors.Is(used, slab.ErrClosed) {
			t.Errorf("AtOnce %v: Use of a closed handle returns %v", atOnce, used)
		}
		collectUntil(h, 0)
		checkFrees(t, h)
	}
}

func TestZeroHandleIsClosed(t *testing.T) {
	h := newHeap()
	for name, zero := range map[string]handle{"zero": {}, "of nil": h.pool().Adopt(0)} {
		if err := zero.Close(); !errors.Is(err, slab.ErrClosed) {
			t.Errorf("%s: Close returns %v", name, err)
		}
		if err := zero.Use(nil); !errors.Is(err, slab.ErrClosed) {
			t.Errorf("%s: Use returns %v", name, err)
		}
	}
}

// TestPointersAreUnchanged checks that pointers come back unchanged, whatever their top bits.
func TestPointersAreUnchanged(t *testing.T) {
	for _, o := range []object{1, ^object(0), 1 << (2*slotBits - 1), 0xb4 << (2*slotBits - 8)} {
		freed := make(chan object, 2)
		p := &slab.Pool[object]{Free: func(dead []object) error {
			for _, o := range dead {
				freed <- o
			}
			return nil
		}}
		one := p.Adopt(o)
		if got := objectOf(t, one); got != o {
			t.Errorf("Use of %#x gets %#x", o, got)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if got := <-freed; got != o {
			t.Errorf("Free of %#x gets %#x", o, got)
		}
	}
}

// TestObjectInUseIsNotFreed closes a handle while several goroutines use it.
func TestObjectInUseIsNotFreed(t *testing.T) {
	h := newHeap()
	p := h.pool()
	one := get(t, p)
	in, out := make(chan object), make(chan struct{})
	var done sync.WaitGroup
	for i := 0; i < 3; i++ {
		done.Add(1)
		go func() {
			defer done.Done()
			err := one.Use(func(o object) error {
				in <- o
				<-out
				if !h.isLive(o) {
					t.Error("an object was freed while it was used")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	<-in
	<-in
	o := <-in
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if err := one.Use(nil); !errors.Is(err, slab.ErrClosed) {
		t.Errorf("Use after Close returns %v", err)
	}
	if err := one.Close(); !errors.Is(err, slab.ErrClosed) {
		t.Errorf("a second Close returns %v", err)
	}
	p.Flush()
	runtime.GC()
	if !h.isLive(o) {
		t.Error("an object was freed while it was used")
	}
	close(out)
	done.Wait()
	p.Flush()
	if !h.waitFreed(o) {
		t.Error("a closed object is live after its last use")
	}
	checkFrees(t, h)
}

// TestUseKeepsItsHandle checks that Use keeps the object when nothing else refers to the
// handle.
func TestUseKeepsItsHandle(t *testing.T) {
	h := newHeap()
	p := h.pool()
	p.Handles = 1
	err := p.Adopt(h.alloc()).Use(func(o object) error {
		for i := 0; i < 5; i++ {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		p.Flush()
		if !h.isLive(o) {
			t.Error("an object was freed while it was used")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUseReturnsWhatItsFunctionReturns checks both forms of Use, which allocate nothing.
func TestUseReturnsWhatItsFunctionReturns(t *testing.T) {
	h := newHeap()
	one := h.pool().Adopt(h.alloc())
	want := errors.New("an error")
	if err := one.Use(func(object) error { return want }); err != want {
		t.Errorf("Use returns %v", err)
	}
	length := func(o object) (string, error) { return fmt.Sprint(h.isLive(o)), want }
	if got, err := slab.Use(one, length); got != "true" || err != want {
		t.Errorf("Use returns %q, %v", got, err)
	}
	var words int
	uses := func() {
		_ = one.Use(func(object) error { words++; return nil })
		n, _ := slab.Use(one, func(object) (int, error) { return words + 1, nil })
		words = n
	}
	if n := testing.AllocsPerRun(100, uses); n != 0 {
		t.Errorf("two uses allocate %v times", n)
	}
	_ = one.Close()
	for name, closed := range map[string]handle{"closed": one, "zero": {}} {
		if got, err := slab.Use(closed, length); got != "" || !errors.Is(err, slab.ErrClosed) {
			t.Errorf("Use of a %s handle returns %q, %v", name, got, err)
		}
	}
}

// panickingUses are uses of a handle that panic.
var panickingUses = map[string]func(handle){
	"Use":               func(h handle) { h.Use(func(object) error { panic("in Use") }) },
	"Use with a result": func(h handle) { slab.Use(h, func(object) (int, error) { panic("in Use") }) },
}

// TestPanicEndsAUse checks that an object can be freed after a panic in Use.
func TestPanicEndsAUse(t *testing.T) {
	for name, use := range panickingUses {
		h := newHeap()
		p := h.pool()
		one := p.Adopt(h.alloc())
		func() {
			defer func() { recover() }()
			use(one)
		}()
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		p.Flush()
		if !eventually(func() bool { return h.held() == 0 }) {
			t.Errorf("%s: the object is never freed", name)
		}
	}
}

func TestConcurrentClosesFreeOnce(t *testing.T) {
	h := newHeap()
	p := h.pool()
	for i := 0; i < 1000; i++ {
		one := p.Adopt(h.alloc())
		var done sync.WaitGroup
		var closed [4]error
		for g := range closed {
			g := g
			done.Add(1)
			go func() {
				defer done.Done()
				if g%2 == 1 {
					_ = one.Use(func(o object) error {
						if !h.isLive(o) {
							t.Error("an object was freed while it was used")
						}
						return nil
					})
				}
				closed[g] = one.Close()
			}()
		}
		done.Wait()
		freed := 0
		for _, err := range closed {
			if err == nil {
				freed++
			}
		}
		if freed != 1 {
			t.Fatalf("Close succeeded %d times, want once", freed)
		}
	}
	p.Flush()
	if !eventually(func() bool { return h.held() == 0 }) {
		t.Errorf("%d closed objects are never freed", h.held())
	}
	checkFrees(t, h)
}

// TestFreesShareCalls checks that Free is called for batches, of closed and of forgotten
// objects.
func TestFreesShareCalls(t *testing.T) {
	const n = 16_000
	h := newHeap()
	p := h.pool()
	p.Handles = 16
	for i := 0; i < n; i++ {
		if err := get(t, p).Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.Flush()
	// The timer may free some meanwhile.
	if left := collectUntil(h, 0); left != 0 || !raceEnabled && h.calls > n/16 {
		t.Errorf("%d calls of Free for %d of %d closed objects", h.calls, h.freed, n)
	}
	h = newHeap()
	p = h.pool()
	p.Handles = 16
	for i := 0; i < n; i++ {
		get(t, p)
	}
	if left := collectUntil(h, 0); left != 0 || !raceEnabled && h.calls > n/8 {
		t.Errorf("%d calls of Free for %d forgotten objects, %d left", h.calls, n, left)
	}
	if h.largest > 32 {
		t.Errorf("%d objects in a call, with slabs of 16", h.largest)
	}
}

// TestTimerFreesClosedObjects checks that closed objects are freed in a program that does
// nothing more.
func TestTimerFreesClosedObjects(t *testing.T) {
	h := newHeap()
	p := h.pool()
	for i := 0; i < 3; i++ {
		o := h.alloc()
		if err := p.Adopt(o).Close(); err != nil {
			t.Fatal(err)
		}
		if !h.waitFreed(o) {
			t.Fatal("a closed object is never freed")
		}
	}
}

// TestHandlesOutliveTheirPool checks that the handles of an unreachable pool still work,
// and that all its objects are freed in the end.
func TestHandlesOutliveTheirPool(t *testing.T) {
	h := newHeap()
	kept := func() (kept []handle) {
		p := h.pool()
		for i := 0; i < 803; i++ {
			switch one := get(t, p); i % 100 {
			case 50:
				kept = append(kept, one)
			case 51, 52:
				if err := one.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		return kept
	}()
	collectUntil(h, len(kept))
	for _, one := range kept {
		if o := objectOf(t, one); !h.isLive(o) {
			t.Error("an object in use was freed with its pool")
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	kept = nil
	if left := collectUntil(h, 0); left != 0 {
		t.Errorf("%d objects of a dropped pool are never freed", left)
	}
	checkFrees(t, h)
}

// copied copies a pool. It is generic to hide the copy from vet.
func copied[T any](p *T) *T {
	q := *p
	return &q
}

// TestCopiedPoolUsesItsFirstFree checks that the Free of a copy made after the first use
// is never called: the copy shares the state of the original.
func TestCopiedPoolUsesItsFirstFree(t *testing.T) {
	one, other := newHeap(), newHeap()
	p := one.pool()
	q := copied(p) // before the first use: a separate pool
	a, b := p.Adopt(one.alloc()), q.Adopt(one.alloc())
	r := copied(p) // after the first use: the same pool
	r.Free, r.Make = other.free, other.make
	c, d := r.Adopt(one.alloc()), get(t, r)
	for _, h := range []handle{a, b, c, d} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	p.Flush()
	q.Flush()
	eventually(func() bool { return one.held() == 0 })
	if one.calls == 0 || other.calls+other.made != 0 || one.freed < 4 {
		t.Errorf("%d objects were freed, want 4 or more; the copy's Free was called %d times", one.freed, other.calls)
	}
	checkFrees(t, one)
}

func TestVetFindsCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	vet := exec.Command("go", "vet", "-copylocks", "./testdata/copies")
	out, err := vet.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err == nil || strings.Count(string(out), "copies lock value") != 1 {
		t.Errorf("vet returns %v, want one copied lock: %s", err, out)
	}
}

// owner holds a pool whose Free is a method of owner, so the two refer to each other.
type owner struct {
	pool   slab.Pool[object]
	heap   *heap
	canary *[64]byte // collected with the owner
}

func (o *owner) free(dead []object) error { return o.heap.free(dead) }

// TestOwnersOfPoolsAreCollected checks that no global state keeps pools alive.
func TestOwnersOfPoolsAreCollected(t *testing.T) {
	const n = 5000 // more than 12 bits can count
	h := newHeap()
	var mu sync.Mutex
	collected := 0
	func() {
		var owners []*owner
		for i := 0; i < n; i++ {
			o := &owner{heap: h, canary: new([64]byte)}
			runtime.SetFinalizer(o.canary, func(*[64]byte) {
				mu.Lock()
				collected++
				mu.Unlock()
			})
			o.pool.Free = o.free
			if err := o.pool.Adopt(h.alloc()).Close(); err != nil {
				t.Fatal(err)
			}
			o.pool.Adopt(h.alloc())
			owners = append(owners, o)
		}
		runtime.KeepAlive(owners)
	}()
	if left := collectUntil(h, 0); left != 0 {
		t.Errorf("%d objects are never freed", left)
	}
	all := func() bool {
		runtime.GC()
		mu.Lock()
		defer mu.Unlock()
		return collected == n
	}
	for i := 0; i < 100 && !all(); i++ {
		time.Sleep(5 * time.Millisecond)
	}
	if !all() {
		t.Errorf("%d of %d owners were collected", collected, n)
	}
}

func TestFailedMakeReturnsAnErrorAndLeaksNothing(t *testing.T) {
	h := newHeap()
	h.quota = 100
	p := h.pool()
	var kept []handle
	for {
		one, err := p.Get()
		if err != nil {
			if !errors.Is(err, errNoMemory) {
				t.Errorf("Get returns the wrong error: %v", err)
			}
			if one != (handle{}) {
				t.Error("Get returns a handle and an error")
			}
			break
		}
		kept = append(kept, one)
	}
	if !raceEnabled && h.held() != len(kept) {
		t.Errorf("%d handles but %d live objects", len(kept), h.held())
	}
	h.quota = -1
	kept = append(kept, get(t, p)) // Get works again once there is memory
	checkFrees(t, h)
	runtime.KeepAlive(kept)
}

func TestMakeOfTooFewObjectsIsAnError(t *testing.T) {
	h := newHeap()
	p := &slab.Pool[object]{Free: h.free, Make: func(fresh []object) error {
		fresh[1] = h.alloc()
		return nil
	}}
	if _, err := p.Get(); err == nil || !strings.Contains(err.Error(), "1 of 8 objects") {
		t.Errorf("Get returns %v", err)
	}
	if h.held() != 0 {
		t.Error("the object that it made is never freed")
	}
	if _, err := (&slab.Pool[object]{Free: h.free}).Get(); err == nil || !strings.Contains(err.Error(), "Make is nil") {
		t.Errorf("Get of a pool without Make returns %v", err)
	}
}

func TestInvalidPoolPanics(t *testing.T) {
	panics := func(name, want string, use func()) {
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("%s: the panic is %s", name, got)
			}
		}()
		use()
	}
	panics("no Free", "Free is nil", func() { (&slab.Pool[object]{}).Adopt(1) })
	panics("a large type", "not that of [3]uint64", func() {
		p := slab.Pool[[3]uint64]{Free: func([][3]uint64) error { return nil }}
		p.Adopt([3]uint64{1})
	})
	panics("a small type", "not that of uint8", func() {
		p := slab.Pool[uint8]{Free: func([]uint8) error { return nil }}
		p.Adopt(1)
	})
	panics("an interface", "not that of interface {}", func() {
		p := slab.Pool[any]{Free: func([]any) error { return nil }}
		p.Adopt(1)
	})
	panics("a Go map", "not map[int]int", func() {
		p := slab.Pool[map[int]int]{Free: func([]map[int]int) error { return nil }}
		p.Adopt(map[int]int{})
	})
}

// TestErrorsOfFreeAreReported checks every path that frees objects. The pool must go on
// after an error.
func TestErrorsOfFreeAreReported(t *testing.T) {
	closes := func(p *slab.Pool[object], h handle) {
		if err := h.Close(); err != nil {
			p.OnError(err) // in an AtOnce pool, Close returns the error
		}
	}
	for name, forget := range map[string]func(*slab.Pool[object], handle){
		"close":  closes,
		"flush":  func(p *slab.Pool[object], h handle) { closes(p, h); p.Flush() },
		"forget": func(p *slab.Pool[object], h handle) {},
	} {
		for _, atOnce := range []bool{true, false} {
			h := newHeap()
			h.failing = errors.New("cannot free")
			p := h.pool()
			p.AtOnce = atOnce
			var mu sync.Mutex
			reports := 0
			p.OnError = func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == h.failing {
					reports++
				}
			}
			for i := 0; i < 100; i++ {
				forget(p, p.Adopt(h.alloc()))
			}
			collectUntil(h, 0)
			reported := eventually(func() bool { mu.Lock(); defer mu.Unlock(); return reports > 0 })
			if !reported || h.held() != 0 {
				t.Errorf("%s, AtOnce %v: the error was reported %d times, %d objects are held", name, atOnce, reports, h.held())
			}
		}
	}
}

// TestFreeAndMakeMayUseThePool checks that Free and Make can make and close handles of
// their pool without deadlock.
func TestFreeAndMakeMayUseThePool(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		var p *slab.Pool[object]
		var mu sync.Mutex
		var parts []handle
		depth := 0
		// Each freed object closes another, as freeing a tree might close its nodes.
		part := func() {
			mu.Lock()
			var one handle
			if n := len(parts); n > 0 {
				one, parts = parts[n-1], parts[:n-1]
			}
			mu.Unlock()
			_ = one.Close()
		}
		p = &slab.Pool[object]{
			Handles: 8,
			AtOnce:  atOnce,
			Free: func(dead []object) error {
				for range dead {
					part()
				}
				p.Adopt(h.alloc())
				return h.free(dead)
			},
			Make: func(fresh []object) error {
				part()
				if depth++; depth%3 == 1 {
					if _, err := p.Get(); err != nil {
						return err
					}
				}
				return h.make(fresh)
			},
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; i < 2000; i++ {
				one, err := p.Get()
				if err != nil {
					t.Error(err)
				}
				part := p.Adopt(h.alloc())
				mu.Lock() // not in Adopt, which may call Free
				parts = append(parts, part)
				mu.Unlock()
				if err := one.Close(); err != nil {
					t.Error(err)
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			buf := make([]byte, 1<<16)
			t.Fatalf("deadlock: %s", buf[:runtime.Stack(buf, true)])
		}
		checkFrees(t, h)
	}
}

// TestBlockedCallDoesNotBlockOthers checks that goroutines can use the pool while another
// is blocked in Free or Make.
func TestBlockedCallDoesNotBlockOthers(t *testing.T) {
	h := newHeap()
	for _, name := range []string{"Free", "Make"} {
		name := name
		stuck, on := make(chan struct{}), make(chan struct{})
		var calls atomic.Int64
		blocks := func() {
			if calls.Add(1) == 1 {
				stuck <- struct{}{}
				<-on
			}
		}
		p := &slab.Pool[object]{
			Free: func(dead []object) error {
				if name == "Free" {
					blocks()
				}
				return h.free(dead)
			},
			Make: func(fresh []object) error {
				if name == "Make" {
					blocks()
				}
				return h.make(fresh)
			},
		}
		work := func() {
			for i := 0; i < 1000; i++ {
				if err := get(t, p).Close(); err != nil {
					t.Error(err)
				}
				_ = p.Adopt(h.alloc()).Close()
			}
			p.Flush()
		}
		go work()
		<-stuck
		done := make(chan struct{})
		go func() { work(); close(done) }()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Errorf("a blocked %s blocks other goroutines", name)
		}
		on <- struct{}{}
	}
	checkFrees(t, h)
}

// TestNoCollectionIsForced checks that a pool runs no collection when the GC is off.
func TestNoCollectionIsForced(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h := newHeap()
	p := h.pool()
	for i := 0; i < 200_000; i++ {
		get(t, p)
	}
	runtime.ReadMemStats(&after)
	if before.NumGC != after.NumGC || h.held() != h.made {
		t.Errorf("%d collections, %d of %d objects are held", after.NumGC-before.NumGC, h.held(), h.made)
	}
}

// TestOpenObjectsTriggerCollections checks that the collector runs more often when more
// bytes of C objects are open, and not for closed objects.
func TestOpenObjectsTriggerCollections(t *testing.T) {
	cycles := func(bytes int, close, atOnce bool) uint32 {
		var before, after runtime.MemStats
		p := newHeap().pool()
		p.Bytes, p.AtOnce = bytes, atOnce
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := 0; i < 100_000; i++ {
			if h := get(t, p); close {
				h.Close()
			}
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	unseen, seen := cycles(-1, false, false), cycles(10_000, false, false)
	if seen < unseen+3 {
		t.Errorf("%d collections for 1 GB of objects, %d with Bytes -1", seen, unseen)
	}
	for _, atOnce := range []bool{false, true} {
		if closed := cycles(10_000, true, atOnce); !raceEnabled && closed > unseen+2 && closed > seen/2 {
			t.Errorf("AtOnce %v: %d collections though all objects are closed", atOnce, closed)
		}
	}
}

// TestShownMemoryIsNotResident checks that the Go memory which stands for C objects is
// never touched.
func TestShownMemoryIsNotResident(t *testing.T) {
	if v := runtime.Version(); strings.HasPrefix(v, "go1.20") || strings.HasPrefix(v, "go1.21") {
		t.Skip(v, "clears the memory")
	}
	resident := func() (pages int) {
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip(err)
		}
		var total int
		fmt.Sscan(string(text), &total, &pages)
		return pages
	}
	p := newHeap().pool()
	p.Bytes = 20_000
	get(t, p)
	runtime.GC()
	before := resident()
	for i := 0; i < 50_000; i++ { // a gigabyte
		get(t, p)
	}
	if grown := (resident() - before) * os.Getpagesize(); grown > 16<<20 {
		t.Errorf("resident memory grew by %d MB", grown>>20)
	}
}

func TestNoGoroutineLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	h := newHeap()
	p := h.pool()
	for i := 0; i < 10_000; i++ {
		if one := get(t, p); i%2 == 0 {
			one.Close()
		}
	}
	runtime.GC()
	if !eventually(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

// TestProgramMayExitWithLiveHandles checks that exiting neither runs nor awaits finalizers.
func TestProgramMayExitWithLiveHandles(t *testing.T) {
	if os.Getenv("SLAB_LIVE") != "" {
		p := newHeap().pool()
		live := []handle{get(t, p), get(t, p)}
		fmt.Println("live", len(live))
		os.Exit(0)
	}
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("cannot start a process")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestProgramMayExitWithLiveHandles$")
	child.Env = append(os.Environ(), "SLAB_LIVE=1")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "live 2") {
		t.Errorf("the program exited with %v: %s", err, out)
	}
}
