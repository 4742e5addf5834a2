#!/usr/bin/env bash
# Since Go 1.25 `go build -gcflags=-m` says "does not escape" of a slice that is allocated on the heap.
#
# Go 1.24.13 to 1.27.4. Believed: what does not escape is on the stack. Seen: make([]byte, n) with a
# length known at run time "escapes to heap" on 1.24, and always allocates. From 1.25 on it "does not
# escape": up to 32 bytes it costs no allocation, and with 33 it costs one.
# What to do: trust allocs/op, not -m.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS= GODEBUG= GOEXPERIMENT=

cat >go.mod <<'END'
module finding

go 1.24
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"testing"
)

var sum byte

//go:noinline
func use(n int) {
	b := make([]byte, n)
	b[0] = 1
	sum += b[n-1]
}

func main() {
	for _, n := range []int{16, 32, 33} {
		fmt.Printf("%d bytes: %v\n", n, testing.AllocsPerRun(100, func() { use(n) }))
	}
}
END
show() {
	export GOTOOLCHAIN=go$1
	echo "$1"
	go build -gcflags=-m . 2>&1 | sed -n 's/^.*: \(make(\[\]byte, n)\)/\1/p'
	go run .
}
diff - <(for release in 1.24.13 1.25.14 1.26.11 1.27.4; do show $release; done) <<'END'
1.24.13
make([]byte, n) escapes to heap
16 bytes: 1
32 bytes: 1
33 bytes: 1
1.25.14
make([]byte, n) does not escape
16 bytes: 0
32 bytes: 0
33 bytes: 1
1.26.11
make([]byte, n) does not escape
16 bytes: 0
32 bytes: 0
33 bytes: 1
1.27.4
make([]byte, n) does not escape
16 bytes: 0
32 bytes: 0
33 bytes: 1
END
echo "as stated"
