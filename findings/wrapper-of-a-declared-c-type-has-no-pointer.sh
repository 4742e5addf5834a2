#!/usr/bin/env bash
# The commonest wrapper of a C object, a struct with one pointer to it, has no pointer for Go if the
# C header only declares the type (struct sqlite3;). It shares a block of 16 bytes with another object,
# and its finalizer does not run as long as that one lives.
#
# Go 1.20.14, 1.24.13 and 1.27.4, linux/amd64, a C compiler. 2,000 wrappers are made in turn for two
# lists; one list is dropped. Believed: 1,000 finalizers run. Seen: 1,000 if C defines the type; next to
# none if it only declares it. Cause: cgo makes such a type a runtime/cgo.Incomplete, which is never in
# Go's heap, so a pointer to it is no pointer; small objects without pointers are put together.
# What to do: a second field that makes 16 bytes, or any Go pointer in the struct.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >go.mod <<'EOF'
module declared

go 1.20
EOF
cat >main.go <<'EOF'
package main

/*
struct declared;
struct defined { int x; };
static char it[16];
static struct declared *declared(void) { return (struct declared *)it; }
static struct defined *defined(void) { return (struct defined *)it; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

type (
	Declared struct{ p *C.struct_declared }
	Defined  struct{ p *C.struct_defined }
	Padded   struct {
		p *C.struct_declared
		_ [8]byte
	}
)

var ran atomic.Int64

func run[T any](name string, make func() *T) {
	ran.Store(0)
	var live []*T
	for i := 0; i < 1000; i++ {
		runtime.SetFinalizer(make(), func(*T) { ran.Add(1) })
		live = append(live, make())
	}
	for i := 0; i < 5; i++ {
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	share := "next to none"
	if ran.Load() > 900 {
		share = "all"
	} else if ran.Load() > 100 {
		share = fmt.Sprint(ran.Load())
	}
	fmt.Println(name+":", share)
	runtime.KeepAlive(live)
}

func main() {
	run("defined in C", func() *Defined { return &Defined{C.defined()} })
	run("declared in C", func() *Declared { return &Declared{C.declared()} })
	run("declared, 16 bytes", func() *Padded { return &Padded{p: C.declared()} })
}
EOF
cat >expected <<'EOF'
defined in C: all
declared in C: next to none
declared, 16 bytes: all
EOF
for release in 1.20.14 1.24.13 1.27.4; do
	diff expected <(GOTOOLCHAIN=go$release go run .)
done
echo "as stated"
