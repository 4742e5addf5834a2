// Package neverruns has ten planted cases: five that harm, five that look alike.
package neverruns

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
*/
import "C"

import "runtime"

// Case 1 (harm): the finalizer's closure holds the object.

type caught struct{ p *C.thing }

func newCaught() *caught {
	h := &caught{p: C.make_thing()}
	runtime.SetFinalizer(h, func(*caught) { C.free_thing(h.p) }) // want "never runs"
	return h
}

// Case 2 (harmless): the closure's own parameter has the same name.

type shadowed struct{ p *C.thing }

func newShadowed() *shadowed {
	h := &shadowed{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *shadowed) { C.free_thing(h.p) })
	return h
}

// Case 3 (harm): the cleanup's closure holds the object.

type caughtCleanup struct{ p *C.thing }

func newCaughtCleanup() *caughtCleanup {
	h := &caughtCleanup{p: C.make_thing()}
	free := func(int) { C.free_thing(h.p) }
	runtime.AddCleanup(h, free, 0) // want "never runs"
	return h
}

// Case 4 (harmless): the closure holds a copy of the pointer.

type copied struct{ p *C.thing }

func newCopied() *copied {
	h := &copied{p: C.make_thing()}
	p := h.p
	runtime.AddCleanup(h, func(int) { C.free_thing(p) }, 0)
	return h
}

// Case 5 (harm): the cleanup's argument holds the object.

type argued struct{ p *C.thing }

type owner struct{ of *argued }

func newArgued() *argued {
	h := &argued{p: C.make_thing()}
	o := &owner{of: h}
	runtime.AddCleanup(h, func(o *owner) { C.free_thing(o.of.p) }, o) // want "never runs"
	return h
}

// Case 6 (harm): eight bytes without a pointer share a block with others.

type number struct{ id uint64 }

func newNumber(id uint64) *number {
	h := &number{id: id}
	runtime.SetFinalizer(h, func(h *number) { close(h.id) }) // want "never runs"
	return h
}

func close(uint64) {}

// Case 7 (harmless): eight bytes with a pointer do not.

type pointer struct{ p *C.thing }

func newPointer() *pointer {
	h := &pointer{C.make_thing()}
	runtime.SetFinalizer(h, func(h *pointer) { C.free_thing(h.p) })
	return h
}

// Case 8 (harmless): the collector ignores an object's pointer to itself.

type selfish struct {
	self *selfish
	p    *C.thing
}

func newSelfish() *selfish {
	h := &selfish{p: C.make_thing()}
	h.self = h
	runtime.SetFinalizer(h, func(h *selfish) { C.free_thing(h.p) })
	return h
}

// Case 9 (harm): parent and child form a cycle, and the parent has a finalizer.

type parent struct {
	p     *C.thing
	child *child
}

type child struct{ parent *parent }

func newParent() *parent {
	h := &parent{p: C.make_thing()}
	h.child = &child{parent: h}
	runtime.SetFinalizer(h, func(h *parent) { C.free_thing(h.p) }) // want "never runs"
	return h
}

// Case 10 (harmless): the same cycle with a cleanup, which runs.

type cleanParent struct {
	p     *C.thing
	child *cleanChild
}

type cleanChild struct{ parent *cleanParent }

func newCleanParent() *cleanParent {
	h := &cleanParent{p: C.make_thing()}
	h.child = &cleanChild{parent: h}
	runtime.AddCleanup(h, func(p *C.thing) { C.free_thing(p) }, h.p)
	return h
}
