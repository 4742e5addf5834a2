package meter

import (
	"os"
	"runtime"
	"strings"
)

// profileRate is how often a second a CPU profile looks at a running thread: the tick of most
// kernels, which no timer of a thread's CPU time beats. The usual 100 leaves shares of a
// second's profile with two fifths more noise.
const profileRate = 250

// init sets the rate before package testing starts the profile, whose own attempt to set it
// then fails with a line on standard error. There is no other way to ask testing for it.
func init() {
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-test.cpuprofile") {
			runtime.SetCPUProfileRate(profileRate)
		}
	}
}
