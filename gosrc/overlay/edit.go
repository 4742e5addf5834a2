package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// recognise reads the runtime of a GOROOT. It returns an error unless the edits were
// written for that release and every declaration that uses lists of specials is known.
func recognise(goroot string) (*runtimeSource, error) {
	if err := checkRelease(goroot); err != nil {
		return nil, err
	}
	source, err := readRuntime(goroot)
	if err != nil {
		return nil, err
	}
	for _, want := range declarations {
		place := filepath.Join(source.dir, want.file)
		found, ok := source.declarations[want.name]
		if !ok || found.file != want.file {
			if _, err := os.Stat(place); err != nil {
				return nil, problem{place, "cannot be read: " + reason(err), "reinstall that Go"}
			}
			return nil, problem{place, "does not declare " + want.name, unknownSource}
		}
		if !contains(want.fingerprints, found.fingerprint) {
			return nil, problem{
				fmt.Sprintf("%s:%d", place, found.line),
				fmt.Sprintf("%s differs from the known source (its fingerprint is %s)", found.name, found.fingerprint),
				unknownSource,
			}
		}
	}
	for _, name := range source.names() {
		if !isKnown(name) {
			found := source.declarations[name]
			return nil, problem{
				fmt.Sprintf("%s:%d", filepath.Join(source.dir, found.file), found.line),
				name + " uses lists of specials and is not in the table of known.go", unknownSource,
			}
		}
	}
	return source, nil
}

// checkRelease returns an error unless GOROOT/VERSION names a known release.
func checkRelease(goroot string) error {
	place := filepath.Join(goroot, "VERSION")
	text, err := os.ReadFile(place)
	if err != nil {
		return problem{place, "cannot be read: " + reason(err), unknownSource}
	}
	version := strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0])
	for _, release := range releases {
		if version == "go"+release || strings.HasPrefix(version, "go"+release+".") {
			return nil
		}
	}
	return problem{place + ":1", fmt.Sprintf("is %q, a release whose runtime is not known", version), unknownSource}
}

// edited applies a variant's edits, which are keyed by declaration. It returns the
// changed files by name. With keepLines, all lines keep their numbers.
func (source *runtimeSource) edited(chosen variant, keepLines bool) (map[string][]byte, error) {
	var cuts []cut
	for _, known := range declarations {
		found := source.declarations[known.name]
		var edits []edit
		if !chosen.alone {
			edits = append(edits, known.edits...)
		}
		for _, further := range chosen.edits {
			edits = append(edits, further[known.name]...)
		}
		for _, edit := range edits {
			text := source.text[known.file][found.start:found.end]
			start, end, err := find(text, edit.find)
			if err != nil {
				return nil, problem{
					fmt.Sprintf("%s:%d", filepath.Join(source.dir, known.file), found.line),
					fmt.Sprintf("%s %v", known.name, err), unknownSource,
				}
			}
			put := edit.put
			if !keepLines && put == "" {
				end += bytes.IndexByte(text[end:], '\n') + 1
			}
			if keepLines {
				put += strings.Repeat("\n", strings.Count(string(text[start:end]), "\n"))
			}
			cuts = append(cuts, cut{known.file, found.start + start, found.start + end, put})
		}
	}
	// Replace from the end, so that earlier offsets stay valid.
	sort.Slice(cuts, func(i, j int) bool { return cuts[i].start > cuts[j].start })
	files := map[string][]byte{}
	for _, cut := range cuts {
		text, ok := files[cut.file]
		if !ok {
			text = source.text[cut.file]
		}
		files[cut.file] = []byte(string(text[:cut.start]) + cut.put + string(text[cut.end:]))
	}
	return files, nil
}

// A cut replaces the bytes of a file between two offsets.
type cut struct {
	file       string
	start, end int
	put        string
}

// find returns the byte offsets of the place in text that has the tokens of wanted. It
// is an error if there is not exactly one such place.
func find(text []byte, wanted string) (start, end int, err error) {
	in, looked := tokens(text), tokens([]byte(wanted))
	if last := len(looked) - 1; looked[last].text == ";" {
		looked = looked[:last] // the scanner adds a semicolon at the end
	}
	places := 0
	for i := 0; i+len(looked) <= len(in); i++ {
		same := true
		for j := range looked {
			same = same && in[i+j].text == looked[j].text
		}
		if same {
			places++
			start, end = in[i].start, in[i+len(looked)-1].end
		}
	}
	if places != 1 {
		return 0, 0, fmt.Errorf("contains %q %d times instead of once", wanted, places)
	}
	return start, end, nil
}

// A word is a token of Go source and its byte offsets.
type word struct {
	text       string
	start, end int
}

// tokens returns the tokens of Go source, without comments. A semicolon that the
// scanner inserts at the end of a line equals a written one.
func tokens(text []byte) []word {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var scan scanner.Scanner
	scan.Init(file, text, nil, 0)
	var words []word
	for {
		pos, tok, literal := scan.Scan()
		switch {
		case tok == token.EOF:
			return words
		case tok == token.SEMICOLON || literal == "":
			literal = tok.String()
		}
		start := file.Offset(pos)
		words = append(words, word{literal, start, start + len(literal)})
	}
}
