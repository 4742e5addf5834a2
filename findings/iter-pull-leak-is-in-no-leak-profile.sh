#!/usr/bin/env bash
# Go 1.27's goroutine leak profile does not report an iterator that iter.Pull began and nobody
# stopped, although nothing can ever resume it.
#
# Go 1.27.4. Believed: the profile reports goroutines that nothing can wake; or, such an iterator is
# freed like other garbage. Seen: ten of them stay for ever, count in runtime.NumGoroutine, and the
# leak profile says 0; for ten goroutines on a channel that nobody else has, it says 10.
# What to do: `defer stop()`. Watch runtime.NumGoroutine too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=go1.27.4 GOFLAGS= GODEBUG= GOEXPERIMENT=

cat >go.mod <<'END'
module finding

go 1.27
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"iter"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

func numbers(yield func(int) bool) {
	for i := 0; yield(i); i++ {
	}
}

//go:noinline
func begin() {
	next, _ := iter.Pull(numbers)
	next()
}

func leaks() string {
	var text strings.Builder
	pprof.Lookup("goroutineleak").WriteTo(&text, 1)
	return strings.SplitN(text.String(), "\n", 2)[0]
}

func main() {
	for range 10 {
		begin()
	}
	runtime.GC()
	fmt.Println("goroutines:", runtime.NumGoroutine()-1)
	fmt.Println(leaks())
	for range 10 {
		go func() { <-make(chan int) }()
	}
	time.Sleep(100 * time.Millisecond)
	fmt.Println("goroutines:", runtime.NumGoroutine()-1)
	fmt.Println(leaks())
}
END
diff - <(go run .) <<'END'
goroutines: 10
goroutineleak profile: total 0
goroutines: 20
goroutineleak profile: total 10
END
echo "as stated"
