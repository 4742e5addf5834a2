//go:build go1.24

package guardian

import "testing"

func init() { ways["cleanup"] = byCleanup }

func BenchmarkWrapperCleanup(b *testing.B) { over(b, byCleanup, forgotten) }

func BenchmarkWrapperSharedCleanup(b *testing.B) { over(b, byCleanup, shared) }

func BenchmarkWrapperBurstCleanup(b *testing.B) { over(b, byCleanup, burst) }

func BenchmarkWrapperLivesCleanup(b *testing.B) { over(b, byCleanup, replaced) }
