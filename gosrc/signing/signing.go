// Package signing makes ECDSA P-256 signatures on many goroutines and drops them:
// short-lived garbage beside a live heap of next to nothing.
//
// It serves the claims C1 to C8 (Cloudflare), on the Go of their time and on
// today's, so it keeps to what Go 1.10 can build.
package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
)

// Sign prepares a goroutine that signs with a key of its own.
func Sign() (operation func()) {
	sign := signer()
	return func() { sign() }
}

// InTurns is [Sign], but after each signature the thread offers its core to the
// next thread. So more Ps than cores take turns, each with its own cached spans,
// as on a machine that has a core for each. Nil where the system cannot.
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

// signer returns a function that signs with a key of its own; what it returned last
// is valid for the key.
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
