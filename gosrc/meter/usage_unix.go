//go:build !windows

package meter

import (
	"runtime"
	"syscall"
	"time"
)

type usage struct {
	cpu     time.Duration // user + system, all threads
	faults  int64         // minor page faults
	peakRSS int64         // bytes
}

func readUsage() usage {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic("meter: getrusage: " + err.Error())
	}
	rss := int64(r.Maxrss)
	if runtime.GOOS != "darwin" { // kilobytes everywhere else
		rss *= 1024
	}
	return usage{
		cpu:     time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		faults:  int64(r.Minflt),
		peakRSS: rss,
	}
}
