package useafterfree

// Cases 11 to 14 were written before the rules had seen them.

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
static int use(thing *t) { return t->n; }
*/
import "C"

import "runtime"

// Case 11 (harm): a loop uses a pointer that was read before it.

type hoisted struct{ p *C.thing }

func newHoisted() *hoisted {
	h := &hoisted{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *hoisted) { C.free_thing(h.p) })
	return h
}

func (h *hoisted) Sum(times int) (sum int) {
	p := h.p
	for range times {
		sum += int(C.use(p)) // want "use after free"
	}
	return sum
}

// Case 12 (harmless): each turn of the loop reads the pointer again.

type reread struct{ p *C.thing }

func newReread() *reread {
	h := &reread{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *reread) { C.free_thing(h.p) })
	return h
}

func (h *reread) Sum(times int) (sum int) {
	for range times {
		sum += int(C.use(h.p))
	}
	return sum
}

// Case 13 (harmless): a deferred closure uses the object.

type counted struct {
	p    *C.thing
	uses int
}

func newCounted() *counted {
	h := &counted{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *counted) { C.free_thing(h.p) })
	return h
}

func (h *counted) Use() int {
	defer func() { h.uses++ }()
	return int(C.use(h.p))
}

// Case 14 (harm): the method gets a copy of the object.

type byValue struct{ p *C.thing }

func newByValue() *byValue {
	h := &byValue{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *byValue) { C.free_thing(h.p) })
	return h
}

func (h byValue) Use() int {
	return int(C.use(h.p)) // want "use after free"
}
