package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// overlayName is the file in the output folder for `go build -overlay`.
const overlayName = "overlay.json"

// gorootName is a symbolic link in the output folder to GOROOT. Go does not replace files
// below GOMODCACHE, where it stores downloaded toolchains; a path through the link is
// not below GOMODCACHE.
const gorootName = "goroot"

// An output describes the contents of the output folder.
type output struct {
	dir    string
	goroot string // absolute, links not resolved
	plain  bool   // whether Go also replaces files below goroot itself
	files  map[string][]byte
}

// write writes the files to a folder that is named by their hash, then replaces
// overlay.json, which names them, atomically. So an interrupted or concurrent run
// leaves a complete overlay.json or none.
func (out output) write() (string, error) {
	if err := os.MkdirAll(out.dir, 0o777); err != nil {
		return "", out.writeProblem(out.dir, err)
	}
	folder, err := out.stage()
	if err != nil {
		return "", err
	}
	if err := out.link(); err != nil {
		return "", err
	}
	return out.commit(folder)
}

// stage writes the files and returns their folder.
func (out output) stage() (string, error) {
	folder := filepath.Join(out.dir, out.sum())
	if out.intact(folder) {
		return folder, nil
	}
	partial, err := os.MkdirTemp(out.dir, ".partial-")
	if err != nil {
		return "", out.writeProblem(out.dir, err)
	}
	defer os.RemoveAll(partial)
	for name, text := range out.files {
		if err := writeFile(filepath.Join(partial, name), text); err != nil {
			return "", out.writeProblem(partial, err)
		}
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", out.writeProblem(partial, err)
	}
	// The folder is missing or damaged.
	if err := os.RemoveAll(folder); err != nil {
		return "", out.writeProblem(folder, err)
	}
	// A concurrent run may have created the folder with the same files.
	if err := os.Rename(partial, folder); err != nil && !out.intact(folder) {
		return "", out.writeProblem(folder, err)
	}
	return folder, nil
}

// intact reports whether the folder contains the files unchanged.
func (out output) intact(folder string) bool {
	for name, want := range out.files {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(text, want) {
			return false
		}
	}
	return true
}

// sum returns a hash of the files' names and contents.
func (out output) sum() string {
	sum := sha256.New()
	for _, name := range sortedNames(out.files) {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(out.files[name]), out.files[name])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// link creates the link to GOROOT, or replaces it if it is wrong.
func (out output) link() error {
	link := filepath.Join(out.dir, gorootName)
	if to, err := os.Readlink(link); err == nil && to == out.goroot {
		return nil
	}
	partial := filepath.Join(out.dir, fmt.Sprintf(".partial-%s-%d", gorootName, os.Getpid()))
	defer os.Remove(partial)
	if err := os.Symlink(out.goroot, partial); err != nil {
		return out.writeProblem(out.dir, err)
	}
	if err := os.Rename(partial, link); err != nil {
		return out.writeProblem(link, err)
	}
	return nil
}

// commit writes overlay.json and returns its path.
func (out output) commit(folder string) (string, error) {
	replace := map[string]string{}
	for name := range out.files {
		in := filepath.Join("src", "runtime", name)
		replace[filepath.Join(out.dir, gorootName, in)] = filepath.Join(folder, name)
		if out.plain {
			replace[filepath.Join(out.goroot, in)] = filepath.Join(folder, name)
		}
	}
	text, err := json.MarshalIndent(map[string]interface{}{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	whole := filepath.Join(out.dir, overlayName)
	partial, err := os.CreateTemp(out.dir, ".partial-")
	if err != nil {
		return "", out.writeProblem(out.dir, err)
	}
	partial.Close()
	defer os.Remove(partial.Name())
	if err := writeFile(partial.Name(), append(text, '\n')); err != nil {
		return "", out.writeProblem(partial.Name(), err)
	}
	if err := os.Chmod(partial.Name(), 0o644); err != nil {
		return "", out.writeProblem(partial.Name(), err)
	}
	if err := os.Rename(partial.Name(), whole); err != nil {
		return "", out.writeProblem(whole, err)
	}
	return whole, nil
}

func (out output) writeProblem(place string, err error) error {
	return problem{place, "cannot be written: " + reason(err), "set -o to a writable folder on a disk with free space"}
}

// writeFile writes a file and syncs it to disk.
func writeFile(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}

// isBelow reports whether a path is a folder or below it, with or without links resolved.
func isBelow(path, folder string) bool {
	if folder == "" {
		return false
	}
	for _, path := range pathAndTarget(path) {
		for _, folder := range pathAndTarget(folder) {
			if path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator)) {
				return true
			}
		}
	}
	return false
}

func pathAndTarget(path string) []string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return []string{path, real}
	}
	return []string{path}
}
