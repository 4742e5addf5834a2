//go:build !windows
// +build !windows

package rates

import (
	"io/ioutil"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type usage struct {
	cpu    time.Duration // user + system, all threads
	faults int64         // minor page faults
}

func readUsage() usage {
	r := getrusage()
	return usage{
		cpu:    time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		faults: int64(r.Minflt),
	}
}

func getrusage() syscall.Rusage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic("rates: getrusage: " + err.Error())
	}
	return r
}

// peakRSS returns the peak resident set size of the program so far, in bytes. It is a copy
// of the function in package meter, which Go 1.10 cannot build.
func peakRSS() int64 {
	if status, err := ioutil.ReadFile("/proc/self/status"); err == nil {
		for _, line := range strings.Split(string(status), "\n") {
			fields := strings.Fields(line)
			if len(fields) >= 2 && fields[0] == "VmHWM:" {
				if kilobytes, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					return kilobytes * 1024
				}
			}
		}
	}
	rss := int64(getrusage().Maxrss)
	if runtime.GOOS != "darwin" { // kilobytes everywhere else
		rss *= 1024
	}
	return rss
}
