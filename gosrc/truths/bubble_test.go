//go:build go1.25

package truths

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestCleanupRunsOutsideItsBubble checks that a cleanup which is registered in a bubble of
// testing/synctest has the real time, and that a channel from outside the bubble reaches it.
func TestCleanupRunsOutsideItsBubble(t *testing.T) {
	// The go line of this module brings the timers of Go 1.22, which bubbles do not have.
	t.Setenv("GODEBUG", "asynctimerchan=0")
	ran := make(chan int, 1)
	synctest.Test(t, func(t *testing.T) {
		runtime.AddCleanup(new(object), func(ran chan int) { ran <- time.Now().Year() }, ran)
		if year := time.Now().Year(); year != 2000 {
			t.Errorf("the bubble has the year %d, want 2000", year)
		}
	})
	for {
		runtime.GC()
		select {
		case year := <-ran:
			if year == 2000 {
				t.Error("the cleanup had the bubble's time")
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
