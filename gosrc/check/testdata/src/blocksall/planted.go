// Package blocksall has ten planted cases: five that harm, five that look alike.
package blocksall

import (
	"log"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

type object struct {
	name string
	mu   sync.Mutex
	open bool
}

var (
	freed = make(chan string)
	table = map[string]*int{}
	guard sync.Mutex
	left  atomic.Int64
	done  sync.WaitGroup
)

// Case 1 (harm): it sends on a channel.

func newSender() *object {
	o := new(object)
	runtime.SetFinalizer(o, func(o *object) { freed <- o.name }) // want "one stops all"
	return o
}

// Case 2 (harmless): a goroutine of its own sends.

func newAsync() *object {
	o := new(object)
	runtime.SetFinalizer(o, func(o *object) {
		name := o.name
		go func() { freed <- name }()
	})
	return o
}

// Case 3 (harm): a helper waits for a mutex that others hold.

func newListed(name string) *object {
	o := &object{name: name}
	runtime.AddCleanup(o, forget, name) // want "one stops all"
	return o
}

func forget(name string) { remove(name) }

func remove(name string) {
	guard.Lock()
	defer guard.Unlock()
	delete(table, name)
}

// Case 4 (harmless): nobody else can hold the mutex of an object that is unreachable.

func newOwn() *object {
	o := new(object)
	runtime.SetFinalizer(o, (*object).close)
	return o
}

func (o *object) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = false
}

// Case 5 (harm): it sleeps.

func newSleeper() *object {
	o := new(object)
	runtime.AddCleanup(o, func(wait time.Duration) { time.Sleep(wait) }, time.Second) // want "one stops all"
	return o
}

// Case 6 (harmless): it sends if somebody waits, and else does not.

func newPolite() *object {
	o := new(object)
	runtime.SetFinalizer(o, func(o *object) {
		select {
		case freed <- o.name:
		default:
		}
	})
	return o
}

// Case 7 (harm): it waits for a group.

func newWaiter() *object {
	o := new(object)
	runtime.SetFinalizer(o, func(*object) { // want "one stops all"
		left.Add(-1)
		done.Wait() // forever, if one of them waits for this
	})
	return o
}

// Case 8 (harmless): it counts and logs.

func newCounter() *object {
	o := new(object)
	runtime.SetFinalizer(o, func(o *object) {
		left.Add(-1)
		log.Printf("%s was not closed", o.name)
	})
	return o
}

// Case 9 (harm): it ends the program.

func newFatal() *object {
	o := &object{open: true}
	runtime.SetFinalizer(o, func(o *object) { o.mustBeClosed() }) // want "one stops all"
	return o
}

func (o *object) mustBeClosed() {
	if o.open {
		log.Fatalf("%s was not closed", o.name)
	}
}

// Case 10 (harmless): closing a channel never blocks.

func newCloser() *object {
	o := new(object)
	runtime.AddCleanup(o, func(end chan struct{}) { close(end) }, make(chan struct{}))
	return o
}
