//go:build go1.24 && unix

package weakly

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"unique"
	"weak"
)

var lives = []int{1_000, 10_000, 100_000, 1_000_000}

// trial reports whether this is the run of one operation that package testing begins with.
// It needs no large setup.
func trial(b *testing.B) bool { return b.N == 1 }

// spent returns the CPU time of the process so far, in ns.
func spent() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano() + used.Stime.Nano())
}

// timed calls operation b.N times.
func timed(b *testing.B, operation func(i int)) {
	before := spent()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		operation(i)
	}
	b.StopTimer()
	b.ReportMetric((spent()-before)/float64(b.N), "cpu-ns/op")
}

// each runs a benchmark for each number of live values. An operation gets a key, and returns
// what keeps the key's value alive: until as many other operations have followed.
func each[T any](b *testing.B, begin func() func(key) T) {
	for _, live := range lives {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			operation, draw := begin(), rand.New(rand.NewPCG(1, 2))
			kept := make([]T, live)
			// About half of the values that are asked for are live.
			next := func() key { return key{draw.IntN(live), draw.IntN(2)} }
			for i := 0; i < live && !trial(b); i++ {
				kept[i] = operation(next())
			}
			timed(b, func(i int) { kept[i%live] = operation(next()) })
		})
	}
}

type key struct{ left, right int }

// A node is an expression. Equal ones are one object while it is in use.
type node struct {
	key
	name *string
}

var name = "node"

// BenchmarkHashCons finds nodes by their keys through weak pointers. A cleanup removes the
// entry of a node that is gone.
func BenchmarkHashCons(b *testing.B) {
	each(b, func() func(key) *node {
		entries := make(chan map[key]weak.Pointer[node], 1) // which the holder may use
		entries <- map[key]weak.Pointer[node]{}
		remove := func(k key) {
			known := <-entries
			if pointer, ok := known[k]; ok && pointer.Value() == nil {
				delete(known, k)
			}
			entries <- known
		}
		return func(k key) *node {
			known := <-entries
			defer func() { entries <- known }()
			if found := known[k].Value(); found != nil {
				return found
			}
			made := &node{k, &name}
			known[k] = weak.Make(made)
			runtime.AddCleanup(made, remove, k)
			return made
		}
	})
}

// BenchmarkUnique makes handles of values.
func BenchmarkUnique(b *testing.B) {
	each(b, func() func(key) unique.Handle[key] { return unique.Make[key] })
}

// BenchmarkWeakAgain makes weak pointers to random live objects that have some already, as a
// program does that stores only weak pointers.
func BenchmarkWeakAgain(b *testing.B) {
	for _, live := range lives {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			draw := rand.New(rand.NewPCG(1, 2))
			nodes, pointers := make([]*node, live), make([]weak.Pointer[node], live)
			for i := 0; i < live && !trial(b); i++ {
				nodes[i] = &node{key{i, i}, &name}
				pointers[i] = weak.Make(nodes[i])
			}
			timed(b, func(int) {
				at := draw.IntN(live)
				if !trial(b) && weak.Make(nodes[at]) != pointers[at] {
					b.Fatal("two weak pointers to one object differ")
				}
			})
		})
	}
}

// BenchmarkProfiled allocates objects of 8 to 64 bytes, the last 100,000 of which are live, at a
// rate of the heap profiler: one sample per so many bytes, or none.
func BenchmarkProfiled(b *testing.B) {
	const live = 100_000
	for _, rate := range []int{0, 512 << 10, 4 << 10, 1} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			before := runtime.MemProfileRate
			runtime.MemProfileRate = rate
			defer func() { runtime.MemProfileRate = before }()
			kept := make([]any, live)
			timed(b, func(i int) { kept[i%live] = small(i) })
		})
	}
}

func small(i int) any {
	switch i % 4 {
	case 0:
		return new([1]*byte)
	case 1:
		return new([2]*byte)
	case 2:
		return new([4]*byte)
	}
	return new([8]*byte)
}
