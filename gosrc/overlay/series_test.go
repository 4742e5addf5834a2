package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each patch of the series applies to the one before. The result has exactly the files that
// its tests are run with, and no hooks for other variants.
func TestSeriesApplies(t *testing.T) {
	root, dir := copyGoroot(t), t.TempDir()
	if err := overlay([]string{"-series", dir, "-goroot", root}, &bytes.Buffer{}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	source, err := readRuntime(goroot(t))
	if err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(patches) != len(series) {
		t.Fatalf("wrote %v (%v)", patches, err)
	}
	for i, patch := range patches {
		command := exec.Command("git", "apply", "-p1", patch)
		command.Dir = root
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", patch, err, said)
		}
		files, err := source.upstreamFiles(series[i])
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			got, err := os.ReadFile(filepath.Join(root, "src", "runtime", name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %s differs (%v)", series[i], name, err)
			}
			for _, only := range []string{"span.checkSpecials", "checkBefore(", "Root(s)", "go:build", "/*"} {
				if strings.HasPrefix(name, "mspecial") && bytes.Contains(got, []byte(only)) {
					t.Errorf("%s: %s contains %s", series[i], name, only)
				}
			}
		}
		found, err := filepath.Glob(filepath.Join(root, "src", "runtime", "*mspecial*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if files[filepath.Base(name)] == nil {
				t.Errorf("%s: %s should be gone", series[i], name)
			}
		}
	}
}

// seriesMutations are mistakes that are wrong, or only slow, or only waste memory. The tests
// of the patches must notice each. They do not notice an allocation of an index without its
// lock.
var seriesMutations = []struct{ variant, name, file, old, new string }{
	{"hint", "insertion sets no hint", "mheap.go", "*link = s\n\tspan.specialHint = before", "*link = s"},
	{"hint", "insertion clears the hint", "mheap.go", "*link = s\n\tspan.specialHint = before", "*link = s\n\tspan.specialHint = nil"},
	{"hint", "removal keeps the hint", "mheap.go", "*link = s.next\n\tspan.specialHint = before", "*link = s.next"},
	{"hint", "removal clears the hint", "mheap.go", "*link = s.next\n\tspan.specialHint = before", "*link = s.next\n\tspan.specialHint = nil"},
	{"hint", "search starts after specials of its object", "mheap.go", "hint.kind >= kind", "hint.kind > kind"},
	{"hint", "search starts after its place", "mheap.go", "hint.offset >= offset &&", "hint.offset > offset &&"},
	{"hint", "sweeping keeps the hint", "mheap.go", "i.span.unlinkSpecial(i.before)", "*i.span.specialLink(i.before) = i.s"},
	{"hint", "Stop keeps the hint", "mcleanup.go", "span.unlinkSpecial(before)", "*span.specialLink(before) = s.next"},
	{"hint", "SetFinalizer keeps the hint", "mheap.go", "s := span.unlinkSpecial(before)", "s := *span.specialLink(before); *span.specialLink(before) = s.next"},
	{"hint", "unpinning keeps the hint", "pinner.go", "span.unlinkSpecial(before)", "*span.specialLink(before) = counter.special.next"},
	{"hint", "insertion without the lock", "mheap.go", "lock(&span.speciallock)\n\n\t// Find splice point, check for existing record.\n\tbefore, exists := span.specialFindSplicePoint(offset, kind)\n", "before, exists := span.specialFindSplicePoint(offset, kind); lock(&span.speciallock)\n"},
	{"index", "index is leaked", "mspecialindex.go", "\t\t\tidx.free()\n", ""},
	{"index", "smaller index is leaked", "mspecialindex.go", "\t\tbefore.free()\n", "\t\t_ = before\n"},
	{"index", "freed index stays in use", "mspecialindex.go", "\t\t\tspan.specialIndex = nil\n", ""},
	{"index", "bucket is cleared", "mspecialindex.go", "before != nil && idx.bucket(before.offset) == b", "false"},
	{"index", "removed special stays", "mspecialindex.go", "idx.used[b/specialsPerWord] &^= 1 << (b % specialsPerWord)", ""},
	{"index", "special gets a later bucket", "mspecialindex.go", "before != nil && idx.bucket(before.offset) == b", "before != nil"},
	{"index", "insertion is not stored", "mspecialindex.go", "\t\tidx.setLast(b, s)\n\t}\n", "\t\t_ = b\n\t}\n"},
	{"index", "search starts in its own bucket", "mspecialindex.go", "1<<(bucket%specialsPerWord) - 1", "2<<(bucket%specialsPerWord) - 1"},
	{"index", "search ignores the index", "mspecialindex.go", "before = idx.lastBelow(idx.bucket(offset))", "before = nil; _ = idx"},
	{"index", "search ignores the lower words", "mspecialindex.go", "if word == 0 {", "if true {"},
	{"index", "list gets its index late", "mspecialindex.go", "if n >= minIndexedSpecials", "if n >= 4*minIndexedSpecials"},
	{"index", "index does not grow", "mspecialindex.go", "idx.count > specialIndexes[idx.level].most", "false"},
	{"index", "removal is not counted", "mspecialindex.go", "\t\tidx.count--\n", ""},
	{"index", "new index has the bits of one before", "mspecialindex.go", "*idx = specialIndex{level: level}", "idx.level, idx.count = level, 0"},
	{"index", "buckets are too wide", "mspecialindex.go", "logBytes - at.logBuckets", "logBytes - at.logBuckets + 2"},
	{"index", "offset outside the span", "mspecialindex.go", "idx != nil && offset < span.npages*pageSize", "idx != nil"},
	{"index", "sweeping changes no index", "mheap.go", "i.span.unlinkSpecial(i.before)", "*i.span.specialLink(i.before) = i.s"},
	{"index", "Stop changes no index", "mcleanup.go", "span.unlinkSpecial(before)", "*span.specialLink(before) = s.next"},
	{"index", "unpinning changes no index", "pinner.go", "span.unlinkSpecial(before)", "*span.specialLink(before) = counter.special.next"},
}

// It builds the runtime once for each mutation.
func TestSeriesTestsNoticeMutations(t *testing.T) {
	skipUnlessSlow(t)
	source, err := recognise(goroot(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, variant := range series {
		t.Run(variant, func(t *testing.T) {
			if said, err := source.runSeriesTests(t, variant, nil); err != nil || strings.Contains(said, "no tests to run") {
				t.Fatalf("%v without a mutation: %s", err, said)
			}
		})
	}
	for _, m := range seriesMutations {
		t.Run(m.variant+"/"+m.name, func(t *testing.T) {
			said, err := source.runSeriesTests(t, m.variant, func(files map[string][]byte) {
				if places := bytes.Count(files[m.file], []byte(m.old)); places != 1 {
					t.Fatalf("%s contains %q %d times", m.file, m.old, places)
				}
				files[m.file] = bytes.Replace(files[m.file], []byte(m.old), []byte(m.new), 1)
			})
			if err == nil || strings.Contains(said, "[build failed]") || strings.Contains(said, "no tests to run") {
				t.Errorf("not noticed (%v): %s", err, said)
			}
		})
	}
}

// runSeriesTests runs the tests of a patch with the runtime that it makes, and with none of
// the runtime's other tests.
func (source *runtimeSource) runSeriesTests(t *testing.T, variant string, mutate func(map[string][]byte)) (string, error) {
	files, err := source.upstreamFiles(variant)
	if err != nil {
		t.Fatal(err)
	}
	if mutate != nil {
		mutate(files)
	}
	dir := t.TempDir()
	name, err := output{dir, goroot(t), false, files}.write()
	if err != nil {
		t.Fatal(err)
	}
	replace := replacements(t, name)
	root := filepath.Join(dir, gorootName)
	others, err := filepath.Glob(filepath.Join(root, "src", "runtime", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range others {
		if !strings.HasPrefix(filepath.Base(other), "export_") {
			replace[other] = ""
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(root, "bin", "go"),
		"test", "-overlay", name, "-vet=off", "-count=1", "-run=^TestSpecials", "-timeout=2m", "runtime")
	// By the link: Go replaces nothing in the package of a folder by another path.
	command.Dir = filepath.Join(root, "src")
	command.Env = append(os.Environ(), "PWD="+command.Dir, "GOROOT="+root, "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	said, err := command.CombinedOutput()
	return string(said), err
}
