package main

import (
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// The files that are added to package runtime. The suffix .txt keeps Go tools from
// compiling them into this module.
//
//go:embed added/*.go.txt
var added embed.FS

// A variant is a patched runtime: the files that it adds, and its edits. It also has the
// edits that replace the walk, unless it is alone.
type variant struct {
	added []string
	edits []map[string][]edit
	alone bool
}

var (
	hint     = []string{"mspeciallink.go", "mspecialhint.go"}
	index    = []string{"mspeciallink.go", "mspecialindex.go", "mspecialplus_off.go"}
	plus     = []string{"mspeciallink.go", "mspecialindex.go", "mspecialplus_on.go"}
	variants = map[string]variant{
		"hint":         {append(hint, "mspecialcheck_off.go"), []map[string][]edit{hintEdits}, false},
		"checked-hint": {append(hint, "mspecialcheck_on.go", "mspecialcheck_hint.go"), []map[string][]edit{hintEdits}, false},
		"index":        {append(index, "mspecialcheck_off.go"), []map[string][]edit{indexEdits}, false},
		"checked":      {append(index, "mspecialcheck_on.go", "mspecialcheck_index.go"), []map[string][]edit{indexEdits}, false},
		"plus":         {append(plus, "mspecialcheck_off.go"), []map[string][]edit{indexEdits, plusEdits}, false},
		"checked-plus": {
			append(plus, "mspecialcheck_on.go", "mspecialcheck_index.go", "mspecialcheck_plus.go"),
			[]map[string][]edit{indexEdits, plusEdits}, false,
		},
		"requeue": {nil, []map[string][]edit{requeueEdits}, true},
	}
)

const defaultVariant = "index"

func main() {
	if err := overlay(os.Args[1:], os.Stdout, os.Stderr); errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
}

// overlay runs the command that the package comment describes. It writes notes for the
// user to stderr.
func overlay(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("overlay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("o", "", "the `folder` to write "+overlayName+" to")
	name := flags.String("variant", defaultVariant, "the runtime to write: "+strings.Join(sortedNames(variants), " or "))
	goroot := flags.String("goroot", "", "the GOROOT to patch (default: the output of `go env GOROOT`)")
	patches := flags.String("series", "", "write hint and index as a patch series for Go's own tree to this `folder`, and nothing else")
	fingerprints := flags.Bool("fingerprints", false, "print the runtime's declarations that use specials, and write nothing")
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	if flags.NArg() > 0 {
		return problem{flags.Arg(0), "is an unexpected argument", "leave it out"}
	}
	env, err := goEnvironment()
	if err != nil && *goroot == "" {
		return err
	}
	if *goroot == "" {
		*goroot = env.GOROOT
	}
	if *goroot, err = filepath.Abs(*goroot); err != nil {
		return err
	}
	if *fingerprints {
		return printFingerprints(*goroot, stdout)
	}
	if *patches != "" {
		source, err := recognise(*goroot)
		if err != nil {
			return err
		}
		names, err := source.writeSeries(*patches)
		if err == nil {
			fmt.Fprintln(stdout, strings.Join(names, "\n"))
		}
		return err
	}
	if *dir == "" {
		return problem{"-o", "is missing", "name an output folder"}
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	chosen, ok := variants[*name]
	if !ok {
		return problem{
			"-variant", fmt.Sprintf("unknown variant %q", *name),
			"name one of " + strings.Join(sortedNames(variants), ", "),
		}
	}

	source, err := recognise(*goroot)
	if err != nil {
		return err
	}
	files, err := source.edited(chosen, true)
	if err != nil {
		return err
	}
	for _, name := range chosen.added {
		if _, err := os.Lstat(filepath.Join(source.dir, name)); err == nil {
			return problem{filepath.Join(source.dir, name), "already exists, but the overlay adds this file", unknownSource}
		}
		if files[name], err = fs.ReadFile(added, "added/"+name+".txt"); err != nil {
			return err
		}
	}
	out := output{*dir, *goroot, !isBelow(*goroot, env.GOMODCACHE), files}
	written, err := out.write()
	if err != nil {
		return err
	}
	if !out.plain {
		fmt.Fprintf(stderr, "overlay: GOROOT is below GOMODCACHE, where Go does not replace files; build with GOROOT=%s\n",
			filepath.Join(*dir, gorootName))
	}
	fmt.Fprintln(stdout, written)
	return nil
}

// goEnvironment returns GOROOT and GOMODCACHE from the go command. Under `go run` it is
// the go command that runs this program.
func goEnvironment() (env struct{ GOROOT, GOMODCACHE string }, err error) {
	command := exec.Command("go", "env", "-json", "GOROOT", "GOMODCACHE")
	answer, err := command.Output()
	if err == nil {
		err = json.Unmarshal(answer, &env)
	}
	if err != nil {
		return env, problem{"go env", "failed: " + reason(err), "put Go's bin folder on PATH, or set -goroot"}
	}
	return env, nil
}

// printFingerprints prints the table to compare a new release with.
func printFingerprints(goroot string, stdout io.Writer) error {
	source, err := readRuntime(goroot)
	if err != nil {
		return err
	}
	for _, name := range source.names() {
		found := source.declarations[name]
		fmt.Fprintln(stdout, found.file, found.name, found.fingerprint)
	}
	return nil
}

// A problem is an error that the user can fix.
type problem struct {
	place string // a file and line, or a flag
	what  string
	hint  string
}

func (p problem) Error() string {
	return fmt.Sprintf("%s: %s. To fix it: %s", p.place, p.what, p.hint)
}

// reason returns the system's error message without the path, which the caller names.
func reason(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}
	return err.Error()
}

func sortedNames[T any](of map[string]T) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
