//go:build !race

package slab_test

const raced = false
