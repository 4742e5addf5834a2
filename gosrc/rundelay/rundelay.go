// Package rundelay reads how long the threads of this process have waited for a CPU
// while they were runnable and the kernel ran something else. The kernel counts this
// time for each thread, in nanoseconds, in the second field of
// /proc/self/task/*/schedstat.
//
// Only Linux has these counters, and some kernels lack them. They do not include the
// time that a hypervisor takes from a virtual machine.
//
// Packages rates and across import it, so Go 1.9 must be able to build it.
package rundelay

import "time"

// A Reading maps thread IDs to how long each thread has waited for a CPU since it
// started. It is nil on a system without the counters.
type Reading map[string]time.Duration

// Since returns the total time that the process's threads waited for a CPU between two
// readings. It returns false if either reading is nil.
//
// A thread that started after the first reading counts from zero. The waiting time of a
// thread that ended before the second reading is lost.
func (r Reading) Since(before Reading) (waited time.Duration, known bool) {
	if r == nil || before == nil {
		return 0, false
	}
	for thread, now := range r {
		if then := before[thread]; then <= now {
			waited += now - then
		} else { // the kernel has reused the ID of a thread that ended
			waited += now
		}
	}
	return waited, true
}
