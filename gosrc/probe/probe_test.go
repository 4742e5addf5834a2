package probe

import "testing"

func TestChainVisitsEveryIndexOnce(t *testing.T) {
	seen := make([]bool, length)
	next := uint32(0)
	for i := 0; i < length; i++ {
		if seen[next] {
			t.Fatalf("index %d is visited again after %d loads, want %d", next, i, length)
		}
		seen[next] = true
		next = chain[next]
	}
}

func TestPerLoadIsTheMean(t *testing.T) {
	var p Probe
	if ns, read := p.PerLoad(); read || ns != 0 {
		t.Errorf("without a reading PerLoad is %v, %v", ns, read)
	}
	p.Read()
	p.Read()
	want := float64(p.Total.Nanoseconds()) / (2 * Loads)
	if ns, read := p.PerLoad(); !read || ns != want || ns <= 0 {
		t.Errorf("after two readings PerLoad is %v, %v, want %v", ns, read, want)
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	var p Probe
	if allocs := testing.AllocsPerRun(10, p.Read); allocs != 0 {
		t.Errorf("a reading allocates %v times", allocs)
	}
}
