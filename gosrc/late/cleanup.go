//go:build go1.25

package late

import "runtime"

// A cleaned wrapper has a cleanup, and 24 bytes, because a Close would have to store it.
type cleaned struct {
	object object
	_      [16]byte
}

func clean(o object) { runtime.AddCleanup(&cleaned{object: o}, free, o) }
