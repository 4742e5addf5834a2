//go:build !go1.24

package slab

import "runtime"

// watch calls s.died once no handle can be reached any more. A finalizer keeps
// the handles for a collection more than the cleanup of later releases.
func watch(handles []Handle, s *slab) {
	runtime.SetFinalizer(&handles[0], func(*Handle) { s.died() })
}
