package nottheobject

import "runtime"

// Cases 24 ff. are counterparts of a case of other.go that the rule had missed.

// Case 24 (harm): a variable has the address of a field that is not the first.

func newMendedField() *nested {
	x := new(nested)
	part := &x.in
	runtime.SetFinalizer(part, freePair) // want "not the object"
	return x
}

// Case 25 (harmless): a variable has the address of the first element.

func newMendedFirst() *pair {
	all := make([]pair, 1)
	first := &all[0]
	runtime.SetFinalizer(first, freePair)
	return first
}

// Case 26 (harmless): the caller may have given an object of its own.

func newMendedGiven(all []pair, x *pair) *pair {
	if x == nil {
		x = &all[1]
		return x
	}
	runtime.SetFinalizer(x, freePair)
	return x
}
