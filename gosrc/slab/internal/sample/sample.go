//go:build cgo

package sample

/*
#include "sample.h"
*/
import "C"

import (
	"errors"
	"unsafe"

	"example.org/gccost/slab"
)

// ErrNoMemory is returned when C cannot allocate memory.
var ErrNoMemory = errors.New("sample: no memory")

// trees frees the trees of all parsers.
var trees = slab.Pool[*C.sample_tree]{Free: deleteAll}

func deleteAll(dead []*C.sample_tree) error {
	C.sample_delete_all(unsafe.SliceData(dead), C.size_t(len(dead)))
	return nil
}

// A Tree is a parsed text. It need not be closed.
type Tree struct {
	handle slab.Handle[*C.sample_tree]
}

// Parse returns the tree of a text.
func Parse(text string) (*Tree, error) {
	// C.CString would copy the text.
	tree := C.sample_parse((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	if tree == nil {
		return nil, ErrNoMemory
	}
	return &Tree{trees.Adopt(tree)}, nil
}

// Words returns the number of words in the text.
func (t *Tree) Words() (int, error) {
	return slab.Use(t.handle, func(tree *C.sample_tree) (int, error) {
		return int(C.sample_words(tree)), nil
	})
}

// Close frees the tree without waiting for the garbage collector.
func (t *Tree) Close() error { return t.handle.Close() }

// blank holds trees without words, which C makes in batches.
var blank = slab.Pool[*C.sample_tree]{
	Free: deleteAll,
	Make: func(fresh []*C.sample_tree) error {
		if C.sample_make_all(unsafe.SliceData(fresh), C.size_t(len(fresh))) != 0 {
			return ErrNoMemory
		}
		return nil
	},
}

// Blank returns a tree without words.
func Blank() (*Tree, error) {
	handle, err := blank.Get()
	if err != nil {
		return nil, err
	}
	return &Tree{handle}, nil
}

// Live returns the number of trees that C has allocated and not freed.
func Live() int { return int(C.sample_live()) }

// Flush frees the trees that wait to be freed with others.
func Flush() {
	trees.Flush()
	blank.Flush()
}
