// Package loop runs a benchmark's operations and samples the process's memory.
//
// Metrics in addition to those of package meter:
//
//	rss-bytes-1 … -32  resident memory of the process after each of 32 equal parts of the loop
//
// They are missing where the kernel has no /proc/self/statm. The C library could tell how
// much memory it holds, but this takes milliseconds after a program has freed many blocks.
package loop

import (
	"fmt"
	"os"
	"testing"

	"gccost/meter"
)

const moments = 32

// resident returns the process's resident memory in bytes, or 0 if it is unknown.
func resident() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// Run does b.N operations, numbered from 0, and reports the metrics.
func Run(b *testing.B, operation func(i int)) {
	var held [moments]int64
	at := func(i int) int { return int(int64(b.N) * int64(i) / moments) }
	m := meter.Start(b, nil)
	for moment := range held {
		for i := at(moment); i < at(moment+1); i++ {
			operation(i)
		}
		held[moment] = resident()
	}
	m.Stop()
	for i, bytes := range held {
		if bytes > 0 {
			b.ReportMetric(float64(bytes), fmt.Sprintf("rss-bytes-%d", i+1))
		}
	}
}
