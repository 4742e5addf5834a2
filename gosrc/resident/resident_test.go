//go:build go1.24

package resident

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
	"unsafe"

	"example.org/gccost/slab"
)

const goroutines = 4

type wrapper struct {
	block unsafe.Pointer
	_     [56]byte
}

func (w *wrapper) free() { freeOne(w.block) }

var pool = slab.Pool[unsafe.Pointer]{Bytes: size, Free: free}

// ways make a block, and return what refers to it, and what frees it if nothing else does.
var ways = []struct {
	name string
	open func() (kept any, end func())
}{
	{"manual", func() (any, func()) {
		p := newBlock()
		return nil, func() { freeOne(p) }
	}},
	{"finalizer", func() (any, func()) {
		w := &wrapper{block: newBlock()}
		runtime.SetFinalizer(w, (*wrapper).free)
		return w, nil
	}},
	{"cleanup", func() (any, func()) {
		w := &wrapper{block: newBlock()}
		runtime.AddCleanup(w, freeOne, w.block)
		return w, nil
	}},
	{"slabs", func() (any, func()) { return pool.Adopt(newBlock()), nil }},
}

type seen struct{ live, freed, later, trimmed, trimSeconds float64 }

// drop makes n blocks, drops all, and looks at the memory once all are freed.
func drop(tb testing.TB, n int, open func() (any, func())) seen {
	freed.Store(0)
	kept, ends := make([][]any, goroutines), make([][]func(), goroutines)
	var all sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		g := g
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; i < n/goroutines; i++ {
				one, end := open()
				kept[g], ends[g] = append(kept[g], one), append(ends[g], end)
			}
		}()
	}
	all.Wait()
	var s seen
	s.live = rss()
	runtime.KeepAlive(kept)
	kept = nil
	for _, each := range ends {
		for _, end := range each {
			if end != nil {
				end()
			}
		}
	}
	ends = nil
	made := int64(n / goroutines * goroutines)
	for i := 0; freed.Load() < made; i++ {
		if i > 1000 {
			tb.Fatalf("%d of %d blocks were freed", freed.Load(), made)
		}
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
		pool.Flush()
	}
	debug.FreeOSMemory() // of Go
	s.freed = rss()
	time.Sleep(time.Second)
	s.later = rss()
	start := time.Now()
	if !trim() {
		tb.Skip("the C library has no malloc_trim")
	}
	s.trimSeconds = time.Since(start).Seconds()
	s.trimmed = rss()
	return s
}

func BenchmarkResident(b *testing.B) {
	for _, way := range ways {
		b.Run("way="+way.name, func(b *testing.B) {
			if b.N == 1 { // package testing begins with a run of one operation
				return
			}
			s := drop(b, b.N, way.open)
			b.ReportMetric(s.live/(1<<20), "live-MiB")
			b.ReportMetric(s.freed/(1<<20), "freed-MiB")
			b.ReportMetric(s.later/(1<<20), "second-later-MiB")
			b.ReportMetric(s.trimmed/(1<<20), "trimmed-MiB")
			b.ReportMetric(s.trimSeconds*1000, "trim-ms")
		})
	}
}

func TestTrimReturnsWhatFreeKeeps(t *testing.T) {
	if rss() == 0 {
		t.Skip("the resident memory is not known")
	}
	for _, way := range ways {
		s := drop(t, 40_000, way.open)
		if s.live < 40_000*size {
			t.Errorf("%s: %.0f bytes are resident with all live", way.name, s.live)
		}
		if s.trimmed > s.freed {
			t.Errorf("%s: %.0f bytes before malloc_trim, %.0f after", way.name, s.freed, s.trimmed)
		}
	}
}
