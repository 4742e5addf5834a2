//go:build go1.21

package slab_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/cgo"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/gccost/slab"
)

// inChild runs this test anew in a process with a setting, and returns its output and whether
// it succeeded. In that process it returns child.
func inChild(t *testing.T, setting string) (out string, passed, child bool) {
	if os.Getenv("SLAB_CHILD") != "" {
		return "", false, true
	}
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("cannot start a process")
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), "SLAB_CHILD=1", "GODEBUG="+setting)
	text, err := c.CombinedOutput()
	return string(text), err == nil, false
}

// A connection has a pool of statements, whose Free needs the connection's lock.
type connection struct {
	mu         sync.Mutex
	freed      int
	statements slab.Pool[uintptr]
}

// A session has a pool, too, but its Free does not lead to the pool.
type session struct {
	shared     *counter
	statements slab.Pool[uintptr]
}

type counter struct {
	mu    sync.Mutex
	freed int
}

func (c *counter) free(dead []uintptr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freed += len(dead)
	return nil
}

// use adopts objects in a few pools, one after the other, and collects.
func use(open func() *slab.Pool[uintptr]) {
	for i := 0; i < 3; i++ {
		p := open()
		for j := uintptr(0); j < 100; j++ {
			_ = p.Adopt(4096 + 16*j).Close()
			p.Adopt(9096 + 16*j)
		}
		runtime.GC()
	}
	runtime.GC()
}

// TestCheckFinalizersReportsAPoolThatFreeLeadsTo checks what the README says of
// GODEBUG=checkfinalizers=1: it ends a correct program.
func TestCheckFinalizersReportsAPoolThatFreeLeadsTo(t *testing.T) {
	out, passed, child := inChild(t, "checkfinalizers=1")
	if child {
		use(func() *slab.Pool[uintptr] {
			c := new(connection)
			c.statements.Free = func(dead []uintptr) error {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.freed += len(dead)
				return nil
			}
			return &c.statements
		})
		return
	}
	if !strings.Contains(out, "checkfinalizers: ") && passed {
		t.Skip("this Go release has no such setting")
	}
	if passed || !strings.Contains(out, "slab.opening") ||
		!strings.Contains(out, "is reachable from finalizer") {
		t.Errorf("passed: %v; it no longer reports an open slab: change the README\n%.2000s", passed, out)
	}
}

// TestCheckFinalizersReportsNoOtherPool checks the way out that the README names.
func TestCheckFinalizersReportsNoOtherPool(t *testing.T) {
	out, passed, child := inChild(t, "checkfinalizers=1")
	if child {
		use(func() *slab.Pool[uintptr] {
			s := &session{shared: new(counter)}
			s.statements.Free = s.shared.free
			return &s.statements
		})
		return
	}
	if !passed {
		t.Errorf("%.2000s", out)
	}
}

// kept is what C uses until Free: Go memory, pinned, and a handle that C passes back to Go.
type kept struct {
	object uintptr // the C object
	buffer []byte
	pin    runtime.Pinner
	back   cgo.Handle
}

// TestGoMemoryIsKeptUntilFree checks the README's way to keep Go memory for a C object: a pool
// of handles of package cgo.
func TestGoMemoryIsKeptUntilFree(t *testing.T) {
	var freed, wrong atomic.Int64
	streams := slab.Pool[cgo.Handle]{Free: func(dead []cgo.Handle) error {
		for _, h := range dead {
			k := h.Value().(*kept)
			if k.object == 0 || k.buffer[0] != byte(k.object) || k.back.Value() != k.object {
				wrong.Add(1)
			}
			k.pin.Unpin()
			k.back.Delete()
			h.Delete()
			freed.Add(1)
		}
		return nil
	}}
	const n = 2000
	for i := uintptr(1); i <= n; i++ {
		k := &kept{object: i, buffer: make([]byte, 100), back: cgo.NewHandle(i)}
		k.buffer[0] = byte(i)
		k.pin.Pin(&k.buffer[0])
		h := streams.Adopt(cgo.NewHandle(k))
		if i%3 == 0 {
			_ = h.Close()
		}
		if i%500 == 0 {
			runtime.GC()
		}
	}
	all := func() bool {
		streams.Flush()
		runtime.GC()
		return freed.Load() == n
	}
	if !eventually(all) || wrong.Load() > 0 {
		t.Errorf("%d of %d were freed, %d without their memory", freed.Load(), n, wrong.Load())
	}
}

// TestBlockedTimerFreesNothingByTime checks what "What can go wrong" says of a Free that blocks
// in the pool's timer.
func TestBlockedTimerFreesNothingByTime(t *testing.T) {
	h := newHeap()
	blocked, began := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	p := &slab.Pool[object]{Free: func(dead []object) error {
		if calls.Add(1) == 1 {
			close(began)
			<-blocked
		}
		return h.free(dead)
	}}
	adopt := func(n int) {
		for i := 0; i < n; i++ {
			if err := p.Adopt(h.alloc()).Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	adopt(1) // the timer frees it, and blocks
	<-began
	adopt(50)
	time.Sleep(200 * time.Millisecond) // ten times the timer's delay
	if held := h.held(); held != 51 {
		t.Errorf("%d objects are held, not all 51", held)
	}
	if waiting := p.Stats().Waiting; waiting != 50 {
		t.Errorf("Stats counts %d that wait, not 50", waiting)
	}
	p.Flush() // from a goroutine that does not block
	if held := h.held(); held != 1 {
		t.Errorf("%d objects are held after Flush", held)
	}
	close(blocked)
	if !eventually(func() bool { return h.held() == 0 }) {
		t.Error("an object is never freed")
	}
	checkFrees(t, h)
}

// TestBlockedFinalizerStopsForgottenObjects checks that another package's finalizer that blocks,
// or calls Goexit, stops forgotten objects, also after Flush, and no closed ones.
func TestBlockedFinalizerStopsForgottenObjects(t *testing.T) {
	if out, passed, child := inChild(t, ""); !child {
		if !passed {
			t.Errorf("%.2000s", out)
		}
		return
	}
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) { runtime.Goexit() })
	runtime.GC()
	time.Sleep(50 * time.Millisecond)
	h := newHeap()
	p := h.pool()
	for i := 0; i < 1000; i++ {
		one := p.Adopt(h.alloc())
		if i%2 == 0 {
			_ = one.Close()
		}
	}
	for i := 0; i < 5; i++ {
		p.Flush()
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	p.Flush()
	if held := h.held(); held != 500 {
		t.Errorf("%d objects are held, not the 500 that were forgotten", held)
	}
}
