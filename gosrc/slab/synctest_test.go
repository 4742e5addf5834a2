//go:build go1.25

//go:debug asynctimerchan=0

package slab_test

import (
	"testing"
	"testing/synctest"
)

// TestPoolSurvivesSynctestBubble checks that the pool replaces a timer that was lost with a
// synctest bubble.
func TestPoolSurvivesSynctestBubble(t *testing.T) {
	h := newHeap()
	p := h.pool()
	synctest.Test(t, func(t *testing.T) {
		if err := p.Adopt(h.alloc()).Close(); err != nil {
			t.Error(err)
		}
	})
	for i := 0; i < 100; i++ {
		o := h.alloc()
		if err := p.Adopt(o).Close(); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 && !h.waitFreed(o) {
			t.Fatal("a closed object is never freed")
		}
	}
	p.Flush()
	checkFrees(t, h)
}
