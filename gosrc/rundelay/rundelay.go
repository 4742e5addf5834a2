// Package rundelay reads how long the threads of this process waited for a CPU:
// they were runnable, and the kernel ran something else. The kernel counts this
// time for each thread, in nanoseconds, as the second field of
// /proc/self/task/*/schedstat.
//
// Only Linux has these counters, and not every Linux: elsewhere there are no
// readings. A hypervisor that takes the CPU from a virtual machine does not show
// in them.
//
// Package rates imports it, so it keeps to what Go 1.10 can build.
package rundelay

import "time"

// Reading is how long each thread has waited for a CPU since it started, by the
// thread's id. It is nil where the kernel does not tell.
type Reading map[string]time.Duration

// Since returns how long the process's threads waited for a CPU between two
// readings, all threads together; false if either reading is nil.
//
// A thread that started after the first reading counts from zero. What a thread
// waited that ended before the second reading is lost.
func (r Reading) Since(before Reading) (waited time.Duration, known bool) {
	if r == nil || before == nil {
		return 0, false
	}
	for thread, now := range r {
		if then := before[thread]; then <= now {
			waited += now - then
		} else { // the kernel gave the id of a thread that ended to a new one
			waited += now
		}
	}
	return waited, true
}
