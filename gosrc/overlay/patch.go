package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// The test that the patch adds.
//
//go:embed upstream/*.go.txt
var upstream embed.FS

const (
	upstreamTest = "mspecialindex_test.go"
	// license heads each file of Go's own source.
	license = "// Copyright 2026 The Go Authors. All rights reserved.\n" +
		"// Use of this source code is governed by a BSD-style\n" +
		"// license that can be found in the LICENSE file.\n\n"
)

// hooks matches the calls that only the checked and plus variants need.
var hooks = regexp.MustCompile(`(?m)^\s*span\.(checkSpecials|checkSplicePoint|linkRoot|unlinkRoot)\(.*\)\n`)

// upstreamFiles returns the files of the index variant, by name, as they would be in Go's
// own tree: formatted, without hooks for other variants, and with the test.
func (source *runtimeSource) upstreamFiles() (map[string][]byte, error) {
	files, err := source.edited(variants[defaultVariant].edits, false)
	if err != nil {
		return nil, err
	}
	index, err := added.ReadFile("added/mspecialindex.go.txt")
	if err != nil {
		return nil, err
	}
	test, err := upstream.ReadFile("upstream/" + upstreamTest + ".txt")
	if err != nil {
		return nil, err
	}
	files["mspecialindex.go"] = append([]byte(license), hooks.ReplaceAll(index, nil)...)
	files[upstreamTest] = append([]byte(license), test...)
	for name, text := range files {
		if files[name], err = format.Source(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// printPatch runs diff to print the index variant as a unified diff against the source,
// for `git apply` or `patch -p1`.
func (source *runtimeSource) printPatch(stdout io.Writer) error {
	files, err := source.upstreamFiles()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "overlay-patch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range sortedNames(files) {
		before, as := filepath.Join(source.dir, name), path.Join("src", "runtime", name)
		labels := []string{"a/" + as, "b/" + as}
		if _, err := os.Stat(before); err != nil {
			before, labels[0] = os.DevNull, os.DevNull
		}
		after := filepath.Join(dir, name)
		if err := os.WriteFile(after, files[name], 0o644); err != nil {
			return problem{after, "cannot be written: " + reason(err), "set TMPDIR to a writable folder"}
		}
		var said bytes.Buffer
		command := exec.Command("diff", "-u", "-L", labels[0], "-L", labels[1], before, after)
		command.Stdout, command.Stderr = stdout, &said
		// diff exits with status 1 if the files differ.
		var exit *exec.ExitError
		if err := command.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
			return problem{"diff", "failed: " + err.Error() + " " + strings.TrimSpace(said.String()), "install diffutils"}
		}
	}
	return nil
}
