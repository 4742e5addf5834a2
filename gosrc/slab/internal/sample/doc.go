// Package sample wraps a small C library with package slab, for examples and tests that
// call C. Test files cannot use cgo themselves.
package sample
