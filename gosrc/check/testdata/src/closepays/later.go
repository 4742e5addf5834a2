package closepays

// Cases 11 to 14 were written before the rules had seen them.

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
*/
import "C"

import (
	"runtime"
	"sync"
)

// Case 11 (harm): an early return after the free.

type quick struct{ p *C.thing }

func newQuick() *quick {
	h := &quick{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *quick) { C.free_thing(h.p) })
	return h
}

func (h *quick) Free(fast bool) { // want "Free still pays"
	C.free_thing(h.p)
	h.p = nil
	switch {
	case fast:
		return
	default:
		runtime.SetFinalizer(h, nil)
	}
}

// Case 12 (harmless): a function, which is no method, clears.

type disarmed struct{ p *C.thing }

func newDisarmed() *disarmed {
	h := &disarmed{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *disarmed) { C.free_thing(h.p) })
	return h
}

func disarm(h *disarmed) { runtime.SetFinalizer(h, nil) }

func (h *disarmed) Close() error {
	defer disarm(h)
	C.free_thing(h.p)
	h.p = nil
	return nil
}

// Case 13 (harmless): a sync.Once frees and clears.

type onceBoth struct {
	p    *C.thing
	once sync.Once
}

func newOnceBoth() *onceBoth {
	h := &onceBoth{p: C.make_thing()}
	runtime.SetFinalizer(h, (*onceBoth).Close)
	return h
}

func (h *onceBoth) Close() {
	h.once.Do(func() {
		C.free_thing(h.p)
		runtime.SetFinalizer(h, nil)
	})
}

// Case 14 (harm): two things are freed, and the finalizer frees them again.

type both struct{ first, second *C.thing }

func newBoth() *both {
	h := &both{C.make_thing(), C.make_thing()}
	runtime.SetFinalizer(h, func(h *both) {
		C.free_thing(h.first)
		C.free_thing(h.second)
	})
	return h
}

func (h *both) Destroy() { // want "Destroy still pays"
	C.free_thing(h.first)
	C.free_thing(h.second)
}
