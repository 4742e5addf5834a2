// Counting writes an overlay for `go build -overlay`: the runtime of a Go release, 1.24 or later, that
// also counts what is registered with it, and package registers with a function that reads the
// counts. It edits no file of that Go.
//
//	go run ./counting -o DIR
//
// DIR gets overlay.json and goroot, a link to GOROOT: build with GOROOT=DIR/goroot, because Go does
// not replace files below its module cache by their own names.
package main

import (
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// What is added to package runtime and put in place of a file of package registers. The suffix
// .txt keeps Go tools from compiling it into this module.
//
//go:embed added/*.go.txt
var added embed.FS

// The functions of mheap.go through which each registration goes, in the order of the counts.
var functions = []string{"addfinalizer", "addCleanup", "getOrAddWeakHandle"}

func main() {
	dir := flag.String("o", "", "the `folder` to write overlay.json to")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "counting:", err)
		os.Exit(1)
	}
}

// write writes the overlay to a folder. An error names the place and what to do.
func write(dir string) error {
	if dir == "" {
		return errors.New("-o: is missing. To fix it: name an output folder")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: failed: %v. To fix it: put Go's bin folder on PATH", err)
	}
	goroot := strings.TrimSpace(string(out))
	link := filepath.Join(dir, "goroot")
	os.Remove(link)
	if err := os.Symlink(goroot, link); err != nil {
		return err
	}
	in := filepath.Join("src", "runtime")
	mheap, err := counted(filepath.Join(goroot, in, "mheap.go"))
	if err != nil {
		return err
	}
	runtime, err := added.ReadFile("added/runtime.go.txt")
	if err != nil {
		return err
	}
	reader, err := added.ReadFile("added/counts.go.txt")
	if err != nil {
		return err
	}
	files := map[string][]byte{"mheap.go": mheap, "zcounts.go": runtime, "counts.go": reader}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	replace := map[string]string{}
	for _, name := range []string{"mheap.go", "zcounts.go"} {
		replace[filepath.Join(link, in, name)] = filepath.Join(dir, name)
	}
	module, err := os.Getwd()
	if err != nil {
		return err
	}
	replace[filepath.Join(module, "registers", "counts.go")] = filepath.Join(dir, "counts.go")
	text, err := json.MarshalIndent(map[string]interface{}{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	// Written last: if it exists, so does the rest.
	return os.WriteFile(filepath.Join(dir, "overlay.json"), append(text, '\n'), 0o644)
}

// counted returns the text of a mheap.go in which each of the functions counts its calls. No line
// moves, so that line numbers stay as they are.
func counted(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read. To fix it: reinstall that Go", path)
	}
	for kind, name := range functions {
		head := regexp.MustCompile(`(?m)^func ` + name + `\(.*\{$`)
		if n := len(head.FindAll(text, -1)); n != 1 {
			return nil, fmt.Errorf("%s: declares %s %d times instead of once. To fix it: take Go 1.24 to 1.27", path, name, n)
		}
		text = head.ReplaceAll(text, []byte(fmt.Sprintf("${0} registrations[%d].Add(1)", kind)))
	}
	return text, nil
}
