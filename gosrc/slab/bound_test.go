package slab

import (
	"runtime"
	"testing"
	"time"
)

// TestWaitingBytesAreBounded checks the limit on the bytes that wait to be freed, while no
// timer frees them, before and after a Flush.
func TestWaitingBytesAreBounded(t *testing.T) {
	for bytes, want := range map[int]int{64 << 10: 1024, 1 << 20: 64, 1 << 27: 0} {
		p := Pool[uintptr]{
			Free:    func([]uintptr) error { return nil },
			Handles: 8,
			Bytes:   bytes,
		}
		core := p.start().core
		core.ticks.Store(1) // disables ticks, as if one was blocked in Free
		core.bytes = 0      // do not allocate Go memory for the objects
		most := 0
		observe := func() {
			core.mu.Lock()
			n := core.waiting
			core.mu.Unlock()
			for i := range core.lanes {
				core.lanes[i].mu.Lock()
				n += len(core.lanes[i].objects)
				core.lanes[i].mu.Unlock()
			}
			if n > most {
				most = n
			}
		}
		for round := 0; round < 2; round++ {
			most = 0
			func() {
				var open []Handle[uintptr]
				for i := 0; i < 5_000; i++ {
					open = append(open, p.Adopt(uintptr(i)+1))
				}
				for i, h := range open { // close a third, forget the rest
					if i%3 == 0 {
						h.Close()
					}
					if i%64 == 0 {
						observe()
					}
				}
			}()
			for i := 0; i < 10; i++ {
				runtime.GC()
				time.Sleep(5 * time.Millisecond)
				observe()
			}
			if most > want || most < want/4 {
				t.Errorf("objects of %d bytes: %d wait in round %d", bytes, most, round)
			}
			p.Flush()
		}
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
	core.traded.Store(0)
	for i := 0; i < 8*100; i++ {
		p.Adopt(1)
	}
	if n := int(core.traded.Load()); n < 90 || calls != n+n/16 {
		t.Errorf("%d new slabs freed %d dead ones", n, calls)
	}
	calls = 0
	left := waiting()
	p.Flush()
	waiting()
	if left == 0 || calls < left {
		t.Errorf("Flush freed %d of %d dead slabs", calls, left)
	}
}
