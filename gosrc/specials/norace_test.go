//go:build !race

package specials

const racing = false
