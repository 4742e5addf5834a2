// Package loop runs a benchmark's operations and watches the C heap meanwhile.
//
// Metrics, beside those of package meter:
//
//	c-bytes-peak       most bytes that the C heap held during the loop, above its start
//	c-bytes-1 … -32    the same at 32 equidistant moments
//
// They are missing where the C library does not tell how much it holds (glibc does).
package loop

/*
#include <stdint.h>
#include <stdlib.h>
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#include <malloc.h>
static int64_t held(void)
{
	struct mallinfo2 info = mallinfo2();
	return (int64_t)(info.uordblks + info.hblkhd);
}
#else
static int64_t held(void) { return -1; }
#endif
*/
import "C"

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gccost/meter"
)

const (
	series = 32 // moments that are reported
	looks  = 8  // per moment, for the peak
)

// Held is how many bytes the C heap holds, and whether the C library tells.
func Held() (bytes int64, known bool) {
	bytes = int64(C.held())
	return bytes, bytes >= 0
}

// Collect collects the Go heap, and waits until a finalizer that it queued has run.
func Collect() {
	done := make(chan struct{})
	runtime.SetFinalizer(&struct{ done chan struct{} }{done}, func(s *struct{ done chan struct{} }) {
		close(s.done)
	})
	for {
		runtime.GC()
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Run does b.N operations, numbered from 0.
func Run(b *testing.B, operation func(i int)) {
	Collect() // what the benchmark's first call, of one operation, left behind
	start, known := Held()
	var held [series + 1]int64 // at the start, and after each part
	var peak int64
	at := func(i int) int { return int(int64(b.N) * int64(i) / (series * looks)) }
	m := meter.Start(b, nil)
	for look := 0; look < series*looks; look++ {
		for i := at(look); i < at(look+1); i++ {
			operation(i)
		}
		if known {
			now, _ := Held()
			held[(look+looks)/looks] = now - start
			peak = max(peak, now-start)
		}
	}
	m.Stop()
	if !known {
		return
	}
	b.ReportMetric(float64(peak), "c-bytes-peak")
	for i, bytes := range held[1:] {
		b.ReportMetric(float64(bytes), fmt.Sprintf("c-bytes-%d", i+1))
	}
}
