// Package watch lets objects be watched on their way out, one GC cycle at a time.
//
// It serves the Go notebooks, which show what claim S7 counts: an object with a
// finalizer outlives the GC cycle that finds it unreachable, one with a cleanup
// does not. An object is so large that the size of the heap tells whether its
// memory is still there. Nothing here is timed.
//
// The functions that make objects drop them before they return. That they are
// compiled matters: an interpreter may keep what its variables held.
package watch

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// MiB is how large an object is, in MiB.
const MiB = 16

// Object is a large object with a name. It may point at another.
type Object struct {
	Name   string
	next   *Object
	memory [MiB << 20]byte
}

var seen struct {
	sync.Mutex
	ran  []string // what ran since the last look, in order
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

// Resurrected makes an object and drops it; its finalizer makes it reachable
// again, until [Forget].
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

// Kept names the object that was brought back, if there is one.
func Kept() string {
	seen.Lock()
	defer seen.Unlock()
	if seen.kept == nil {
		return "nothing"
	}
	return seen.kept.Name
}

// Forget drops the object that was brought back.
func Forget() {
	seen.Lock()
	defer seen.Unlock()
	seen.kept = nil
}

// Chain makes an object for each name, each with a finalizer and pointing at the
// next, and drops them all.
//
//go:noinline
func Chain(names ...string) {
	var next *Object
	for i := len(names) - 1; i >= 0; i-- {
		next = &Object{Name: names[i], next: next}
		runtime.SetFinalizer(next, func(o *Object) { note(o.Name) })
	}
}

// small is an object of which many share a span; its pointer keeps it out of the
// tiny allocator.
type small struct{ name *string }

// Row makes a small object for each name, one after the other, each with a
// finalizer and none pointing at another, and drops them all.
//
//go:noinline
func Row(names ...string) {
	for i := range names {
		runtime.SetFinalizer(&small{&names[i]}, func(s *small) { note(*s.name) })
	}
}

//go:noinline
func use(o *Object) { o.memory[0]++ }

// Collect runs one GC cycle, waits for the finalizers and cleanups that it
// queued, and tells what ran and how large the heap is then, in MiB.
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
	// What the same cycle queued behind the sentinels runs at once after them.
	time.Sleep(20 * time.Millisecond)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	seen.Lock()
	defer seen.Unlock()
	ran := seen.ran
	seen.ran = nil
	return Cycle{Heap: int(mem.HeapAlloc >> 20), Ran: ran}
}

// Heap is the size of the heap, in MiB.
func Heap() int {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int(mem.HeapAlloc >> 20)
}

// Cycle is what was seen of a GC cycle.
type Cycle struct {
	Heap int      // MiB, after it
	Ran  []string // what it queued, in the order in which it ran
}

func (c Cycle) String() string {
	ran := "nothing"
	if len(c.Ran) > 0 {
		ran = strings.Join(c.Ran, ", ")
	}
	return fmt.Sprintf("%3d MiB; ran: %s", c.Heap, ran)
}

// sentinels arm an object each, by every mechanism that this release has; its
// channel is closed when it is run.
var sentinels = []func(done chan struct{}){
	func(done chan struct{}) {
		runtime.SetFinalizer(&sentinel{done}, func(s *sentinel) { close(s.done) })
	},
}

type sentinel struct{ done chan struct{} }

// clearStack overwrites stack below the caller, where a pointer to a dropped
// object may still stand.
//
//go:noinline
func clearStack(depth int) byte {
	var block [64]byte
	if depth == 0 {
		return block[0]
	}
	return clearStack(depth-1) + block[depth%len(block)]
}
