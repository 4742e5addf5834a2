//go:build !go1.20
// +build !go1.20

package rates

const hasClasses = false

func gcCPU() float64 { return 0 }
