#!/usr/bin/env bash
# Closing a wazero runtime or module does not unmap its machine code: a finalizer does, later.
#
# wazero 1.12.0, Go 1.27.4, linux/amd64. Believed: Close of a CompiledModule "releases all the allocated resources"
# (its documentation), and that of a runtime closes "everything this Runtime created". Seen: after either Close the
# executable pages of 50 modules are still mapped, and only a collection frees them. A CompiledModule that is
# dropped and not closed is not even freed by one while its runtime is in use, because the runtime has it in a
# table. These pages are no Go memory, so they bring no collection nearer.
# What to do: close both, and call runtime.GC() after many modules.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod GODEBUG= GOEXPERIMENT= GOGC=off

cat >go.mod <<'END'
module finding

go 1.24

require github.com/tetratelabs/wazero v1.12.0
END
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
)

// module returns a module with a function that returns n: for each n another one.
func module(n byte) []byte {
	return []byte{
		0, 'a', 's', 'm', 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7f, 3, 2, 1, 0,
		7, 5, 1, 1, 'f', 0, 0, 10, 6, 1, 4, 0, 0x41, n, 0x0b,
	}
}

// mapped prints whether executable memory without a file is mapped, more than 100 KiB.
func mapped(when string) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	bytes := 0
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) == 5 && strings.Contains(fields[1], "x") {
			var from, to int
			fmt.Sscanf(fields[0], "%x-%x", &from, &to)
			bytes += to - from
		}
	}
	fmt.Println(when, bytes > 100<<10)
}

func collect() {
	for range 5 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
}

func compile(r wazero.Runtime, use func(wazero.CompiledModule)) {
	for n := range 50 {
		m, err := r.CompileModule(context.Background(), module(byte(n)))
		if err != nil {
			panic(err)
		}
		use(m)
	}
}

func main() {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	compile(r, func(m wazero.CompiledModule) { m.Close(ctx) })
	mapped("modules closed:")
	collect()
	mapped("modules closed and collected:")
	compile(r, func(wazero.CompiledModule) {})
	collect()
	mapped("modules dropped and collected:")
	r.Close(ctx)
	mapped("runtime closed:")
	collect()
	mapped("runtime closed and collected:")
	runtime.KeepAlive(r)
}
END
diff - <(go run . 2>/dev/null) <<'END'
modules closed: true
modules closed and collected: false
modules dropped and collected: true
runtime closed: true
runtime closed and collected: false
END
echo "as stated"
