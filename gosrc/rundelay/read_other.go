//go:build !linux
// +build !linux

package rundelay

// Read returns nil: this system does not tell how long threads waited.
func Read() Reading { return nil }
