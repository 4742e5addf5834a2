//go:build go1.24

package meter

import "runtime"

func init() {
	sentinels = append(sentinels, func(done chan struct{}) {
		runtime.AddCleanup(&sentinel{done}, func(done chan struct{}) { close(done) }, done)
	})
}
