// Package specials times single calls of SetFinalizer, AddCleanup and Stop on objects
// that were allocated beforehand, depending on their position in their spans.
//
// The runtime divides its heap into spans: one or more pages of slots of equal size.
// Each finalizer or cleanup has a record, a special, in its span's list, which is sorted
// by address. A call walks the list from the start to the insertion point. So the cost of
// a call may depend on the number of records before its own, and that number depends on
// the order in which objects are registered.
//
// The package serves the claims M8, X1, X2, X5 and X10: what each record on the way costs,
// what happens with many live handles, why AddCleanup looks cheaper than a finalizer, and
// how long the lists are in programs that allocate other objects as well.
package specials

import (
	"fmt"
	"math/rand"
	"sort"
	"unsafe"
)

// Page is the size of the runtime's pages. A span of small objects is one page,
// so objects share a span if they share a page.
const Page = 8192

// Order is the order in which the objects of a span are registered.
type Order string

const (
	Ascending  Order = "ascending"  // by address, as a loop allocates them
	Shuffled   Order = "shuffled"   // random within the span
	Descending Order = "descending" // by address, the last object first
)

// Orders lists all orders.
var Orders = []Order{Ascending, Shuffled, Descending}

// Arrange reorders the objects of a span, which must be sorted by address.
func (o Order) Arrange(span []unsafe.Pointer, draw *rand.Rand) {
	swap := func(i, j int) { span[i], span[j] = span[j], span[i] }
	switch o {
	case Descending:
		for i, j := 0, len(span)-1; i < j; i, j = i+1, j-1 {
			swap(i, j)
		}
	case Shuffled:
		draw.Shuffle(len(span), swap)
	}
}

// Spans sorts objects by address and returns n of them, grouped by span. Each span must be
// one page. Spans that also hold other objects are left out, and the last span is cut short
// to give exactly n objects. Spans returns an error if too few objects remain.
func Spans(objects []unsafe.Pointer, n int) ([][]unsafe.Pointer, error) {
	sort.Slice(objects, func(i, j int) bool { return uintptr(objects[i]) < uintptr(objects[j]) })
	var pages [][]unsafe.Pointer
	most := 0
	for from, i := 0, 1; i <= len(objects); i++ {
		if i == len(objects) || PageOf(objects[i]) != PageOf(objects[from]) {
			pages = append(pages, objects[from:i])
			if i-from > most {
				most = i - from
			}
			from = i
		}
	}
	var spans [][]unsafe.Pointer
	for _, page := range pages {
		if n > 0 && len(page) == most {
			if len(page) > n {
				page = page[:n]
			}
			spans = append(spans, page)
			n -= len(page)
		}
	}
	if n > 0 {
		return nil, fmt.Errorf("too few objects in unshared spans: %d more needed", n)
	}
	return spans, nil
}

// PageOf returns the number of the page that contains an object.
func PageOf(object unsafe.Pointer) uintptr { return uintptr(object) / Page }

// Stride returns the median distance in bytes between consecutive ascending addresses in
// the same page, or 0 if there are none.
func Stride(addresses []uintptr) uintptr {
	var steps []uintptr
	for i := 1; i < len(addresses); i++ {
		if addresses[i] > addresses[i-1] && addresses[i]/Page == addresses[i-1]/Page {
			steps = append(steps, addresses[i]-addresses[i-1])
		}
	}
	if len(steps) == 0 {
		return 0
	}
	sort.Slice(steps, func(i, j int) bool { return steps[i] < steps[j] })
	return steps[len(steps)/2]
}
