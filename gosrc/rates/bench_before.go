//go:build !go1.13
// +build !go1.13

package rates

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// Bench measures b.N operations, with a sub-benchmark for each of [Goroutines].
// It does not report the metrics; see [Main].
func Bench(b *testing.B, worker Worker) {
	for _, g := range Goroutines {
		goroutines := g
		b.Run(fmt.Sprintf("goroutines=%d", g), func(b *testing.B) { Measure(b.N, goroutines, worker) })
	}
}

// Main implements TestMain. These releases do not support a -test.benchtime in
// operations. If there is one, Main itself measures the workers whose names match
// -test.bench, and prints them with their metrics as later releases do. Otherwise it runs
// the tests and benchmarks.
func Main(m *testing.M, workers map[string]Worker) {
	asked := map[string]string{}
	for _, arg := range os.Args[1:] {
		if i := strings.Index(arg, "="); i > 0 {
			asked[strings.TrimLeft(arg[:i], "-")] = arg[i+1:]
		}
	}
	benchtime := asked["test.benchtime"]
	if !strings.HasSuffix(benchtime, "x") {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(strings.TrimSuffix(benchtime, "x"))
	if err != nil || n < 1 {
		fail("-test.benchtime=" + benchtime + ": want a number of operations, such as 1000x")
	}
	if path := asked["test.cpuprofile"]; path != "" {
		file, err := os.Create(path)
		if err != nil {
			fail(err.Error())
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			fail(err.Error())
		}
		defer file.Close()
		defer pprof.StopCPUProfile()
	}
	if err := runFixed(os.Stdout, asked["test.bench"], n, workers); err != nil {
		fail(err.Error())
	}
}

// runFixed measures n operations for each combination of a worker and a number of
// goroutines that a -test.bench pattern selects, and prints a line for each.
func runFixed(out io.Writer, pattern string, n int, workers map[string]Worker) error {
	wanted := []*regexp.Regexp{}
	for _, part := range strings.Split(pattern, "/") {
		r, err := regexp.Compile(part)
		if err != nil {
			return err
		}
		wanted = append(wanted, r)
	}
	names := []string{}
	for name := range workers {
		if workers[name] != nil && wanted[0].MatchString("Benchmark"+name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		for _, g := range Goroutines {
			sub := fmt.Sprintf("goroutines=%d", g)
			if len(wanted) > 1 && !wanted[1].MatchString(sub) {
				continue
			}
			fmt.Fprintf(out, "Benchmark%s/%s", name, sub)
			if procs := runtime.GOMAXPROCS(0); procs != 1 {
				fmt.Fprintf(out, "-%d", procs)
			}
			runtime.GC() // as package testing does
			found := Measure(n, g, workers[name])
			fmt.Fprintf(out, "\t%d", n)
			for _, m := range found {
				fmt.Fprintf(out, "\t%.6g %s", m.Value, m.Unit)
			}
			fmt.Fprintln(out)
		}
	}
	return nil
}

func fail(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(2)
}
