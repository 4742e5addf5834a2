// Package cycles measures what a special record (of a finalizer, a cleanup or a weak
// pointer) costs after it was registered: to mark and to sweep in each GC cycle, in memory,
// and in the latency of operations that allocate while the collector works.
package cycles

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// handle is what a program wraps a C object in: a pointer, and a word of its own.
type handle struct {
	pointer *byte
	state   uintptr
}

// allocate makes n handles.
func allocate(n int) []*handle {
	handles := make([]*handle, n)
	for i := range handles {
		handles[i] = new(handle)
	}
	return handles
}

// backwards calls register for handles, the last one first. Their addresses ascend, and a
// record that belongs before all others of its list needs no walk.
func backwards(handles []*handle, register func(*handle)) {
	for i := len(handles) - 1; i >= 0; i-- {
		register(handles[i])
	}
}

// phases are the wall times of a GC cycle. Where GOMAXPROCS is 1 and the program does
// nothing else they are CPU times too.
type phases struct{ mark, sweep time.Duration }

// collect runs a GC cycle. Marking ends where the runtime says that the cycle ended;
// runtime.GC returns when all spans are swept.
func collect() phases {
	start := time.Now()
	runtime.GC()
	end := time.Now()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	mark := time.Duration(int64(stats.LastGC) - start.UnixNano())
	return phases{mark, end.Sub(start) - mark}
}

// least is the shortest time of each phase in so many cycles.
func least(cycles int) phases {
	found := collect()
	for ; cycles > 1; cycles-- {
		next := collect()
		if next.mark < found.mark {
			found.mark = next.mark
		}
		if next.sweep < found.sweep {
			found.sweep = next.sweep
		}
	}
	return found
}

// slope is that of the least-squares line through points; 0 if noise made it negative.
func slope(x, y []float64) float64 {
	var meanX, meanY, over, under float64
	for i := range x {
		meanX += x[i] / float64(len(x))
		meanY += y[i] / float64(len(x))
	}
	for i := range x {
		over += (x[i] - meanX) * (y[i] - meanY)
		under += (x[i] - meanX) * (x[i] - meanX)
	}
	if over < 0 {
		return 0
	}
	return over / under
}

// residentBytes is the resident set of this process, and whether the system tells it.
func residentBytes() (int, bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize(), err == nil
}
