// Package late measures when forgotten C objects are freed, how much C memory waits until
// then, and what one finalizer, cleanup or free that blocks stops.
package late

/*
#include <stdlib.h>

#include "late.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"example.org/gccost/slab"

	"gccost/meter"
)

type object = *C.object

func newObject(size int) object { return C.object_new(C.size_t(size)) }

func free(o object) { C.object_free(o) }

func freeAll(dead []object) error {
	first := &dead[0] // passing &dead[0] itself has cgo check every entry
	C.object_free_all(first, C.size_t(len(dead)))
	return nil
}

// count counts the objects for the meter.
func count() meter.Blocks {
	n := C.object_count()
	return meter.Blocks{Allocated: int64(n.allocated), Freed: int64(n.freed)}
}

// times are the times from making objects until they are freed, in ns. The first entry is
// their number.
type times []int64

// timeNext times the objects that are made from now on, at most so many of them.
func timeNext(objects int) times {
	room := (*C.int64_t)(C.calloc(C.size_t(objects)+1, 8))
	C.object_time(room)
	return unsafe.Slice((*int64)(unsafe.Pointer(room)), objects+1)
}

// stop times no further objects; those that are not freed yet still add their times.
func (times) stop() { C.object_time(nil) }

// all returns the times of the objects that were freed.
func (t times) all() []int64 { return t[1:][:atomic.LoadInt64(&t[0])] }

// A way makes the wrapper of an object, which is then forgotten.
type way func(o object)

// Handles are wrappers with a finalizer.
type (
	handle8  struct{ object object }
	handle64 struct {
		handle8
		_ [56]byte
	}
)

func (h *handle8) free() { free(h.object) }

func finalized8(o object) { runtime.SetFinalizer(&handle8{o}, (*handle8).free) }

func finalized64(o object) {
	runtime.SetFinalizer(&handle64{handle8: handle8{o}}, func(h *handle64) { h.free() })
}

// A guarded wrapper has a guardian behind it, as in package guardian. Nobody closes it, so no
// guardian returns to a pool.
type (
	guarded struct {
		guardian *guardian
		_        [16]byte
	}
	guardian struct {
		handle8
		_ [24]byte
	}
)

var forgotten *guarded

func guard(o object) {
	g := &guardian{handle8: handle8{o}}
	runtime.SetFinalizer(g, func(g *guardian) { g.free() })
	forgotten = &guarded{guardian: g}
}

// An adopted wrapper has a handle of a slab.
type adopted struct {
	handle slab.Handle[object]
	_      [8]byte
}

var kept *adopted

// adopts returns a way in which a pool adopts objects.
func adopts(p *slab.Pool[object]) way {
	return func(o object) { kept = &adopted{handle: p.Adopt(o)} }
}

// A closer is a wrapper whose caller closes it.
type closer interface{ close() }

func (h *handle8) close() { h.free() }

func (h *handle64) close() {
	runtime.SetFinalizer(h, nil)
	h.free()
}

func (a *adopted) close() {
	if err := a.handle.Close(); err != nil {
		panic(err)
	}
}

// newPool returns a pool of objects of a size; 0 stands for the pool's default.
func newPool(size int) *slab.Pool[object] { return &slab.Pool[object]{Free: freeAll, Bytes: size} }

// A ballast shows the collector the C memory of new objects, as Go memory that is dropped.
type ballast struct{ unseen int }

var weight []byte

func (b *ballast) show(size int) {
	if b.unseen += size; b.unseen >= 1<<20 {
		weight = make([]byte, b.unseen)
		weight, b.unseen = nil, 0
	}
}
