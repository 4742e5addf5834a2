#!/usr/bin/env bash
# In CPU profiles of Go 1.27 runtime.mallocgc and runtime.newobject are hardly there: the compiler
# calls an allocator of the object's size class.
#
# Go 1.26.11 and 1.27.4, a program that does nothing but new(T). Believed: `pprof -focus
# runtime.mallocgc` gives the share of allocating. Seen: over half of the samples on 1.26; none on
# 1.27, where the functions are named runtime.mallocgcSmallScanNoHeaderSC3 and alike
# (GOEXPERIMENT=nosizespecializedmalloc brings the old name back).
# What to do: look for mallocgc without an end: `-focus 'runtime\.mallocgc'` matches both.
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
	"os"
	"runtime/pprof"
	"time"
)

type triple struct{ a, b, c *int }

var kept [1024]*triple

func main() {
	pprof.StartCPUProfile(os.Stdout)
	for start := time.Now(); time.Since(start) < time.Second; {
		for i := range 100000 {
			kept[i%len(kept)] = new(triple)
		}
	}
	pprof.StopCPUProfile()
}
END
profile() { # release, name
	GOTOOLCHAIN=go$1 go build -o program .
	./program >"$2"
	for name in 'runtime\.mallocgc$' 'runtime\.newobject$' 'runtime\.mallocgc'; do
		shown=$(GOTOOLCHAIN=go$1 go tool pprof -raw -focus "$name" program "$2" 2>/dev/null |
			sed -n '/^Samples:/,/^Locations/p' | grep -c '^ *[0-9][0-9]* *[0-9]' || true)
		if ((shown == 0)); then echo "$1 $name: none"; else echo "$1 $name: some"; fi
	done
}
diff - <(profile 1.26.11 old && profile 1.27.4 new &&
	GOEXPERIMENT=nosizespecializedmalloc profile 1.27.4 without) <<'END'
1.26.11 runtime\.mallocgc$: some
1.26.11 runtime\.newobject$: some
1.26.11 runtime\.mallocgc: some
1.27.4 runtime\.mallocgc$: none
1.27.4 runtime\.newobject$: none
1.27.4 runtime\.mallocgc: some
1.27.4 runtime\.mallocgc$: some
1.27.4 runtime\.newobject$: some
1.27.4 runtime\.mallocgc: some
END
echo "as stated"
