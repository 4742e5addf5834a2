// Package useafterfree has ten planted cases: five that harm, five that look alike.
package useafterfree

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
static int use(thing *t) { return t->n; }
static int same(thing *a, thing *b) { return a->n == b->n; }
*/
import "C"

import (
	"errors"
	"runtime"
	"sync"
)

// Case 1 (harm): nothing uses the object after the call begins.

type plain struct{ p *C.thing }

func newPlain() *plain {
	h := &plain{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *plain) { C.free_thing(h.p) })
	return h
}

func (h *plain) Use() int {
	return int(C.use(h.p)) // want "use after free"
}

// Case 2 (harmless): KeepAlive after the call.

type kept struct{ p *C.thing }

func newKept() *kept {
	h := &kept{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *kept) { C.free_thing(h.p) })
	return h
}

func (h *kept) Use() int {
	n := int(C.use(h.p))
	runtime.KeepAlive(h)
	return n
}

// Case 3 (harmless): the deferred unlock holds the object's own mutex.

type locked struct {
	mu sync.Mutex
	p  *C.thing
}

func newLocked() *locked {
	h := &locked{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *locked) { C.free_thing(h.p) })
	return h
}

func (h *locked) Use() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int(C.use(h.p))
}

// Case 4 (harm): the deferred unlock holds a mutex that is another object.

type shared struct {
	mu *sync.Mutex
	p  *C.thing
}

func newShared(mu *sync.Mutex) *shared {
	h := &shared{mu: mu, p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *shared) { C.free_thing(h.p) })
	return h
}

func (h *shared) Use() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int(C.use(h.p)) // want "use after free"
}

// Case 5 (harm): the pointer is copied first, and the last mention uses nothing.

type copied struct{ p *C.thing }

func newCopied() *copied {
	p := C.make_thing()
	h := &copied{p: p}
	runtime.AddCleanup(h, func(p *C.thing) { C.free_thing(p) }, p)
	return h
}

func (h *copied) Use() int {
	p := h.p
	if p == nil {
		return 0
	}
	n := C.use(p) // want "use after free"
	_ = h
	return int(n)
}

// Case 6 (harmless): a later use on one path keeps it for all.

type checked struct {
	p    *C.thing
	name string
}

func newChecked(name string) *checked {
	h := &checked{p: C.make_thing(), name: name}
	runtime.SetFinalizer(h, func(h *checked) { C.free_thing(h.p) })
	return h
}

func (h *checked) Use() error {
	if C.use(h.p) != 0 {
		return errors.New(h.name)
	}
	return nil
}

// Case 7 (harm): a caller passes what it took from two objects with cleanups.

type pair struct{ p *C.thing }

func newPair() *pair {
	h := &pair{}
	h.p = C.make_thing()
	runtime.AddCleanup(h, freePair, h.p)
	return h
}

func freePair(p *C.thing) { C.free_thing(p) }

// Same compares two things.
func Same(a, b *pair) bool {
	return C.same(a.p, b.p) != 0 // want "use after free"
}

// Case 8 (harmless): the only caller of the helper keeps the object alive.

type helped struct{ p *C.thing }

func newHelped() *helped {
	h := &helped{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *helped) { C.free_thing(h.p) })
	return h
}

func (h *helped) use() int { return int(C.use(h.p)) }

func (h *helped) Use() int {
	defer runtime.KeepAlive(h)
	return h.use()
}

// Case 9 (harm): the pointer comes from a getter, in a helper of a careless method.

type got struct{ p *C.thing }

func newGot() *got {
	h := &got{p: C.make_thing()}
	runtime.SetFinalizer(h, (*got).free)
	return h
}

func (h *got) free() { C.free_thing(h.raw()) }

func (h *got) raw() *C.thing { return h.p }

func (h *got) use() int {
	return int(C.use(h.raw())) // want "use after free"
}

func (h *got) Use() int { return h.use() }

// Case 10 (harmless): C gets the Go object's own memory, which the call holds.

type inside struct {
	own C.thing
	p   *C.thing
}

func newInside() *inside {
	h := &inside{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *inside) { C.free_thing(h.p) })
	return h
}

func (h *inside) Use() int {
	return int(C.same(&h.own, h.p))
}
