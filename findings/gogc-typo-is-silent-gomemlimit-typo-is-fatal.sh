#!/usr/bin/env bash
# A GOGC that Go cannot read is ignored without a word; a GOMEMLIMIT that it cannot read ends the program.
#
# Go 1.24.13 and 1.27.4. Believed: both are ignored, or both refused. Seen: GOGC=50% and GOGC=1e3 are
# 100, GOGC=-5 is "off", and nothing is printed. GOMEMLIMIT=100MB ("MiB" is the unit) and 100mib end
# each Go program at its start, exit code 2.
# What to do: print debug.SetGCPercent's previous value once, when you compare settings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS= GODEBUG= GOEXPERIMENT=
unset GOGC GOMEMLIMIT

cat >go.mod <<'END'
module finding

go 1.24
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"runtime/debug"
)

func main() { fmt.Println(debug.SetGCPercent(100)) }
END
show() {
	GOTOOLCHAIN=go$1 go build -o program .
	for setting in GOGC=50% GOGC=1e3 GOGC=-5 GOMEMLIMIT=100MB GOMEMLIMIT=100mib GOMEMLIMIT=100MiB; do
		code=0
		said=$(env "$setting" ./program 2>&1) || code=$?
		echo "$setting: exit $code, $(grep -E '^(fatal|-?[0-9]+$)' <<<"$said")"
	done
}
diff - <(for release in 1.24.13 1.27.4; do show $release; done) <<'END'
GOGC=50%: exit 0, 100
GOGC=1e3: exit 0, 100
GOGC=-5: exit 0, -1
GOMEMLIMIT=100MB: exit 2, fatal error: malformed GOMEMLIMIT; see `go doc runtime/debug.SetMemoryLimit`
GOMEMLIMIT=100mib: exit 2, fatal error: malformed GOMEMLIMIT; see `go doc runtime/debug.SetMemoryLimit`
GOMEMLIMIT=100MiB: exit 0, 100
GOGC=50%: exit 0, 100
GOGC=1e3: exit 0, 100
GOGC=-5: exit 0, -1
GOMEMLIMIT=100MB: exit 2, fatal error: malformed GOMEMLIMIT; see `go doc runtime/debug.SetMemoryLimit`
GOMEMLIMIT=100mib: exit 2, fatal error: malformed GOMEMLIMIT; see `go doc runtime/debug.SetMemoryLimit`
GOMEMLIMIT=100MiB: exit 0, 100
END
echo "as stated"
