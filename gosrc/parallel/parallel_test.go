package parallel

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"gccost/cstr"
	"gccost/meter"
)

// TestMain sets a short benchtime for tests that call testing.Benchmark. A run with -bench
// keeps its benchtime.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "100000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// leakable is how many blocks BenchmarkAllocateOnly may leak, together half a gigabyte.
const leakable = 5_000_000

func free() { cstr.Free(cstr.Allocate()) }

func allocateOnly() { keep(cstr.AllocateHeap()) }

func auto() { cstr.AllocateAuto() }

// keep forces the compiler to allocate its argument on the heap.
//
//go:noinline
func keep(*cstr.Cstr) {}

func BenchmarkParallelFree(b *testing.B) { shared(b, free) }

// BenchmarkAllocateOnly leaks its blocks by design: it does what the others do, but
// frees nothing.
func BenchmarkAllocateOnly(b *testing.B) {
	if b.N > leakable {
		b.Skipf("%d operations would leak %[1]d C blocks: use -benchtime=%dx or less", b.N, leakable)
	}
	m := meter.Start(b, cstr.Count)
	for i := 0; i < b.N; i++ {
		allocateOnly()
	}
	m.Stop()
}

func BenchmarkParallelAuto(b *testing.B) { shared(b, auto) }

func shared(b *testing.B, operation func()) {
	for goroutines := 1; goroutines <= 64; goroutines *= 2 {
		goroutines := goroutines
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			m := meter.Start(b, cstr.Count)
			Share(b.N, goroutines, operation)
			m.Stop()
		})
	}
}

var operations = map[string]func(){"Free": free, "AllocateOnly": allocateOnly, "Auto": auto}

// TestOperations tests that every operation allocates one C block, that no block is freed
// twice and that manual frees leave none.
func TestOperations(t *testing.T) {
	const n = 10_000
	for name, operation := range operations {
		before := cstr.Count()
		Share(n, 3, operation)
		after := cstr.Count()
		if got := after.Allocated - before.Allocated; got != n {
			t.Errorf("%s: %d C blocks in %d operations", name, got, n)
		}
		if after.Misfreed != 0 {
			t.Errorf("%s: %d frees of blocks that were not allocated", name, after.Misfreed)
		}
		if freed := after.Freed - before.Freed; name == "Free" && freed != n {
			t.Errorf("%s: %d of %d blocks freed", name, freed, n)
		}
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct{ n, goroutines int }{{0, 1}, {1, 4}, {10, 3}, {1000, 7}} {
		var calls int64
		Share(c.n, c.goroutines, func() { atomic.AddInt64(&calls, 1) })
		if calls != int64(c.n) {
			t.Errorf("Share(%d, %d) called %d times", c.n, c.goroutines, calls)
		}
	}
}
