// Package copies is for vet to find the copy of a pool.
package copies

import "example.org/gccost/slab"

func copied(p *slab.Pool[uintptr]) {
	q := *p
	q.Flush()
}
