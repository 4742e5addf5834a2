package nottheobject

// Cases 11 to 13 were written before the rules had seen them.

import "runtime"

type nested struct {
	before int
	in     pair
	other  *pair
}

// Case 11 (harm): the first field of a field that is not the first.

func newNested() *nested {
	x := new(nested)
	runtime.SetFinalizer(&x.in.first, freeField) // want "not the object"
	return x
}

// Case 12 (harmless): the start of another object, which a field points to.

func newOther() *nested {
	x := &nested{other: new(pair)}
	runtime.SetFinalizer(&x.other.first, freeField)
	return x
}

// Case 13 (harmless): two different cleanups of one object.

func newTwoCleanups() *pair {
	x := new(pair)
	runtime.AddCleanup(x, count, "pairs")
	runtime.AddCleanup(x, count, "objects")
	return x
}
