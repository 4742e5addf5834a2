// Package harm shows, by running, what each rule of check warns of: a block freed during a call, or
// how many finalizers and cleanups ran. Nothing is timed.
package harm

/*
#include <stdlib.h>

typedef struct { int frees; } thing;

struct declared;
static struct declared *declared(void) { static char is; return (struct declared *)&is; }

static thing *make_thing(void) { return calloc(1, sizeof(thing)); }

// The block stays, so that a second free, and a use after a free, can be counted.
static void free_thing(thing *t) { t->frees++; }
static int frees(thing *t) { return t->frees; }

void collectNow(void);

// Returns how often t was freed while it ran.
static int use(thing *t) {
	collectNow();
	return t->frees;
}
*/
import "C"

import "runtime"

// A handle is a Go object around a C object.
type handle struct{ p *C.thing }

func newHandle() *handle { return &handle{C.make_thing()} }

func (h *handle) free() { C.free_thing(h.p) }

// useDead calls C, and nothing uses the handle afterwards.
func (h *handle) useDead() int { return int(C.use(h.p)) }

// useAlive does the same, and keeps the handle alive.
func (h *handle) useAlive() int {
	n := int(C.use(h.p))
	runtime.KeepAlive(h)
	return n
}

// An opaque is a Go object around a C object of which C's headers have the name only.
type opaque struct{ p *C.struct_declared }

func newOpaque() *opaque { return &opaque{C.declared()} }

func frees(p *C.thing) int { return int(C.frees(p)) }

func freeThing(p *C.thing) { C.free_thing(p) }

//export collectNow
func collectNow() { Collect() }

type sentinel struct{ p *int }

// Collect runs the collector until what was dead before has been finalized and cleaned up.
func Collect() {
	for range 3 {
		finalized, cleaned := newSentinel()
		for done := 0; done < 2; {
			runtime.GC()
			select {
			case <-finalized:
				finalized = nil
				done++
			case <-cleaned:
				cleaned = nil
				done++
			default:
				runtime.Gosched()
			}
		}
	}
}

//go:noinline
func newSentinel() (finalized, cleaned chan bool) {
	finalized, cleaned = make(chan bool, 1), make(chan bool, 1)
	for range 10 { // a stale word on a stack may hold one of them
		s, c := &sentinel{new(int)}, &sentinel{new(int)}
		runtime.SetFinalizer(s, func(*sentinel) { tell(finalized) })
		runtime.AddCleanup(c, tell, cleaned)
	}
	return finalized, cleaned
}

func tell(ran chan bool) {
	select {
	case ran <- true:
	default:
	}
}
