// Package stress is hard on what the Go runtime hangs on objects - finalizers,
// cleanups, weak pointers, pins, the memory profile's records - and holds what
// comes of it against what the documentation promises. It is for a runtime whose
// lists of specials were changed: the runtime's own tests have passed with a bug
// in them that corrupts memory.
//
// The promises, each checked all the time:
//
//   - a cleanup or finalizer never runs while its object is held, also not if
//     only another object, a pin or a closure holds it, never twice, never
//     after it was stopped, and a cleanup never before the object's finalizer;
//   - what a cleanup or finalizer was given arrives as it was, also what nothing
//     else refers to;
//   - the content of an object that is held, or was got back from a weak pointer
//     or by a finalizer, is what was written there;
//   - the weak pointers to one address are equal, give that address while it is
//     held, and nothing any more when a cleanup or finalizer of it runs;
//   - after all is dropped and collected, everything that was not stopped has
//     run and all weak pointers are empty, but for what [Tolerated] says: a few
//     objects of millions;
//   - the memory profile then counts every object as freed that it counted as
//     allocated.
//
// It needs Go 1.26, the oldest release whose runtime is changed here, and is empty
// before: 1.24 and 1.25 leave a hundred or so of a million cleanups unrun, more than
// [Tolerated] says.
package stress
