//go:build go1.26

package stress

import (
	"flag"
	"os"
	"testing"
)

var (
	rounds        = flag.Int("rounds", 8, "how many rounds")
	registrations = flag.Int("registrations", 150_000, "how many cleanups and finalizers in a round")
	workers       = flag.Int("workers", 12, "how many goroutines")
	seed          = flag.Uint64("seed", 1, "another makes other choices")
	withTiny      = flag.Bool("tiny", true, "objects that share an allocation, too")
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
		{"weak pointers still give a dropped object", r.Undead},
		{"dropped objects are in use by the memory profile", r.Unfreed},
	} {
		if left.n > tolerated {
			t.Errorf("%d %s, tolerated are %d", left.n, left.what, tolerated)
		}
	}
	if r.Ran*4 < r.Registrations {
		t.Errorf("of %d cleanups and finalizers only %d ran: too little was put to the test", r.Registrations, r.Ran)
	}
}
