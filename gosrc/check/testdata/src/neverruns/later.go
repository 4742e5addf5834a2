package neverruns

// Cases 11 to 14 were written before the rules had seen them.

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
*/
import "C"

import "runtime"

// Case 11 (harm): the cleanup is a method of its own object.

type method struct{ p *C.thing }

func newMethod() *method {
	h := &method{p: C.make_thing()}
	runtime.AddCleanup(h, h.free, 0) // want "never runs"
	return h
}

func (h *method) free(int) { C.free_thing(h.p) }

// Case 12 (harmless): the cleanup is a method of what the object points to.

type outer struct{ in *inner }

type inner struct{ p *C.thing }

func newOuter() *outer {
	h := &outer{in: &inner{p: C.make_thing()}}
	runtime.AddCleanup(h, (*inner).free, h.in)
	return h
}

func (in *inner) free() { C.free_thing(in.p) }

// Case 13 (harm): a descriptor and a flag, eight bytes without a pointer.

type descriptor struct {
	fd   int32
	open bool
}

func newDescriptor(fd int32) *descriptor {
	d := new(descriptor)
	d.fd, d.open = fd, true
	runtime.SetFinalizer(d, func(d *descriptor) { close(uint64(d.fd)) }) // want "never runs"
	return d
}

// Case 14 (harmless): 16 bytes without a pointer have a block of their own.

type wide struct{ id, owner uint64 }

func newWide(id uint64) *wide {
	h := &wide{id: id}
	runtime.SetFinalizer(h, func(h *wide) { close(h.id) })
	return h
}
