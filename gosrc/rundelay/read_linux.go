package rundelay

import (
	"strconv"
	"strings"
	"syscall"
	"time"
)

const tasks = "/proc/self/task/"

// Read reads the counters of all threads.
//
// It makes the system calls itself. Package os would start the runtime's network poller
// and allocate more, and so disturb the measurement.
func Read() Reading {
	folder, err := syscall.Open(tasks, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(folder)
	var threads []string
	buffer := make([]byte, 4096)
	for {
		n, err := syscall.ReadDirent(folder, buffer)
		if err != nil {
			return nil
		}
		if n <= 0 {
			break
		}
		_, _, threads = syscall.ParseDirent(buffer[:n], -1, threads)
	}
	found := Reading{}
	counted := false
	for _, thread := range threads {
		waited, turns, err := schedstat(tasks+thread+"/schedstat", buffer)
		if err != nil {
			continue // the thread has ended
		}
		found[thread] = waited
		counted = counted || turns > 0
	}
	if !counted { // without the counters, a kernel has no such files or only zeros in them
		return nil
	}
	return found
}

// schedstat returns how long a thread has waited for a CPU, and how often it got one.
func schedstat(path string, buffer []byte) (waited time.Duration, turns int64, err error) {
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer syscall.Close(file)
	n, err := syscall.Read(file, buffer)
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(buffer[:n]))
	if len(fields) != 3 {
		return 0, 0, syscall.EINVAL
	}
	nanoseconds, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, 0, err
	}
	turns, err = strconv.ParseInt(fields[2], 10, 64)
	return time.Duration(nanoseconds), turns, err
}
