package harm

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"
)

const many = 1000

// before reports whether the running release is older than Go 1.minor.
func before(minor string) bool {
	for _, each := range []string{"go1.24", "go1.25"} {
		if strings.HasPrefix(runtime.Version(), each) {
			return each < "go1."+minor
		}
	}
	return false
}

// run counts how often `register`, called many times, lets its finalizers or cleanups run.
func run(register func(ran *atomic.Int64)) int64 {
	ran := new(atomic.Int64)
	for range many {
		register(ran)
	}
	Collect()
	return ran.Load()
}

// nearly allows for objects that a stale word on a stack still holds.
func nearly(t *testing.T, got, want int64) {
	t.Helper()
	if got > want || got < want-20 {
		t.Errorf("%d ran, want about %d", got, want)
	}
}

func exactly(t *testing.T, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%d ran, want %d", got, want)
	}
}

// --- 1: use after free ----------------------------------------------------

func registered() *handle {
	h := newHandle()
	runtime.SetFinalizer(h, (*handle).free)
	return h
}

func TestAnObjectIsFreedDuringTheCallThatUsesItsPointer(t *testing.T) {
	if frees := registered().useDead(); frees != 1 {
		t.Errorf("freed %d times during the call, want 1", frees)
	}
	if frees := registered().useAlive(); frees != 0 {
		t.Errorf("freed %d times during a call with KeepAlive, want 0", frees)
	}
}

// --- 2: never runs --------------------------------------------------------

type object struct {
	p    *int
	next *object
}

func newObject() *object { return &object{p: new(int)} }

func TestAFinalizerThatHoldsItsObjectNeverRuns(t *testing.T) {
	exactly(t, run(func(ran *atomic.Int64) {
		o := newObject()
		runtime.SetFinalizer(o, func(*object) { ran.Add(1); runtime.KeepAlive(o) })
	}), 0)
	nearly(t, run(func(ran *atomic.Int64) {
		runtime.SetFinalizer(newObject(), func(o *object) { ran.Add(1); runtime.KeepAlive(o) })
	}), many)
}

func TestACleanupThatHoldsItsObjectNeverRuns(t *testing.T) {
	panicked := false
	ran := run(func(ran *atomic.Int64) {
		defer func() { panicked = recover() != nil }()
		o := newObject()
		runtime.AddCleanup(o, func(int) { ran.Add(1); runtime.KeepAlive(o) }, 0)
	})
	exactly(t, ran, 0)
	if panicked == before("26") {
		t.Errorf("%s: panicked: %v", runtime.Version(), panicked)
	}
	exactly(t, run(func(ran *atomic.Int64) {
		o := newObject()
		runtime.AddCleanup(o, func(held *object) { ran.Add(1) }, &object{next: o})
	}), 0)
}

func TestAFinalizerInACycleNeverRunsAndACleanupDoes(t *testing.T) {
	ring := func() *object {
		o := newObject()
		o.next = &object{next: o}
		return o
	}
	exactly(t, run(func(ran *atomic.Int64) {
		runtime.SetFinalizer(ring(), func(*object) { ran.Add(1) })
	}), 0)
	nearly(t, run(func(ran *atomic.Int64) {
		runtime.AddCleanup(ring(), func(int) { ran.Add(1) }, 0)
	}), many)
	nearly(t, run(func(ran *atomic.Int64) { // a pointer to itself is no cycle
		o := newObject()
		o.next = o
		runtime.SetFinalizer(o, func(*object) { ran.Add(1) })
	}), many)
}

var kept []*byte

func TestATinyObjectWaitsForItsBlock(t *testing.T) {
	nearlyNone := run(func(ran *atomic.Int64) {
		o := new(uint64)
		kept = append(kept, new(byte)) // in the same block, for the most part
		runtime.SetFinalizer(o, func(*uint64) { ran.Add(1) })
	})
	if nearlyNone > many/10 {
		t.Errorf("%d ran of %d whose blocks hold a byte that stays", nearlyNone, many)
	}
	nearly(t, run(func(ran *atomic.Int64) {
		kept = append(kept, new(byte))
		runtime.SetFinalizer(newObject(), func(*object) { ran.Add(1) })
	}), many)
	runtime.KeepAlive(kept)
}

func TestAPointerToADeclaredTypeIsNone(t *testing.T) {
	var live []*opaque
	nearlyNone := run(func(ran *atomic.Int64) {
		o := newOpaque()
		live = append(live, newOpaque()) // in the same block, for the most part
		runtime.SetFinalizer(o, func(*opaque) { ran.Add(1) })
	})
	if nearlyNone > many/10 {
		t.Errorf("%d ran of %d whose blocks hold another one that stays", nearlyNone, many)
	}
	runtime.KeepAlive(live)
}

// A closure would hold a block of its own next to the object, which AddCleanup of Go 1.26 and later
// can take for the object.
var cleaned atomic.Int64

func TestATinyObjectIsHeldByItsCleanupsArgument(t *testing.T) {
	cleaned.Store(0)
	for range many {
		runtime.AddCleanup(new(uint64), func(int) { cleaned.Add(1) }, 7)
	}
	Collect()
	if before("26") {
		exactly(t, cleaned.Load(), 0)
	} else {
		nearly(t, cleaned.Load(), many)
	}
}

// --- 3: Close still pays --------------------------------------------------

func TestAFinalizerThatCloseLeavesRunsAndFreesAgain(t *testing.T) {
	h := registered()
	p := h.p
	h.free()
	h = nil
	Collect()
	if n := frees(p); n != 2 {
		t.Errorf("freed %d times, want 2", n)
	}
	h = registered()
	p = h.p
	runtime.SetFinalizer(h, nil)
	h.free()
	h = nil
	Collect()
	if n := frees(p); n != 1 {
		t.Errorf("freed %d times after clearing the finalizer, want 1", n)
	}
}

func TestACleanupThatCloseLeavesFreesAgain(t *testing.T) {
	h := newHandle()
	p := h.p
	runtime.AddCleanup(h, freeThing, p)
	h.free()
	h.p = nil // changes nothing
	Collect()
	if n := frees(p); n != 2 {
		t.Errorf("freed %d times, want 2", n)
	}
}

// --- 4: expensive size ----------------------------------------------------

// A span of small objects has 8 KiB, and the runtime walks its list to register.
func TestASpanHasEightTimesAsManyHandlesOf8BytesAsOf64(t *testing.T) {
	small := fullest(func() unsafe.Pointer { return unsafe.Pointer(&struct{ p *int }{new(int)}) })
	large := fullest(func() unsafe.Pointer {
		return unsafe.Pointer(&struct {
			p *int
			_ [56]byte
		}{p: new(int)})
	})
	if small < 6*large {
		t.Errorf("a span has %d handles of 8 bytes and %d of 64", small, large)
	}
}

func fullest(one func() unsafe.Pointer) int {
	const span = 8 << 10
	var all []unsafe.Pointer
	counts := map[uintptr]int{}
	most := 0
	for range 20_000 {
		each := one()
		all = append(all, each)
		at := uintptr(each) / span
		counts[at]++
		most = max(most, counts[at])
	}
	runtime.KeepAlive(all)
	return most
}

// --- 5: one stops all -----------------------------------------------------

func TestAFinalizerThatBlocksStopsTheOthers(t *testing.T) {
	begun, end, other := make(chan bool, 1), make(chan bool), new(atomic.Int64)
	func() {
		for range 10 {
			o := newObject()
			runtime.SetFinalizer(o, func(*object) { tell(begun); <-end })
		}
	}()
	for blocked := false; !blocked; {
		runtime.GC()
		select {
		case <-begun:
			blocked = true
		default:
			runtime.Gosched()
		}
	}
	for range many {
		runtime.SetFinalizer(newObject(), func(*object) { other.Add(1) })
	}
	for range 5 {
		runtime.GC()
	}
	exactly(t, other.Load(), 0)
	close(end)
	Collect()
	nearly(t, other.Load(), many)
}

// --- 6: not the object ----------------------------------------------------

var global = new(struct {
	object
	_ [64]byte
})

func TestACleanupOfAPackageVariableNeverRuns(t *testing.T) {
	ran := new(atomic.Int64)
	runtime.AddCleanup(global, func(int) { ran.Add(1) }, 0)
	Collect()
	exactly(t, ran.Load(), 0)
}

func TestTheRuntimeEndsAProgramThatRegistersOnAFieldOrTwiceOrOfAnotherType(t *testing.T) {
	for _, each := range []struct{ what, says string }{
		{"field", "pointer not at beginning of allocated block"},
		{"twice", "finalizer already set"},
		{"variable", "cannot pass **harm.object to finalizer func(*harm.object)"},
	} {
		command := exec.Command(os.Args[0], "-test.run", "^TestMain$")
		command.Env = append(os.Environ(), "GCCOST_HARM="+each.what)
		said, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(said), each.says) {
			t.Errorf("%s: %v, without %q", each.what, err, each.says)
		}
	}
}

func TestTheRuntimeAcceptsATinyElementWithoutAPointer(t *testing.T) {
	ran := new(atomic.Int64)
	all := make([]int32, 1024)
	runtime.SetFinalizer(&all[1], func(*int32) { ran.Add(1) })
	Collect()
	exactly(t, ran.Load(), 0) // another element holds it
	runtime.KeepAlive(&all[2])
}

func TestMain(m *testing.M) {
	o := newObject()
	switch os.Getenv("GCCOST_HARM") {
	case "field":
		runtime.SetFinalizer(&o.next, func(**object) {})
	case "twice":
		runtime.SetFinalizer(o, func(*object) {})
		runtime.SetFinalizer(o, func(*object) {})
	case "variable":
		runtime.SetFinalizer(&o, func(*object) {})
	}
	os.Exit(m.Run())
}
