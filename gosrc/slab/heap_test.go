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

// object is what the tests call objects by. No two that a heap makes are the same.
type object uintptr

// heap makes and frees objects, and knows of each whether it lives. An object is a place
// in the table, and how often the place was used before.
type heap struct {
	mu       sync.Mutex
	table    []object
	empty    []int
	made     int
	freed    int
	misfreed int // frees of what does not live
	calls    int // of Free
	largest  int // batch that was freed
	refuse   int // so many more objects can be made; any number if negative
	failing  error
}

func newHeap() *heap { return &heap{refuse: -1} }

var errRefused = errors.New("no memory")

const placeBits = 8 * unsafe.Sizeof(object(0)) / 2

// one makes an object. The caller has the lock.
func (h *heap) one() object {
	if len(h.empty) == 0 {
		h.empty = append(h.empty, len(h.table))
		h.table = append(h.table, 0)
	}
	last := len(h.empty) - 1
	place := h.empty[last]
	h.empty = h.empty[:last]
	h.made++
	h.table[place] = object(h.made)<<placeBits | object(place) | 1<<(2*placeBits-1)
	return h.table[place]
}

// next makes an object for a pool to adopt.
func (h *heap) next() object {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.one()
}

func (h *heap) make(fresh []object) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range fresh {
		if fresh[i] != 0 {
			panic("an entry of fresh is not zero")
		}
		if h.refuse == 0 {
			return errRefused
		}
		h.refuse--
		fresh[i] = h.one()
	}
	return nil
}

func (h *heap) place(o object) int { return int(o & (1<<placeBits - 1)) }

func (h *heap) free(dead []object) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if len(dead) > h.largest {
		h.largest = len(dead)
	}
	for _, o := range dead {
		if place := h.place(o); place >= len(h.table) || h.table[place] != o {
			h.misfreed++
		} else {
			h.table[place] = 0
			h.empty = append(h.empty, place)
			h.freed++
		}
	}
	return h.failing
}

func (h *heap) lives(o object) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table[h.place(o)] == o
}

// dies waits until an object is freed: another goroutine may be about it.
func (h *heap) dies(o object) bool { return soon(func() bool { return !h.lives(o) }) }

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

// its returns a handle's object, whose use is over then.
func its(t testing.TB, h handle) (its object) {
	t.Helper()
	if err := h.Use(func(o object) error { its = o; return nil }); err != nil {
		t.Fatal(err)
	}
	return its
}

// settles collects until no more than so many objects are held, or it is hopeless.
func settles(h *heap, want int) int {
	for i := 0; i < 100 && h.held() > want; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond) // finalizers run beside the program
	}
	return h.held()
}

// soon waits until something is so, or it is hopeless.
func soon(so func() bool) bool {
	for i := 0; i < 1000 && !so(); i++ {
		time.Sleep(time.Millisecond)
	}
	return so()
}

// sound fails the test if an object was freed that did not live.
func sound(t testing.TB, h *heap) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.misfreed != 0 {
		t.Errorf("%d frees of objects that did not live", h.misfreed)
	}
}
