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

// overlayName is the file that `go build -overlay` wants, below the output folder.
const overlayName = "overlay.json"

// gorootName is a link to GOROOT, below the output folder. Go replaces no file below
// GOMODCACHE, where a downloaded Go is. By this name it is not there.
const gorootName = "goroot"

// An output is what stands in the output folder when a run is done.
type output struct {
	dir    string
	goroot string // as it was named, absolute
	plain  bool   // whether files may be replaced under that name, too
	files  map[string][]byte
}

// write puts the files into a folder that is named by what they are, and then
// overlay.json, which names them, in one step. So a run that is interrupted, or runs
// beside another, leaves an overlay.json that is whole, or none.
func (out output) write() (string, error) {
	if err := os.MkdirAll(out.dir, 0o777); err != nil {
		return "", out.refused(out.dir, err)
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
	if out.stands(folder) {
		return folder, nil
	}
	partial, err := os.MkdirTemp(out.dir, ".partial-")
	if err != nil {
		return "", out.refused(out.dir, err)
	}
	defer os.RemoveAll(partial)
	for name, text := range out.files {
		if err := writeFile(filepath.Join(partial, name), text); err != nil {
			return "", out.refused(partial, err)
		}
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", out.refused(partial, err)
	}
	// What stands there is damaged, or there is nothing.
	if err := os.RemoveAll(folder); err != nil {
		return "", out.refused(folder, err)
	}
	// Another run may have come first, with the same files.
	if err := os.Rename(partial, folder); err != nil && !out.stands(folder) {
		return "", out.refused(folder, err)
	}
	return folder, nil
}

// stands reports whether the folder has the files as they should be.
func (out output) stands(folder string) bool {
	for name, want := range out.files {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(text, want) {
			return false
		}
	}
	return true
}

// sum names the files by what they are.
func (out output) sum() string {
	sum := sha256.New()
	for _, name := range sortedNames(out.files) {
		fmt.Fprintf(sum, "%s %d\n%s", name, len(out.files[name]), out.files[name])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// link makes the link to GOROOT.
func (out output) link() error {
	link := filepath.Join(out.dir, gorootName)
	if to, err := os.Readlink(link); err == nil && to == out.goroot {
		return nil
	}
	partial := filepath.Join(out.dir, fmt.Sprintf(".partial-%s-%d", gorootName, os.Getpid()))
	defer os.Remove(partial)
	if err := os.Symlink(out.goroot, partial); err != nil {
		return out.refused(out.dir, err)
	}
	if err := os.Rename(partial, link); err != nil {
		return out.refused(link, err)
	}
	return nil
}

// commit writes overlay.json and returns its name.
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
		return "", out.refused(out.dir, err)
	}
	partial.Close()
	defer os.Remove(partial.Name())
	if err := writeFile(partial.Name(), append(text, '\n')); err != nil {
		return "", out.refused(partial.Name(), err)
	}
	if err := os.Chmod(partial.Name(), 0o644); err != nil {
		return "", out.refused(partial.Name(), err)
	}
	if err := os.Rename(partial.Name(), whole); err != nil {
		return "", out.refused(whole, err)
	}
	return whole, nil
}

func (out output) refused(place string, err error) error {
	return problem{place, "cannot be written: " + reason(err), "name with -o a folder that can be written, on a disk with room"}
}

// writeFile writes a file that is on the disk when it returns.
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

// isBelow reports whether a path is a folder or below it, links followed or not.
func isBelow(path, folder string) bool {
	if folder == "" {
		return false
	}
	for _, path := range withoutLinks(path) {
		for _, folder := range withoutLinks(folder) {
			if path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator)) {
				return true
			}
		}
	}
	return false
}

func withoutLinks(path string) []string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return []string{path, real}
	}
	return []string{path}
}
