package closepays

// Cases 15 ff. have the shape of findings that a reader of public code called wrong, and of their
// harmful counterparts.

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
static int try_free(thing *t) { if (t->n) return 1; free(t); return 0; }
*/
import "C"

import (
	"errors"
	"runtime"
)

var errBusy = errors.New("busy")

// Case 15 (harmless): the free has failed, and the finalizer is kept for another attempt.

type busy struct{ p *C.thing }

func newBusy() *busy {
	h := &busy{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *busy) { C.try_free(h.p) })
	return h
}

func (h *busy) Close() error {
	status := C.try_free(h.p)
	if status != 0 {
		return errBusy
	}
	h.p = nil
	runtime.SetFinalizer(h, nil)
	return nil
}

// Case 16 (harm): the object says that it is free before the branch, and the finalizer stays.

type told struct{ p *C.thing }

func newTold() *told {
	h := &told{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *told) { C.try_free(h.p) })
	return h
}

func (h *told) Close() error { // want "Close still pays"
	status := C.try_free(h.p)
	h.p = nil
	if status != 0 {
		return errBusy
	}
	runtime.SetFinalizer(h, nil)
	return nil
}

// Case 17 (harm): both branches leave the finalizer.

type neither struct{ p *C.thing }

func newNeither() *neither {
	h := &neither{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *neither) { C.try_free(h.p) })
	return h
}

func (h *neither) Close() error { // want "Close still pays"
	if C.try_free(h.p) != 0 {
		return errBusy
	}
	h.p = nil
	return nil
}

// Case 18 (harmless): a constant is false, so that nothing is registered.

const guarded = false

type unguarded struct{ p *C.thing }

func newUnguarded() *unguarded {
	h := &unguarded{p: C.make_thing()}
	if guarded {
		runtime.SetFinalizer(h, func(h *unguarded) { C.free_thing(h.p) })
	}
	return h
}

func (h *unguarded) Close() { C.free_thing(h.p) }
