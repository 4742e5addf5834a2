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

// Add notes that an object got a record, which [Drop] takes away again.
func (l *Lists) Add(object unsafe.Pointer) (record *int32) {
	slots := l.pages[PageOf(object)]
	if slots == nil {
		slots = new([Page / smallest]int32)
		l.pages[PageOf(object)] = slots
	}
	record = &slots[uintptr(object)%Page/smallest]
	atomic.AddInt32(record, 1)
	return record
}

// Count tells how many records a walk to an object's passes, and how many the list
// of its span holds.
func (l *Lists) Count(object unsafe.Pointer) (passed, held int) {
	slots := l.pages[PageOf(object)]
	if slots == nil {
		return 0, 0
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
	return passed, held
}

// Drop notes that a record is gone.
func Drop(record *int32) { atomic.AddInt32(record, -1) }
