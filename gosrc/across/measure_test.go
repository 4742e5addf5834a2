package across

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"gccost/rundelay"
	"gccost/usage"
)

// TestMain runs the benchmarks itself if -test.benchtime is a number of operations, so that
// every release runs them in the same way: package testing supports metrics since Go 1.13
// and numbers of operations since Go 1.12. Otherwise it runs tests and benchmarks as usual.
func TestMain(m *testing.M) {
	asked := map[string]string{}
	for _, arg := range os.Args[1:] {
		if i := strings.Index(arg, "="); i > 0 {
			asked[strings.TrimLeft(arg[:i], "-")] = arg[i+1:]
		}
	}
	benchtime := asked["test.benchtime"]
	n, err := strconv.Atoi(strings.TrimSuffix(benchtime, "x"))
	if err != nil || n < 1 || !strings.HasSuffix(benchtime, "x") {
		os.Exit(m.Run())
	}
	pattern := patterns(asked["test.bench"])
	for _, name := range names() {
		if !matches(pattern, "Benchmark"+name) {
			continue
		}
		runtime.GC() // as package testing does
		found = nil
		benchmarks[name](&testing.B{N: n})
		line := "Benchmark" + name
		if procs := runtime.GOMAXPROCS(0); procs != 1 {
			line += fmt.Sprintf("-%d", procs)
		}
		line += fmt.Sprintf("\t%d", n)
		for _, m := range found {
			line += fmt.Sprintf("\t%.6g %s", m.value, m.unit)
		}
		fmt.Println(line)
	}
}

func names() (all []string) {
	for name := range benchmarks {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

// patterns compiles the parts of a -test.bench pattern.
func patterns(asked string) (parts []*regexp.Regexp) {
	for _, part := range strings.Split(asked, "/") {
		parts = append(parts, regexp.MustCompile(part))
	}
	return parts
}

// matches reports whether a pattern selects a benchmark, given its full name with slashes.
func matches(pattern []*regexp.Regexp, name string) bool {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if i < len(pattern) && !pattern[i].MatchString(part) {
			return false
		}
	}
	return len(pattern) <= len(parts)
}

type metric struct {
	value float64
	unit  string
}

// found has the metrics of the benchmark that ran last; package meter describes most of them.
var found []metric

func report(value float64, unit string) { found = append(found, metric{value, unit}) }

// measure reads clocks and counters around a loop of b.N operations and reports metrics.
func measure(b *testing.B, loop func(n int)) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	delays, used, start := rundelay.Read(), usage.Read(), time.Now()
	loop(b.N)
	wall, cpu := time.Since(start), usage.Read().CPU-used.CPU
	waited, known := rundelay.Read().Since(delays)
	runtime.ReadMemStats(&after)
	n := float64(b.N)
	report(float64(wall.Nanoseconds())/n, "ns/op")
	report(float64(cpu.Nanoseconds())/n, "cpu-ns/op")
	report(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/op")
	report(float64(after.Mallocs-before.Mallocs)/n, "allocs/op")
	report(float64(after.NumGC-before.NumGC), "gc-cycles")
	if known {
		report(waited.Seconds()/wall.Seconds(), "run-delay-share")
	}
}

// quantile sorts the values and returns the given quantile of them.
func quantile(values []float64, part float64) float64 {
	sort.Float64s(values)
	return values[int(part*float64(len(values)-1))]
}
