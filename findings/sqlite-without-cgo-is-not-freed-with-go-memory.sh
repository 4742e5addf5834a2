#!/usr/bin/env bash
# A connection of ncruces/go-sqlite3 that is dropped without Close is never freed, although the package
# is Go alone: its memory is no Go memory, and nothing is registered that frees it. Its files are closed.
#
# go-sqlite3 0.37.0 (SQLite by wasm2go), Go 1.27.4, Linux. Believed: what has no C is freed by Go's
# collector. Seen: 50 dropped connections with 4 MB each in tables leave over 200 MiB resident and 256 MiB
# of address space each for ever, after FreeOSMemory, while the heap has under 10 MiB: GOMEMLIMIT and GOGC
# do not see them. Of 50 on files, the file descriptors come back: os.File has a finalizer.
# What to do: Close, as with cgo.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod GODEBUG= GOEXPERIMENT= CGO_ENABLED=0

cat >go.mod <<'END'
module finding

go 1.26.0

require github.com/ncruces/go-sqlite3 v0.37.0
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// resident returns the memory of the process in MiB; it collects first.
func resident() (mib int) {
	for range 4 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(rest, &mib)
		}
	}
	return mib >> 10
}

func open(path string) *sqlite3.Conn {
	c, err := sqlite3.Open(path)
	check(err)
	check(c.Exec("create table t(x); insert into t select zeroblob(1000000) from (values (1),(2),(3),(4))"))
	return c
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func files() int {
	open, err := os.ReadDir("/proc/self/fd")
	check(err)
	return len(open)
}

func main() {
	open(":memory:").Close()
	before := resident()
	for range 50 {
		open(":memory:").Close()
	}
	fmt.Println("closed, over 100 MiB stay:", resident()-before > 100)
	for range 50 {
		open(":memory:")
	}
	fmt.Println("dropped, over 200 MiB stay:", resident()-before > 200)
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println("Go's own memory is over 10 MiB:", stats.HeapAlloc > 10<<20)
	had := files()
	for i := range 50 {
		open(fmt.Sprintf("%d.db", i))
	}
	resident()
	fmt.Println("files that stay open:", files()-had)
}
END
go mod tidy 2>/dev/null
diff - <(go run .) <<'END'
closed, over 100 MiB stay: false
dropped, over 200 MiB stay: true
Go's own memory is over 10 MiB: false
files that stay open: 0
END
echo "as stated"
