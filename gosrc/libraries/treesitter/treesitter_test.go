package treesitter

import (
	"runtime"
	"testing"
	"time"
)

// BenchmarkTreesDropped leaves trees and cursors to their finalizers.
func BenchmarkTreesDropped(b *testing.B) { Bench(b, Dropped) }

// BenchmarkTreesClosed closes them.
func BenchmarkTreesClosed(b *testing.B) { Bench(b, Closed) }

// BenchmarkTreesSlab leaves the trees to slabs; cursors keep their finalizers.
func BenchmarkTreesSlab(b *testing.B) { Bench(b, Adopted) }

// TestAllWaysParseTheSame tests that the files are valid Go and that the way to free trees
// does not change how many declarations are found.
func TestAllWaysParseTheSame(t *testing.T) {
	parser := NewParser()
	for i, file := range Files(20) {
		var counts []int
		for _, by := range []string{Dropped, Closed, Adopted} {
			n, err := Visit(parser, file, by)
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, n)
		}
		if counts[0] < 4 || counts[0] != counts[1] || counts[0] != counts[2] {
			t.Errorf("file %d: the three ways find %v declarations, want the same number, 4 or more", i, counts)
		}
		tree := parser.Parse(nil, file.text)
		if tree.RootNode().HasError() {
			t.Errorf("file %d is not valid Go", i)
		}
		tree.Close()
	}
}

// TestSlabsFreeTheTrees tests that slabs free the trees of this test and of earlier ones,
// except for those in the slabs still in use.
func TestSlabsFreeTheTrees(t *testing.T) {
	parser, file := NewParser(), Files(1)[0]
	before := adopted.Load()
	const visits = 100
	for i := 0; i < visits; i++ {
		if _, err := Visit(parser, file, Adopted); err != nil {
			t.Fatal(err)
		}
	}
	if got := adopted.Load() - before; got != 2*visits {
		t.Errorf("slabs adopted %d trees, want %d", got, 2*visits)
	}
	held := func() int64 { return adopted.Load() - freed.Load() }
	for i := 0; i < 100 && held() > 16; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
		Trees.Flush()
	}
	if got := held(); got < 0 || got > 16 {
		t.Errorf("%d of %d trees are not freed, want 0 to 16", got, adopted.Load())
	}
}
