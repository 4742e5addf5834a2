// Package recycled counts what stays of the records of recycled nets (package guardian): of a million
// that are forgotten, and of a million that are closed one after the other. It reports
//
//	ran-share           the part of the C objects that is freed
//	off-heap-bytes      memory of the runtime outside the heap that stays, per object
//	gc-cycles-before    collections for the same garbage under a memory limit, before the objects
//	gc-cycles-after     and after all of them were freed
package recycled
