#!/usr/bin/env bash
# google/pprof's profile.Merge forgets the time of a profile if a later source has none, and its result
# shares sample types with its first source.
#
# github.com/google/pprof of 5 November 2026, whose documentation says that TimeNanos "will be the earliest
# nonzero one" and that the result is "independent of the input profiles". Seen: times 5 and 0 give 0
# (0 and 5 give 5); to rename a unit in the result renames it in the source.
# What to do: set TimeNanos yourself; Copy the result before changing it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS=-mod=mod GODEBUG= GOEXPERIMENT=

cat >go.mod <<'END'
module finding

go 1.25.0

require github.com/google/pprof v0.0.0-20261105003125-4bf881d7fb0b
END
cat >main.go <<'END'
package main

import (
	"fmt"

	"github.com/google/pprof/profile"
)

func taken(at int64) *profile.Profile {
	kind := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	work := &profile.Function{ID: 1, Name: "main.work"}
	place := &profile.Location{ID: 1, Line: []profile.Line{{Function: work}}}
	return &profile.Profile{
		TimeNanos: at, Period: 1, PeriodType: kind, SampleType: []*profile.ValueType{kind},
		Sample:   []*profile.Sample{{Location: []*profile.Location{place}, Value: []int64{10}}},
		Function: []*profile.Function{work}, Location: []*profile.Location{place},
	}
}

func merge(sources ...*profile.Profile) *profile.Profile {
	merged, err := profile.Merge(sources)
	if err != nil {
		panic(err)
	}
	return merged
}

func main() {
	fmt.Println(merge(taken(5), taken(7)).TimeNanos)
	fmt.Println(merge(taken(0), taken(5)).TimeNanos)
	fmt.Println(merge(taken(5), taken(0)).TimeNanos)
	first := taken(5)
	merge(first, taken(7)).SampleType[0].Unit = "changed"
	fmt.Println(first.SampleType[0].Unit)
}
END
go mod tidy 2>/dev/null
diff - <(go run .) <<'END'
5
5
0
changed
END
echo "as stated"
