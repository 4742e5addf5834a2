//go:build !go1.13
// +build !go1.13

package rates

import (
	"bytes"
	"strings"
	"testing"
)

// TestRunFixed tests that exactly the workers that a pattern selects are measured, with
// the given number of operations, and printed as later releases print them.
func TestRunFixed(t *testing.T) {
	count := map[string]int{}
	worker := func(name string) Worker {
		return func() func() { return func() { count[name]++ } }
	}
	workers := map[string]Worker{"One": worker("One"), "Other": worker("Other"), "None": nil}
	var out bytes.Buffer
	if err := runFixed(&out, "^Benchmark(One|None)$/^goroutines=1$", 7, workers); err != nil {
		t.Fatal(err)
	}
	if count["One"] != 7 || count["Other"] != 0 {
		t.Errorf("%v operations, want 7 of One", count)
	}
	line := strings.Split(strings.TrimSpace(out.String()), "\t")
	if len(line) < 10 || !strings.HasPrefix(line[0], "BenchmarkOne/goroutines=1") || line[1] != "7" {
		t.Errorf("the output is %q, want a line of BenchmarkOne/goroutines=1 with 7 operations", out.String())
	}
	if err := runFixed(&out, "(", 1, workers); err == nil {
		t.Error("an invalid pattern was accepted")
	}
}
