//go:build go1.26

package stress

import (
	"runtime"
	"unsafe"
	"weak"
)

// sorts are the ways in which a record holds a root, each alone: as the function of a
// cleanup, as its argument, as the function of a finalizer, in what a finalizer's object
// refers to, and as a weak handle. Each has a size of object that nothing else is hung on.
var sorts = []struct {
	kind objectKind
	size uintptr
	hang func(w *worker, t *thing)
}{
	{plain, 176, func(w *worker, t *thing) {
		p := newPrivate(w.register(t.id, false))
		runtime.AddCleanup(t.at(0), func(*byte) { p.run() }, nil)
	}},
	{plain, 192, func(w *worker, t *thing) {
		runtime.AddCleanup(t.at(0), (*private).run, newPrivate(w.register(t.id, false)))
	}},
	{plain, 224, func(w *worker, t *thing) {
		p := newPrivate(w.register(t.id, true))
		runtime.SetFinalizer(t.at(0), func(at *byte) { finalize(at, p.key, p.seal()) })
	}},
	{pointers, 288, func(w *worker, t *thing) {
		t.slots()[link] = unsafe.Pointer(newPrivate(w.register(t.id, true)))
		runtime.SetFinalizer(t.at(0), finalizeByContent)
	}},
	{plain, 320, func(_ *worker, t *thing) { weak.Make(t.at(0)) }},
}

// finalizeByContent finds its key in the object, as it is no closure.
func finalizeByContent(at *byte) {
	p := *(**private)(unsafe.Add(unsafe.Pointer(at), link*wordSize))
	finalize(at, p.key, p.seal())
}

// alone hangs on so many objects of each sort what has a root of that sort only, and
// collects. All records of their spans are alike, so that a runtime that takes the sort for
// none marks nothing there.
func (w *worker) alone(objects int) {
	for _, sort := range sorts {
		things := make([]*thing, objects)
		for i := range things {
			things[i] = w.newThing(sort.kind, sort.size)
			sort.hang(w, things[i])
		}
		runtime.GC()
		// What was freed in error is used for something else.
		litter := make([]any, 0, 8*objects)
		for range 4 * objects {
			litter = append(litter, &private{key: uint64(w.round) << 32}, new(uint64), new([2]*private))
		}
		for i, t := range things {
			w.check(t)
			if sort.size == 320 && weak.Make(t.at(0)).Value() != t.at(0) {
				w.findings.add("a weak pointer does not give its object, which is held")
			}
			w.drop(&things[i])
		}
		runtime.GC()
		runtime.KeepAlive(litter)
	}
}
