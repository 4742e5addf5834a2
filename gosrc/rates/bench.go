//go:build go1.13
// +build go1.13

package rates

import (
	"fmt"
	"os"
	"testing"
)

// Bench measures b.N operations, with a sub-benchmark for each of [Goroutines].
func Bench(b *testing.B, worker Worker) {
	for _, g := range Goroutines {
		b.Run(fmt.Sprintf("goroutines=%d", g), func(b *testing.B) { Report(b, g, worker) })
	}
}

// Report measures b.N operations on the given number of goroutines and reports the metrics.
func Report(b *testing.B, goroutines int, worker Worker) {
	b.ReportAllocs() // otherwise package testing prints neither B/op nor allocs/op
	for _, m := range Measure(b.N, goroutines, worker) {
		b.ReportMetric(m.Value, m.Unit)
	}
}

// Main implements TestMain: it runs the tests and benchmarks. Only releases that cannot
// report metrics use workers, which maps the names of benchmarks to their workers.
func Main(m *testing.M, _ map[string]Worker) {
	os.Exit(m.Run())
}
