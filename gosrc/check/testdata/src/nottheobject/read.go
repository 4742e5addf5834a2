package nottheobject

import "runtime"

// Cases 14 ff. have the shape of what a reader of public code found that the rule had missed, and
// of their harmless counterparts.

// Case 14 (harm): the variable that holds the pointer, with a function of another type.

func newVariable() *pair {
	x := new(pair)
	runtime.SetFinalizer(&x, func(*pair) { count("pair") }) // want "not the object: the runtime cannot pass"
	return x
}

// Case 15 (harm): the variable that holds the pointer, with its own type.

func newPointer() *pair {
	x := new(pair)
	runtime.SetFinalizer(&x, func(**pair) { count("pair") }) // want "not the object: &x is the variable"
	return x
}

// Case 16 (harmless): a pointer that was made to be pointed to.

func newCell(x *pair) **pair {
	cell := new(*pair)
	*cell = x
	runtime.SetFinalizer(cell, func(cell **pair) { freePair(*cell) })
	return cell
}

// Case 17 (harm): a function of two parameters.

func newTwoParameters() *pair {
	x := new(pair)
	runtime.SetFinalizer(x, func(*pair, int) {}) // want "not the object: the runtime cannot pass"
	return x
}

// Case 18 (harmless): an interface that the object has.

type freer interface{ free() }

func (x *pair) free() {}

func newFreer() *pair {
	x := new(pair)
	runtime.SetFinalizer(x, func(f freer) { f.free() })
	return x
}

// Case 19 (harm): the runtime accepts a finalizer on a tiny element, and waits for all of them.

func newNumbers() []int32 {
	all := make([]int32, 3)
	runtime.SetFinalizer(&all[1], func(*int32) {}) // want "not the object: the finalizer of an element .* runs when the whole object is dead"
	return all
}

// Case 20 (harmless): a constant is false, so that nothing is registered.

const guarded = false

func newUnguarded() *pair {
	x := new(pair)
	if guarded {
		runtime.SetFinalizer(&x.second, freeField)
	}
	return x
}
