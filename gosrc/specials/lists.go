package specials

import (
	"sync/atomic"
	"unsafe"
)

// smallest is the size of the smallest objects with pointers.
const smallest = unsafe.Sizeof(uintptr(0))

// Lists keeps account of the records in the lists of all spans, as the runtime
// does, for a program that cannot look into it: one goroutine adds, any may drop.
type Lists struct {
	pages map[uintptr]*[Page / smallest]int32
}

// NewLists returns an account of no records.
func NewLists() *Lists { return &Lists{map[uintptr]*[Page / smallest]int32{}} }

// Add notes that an object got a record. It returns how many records the walk
// passed, and how many the list held, before. [Drop] takes what it returns last.
func (l *Lists) Add(object unsafe.Pointer) (passed, held int, record *int32) {
	slots := l.pages[PageOf(object)]
	if slots == nil {
		slots = new([Page / smallest]int32)
		l.pages[PageOf(object)] = slots
	}
	own := uintptr(object) % Page / smallest
	for i := range slots {
		n := int(atomic.LoadInt32(&slots[i]))
		held += n
		// One of the same object and kind stands before as well.
		if uintptr(i) <= own {
			passed += n
		}
	}
	atomic.AddInt32(&slots[own], 1)
	return passed, held, &slots[own]
}

// Drop notes that a record is gone.
func Drop(record *int32) { atomic.AddInt32(record, -1) }
