package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// goroot returns the GOROOT of the Go that runs the tests. It skips the test if the
// overlay does not support that release.
func goroot(t *testing.T) string {
	t.Helper()
	env, err := goEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRelease(env.GOROOT); err != nil {
		t.Skipf("the overlay does not support %s", runtime.Version())
	}
	return env.GOROOT
}

// copyGoroot returns a GOROOT that the test may modify, with the files that the command
// reads.
func copyGoroot(t *testing.T) string {
	t.Helper()
	from, to := goroot(t), t.TempDir()
	var names []string
	for _, name := range []string{"VERSION", "src/runtime/*.go"} {
		found, err := filepath.Glob(filepath.Join(from, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if err := os.MkdirAll(filepath.Join(to, "src", "runtime"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, strings.TrimPrefix(name, from)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// replaceIn replaces the first occurrence of old in a file of package runtime.
func replaceIn(t *testing.T, goroot, name, old, new string) {
	t.Helper()
	name = filepath.Join(goroot, "src", "runtime", name)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s does not contain %q", name, old)
	}
	if err := os.WriteFile(name, bytes.Replace(text, []byte(old), []byte(new), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs the command and returns the overlay.json that it printed.
func run(t *testing.T, args ...string) string {
	t.Helper()
	goroot(t)
	var stdout, stderr bytes.Buffer
	if err := overlay(args, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(stdout.String(), "\n")
}

// mustFail runs the command, which must fail, and returns the error message. The error
// must be one line with a place, a reason and a hint. The command must not print or
// write anything.
func mustFail(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	err := overlay(append([]string{"-o", dir}, args...), &stdout, &stderr)
	var told problem
	if !errors.As(err, &told) || told.place == "" || told.what == "" || told.hint == "" {
		t.Fatalf("not a problem that a user can fix: %#v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	if stdout.Len() > 0 {
		t.Errorf("printed %q", stdout.String())
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("something was written")
	}
	return err.Error()
}

// replacements reads an overlay.json.
func replacements(t *testing.T, name string) map[string]string {
	t.Helper()
	var overlay struct{ Replace map[string]string }
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &overlay); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return overlay.Replace
}

// tree maps the path of each file below a folder to its text, and of each link to its
// target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		switch {
		case err != nil:
			return err
		case info.Mode()&os.ModeSymlink != 0:
			found[name], err = os.Readlink(name)
		case info.Mode().IsRegular():
			var text []byte
			text, err = os.ReadFile(name)
			found[name] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func equal(a, b map[string]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestOverlayNamesExistingFiles(t *testing.T) {
	dir := t.TempDir()
	for _, variant := range sortedNames(variants) {
		name := run(t, "-o", dir, "-variant", variant)
		if want := filepath.Join(dir, overlayName); name != want {
			t.Errorf("%s: printed %q, want %q", variant, name, want)
		}
		added := map[string]bool{}
		for _, name := range variants[variant].added {
			added[name] = true
		}
		changed := 0
		for from, to := range replacements(t, name) {
			text, err := os.ReadFile(to)
			if err != nil {
				t.Errorf("%s: %v", variant, err)
			}
			was, err := os.ReadFile(from)
			if isNew := err != nil; isNew != added[filepath.Base(from)] {
				t.Errorf("%s: %s: missing from GOROOT: %v", variant, from, isNew)
			}
			if bytes.Equal(text, was) {
				t.Errorf("%s: %s is replaced by an identical file", variant, from)
			}
			if err == nil {
				changed++
				if bytes.Count(text, []byte("\n")) != bytes.Count(was, []byte("\n")) {
					t.Errorf("%s: the number of lines of %s changed", variant, from)
				}
			}
		}
		if changed == 0 {
			t.Errorf("%s: no file is changed", variant)
		}
	}
}

// Go does not replace files of a toolchain in the module cache by their own path.
func TestModuleCacheIsReplacedThroughLink(t *testing.T) {
	cache := copyGoroot(t)
	for _, test := range []struct {
		cache string
		plain bool
	}{{cache, false}, {filepath.Dir(cache), false}, {cache + "x", true}} {
		t.Setenv("GOMODCACHE", test.cache)
		dir := t.TempDir()
		var stdout, stderr bytes.Buffer
		if err := overlay([]string{"-o", dir, "-goroot", cache}, &stdout, &stderr); err != nil {
			t.Fatal(err)
		}
		through, plain := 0, 0
		for from := range replacements(t, filepath.Join(dir, overlayName)) {
			switch {
			case strings.HasPrefix(from, filepath.Join(dir, gorootName)+string(filepath.Separator)):
				through++
			case strings.HasPrefix(from, cache+string(filepath.Separator)):
				plain++
			default:
				t.Errorf("unexpected replacement of %s", from)
			}
		}
		if through == 0 || (plain > 0) != test.plain {
			t.Errorf("GOMODCACHE=%s: %d paths through the link, %d direct", test.cache, through, plain)
		}
		if told := strings.Contains(stderr.String(), "GOROOT="+filepath.Join(dir, gorootName)); told == test.plain {
			t.Errorf("GOMODCACHE=%s: stderr is %q", test.cache, stderr.String())
		}
	}
}

func TestWritingAgainChangesNothing(t *testing.T) {
	dir := t.TempDir()
	run(t, "-o", dir)
	once := tree(t, dir)
	run(t, "-o", dir)
	if !equal(once, tree(t, dir)) {
		t.Error("the second run changed the output folder")
	}
}

func TestInterruptedRunLeavesNoOverlay(t *testing.T) {
	out := output{t.TempDir(), goroot(t), false, map[string][]byte{"mheap.go": []byte("package runtime\n")}}
	if _, err := out.stage(); err != nil {
		t.Fatal(err)
	}
	if err := out.link(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(out.dir, overlayName)); err == nil {
		t.Error("overlay.json exists before the last step")
	}
}

// A run that is interrupted leaves the overlay.json of an earlier run unchanged.
func TestInterruptedRunKeepsEarlierOverlay(t *testing.T) {
	dir := t.TempDir()
	name := run(t, "-o", dir, "-variant", "checked")
	before := replacements(t, name)
	texts := map[string]string{}
	for _, to := range before {
		text, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		texts[to] = string(text)
	}
	out := output{dir, goroot(t), false, map[string][]byte{"mheap.go": []byte("package runtime\n")}}
	if _, err := out.stage(); err != nil {
		t.Fatal(err)
	}
	if !equal(before, replacements(t, name)) {
		t.Error("overlay.json changed before the last step")
	}
	for to, text := range texts {
		if now, err := os.ReadFile(to); err != nil || string(now) != text {
			t.Errorf("%s changed (%v)", to, err)
		}
	}
}

func TestDamagedFilesAreRewritten(t *testing.T) {
	dir := t.TempDir()
	name := run(t, "-o", dir)
	whole := tree(t, dir)
	for _, to := range replacements(t, name) {
		if err := os.WriteFile(to, []byte("package runt"), 0o644); err != nil {
			t.Fatal(err)
		}
		break
	}
	run(t, "-o", dir)
	if !equal(whole, tree(t, dir)) {
		t.Error("a damaged file was not rewritten")
	}
}

func TestUnknownSourceIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		modify func(goroot string)
		want   []string
	}{
		{
			"another release",
			func(goroot string) {
				if err := os.WriteFile(filepath.Join(goroot, "VERSION"), []byte("go1.25.14\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"VERSION:1", "go1.25.14", "1.26 or 1.27"},
		},
		{
			"no release",
			func(goroot string) { os.Remove(filepath.Join(goroot, "VERSION")) },
			[]string{"VERSION", "no such file"},
		},
		{
			"an edited function that the overlay changes",
			func(goroot string) { replaceIn(t, goroot, "mheap.go", "s.next = *iter", "s.next = (*iter)") },
			[]string{"mheap.go:", "addspecial differs from the known source"},
		},
		{
			"an edited function that the overlay relies on",
			func(goroot string) {
				replaceIn(t, goroot, "mgcsweep.go", "hadSpecials :=", "had := true; hadSpecials :=")
			},
			[]string{"mgcsweep.go:", "(sweepLocked).sweep differs from the known source"},
		},
		{
			"a type with another field",
			func(goroot string) {
				replaceIn(t, goroot, "mheap.go", "type special struct {", "type special struct {\nmore int")
			},
			[]string{"mheap.go:", "special differs from the known source"},
		},
		{
			"another function that changes lists",
			func(goroot string) {
				replaceIn(t, goroot, "pinner.go", "type pinState struct", "func dropAll(s *mspan) { s.specials = nil }\n\ntype pinState struct")
			},
			[]string{"pinner.go:", "dropAll uses lists of specials"},
		},
		{
			"another function on another platform",
			func(goroot string) {
				name := filepath.Join(goroot, "src", "runtime", "specials_plan9.go")
				if err := os.WriteFile(name, []byte("package runtime\n\nfunc first(s *mspan) *special { return s.specials }\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"specials_plan9.go:3", "first uses lists of specials"},
		},
		{
			"a missing function",
			func(goroot string) { replaceIn(t, goroot, "mheap.go", "func removespecial(", "func removeSpecial(") },
			[]string{"mheap.go", "does not declare removespecial"},
		},
		{
			"a missing file",
			func(goroot string) { os.Remove(filepath.Join(goroot, "src", "runtime", "pinner.go")) },
			[]string{"pinner.go", "no such file", "reinstall that Go"},
		},
		{
			"no source at all",
			func(goroot string) { os.RemoveAll(filepath.Join(goroot, "src")) },
			[]string{filepath.Join("src", "runtime"), "no such file", "-goroot"},
		},
		{
			"source that cannot be parsed",
			func(goroot string) { replaceIn(t, goroot, "synctest.go", "lock(&span.speciallock)", "}}}") },
			[]string{"synctest.go", "cannot be parsed as Go"},
		},
		{
			"an existing file where the overlay adds one",
			func(goroot string) {
				name := filepath.Join(goroot, "src", "runtime", "mspecialindex.go")
				if err := os.WriteFile(name, []byte("package runtime\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"mspecialindex.go", "already exists"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			goroot := copyGoroot(t)
			test.modify(goroot)
			message := mustFail(t, "-goroot", goroot)
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					t.Errorf("%q does not contain %q", message, want)
				}
			}
		})
	}
}

// The overlay keeps changes to comments and layout that the user made in the runtime.
func TestUserEditsAreKept(t *testing.T) {
	goroot := copyGoroot(t)
	replaceIn(t, goroot, "mheap.go", "package runtime", "package runtime // mine")
	replaceIn(t, goroot, "mheap.go", "*iter = s.next", "*iter   =  s.next // mine, too")
	for from, to := range replacements(t, run(t, "-o", t.TempDir(), "-goroot", goroot)) {
		if text, err := os.ReadFile(to); err != nil || filepath.Base(from) == "mheap.go" && bytes.Count(text, []byte("// mine")) != 2 {
			t.Errorf("%s lost the user's edits (%v)", to, err)
		}
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-variant", "fast"}, "checked, checked-hint, checked-plus, hint, index, plus"},
		{[]string{"-goroot", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{[]string{"extra"}, "leave it out"},
		{[]string{"-o", ""}, "name an output folder"},
	} {
		if message := mustFail(t, test.args...); !strings.Contains(message, test.want) {
			t.Errorf("%q does not contain %q", message, test.want)
		}
	}
}

func TestUnwritableFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	occupied := filepath.Join(dir, "file")
	if err := os.WriteFile(occupied, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{occupied, filepath.Join(occupied, "below")} {
		err := overlay([]string{"-o", out, "-goroot", goroot(t)}, &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "cannot be written") || !strings.Contains(err.Error(), out) {
			t.Errorf("%s: %v", out, err)
		}
	}
	// overlay.json is a folder: the command must fail and leave no temporary files.
	if err := os.Mkdir(filepath.Join(dir, overlayName), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := overlay([]string{"-o", dir, "-goroot", goroot(t)}, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("replaced a folder by a file")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".partial-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// A fingerprint depends on tokens, and not on comments or layout.
func TestFingerprint(t *testing.T) {
	const text = "func f(a int) {\n\t// why\n\treturn a\n}"
	for _, equal := range []string{"func f(a int) { return a; }", "func f(a int) {\n\n\treturn a // other\n}\n"} {
		if fingerprint([]byte(equal)) != fingerprint([]byte(text)) {
			t.Errorf("%q has a different fingerprint", equal)
		}
	}
	for _, other := range []string{"func f(a int) { return b }", "func f(a int) { return a + 0 }", "func f(a int) { return }"} {
		if fingerprint([]byte(other)) == fingerprint([]byte(text)) {
			t.Errorf("%q has the same fingerprint", other)
		}
	}
}

func TestFindRequiresOnePlace(t *testing.T) {
	text := []byte("a = b // c\nd  =  e\na = f\n")
	for _, test := range []struct {
		wanted, found string
	}{{"a = b", "a = b"}, {"d=e", "d  =  e"}, {"b\nd", "b // c\nd"}, {"a =", ""}, {"c", ""}} {
		start, end, err := find(text, test.wanted)
		if (err == nil) != (test.found != "") || err == nil && string(text[start:end]) != test.found {
			t.Errorf("%q: %q, %v", test.wanted, text[start:end], err)
		}
	}
}

// GOROOT may be read-only, and its files do not change.
func TestGorootIsNotWritten(t *testing.T) {
	goroot := copyGoroot(t)
	before := tree(t, goroot)
	if err := filepath.Walk(goroot, func(name string, info os.FileInfo, err error) error {
		if err == nil && info.IsDir() {
			err = os.Chmod(name, 0o555)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.Walk(goroot, func(name string, info os.FileInfo, _ error) error {
			return os.Chmod(name, info.Mode()|0o200)
		})
	})
	run(t, "-o", t.TempDir(), "-goroot", goroot)
	if !equal(before, tree(t, goroot)) {
		t.Error("GOROOT changed")
	}
}

// builder returns a function that runs the go command with an overlay of a variant, and
// a folder for its output.
func builder(t *testing.T, variant string) (gocommand func(env []string, verb string, args ...string) (string, error), dir string) {
	t.Helper()
	goroot(t)
	dir = t.TempDir()
	name := run(t, "-o", dir, "-variant", variant)
	root := filepath.Join(dir, gorootName)
	return func(env []string, verb string, args ...string) (string, error) {
		command := exec.Command(filepath.Join(root, "bin", "go"), append([]string{verb, "-overlay", name}, args...)...)
		command.Env = append(append(os.Environ(), "GOROOT="+root, "GOTOOLCHAIN=local"), env...)
		said, err := command.CombinedOutput()
		return string(said), err
	}, dir
}

// checkedVariants are the variants with a checker.
var checkedVariants = []string{"checked", "checked-hint", "checked-plus"}

// The tests of other builds run only if GCCOST_OVERLAY_TESTS is set.
func TestCheckedVariantsRun(t *testing.T) {
	for _, variant := range checkedVariants {
		buildAndRun(t, variant, nil)
	}
}

// buildAndRun builds testdata/lists with a variant's overlay, and runs it.
func buildAndRun(t *testing.T, variant string, env []string, args ...string) {
	t.Helper()
	// Reading the file tells `go test` that the cached result depends on it.
	if _, err := os.ReadFile(filepath.Join("testdata", "lists", "main.go")); err != nil {
		t.Fatal(err)
	}
	gocommand, dir := builder(t, variant)
	binary := filepath.Join(dir, "lists")
	if said, err := gocommand(env, "build", append(args, "-o", binary, "./testdata/lists")...); err != nil {
		t.Fatalf("%s %v %v: %v\n%s", variant, env, args, err, said)
	}
	said, err := exec.Command(binary).CombinedOutput()
	if err != nil || string(said) != "ok\n" {
		t.Errorf("%s %v %v: %v\n%s", variant, env, args, err, said)
	}
}

// skipUnlessSlow skips a test unless GCCOST_OVERLAY_TESTS is set. Such a test rebuilds
// the standard library, which takes a minute of CPU time for each build.
func skipUnlessSlow(t *testing.T) {
	t.Helper()
	if os.Getenv("GCCOST_OVERLAY_TESTS") == "" {
		t.Skip("set GCCOST_OVERLAY_TESTS=1 to rebuild the standard library with many settings")
	}
}

func TestVariantsRunInEveryBuild(t *testing.T) {
	skipUnlessSlow(t)
	for _, variant := range sortedNames(variants) {
		buildAndRun(t, variant, nil)
		buildAndRun(t, variant, nil, "-race")
	}
	for _, variant := range checkedVariants {
		buildAndRun(t, variant, nil, "-trimpath")
		buildAndRun(t, variant, nil, "-ldflags=-randlayout=7")
		buildAndRun(t, variant, []string{"GOEXPERIMENT=staticlockranking"})
	}
}

func TestOtherPlatformsCompile(t *testing.T) {
	skipUnlessSlow(t)
	for _, variant := range append(checkedVariants, "hint", "index", "plus") {
		gocommand, _ := builder(t, variant)
		for _, platform := range []string{
			"linux/386", "linux/arm", "linux/arm64", "linux/riscv64", "darwin/arm64", "windows/amd64", "js/wasm",
		} {
			parts := strings.Split(platform, "/")
			env := []string{"GOOS=" + parts[0], "GOARCH=" + parts[1], "CGO_ENABLED=0"}
			if said, err := gocommand(env, "build", "-o", os.DevNull, "./testdata/lists"); err != nil {
				t.Errorf("%s %s: %v\n%s", variant, platform, err, said)
			}
		}
	}
}

// Programs that use cgo build and run with the overlay.
func TestProgramsWithC(t *testing.T) {
	skipUnlessSlow(t)
	for _, args := range [][]string{nil, {"-trimpath"}, {"-ldflags=-randlayout=7"}} {
		gocommand, _ := builder(t, defaultVariant)
		if said, err := gocommand(nil, "test", append(args, "../cstr")...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, said)
		}
	}
}
