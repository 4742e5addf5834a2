#!/usr/bin/env bash
# "Since Go 1.23 a timer or ticker that nobody holds is collected, stopped or not": only if the go
# line of the main module's go.mod says 1.23 or later, or the toolchain is 1.27.
#
# Go 1.24.13 to 1.27.4, of 100 dropped tickers and 100 dropped timers of an hour, after four
# collections. Believed: the toolchain decides. Seen: with `go 1.22` in go.mod 1.24 to 1.26 free none
# (and a timer's channel has a buffer of 1); with `go 1.23` all. 1.27, which has removed the setting
# asynctimerchan, frees all with either line.
# What to do: raise the go line, or stop timers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS= GODEBUG= GOEXPERIMENT=

cat >main.go <<'END'
package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

var freed atomic.Int64

func count(of *atomic.Int64) { of.Add(1) }

//go:noinline
func drop() {
	runtime.AddCleanup(time.NewTicker(time.Hour), count, &freed)
	runtime.AddCleanup(time.NewTimer(time.Hour), count, &freed)
}

func main() {
	for i := 0; i < 100; i++ {
		drop()
	}
	for i := 0; i < 4; i++ {
		runtime.GC()
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Println("freed", freed.Load(), "buffer", cap(time.NewTimer(time.Hour).C))
}
END
show() {
	for line in 1.22 1.23; do
		printf 'module finding\n\ngo %s\n' $line >go.mod
		# AddCleanup is generic, which any go line from 1.18 on allows.
		echo "$1, go $line: $(GOTOOLCHAIN=go$1 go run .)"
	done
}
diff - <(for release in 1.24.13 1.25.14 1.26.11 1.27.4; do show $release; done) <<'END'
1.24.13, go 1.22: freed 0 buffer 1
1.24.13, go 1.23: freed 200 buffer 0
1.25.14, go 1.22: freed 0 buffer 1
1.25.14, go 1.23: freed 200 buffer 0
1.26.11, go 1.22: freed 0 buffer 1
1.26.11, go 1.23: freed 200 buffer 0
1.27.4, go 1.22: freed 200 buffer 0
1.27.4, go 1.23: freed 200 buffer 0
END
echo "as stated"
