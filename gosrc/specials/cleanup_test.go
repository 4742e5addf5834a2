//go:build go1.24

package specials

import (
	"fmt"
	"math/rand"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"gccost/meter"
)

// argument is passed to the cleanups by pointer, as a C block would be. AddCleanup stores
// the pointer in a separate heap object.
var argument byte

func nothing(*byte) {}

// cleaned holds, for each class, a function that adds a cleanup to each object.
var cleaned = []func(objects []unsafe.Pointer){
	add[[1]*byte], add[[2]*byte], add[[4]*byte], add[[6]*byte], add[[8]*byte],
	add[[16]*byte], add[[32]*byte], add[[64]*byte],
}

func add[T any](objects []unsafe.Pointer) {
	for _, object := range objects {
		runtime.AddCleanup((*T)(object), nothing, &argument)
	}
}

// stoppable adds a cleanup to each of the 8-byte objects and returns the cleanups.
func stoppable(objects []unsafe.Pointer) []runtime.Cleanup {
	cleanups := make([]runtime.Cleanup, len(objects))
	for i, object := range objects {
		cleanups[i] = runtime.AddCleanup((*[1]*byte)(object), nothing, &argument)
	}
	return cleanups
}

// BenchmarkAttachCleanup times only AddCleanup, span by span.
func BenchmarkAttachCleanup(b *testing.B) {
	overOrders(b, func(b *testing.B, c class, order Order) {
		clean := cleaned[indexOf(c)]
		spans := prepared(b, c, b.N, order)
		overSpans(b, spans, growing, noSetup, func(span, from, to int) { clean(spans[span][from:to]) })
		runtime.KeepAlive(spans)
	})
}

// moves are the numbers of objects that BenchmarkRefill allocates first. The parts of a span
// are 63 calls, so each moves an effect of an allocation by whole parts.
var moves = []int{0, 126, 378, 504}

// BenchmarkRefill is BenchmarkAttachCleanup in descending order of 8-byte objects, after it
// has allocated and dropped some other objects. Each call allocates an 8-byte box, and each
// measured span needs a new span of boxes once, always at the same place. Other objects of
// that size move the place, objects of 16 bytes do not.
func BenchmarkRefill(b *testing.B) {
	for _, c := range classes[:2] {
		for _, dummies := range moves {
			c, dummies := c, dummies
			b.Run(fmt.Sprintf("bytes=%d/dummies=%d", c.bytes, dummies), func(b *testing.B) {
				spans := prepared(b, classes[0], b.N, Descending)
				c.dummies(dummies)
				overSpans(b, spans, growing, noSetup, func(span, from, to int) { cleaned[0](spans[span][from:to]) })
				runtime.KeepAlive(spans)
			})
		}
	}
}

func indexOf(c class) int {
	for i := range classes {
		if classes[i].bytes == c.bytes {
			return i
		}
	}
	panic(fmt.Sprintf("no class has %d bytes", c.bytes))
}

// BenchmarkStop times only Cleanup.Stop, span by span. The cleanups are added in
// descending order of address, which needs no walk.
func BenchmarkStop(b *testing.B) {
	for _, order := range Orders {
		order := order
		b.Run(fmt.Sprintf("order=%s/bytes=8", order), func(b *testing.B) {
			spans := prepared(b, classes[0], b.N, Descending)
			cleanups := make([][]runtime.Cleanup, len(spans))
			draw := rand.New(rand.NewSource(seed))
			ready := func(i int) { cleanups[i] = arranged(spans[i], stoppable(spans[i]), order, draw) }
			overSpans(b, spans, shrinking, ready, func(span, from, to int) {
				for _, cleanup := range cleanups[span][from:to] {
					cleanup.Stop()
				}
			})
			runtime.KeepAlive(spans)
		})
	}
}

// arranged reorders a span's objects and their cleanups, which were in descending order.
func arranged(span []unsafe.Pointer, cleanups []runtime.Cleanup, order Order, draw *rand.Rand) []runtime.Cleanup {
	of := map[unsafe.Pointer]runtime.Cleanup{}
	for i, object := range span {
		of[object] = cleanups[i]
	}
	ascend(span)
	order.Arrange(span, draw)
	for i, object := range span {
		cleanups[i] = of[object]
	}
	return cleanups
}

// BenchmarkScatteredCleanup times AddCleanup on random objects among many live ones.
func BenchmarkScatteredCleanup(b *testing.B) {
	overLives(b, true, func(b *testing.B, s scattered) {
		s.register(each(cleaned[0]))
		s.measure(b, cleaned[0])
	})
}

// BenchmarkScatteredStop times Cleanup.Stop on random objects among many live ones.
func BenchmarkScatteredStop(b *testing.B) {
	overLives(b, false, func(b *testing.B, s scattered) {
		index := make(map[unsafe.Pointer]int, len(s.next))
		for i, object := range s.next {
			index[object] = i
		}
		cleanups := make([]runtime.Cleanup, len(s.next))
		s.register(func(object unsafe.Pointer) {
			cleanup := runtime.AddCleanup((*[1]*byte)(object), nothing, &argument)
			if i, measured := index[object]; measured {
				cleanups[i] = cleanup
			}
		})
		s.measure(b, func([]unsafe.Pointer) {
			for _, cleanup := range cleanups {
				cleanup.Stop()
			}
		})
	})
}

// BenchmarkLoopCleanup allocates an object and adds a cleanup that does nothing.
func BenchmarkLoopCleanup(b *testing.B) {
	for _, bench := range []struct {
		bytes int
		run   func(b *testing.B)
	}{
		{8, loopCleanup[[1]*byte]}, {16, loopCleanup[[2]*byte]},
		{48, loopCleanup[[6]*byte]}, {64, loopCleanup[[8]*byte]},
	} {
		b.Run(fmt.Sprintf("bytes=%d", bench.bytes), bench.run)
	}
}

func loopCleanup[T any](b *testing.B) {
	operation := func() unsafe.Pointer {
		handle := new(T)
		runtime.AddCleanup(handle, nothing, &argument)
		return unsafe.Pointer(handle)
	}
	reportStride(b, operation)
	m := meter.Start(b, nil)
	for i := 0; i < b.N; i++ {
		operation()
	}
	m.Stop()
}

// BenchmarkProgramCleanup runs the program with a cleanup on each handle.
func BenchmarkProgramCleanup(b *testing.B) {
	overPrograms(b, func(*testing.B) registering {
		return func(h *handle, _ bool) { runtime.AddCleanup(h, nothing, &argument) }
	})
}

// countEvery is the number of calls per count of the lists. Counting takes longer than
// the rest of the loop.
const countEvery = 4

// BenchmarkProgramLists runs the program with a cleanup on each handle and counts the
// records in the lists, which takes most of its time. It reports the means over every
// fourth call:
//
//	passed-records/op  records that the walk passes
//	held-records/op    records in the list
//
// A record counts until its cleanup runs.
func BenchmarkProgramLists(b *testing.B) {
	overPrograms(b, func(b *testing.B) registering {
		lists := NewLists()
		passed, held, calls, counted := 0, 0, 0, 0
		b.Cleanup(func() {
			if counted == 0 {
				return
			}
			b.ReportMetric(float64(passed)/float64(counted), "passed-records/op")
			b.ReportMetric(float64(held)/float64(counted), "held-records/op")
		})
		return func(h *handle, measured bool) {
			if calls++; measured && calls%countEvery == 0 {
				before, all := lists.Count(unsafe.Pointer(h))
				passed, held, counted = passed+before, held+all, counted+1
			}
			runtime.AddCleanup(h, Drop, lists.Add(unsafe.Pointer(h)))
		}
	})
}

// TestCleanupStride checks that the object which AddCleanup allocates for its argument
// shares a span with handles of the same size, and not with larger ones.
func TestCleanupStride(t *testing.T) {
	if stride := metrics(t, loopCleanup[[1]*byte])["stride-bytes"]; stride < 16 {
		t.Errorf("handles of 8 bytes are %v bytes apart, want 16 or more", stride)
	}
	if stride := metrics(t, loopCleanup[[6]*byte])["stride-bytes"]; stride != 48 {
		t.Errorf("handles of 48 bytes are %v bytes apart, want 48", stride)
	}
}

// TestArranged checks that each cleanup stays with its object.
func TestArranged(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	objects := classes[0].allocate(64)
	cleanups := make([]runtime.Cleanup, len(objects))
	Descending.Arrange(objects, nil)
	of := map[unsafe.Pointer]runtime.Cleanup{}
	for i, object := range objects {
		cleanups[i] = runtime.AddCleanup((*[1]*byte)(object), nothing, &argument)
		of[object] = cleanups[i]
	}
	got := arranged(objects, cleanups, Shuffled, rand.New(rand.NewSource(seed)))
	for i, object := range objects {
		if got[i] != of[object] {
			t.Fatalf("the cleanup at index %d belongs to another object", i)
		}
	}
	runtime.KeepAlive(objects)
}
