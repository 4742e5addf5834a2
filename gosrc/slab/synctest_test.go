//go:build go1.25

//go:debug asynctimerchan=0

package slab_test

import (
	"testing"
	"testing/synctest"
)

// TestABubbleDoesNotStopThePool: a timer that a bubble of package synctest had is gone with
// it, and another comes.
func TestABubbleDoesNotStopThePool(t *testing.T) {
	h := newHeap()
	p := h.pool()
	synctest.Test(t, func(t *testing.T) {
		if err := p.Adopt(h.next()).Close(); err != nil {
			t.Error(err)
		}
	})
	for i := 0; i < 100; i++ {
		o := h.next()
		if err := p.Adopt(o).Close(); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 && !h.dies(o) {
			t.Fatal("a closed object is held for good")
		}
	}
	p.Flush()
	sound(t, h)
}
