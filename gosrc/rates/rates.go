// Package rates measures the rate and the cost of an operation that runs on many
// goroutines at once.
//
// It belongs to the programs of chapter 04 (C1 to C8, Cloudflare). The same source
// runs on today's Go and on Go 1.10, which has no modules and whose benchmarks cannot
// report metrics. A benchmark is
//
//	func BenchmarkSign(b *testing.B) { rates.Bench(b, Sign) }
//
// and TestMain calls [Main], which measures and prints the same metrics on Go 1.10 if
// -test.benchtime is a number of operations, such as 1000x.
//
// All metrics but gc-share-memstats and peak-rss-bytes are of the loop alone:
//
//	ns/op               wall time over operations
//	op/s                operations per second of wall time
//	cpu-ns/op           user and system time of the whole process, all threads
//	op/cpu-s            operations per second of CPU time
//	cpus-busy           CPU time over wall time
//	B/op, allocs/op     bytes allocated, and number of allocations
//	gc-cycles           GC cycles completed
//	gc-cycles/s         GC cycles completed per second of wall time
//	gc-cycle-op         operations per GC cycle; missing without a cycle
//	gc-cycle-bytes      bytes allocated per GC cycle; missing without a cycle
//	gc-pause-ns/op      wall time of stop-the-world pauses
//	faults              minor page faults
//	gc-share-classes    CPU time of the GC, from runtime/metrics, over all CPU time (since Go 1.20)
//	gc-share-memstats   MemStats.GCCPUFraction: the GC's share of the CPU time of all Ps so far
//	peak-rss-bytes      peak resident set size of the program so far
//	run-delay-share     time that threads waited for a CPU, over wall time: see package rundelay
package rates

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gccost/rundelay"
	"gccost/usage"
)

// A Worker prepares one goroutine and returns its operation.
type Worker func() (operation func())

// A Metric is a value with its unit, as on a line of benchmark output.
type Metric struct {
	Value float64
	Unit  string
}

type reading struct {
	delays rundelay.Reading
	mem    runtime.MemStats
	gcCPU  float64 // seconds
	usage  usage.Usage
	time   time.Time
}

// Measure divides n operations among the given number of goroutines and returns the
// metrics.
func Measure(n, goroutines int, worker Worker) []Metric {
	var ready, done sync.WaitGroup
	ready.Add(goroutines)
	done.Add(goroutines)
	start := make(chan struct{})
	left := int64(n)
	for g := 0; g < goroutines; g++ {
		go func() {
			defer done.Done()
			operation := worker()
			ready.Done()
			<-start
			// Faster goroutines do more operations, so none waits for a delayed one.
			for atomic.AddInt64(&left, -1) >= 0 {
				operation()
			}
		}()
	}
	ready.Wait()
	var before, after reading
	before.delays = rundelay.Read()
	runtime.ReadMemStats(&before.mem)
	before.gcCPU = gcCPU()
	before.usage = usage.Read()
	before.time = time.Now()
	close(start)
	done.Wait()
	wall := time.Since(before.time)
	after.usage = usage.Read()
	after.gcCPU = gcCPU()
	runtime.ReadMemStats(&after.mem)
	after.delays = rundelay.Read()
	return summary(float64(n), wall, before, after)
}

func summary(n float64, wall time.Duration, before, after reading) []Metric {
	cpu := after.usage.CPU - before.usage.CPU
	cycles := float64(after.mem.NumGC - before.mem.NumGC)
	bytes := float64(after.mem.TotalAlloc - before.mem.TotalAlloc)
	found := []Metric{
		{float64(wall.Nanoseconds()) / n, "ns/op"},
		{n / wall.Seconds(), "op/s"},
		{float64(cpu.Nanoseconds()) / n, "cpu-ns/op"},
		{cpu.Seconds() / wall.Seconds(), "cpus-busy"},
		{bytes / n, "B/op"},
		{float64(after.mem.Mallocs-before.mem.Mallocs) / n, "allocs/op"},
		{cycles, "gc-cycles"},
		{cycles / wall.Seconds(), "gc-cycles/s"},
		{float64(after.mem.PauseTotalNs-before.mem.PauseTotalNs) / n, "gc-pause-ns/op"},
		{float64(after.usage.Faults - before.usage.Faults), "faults"},
		{after.mem.GCCPUFraction, "gc-share-memstats"},
		{float64(usage.PeakRSS()), "peak-rss-bytes"},
	}
	if waited, known := after.delays.Since(before.delays); known {
		found = append(found, Metric{waited.Seconds() / wall.Seconds(), "run-delay-share"})
	}
	if cycles > 0 {
		found = append(found, Metric{n / cycles, "gc-cycle-op"}, Metric{bytes / cycles, "gc-cycle-bytes"})
	}
	if cpu > 0 { // some kernels count CPU time in ticks of milliseconds
		found = append(found, Metric{n / cpu.Seconds(), "op/cpu-s"})
		if hasClasses {
			share := (after.gcCPU - before.gcCPU) / cpu.Seconds()
			found = append(found, Metric{share, "gc-share-classes"})
		}
	}
	return found
}

// Goroutines are the numbers of goroutines for which [Bench] has sub-benchmarks: the
// document's sweep, and larger ones.
var Goroutines = func() (all []int) {
	for g := 1; g <= 48; g++ {
		all = append(all, g)
	}
	return append(all, 64, 96, 128, 192, 256)
}()
