package signing

import (
	"crypto/ecdsa"
	"testing"

	"gccost/rates"
)

func TestMain(m *testing.M) {
	rates.Main(m, map[string]rates.Worker{"Sign": Sign, "SignInTurns": InTurns})
}

func BenchmarkSign(b *testing.B) { rates.Bench(b, Sign) }

func BenchmarkSignInTurns(b *testing.B) {
	if InTurns == nil {
		b.Skip("this system has no sched_yield")
	}
	rates.Bench(b, InTurns)
}

func TestSignaturesAreValid(t *testing.T) {
	sign := signer()
	first, second := sign(), sign()
	for _, s := range []signature{first, second} {
		if !ecdsa.Verify(&s.key.PublicKey, s.hash, s.r, s.s) {
			t.Error("a signature is not valid")
		}
	}
	if first.r.Cmp(second.r) == 0 {
		t.Error("two signatures are equal: they contain no randomness")
	}
}

// TestSigningAllocates tests that making a signature allocates.
func TestSigningAllocates(t *testing.T) {
	for name, worker := range map[string]rates.Worker{"Sign": Sign, "InTurns": InTurns} {
		if worker == nil {
			continue
		}
		if allocs := testing.AllocsPerRun(50, worker()); allocs < 3 {
			t.Errorf("%s: %v allocations per signature, want 3 or more", name, allocs)
		}
	}
}
