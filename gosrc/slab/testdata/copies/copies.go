// Package copies copies a pool, which vet must report.
package copies

import "example.org/gccost/slab"

func copied(p *slab.Pool[uintptr]) {
	q := *p
	q.Flush()
}
