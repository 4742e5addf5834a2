// Package messages measures DataDog/zstd with slabs of its own; see gosrc/libraries/native.
package messages

import (
	"bytes"
	"io"
	"testing"

	datadog "github.com/DataDog/zstd"

	"example.org/gccost/libraries/zstd"
)

// native skips a test of a build without the changes of slabs.diff.
func native(t testing.TB) {
	if _, ok := datadog.NewCtx().(io.Closer); !ok {
		t.Skip("build it as go doc ./native says")
	}
}

// BenchmarkMessagesNative leaves each context to the library's slabs.
func BenchmarkMessagesNative(b *testing.B) {
	native(b)
	zstd.Bench(b, zstd.Dropped)
}

// BenchmarkMessagesNativeClosed closes each context.
func BenchmarkMessagesNativeClosed(b *testing.B) {
	native(b)
	zstd.Bench(b, zstd.Closed)
}

// TestMessagesSurvive tests that contexts live as long as they are used.
func TestMessagesSurvive(t *testing.T) {
	native(t)
	for _, message := range zstd.Messages(500) {
		for _, how := range []string{zstd.Dropped, zstd.Closed} {
			sent, err := zstd.Send(message, how)
			if err != nil {
				t.Fatal(err)
			}
			got, err := datadog.Decompress(nil, sent)
			if err != nil || !bytes.Equal(got, message) {
				t.Fatalf("%s: %q became %q: %v", how, message, got, err)
			}
		}
	}
}
