package meter

import (
	"os"
	"runtime"
	"strings"
)

// profileRate is the sampling rate of a CPU profile, in hertz. It is the tick rate of most
// kernels, which bounds the resolution of per-thread CPU timers. With the default of 100,
// the shares in a profile of one second have two fifths more noise.
const profileRate = 250

// init sets the rate before package testing starts the profile. Package testing has no
// option for the rate; its own attempt to set it fails with a line on standard error.
func init() {
	for _, arg := range os.Args[1:] {
		if strings.HasPrefix(arg, "-test.cpuprofile") {
			runtime.SetCPUProfileRate(profileRate)
		}
	}
}
