// Package churn loads the GC as a server does, with a small live heap and much
// short-lived garbage. It implements the two ways to reduce the GC's work that need
// code: a ballast, and a GOGC tuner driven by a finalizer.
//
// It belongs to chapter 04. It supplements the claims C5 to C7 (Cloudflare) and
// measures what tuning GOGC gains today.
package churn

import "runtime"

// node is a part of a request: a few words, some of them pointers.
type node struct {
	left, right *node
	value       [4]uint64
	text        []byte
}

// tree returns a tree with the given number of levels and a text at each leaf.
func tree(levels int, seed uint64) *node {
	n := &node{value: [4]uint64{seed}}
	if levels == 1 {
		n.text = make([]byte, 128)
		return n
	}
	n.left, n.right = tree(levels-1, 2*seed), tree(levels-1, 2*seed+1)
	return n
}

func (n *node) sum() uint64 {
	if n == nil {
		return 0
	}
	return n.value[0] + uint64(len(n.text)) + n.left.sum() + n.right.sum()
}

const (
	kept   = 64 // live trees of a goroutine
	levels = 7  // levels of a tree, for 127 nodes and 64 texts
	often  = 16 // one operation in 16 replaces a live tree
)

// Serve prepares a goroutine's live trees and returns its operation, which makes a tree,
// reads it and drops it. One tree in 16 replaces a live one instead.
func Serve() (operation func()) {
	live := make([]*node, kept)
	for i := range live {
		live[i] = tree(levels, uint64(i))
	}
	var n, sum uint64
	return func() {
		made := tree(levels, n)
		if sum += made.sum(); n%often == 0 {
			live[n/often%kept] = made
		}
		n++
		runtime.KeepAlive(live)
	}
}

// Ballast allocates the given number of bytes and returns a function that releases
// them. The bytes are never touched, so they count as live heap without using memory.
func Ballast(bytes int) (release func()) {
	ballast := make([]byte, bytes)
	return func() { runtime.KeepAlive(ballast) }
}
