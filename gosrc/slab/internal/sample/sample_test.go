//go:build cgo

package sample

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"example.org/gccost/slab"
)

// TestAllTreesAreFreed checks that closed trees, forgotten trees and trees that were never
// handed out are freed. Run it with -asan or -msan to detect uses after free.
func TestAllTreesAreFreed(t *testing.T) {
	var kept []*Tree
	for i := 0; i < 20_000; i++ {
		tree, err := Parse("one two  three")
		if i%2 == 0 {
			tree, err = Blank()
		}
		if err != nil {
			t.Fatal(err)
		}
		if words, err := tree.Words(); err != nil || words != 3*(i%2) {
			t.Fatal(words, err)
		}
		switch i % 5 {
		case 0:
			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Words(); !errors.Is(err, slab.ErrClosed) {
				t.Fatal(err)
			}
		case 1:
			if i%100 == 1 {
				kept = append(kept, tree)
			}
		}
	}
	for i := 0; i < 100 && Live() > len(kept); i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	for _, tree := range kept {
		if words, err := tree.Words(); err != nil || words != 3 {
			t.Error(words, err)
		}
	}
	if live := Live(); live > 64*len(kept) {
		t.Errorf("%d trees are live, but only %d are kept", live, len(kept))
	}
	kept = nil
	for i := 0; i < 100 && Live() > 0; i++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	if live := Live(); live != 0 {
		t.Errorf("%d trees are never freed", live)
	}
}
