#!/usr/bin/env bash
# x/perf's benchmath.NewSample sorts the slice that it is given: pairs of measurements come apart.
#
# golang.org/x/perf of 8 September 2026. Believed: it copies; its documentation says that a sample's own
# Values are in ascending order. Seen: they are the caller's slice, which is in another order afterwards.
# With paired measurements (the same round with and without a change), the differences are then those
# of unrelated rounds: pairs that differ by 21, -19 and 1 differ by 1 each afterwards.
# What to do: NewSample(slices.Clone(values), …).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod GODEBUG= GOEXPERIMENT=

cat >go.mod <<'END'
module finding

go 1.25.0

require golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da
END
cat >main.go <<'END'
package main

import (
	"fmt"

	"golang.org/x/perf/benchmath"
)

func main() {
	before := []float64{10, 30, 20}
	after := []float64{31, 11, 21}
	show := func() {
		for i := range before {
			fmt.Print(after[i]-before[i], " ")
		}
		fmt.Println()
	}
	show()
	benchmath.NewSample(before, &benchmath.DefaultThresholds)
	benchmath.NewSample(after, &benchmath.DefaultThresholds)
	show()
}
END
go mod tidy 2>/dev/null
diff - <(go run .) <<'END'
21 -19 1 
1 1 1 
END
echo "as stated"
