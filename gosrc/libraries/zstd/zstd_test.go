package zstd

import (
	"bytes"
	"testing"

	zstd "github.com/DataDog/zstd"
)

// BenchmarkMessagesDropped leaves each context to its finalizer.
func BenchmarkMessagesDropped(b *testing.B) { Bench(b, Dropped) }

// BenchmarkMessagesClosed frees each context manually.
func BenchmarkMessagesClosed(b *testing.B) { Bench(b, Closed) }

// BenchmarkMessagesSlab leaves the contexts to slabs.
func BenchmarkMessagesSlab(b *testing.B) { Bench(b, Adopted) }

// BenchmarkMessagesReused uses one context for all messages, as the library recommends.
func BenchmarkMessagesReused(b *testing.B) {
	ctx := zstd.NewCtx()
	bench(b, func(message []byte) ([]byte, error) { return ctx.Compress(nil, message) })
}

// TestMessagesSurvive tests that a compressed message decompresses to the original,
// whichever way its context is freed.
func TestMessagesSurvive(t *testing.T) {
	for _, message := range Messages(50) {
		for _, how := range []string{Dropped, Closed, Adopted} {
			sent, err := Send(message, how)
			if err != nil {
				t.Fatal(err)
			}
			got, err := zstd.Decompress(nil, sent)
			if err != nil || !bytes.Equal(got, message) {
				t.Fatalf("%s: %q became %q: %v", how, message, got, err)
			}
		}
	}
}
