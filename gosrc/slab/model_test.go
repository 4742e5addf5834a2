package slab_test

import (
	"errors"
	"flag"
	"math/rand"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/gccost/slab"
)

// model tracks the expected state of a pool's objects.
type model struct {
	t      testing.TB
	heap   *heap
	pool   *slab.Pool[object]
	open   []entry
	closed []entry
}

type entry struct {
	handle handle
	object object
}

func (m *model) add(h handle) { m.open = append(m.open, entry{h, objectOf(m.t, h)}) }

// checkClosed checks that a closed handle returns ErrClosed.
func (m *model) checkClosed(one entry) {
	used := one.handle.Use(func(object) error { m.t.Fatal("a closed handle was used"); return nil })
	if !errors.Is(used, slab.ErrClosed) || !errors.Is(one.handle.Close(), slab.ErrClosed) {
		m.t.Fatal("a closed handle does not return ErrClosed")
	}
}

// step performs an operation, if possible on an open handle.
func (m *model) step(what byte, at int) {
	if len(m.open) > 0 {
		at %= len(m.open)
	} else if what%9 > 1 && what%9 < 6 {
		return
	}
	switch what % 9 {
	case 0:
		m.add(get(m.t, m.pool))
	case 1:
		o := m.heap.alloc()
		m.add(m.pool.Adopt(o))
		if got := m.open[len(m.open)-1].object; got != o {
			m.t.Fatalf("the handle of adopted object %#x returns %#x", o, got)
		}
	case 2:
		if got := objectOf(m.t, m.open[at].handle); got != m.open[at].object {
			m.t.Fatalf("the object of a handle changed from %#x to %#x", m.open[at].object, got)
		}
	case 3: // close
		if err := m.open[at].handle.Close(); err != nil {
			m.t.Fatal(err)
		}
		m.close(at)
	case 4: // close within a use, or within a nested use
		one := m.open[at]
		lives := func(o object) {
			m.pool.Flush()
			if !m.heap.isLive(o) {
				m.t.Fatal("an object was freed while it was used")
			}
		}
		closes := func(o object) error {
			defer lives(o)
			return one.handle.Close()
		}
		err := one.handle.Use(func(o object) error {
			if at%2 == 0 {
				return closes(o)
			}
			defer lives(o)
			return one.handle.Use(closes)
		})
		if err != nil {
			m.t.Fatal(err)
		}
		m.checkClosed(one)
		m.close(at)
	case 5: // forget
		m.open[at] = m.open[len(m.open)-1]
		m.open[len(m.open)-1] = entry{}
		m.open = m.open[:len(m.open)-1]
	case 6:
		runtime.GC()
	case 7:
		m.pool.Flush()
		for _, one := range m.closed {
			if !m.heap.waitFreed(one.object) {
				m.t.Fatal("a closed object is live after Flush")
			}
		}
	case 8:
		for _, one := range m.closed {
			m.checkClosed(one)
		}
	}
	for _, one := range m.open {
		if !m.heap.isLive(one.object) {
			m.t.Fatal("the object of an open handle was freed")
		}
	}
	checkFrees(m.t, m.heap)
}

func (m *model) close(at int) {
	m.closed = append(m.closed, m.open[at])
	m.open[at] = m.open[len(m.open)-1]
	m.open = m.open[:len(m.open)-1]
}

// play runs steps against the model. Then it drops all handles and checks that all
// objects are freed.
func play(t testing.TB, steps []byte) {
	if len(steps) < 2 {
		return
	}
	h := newHeap()
	m := &model{t: t, heap: h, pool: h.pool()}
	m.pool.Handles = 1 + int(steps[0])%16
	m.pool.AtOnce = steps[1]%2 == 1
	m.pool.Serial = steps[1]%4 > 1
	for i, step := range steps[2:] {
		m.step(step, i*7+int(step)/9)
	}
	m.open, m.closed = nil, nil
	if left := collectUntil(h, 0); left != 0 {
		t.Fatalf("%d of %d objects are never freed", left, h.made)
	}
	checkFrees(t, h)
}

// FuzzStates runs arbitrary sequences of operations on a pool and its handles.
func FuzzStates(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte(strings.Repeat("\x00\x05", 40) + "\x06\x07"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 300 {
			steps = steps[:300]
		}
		play(t, steps)
	})
}

// TestStates runs random sequences of operations.
func TestStates(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for i := 0; i < 50; i++ {
		steps := make([]byte, 2+rng.Intn(300))
		rng.Read(steps)
		play(t, steps)
	}
}

var operations = flag.Int("operations", 300_000, "number of operations in the stress test")

// TestStress checks that every object is freed once. Eight goroutines perform all
// operations while GOMAXPROCS, GOGC and the pool's settings change.
func TestStress(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	h := newHeap()
	const goroutines = 8
	const each = 200_000 // operations per goroutine and pool
	rng := rand.New(rand.NewSource(time.Now().UnixNano()))
	done := 0
	for ; done < *operations; done += goroutines * each {
		p := h.pool()
		p.Handles = 1 << rng.Intn(9)
		p.AtOnce = rng.Intn(4) == 0
		p.Serial = rng.Intn(4) == 0
		p.Bytes = []int{-1, 0, 10, 1000}[rng.Intn(4)]
		shared := make(chan handle, 1000)
		var all sync.WaitGroup
		for g := 0; g < goroutines; g++ {
			own := rand.New(rand.NewSource(rng.Int63()))
			n := each
			if most := *operations / goroutines; n > most {
				n = most
			}
			all.Add(1)
			go func() {
				defer all.Done()
				stress(t, h, p, own, n, shared)
			}()
		}
		stop := make(chan struct{})
		var changes sync.WaitGroup
		changes.Add(1)
		go func() {
			defer changes.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				runtime.GOMAXPROCS(1 + i%4)
				debug.SetGCPercent([]int{5, 100, 400}[i%3])
				if i%10 == 0 {
					runtime.GC()
				}
			}
		}()
		all.Wait()
		close(stop)
		changes.Wait()
		close(shared)
		for range shared {
		}
		checkFrees(t, h)
		if t.Failed() {
			return
		}
	}
	if left := collectUntil(h, 0); left != 0 {
		t.Errorf("%d of %d objects are never freed after %d operations", left, h.made, done)
	}
	t.Logf("%d operations, %d objects, %d calls of Free", done, h.made, h.calls)
}

func stress(t *testing.T, h *heap, p *slab.Pool[object], rng *rand.Rand, n int, shared chan handle) {
	kept := make([]handle, 64)
	use := func(one handle) {
		_ = one.Use(func(o object) error {
			if rng.Intn(64) == 0 {
				runtime.Gosched()
			}
			if rng.Intn(16) == 0 && !h.isLive(o) {
				t.Error("an object was freed while it was used")
			}
			return nil
		})
	}
	for i := 0; i < n; i++ {
		at := rng.Intn(len(kept))
		switch what := rng.Intn(64); {
		case what < 20:
			one, err := p.Get()
			if err != nil {
				t.Error(err)
			}
			kept[at] = one
		case what < 30:
			kept[at] = p.Adopt(h.alloc())
		case what < 40:
			use(kept[at])
		case what < 50:
			_ = kept[at].Close()
		case what < 56:
			select {
			case shared <- kept[at]: // two goroutines may have it now
			default:
			}
		case what < 62:
			select {
			case one := <-shared:
				use(one)
				_ = one.Close()
			default:
			}
		case what == 62:
			if rng.Intn(100) == 0 {
				p.Flush()
			}
		default:
			kept[at] = handle{}
		}
	}
}
