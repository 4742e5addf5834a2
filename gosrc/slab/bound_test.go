package slab

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// inLanes returns the number of closed objects that wait.
func inLanes[P any](p *Pool[P]) int { return int(p.Stats().Waiting) - p.start().core.waits() }

// waits returns the number of handles in dead slabs that wait.
func (c *core[P]) waits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

// TestWaitingBytesAreBounded checks the limits on the bytes of closed and of forgotten objects
// that wait, while no timer frees them: closed ones wait up to 32 KiB in a lane, and new slabs
// reduce forgotten ones to 64 MiB in all.
func TestWaitingBytesAreBounded(t *testing.T) {
	const handles, n = 8, 4000
	for _, bytes := range []int{64, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 1 << 27} {
		p := Pool[uintptr]{
			Free:    func([]uintptr) error { return nil },
			Handles: handles,
			Bytes:   bytes,
		}
		core := p.start().core
		core.ticks.Store(1) // disables ticks, as if one was blocked in Free
		core.bytes = 0      // do not allocate Go memory for the objects
		closed, forgotten := len(core.lanes)*(32<<10)/bytes, (64<<20)/bytes
		for round := 0; round < 2; round++ {
			var open []Handle[uintptr]
			for i := 0; i < n; i++ {
				open = append(open, p.Adopt(1))
			}
			most := 0
			for i, h := range open { // close a third, forget the rest
				if i%3 != 0 {
					continue
				}
				h.Close()
				if now := inLanes(&p); now > most {
					most = now
				}
			}
			if most > closed || closed < n/6 && most < closed/4 {
				t.Errorf("objects of %d bytes: %d closed ones wait in round %d, want %d", bytes, most, round, closed)
			}
			open = nil
			for i := 0; i < 100 && core.waits() < n*3/4; i++ {
				runtime.GC()
				time.Sleep(5 * time.Millisecond)
			}
			found := core.waits()
			for i := 0; i < found/catchUp+handles; i++ {
				p.Adopt(1)
			}
			if left := core.waits(); found < n*3/4 || left > forgotten {
				t.Errorf("objects of %d bytes: %d of %d forgotten ones wait in round %d", bytes, left, found, round)
			}
			p.Flush()
		}
	}
}

// TestSlowFreeSlowsTheProgram checks that objects do not wait without limit if Free is slower
// than the program that makes and forgets them.
func TestSlowFreeSlowsTheProgram(t *testing.T) {
	const n, each = 1000, 1 << 20
	var freed atomic.Int64
	p := Pool[uintptr]{Handles: 8, Bytes: each, Free: func(dead []uintptr) error {
		time.Sleep(5 * time.Millisecond)
		freed.Add(int64(len(dead)))
		return nil
	}}
	held := 0
	for i := 1; i <= n; i++ {
		p.Adopt(1)
		if now := i - int(freed.Load()); now > held {
			held = now
		}
	}
	t.Logf("%d MiB, of %d made", held*each>>20, n*each>>20)
	if held > n*2/3 {
		t.Errorf("%d of %d objects were held that were forgotten at once", held, n)
	}
}

// TestBacklogDrainsAtAnyRate checks that dead slabs do not wait for calls that free them too
// slowly. Without the calls a tick frees all.
func TestBacklogDrainsAtAnyRate(t *testing.T) {
	for _, rate := range []int{0, 1, 10} { // dead slabs that calls freed since the last tick
		var freed atomic.Int64
		p := Pool[uintptr]{Bytes: -1, Free: func(dead []uintptr) error {
			freed.Add(int64(len(dead)))
			return nil
		}}
		core := p.start().core
		core.due.Store(math.MaxInt64) // no other tick
		for i := 0; i < 400; i++ {
			cells := []cell{{object: 1, cells: 1}, {}}
			core.collect(&cells[0])
		}
		core.busy.Store(int32(rate))
		core.tick()
		if n := freed.Load(); n != 400 {
			t.Errorf("a tick leaves %d of 400 slabs to calls that free %d in a tick", 400-n, rate)
		}
	}
}

// TestTickLeavesSlabsToCalls checks that a tick frees no slabs that calls will free soon.
func TestTickLeavesSlabsToCalls(t *testing.T) {
	p := Pool[uintptr]{Bytes: -1, Free: func(dead []uintptr) error {
		if strings.Contains(string(debug.Stack()), "testing.tRunner") { // not a later tick
			t.Error("freed")
		}
		return nil
	}}
	core := p.start().core
	core.due.Store(math.MaxInt64)
	for i := 0; i < 400; i++ {
		cells := []cell{{object: 1, cells: 1}, {}}
		core.collect(&cells[0])
	}
	core.busy.Store(100)
	core.tick()
}

// TestFinalizersDoNotWaitForFree checks that a blocked Free does not block the goroutine that
// runs all finalizers, however many objects wait.
func TestFinalizersDoNotWaitForFree(t *testing.T) {
	blocked := make(chan struct{})
	defer close(blocked)
	p := Pool[uintptr]{Bytes: 1 << 27, Free: func([]uintptr) error { <-blocked; return nil }}
	core := p.start().core
	core.bytes = 0
	core.ticks.Store(1)
	for i := 0; i < 8; i++ {
		p.Adopt(1)
	}
	p.started.Load().adopting.Get() // drops the slab
	for i := 0; i < 100 && core.waits() == 0; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	ran := make(chan struct{})
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(ran) })
	runtime.GC()
	select {
	case <-ran:
	case <-time.After(20 * time.Second):
		t.Error("another finalizer waits for Free")
	}
}

// TestNewSlabsFreeDeadSlabs checks that 16 new slabs free 17 dead ones, and that Flush frees
// the rest. See freeSome for the reason.
func TestNewSlabsFreeDeadSlabs(t *testing.T) {
	calls := 0
	p := Pool[uintptr]{Handles: 8, Bytes: -1, Free: func([]uintptr) error { calls++; return nil }}
	core := p.start().core
	core.ticks.Store(1) // disables ticks, as if one was blocked in Free
	for i := 0; i < 8*1000; i++ {
		p.Adopt(1)
	}
	waiting := func() int {
		core.mu.Lock()
		defer core.mu.Unlock()
		if core.waiting != 8*len(core.dead) {
			t.Fatalf("waiting is %d, but %d slabs of 8 wait", core.waiting, len(core.dead))
		}
		return len(core.dead)
	}
	for i := 0; i < 100 && waiting() < 500; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	calls = 0
	core.traded = 0
	core.busy.Store(0)
	for i := 0; i < 8*100; i++ {
		p.Adopt(1)
	}
	if n := core.traded; n < 90 || calls != n+n/16 {
		t.Errorf("%d new slabs freed %d dead ones", n, calls)
	}
	if n := int(core.busy.Load()); n != calls {
		t.Errorf("%d dead slabs were freed, %d counted", calls, n)
	}
	calls = 0
	left := waiting()
	p.Flush()
	waiting()
	if left == 0 || calls < left {
		t.Errorf("Flush freed %d of %d dead slabs", calls, left)
	}
}

// TestIdlePoolSetsNoTimer checks that a pool costs an idle program no CPU time: once all that
// can be freed is freed, no tick is scheduled.
func TestIdlePoolSetsNoTimer(t *testing.T) {
	p := Pool[uintptr]{Free: func([]uintptr) error { return nil }}
	core := p.start().core
	for i := 0; i < 10_000; i++ {
		if h := p.Adopt(1); i%2 == 0 {
			h.Close()
		}
	}
	p.started.Load().adopting.Get() // drops a slab
	idle := func() bool {
		return core.due.Load() == 0 && core.ticks.Load() == 0 && core.slabs() == 0 && inLanes(&p) == 0
	}
	for i := 0; i < 200 && !(i > 5 && idle()); i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	if !idle() {
		t.Errorf("a tick is due at %d, %d slabs and %d closed objects wait", core.due.Load(), core.slabs(), inLanes(&p))
	}
}
