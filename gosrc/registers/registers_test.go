//go:build go1.24

package registers

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unique"
)

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// counted returns a benchmark of a call, which prepare makes ready. The first call is not counted:
// it may initialize a package.
func counted(prepare func(b *testing.B) (call func(i int))) func(b *testing.B) {
	return func(b *testing.B) {
		if _, counts := registrations(); !counts {
			b.Skip("needs the runtime that ./counting writes")
		}
		call := prepare(b)
		call(-1)
		before, _ := registrations()
		for i := 0; i < b.N; i++ {
			call(i)
		}
		after, _ := registrations()
		for kind, unit := range []string{"finalizers", "cleanups", "weak-pointers"} {
			b.ReportMetric(float64(after[kind]-before[kind])/float64(b.N), unit)
		}
	}
}

func BenchmarkRegisters(b *testing.B) {
	for _, c := range []struct {
		call    string
		prepare func(b *testing.B) func(i int)
	}{
		{"stat", stat},
		{"readfile", readFile},
		{"readdir", readDir},
		{"run", run},
		{"output", output},
		{"dial", dial},
		{"handshake", handshake},
		{"unique", makeUnique},
		{"ed25519", signEd25519},
		{"ecdsa", signECDSA},
	} {
		b.Run("call="+c.call, counted(c.prepare))
	}
}

func file(b *testing.B) string {
	name := filepath.Join(b.TempDir(), "file")
	check(b, os.WriteFile(name, []byte("text"), 0o600))
	return name
}

func stat(b *testing.B) func(int) {
	name := file(b)
	return func(int) { _, err := os.Stat(name); check(b, err) }
}

func readFile(b *testing.B) func(int) {
	name := file(b)
	return func(int) { _, err := os.ReadFile(name); check(b, err) }
}

func readDir(b *testing.B) func(int) {
	folder := filepath.Dir(file(b))
	return func(int) { _, err := os.ReadDir(folder); check(b, err) }
}

func run(b *testing.B) func(int) {
	return func(int) { check(b, exec.Command("true").Run()) }
}

func output(b *testing.B) func(int) {
	return func(int) { _, err := exec.Command("true").Output(); check(b, err) }
}

// dial connects to a listener of its own, which accepts and closes: both sides count.
func dial(b *testing.B) func(int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	b.Cleanup(func() { l.Close() })
	accepted := make(chan error)
	go func() {
		for {
			c, err := l.Accept()
			if err == nil {
				err = c.Close()
			}
			accepted <- err
			if err != nil {
				return
			}
		}
	}()
	return func(int) {
		c, err := net.Dial("tcp", l.Addr().String())
		check(b, err)
		check(b, <-accepted)
		check(b, c.Close())
	}
}

// handshake is TLS between two goroutines; the client parses the certificate of its peer, which is
// another one each time.
func handshake(b *testing.B) func(int) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	check(b, err)
	certificates := make([][]byte, b.N+1) // made before: the key's first signature registers too
	for i := range certificates {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Now().Add(time.Hour)}
		certificates[i], err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		check(b, err)
	}
	return func(i int) {
		here, there := net.Pipe()
		server := tls.Server(there, &tls.Config{
			Certificates: []tls.Certificate{{Certificate: certificates[i+1 : i+2], PrivateKey: key}},
		})
		shaken := make(chan error)
		go func() { shaken <- server.Handshake() }()
		client := tls.Client(here, &tls.Config{InsecureSkipVerify: true})
		check(b, client.Handshake())
		check(b, <-shaken)
		here.Close()
		there.Close()
	}
}

// made is how many values of package unique there were: each is a new one.
var made int

func makeUnique(*testing.B) func(int) {
	return func(int) {
		made++
		unique.Make(fmt.Sprint("value", made))
	}
}

func signEd25519(b *testing.B) func(int) {
	return func(int) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		check(b, err)
		ed25519.Sign(key, []byte("text"))
	}
}

func signECDSA(b *testing.B) func(int) {
	return func(int) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(b, err)
		_, err = ecdsa.SignASN1(rand.Reader, key, make([]byte, 32))
		check(b, err)
	}
}
