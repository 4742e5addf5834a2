package treesitter

import (
	"testing"

	"example.org/gccost/libraries/loop"
)

func visit(b *testing.B, freed string) {
	parser, files := NewParser(), Files(200)
	loop.Run(b, func(i int) {
		if _, err := Visit(parser, files[i%len(files)], freed); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkTreesDropped leaves trees and cursors to their finalizers.
func BenchmarkTreesDropped(b *testing.B) { visit(b, Dropped) }

// BenchmarkTreesClosed closes them.
func BenchmarkTreesClosed(b *testing.B) { visit(b, Closed) }

// BenchmarkTreesSlab has slabs adopt the trees; cursors keep their finalizers.
func BenchmarkTreesSlab(b *testing.B) { visit(b, Adopted) }

// TestAllWaysParseTheSame: the files are valid Go, and who frees changes nothing.
func TestAllWaysParseTheSame(t *testing.T) {
	parser := NewParser()
	for i, file := range Files(20) {
		var counts []int
		for _, freed := range []string{Dropped, Closed, Adopted} {
			n, err := Visit(parser, file, freed)
			if err != nil {
				t.Fatal(err)
			}
			counts = append(counts, n)
		}
		if counts[0] < 4 || counts[0] != counts[1] || counts[0] != counts[2] {
			t.Errorf("file %d has %v declarations", i, counts)
		}
		tree := parser.Parse(nil, file.text)
		if tree.RootNode().HasError() {
			t.Errorf("file %d is not valid Go", i)
		}
		tree.Close()
	}
}

// TestSlabsFreeTheTrees: what the library would have freed is freed, once.
func TestSlabsFreeTheTrees(t *testing.T) {
	parser, file := NewParser(), Files(1)[0]
	if _, err := Visit(parser, file, Closed); err != nil {
		t.Fatal(err)
	}
	before, known := loop.Held()
	if !known {
		t.Skip("the C library does not tell how much it holds")
	}
	for i := 0; i < 100; i++ {
		if _, err := Visit(parser, file, Adopted); err != nil {
			t.Fatal(err)
		}
	}
	most, _ := loop.Held()
	for i := 0; i < 5; i++ {
		loop.Collect()
		Trees.Flush()
	}
	after, _ := loop.Held()
	// The last slab may still be in use.
	if held, grown := after-before, most-before; held > grown/5+1<<20 {
		t.Errorf("%d of %d bytes are left", held, grown)
	}
}
