//go:build go1.24

package slab

import "runtime"

// watch calls s.died once no handle can be reached any more.
func watch(handles []Handle, s *slab) {
	runtime.AddCleanup(&handles[0], (*slab).died, s)
}
