package neverruns

// A pointer to a C type that is only declared is no pointer for Go.

/*
struct declared;
struct defined { int x; };
static struct declared *declared(void) { return 0; }
static struct defined *defined(void) { return 0; }
static void drop(void *p) {}
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Case 21 (harm): the only field is a pointer to a type of which C has the name only.

type declared struct{ p *C.struct_declared }

func newDeclared() *declared {
	d := &declared{C.declared()}
	runtime.SetFinalizer(d, func(d *declared) { C.drop(unsafe.Pointer(d.p)) }) // want "never runs: an object of 8 bytes without a pointer"
	return d
}

// Case 22 (harmless): C has the whole type.

type defined struct{ p *C.struct_defined }

func newDefined() *defined {
	d := &defined{C.defined()}
	runtime.SetFinalizer(d, func(d *defined) { C.drop(unsafe.Pointer(d.p)) })
	return d
}

// Case 23 (harmless): the object has 16 bytes.

type wide struct {
	p    *C.struct_declared
	size int
}

func newWide() *wide {
	w := &wide{p: C.declared()}
	runtime.SetFinalizer(w, func(w *wide) { C.drop(unsafe.Pointer(w.p)) })
	return w
}
