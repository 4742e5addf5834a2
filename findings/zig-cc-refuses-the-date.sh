#!/usr/bin/env bash
# `zig cc` as Go's C compiler refuses C code that uses __DATE__, __TIME__ or __TIMESTAMP__.
#
# Zig 0.17.0 (ziglang), Go 1.27.4. Believed: zig cc is clang. Seen: it is clang with -Werror=date-time,
# so that a package which gcc builds without a word does not build: "expansion of date or time macro is
# not reproducible". Packages that print their build date have the macro.
# What to do: CGO_CFLAGS='-O2 -g -Wno-error=date-time' (with CGO_CFLAGS set, say -O2 yourself).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS= GODEBUG= GOEXPERIMENT= CGO_ENABLED=1
unset CGO_CFLAGS CGO_CPPFLAGS

cat >go.mod <<'END'
module finding

go 1.27
END
cat >main.go <<'END'
package main

// static int length(void) { return sizeof(__DATE__) - 1; }
import "C"

func main() { println(C.length()) }
END
python3 -m venv tools
tools/bin/pip --quiet install ziglang==0.17.0
zig="$folder/tools/bin/python -m ziglang cc"
show() {
	echo "$1: $(go build -o program . 2>&1 | grep -c 'not reproducible.*-Werror,-Wdate-time' || true) error"
}
diff - <(
	CC=cc show cc
	CC=$zig show zig
	CC=$zig CGO_CFLAGS='-O2 -g -Wno-error=date-time' show 'zig, allowed'
	./program 2>&1
) <<'END'
cc: 0 error
zig: 1 error
zig, allowed: 0 error
11
END
echo "as stated"
