// Package cycles measures what a special record (of a finalizer, a cleanup or a weak
// pointer) costs once it is registered: marking and sweeping time in each GC cycle, memory,
// and the latency of operations that allocate during GC cycles.
package cycles

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// handle is a typical wrapper of a C object: a pointer and a word of state.
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

// backwards calls register for each handle, the last one first. Addresses ascend with the
// index, so each record is inserted at the head of its list, without a walk.
func backwards(handles []*handle, register func(*handle)) {
	for i := len(handles) - 1; i >= 0; i-- {
		register(handles[i])
	}
}

// phases are the CPU times of a GC cycle.
type phases struct{ mark, sweep time.Duration }

func (p phases) all() time.Duration { return p.mark + p.sweep }

// collect runs a GC cycle and returns its phases. Marking ends at the runtime's time of the
// last GC; runtime.GC returns when all spans are swept. These wall-clock times determine how
// the process's CPU time is divided between the phases. CPU time varies less on a busy
// machine.
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

// least runs the given number of GC cycles and returns the phases of the cheapest.
func least(cycles int) phases {
	found := collect()
	for ; cycles > 1; cycles-- {
		if next := collect(); next.all() < found.all() {
			found = next
		}
	}
	return found
}

// cpuTime returns the user and system time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// slope returns the slope of the least-squares line through points, or 0 if it is negative.
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

// residentBytes returns the resident set size of this process and whether it is known.
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
