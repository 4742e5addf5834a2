//go:build go1.24

package slab_test

import (
	"runtime"
	"testing"
	"weak"
)

// TestWeakPointersFindOnlyUsableHandles checks that the object of a handle is not freed while
// a weak pointer to the handle's owner still returns the owner.
func TestWeakPointersFindOnlyUsableHandles(t *testing.T) {
	type wrapper struct {
		handle handle
		_      [16]byte // not a tiny object
	}
	h := newHeap()
	p := h.pool()
	p.Handles = 4
	var owners []weak.Pointer[wrapper]
	for i := 0; i < 20_000; i++ {
		owners = append(owners, weak.Make(&wrapper{handle: p.Adopt(h.alloc())}))
		if i%2000 == 0 {
			go runtime.GC()
		}
		if i%7 != 0 {
			continue
		}
		if w := owners[i-i/3].Value(); w != nil {
			if o := objectOf(t, w.handle); !h.isLive(o) {
				t.Fatal("the object of a handle was freed that a weak pointer finds")
			}
			runtime.KeepAlive(w)
		}
	}
	if left := collectUntil(h, 0); left != 0 {
		t.Errorf("weak pointers keep %d objects", left)
	}
	checkFrees(t, h)
}
