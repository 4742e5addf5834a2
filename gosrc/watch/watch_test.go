package watch

import (
	"encoding/xml"
	"io"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
)

// watched calls make and runs three GC cycles. It returns the growth of the heap, in
// objects, before the first and after each, and the finalizers and cleanups that ran.
func watched(t *testing.T, make func()) (heap [4]int, ran []string) {
	t.Helper()
	// Allow no other GC cycles.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	Collect()
	base := Heap()
	make()
	heap[0] = (Heap() - base + MiB/2) / MiB
	for i := 1; i < len(heap); i++ {
		cycle := Collect()
		heap[i] = (cycle.Heap - base + MiB/2) / MiB
		ran = append(ran, cycle.Ran...)
	}
	return heap, ran
}

func TestPlainObjectIsFreedInOneCycle(t *testing.T) {
	heap, ran := watched(t, func() { Plain("it") })
	if heap != [4]int{1, 0, 0, 0} || ran != nil {
		t.Error(heap, ran)
	}
}

func TestFinalizedObjectOutlivesOneCycle(t *testing.T) {
	heap, ran := watched(t, func() { Finalized("it") })
	if heap != [4]int{1, 1, 0, 0} || !reflect.DeepEqual(ran, []string{"the finalizer of it"}) {
		t.Error(heap, ran)
	}
}

func TestResurrectedObjectLivesUntilForget(t *testing.T) {
	heap, ran := watched(t, func() { Resurrected("it") })
	if heap != [4]int{1, 1, 1, 1} || len(ran) != 1 || Kept() != "it" {
		t.Error(heap, ran, Kept())
	}
	Forget()
	heap, ran = watched(t, func() {})
	if heap != [4]int{0, 0, 0, 0} || ran != nil || Kept() != "nothing" {
		t.Error(heap, ran, Kept())
	}
}

func TestChainIsFinalizedOneObjectPerCycle(t *testing.T) {
	heap, ran := watched(t, func() { Chain("a", "b", "c") })
	if heap != [4]int{3, 3, 2, 1} || !reflect.DeepEqual(ran, []string{"a", "b", "c"}) {
		t.Error(heap, ran)
	}
	watched(t, func() {})
}

func TestRowIsFinalizedInOneCycle(t *testing.T) {
	_, ran := watched(t, func() { Row("a", "b", "c", "d") })
	if len(ran) != 4 {
		t.Error(ran)
	}
}

const printed = `gc 1 @0.004s 2%: 0.01+0.4+0.003 ms clock, 0.02+0.1/0.3/0.2+0.006 ms cpu, 4->4->0 MB, 5 MB goal, 2 P
goos: linux
BenchmarkAllocateAuto-2 gc 2 @1.25s 3%: 0.01+0.4+0.003 ms clock, 0.02+0.1/0.3/0.2+0.006 ms cpu, 40->41->6 MB, 42 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
gc 3 @1.5s 3%: 0.01+0.4+0.003 ms clock, 0+0/0/0+0 ms cpu, 7->7->6 MB, 17592186044415 MB goal, 2 P
scvg: inuse: 3, idle: 59, sys: 63, released: 57, consumed: 5 (MB)
`

func TestTrace(t *testing.T) {
	want := []GC{{0.004, 4, 0, 5, false}, {1.25, 40, 6, 42, true}, {1.5, 7, 6, 0, false}}
	got := Trace(printed)
	if !reflect.DeepEqual(got, want) {
		t.Error(got)
	}
	if unforced := (Run{"GOGC=100", got}).Unforced(); unforced != 2 {
		t.Error(unforced)
	}
}

func TestChartData(t *testing.T) {
	for _, runs := range [][]Run{nil, {{"GOGC=off", nil}}, {{"GOGC=100 & <more>", Trace(printed)}}} {
		chart := Chart{"a", "Two cycles", runs}
		data := chart.Data()
		if !strings.HasPrefix(data["text/plain"].(string), "Two cycles.") {
			t.Error(data["text/plain"])
		}
		lines := 1
		for _, run := range runs {
			lines += len(run.Cycles)
		}
		if csv := data["text/csv"].(string); strings.Count(csv, "\n") != lines {
			t.Error(csv)
		}
		decoder := xml.NewDecoder(strings.NewReader(data["image/svg+xml"].(string)))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}
