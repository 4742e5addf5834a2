package slab_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"example.org/gccost/slab"
)

// object identifies an object. A heap never makes the same one twice.
type object uintptr

// heap makes and frees objects, and tracks which are live. An object consists of an index
// into the table and a serial number.
type heap struct {
	mu       sync.Mutex
	table    []object
	empty    []int
	made     int
	freed    int
	misfreed int // frees of objects that are not live
	calls    int // calls of Free
	largest  int // largest batch passed to Free
	quota    int // objects that make may still make; negative means no limit
	failing  error
}

func newHeap() *heap { return &heap{quota: -1} }

var errNoMemory = errors.New("no memory")

const slotBits = 8 * unsafe.Sizeof(object(0)) / 2

// allocLocked makes an object. The caller must hold h.mu.
func (h *heap) allocLocked() object {
	if len(h.empty) == 0 {
		h.empty = append(h.empty, len(h.table))
		h.table = append(h.table, 0)
	}
	last := len(h.empty) - 1
	slot := h.empty[last]
	h.empty = h.empty[:last]
	h.made++
	h.table[slot] = object(h.made)<<slotBits | object(slot) | 1<<(2*slotBits-1)
	return h.table[slot]
}

// alloc makes an object.
func (h *heap) alloc() object {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.allocLocked()
}

func (h *heap) make(fresh []object) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range fresh {
		if fresh[i] != 0 {
			panic("an entry of fresh is not zero")
		}
		if h.quota == 0 {
			return errNoMemory
		}
		h.quota--
		fresh[i] = h.allocLocked()
	}
	return nil
}

func (h *heap) slot(o object) int { return int(o & (1<<slotBits - 1)) }

func (h *heap) free(dead []object) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if len(dead) > h.largest {
		h.largest = len(dead)
	}
	for _, o := range dead {
		if slot := h.slot(o); slot >= len(h.table) || h.table[slot] != o {
			h.misfreed++
		} else {
			h.table[slot] = 0
			h.empty = append(h.empty, slot)
			h.freed++
		}
	}
	return h.failing
}

func (h *heap) isLive(o object) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table[h.slot(o)] == o
}

// waitFreed waits for an object to be freed, perhaps by another goroutine, and reports
// whether it was.
func (h *heap) waitFreed(o object) bool { return eventually(func() bool { return !h.isLive(o) }) }

func (h *heap) held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made - h.freed
}

func (h *heap) pool() *slab.Pool[object] {
	return &slab.Pool[object]{Free: h.free, Make: h.make}
}

type handle = slab.Handle[object]

func get(t testing.TB, p *slab.Pool[object]) handle {
	t.Helper()
	h, err := p.Get()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// objectOf returns the object of a handle.
func objectOf(t testing.TB, h handle) (found object) {
	t.Helper()
	if err := h.Use(func(o object) error { found = o; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// collectUntil runs the collector until at most want objects are held, or gives up. It
// returns how many are held.
func collectUntil(h *heap, want int) int {
	for i := 0; i < 100 && h.held() > want; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond) // finalizers run in another goroutine
	}
	return h.held()
}

// eventually waits for a condition to hold, or gives up. It reports whether it holds.
func eventually(condition func() bool) bool {
	for i := 0; i < 1000 && !condition(); i++ {
		time.Sleep(time.Millisecond)
	}
	return condition()
}

// checkFrees fails the test if an object was freed that was not live.
func checkFrees(t testing.TB, h *heap) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.misfreed != 0 {
		t.Errorf("%d frees of objects that were not live", h.misfreed)
	}
}
