// Package watch shows, one GC cycle at a time, when objects are finalized and freed.
//
// The Go notebooks use it to illustrate claim S7: an object with a finalizer outlives
// the GC cycle that finds it unreachable, and one with a cleanup does not. An object is
// so large that the size of the heap shows whether it was freed. Nothing is timed.
//
// The functions that make objects drop them before they return. They must be compiled:
// an interpreter may keep the values of their variables alive.
package watch

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// MiB is the size of an object, in MiB.
const MiB = 16

// Object is a large object with a name. It may point to another.
type Object struct {
	Name   string
	next   *Object
	memory [MiB << 20]byte
}

var seen struct {
	sync.Mutex
	ran  []string // what ran since the last call of Collect, in order
	kept *Object
}

func note(what string) {
	seen.Lock()
	defer seen.Unlock()
	seen.ran = append(seen.ran, what)
}

// Plain makes an object and drops it.
//
//go:noinline
func Plain(name string) { use(&Object{Name: name}) }

// Finalized makes an object with a finalizer and drops it.
//
//go:noinline
func Finalized(name string) {
	runtime.SetFinalizer(&Object{Name: name}, func(o *Object) {
		note("the finalizer of " + o.Name)
	})
}

// Resurrected makes an object and drops it. Its finalizer makes it reachable again,
// until [Forget] is called.
//
//go:noinline
func Resurrected(name string) {
	runtime.SetFinalizer(&Object{Name: name}, func(o *Object) {
		note("the finalizer of " + o.Name)
		seen.Lock()
		defer seen.Unlock()
		seen.kept = o
	})
}

// Kept returns the name of the resurrected object, or "nothing" if there is none.
func Kept() string {
	seen.Lock()
	defer seen.Unlock()
	if seen.kept == nil {
		return "nothing"
	}
	return seen.kept.Name
}

// Forget drops the resurrected object.
func Forget() {
	seen.Lock()
	defer seen.Unlock()
	seen.kept = nil
}

// Chain makes an object for each name and drops them all. Each has a finalizer and
// points to the next.
//
//go:noinline
func Chain(names ...string) {
	var next *Object
	for i := len(names) - 1; i >= 0; i-- {
		next = &Object{Name: names[i], next: next}
		runtime.SetFinalizer(next, func(o *Object) { note(o.Name) })
	}
}

// small is a small object, so that many share a span. Its pointer keeps it out of the
// tiny allocator.
type small struct{ name *string }

// Row makes a small object for each name and drops them all. Each has a finalizer, and
// none points to another.
//
//go:noinline
func Row(names ...string) {
	for i := range names {
		runtime.SetFinalizer(&small{&names[i]}, func(s *small) { note(*s.name) })
	}
}

//go:noinline
func use(o *Object) { o.memory[0]++ }

// Collect runs one GC cycle and waits for the finalizers and cleanups that it queued. It
// returns what ran and the size of the heap.
func Collect() Cycle {
	clearStack(64)
	waiting := make([]chan struct{}, len(sentinels))
	for i, arm := range sentinels {
		waiting[i] = make(chan struct{})
		arm(waiting[i])
	}
	runtime.GC()
	for _, done := range waiting {
		select {
		case <-done:
		case <-time.After(time.Second):
		}
	}
	// Finalizers and cleanups that this cycle queued after the sentinels run soon after.
	time.Sleep(20 * time.Millisecond)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	seen.Lock()
	defer seen.Unlock()
	ran := seen.ran
	seen.ran = nil
	return Cycle{Heap: int(mem.HeapAlloc >> 20), Ran: ran}
}

// Heap returns the size of the heap, in MiB.
func Heap() int {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int(mem.HeapAlloc >> 20)
}

// Cycle describes the effect of a GC cycle.
type Cycle struct {
	Heap int      // size of the heap after the cycle, in MiB
	Ran  []string // finalizers and cleanups that the cycle queued, in the order in which they ran
}

func (c Cycle) String() string {
	ran := "nothing"
	if len(c.Ran) > 0 {
		ran = strings.Join(c.Ran, ", ")
	}
	return fmt.Sprintf("%3d MiB; ran: %s", c.Heap, ran)
}

// sentinels has a function for each mechanism of this Go release. It makes an object
// whose finalizer or cleanup closes done.
var sentinels = []func(done chan struct{}){
	func(done chan struct{}) {
		runtime.SetFinalizer(&sentinel{done}, func(s *sentinel) { close(s.done) })
	},
}

type sentinel struct{ done chan struct{} }

// clearStack overwrites the stack below the caller, which may still hold a pointer to a
// dropped object.
//
//go:noinline
func clearStack(depth int) byte {
	var block [64]byte
	if depth == 0 {
		return block[0]
	}
	return clearStack(depth-1) + block[depth%len(block)]
}
