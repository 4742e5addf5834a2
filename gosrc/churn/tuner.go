package churn

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// leastGOGC keeps a tuner from collecting all the time where the live heap fills
// its goal.
const leastGOGC = 25

// A Tuner holds the heap's goal at a size: after each GC cycle it sets GOGC to what
// the live heap leaves.
type Tuner struct {
	goal    uint64
	stopped int32
	before  int
	// Cycles is how many GC cycles it has answered.
	Cycles int64
}

// Tune starts a tuner towards a heap of so many bytes.
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

// tick is an object that nothing holds: each cycle finds it, and runs its finalizer.
// The pointer keeps it out of the tiny allocator.
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

// minimumHeap is the heap's least goal at GOGC=100: it grows with GOGC.
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

// liveHeap returns the bytes that the last GC cycle found live, and those outside
// of the heap that GOGC counts too; before Go 1.21, which tells neither, what is
// allocated now.
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
