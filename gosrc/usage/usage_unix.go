//go:build !windows
// +build !windows

// Package usage reads what the system counts of this process.
//
// Packages rates and across import it, so Go 1.9 must be able to build it.
package usage

import (
	"io/ioutil"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what the process has used so far.
type Usage struct {
	CPU    time.Duration // user + system, all threads
	Faults int64         // minor page faults
}

// Read returns the usage so far.
func Read() Usage {
	r := getrusage()
	return Usage{
		CPU:    time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Faults: int64(r.Minflt),
	}
}

func getrusage() syscall.Rusage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic("usage: getrusage: " + err.Error())
	}
	return r
}

// PeakRSS returns the peak resident set size of the program so far, in bytes.
//
// On Linux it reads VmHWM, which exec resets. The maximum that getrusage returns
// survives fork and exec, so it can be the parent's.
func PeakRSS() int64 {
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
