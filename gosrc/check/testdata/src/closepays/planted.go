// Package closepays has ten planted cases: five that harm, five that look alike.
package closepays

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
static int flush(thing *t) { return t->n; }
static void reset(thing *t) { t->n = 0; }
*/
import "C"

import (
	"runtime"
	"sync"
)

// Case 1 (harm): Close frees, and leaves the finalizer.

type left struct{ p *C.thing }

func newLeft() *left {
	h := &left{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *left) { h.Close() })
	return h
}

func (h *left) Close() { // want "Close still pays"
	if h.p != nil {
		C.free_thing(h.p)
		h.p = nil
	}
}

// Case 2 (harmless): Close clears the finalizer.

type cleared struct{ p *C.thing }

func newCleared() *cleared {
	h := &cleared{p: C.make_thing()}
	runtime.SetFinalizer(h, (*cleared).Close)
	return h
}

func (h *cleared) Close() {
	runtime.SetFinalizer(h, nil)
	C.free_thing(h.p)
	h.p = nil
}

// Case 3 (harm): on one path it frees and does not clear.

type sometimes struct{ p *C.thing }

func newSometimes() *sometimes {
	h := &sometimes{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *sometimes) { C.free_thing(h.p) })
	return h
}

func (h *sometimes) Close() bool { // want "Close still pays"
	failed := C.flush(h.p) != 0
	C.free_thing(h.p)
	h.p = nil
	if failed {
		return false
	}
	runtime.SetFinalizer(h, nil)
	return true
}

// Case 4 (harmless): a deferred call clears, on every path.

type deferred struct{ p *C.thing }

func newDeferred() *deferred {
	h := &deferred{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *deferred) { C.free_thing(h.p) })
	return h
}

func (h *deferred) Close() bool {
	defer runtime.SetFinalizer(h, nil)
	failed := C.flush(h.p) != 0
	C.free_thing(h.p)
	if failed {
		return false
	}
	h.p = nil
	return true
}

// Case 5 (harm): the cleanup runs after Close, and frees again.

type twice struct{ p *C.thing }

func newTwice() *twice {
	h := &twice{p: C.make_thing()}
	runtime.AddCleanup(h, func(p *C.thing) { C.free_thing(p) }, h.p)
	return h
}

func (h *twice) Release() { // want "Release still pays"
	C.free_thing(h.p)
	h.p = nil
}

// Case 6 (harmless): Close stops the cleanup.

type stopped struct {
	p       *C.thing
	cleanup runtime.Cleanup
}

func newStopped() *stopped {
	h := &stopped{p: C.make_thing()}
	h.cleanup = runtime.AddCleanup(h, func(p *C.thing) { C.free_thing(p) }, h.p)
	return h
}

func (h *stopped) Close() {
	h.cleanup.Stop()
	C.free_thing(h.p)
	h.p = nil
}

// Case 7 (harm): Close is the finalizer.

type itself struct{ p *C.thing }

func newItself() *itself {
	h := &itself{p: C.make_thing()}
	runtime.SetFinalizer(h, (*itself).Close)
	return h
}

func (h *itself) Close() error { // want "Close still pays"
	if h.p == nil {
		return nil
	}
	C.free_thing(h.p)
	h.p = nil
	return nil
}

// Case 8 (harmless): a helper clears, and a sync.Once frees.

type once struct {
	p    *C.thing
	once sync.Once
}

func newOnce() *once {
	h := &once{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *once) { h.free() })
	return h
}

func (h *once) free() { h.once.Do(func() { C.free_thing(h.p) }) }

func (h *once) disarm() { runtime.SetFinalizer(h, nil) }

func (h *once) Close() {
	h.free()
	h.disarm()
}

// Case 9 (harm): a helper frees, nothing is cleared, and the finalizer frees again.

type again struct{ p *C.thing }

func newAgain() *again {
	h := &again{p: C.make_thing()}
	runtime.SetFinalizer(h, (*again).free)
	return h
}

func (h *again) free() { C.free_thing(h.p) }

func (h *again) Destroy() { h.free() } // want "Destroy still pays"

// Case 10 (harmless): Reset frees nothing.

type reused struct{ p *C.thing }

func newReused() *reused {
	h := &reused{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *reused) { C.free_thing(h.p) })
	return h
}

func (h *reused) Reset() { C.reset(h.p) }

func (h *reused) Close() {
	C.free_thing(h.p)
	runtime.SetFinalizer(h, nil)
}
