#!/usr/bin/env bash
# A context.WithTimeout that everybody has dropped keeps its values until the time is over.
#
# Go 1.24.13 and 1.27.4. Believed: since Go 1.23 a timer that nobody holds is collected, so a context with
# one is too; and a dropped context.WithCancel leaks, as `go vet` says ("possible context leak"). Seen, of
# 100 contexts that each lead to an object with a cleanup, and are dropped without their cancel: those with
# a timeout of an hour free none, nor do those of a parent that can be cancelled; WithCancel of Background
# frees all. A dropped time.NewTimer is collected, a time.AfterFunc is not, and a context has one of these.
# What to do: call cancel, first of all where the timeout is long.
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
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

type key struct{}

type object struct{ _ [8]*int }

var freed atomic.Int64

// forget makes 100 objects, to each of which a context leads, and drops all.
//
//go:noinline
func forget(use func(of context.Context), parent context.Context) {
	for range 100 {
		o := new(object)
		runtime.AddCleanup(o, func(int) { freed.Add(1) }, 0)
		use(context.WithValue(parent, key{}, o))
	}
}

func main() {
	parent, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name   string
		parent context.Context
		use    func(of context.Context)
	}{
		{"WithCancel of Background", context.Background(), func(of context.Context) { context.WithCancel(of) }},
		{"WithTimeout of Background", context.Background(), func(of context.Context) { context.WithTimeout(of, time.Hour) }},
		{"WithCancel of a parent", parent, func(of context.Context) { context.WithCancel(of) }},
		{"NewTimer", parent, func(of context.Context) { time.NewTimer(time.Hour) }},
		{"AfterFunc", parent, func(of context.Context) { time.AfterFunc(time.Hour, func() { of.Err() }) }},
	} {
		freed.Store(0)
		forget(c.use, c.parent)
		for range 5 {
			runtime.GC()
			time.Sleep(20 * time.Millisecond)
		}
		fmt.Println(c.name, freed.Load())
	}
}
END
for release in 1.24.13 1.27.4; do
	diff - <(GOTOOLCHAIN=go$release go run .) <<'END'
WithCancel of Background 100
WithTimeout of Background 0
WithCancel of a parent 0
NewTimer 100
AfterFunc 0
END
done
echo "as stated"
