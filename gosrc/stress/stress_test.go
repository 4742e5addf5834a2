//go:build go1.26

package stress

import (
	"flag"
	"os"
	"testing"
)

var (
	rounds        = flag.Int("rounds", 8, "number of rounds")
	registrations = flag.Int("registrations", 150_000, "number of cleanups and finalizers in a round")
	workers       = flag.Int("workers", 12, "number of worker goroutines")
	seed          = flag.Uint64("seed", 1, "random `seed`")
	withTiny      = flag.Bool("tiny", true, "also use objects that share an allocation")
)

func TestPromises(t *testing.T) {
	c := Config{Rounds: *rounds, Registrations: *registrations, Workers: *workers, Seed: *seed, Tiny: *withTiny}
	if testing.Verbose() {
		c.Log = os.Stdout
	}
	r := Run(c)
	t.Log(r)
	if r.Wrong != "" {
		t.Error(r.Wrong)
	}
	tolerated := Tolerated(c.Rounds)
	for _, left := range []struct {
		what string
		n    int
	}{
		{"dropped objects have a cleanup or finalizer that did not run", r.Unrun},
		{"weak pointers still return a dropped object", r.Undead},
		{"dropped objects are in use according to the memory profile", r.Unfreed},
	} {
		if left.n > tolerated {
			t.Errorf("%d %s, more than the %d tolerated", left.n, left.what, tolerated)
		}
	}
	if r.Ran*4 < r.Registrations {
		t.Errorf("only %[2]d of %[1]d cleanups and finalizers ran: too few for a meaningful test", r.Registrations, r.Ran)
	}
}
