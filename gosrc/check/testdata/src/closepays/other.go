package closepays

// Cases 19 to 22 were written by another hand, who knew the documents of the rules alone,
// and that a rule had judged the shape of case 22 wrongly before.

/*
#include <stdlib.h>

typedef struct otherimage { int width; } otherimage;
static otherimage *otherimage_new(void) { return calloc(1, sizeof(otherimage)); }
static int otherimage_flush(otherimage *i) { return i->width; }
static void otherimage_free(otherimage *i) { free(i); }
*/
import "C"

import (
	"errors"
	"runtime"
	"sync"
)

// Case 19 (harm): Close frees once, and nothing clears the finalizer.

type otherImage struct {
	p    *C.otherimage
	once sync.Once
}

func newOtherImage() *otherImage {
	i := &otherImage{p: C.otherimage_new()}
	runtime.SetFinalizer(i, func(i *otherImage) { i.Close() })
	return i
}

func (i *otherImage) Close() error { // want "Close still pays"
	i.once.Do(func() {
		C.otherimage_free(i.p)
		i.p = nil
	})
	return nil
}

// Case 20 (harm): the path of the error frees, and does not stop the cleanup.

type otherEncoder struct {
	p       *C.otherimage
	cleanup runtime.Cleanup
}

func newOtherEncoder() *otherEncoder {
	e := &otherEncoder{p: C.otherimage_new()}
	e.cleanup = runtime.AddCleanup(e, func(p *C.otherimage) { C.otherimage_free(p) }, e.p)
	return e
}

func (e *otherEncoder) Close() error { // want "Close still pays"
	if rc := C.otherimage_flush(e.p); rc != 0 {
		C.otherimage_free(e.p)
		e.p = nil
		return errors.New("flush failed")
	}
	e.cleanup.Stop()
	C.otherimage_free(e.p)
	e.p = nil
	return nil
}

// Case 21 (harmless): the cleanup is kept in an embedded struct, and Close may be called twice or on nil.

type otherResource struct {
	p       *C.otherimage
	cleanup runtime.Cleanup
}

type otherSurface struct {
	otherResource
	name string
}

func newOtherSurface(name string) *otherSurface {
	s := &otherSurface{name: name}
	s.p = C.otherimage_new()
	s.cleanup = runtime.AddCleanup(s, func(p *C.otherimage) { C.otherimage_free(p) }, s.p)
	return s
}

func (s *otherSurface) Close() {
	if s == nil || s.p == nil {
		return
	}
	s.cleanup.Stop()
	C.otherimage_free(s.p)
	s.p = nil
}

// Case 22 (harmless, reported at first): Stop is kept as a function, which Close calls if it is there.

type otherFont struct {
	p    *C.otherimage
	stop func()
}

func newOtherFont() *otherFont {
	f := &otherFont{p: C.otherimage_new()}
	f.stop = runtime.AddCleanup(f, func(p *C.otherimage) { C.otherimage_free(p) }, f.p).Stop
	return f
}

func (f *otherFont) Close() { // want "Close still pays"
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	if f.p != nil {
		C.otherimage_free(f.p)
		f.p = nil
	}
}
