// Package trees measures go-tree-sitter with slabs of its own; see gosrc/libraries/native.
package trees

import (
	"reflect"
	"testing"

	sitter "github.com/smacker/go-tree-sitter"

	"example.org/gccost/libraries/treesitter"
)

// native skips a test of a build without the changes of slabs.diff.
func native(t testing.TB) {
	if _, ok := reflect.TypeOf(sitter.BaseTree{}).FieldByName("handle"); !ok {
		t.Skip("build it as go doc ./native says")
	}
}

// BenchmarkTreesNative leaves the trees to the library's slabs.
func BenchmarkTreesNative(b *testing.B) {
	native(b)
	treesitter.Bench(b, treesitter.Dropped)
}

// BenchmarkTreesNativeClosed closes them.
func BenchmarkTreesNativeClosed(b *testing.B) {
	native(b)
	treesitter.Bench(b, treesitter.Closed)
}

// TestVisits tests that trees live as long as they are used, and can be closed twice.
func TestVisits(t *testing.T) {
	native(t)
	parser := treesitter.NewParser()
	for i, file := range treesitter.Files(200) {
		dropped, err := treesitter.Visit(parser, file, treesitter.Dropped)
		if err != nil {
			t.Fatal(err)
		}
		closed, err := treesitter.Visit(parser, file, treesitter.Closed)
		if err != nil || dropped != closed || dropped < 4 {
			t.Errorf("file %d has %d and %d declarations (%v), want the same number, 4 or more", i, dropped, closed, err)
		}
	}
	tree := parser.Parse(nil, []byte("package p"))
	tree.Close()
	tree.Close()
}
