//go:build go1.26

package stress

import (
	"runtime"
	"unsafe"
	"weak"
)

// rootKinds are the ways in which a record can hold a root: as the function of a cleanup,
// as its argument, as the function of a finalizer, through the object of a finalizer, and
// as a weak handle. Each uses an object size that nothing else in this package uses.
var rootKinds = []struct {
	kind   objectKind
	size   uintptr
	attach func(w *worker, t *thing)
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

// finalizeByContent finds its key in the object, because it is not a closure.
func finalizeByContent(at *byte) {
	p := *(**private)(unsafe.Add(unsafe.Pointer(at), link*wordSize))
	finalize(at, p.key, p.seal())
}

// attachSingleRoots adds, for each kind of root, a special with only that kind of root to
// many objects, and runs the collector. All records of their spans hold the same kind, so
// a runtime that does not recognize the kind marks nothing in these spans.
func (w *worker) attachSingleRoots(objects int) {
	for _, root := range rootKinds {
		things := make([]*thing, objects)
		for i := range things {
			things[i] = w.newThing(root.kind, root.size)
			root.attach(w, things[i])
		}
		runtime.GC()
		// Reuse memory that was freed in error.
		litter := make([]any, 0, 8*objects)
		for range 4 * objects {
			litter = append(litter, &private{key: uint64(w.round) << 32}, new(uint64), new([2]*private))
		}
		for i, t := range things {
			w.check(t)
			if root.size == 320 && weak.Make(t.at(0)).Value() != t.at(0) {
				w.findings.add("a weak pointer does not return its object, which is held")
			}
			w.drop(&things[i])
		}
		runtime.GC()
		runtime.KeepAlive(litter)
	}
}
