// Package nottheobject has ten planted cases: five that harm, five that look alike.
package nottheobject

import "runtime"

type pair struct {
	first  [4]*int
	second [4]*int
}

func freeField(*[4]*int) {}
func freePair(*pair)     {}
func count(string)       {}

// Case 1 (harm): a field that is not the first.

func newSecond() *pair {
	x := new(pair)
	runtime.SetFinalizer(&x.second, freeField) // want "not the object"
	return x
}

// Case 2 (harmless): the first field has the object's address.

func newFirst() *pair {
	x := new(pair)
	runtime.SetFinalizer(&x.first, freeField)
	return x
}

// Case 3 (harm): an element that is not the first.

func newElement(n int) []pair {
	all := make([]pair, n)
	for i := range all {
		runtime.AddCleanup(&all[i], count, "pair") // want "not the object"
	}
	return all
}

// Case 4 (harmless): the first element of a slice that was made here.

func newSlice(n int) []pair {
	all := make([]pair, n)
	runtime.SetFinalizer(&all[0], freePair)
	return all
}

// Case 5 (harm): a package variable is never freed.

var global pair

func init() {
	runtime.AddCleanup(&global, count, "global") // want "not the object"
}

// Case 6 (harmless): a local variable of the same name.

func newLocal() *pair {
	global := new(pair)
	runtime.SetFinalizer(global, freePair)
	return global
}

// Case 7 (harm): twice.

func newTwice() *pair {
	x := new(pair)
	runtime.SetFinalizer(x, freePair)
	x.first[0] = new(int)
	runtime.SetFinalizer(x, func(x *pair) { freePair(x) }) // want "not the object"
	return x
}

// Case 8 (harmless): one on each path.

func newEither(counted bool) *pair {
	x := new(pair)
	if counted {
		runtime.SetFinalizer(x, func(x *pair) { freePair(x); count("pair") })
	} else {
		runtime.SetFinalizer(x, freePair)
	}
	return x
}

// Case 9 (harm): a constructor registers what another one has registered.

func newBase() *pair {
	x := new(pair)
	runtime.SetFinalizer(x, freePair)
	return x
}

func newDerived() *pair {
	x := newBase()
	runtime.SetFinalizer(x, func(x *pair) { freePair(x) }) // want "not the object"
	return x
}

// Case 10 (harmless): the first one is cleared before the second.

func newAgain() *pair {
	x := newBase()
	runtime.SetFinalizer(x, nil)
	runtime.SetFinalizer(x, func(x *pair) { freePair(x) })
	return x
}
