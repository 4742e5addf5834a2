#!/usr/bin/env bash
# GOMEMLIMIT=0 does not mean "no limit": the collector runs hundreds of times for a MiB.
#
# Go 1.24.13 to 1.27.4. Believed: 0 turns a limit off, as in `ulimit`, systemd and Docker. Seen: a program that
# allocates 1 MiB in pieces of 1 KiB makes no collection by default, and 400 to 1,000 with GOMEMLIMIT=0,
# with GOGC=off too. "off" is the word for no limit. A negative GOGC does turn the collector off.
# What to do: unset it, or write GOMEMLIMIT=off.
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
	"runtime"
)

var garbage []byte

func main() {
	for range 1 << 10 {
		garbage = make([]byte, 1<<10)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if stats.NumGC > 100 {
		fmt.Println("over 100 collections")
	} else {
		fmt.Println(stats.NumGC, "collections")
	}
}
END
for release in 1.24.13 1.25.14 1.26.11 1.27.4; do
	GOTOOLCHAIN=go$release go build -o program .
	diff - <(env -u GOGC -u GOMEMLIMIT ./program
		env -u GOGC GOMEMLIMIT=off ./program
		env -u GOGC GOMEMLIMIT=0 ./program
		GOGC=off GOMEMLIMIT=0 ./program
		env -u GOMEMLIMIT GOGC=-1 ./program) <<'END'
0 collections
0 collections
over 100 collections
over 100 collections
0 collections
END
done
echo "as stated"
