package slab_test

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"gccost/slab"
)

// heap is an allocator that knows of every block whether it is allocated.
type heap struct {
	sync.Mutex
	live     map[uintptr]*[2]uint64 // what keeps the blocks for the test
	made     int
	misfreed int
	calls    int
	refuse   int // after so many more blocks an allocation fails; never if negative
}

func newHeap() *heap { return &heap{live: map[uintptr]*[2]uint64{}, refuse: -1} }

var errRefused = errors.New("no memory")

func (h *heap) Exchange(dead, fresh []uintptr) error {
	h.Lock()
	defer h.Unlock()
	h.calls++
	for i, block := range dead {
		if block == 0 {
			continue
		}
		if h.live[block] == nil {
			h.misfreed++
		}
		delete(h.live, block)
		dead[i] = 0
	}
	for i := range fresh {
		if fresh[i] != 0 {
			panic("a slot is not empty")
		}
		if h.refuse == 0 {
			return errRefused
		}
		h.refuse--
		block := new([2]uint64)
		fresh[i] = uintptr(unsafe.Pointer(block))
		h.live[fresh[i]] = block
		h.made++
	}
	return nil
}

func (h *heap) Free(block uintptr) error { return h.Exchange([]uintptr{block}, nil) }

func (h *heap) held() int {
	h.Lock()
	defer h.Unlock()
	return len(h.live)
}

func get(t testing.TB, p *slab.Pool) *slab.Handle {
	t.Helper()
	h, err := p.Get()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// drained collects until no more than so many blocks are held, or it is hopeless.
func drained(p *slab.Pool, h *heap, want int) int {
	for i := 0; i < 200 && h.held() > want; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond) // finalizers run beside the program
		if err := p.Flush(); err != nil {
			panic(err)
		}
	}
	return h.held()
}

// slack is how many slabs may stay after a drain: a handle's address may still
// stand on a stack, and those that are being handed out are in use.
const slack = 4

func TestForgottenHandlesAreFreed(t *testing.T) {
	for _, handles := range []int{1, 8, 64, 256} {
		h := newHeap()
		p := slab.New(h, slab.Config{Handles: handles})
		for i := 0; i < 10_000; i++ {
			get(t, p)
		}
		if left := drained(p, h, 0); left > slack*handles {
			t.Errorf("slabs of %d: %d of %d blocks are held after a drain", handles, left, h.made)
		}
		if h.misfreed != 0 {
			t.Errorf("slabs of %d: %d blocks were freed twice", handles, h.misfreed)
		}
	}
}

func TestAHandleInUseKeepsItsBlock(t *testing.T) {
	h := newHeap()
	p := slab.New(h, slab.Config{Handles: 8})
	var kept []*slab.Handle
	for i := 0; i < 8000; i++ {
		one := get(t, p)
		if err := one.Use(func(block unsafe.Pointer) { *(*uint64)(block) = uint64(i) }); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			kept = append(kept, one)
		}
	}
	// A survivor holds its slab and no other.
	if left, most := drained(p, h, len(kept)*8), (len(kept)+slack)*8; left > most {
		t.Errorf("%d survivors hold %d blocks, want at most %d", len(kept), left, most)
	}
	for i, one := range kept {
		err := one.Use(func(block unsafe.Pointer) {
			if got := *(*uint64)(block); got != uint64(100*i) {
				t.Errorf("the block of handle %d holds %d", 100*i, got)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestCloseFreesOnce(t *testing.T) {
	for _, keep := range []int{-1, 0, 1} {
		h := newHeap()
		p := slab.New(h, slab.Config{Handles: 4, Closed: keep})
		one := get(t, p)
		before := h.held()
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		if keep == 0 { // it waits for the next allocation
			if err := p.Flush(); err != nil {
				t.Error(err)
			}
		}
		if got := h.held(); got != before-1 {
			t.Errorf("Closed %d: %d blocks are held after a close, want %d", keep, got, before-1)
		}
		if err := one.Close(); !errors.Is(err, slab.ErrClosed) {
			t.Errorf("Closed %d: a second close returns %v", keep, err)
		}
		if err := one.Use(func(unsafe.Pointer) { t.Error("a closed handle was used") }); !errors.Is(err, slab.ErrClosed) {
			t.Errorf("Closed %d: the use of a closed handle returns %v", keep, err)
		}
		if h.misfreed != 0 {
			t.Errorf("Closed %d: a block was freed twice", keep)
		}
	}
}

// TestClosedBlocksAreFreedTogether: few calls of the allocator, and few blocks wait.
func TestClosedBlocksAreFreedTogether(t *testing.T) {
	h := newHeap()
	p := slab.New(h, slab.Config{Handles: 16})
	const n = 1600
	most := 0
	for i := 0; i < n; i++ {
		if err := get(t, p).Close(); err != nil {
			t.Fatal(err)
		}
		if held := h.held(); held > most {
			most = held
		}
	}
	// One slab is handed out, and closed blocks of two more may wait, in a lane. A
	// goroutine changes its lane only when its stack is moved.
	if most > slack*3*16 {
		t.Errorf("%d blocks were held at most", most)
	}
	if h.calls > n/16+2*slack {
		t.Errorf("the allocator was called %d times for %d handles in slabs of 16", h.calls, n)
	}
	var kept []*slab.Handle
	for i := 0; i < n; i++ {
		kept = append(kept, get(t, p))
	}
	calls := h.calls
	for _, one := range kept { // no allocation comes between
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if held := h.held(); held > slack*3*16 {
		t.Errorf("%d blocks are held when all are closed", held)
	}
	if h.calls > calls+n/32+2*slack {
		t.Errorf("the allocator was called %d times to free %d blocks", h.calls-calls, n)
	}
}

// TestADroppedPoolLosesNothing: what is left when nobody has the pool any more is
// freed, and its handles still can be used and closed.
func TestADroppedPoolLosesNothing(t *testing.T) {
	h := newHeap()
	kept := func() []*slab.Handle {
		p := slab.New(h, slab.Config{Handles: 8})
		var kept []*slab.Handle
		for i := 0; i < 803; i++ {
			one := get(t, p)
			switch i % 100 {
			case 50:
				kept = append(kept, one)
			case 51, 52:
				if err := one.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
		return kept
	}()
	settle := func(want int) int {
		for i := 0; i < 200 && h.held() > want; i++ {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
		}
		return h.held()
	}
	// A slab of 8 for each that is kept, less the two of each that were closed.
	if left := settle(8 * len(kept)); left > 8*len(kept)+slack*8 {
		t.Errorf("%d blocks are held for %d handles of a pool that was dropped", left, len(kept))
	}
	before := h.held()
	for _, one := range kept {
		if err := one.Use(func(block unsafe.Pointer) { *(*uint64)(block)++ }); err != nil {
			t.Error(err)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := h.held(); got > before-len(kept)+slack {
		t.Errorf("%d blocks are held when the last %d are closed, %d before", got, len(kept), before)
	}
	kept = nil
	if left := settle(0); left > slack*8 {
		t.Errorf("%d blocks of a pool that was dropped are held for good", left)
	}
	if h.misfreed != 0 {
		t.Errorf("%d blocks were freed twice", h.misfreed)
	}
}

func TestANilHandleIsClosed(t *testing.T) {
	var none *slab.Handle
	if err := none.Close(); !errors.Is(err, slab.ErrClosed) {
		t.Errorf("Close returns %v", err)
	}
	if err := none.Use(nil); !errors.Is(err, slab.ErrClosed) {
		t.Errorf("Use returns %v", err)
	}
}

func TestAnAllocationThatFailsIsAnErrorAndLosesNothing(t *testing.T) {
	h := newHeap()
	h.refuse = 100
	p := slab.New(h, slab.Config{Handles: 64})
	var kept []*slab.Handle
	for {
		one, err := p.Get()
		if err != nil {
			if !errors.Is(err, errRefused) {
				t.Errorf("the error is %v", err)
			}
			break
		}
		kept = append(kept, one)
	}
	if h.held() != 64 || len(kept) == 0 || len(kept) > 64 {
		t.Errorf("%d handles and %d blocks, want 64 blocks and no more handles", len(kept), h.held())
	}
	h.refuse = -1
	get(t, p) // it goes on once there is memory again
	runtime.KeepAlive(kept)
}

func TestTwoWhoCloseAHandleFreeItOnce(t *testing.T) {
	h := newHeap()
	p := slab.New(h, slab.Config{})
	for i := 0; i < 1000; i++ {
		one := get(t, p)
		var done sync.WaitGroup
		var closed [4]error
		for g := range closed {
			g := g
			done.Add(1)
			go func() {
				defer done.Done()
				closed[g] = one.Close()
			}()
		}
		done.Wait()
		freed := 0
		for _, err := range closed {
			if err == nil {
				freed++
			}
		}
		if freed != 1 {
			t.Fatalf("%d of four closed the handle", freed)
		}
	}
	if h.misfreed != 0 {
		t.Errorf("%d blocks were freed twice", h.misfreed)
	}
}

// TestManyGoroutines gets, closes, drops and flushes at once, while the collector runs.
func TestManyGoroutines(t *testing.T) {
	h := newHeap()
	p := slab.New(h, slab.Config{Handles: 16, Waiting: 160})
	var done sync.WaitGroup
	for g := 0; g < 8; g++ {
		chance := rand.New(rand.NewSource(int64(g)))
		done.Add(1)
		go func() {
			defer done.Done()
			var live []*slab.Handle
			for i := 0; i < 5000; i++ {
				one := get(t, p)
				switch chance.Intn(4) {
				case 0:
					live = append(live, one)
				case 1:
					if err := one.Close(); err != nil {
						t.Error(err)
					}
				}
				if len(live) > 50 {
					live = live[chance.Intn(50):]
				}
				switch chance.Intn(500) {
				case 0:
					runtime.GC()
				case 1:
					if err := p.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
			for _, one := range live {
				if err := one.Use(func(unsafe.Pointer) {}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	done.Wait()
	if left := drained(p, h, 0); left > (slack+8)*16 {
		t.Errorf("%d of %d blocks are held after a drain", left, h.made)
	}
	if h.misfreed != 0 {
		t.Errorf("%d blocks were freed twice", h.misfreed)
	}
}

// FuzzStates plays any order of get, use, close, drop, collect and flush against
// a model that says what must be held.
func FuzzStates(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3, 4, 5, 0, 1, 1, 2})
	f.Add([]byte(strings.Repeat("\x00\x03", 40) + "\x04\x05"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 300 {
			steps = steps[:300]
		}
		h := newHeap()
		p := slab.New(h, slab.Config{Handles: 4})
		var open, closed []*slab.Handle
		for i, step := range steps {
			pick := i * 7
			switch step % 6 {
			case 0:
				open = append(open, get(t, p))
			case 1:
				for _, one := range open {
					if err := one.Use(func(block unsafe.Pointer) { *(*uint64)(block)++ }); err != nil {
						t.Fatal(err)
					}
				}
				for _, one := range closed {
					if err := one.Use(nil); !errors.Is(err, slab.ErrClosed) {
						t.Fatal("a closed handle was used")
					}
				}
			case 2:
				if len(open) > 0 {
					pick %= len(open)
					if err := open[pick].Close(); err != nil {
						t.Fatal(err)
					}
					closed = append(closed, open[pick])
					open = append(open[:pick], open[pick+1:]...)
				}
			case 3:
				if len(open) > 0 {
					pick %= len(open)
					open = append(open[:pick], open[pick+1:]...)
				}
			case 4:
				runtime.GC()
			case 5:
				if err := p.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if h.held() < len(open) {
				t.Fatalf("%d handles are open, %d blocks are held", len(open), h.held())
			}
			if h.misfreed != 0 {
				t.Fatal("a block was freed twice")
			}
		}
		runtime.KeepAlive(closed)
	})
}

func TestWithTheGCOffNothingIsFreedAndNothingFails(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	h := newHeap()
	p := slab.New(h, slab.Config{CollectCost: -1})
	for i := 0; i < 1000; i++ {
		get(t, p)
	}
	if h.held() != h.made {
		t.Errorf("%d of %d blocks are held with the GC off", h.held(), h.made)
	}
}

// TestWhatWaitsIsBounded: beyond the bound the finalizer frees by itself.
func TestWhatWaitsIsBounded(t *testing.T) {
	h := newHeap()
	p := slab.New(h, slab.Config{Handles: 8, Waiting: 80})
	func() {
		var all []*slab.Handle
		for i := 0; i < 8000; i++ {
			all = append(all, get(t, p))
		}
		runtime.KeepAlive(all)
	}()
	most := 80 + slack*8
	for i := 0; i < 200 && h.held() > most; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	if h.held() > most {
		t.Errorf("%d dead blocks wait, want at most %d", h.held(), most)
	}
}

func TestTheCollectorSeesTheWeight(t *testing.T) {
	cycles := func(bytes int) uint32 {
		var before, after runtime.MemStats
		p := slab.New(newHeap(), slab.Config{BlockBytes: bytes})
		runtime.ReadMemStats(&before)
		for i := 0; i < 100_000; i++ {
			get(t, p)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	if without, with := cycles(0), cycles(1000); with <= without {
		t.Errorf("%d collections with the weight, %d without", with, without)
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	p := slab.New(newHeap(), slab.Config{})
	for i := 0; i < 10_000; i++ {
		get(t, p)
	}
	runtime.GC()
	for i := 0; i < 100 && runtime.NumGoroutine() > before; i++ {
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// broken is an allocator that cannot free.
type broken struct{ *heap }

func (b broken) Exchange(dead, fresh []uintptr) error {
	if len(dead) > 0 {
		return errors.New("cannot free")
	}
	return b.heap.Exchange(dead, fresh)
}

// TestAnAllocatorThatCannotFreeIsHeard: the finalizer has nobody to return an
// error to, so the program ends with it, in a process of its own here.
func TestAnAllocatorThatCannotFreeIsHeard(t *testing.T) {
	if os.Getenv("GCCOST_BROKEN") != "" {
		p := slab.New(broken{newHeap()}, slab.Config{Handles: 4, Waiting: 1})
		for i := 0; i < 1000; i++ {
			get(t, p)
		}
		for i := 0; i < 100; i++ {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
		}
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestAnAllocatorThatCannotFreeIsHeard$")
	child.Env = append(os.Environ(), "GCCOST_BROKEN=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "panic: cannot free") {
		t.Errorf("the program ended with %v: %s", err, out)
	}
}

// TestAProgramMayEndWithHandlesLive: no finalizer runs then, and none is waited for.
func TestAProgramMayEndWithHandlesLive(t *testing.T) {
	if os.Getenv("GCCOST_LIVE") != "" {
		p := slab.New(newHeap(), slab.Config{})
		live := []*slab.Handle{get(t, p), get(t, p)}
		fmt.Println("live", len(live))
		os.Exit(0)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestAProgramMayEndWithHandlesLive$")
	child.Env = append(os.Environ(), "GCCOST_LIVE=1")
	if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "live 2") {
		t.Errorf("the program ended with %v: %s", err, out)
	}
}
