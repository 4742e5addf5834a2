//go:build !linux
// +build !linux

package rundelay

// Read returns nil, because this system does not count how long threads wait.
func Read() Reading { return nil }
