#!/usr/bin/env bash
# A Go benchmark in wazero, with its default settings, reports how often the clock was read.
#
# wazero 1.12.0, a guest of Go 1.27.4 (wasip1). Believed: the guest has the host's clock, or none. Seen:
# each reading of the clock is 1 ms after the one before, from 2022-01-01 on. So an empty loop of 1,000
# operations and one that adds a thousand numbers in each take 1000 ns/op, an hour's sleep returns at
# once, and the garbage collector's pauses are whole milliseconds.
# What to do: WithSysNanotime(), WithSysWalltime() and WithSysNanosleep() in the module's configuration.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod GODEBUG= GOEXPERIMENT=

cat >go.mod <<'END'
module finding

go 1.25.0

require github.com/tetratelabs/wazero v1.12.0
END
mkdir guest
cat >guest/main.go <<'END'
package main

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var sum int

func main() {
	fmt.Println(time.Now().UTC().Year())
	testing.Init()
	flag.Set("test.benchtime", "1000x")
	fmt.Println(testing.Benchmark(func(b *testing.B) {
		for i := 0; i < b.N; i++ {
		}
	}).NsPerOp(), "ns/op")
	fmt.Println(testing.Benchmark(func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			for j := range 1000 {
				sum += j
			}
		}
	}).NsPerOp(), "ns/op")
	begin := time.Now()
	time.Sleep(time.Hour)
	fmt.Println("slept an hour:", time.Since(begin) >= time.Hour)
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println("pauses beyond whole milliseconds:", stats.PauseTotalNs%1e6, "ns")
}
END
cat >main.go <<'END'
package main

import (
	"context"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func main() {
	code, err := os.ReadFile("guest.wasm")
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	c := wazero.NewModuleConfig().WithStdout(os.Stdout)
	if _, err := r.InstantiateWithConfig(ctx, code, c); err != nil {
		panic(err)
	}
}
END
go mod tidy 2>/dev/null
GOOS=wasip1 GOARCH=wasm go build -o guest.wasm ./guest
SECONDS=0
diff - <(go run .) <<'END'
2022
1000 ns/op
1000 ns/op
slept an hour: true
pauses beyond whole milliseconds: 0 ns
END
((SECONDS < 600)) # of an hour's sleep
echo "as stated"
