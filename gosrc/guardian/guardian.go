// Package guardian is an example to copy: a wrapper of C objects for programs that close most
// of them.
//
// A finalizer guardian is an object behind the one that users hold, and has the finalizer in
// its place (Bloch, Effective Java, item 7). Here [Block.Close] frees the C object at once and
// puts the guardian into a [sync.Pool], with its finalizer still set. The next block takes a
// guardian from the pool, so nothing is registered with the runtime, and no list of finalizers
// is searched. A forgotten block takes its guardian along, and the finalizer frees the C
// object. A guardian that the pool drops has nothing to free.
//
// Copy the declarations of this file; the rest of the package stands for a C library, and
// measures the example like for like with other wrappers.
//
// # What must stay as it is
//
//   - free clears the pointer before it calls C. If C calls back into Go and that panics, the
//     finalizer would otherwise free the object again.
//   - The pointer of a guardian is written atomically, because nothing else orders the writes
//     of a reused guardian before its finalizer: SetFinalizer does so for earlier writes only.
//     An atomic.Pointer to an opaque C type does not compile.
//   - Methods read that pointer without an atomic operation, so that the race detector reports
//     a Close during a use. Without the detector C may then get another block's object.
//   - Methods keep the block alive until C returns (runtime.KeepAlive).
//   - The pool is a package variable with New, so that a finalizer that puts its guardian back
//     does not compile ("initialization cycle"). It would leak: a finalizer runs once, so the
//     guardian would have none.
//   - A guardian holds a pointer. Without one and under 16 bytes it would share its memory with
//     others, and be freed with the last of them only. At 32 bytes fewer guardians share a
//     list of finalizers.
//   - A guardian never refers to its block: the pair would never be freed. If a C object needs
//     another one (a statement its connection), its guardian refers to the other's block until
//     Close. That one must not lead back, as a connection does that keeps closed statements to
//     use them again: take the guardian off such a statement.
//   - A block must not be copied: go vet reports it.
//
// # When to use something else
//
// If most objects are forgotten, slabs (package slab) cost less, and so may a finalizer on a
// larger handle for each object. If thousands are closed together and two collections follow, the pool is empty
// again: then keep the guardians in a list of your own, under a mutex. The errors of frees
// that a finalizer calls are lost.
//
// If C uses Go memory until the object is freed (a [runtime.Pinner], a slice, a cgo.Handle), put
// it into the guardian, not into the block, and release it in free, after C: a forgotten block
// dies before its guardian does. No such value may lead to the block.
//
// # What stops it
//
// One goroutine runs all finalizers of a program. If a finalizer of any package blocks, or calls
// [runtime.Goexit], the guardians of forgotten blocks free nothing more; Close does, on its own
// goroutine. A block_free that blocks in a finalizer stops those of all other packages, so it
// must not wait for a network or a lock that is held for long. A goroutine profile shows what
// blocks, below runtime.runFinalizers (before Go 1.25, runtime.runfinq).
package guardian

/*
#include "guardian.h"
*/
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Block is a C block, which is freed by Close, or after it was forgotten.
type Block struct{ guardian atomic.Pointer[guardian] }

type guardian struct {
	block unsafe.Pointer // *C.block, nil in the pool
	_     [24]byte
}

var guardians = sync.Pool{New: func() any {
	g := new(guardian)
	runtime.SetFinalizer(g, (*guardian).free)
	return g
}}

func (g *guardian) free() error {
	if block := atomic.SwapPointer(&g.block, nil); block != nil {
		return check(C.block_free((*C.block)(block)))
	}
	return nil
}

// adopt makes b own a C block.
func (b *Block) adopt(block *C.block) {
	g := guardians.Get().(*guardian)
	atomic.StorePointer(&g.block, unsafe.Pointer(block))
	b.guardian.Store(g)
}

// Close frees the block. It may be called at any time but during a use.
func (b *Block) Close() error {
	if g := b.guardian.Swap(nil); g != nil {
		defer guardians.Put(g)
		return g.free()
	}
	return ErrClosed
}

// Use stands for each method that passes the block to C.
func (b *Block) Use() error {
	if g := b.guardian.Load(); g != nil {
		defer runtime.KeepAlive(b)
		return check(C.block_use((*C.block)(g.block)))
	}
	return ErrClosed
}
