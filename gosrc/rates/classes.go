//go:build go1.20
// +build go1.20

package rates

import "runtime/metrics"

const hasClasses = true

// gcCPU returns the CPU seconds that the runtime counts as the GC's own, as of the
// end of the last GC cycle.
func gcCPU() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}
