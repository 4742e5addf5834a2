package blocksall

import "runtime"

// Cases 14 ff. have the shape of findings that a reader of public code called wrong, and of their
// harmful counterparts.

// Case 14 (harmless): a channel with a buffer that nobody else has is the object's own lock.

type locked struct {
	lock chan struct{}
	open bool
}

func newLocked() *locked {
	l := &locked{lock: make(chan struct{}, 1), open: true}
	runtime.SetFinalizer(l, func(l *locked) {
		l.lock <- struct{}{}
		l.open = false
		<-l.lock
	})
	return l
}

// Case 15 (harm): the same channel without a buffer.

type unbuffered struct{ lock chan struct{} }

func newUnbuffered() *unbuffered {
	u := &unbuffered{lock: make(chan struct{})}
	runtime.SetFinalizer(u, func(u *unbuffered) { u.lock <- struct{}{} }) // want "one stops all"
	return u
}

// Case 16 (harm): a goroutine has the channel, too, and may have filled it.

type given struct{ work chan string }

func newGiven(run func(chan string)) *given {
	g := &given{work: make(chan string, 1)}
	go run(g.work)
	runtime.SetFinalizer(g, func(g *given) { g.work <- "end" }) // want "one stops all"
	return g
}

// Case 17 (harm): two values do not fit into a buffer of one.

type overfull struct{ values chan int }

func newOverfull() *overfull {
	o := &overfull{values: make(chan int, 1)}
	runtime.SetFinalizer(o, func(o *overfull) { // want "one stops all"
		o.values <- 1
		o.values <- 2
	})
	return o
}

// Case 18 (harmless): the finalizer never runs, because the object is in a cycle with it.

type parent struct{ child *child }

type child struct{ parent *parent }

func newParent() *parent {
	p := new(parent)
	p.child = &child{parent: p}
	runtime.SetFinalizer(p, func(p *parent) { freed <- "parent" })
	return p
}

// Case 19 (harmless): the type switch has no case for what was registered.

type iterator interface{ next() int }

type flat struct{ at *int }

type pooled struct{ at *int }

func (f *flat) next() int   { return *f.at }
func (p *pooled) next() int { return *p.at }

var pool = make(chan *pooled)

func destroy(i iterator) {
	switch i := i.(type) {
	case *pooled:
		pool <- i
	}
}

func newFlat(at *int) *flat {
	f := &flat{at}
	runtime.SetFinalizer(f, destroy)
	return f
}

// Case 20 (harm): it has one.

func newPooled(at *int) *pooled {
	p := &pooled{at}
	runtime.SetFinalizer(p, destroy) // want "one stops all"
	return p
}

// Case 21 (harm): the method of the registered object, called through an interface, blocks.

type stopper interface{ stop() }

type stopping struct{ done chan bool }

func (s *stopping) stop() { <-s.done }

func stop(s stopper) { s.stop() }

func newStopping(done chan bool) *stopping {
	s := &stopping{done}
	runtime.SetFinalizer(s, stop) // want "one stops all"
	return s
}

// Case 22 (harm): the case that a select statement with a default takes then blocks.

func newChoosing(end chan bool) *object {
	o := new(object)
	runtime.SetFinalizer(o, func(o *object) { // want "one stops all"
		select {
		case <-end:
			freed <- o.name
		default:
		}
	})
	return o
}

// Case 23 (harmless): a constant is false, so that nothing is registered.

const guarded = false

func newUnguarded() *object {
	o := new(object)
	if guarded {
		runtime.SetFinalizer(o, func(o *object) { freed <- o.name })
	}
	return o
}

// Case 24 (harmless): a goroutine has the object for as long as it runs.

type served struct{ end chan bool }

func (s *served) serve() { <-s.end }

func (s *served) close() { freed <- "served" }

func newServed() *served {
	s := &served{end: make(chan bool)}
	go s.serve()
	runtime.SetFinalizer(s, (*served).close)
	return s
}
