package expensivesize

// Cases 11 and 12 were written before the rules had seen them.

import (
	"runtime"
	"unsafe"
)

// Case 11 (harm): one pointer of C.

type raw struct{ p unsafe.Pointer }

func newRaw(p unsafe.Pointer) *raw {
	r := new(raw)
	r.p = p
	runtime.SetFinalizer(r, func(r *raw) { r.p = nil }) // want "expensive size"
	return r
}

// Case 12 (harmless): an array of eight pointers has 64 bytes.

func newTable() *[8]*int {
	table := new([8]*int)
	runtime.SetFinalizer(table, func(table *[8]*int) { clear(table[:]) })
	return table
}
