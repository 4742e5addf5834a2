package yields

import (
	"runtime"
	"testing"
	"time"
)

type object struct {
	p *byte
	_ [7]uintptr
}

const forgotten = 1000

var (
	freed   int
	garbage *object
)

// loop forgets objects with a finalizer each, and allocates until several collections have
// run. It yields nowhere.
func loop() {
	freed = 0
	for i := 0; i < forgotten; i++ {
		runtime.SetFinalizer(new(object), func(*object) { freed++ })
	}
	for i := 0; i < 1000*1000; i++ {
		garbage = new(object)
	}
}

// BenchmarkLoop reports
//
//	gc-cycles           collections in the loop
//	ran-share           the part of the finalizers that ran in the loop
//	ran-share-yielded   the same after what follows it
func BenchmarkLoop(b *testing.B) {
	for _, c := range []struct {
		then  string
		yield func()
	}{
		{"sleep", func() { time.Sleep(0) }},
		{"clock", func() { time.Now() }},
		{"gosched", runtime.Gosched},
		{"collect", runtime.GC},
	} {
		b.Run("then="+c.then, func(b *testing.B) {
			runtime.GC() // what earlier benchmarks left
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			loop()
			runtime.ReadMemStats(&after)
			inLoop := freed
			c.yield()
			b.ReportMetric(float64(after.NumGC-before.NumGC), "gc-cycles")
			b.ReportMetric(float64(inLoop)/forgotten, "ran-share")
			b.ReportMetric(float64(freed)/forgotten, "ran-share-yielded")
		})
	}
}
