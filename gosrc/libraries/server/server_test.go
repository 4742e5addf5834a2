package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"example.org/gccost/libraries/loop"
)

const files = 100

// start serves a folder of files until the test ends.
func start(tb testing.TB) (address string) {
	folder := tb.TempDir()
	for i := 0; i < files; i++ {
		if err := os.WriteFile(filepath.Join(folder, name(i)), make([]byte, Size), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Skip("cannot listen on loopback: ", err)
	}
	ended := make(chan error)
	go func() { ended <- Serve(listener, folder) }()
	tb.Cleanup(func() {
		listener.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			tb.Error(err)
		}
	})
	return listener.Addr().String()
}

func name(i int) string { return fmt.Sprintf("file%d", i%files) }

func ask(tb testing.TB, address string, i int) {
	n, err := Ask(address, name(i))
	if err != nil {
		tb.Fatal(err)
	}
	if n != Size {
		tb.Fatalf("received %d bytes of %s, want %d", n, name(i), Size)
	}
}

// BenchmarkServer requests one file after another; client and server share this process.
func BenchmarkServer(b *testing.B) {
	address := start(b)
	loop.Run(b, func(i int) { ask(b, address, i) })
}

// TestServer tests that every request gets the whole file.
func TestServer(t *testing.T) {
	address := start(t)
	for i := 0; i < 2*files; i++ {
		ask(t, address, i)
	}
}
