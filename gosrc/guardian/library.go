package guardian

/*
#include "guardian.h"
*/
import "C"

import (
	"errors"
	"sync/atomic"

	"gccost/meter"
)

var (
	ErrClosed = errors.New("guardian: the block is closed")
	ErrFailed = errors.New("guardian: the C library failed")
)

// New returns a new C block.
func New() *Block {
	b := new(Block)
	b.adopt(C.block_new())
	return b
}

func check(status C.int) error {
	if status != 0 {
		return ErrFailed
	}
	return nil
}

// Count returns how many blocks the C side has allocated and freed so far.
func Count() meter.Blocks {
	n := C.block_count()
	return meter.Blocks{Allocated: int64(n.allocated), Freed: int64(n.freed), Misfreed: int64(n.misfreed)}
}

// What the C side does in tests.
const (
	freeFails = C.BLOCK_FREE_FAILS
	freeCalls = C.BLOCK_FREE_CALLS
	useCalls  = C.BLOCK_USE_CALLS
)

var callback atomic.Value // of func()

//export guardianCallback
func guardianCallback() { callback.Load().(func())() }

// with calls f while the C side does something for a test.
func with(how int, called func(), f func()) {
	callback.Store(called)
	C.block_test(C.int(how))
	defer C.block_test(0)
	f()
}
