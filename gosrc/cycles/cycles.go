// Package cycles measures what a special record (of a finalizer, a cleanup or a weak
// pointer) costs after it was registered: to mark and to sweep in each GC cycle, in memory,
// and in the latency of operations that allocate while the collector works.
package cycles

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
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

// phases are the CPU times of a GC cycle.
type phases struct{ mark, sweep time.Duration }

func (p phases) all() time.Duration { return p.mark + p.sweep }

// collect runs a GC cycle. Marking ends where the runtime says that the cycle ended;
// runtime.GC returns when all spans are swept. These are wall times, which give the shares
// of the process's CPU time: on a busy machine that is steadier.
func collect() phases {
	cpu, start := cpuTime(), time.Now()
	runtime.GC()
	end := time.Now()
	cpu = cpuTime() - cpu
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	mark := float64(int64(stats.LastGC)-start.UnixNano()) / float64(end.Sub(start))
	marking := time.Duration(mark * float64(cpu))
	return phases{marking, cpu - marking}
}

// least is the one of so many cycles that takes the least time.
func least(cycles int) phases {
	found := collect()
	for ; cycles > 1; cycles-- {
		if next := collect(); next.all() < found.all() {
			found = next
		}
	}
	return found
}

// cpuTime is the user and system time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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
