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

// model is what must be so of a pool's objects.
type model struct {
	t      testing.TB
	heap   *heap
	pool   *slab.Pool[object]
	open   []modelled
	closed []modelled
}

type modelled struct {
	handle handle
	object object
}

func (m *model) add(h handle) { m.open = append(m.open, modelled{h, its(m.t, h)}) }

// gone checks that a closed handle says so.
func (m *model) gone(one modelled) {
	used := one.handle.Use(func(object) error { m.t.Fatal("a closed handle was used"); return nil })
	if !errors.Is(used, slab.ErrClosed) || !errors.Is(one.handle.Close(), slab.ErrClosed) {
		m.t.Fatal("a closed handle does not say so")
	}
}

// step does one thing, to one of the open handles if there is one.
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
		o := m.heap.next()
		m.add(m.pool.Adopt(o))
		if got := m.open[len(m.open)-1].object; got != o {
			m.t.Fatalf("%#x was adopted as %#x", o, got)
		}
	case 2:
		if got := its(m.t, m.open[at].handle); got != m.open[at].object {
			m.t.Fatalf("the object of a handle was %#x and is %#x", m.open[at].object, got)
		}
	case 3: // close
		if err := m.open[at].handle.Close(); err != nil {
			m.t.Fatal(err)
		}
		m.close(at)
	case 4: // close in a use, and in one in it
		one := m.open[at]
		lives := func(o object) {
			m.pool.Flush()
			if !m.heap.lives(o) {
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
		m.gone(one)
		m.close(at)
	case 5: // forget
		m.open[at] = m.open[len(m.open)-1]
		m.open[len(m.open)-1] = modelled{}
		m.open = m.open[:len(m.open)-1]
	case 6:
		runtime.GC()
	case 7:
		m.pool.Flush()
		for _, one := range m.closed {
			if !m.heap.dies(one.object) {
				m.t.Fatal("a closed object lives after Flush")
			}
		}
	case 8:
		for _, one := range m.closed {
			m.gone(one)
		}
	}
	for _, one := range m.open {
		if !m.heap.lives(one.object) {
			m.t.Fatal("the object of an open handle was freed")
		}
	}
	sound(m.t, m.heap)
}

func (m *model) close(at int) {
	m.closed = append(m.closed, m.open[at])
	m.open[at] = m.open[len(m.open)-1]
	m.open = m.open[:len(m.open)-1]
}

// play plays steps against the model, and then forgets everything.
func play(t testing.TB, steps []byte) {
	if len(steps) < 2 {
		return
	}
	h := newHeap()
	m := &model{t: t, heap: h, pool: h.pool()}
	m.pool.Handles = 1 + int(steps[0])%16
	m.pool.AtOnce = steps[1]%2 == 1
	for i, step := range steps[2:] {
		m.step(step, i*7+int(step)/9)
	}
	m.open, m.closed = nil, nil
	if left := settles(h, 0); left != 0 {
		t.Fatalf("%d of %d objects are held for good", left, h.made)
	}
	sound(t, h)
}

// FuzzStates plays any order of what can be done with a pool and its handles.
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

// TestStates plays some at random.
func TestStates(t *testing.T) {
	chance := rand.New(rand.NewSource(1))
	for i := 0; i < 50; i++ {
		steps := make([]byte, 2+chance.Intn(300))
		chance.Read(steps)
		play(t, steps)
	}
}

var operations = flag.Int("operations", 300_000, "how many operations the stress has")

// TestStress has eight goroutines do all that can be done, while the number of
// processors, the collector's pace and the pools change: every object is freed once.
func TestStress(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	h := newHeap()
	const goroutines = 8
	const each = 200_000 // operations of a goroutine with a pool
	chance := rand.New(rand.NewSource(time.Now().UnixNano()))
	done := 0
	for ; done < *operations; done += goroutines * each {
		p := h.pool()
		p.Handles = 1 << chance.Intn(9)
		p.AtOnce = chance.Intn(4) == 0
		p.Bytes = []int{-1, 0, 10, 1000}[chance.Intn(4)]
		shared := make(chan handle, 1000)
		var all sync.WaitGroup
		for g := 0; g < goroutines; g++ {
			own := rand.New(rand.NewSource(chance.Int63()))
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
		sound(t, h)
		if t.Failed() {
			return
		}
	}
	if left := settles(h, 0); left != 0 {
		t.Errorf("%d of %d objects are held after %d operations", left, h.made, done)
	}
	t.Logf("%d operations, %d objects, %d calls to free them", done, h.made, h.calls)
}

func stress(t *testing.T, h *heap, p *slab.Pool[object], chance *rand.Rand, n int, shared chan handle) {
	kept := make([]handle, 64)
	use := func(one handle) {
		_ = one.Use(func(o object) error {
			if chance.Intn(64) == 0 {
				runtime.Gosched()
			}
			if chance.Intn(16) == 0 && !h.lives(o) {
				t.Error("an object was freed while it was used")
			}
			return nil
		})
	}
	for i := 0; i < n; i++ {
		at := chance.Intn(len(kept))
		switch what := chance.Intn(64); {
		case what < 20:
			one, err := p.Get()
			if err != nil {
				t.Error(err)
			}
			kept[at] = one
		case what < 30:
			kept[at] = p.Adopt(h.next())
		case what < 40:
			use(kept[at])
		case what < 50:
			_ = kept[at].Close()
		case what < 56:
			select {
			case shared <- kept[at]: // two have it then
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
			if chance.Intn(100) == 0 {
				p.Flush()
			}
		default:
			kept[at] = handle{}
		}
	}
}
