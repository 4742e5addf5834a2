//go:build go1.20
// +build go1.20

package rates

import "runtime/metrics"

const hasClasses = true

// gcCPU returns the CPU time of the GC in seconds as counted by the runtime, up to the end
// of the last GC cycle.
func gcCPU() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}
