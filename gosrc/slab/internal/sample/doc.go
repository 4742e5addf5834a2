// Package sample wraps a small C library with package slab, for examples and tests that
// call C. A file of tests cannot do so itself.
package sample
