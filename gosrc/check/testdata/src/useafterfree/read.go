package useafterfree

// Cases 15 ff. have the shape of findings that a reader of public code called wrong, and of their
// harmful counterparts.

/*
#include <stdlib.h>
typedef struct { int n; } thing;
static thing *make_thing(void) { return calloc(1, sizeof(thing)); }
static void free_thing(thing *t) { free(t); }
static int use(thing *t) { return t->n; }
static int same_thing(thing *a, thing *b) { return a->n == b->n; }
static int register_id(thing *t, unsigned long id) { return t->n = (int)id; }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/cgo"
	"sync"
)

// Case 15 (harmless): the constructor stores the object in a table of the package.

type tabled struct{ p *C.thing }

var table = map[*C.thing]*tabled{}

func newTabled() *tabled {
	h := &tabled{p: C.make_thing()}
	table[h.p] = h
	runtime.SetFinalizer(h, func(h *tabled) { C.free_thing(h.p) })
	return h
}

func (h *tabled) Use() int { return int(C.use(h.p)) }

// Case 16 (harmless): a function of another package keeps it.

type handled struct {
	p      *C.thing
	handle cgo.Handle
}

func newHandled() *handled {
	h := &handled{p: C.make_thing()}
	C.register_id(h.p, C.ulong(cgo.NewHandle(h)))
	runtime.SetFinalizer(h, func(h *handled) { C.free_thing(h.p) })
	return h
}

func (h *handled) Use() int { return int(C.use(h.p)) }

// Case 17 (harmless): a helper of the constructor puts it into a registry.

type listed struct{ p *C.thing }

var registry sync.Map

func enlist(h *listed) { registry.Store(h.p, h) }

func newListed() *listed {
	h := &listed{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *listed) { C.free_thing(h.p) })
	enlist(h)
	return h
}

func (h *listed) Use() int { return int(C.use(h.p)) }

// Case 18 (harm): the table has its name only.

type named struct {
	p    *C.thing
	name string
}

var names = map[string]bool{}

func newNamed(name string) *named {
	h := &named{p: C.make_thing(), name: name}
	names[h.name] = true
	fmt.Println("made", h)
	runtime.SetFinalizer(h, func(h *named) { C.free_thing(h.p) })
	return h
}

func (h *named) Use() int {
	return int(C.use(h.p)) // want "use after free"
}

// Case 19 (harmless): an argument of the same call keeps the object.

type hooked struct{ p *C.thing }

var hooks = map[int]*hooked{}

func hook(h *hooked) int {
	hooks[len(hooks)] = h
	return len(hooks)
}

func newHooked() *hooked {
	h := &hooked{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *hooked) { C.free_thing(h.p) })
	return h
}

func (h *hooked) Hook() int { return int(C.register_id(h.p, C.ulong(hook(h)))) }

func (h *hooked) Use() int {
	return int(C.use(h.p)) // want "use after free"
}

// Case 20 (harmless): the object is in another one, which is used later.

type engine struct{ p *C.thing }

type session struct {
	engine *engine
	n      int
}

func newEngine() *engine {
	e := &engine{p: C.make_thing()}
	runtime.SetFinalizer(e, func(e *engine) { C.free_thing(e.p) })
	return e
}

// NewSession makes a session of an engine.
func NewSession(e *engine) *session {
	s := &session{engine: e}
	s.n = int(C.use(e.p))
	return s
}

// Case 21 (harm): the other one has the pointer only, and not the object.

type view struct {
	p *C.thing
	n int
}

// NewView makes a view of an engine.
func NewView(e *engine) *view {
	v := &view{p: e.p}
	v.n = int(C.use(e.p)) // want "use after free"
	return v
}

// Case 22 (harmless): a constant is false, so that nothing is registered.

const guarded = false

type unguarded struct{ p *C.thing }

func newUnguarded(also bool) *unguarded {
	h := &unguarded{p: C.make_thing()}
	if guarded && also {
		runtime.SetFinalizer(h, func(h *unguarded) { C.free_thing(h.p) })
	}
	return h
}

func (h *unguarded) Use() int { return int(C.use(h.p)) }

// Case 23 (harmless): a goroutine that the constructor starts has the object.

type watched struct{ p *C.thing }

func newWatched(end chan bool) *watched {
	h := &watched{p: C.make_thing()}
	runtime.SetFinalizer(h, func(h *watched) { C.free_thing(h.p) })
	go func() { <-end; runtime.KeepAlive(h) }()
	return h
}

func (h *watched) Use() int { return int(C.use(h.p)) }

// Case 24 (harmless): the cleanup that frees waits for the mutex; another one of the object does not.

type guard struct{ mu sync.Mutex }

type guardedBy struct {
	by   *guard
	p    *C.thing
	tags map[string]int
}

func newGuardedBy(by *guard) *guardedBy {
	h := &guardedBy{by: by, p: C.make_thing(), tags: map[string]int{}}
	runtime.AddCleanup(h, by.free, h.p)
	runtime.AddCleanup(h, forget, h.tags)
	return h
}

func (g *guard) free(p *C.thing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	C.free_thing(p)
}

func forget(tags map[string]int) { clear(tags) }

func (h *guardedBy) Use() int {
	h.by.mu.Lock()
	defer h.by.mu.Unlock()
	return int(C.use(h.p))
}

// Case 25 (harmless): the call never begins, because the result is still nil.

type sum struct{ of C.thing }

// Add would add to a sum.
func Add(e *engine) (total *sum, err error) {
	if C.same_thing(e.p, &total.of) == 0 {
		err = errors.New("they differ")
	}
	return total, err
}
