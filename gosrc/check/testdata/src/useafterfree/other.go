package useafterfree

// Cases 26 to 30 were written by another hand, who knew the documents of the rules alone.

/*
#include <stdlib.h>

typedef struct otherstmt { int row; } otherstmt;
static otherstmt *otherstmt_prepare(void) { return calloc(1, sizeof(otherstmt)); }
static int otherstmt_step(otherstmt *s) { return ++s->row > 3; }
static int otherstmt_reset(otherstmt *s) { s->row = 0; return 0; }
static void otherstmt_free(otherstmt *s) { free(s); }

typedef struct otherbuf { int size; char bytes[64]; } otherbuf;
static otherbuf *otherbuf_new(void) { return calloc(1, sizeof(otherbuf)); }
static int otherbuf_append(otherbuf *b, int c) { b->bytes[b->size++ & 63] = c; return b->size; }
static void otherbuf_free(void *b) { free(b); }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

var errOtherClosed = errors.New("closed")

// Case 26 (harm): the pointer is a field of an embedded struct, and the guard is before the call.

type otherHandle struct {
	p *C.otherstmt
}

type otherStmt struct {
	otherHandle
	query string
}

func otherPrepare(query string) (*otherStmt, error) {
	p := C.otherstmt_prepare()
	if p == nil {
		return nil, errors.New("out of memory")
	}
	s := &otherStmt{otherHandle{p}, query}
	runtime.SetFinalizer(s, (*otherStmt).finalize)
	return s, nil
}

func (s *otherStmt) finalize() {
	C.otherstmt_free(s.p)
}

func (s *otherStmt) Step() error {
	if s == nil || s.p == nil {
		return errOtherClosed
	}
	if rc := C.otherstmt_step(s.p); rc != 0 { // want "use after free"
		return errors.New("step failed")
	}
	return nil
}

// Case 27 (harmless): the path of the error reads another field after the call.

func (s *otherStmt) Reset() error {
	if rc := C.otherstmt_reset(s.p); rc != 0 {
		return fmt.Errorf("%s: error %d", s.query, int(rc))
	}
	return nil
}

// Case 28 (harm, missed): the call is in a closure that the method calls.

func (s *otherStmt) More() bool {
	step := func() C.int { return C.otherstmt_step(s.p) }
	return step() == 0
}

// Case 29 (harmless): a helper keeps the object alive while a closure has its pointer.

type otherBuffer struct {
	p    *C.otherbuf
	size int
}

func newOtherBuffer() *otherBuffer {
	b := &otherBuffer{p: C.otherbuf_new(), size: 64}
	runtime.AddCleanup(b, func(p *C.otherbuf) { C.otherbuf_free(unsafe.Pointer(p)) }, b.p)
	return b
}

func (b *otherBuffer) with(do func(p *C.otherbuf) C.int) int {
	defer runtime.KeepAlive(b)
	return int(do(b.p))
}

func (b *otherBuffer) Append(c byte) int {
	return b.with(func(p *C.otherbuf) C.int { return C.otherbuf_append(p, C.int(c)) })
}

// Case 30 (harm, missed at first): C.GoBytes copies the C memory, and nothing uses the object after it has begun.

func (b *otherBuffer) Bytes() []byte {
	return C.GoBytes(unsafe.Pointer(b.p), C.int(b.size)) // want "use after free"
}
