//go:build !linux
// +build !linux

package signing

var yield func()
