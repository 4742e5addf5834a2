package expensivesize

// Cases 13 and 14 were written by another hand, who knew the documents of the rules alone.

import (
	"os"
	"runtime"
)

// Case 13 (harm, not checked at first): a generic helper registers the finalizer on an object of 8 bytes.

type otherRegexp struct {
	file *os.File
}

func otherOwned[T any](object *T, release func(*T)) *T {
	runtime.SetFinalizer(object, release) // want "expensive size"
	return object
}

func newOtherRegexp(file *os.File) *otherRegexp {
	return otherOwned(&otherRegexp{file}, func(r *otherRegexp) { r.file.Close() })
}

// Case 14 (harmless): a cleanup, not a finalizer, on an object of 8 bytes. Of the
// prices that were recorded it is not expensive; of the made-up ones of the test it is.

type otherMatcher struct {
	file *os.File
}

func newOtherMatcher(file *os.File) *otherMatcher {
	m := &otherMatcher{file}
	runtime.AddCleanup(m, func(file *os.File) { file.Close() }, file) // want "expensive size"
	return m
}
