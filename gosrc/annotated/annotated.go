//go:build go1.24

package annotated

// #include <stdlib.h>
// static void *plain_new(size_t n) { return malloc(n); }
// static void plain_free(void *p) { free(p); }
// static void *both_new(size_t n) { return malloc(n); }
// static void both_free(void *p) { free(p); }
// #cgo noescape both_new
// #cgo nocallback both_new
// #cgo noescape both_free
// #cgo nocallback both_free
//
// static int none_sum(unsigned char *p) { return p[0] + p[63]; }
// static int noescape_sum(unsigned char *p) { return p[0] + p[63]; }
// static int nocallback_sum(unsigned char *p) { return p[0] + p[63]; }
// static int both_sum(unsigned char *p) { return p[0] + p[63]; }
// #cgo noescape noescape_sum
// #cgo nocallback nocallback_sum
// #cgo noescape both_sum
// #cgo nocallback both_sum
import "C"

// size is that of the documents' blocks, in bytes.
const size = 100

func plainPair() { C.plain_free(C.plain_new(size)) }
func bothPair()  { C.both_free(C.both_new(size)) }

// An array is passed to C by its address.
type array [64]byte

func none(a array) int       { return int(C.none_sum((*C.uchar)(&a[0]))) }
func noescape(a array) int   { return int(C.noescape_sum((*C.uchar)(&a[0]))) }
func nocallback(a array) int { return int(C.nocallback_sum((*C.uchar)(&a[0]))) }
func both(a array) int       { return int(C.both_sum((*C.uchar)(&a[0]))) }
