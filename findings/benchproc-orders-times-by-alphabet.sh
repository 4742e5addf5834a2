#!/usr/bin/env bash
# `@num` of x/perf's benchproc, and so of benchstat, orders sizes by value, and times and releases by alphabet.
#
# golang.org/x/perf of 8 September 2026. Believed: `-row /wait@num` puts 3us before 20ms before 1s, since
# @num knows units (8KiB is before 2MiB), and `-col go@num` puts go1.9 before go1.10. Seen: 1s, 20ms, 3us, and
# go1.10, go1.27, go1.9. Neither is a number to it, so it falls back to the alphabet and does not say so.
# What to do: give keys plain numbers (wait-ns=3000, go=1.09), or list the order: /wait@(3us 20ms 1s).
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod GODEBUG= GOEXPERIMENT=

cat >go.mod <<'END'
module finding

go 1.24

require golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"
)

// ordered prints values of the key /x in the order of a projection.
func ordered(projection string, values ...string) {
	var parser benchproc.ProjectionParser
	filter, err := benchproc.NewFilter("*")
	if err != nil {
		panic(err)
	}
	projected, err := parser.Parse(projection, filter)
	if err != nil {
		panic(err)
	}
	text := ""
	for _, value := range values {
		text += "BenchmarkB/x=" + value + " 1 1 ns/op\n"
	}
	reader := benchfmt.NewReader(strings.NewReader(text), "results")
	var keys []benchproc.Key
	for reader.Scan() {
		keys = append(keys, projected.Project(reader.Result().(*benchfmt.Result)))
	}
	benchproc.SortKeys(keys)
	fmt.Println(projection, keys)
}

func main() {
	ordered("/x@num", "1GiB", "2MiB", "8KiB", "512")
	ordered("/x@num", "1s", "3us", "20ms")
	ordered("/x@num", "go1.27", "go1.9", "go1.10")
	ordered("/x@(3us 20ms 1s)", "1s", "3us", "20ms")
}
END
diff - <(go run . 2>/dev/null) <<'END'
/x@num [/x:512 /x:8KiB /x:2MiB /x:1GiB]
/x@num [/x:1s /x:20ms /x:3us]
/x@num [/x:go1.10 /x:go1.27 /x:go1.9]
/x@(3us 20ms 1s) [/x:3us /x:20ms /x:1s]
END
echo "as stated"
