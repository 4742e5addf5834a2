//go:build !race

package remedies

const racing = false
