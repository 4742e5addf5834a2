package specials

import (
	"sync/atomic"
	"unsafe"
)

// smallest is the size of the smallest object that contains a pointer.
const smallest = unsafe.Sizeof(uintptr(0))

// Lists mirrors the lists of specials of all spans, which a program cannot read from the
// runtime. Only one goroutine may add records; any may drop them.
type Lists struct {
	pages map[uintptr]*[Page / smallest]int32
}

// NewLists returns empty Lists.
func NewLists() *Lists { return &Lists{map[uintptr]*[Page / smallest]int32{}} }

// Add counts a new record of an object. [Drop] removes it.
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

// Count returns the number of records that a walk to an object's insertion point passes,
// and the number in the whole list of its span.
func (l *Lists) Count(object unsafe.Pointer) (passed, held int) {
	slots := l.pages[PageOf(object)]
	if slots == nil {
		return 0, 0
	}
	own := uintptr(object) % Page / smallest
	for i := range slots {
		n := int(atomic.LoadInt32(&slots[i]))
		held += n
		// A new record goes before those of the same object and kind.
		if uintptr(i) < own {
			passed += n
		}
	}
	return passed, held
}

// Drop removes a record.
func Drop(record *int32) { atomic.AddInt32(record, -1) }
