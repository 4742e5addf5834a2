//go:build go1.24

package edges

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

type object struct {
	p *byte
	_ [7]uintptr
}

func TestASecondFinalizerEndsTheProgramUnlessTheFirstIsCleared(t *testing.T) {
	if how := os.Getenv("GCCOST_CHILD"); how != "" {
		o := new(object)
		runtime.SetFinalizer(o, func(*object) {})
		if how == "cleared" {
			runtime.SetFinalizer(o, nil)
		}
		runtime.SetFinalizer(o, func(*object) {})
		runtime.KeepAlive(o)
		return
	}
	for how, ends := range map[string]bool{"cleared": false, "set": true} {
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		command.Env = append(os.Environ(), "GCCOST_CHILD="+how)
		out, err := command.CombinedOutput()
		if ended := err != nil; ended != ends {
			t.Errorf("%s: the program ended: %v\n%.500s", how, ended, out)
		}
		if said := strings.Contains(string(out), "finalizer already set"); said != ends {
			t.Errorf("%s: it says so: %v\n%.500s", how, said, out)
		}
	}
}

type (
	// An early object has a pointer to itself in its first 128 KiB, a late one behind them.
	early struct {
		self *early
		_    [160 << 10]byte
	}
	late struct {
		_    [160 << 10]byte
		self *late
	}
)

//go:noinline
func makeEarly(ran *atomic.Int64) {
	o := new(early)
	o.self = o
	runtime.SetFinalizer(o, func(*early) { ran.Add(1) })
}

//go:noinline
func makeLate(ran, cleaned *atomic.Int64) {
	o := new(late)
	o.self = o
	runtime.SetFinalizer(o, func(*late) { ran.Add(1) })
	another := new(late)
	another.self = another
	runtime.AddCleanup(another, func(cleaned *atomic.Int64) { cleaned.Add(1) }, cleaned)
}

// clearStack overwrites the stack below its caller, which may hold an object.
//
//go:noinline
func clearStack(depth int) byte {
	var frame [512]byte
	if depth > 0 {
		frame[depth] = clearStack(depth - 1)
	}
	return frame[depth]
}

func collect() {
	clearStack(64)
	for i := 0; i < 5; i++ {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAPointerToItselfHarmsBehindTheFirst128KiB(t *testing.T) {
	var inFirst, behind, cleaned atomic.Int64
	for i := 0; i < 20; i++ {
		makeEarly(&inFirst)
		makeLate(&behind, &cleaned)
	}
	collect()
	if inFirst.Load() < 19 {
		t.Errorf("%d of 20 finalizers ran with the pointer in the first 128 KiB, want all", inFirst.Load())
	}
	if behind.Load() > 0 {
		t.Errorf("%d finalizers ran with the pointer behind 128 KiB, want none", behind.Load())
	}
	if cleaned.Load() < 19 {
		t.Errorf("%d of 20 cleanups ran, want all", cleaned.Load())
	}
}

type handle struct{ block unsafe.Pointer }

func TestALimitWithoutGOGCCollectsNothingIfOnlyCMemoryGrows(t *testing.T) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(50 << 20))
	const blocks = 100
	var before, after runtime.MemStats
	var freed atomic.Int64
	runtime.ReadMemStats(&before)
	if before.Sys > 40<<20 {
		t.Skipf("Go has %d MiB already", before.Sys>>20)
	}
	for i := 0; i < blocks; i++ { // 100 MiB of C memory, twice the limit
		h := &handle{newBlock(1 << 20)}
		runtime.SetFinalizer(h, func(h *handle) {
			freeBlock(h.block)
			freed.Add(1)
		})
	}
	runtime.ReadMemStats(&after)
	if n := after.NumGC - before.NumGC; n > 0 || freed.Load() > 0 {
		t.Errorf("%d collections freed %d blocks, want none", n, freed.Load())
	}
	if collect(); freed.Load() < blocks-1 {
		t.Errorf("%d of %d blocks are freed by collections, want all", freed.Load(), blocks)
	}
}
