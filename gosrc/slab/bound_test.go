package slab

import (
	"runtime"
	"testing"
	"time"
)

// TestWhatWaitsIsBounded, in objects and in bytes, also while no timer frees it.
func TestWhatWaitsIsBounded(t *testing.T) {
	for _, c := range []struct{ waiting, bytes, most, want int }{
		{5000, 0, 0, 5000},
		{500, 0, 0, 500},
		{0, 1 << 20, 0, 64},
		{0, 1 << 10, 200 << 10, 200},
		{3, 0, 0, 3},
		{0, 1 << 27, 0, 0},
		{-1, 0, 0, 0},
	} {
		p := Pool[uintptr]{
			Free:         func([]uintptr) error { return nil },
			Handles:      8,
			Waiting:      c.waiting,
			Bytes:        c.bytes,
			WaitingBytes: c.most,
		}
		core := p.started()
		core.armed.Store(true) // as if the timer were slow
		most := 0
		look := func() {
			core.mu.Lock()
			n := core.waiting
			core.mu.Unlock()
			for i := range core.lanes {
				core.lanes[i].mu.Lock()
				if b := core.lanes[i].kept; b != nil {
					n += len(b.objects)
				}
				core.lanes[i].mu.Unlock()
			}
			if n > most {
				most = n
			}
		}
		func() {
			var open []Handle[uintptr]
			for i := 0; i < 20_000; i++ {
				open = append(open, p.Adopt(uintptr(i)+1))
			}
			for i, h := range open { // a third is closed, the rest forgotten
				if i%3 == 0 {
					h.Close()
				}
				if i%64 == 0 {
					look()
				}
			}
		}()
		for i := 0; i < 10; i++ {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
			look()
		}
		if most > c.want || most < c.want/4 {
			t.Errorf("%+v: %d objects wait", c, most)
		}
	}
}
