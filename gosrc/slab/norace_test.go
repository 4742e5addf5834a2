//go:build !race

package slab_test

const racing = false
