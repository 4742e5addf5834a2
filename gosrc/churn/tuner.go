package churn

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// leastGOGC prevents back-to-back GC cycles when the live heap reaches the goal.
const leastGOGC = 25

// A Tuner keeps the heap goal constant: after each GC cycle, it sets GOGC according to
// the size of the live heap.
type Tuner struct {
	goal    uint64
	stopped int32
	before  int
	// Cycles is the number of GC cycles after which it has set GOGC.
	Cycles int64
}

// Tune starts a tuner with a heap goal in bytes.
func Tune(goal uint64) *Tuner {
	t := &Tuner{goal: goal}
	t.before = debug.SetGCPercent(t.gogc())
	t.arm()
	return t
}

// Stop ends the tuner and restores GOGC.
func (t *Tuner) Stop() {
	atomic.StoreInt32(&t.stopped, 1)
	debug.SetGCPercent(t.before)
}

// tick is an unreachable object, whose finalizer runs after each GC cycle. It contains a
// pointer to keep it out of the tiny allocator.
type tick struct{ tuner *Tuner }

func (t *Tuner) arm() {
	runtime.SetFinalizer(&tick{t}, func(tick *tick) {
		if atomic.LoadInt32(&t.stopped) == 1 {
			return
		}
		debug.SetGCPercent(t.gogc())
		atomic.AddInt64(&t.Cycles, 1)
		t.arm()
	})
}

// minimumHeap is the runtime's minimum heap goal at GOGC=100. The minimum is proportional
// to GOGC.
const minimumHeap = 4 << 20

func (t *Tuner) gogc() int {
	live, scanned := liveHeap()
	if live >= t.goal {
		return leastGOGC
	}
	gogc := (t.goal - live) * 100 / (live + scanned + 1)
	if most := t.goal * 100 / minimumHeap; gogc > most {
		gogc = most
	}
	if gogc < leastGOGC {
		gogc = leastGOGC
	}
	return int(gogc)
}

// liveHeap returns the bytes that the last GC cycle found live, and the bytes outside the
// heap that GOGC takes into account. Before Go 1.21, which has neither metric, it returns
// the bytes of all objects in the heap, and 0.
func liveHeap() (live, scanned uint64) {
	sample := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/scan/stack:bytes"},
		{Name: "/gc/scan/globals:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(sample)
	if sample[0].Value.Kind() == metrics.KindBad {
		return sample[3].Value.Uint64(), 0
	}
	return sample[0].Value.Uint64(), sample[1].Value.Uint64() + sample[2].Value.Uint64()
}
