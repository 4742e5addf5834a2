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
			p.Adopt(h.next())
		}
		// Nobody calls the pool any more. What it was handing out is freed as well.
		if left := settles(h, 0); left != 0 {
			t.Errorf("slabs of %d: %d of %d objects are held", handles, left, h.made)
		}
		sound(t, h)
		runtime.KeepAlive(p)
	}
}

func TestAHandleInUseKeepsItsObject(t *testing.T) {
	for _, handles := range []int{1, 8, 64} {
		h := newHeap()
		p := h.pool()
		p.Handles = handles
		kept := map[object]handle{}
		for i := 0; i < 8000; i++ {
			if o := h.next(); i%100 == 0 {
				kept[o] = p.Adopt(o)
			} else {
				p.Adopt(o)
			}
		}
		if left := settles(h, len(kept)); left > len(kept)*handles {
			t.Errorf("slabs of %d: %d survivors hold %d objects", handles, len(kept), left)
		}
		for o, one := range kept {
			if got := its(t, one); got != o {
				t.Fatalf("the handle of %#x has %#x", o, got)
			}
			if !h.lives(o) {
				t.Fatalf("slabs of %d: an object in use was freed", handles)
			}
		}
		kept = nil
		if left := settles(h, 0); left != 0 {
			t.Errorf("slabs of %d: %d objects are held for good", handles, left)
		}
		sound(t, h)
	}
}

func TestCloseFreesOnce(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		p := h.pool()
		p.AtOnce = atOnce
		o := h.next()
		one := p.Adopt(o)
		same := one // a copy is the same handle
		if err := same.Close(); err != nil {
			t.Error(err)
		}
		if atOnce && h.lives(o) {
			t.Error("Close does not free at once")
		}
		p.Flush()
		if !h.dies(o) {
			t.Errorf("AtOnce %v: a closed object lives after Flush", atOnce)
		}
		if err := one.Close(); !errors.Is(err, slab.ErrClosed) {
			t.Errorf("AtOnce %v: a second close returns %v", atOnce, err)
		}
		used := one.Use(func(object) error { t.Error("a closed handle was used"); return nil })
		if !errors.Is(used, slab.ErrClosed) {
			t.Errorf("AtOnce %v: the use of a closed handle returns %v", atOnce, used)
		}
		settles(h, 0)
		sound(t, h)
	}
}

func TestAZeroHandleIsClosed(t *testing.T) {
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

// TestAnObjectIsWhatItWas: an address comes back as it was, whatever its top bits mean.
func TestAnObjectIsWhatItWas(t *testing.T) {
	for _, o := range []object{1, ^object(0), 1 << (2*placeBits - 1), 0xb4 << (2*placeBits - 8)} {
		freed := make(chan object, 2)
		p := &slab.Pool[object]{Free: func(dead []object) error {
			for _, o := range dead {
				freed <- o
			}
			return nil
		}}
		one := p.Adopt(o)
		if got := its(t, one); got != o {
			t.Errorf("%#x is used as %#x", o, got)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if got := <-freed; got != o {
			t.Errorf("%#x is freed as %#x", o, got)
		}
	}
}

// TestAnObjectInUseIsNotFreed though its handle is closed meanwhile, by whom ever.
func TestAnObjectInUseIsNotFreed(t *testing.T) {
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
				if !h.lives(o) {
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
	if !h.lives(o) {
		t.Error("an object was freed while it was used")
	}
	close(out)
	done.Wait()
	p.Flush()
	if !h.dies(o) {
		t.Error("a closed object lives after its last use")
	}
	sound(t, h)
}

// TestAHandleMayBeForgottenInItsOwnUse: Use itself keeps the object.
func TestAHandleMayBeForgottenInItsOwnUse(t *testing.T) {
	h := newHeap()
	p := h.pool()
	p.Handles = 1
	err := p.Adopt(h.next()).Use(func(o object) error {
		for i := 0; i < 5; i++ {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		p.Flush()
		if !h.lives(o) {
			t.Error("an object was freed while it was used")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestUseReturnsWhatItsFunctionDoes(t *testing.T) {
	h := newHeap()
	one := h.pool().Adopt(h.next())
	want := errors.New("so")
	if err := one.Use(func(object) error { return want }); err != want {
		t.Errorf("Use returns %v", err)
	}
}

// TestAUseEndsWithAPanic: the object can be freed then.
func TestAUseEndsWithAPanic(t *testing.T) {
	h := newHeap()
	p := h.pool()
	one := p.Adopt(h.next())
	func() {
		defer func() { recover() }()
		one.Use(func(object) error { panic("so") })
	}()
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	p.Flush()
	if !soon(func() bool { return h.held() == 0 }) {
		t.Error("the object is held for good")
	}
}

func TestTwoWhoCloseAHandleFreeItOnce(t *testing.T) {
	h := newHeap()
	p := h.pool()
	for i := 0; i < 1000; i++ {
		one := p.Adopt(h.next())
		var done sync.WaitGroup
		var closed [4]error
		for g := range closed {
			g := g
			done.Add(1)
			go func() {
				defer done.Done()
				if g%2 == 1 {
					_ = one.Use(func(o object) error {
						if !h.lives(o) {
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
			t.Fatalf("%d of four closed the handle", freed)
		}
	}
	p.Flush()
	if !soon(func() bool { return h.held() == 0 }) {
		t.Errorf("%d closed objects are held", h.held())
	}
	sound(t, h)
}

// TestFreesShareCalls: few calls of Free, whether objects are closed or forgotten.
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
	if left := settles(h, 0); left != 0 || !raced && h.calls > n/16 {
		t.Errorf("%d calls to free %d of %d closed objects", h.calls, h.freed, n)
	}
	h = newHeap()
	p = h.pool()
	p.Handles = 16
	for i := 0; i < n; i++ {
		get(t, p)
	}
	if left := settles(h, 0); left != 0 || !raced && h.calls > n/8 {
		t.Errorf("%d calls to free %d forgotten objects, %d left", h.calls, n, left)
	}
	if h.largest > 32 {
		t.Errorf("%d objects in a call, with slabs of 16", h.largest)
	}
}

// TestAClosedObjectWaitsForNoCall: it is freed soon in a program that does nothing more.
func TestAClosedObjectWaitsForNoCall(t *testing.T) {
	h := newHeap()
	p := h.pool()
	for i := 0; i < 3; i++ {
		o := h.next()
		if err := p.Adopt(o).Close(); err != nil {
			t.Fatal(err)
		}
		if !h.dies(o) {
			t.Fatal("a closed object is held for good")
		}
	}
}

// TestADroppedPoolLosesNothing: its handles work on, and all is freed in the end.
func TestADroppedPoolLosesNothing(t *testing.T) {
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
	settles(h, len(kept))
	for _, one := range kept {
		if o := its(t, one); !h.lives(o) {
			t.Error("the pool took an object with it")
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	kept = nil
	if left := settles(h, 0); left != 0 {
		t.Errorf("%d objects of a pool that was dropped are held for good", left)
	}
	sound(t, h)
}

// copied copies a pool, which vet would find if it saw the type.
func copied[T any](p *T) *T {
	q := *p
	return &q
}

// TestACopiedPoolFreesItsOwn: nothing goes through the Free of another.
func TestACopiedPoolFreesItsOwn(t *testing.T) {
	one, other := newHeap(), newHeap()
	p := one.pool()
	q := copied(p) // before its first use: another pool
	a, b := p.Adopt(one.next()), q.Adopt(one.next())
	r := copied(p) // afterwards: the same one
	r.Free, r.Make = other.free, other.make
	c, d := r.Adopt(one.next()), get(t, r)
	for _, h := range []handle{a, b, c, d} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	p.Flush()
	q.Flush()
	soon(func() bool { return one.held() == 0 })
	if one.calls == 0 || other.calls+other.made != 0 || one.freed != 4 {
		t.Errorf("%d objects were freed, %d calls were made of another's Free", one.freed, other.calls)
	}
	sound(t, one)
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
		t.Errorf("vet finds %v: %s", err, out)
	}
}

// owner is its own allocator: its pool leads to it, and it to its pool.
type owner struct {
	pool   slab.Pool[object]
	heap   *heap
	canary *[64]byte // is collected with it
}

func (o *owner) free(dead []object) error { return o.heap.free(dead) }

// TestNothingGlobalKeepsAnOwnerAlive, of any number of pools.
func TestNothingGlobalKeepsAnOwnerAlive(t *testing.T) {
	const n = 5000 // more than there may be of a thing that is counted in 12 bits
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
			if err := o.pool.Adopt(h.next()).Close(); err != nil {
				t.Fatal(err)
			}
			o.pool.Adopt(h.next())
			owners = append(owners, o)
		}
		runtime.KeepAlive(owners)
	}()
	if left := settles(h, 0); left != 0 {
		t.Errorf("%d objects are held", left)
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

func TestAMakeThatFailsIsAnErrorAndLosesNothing(t *testing.T) {
	h := newHeap()
	h.refuse = 100
	p := h.pool()
	var kept []handle
	for {
		one, err := p.Get()
		if err != nil {
			if !errors.Is(err, errRefused) {
				t.Errorf("the error is %v", err)
			}
			if one != (handle{}) {
				t.Error("there is a handle beside the error")
			}
			break
		}
		kept = append(kept, one)
	}
	if !raced && h.held() != len(kept) {
		t.Errorf("%d handles and %d objects", len(kept), h.held())
	}
	h.refuse = -1
	kept = append(kept, get(t, p)) // it goes on once there is memory again
	sound(t, h)
	runtime.KeepAlive(kept)
}

func TestAMakeThatMakesTooFewIsAnError(t *testing.T) {
	h := newHeap()
	p := &slab.Pool[object]{Free: h.free, Make: func(fresh []object) error {
		fresh[1] = h.next()
		return nil
	}}
	if _, err := p.Get(); err == nil || !strings.Contains(err.Error(), "1 objects of 8") {
		t.Errorf("Get returns %v", err)
	}
	if h.held() != 0 {
		t.Error("what it made is held")
	}
	if _, err := (&slab.Pool[object]{Free: h.free}).Get(); err == nil || !strings.Contains(err.Error(), "no Make") {
		t.Errorf("Get of a pool without Make returns %v", err)
	}
}

func TestAPoolThatCannotBeIsRefused(t *testing.T) {
	refused := func(name, want string, use func()) {
		defer func() {
			if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
				t.Errorf("%s: %s", name, said)
			}
		}()
		use()
	}
	refused("no Free", "no Free", func() { (&slab.Pool[object]{}).Adopt(1) })
	refused("a large type", "not of [3]uint64", func() {
		p := slab.Pool[[3]uint64]{Free: func([][3]uint64) error { return nil }}
		p.Adopt([3]uint64{1})
	})
	refused("a small type", "not of uint8", func() {
		p := slab.Pool[uint8]{Free: func([]uint8) error { return nil }}
		p.Adopt(1)
	})
}

// TestAFreeThatFailsIsHeard on every way that objects are freed, and nothing ends with it.
func TestAFreeThatFailsIsHeard(t *testing.T) {
	closes := func(p *slab.Pool[object], h handle) {
		if err := h.Close(); err != nil {
			p.OnError(err) // where it frees at once, Close returns the error
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
			heard := 0
			p.OnError = func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == h.failing {
					heard++
				}
			}
			for i := 0; i < 100; i++ {
				forget(p, p.Adopt(h.next()))
			}
			settles(h, 0)
			said := soon(func() bool { mu.Lock(); defer mu.Unlock(); return heard > 0 })
			if !said || h.held() != 0 {
				t.Errorf("%s, AtOnce %v: the error was heard %d times, %d objects are held", name, atOnce, heard, h.held())
			}
		}
	}
}

// TestFreeAndMakeMayUseThePool: they close and make other handles, and do not hang.
func TestFreeAndMakeMayUseThePool(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		h := newHeap()
		var p *slab.Pool[object]
		var mu sync.Mutex
		var parts []handle
		depth := 0
		// A part goes with each object that is freed, as a tree's nodes might.
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
				p.Adopt(h.next())
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
				part := p.Adopt(h.next())
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
			t.Fatalf("it hangs: %s", buf[:runtime.Stack(buf, true)])
		}
		sound(t, h)
	}
}

// TestNobodyWaitsForAnothersCall: while one goroutine is in C, the others go on.
func TestNobodyWaitsForAnothersCall(t *testing.T) {
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
				_ = p.Adopt(h.next()).Close()
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
			t.Errorf("%s: others wait for a call", name)
		}
		on <- struct{}{}
	}
	sound(t, h)
}

// TestNoCollectionIsForced, even where the collector is off.
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

// TestTheCollectorSeesTheObjects that are left open, and as many bytes of them as there are.
func TestTheCollectorSeesTheObjects(t *testing.T) {
	cycles := func(bytes int, close bool) uint32 {
		var before, after runtime.MemStats
		p := newHeap().pool()
		p.Bytes = bytes
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
	unseen, seen := cycles(-1, false), cycles(10_000, false)
	if seen < unseen+3 {
		t.Errorf("%d collections for 1 GB of objects, %d where it does not see them", seen, unseen)
	}
	if closed := cycles(10_000, true); !raced && closed > unseen+2 {
		t.Errorf("%d collections though all is closed", closed)
	}
}

// TestWhatTheCollectorSeesTakesNoMemory: it is not touched.
func TestWhatTheCollectorSeesTakesNoMemory(t *testing.T) {
	if v := runtime.Version(); strings.HasPrefix(v, "go1.20") || strings.HasPrefix(v, "go1.21") {
		t.Skip(v, "clears it")
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
		t.Errorf("%d MB are resident for it", grown>>20)
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	h := newHeap()
	p := h.pool()
	for i := 0; i < 10_000; i++ {
		if one := get(t, p); i%2 == 0 {
			one.Close()
		}
	}
	runtime.GC()
	if !soon(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

// TestAProgramMayEndWithHandlesLive: no finalizer runs then, and none is waited for.
func TestAProgramMayEndWithHandlesLive(t *testing.T) {
	if os.Getenv("SLAB_LIVE") != "" {
		p := newHeap().pool()
		live := []handle{get(t, p), get(t, p)}
		fmt.Println("live", len(live))
		os.Exit(0)
	}
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no other process can be started")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestAProgramMayEndWithHandlesLive$")
	child.Env = append(os.Environ(), "SLAB_LIVE=1")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "live 2") {
		t.Errorf("the program ended with %v: %s", err, out)
	}
}
