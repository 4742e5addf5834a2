//go:build go1.24

package watch

import "runtime"

func init() {
	sentinels = append(sentinels, func(done chan struct{}) {
		runtime.AddCleanup(&sentinel{done}, func(done chan struct{}) { close(done) }, done)
	})
}

// Cleaned makes an object with a cleanup and drops it.
//
//go:noinline
func Cleaned(name string) {
	runtime.AddCleanup(&Object{Name: name}, note, "the cleanup of "+name)
}
