// Package specials times the call of SetFinalizer, AddCleanup or Stop alone, on
// objects that were allocated beforehand, by where they lie in their spans.
//
// The runtime carves its heap into spans, each a page or more of equal slots. What
// has a finalizer or a cleanup has a record, a special, in its span's list, which
// is sorted by address; a call finds the place by walking the list from the start.
// So what a call costs may depend on how many records stand before its own, and
// the order in which objects are registered decides that.
//
// It serves the claims M8, X1, X2, X5 and X10: how much a record on the way costs,
// what happens when many handles live, why AddCleanup looks cheaper than a
// finalizer, and how long the lists are in programs that do something else as well.
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
	Shuffled   Order = "shuffled"   // at random within the span
	Descending Order = "descending" // the last first
)

// Orders are all of them.
var Orders = []Order{Ascending, Shuffled, Descending}

// Arrange puts the objects of a span, sorted by address, into an order.
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

// Spans sorts n objects or more by address, and groups them by their spans, which
// must be a page each. Spans that hold other objects too are left out; of the last
// span it takes what makes n. It fails if the rest are fewer than n.
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
		return nil, fmt.Errorf("%d objects too few lie in spans of their own", n)
	}
	return spans, nil
}

// PageOf tells the page that an object lies in.
func PageOf(object unsafe.Pointer) uintptr { return uintptr(object) / Page }

// Stride is the median distance in bytes between an address and the next, of
// those that lie in one page; 0 if no two do.
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
