// Package expensivesize has ten planted cases: five that harm, five that look alike.
package expensivesize

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Case 1 (harm): eight bytes with a finalizer.

type small struct{ p *C.thing }

func newSmall() *small {
	h := &small{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *small) { C.free_thing(h.p) }) // want "expensive size"
	return h
}

// Case 2 (harmless): padded to 64 bytes.

type padded struct {
	p *C.thing
	_ [56]byte
}

func newPadded() *padded {
	h := &padded{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *padded) { C.free_thing(h.p) })
	return h
}

// Case 3 (harm): eight bytes with a cleanup.

type smallCleanup struct{ p unsafe.Pointer }

func newSmallCleanup() *smallCleanup {
	h := &smallCleanup{p: unsafe.Pointer(C.make_thing())}
	runtime.AddCleanup(h, func(p unsafe.Pointer) { C.free_thing((*C.thing)(p)) }, h.p) // want "expensive size"
	return h
}

// Case 4 (harmless): 48 bytes.

type middle struct {
	p    *C.thing
	name string
	list []int
}

func newMiddle(name string) *middle {
	h := &middle{p: C.make_thing(), name: name}
	runtime.SetFinalizer(h, func(h *middle) { C.free_thing(h.p) })
	return h
}

// Case 5 (harm): a generic type of eight bytes.

type box[T any] struct{ value *T }

func newBox[T any](value *T, free func(*T)) *box[T] {
	h := &box[T]{value: value}
	runtime.SetFinalizer(h, func(h *box[T]) { free(h.value) }) // want "expensive size"
	return h
}

// Case 6 (harmless): the same with a field beside it that makes it larger.

type largeBox[T any] struct {
	value *T
	name  [7]string
}

func newLargeBox[T any](value *T, free func(*T)) *largeBox[T] {
	h := &largeBox[T]{value: value}
	runtime.SetFinalizer(h, func(h *largeBox[T]) { free(h.value) })
	return h
}

// Case 7 (harm): eight bytes in an embedded struct.

type base struct{ p *C.thing }

type derived struct{ base }

func newDerived() *derived {
	h := new(derived)
	h.p = C.make_thing()
	runtime.SetFinalizer(h, func(h *derived) { C.free_thing(h.p) }) // want "expensive size"
	return h
}

// Case 8 (harmless): the small wrapper has a large object behind it, which is registered.

type guard struct {
	p *C.thing
	_ [56]byte
}

type wrapper struct{ guard *guard }

func newWrapper() *wrapper {
	w := &wrapper{guard: &guard{p: C.make_thing()}}
	runtime.SetFinalizer(w.guard, func(g *guard) { C.free_thing(g.p) })
	return w
}

// Case 9 (harm): a helper registers.

type tracked struct{ p *C.thing }

func track(h *tracked, free func(*tracked)) *tracked {
	runtime.SetFinalizer(h, free) // want "expensive size"
	return h
}

// Case 10 (harmless): what is small is only cleared here.

type foreign struct{ p *C.thing }

func (f *foreign) Close() {
	runtime.SetFinalizer(f, nil)
	C.free_thing(f.p)
}
