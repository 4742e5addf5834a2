//go:build go1.24

package parallel

import (
	"testing"

	"gccost/cstr"
)

func init() { operations["Cleanup"] = cleanup }

func cleanup() { cstr.AllocateCleanup() }

func BenchmarkParallelCleanup(b *testing.B) { shared(b, cleanup) }
