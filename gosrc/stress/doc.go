// Package stress stress-tests the special records of the Go runtime: finalizers,
// cleanups, weak pointers, pins, and the records of the memory profile. It checks what
// the documentation promises. It is for runtimes whose lists of specials were changed:
// the runtime's own tests have passed with a bug in these lists that corrupts memory.
//
// It checks these promises all the time:
//
//   - A cleanup or finalizer does not run while its object is held, even if only
//     another object, a pin or a closure holds it. It does not run twice, or after it
//     was stopped. A cleanup does not run before the object's finalizer.
//   - A cleanup or finalizer receives its argument and captured variables unchanged,
//     even if nothing else refers to them.
//   - An object that is held, that a weak pointer returned or that a finalizer received,
//     has the contents that were written to it.
//   - The weak pointers to one address are equal. They return that address while the
//     object is held, and nil once a cleanup or finalizer of it runs.
//   - After all objects are dropped and collected, all finalizers and cleanups that were
//     not stopped have run and all weak pointers are nil, except for a few objects out of
//     millions: see [Tolerated].
//   - The memory profile then counts as freed every object that it counted as allocated.
//
// The package needs Go 1.26, the oldest release that package overlay patches, and is
// empty for older releases. In Go 1.24 and 1.25 about a hundred of a million cleanups do
// not run, which is more than [Tolerated] allows.
package stress
