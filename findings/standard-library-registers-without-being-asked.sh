#!/usr/bin/env bash
# What the standard library registers in each call, though the program has no finalizer and no cleanup.
#
# Go 1.24.13 to 1.27.4, Linux, counted by a runtime with three more lines (`go build -overlay`). Believed:
# one finalizer for an open file or connection, nothing else. Seen: os.ReadFile and os.ReadDir set a
# finalizer and remove it in each call; a Cmd.Run takes 4; since 1.25 unique.Make of a new value and the
# first signature with an Ed25519 or ECDSA key take a weak pointer and a cleanup each.
# What to do: in a loop over many small files, or with a new key for each signature, look for
# runtime.SetFinalizer and runtime.AddCleanup in a CPU profile.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOFLAGS= GODEBUG= GOEXPERIMENT= CGO_ENABLED=0

mkdir runtime
cat >runtime/counts.go <<'END'
package runtime

import "internal/runtime/atomic"

var specials [3]atomic.Int64

// Specials returns how many finalizers, cleanups and weak pointers were looked for or registered.
func Specials() [3]int64 {
	return [3]int64{specials[0].Load(), specials[1].Load(), specials[2].Load()}
}
END
cat >go.mod <<'END'
module finding

go 1.24
END
cat >main.go <<'END'
package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"unique"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// count runs something ten times, after once, and prints what each registers.
func count(name string, run func(i int)) {
	run(-1)
	before := runtime.Specials()
	for i := range 10 {
		run(i)
	}
	after := runtime.Specials()
	fmt.Printf("%s:", name)
	for kind := range after {
		fmt.Print(" ", float64(after[kind]-before[kind])/10)
	}
	fmt.Println()
}

func main() {
	check(os.WriteFile("file", []byte("text"), 0o600))
	count("os.ReadFile", func(int) { _, err := os.ReadFile("file"); check(err) })
	count("os.ReadDir", func(int) { _, err := os.ReadDir("."); check(err) })
	count("os.Stat", func(int) { _, err := os.Stat("file"); check(err) })
	count("Cmd.Run", func(int) { check(exec.Command("true").Run()) })
	count("Cmd.Output", func(int) { _, err := exec.Command("true").Output(); check(err) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			c, err := l.Accept()
			check(err)
			c.Close()
		}
	}()
	count("unique.Make", func(i int) { unique.Make(fmt.Sprint("value", i)) })
	count("ed25519.Sign, a new key", func(int) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		check(err)
		ed25519.Sign(key, []byte("text"))
	})
	count("ecdsa.SignASN1, a new key", func(int) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		_, err = ecdsa.SignASN1(rand.Reader, key, make([]byte, 32))
		check(err)
	})
	count("net.Dial, accepted", func(int) {
		c, err := net.Dial("tcp", l.Addr().String())
		check(err)
		c.Read(make([]byte, 1))
		c.Close()
	})
}
END
show() {
	export GOTOOLCHAIN=go$1
	rm -rf goroot
	# Go replaces no file below its module cache by that name.
	ln -s "$(go env GOROOT)" goroot
	sed -e 's/^func addfinalizer(.*{$/&\n\tspecials[0].Add(1)/' -e 's/^func addCleanup(.*{$/&\n\tspecials[1].Add(1)/' \
		-e 's/^func getOrAddWeakHandle(.*{$/&\n\tspecials[2].Add(1)/' goroot/src/runtime/mheap.go >runtime/mheap.go
	cat >overlay.json <<END
{"Replace": {"$folder/goroot/src/runtime/mheap.go": "$folder/runtime/mheap.go",
 "$folder/goroot/src/runtime/zcounts.go": "$folder/runtime/counts.go"}}
END
	GOROOT="$folder/goroot" GOTOOLCHAIN=local goroot/bin/go build -overlay overlay.json -o program .
	echo "$1: finalizers, cleanups, weak pointers"
	./program
}
diff - <(for release in 1.24.13 1.25.14 1.26.11 1.27.4; do show $release; done) <<'END'
1.24.13: finalizers, cleanups, weak pointers
os.ReadFile: 1 0 0
os.ReadDir: 1 0 0
os.Stat: 0 0 0
Cmd.Run: 4 0 0
Cmd.Output: 6 0 0
unique.Make: 0 0 1
ed25519.Sign, a new key: 0 0 0
ecdsa.SignASN1, a new key: 0 0 0
net.Dial, accepted: 2 0 0
1.25.14: finalizers, cleanups, weak pointers
os.ReadFile: 1 0 0
os.ReadDir: 1 0 0
os.Stat: 0 0 0
Cmd.Run: 3 1 0
Cmd.Output: 5 1 0
unique.Make: 0 1 1
ed25519.Sign, a new key: 0 1 1
ecdsa.SignASN1, a new key: 0 1 1
net.Dial, accepted: 2 0 0
1.26.11: finalizers, cleanups, weak pointers
os.ReadFile: 1 0 0
os.ReadDir: 1 0 0
os.Stat: 0 0 0
Cmd.Run: 3 1 0
Cmd.Output: 5 1 0
unique.Make: 0 1 1
ed25519.Sign, a new key: 0 1 1
ecdsa.SignASN1, a new key: 0 1 1
net.Dial, accepted: 2 0 0
1.27.4: finalizers, cleanups, weak pointers
os.ReadFile: 1 0 0
os.ReadDir: 1 0 0
os.Stat: 0 0 0
Cmd.Run: 3 1 0
Cmd.Output: 5 1 0
unique.Make: 0 1 1
ed25519.Sign, a new key: 0 1 1
ecdsa.SignASN1, a new key: 0 1 1
net.Dial, accepted: 2 0 0
END
echo "as stated"
