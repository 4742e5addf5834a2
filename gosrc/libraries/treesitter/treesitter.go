// Package treesitter parses and edits Go files with github.com/smacker/go-tree-sitter,
// which gives each tree and each cursor a finalizer.
package treesitter

/*
#include <stddef.h>
// The library's own functions. Its other package has them, so that they are found only
// when the program is linked.
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup
typedef struct TSTree TSTree;
void ts_tree_delete(TSTree *tree);
static void delete_trees(TSTree **trees, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ts_tree_delete(trees[i]);
}
*/
import "C"

import (
	"context"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/golang"

	"example.org/gccost/libraries/loop"
	"example.org/gccost/slab"
)

// A File is the text of a file and the position of a digit that an edit replaces.
type File struct {
	text  []byte
	digit int
	at    sitter.Point
}

const function = `// Sum%[1]d adds up what f returns for the values under %[2]d.
func Sum%[1]d(values []int, f func(int) (int, error)) (total int, err error) {
	for i, value := range values {
		if value >= %[2]d || i%%%[3]d == 0 {
			continue
		}
		got, err := f(value)
		if err != nil {
			return 0, fmt.Errorf("value %%d of %%d: %%w", i, len(values), err)
		}
		total += got
	}
	return total, nil
}

`

// Files returns n Go files of 1 to 40 functions, the same in each call.
func Files(n int) []*File {
	random := rand.New(rand.NewSource(1))
	files := make([]*File, n)
	for i := range files {
		var text strings.Builder
		fmt.Fprintf(&text, "package p%d\n\nimport \"fmt\"\n\n", i)
		for j := 1 + random.Intn(40); j > 0; j-- {
			fmt.Fprintf(&text, function, j, random.Intn(1000), 2+random.Intn(9))
		}
		row := strings.Count(text.String(), "\n")
		fmt.Fprintf(&text, "const last = %d\n", random.Intn(10))
		digit := text.Len() - len("0\n")
		files[i] = &File{
			text:  []byte(text.String()),
			digit: digit,
			at:    sitter.Point{Row: uint32(row), Column: uint32(len("const last = "))},
		}
	}
	return files
}

// A Tree is a tree of the library, and its handle if a slab frees it.
type Tree struct {
	*sitter.Tree
	handle slab.Handle[*C.TSTree]
}

// The ways to free trees and cursors.
const (
	Dropped = "their finalizers"
	Closed  = "Close"
	Adopted = "slabs"
)

var adopted, freed atomic.Int64 // trees

// Trees is the pool of slabs for trees of some 200 kB.
var Trees = slab.Pool[*C.TSTree]{
	Free: func(dead []*C.TSTree) error {
		freed.Add(int64(len(dead)))
		C.delete_trees(unsafe.SliceData(dead), C.size_t(len(dead)))
		return nil
	},
	Handles: 8,
	Bytes:   200 << 10,
}

// adopt replaces a tree's finalizer with a slab.
func adopt(tree *sitter.Tree) Tree {
	runtime.SetFinalizer(tree.BaseTree, nil)
	adopted.Add(1)
	// The first field of a BaseTree is the C pointer.
	return Tree{tree, Trees.Adopt(*(**C.TSTree)(unsafe.Pointer(tree.BaseTree)))}
}

// Visit parses a file, edits it, reparses it incrementally and returns the number of
// declarations in the second tree. by is the way to free trees and cursors.
func Visit(parser *sitter.Parser, file *File, by string) (declarations int, err error) {
	before, err := parse(parser, nil, file, by)
	if err != nil {
		return 0, err
	}
	file.text[file.digit] ^= 1
	one := sitter.Point{Row: file.at.Row, Column: file.at.Column + 1}
	before.Edit(sitter.EditInput{
		StartIndex: uint32(file.digit), OldEndIndex: uint32(file.digit + 1), NewEndIndex: uint32(file.digit + 1),
		StartPoint: file.at, OldEndPoint: one, NewEndPoint: one,
	})
	after, err := parse(parser, before.Tree, file, by)
	if err != nil {
		return 0, err
	}
	cursor := sitter.NewTreeCursor(after.RootNode())
	for more := cursor.GoToFirstChild(); more; more = cursor.GoToNextSibling() {
		if cursor.CurrentNode().IsNamed() {
			declarations++
		}
	}
	if by == Closed {
		cursor.Close()
		before.Close()
		after.Close()
	}
	runtime.KeepAlive(before)
	runtime.KeepAlive(after)
	return declarations, nil
}

func parse(parser *sitter.Parser, old *sitter.Tree, file *File, by string) (Tree, error) {
	tree, err := parser.ParseCtx(context.Background(), old, file.text)
	if err != nil || by != Adopted {
		return Tree{Tree: tree}, err
	}
	return adopt(tree), nil
}

// Bench visits files. by is the way to free trees and cursors.
func Bench(b *testing.B, by string) {
	parser, files := NewParser(), Files(200)
	loop.Run(b, func(i int) {
		if _, err := Visit(parser, files[i%len(files)], by); err != nil {
			b.Fatal(err)
		}
	})
}

// NewParser returns a parser for Go.
func NewParser() *sitter.Parser {
	parser := sitter.NewParser()
	parser.SetLanguage(golang.GetLanguage())
	return parser
}
