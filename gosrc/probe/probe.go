// Package probe times a small piece of work that is the same in every process.
//
// Other programs on a machine slow down a loop, and also a probe that runs between the parts
// of the loop. So the probe's time explains part of the difference between processes.
//
// The work is a chain of dependent loads over 4 MiB, more than a second-level cache holds:
// each load gives the address of the next one. Whatever slows down memory, the CPU or the
// scheduling of the thread also slows down the chain. It is not on the Go heap, so the GC
// neither scans nor moves it.
package probe

import "time"

// Loads is the number of loads in a reading, which takes some 100 microseconds.
const Loads = 1000

const length = 1 << 20

// chain holds the index of the next load at each index. A linear congruential generator of
// full period visits every index once, in an order that no prefetcher follows.
var chain [length]uint32

var at uint32 // the index of the next load

func init() {
	for i := range chain {
		chain[i] = (uint32(i)*1664525 + 1013904223) % length
	}
}

// A Probe adds up readings. It must not be read by two goroutines at a time.
type Probe struct {
	Total    time.Duration // of all readings
	readings int
}

// Read times Loads loads.
func (p *Probe) Read() {
	start := time.Now()
	next := at
	for i := 0; i < Loads; i++ {
		next = chain[next]
	}
	at = next
	p.Total += time.Since(start)
	p.readings++
}

// PerLoad returns the mean time of a load in nanoseconds, and whether there are readings.
func (p *Probe) PerLoad() (ns float64, read bool) {
	if p.readings == 0 {
		return 0, false
	}
	return float64(p.Total.Nanoseconds()) / float64(p.readings*Loads), true
}
