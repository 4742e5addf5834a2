package remedies

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"gccost/meter"
	"gccost/parallel"
)

// An owner calls a C library that is not thread-safe: one goroutine, locked to its thread,
// makes all calls, and other goroutines send them to it.
type owner struct {
	calls chan call
	done  sync.Pool // of chan struct{}, one for each caller that waits
}

// A call is what [Exchange] needs. If done is nil, the caller does not wait, and block is the
// only block to free.
type call struct {
	dead, fresh []uintptr
	block       uintptr
	done        chan struct{}
}

func newOwner() caller {
	o := &owner{calls: make(chan call, 1024)}
	o.done.New = func() interface{} { return make(chan struct{}, 1) }
	go func() {
		runtime.LockOSThread()
		var one [1]uintptr
		for c := range o.calls {
			if c.done == nil {
				one[0] = c.block
				Exchange(one[:], nil, true)
				continue
			}
			Exchange(c.dead, c.fresh, true)
			c.done <- struct{}{}
		}
	}()
	return o
}

// exchange has the owner call [Exchange], and waits for it.
func (o *owner) exchange(dead, fresh []uintptr) {
	done := o.done.Get().(chan struct{})
	o.calls <- call{dead: dead, fresh: fresh, done: done}
	<-done
	o.done.Put(done)
}

// allocate has the owner make a block.
func (o *owner) allocate() uintptr {
	fresh := make([]uintptr, 1)
	o.exchange(nil, fresh)
	return fresh[0]
}

// free has the owner free a block, without waiting.
func (o *owner) free(block uintptr) { o.calls <- call{block: block} }

// turns call the C library on the goroutines' own threads, one after the other.
type turns struct{ mu sync.Mutex }

func newTurns() caller { return new(turns) }

func (t *turns) exchange(dead, fresh []uintptr) {
	t.mu.Lock()
	Exchange(dead, fresh, true)
	t.mu.Unlock()
}

func (t *turns) allocate() uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Allocate()
}

func (t *turns) free(block uintptr) {
	t.mu.Lock()
	Free(block)
	t.mu.Unlock()
}

// A caller makes the calls into a C library that allows one at a time.
type caller interface {
	exchange(dead, fresh []uintptr)
	allocate() uintptr
	free(block uintptr)
}

// poolOf returns a pool whose calls c makes.
func poolOf(c caller) *pool {
	return &pool{
		Free: func(dead []uintptr) error { c.exchange(dead, nil); return nil },
		Make: func(fresh []uintptr) error { c.exchange(nil, fresh); return nil },
	}
}

// A shape returns an operation, which makes and frees a block or drops its handle, and a
// function that counts blocks for the meter.
type shape func(c caller) (operation func(), count func() meter.Blocks)

var shapes = map[string]shape{"manual": manually, "finalizer": finalized, "adopted": adopted, "slab": slabbed}

func manually(c caller) (func(), func() meter.Blocks) {
	return func() { c.free(c.allocate()) }, Count
}

func finalized(c caller) (func(), func() meter.Blocks) {
	return func() {
		h := &Finalized{block: c.allocate()}
		runtime.SetFinalizer(h, func(h *Finalized) { c.free(h.block) })
	}, Count
}

func adopted(c caller) (func(), func() meter.Blocks) {
	p := poolOf(c)
	return func() { p.Adopt(c.allocate()) }, flushed(p)
}

func slabbed(c caller) (func(), func() meter.Blocks) {
	p := poolOf(c)
	return func() {
		if _, err := p.Get(); err != nil {
			panic(err)
		}
	}, flushed(p)
}

// among divides the work of a shape among goroutines.
func among(b *testing.B, of shape, newCaller func() caller) {
	for goroutines := 1; goroutines <= 16; goroutines *= 4 {
		goroutines := goroutines
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			settle()
			operation, count := of(newCaller())
			m := meter.Start(b, count)
			parallel.Share(b.N, goroutines, operation)
			m.Stop()
		})
	}
}

func BenchmarkTurnsManual(b *testing.B)    { among(b, manually, newTurns) }
func BenchmarkTurnsFinalizer(b *testing.B) { among(b, finalized, newTurns) }
func BenchmarkTurnsAdopted(b *testing.B)   { among(b, adopted, newTurns) }
func BenchmarkTurnsSlab(b *testing.B)      { among(b, slabbed, newTurns) }

// In these one thread makes all calls. The finalizer's goroutine, and a manual free, do not
// wait for it.

func BenchmarkOwnedManual(b *testing.B)    { among(b, manually, newOwner) }
func BenchmarkOwnedFinalizer(b *testing.B) { among(b, finalized, newOwner) }
func BenchmarkOwnedAdopted(b *testing.B)   { among(b, adopted, newOwner) }
func BenchmarkOwnedSlab(b *testing.B)      { among(b, slabbed, newOwner) }

// TestShapes checks that each shape frees every block once.
func TestShapes(t *testing.T) {
	const n = 10_000
	for name, of := range shapes {
		for _, c := range []caller{newTurns(), newOwner()} {
			before := Count()
			operation, count := of(c)
			parallel.Share(n, 4, operation)
			now := count()
			for i := 0; i < 100 && now.Allocated-now.Freed > before.Allocated-before.Freed; i++ {
				runtime.GC()
				time.Sleep(time.Millisecond)
				now = count()
			}
			if got := now.Allocated - before.Allocated; got < n {
				t.Errorf("%s, %T: %d C blocks in %d operations", name, c, got, n)
			}
			if now.Misfreed != 0 {
				t.Errorf("%s, %T: %d blocks were freed twice", name, c, now.Misfreed)
			}
			if got := now.Allocated - now.Freed; got < 0 || got > tolerance {
				t.Errorf("%s, %T: %d blocks are not freed after the last collection", name, c, got)
			}
		}
	}
}
