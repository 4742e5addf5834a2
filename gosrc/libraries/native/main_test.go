package main

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const old = "one\ntwo\nthree\nfour\n"

// diff returns a diff for the old text, whose hash is that of another text.
func diff(of, hunks string) string {
	hash := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(of), of)))
	return fmt.Sprintf("index %x..%040d 100644\n--- a/example.org/m/f\n+++ b/example.org/m/f\n%s", hash, 0, hunks)
}

// TestApply tests changes of every kind, and that a file that is not the expected one is
// refused.
func TestApply(t *testing.T) {
	for _, c := range []struct{ diff, want string }{
		{diff(old, "@@ -2 +2 @@ one\n-two\n+2\n"), "one\n2\nthree\nfour\n"},
		{diff(old, "@@ -2,0 +3,2 @@\n+a\n+b\n"), "one\ntwo\na\nb\nthree\nfour\n"},
		{diff(old, "@@ -0,0 +1 @@\n+0\n@@ -2,3 +3 @@\n-two\n-three\n-four\n+2\n"), "0\none\n2\n"},
		{diff(old, "@@ -3 +3 @@\n-two\n+2\n"), "line 3 is not"},
		{diff(old, "@@ -4,2 +4 @@\n-four\n-five\n"), "line 4 is not"},
		{diff(old, "@@ -9,0 +9 @@\n+2\n"), "line 10 is not"},
		{diff(old+" ", "@@ -2 +2 @@ one\n-two\n+2\n"), "git's hash of the file is"},
	} {
		changes := parse(c.diff)
		if len(changes) != 1 || changes[0].file != "example.org/m/f" {
			t.Fatalf("%q has the changes %+v, want one of example.org/m/f", c.diff, changes)
		}
		got, err := changes[0].apply(old)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q gives %q, want %q", c.diff, got, c.want)
		}
	}
}

// TestDiffsMatchThePinnedLibraries tests that each slabs.diff applies.
func TestDiffsMatchThePinnedLibraries(t *testing.T) {
	diffs, err := filepath.Glob("*/slabs.diff")
	if err != nil || len(diffs) != 2 {
		t.Fatalf("there are %d diffs (%v), want 2", len(diffs), err)
	}
	for _, diff := range diffs {
		out := t.TempDir()
		if err := write(out, filepath.Dir(diff)); err != nil {
			t.Fatal(err)
		}
		overlay, err := os.ReadFile(filepath.Join(out, "overlay.json"))
		if err != nil || !strings.Contains(string(overlay), filepath.Join(out, "library")) {
			t.Errorf("%s: overlay.json is %q (%v), want paths in library", diff, overlay, err)
		}
	}
}

// TestAnotherLibraryIsRefused tests the message about a library of another version.
func TestAnotherLibraryIsRefused(t *testing.T) {
	diff, err := os.ReadFile("trees/slabs.diff")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	other := strings.Replace(string(diff), "index ", "index "+strings.Repeat("0", 40)+"..", 1)
	if err := os.WriteFile(filepath.Join(folder, "slabs.diff"), []byte(other), 0o666); err != nil {
		t.Fatal(err)
	}
	err = write(t.TempDir(), folder)
	if err == nil || !strings.Contains(err.Error(), "To fix it: require the version of github.com/smacker/go-tree-sitter") {
		t.Errorf("the error is %v, want one that says what to do", err)
	}
}
