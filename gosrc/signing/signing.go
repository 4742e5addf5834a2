// Package signing makes ECDSA P-256 signatures on many goroutines and drops them. The
// garbage is short-lived and the live heap almost empty.
//
// The claims C1 to C8 (Cloudflare) are tested with it, on the original Go release and
// on today's, so Go 1.10 must be able to build it.
package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
)

// Sign prepares a goroutine's own key and returns its operation, which signs with it.
func Sign() (operation func()) {
	sign := signer()
	return func() { sign() }
}

// InTurns is [Sign], but after each signature the thread yields its core to the next
// thread. More Ps than cores then take turns, each with its own cached spans, as on a
// machine with a core for each P. It is nil on a system without sched_yield.
var InTurns = inTurns()

func inTurns() func() (operation func()) {
	if yield == nil {
		return nil
	}
	return func() (operation func()) {
		sign := signer()
		return func() {
			sign()
			yield()
		}
	}
}

// signer returns a function that signs a message with a key of its own.
func signer() func() signature {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	hash := sha256.Sum256([]byte("a message"))
	return func() signature {
		r, s, err := ecdsa.Sign(rand.Reader, key, hash[:])
		if err != nil {
			panic(err)
		}
		return signature{key, hash[:], r, s}
	}
}

type signature struct {
	key  *ecdsa.PrivateKey
	hash []byte
	r, s *big.Int
}
