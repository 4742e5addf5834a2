#!/usr/bin/env bash
# The cleanup of a process that a Go program started and dropped closes its descriptor, and leaves the
# process in the system's table.
#
# Linux 5.4 or later, Go 1.24.13 (a finalizer) and 1.27.4 (a cleanup). Believed: os.Process has one so that
# a program that forgets Wait leaks nothing. Seen: of 20 commands that were started, ended and dropped, 20
# descriptors are open and 20 processes are zombies; after collections no descriptor is, and 20 zombies.
# What to do: call Wait, in a goroutine if nobody needs the result.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS= GODEBUG= GOEXPERIMENT= CGO_ENABLED=0

cat >go.mod <<'END'
module finding

go 1.24
END
cat >main.go <<'END'
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// zombies returns how many children of this process have ended and wait to be asked for.
func zombies() (n int) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		text, _ := os.ReadFile(name)
		_, after, _ := strings.Cut(string(text), ") Z ")
		if strings.HasPrefix(after, fmt.Sprint(os.Getpid(), " ")) {
			n++
		}
	}
	return n
}

func descriptors() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(names)
}

//go:noinline
func start() {
	for range 20 {
		if err := exec.Command("true").Start(); err != nil {
			panic(err)
		}
	}
}

func main() {
	before := descriptors()
	start()
	for zombies() < 20 {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("20 descriptors are open:", descriptors() >= before+20)
	for range 5 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Println("after collections:", descriptors() >= before+20)
	fmt.Println("zombies:", zombies())
}
END
for release in 1.24.13 1.27.4; do
	diff - <(GOGC=off GOTOOLCHAIN=go$release go run .) <<'END'
20 descriptors are open: true
after collections: false
zombies: 20
END
done
echo "as stated"
