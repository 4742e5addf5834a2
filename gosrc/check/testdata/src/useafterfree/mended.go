package useafterfree

// Cases 31 ff. are counterparts of cases of other.go that the rule had missed.

/*
typedef struct mendedname { char text[16]; } mendedname;
static mendedname mendedthe;
static mendedname *mendedname_new(void) { return &mendedthe; }
static void mendedname_free(mendedname *n) { n->text[0] = 0; }
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Case 31 (harmless): the object is kept alive while its C memory is copied.

type mendedName struct {
	p    *C.mendedname
	size int
}

func newMendedName() *mendedName {
	n := &mendedName{C.mendedname_new(), 16}
	runtime.SetFinalizer(n, func(n *mendedName) { C.mendedname_free(n.p) })
	return n
}

func (n *mendedName) Bytes() []byte {
	bytes := C.GoBytes(unsafe.Pointer(n.p), C.int(n.size))
	runtime.KeepAlive(n)
	return bytes
}

// Case 32 (harmless): what is copied is memory of Go, not what the finalizer frees.

func (n *mendedName) Size() string {
	text := [2]C.char{C.char('0' + n.size/10), 0}
	return C.GoString(&text[0])
}
