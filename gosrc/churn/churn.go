// Package churn does what a server does to the GC: a small live heap that lasts,
// and much garbage that does not. It has the ways to give the GC less to do that
// need code: a ballast, and a tuner that a finalizer drives.
//
// It serves chapter 04 beside C5 to C7 (Cloudflare): what a tuned GOGC gains today.
package churn

import "runtime"

// node is what a request is made of: a few words, among them pointers.
type node struct {
	left, right *node
	value       [4]uint64
	text        []byte
}

// tree makes a tree of so many levels, with a text at each leaf.
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
	kept   = 64 // trees that a goroutine holds
	levels = 7  // of a tree: 127 nodes, 64 texts
	often  = 16 // operations of which one replaces a tree that is held
)

// Serve prepares a goroutine whose operation makes a tree, reads it and drops it;
// now and then the tree replaces one that the goroutine holds.
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

// Ballast allocates so many bytes and returns what gives them up again. They are
// never touched, so that they count as live heap and take no memory.
func Ballast(bytes int) (release func()) {
	ballast := make([]byte, bytes)
	return func() { runtime.KeepAlive(ballast) }
}
