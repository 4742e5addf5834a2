// Package registers counts what calls of the standard library register with the runtime, though the
// program has no finalizer and no cleanup. It counts only with the runtime that ./counting writes.
//
// Each benchmark makes b.N calls and reports, for each call,
//
//	finalizers       finalizers set, also those that are removed again
//	cleanups         cleanups registered
//	weak-pointers    weak pointers made or looked up
package registers
