package blocksall

// Cases 25 to 27 were written by another hand, who knew the documents of the rules alone.

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Case 25 (harm): the finalizer has a function run on the main thread, and waits until it has run.

var otherMain = make(chan func())

func otherOnMain(do func()) {
	done := make(chan struct{})
	otherMain <- func() {
		do()
		close(done)
	}
	<-done
}

type otherTexture struct {
	name string
	id   uint32
}

var otherDeleted atomic.Int64

func newOtherTexture(name string, id uint32) *otherTexture {
	t := &otherTexture{name, id}
	runtime.SetFinalizer(t, (*otherTexture).finalize) // want "one stops all"
	return t
}

func (t *otherTexture) finalize() {
	otherOnMain(func() { otherDeleted.Add(int64(t.id)) })
}

// Case 26 (harmless): the finalizer sends if there is room, and counts if there is none.

var otherPending = make(chan uint32, 64)

var otherLeaked atomic.Int64

type otherQuery struct {
	name string
	id   uint32
}

func newOtherQuery(name string, id uint32) *otherQuery {
	q := &otherQuery{name, id}
	runtime.SetFinalizer(q, func(q *otherQuery) {
		select {
		case otherPending <- q.id:
		default:
			otherLeaked.Add(1)
		}
	})
	return q
}

// Case 27 (harmless): the cleanup locks the mutex of a pool in a goroutine of its own.

type otherPool struct {
	mu   sync.Mutex
	free []int
}

func (p *otherPool) put(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, fd)
}

type otherLease struct {
	pool *otherPool
	fd   int
}

func (p *otherPool) lease(fd int) *otherLease {
	l := &otherLease{p, fd}
	runtime.AddCleanup(l, func(fd int) { go p.put(fd) }, fd)
	return l
}
