package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// For each patch of the series a folder with its commit message and its tests.
//
//go:embed upstream/*/*
var upstream embed.FS

// The patches of the series, in order. Each is named like the variant that it makes.
var series = []string{"hint", "index"}

const (
	// license heads each file of Go's own source.
	license = "// Copyright 2026 The Go Authors. All rights reserved.\n" +
		"// Use of this source code is governed by a BSD-style\n" +
		"// license that can be found in the LICENSE file.\n\n"
	message = "COMMIT_MESSAGE"
)

var (
	// hooks matches the calls that only the checked and plus variants need.
	hooks = regexp.MustCompile(`(?m)^\s*span\.(checkSpecials|checkBefore|linkRoot|unlinkRoot)\(.*\)\n`)
	// The edits add no lines, so they cannot add line comments.
	comments = regexp.MustCompile(`/\* (.*) \*/;`)
	search   = regexp.MustCompile(`(?ms)^func \(span \*mspan\) specialFindSplicePoint.*?^}\n`)
	// What the comment of the search says of its result, before and after.
	returned = [2]string{
		"Returns a pointer to the next-reference in the list predecessor.\n",
		"Returns the list predecessor, or nil at the head of the list.\n",
	}
)

// upstreamFiles returns the files of package runtime that differ from the source after a
// patch of the series, as they would be in Go's own tree: formatted, without hooks for
// other variants, and with the tests.
func (source *runtimeSource) upstreamFiles(variant string) (map[string][]byte, error) {
	files, err := source.edited(variants[variant], false)
	if err != nil {
		return nil, err
	}
	mheap := comments.ReplaceAll(files["mheap.go"], []byte("// $1\n"))
	mheap = bytes.Replace(mheap, []byte(returned[0]), []byte(returned[1]), 1)
	for _, name := range variants[variant].added {
		text, err := added.ReadFile("added/" + name + ".txt")
		if err != nil {
			return nil, err
		}
		text = hooks.ReplaceAll(text, nil)
		switch {
		case name == "mspecialindex.go":
			files[name] = text
		case !strings.HasPrefix(name, "mspecialcheck") && !strings.HasPrefix(name, "mspecialplus"):
			// A few lines, which follow the search.
			text = bytes.TrimPrefix(text, []byte("package runtime\n"))
			mheap = search.ReplaceAllFunc(mheap, func(found []byte) []byte { return append(bytes.Clone(found), text...) })
		}
	}
	files["mheap.go"] = mheap
	for _, folder := range series {
		tests, err := fs.Glob(upstream, "upstream/"+folder+"/*.go.txt")
		if err != nil {
			return nil, err
		}
		for _, name := range tests {
			base := strings.TrimSuffix(path.Base(name), ".txt")
			// The hint's own tests end with it.
			if folder != variant && strings.Contains(base, "mspecial"+folder) {
				continue
			}
			if files[base], err = upstream.ReadFile(name); err != nil {
				return nil, err
			}
		}
		if folder == variant {
			break
		}
	}
	for name, text := range files {
		if bytes.HasPrefix(text, []byte("package ")) {
			text = append([]byte(license), text...)
		}
		if files[name], err = format.Source(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// writeSeries writes a patch for each of the series to a folder, as `git format-patch`
// does, for `git am` or `git apply`. It returns their names.
func (source *runtimeSource) writeSeries(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, problem{dir, "cannot be written: " + reason(err), "name a writable folder"}
	}
	before := source.text
	var names []string
	for i, variant := range series {
		after, err := source.upstreamFiles(variant)
		if err != nil {
			return nil, err
		}
		text, err := upstream.ReadFile("upstream/" + variant + "/" + message)
		if err != nil {
			return nil, err
		}
		subject, body, _ := strings.Cut(string(text), "\n")
		var mail bytes.Buffer
		fmt.Fprintf(&mail, "From %040d Mon Sep 17 00:00:00 2001\nFrom: gccost <gccost@example.com>\n", 0)
		fmt.Fprintf(&mail, "Subject: [PATCH %d/%d] %s\n%s---\n", i+1, len(series), subject, body)
		for _, name := range sortedNames(union(before, after)) {
			was, is := before[name], after[name]
			if is == nil && source.text[name] != nil {
				is = source.text[name]
			}
			if err := diff(&mail, name, was, is); err != nil {
				return nil, err
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("%04d-%s.patch", i+1, variant))
		if err := os.WriteFile(name, mail.Bytes(), 0o644); err != nil {
			return nil, problem{name, "cannot be written: " + reason(err), "name a writable folder"}
		}
		names = append(names, name)
		before = union(source.text, after)
	}
	return names, nil
}

// union returns the files of both, of the second where both have one.
func union(a, b map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	for _, files := range []map[string][]byte{a, b} {
		for name, text := range files {
			all[name] = text
		}
	}
	return all
}

// diff prints a unified diff of two versions of a file of package runtime. A version that
// is nil does not exist.
func diff(to *bytes.Buffer, name string, before, after []byte) error {
	if bytes.Equal(before, after) {
		return nil
	}
	dir, err := os.MkdirTemp("", "overlay-patch-")
	if err != nil {
		return problem{os.TempDir(), "cannot be written: " + reason(err), "set TMPDIR to a writable folder"}
	}
	defer os.RemoveAll(dir)
	arguments := []string{"-u"}
	var files []string
	for _, side := range []struct {
		label string
		text  []byte
	}{{"a", before}, {"b", after}} {
		label, file := path.Join(side.label, "src", "runtime", name), filepath.Join(dir, side.label)
		if side.text == nil {
			label = os.DevNull
		}
		if err := os.WriteFile(file, side.text, 0o644); err != nil {
			return problem{file, "cannot be written: " + reason(err), "set TMPDIR to a writable folder"}
		}
		arguments, files = append(arguments, "-L", label), append(files, file)
	}
	// git am needs these lines to know that a file is new or gone.
	fmt.Fprintf(to, "diff --git a/src/runtime/%[1]s b/src/runtime/%[1]s\n", name)
	switch {
	case before == nil:
		fmt.Fprintln(to, "new file mode 100644")
	case after == nil:
		fmt.Fprintln(to, "deleted file mode 100644")
	}
	var said bytes.Buffer
	command := exec.Command("diff", append(arguments, files...)...)
	command.Stdout, command.Stderr = to, &said
	// diff exits with status 1 if the files differ.
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return problem{"diff", "failed: " + err.Error() + " " + strings.TrimSpace(said.String()), "install diffutils"}
	}
	return nil
}
