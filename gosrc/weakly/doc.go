// Package weakly measures programs that register specials without finalizers of their own:
// values that are found through weak pointers, values of package unique, and allocations under
// the heap profiler. No C code is involved.
package weakly
