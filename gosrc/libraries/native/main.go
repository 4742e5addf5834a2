// Command native writes what Go needs to build a library with slabs of its own, in place of
// its finalizers. A folder's slabs.diff says what changes:
//
//	go run ./native -o DIR native/trees
//	GOWORK=DIR/go.work go test -overlay=DIR/overlay.json -bench . ./native/trees
//
// The command reads the library from Go's module cache and writes the changed files to DIR.
// It refuses a library whose files are not those that the diff was written for. Go does not
// replace files in the module cache, but only compares path names: DIR has a link to the
// library, and go.work names the link.
package main

import (
	"crypto/sha1"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	out := flag.String("o", "", "the `folder` to write to")
	flag.Parse()
	if *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./native -o DIR native/trees")
		os.Exit(2)
	}
	if err := write(*out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "native:", err)
		os.Exit(1)
	}
}

// write writes overlay.json, go.work and the files that they name to the folder out.
func write(out, folder string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	goMod, err := ask("env", "GOMOD")
	if err != nil {
		return err
	}
	name := filepath.Join(folder, "slabs.diff")
	diff, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	replaced, links := map[string]string{}, map[string]bool{}
	for _, change := range parse(string(diff)) {
		module, dir, err := find(path.Dir(change.file))
		if err != nil {
			return err
		}
		inside := strings.TrimPrefix(change.file, module+"/")
		text, err := os.ReadFile(filepath.Join(dir, inside))
		if err != nil {
			return err
		}
		edited, err := change.apply(string(text))
		if err != nil {
			return fmt.Errorf("%s in %s: %v. To fix it: require the version of %s in go.mod "+
				"that %s was written for, or write the diff anew", inside, dir, err, module, name)
		}
		copied := filepath.Join(out, path.Base(inside))
		if err := os.WriteFile(copied, []byte(edited), 0o666); err != nil {
			return err
		}
		link := filepath.Join(out, "library")
		replaced[filepath.Join(link, inside)] = copied
		if !links[module] {
			links[module] = true
			if err := works(out, filepath.Dir(goMod), module, dir, link); err != nil {
				return err
			}
		}
	}
	if len(links) != 1 {
		return fmt.Errorf("%s changes files of %d libraries, not of one", name, len(links))
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": replaced}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "overlay.json"), overlay, 0o666)
}

// works writes the link to a library, and the go.work that uses the link.
func works(out, own, module, dir, link string) error {
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(dir, link); err != nil {
		return err
	}
	text := fmt.Sprintf("go 1.24\n\nuse %q\n\nreplace %s => %q\n", own, module, link)
	return os.WriteFile(filepath.Join(out, "go.work"), []byte(text), 0o666)
}

// find returns the module of a package, and the module's folder.
func find(pkg string) (module, dir string, err error) {
	answer, err := ask("list", "-f", "{{.Module.Path}}\n{{.Module.Dir}}", pkg)
	module, dir, _ = strings.Cut(answer, "\n")
	return module, dir, err
}

// ask returns what the go command prints.
func ask(arguments ...string) (string, error) {
	command := exec.Command("go", arguments...)
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	command.Stderr = os.Stderr
	answer, err := command.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %v", strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(string(answer)), err
}

// A change is the part of a diff about one file.
type change struct {
	file  string
	hash  string // git's hash of the file before the change
	hunks []hunk
}

// A hunk replaces lines after the first `after` lines of the file.
type hunk struct {
	after         int
	removed, said []string
}

var (
	ofFile  = regexp.MustCompile(`^--- a/(\S+)$`)
	ofIndex = regexp.MustCompile(`^index ([0-9a-f]{40})\.\.`)
	ofHunk  = regexp.MustCompile(`^@@ -(\d+)(,\d+)? \+\d+(?:,\d+)? @@`)
)

// parse reads a diff that `git diff --full-index -U0` wrote.
func parse(diff string) (changes []change) {
	var hash string
	for _, line := range strings.SplitAfter(diff, "\n") {
		last := len(changes) - 1
		if m := ofIndex.FindStringSubmatch(line); m != nil {
			hash = m[1]
		} else if m := ofFile.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			changes = append(changes, change{file: m[1], hash: hash})
		} else if last < 0 || strings.HasPrefix(line, "+++ ") {
			continue
		} else if m := ofHunk.FindStringSubmatch(line); m != nil {
			after, _ := strconv.Atoi(m[1])
			if m[2] != ",0" {
				after-- // counts the first removed line
			}
			changes[last].hunks = append(changes[last].hunks, hunk{after: after})
		} else if hunks := changes[last].hunks; len(hunks) > 0 && line != "" {
			into := &hunks[len(hunks)-1]
			switch line[0] {
			case '-':
				into.removed = append(into.removed, line[1:])
			case '+':
				into.said = append(into.said, line[1:])
			}
		}
	}
	return changes
}

// apply returns the changed text, or an error if the diff was written for another one.
func (c change) apply(text string) (string, error) {
	hash := fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(text), text))))
	if hash != c.hash {
		return "", fmt.Errorf("git's hash of the file is %s, not %s", hash, c.hash)
	}
	lines := strings.SplitAfter(text, "\n")
	var changed []string
	at := 0
	for _, h := range c.hunks {
		end := h.after + len(h.removed)
		if h.after < at || end > len(lines) || strings.Join(lines[h.after:end], "") != strings.Join(h.removed, "") {
			return "", fmt.Errorf("line %d is not %q", h.after+1, strings.Join(h.removed, ""))
		}
		changed = append(append(changed, lines[at:h.after]...), h.said...)
		at = end
	}
	return strings.Join(append(changed, lines[at:]...), ""), nil
}
