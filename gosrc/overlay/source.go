package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// A declaration is a function or type in the source of package runtime.
type declaration struct {
	name        string // such as "addspecial" or "(mspan).init"
	file        string // base name
	line        int
	start, end  int // byte offsets of its text in the file
	fingerprint string
}

// A runtimeSource is the part of GOROOT/src/runtime that uses lists of specials: the
// text of those files, and the declarations in them that do.
type runtimeSource struct {
	dir          string
	text         map[string][]byte
	declarations map[string]declaration
}

// watched holds the names through which code reaches a list of specials. A declaration
// that uses one may link or unlink a record, so it must be known.
var watched = map[string]bool{
	"newSpecialsIter":        true,
	"specialFindSplicePoint": true,
	"specials":               true,
	"specialsIter":           true,
	"unlinkAndNext":          true,
}

// readRuntime reads package runtime of a GOROOT. It reads the files of all platforms,
// because one overlay serves them all. Errors name the file.
func readRuntime(goroot string) (*runtimeSource, error) {
	dir := filepath.Join(goroot, "src", "runtime")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, problem{
			place: dir, what: "cannot be read: " + reason(err),
			hint: "set -goroot to a Go with its source, such as a toolchain that the go command downloaded",
		}
	}
	source := &runtimeSource{dir, map[string][]byte{}, map[string]declaration{}}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, problem{
				place: filepath.Join(dir, name), what: "cannot be read: " + reason(err),
				hint: "make it readable, or reinstall that Go",
			}
		}
		// Most files do not contain the word and need not be parsed.
		if !strings.Contains(strings.ToLower(string(text)), "special") {
			continue
		}
		if err := source.add(name, text); err != nil {
			return nil, err
		}
	}
	return source, nil
}

// add adds the declarations of one file that use lists of specials.
func (source *runtimeSource) add(name string, text []byte) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return problem{
			place: filepath.Join(source.dir, name), what: fmt.Sprintf("cannot be parsed as Go (%v)", err),
			hint: "reinstall that Go, or run this command with it",
		}
	}
	keep := func(name string, node ast.Node) error {
		if !isKnown(name) && !touchesSpecials(node) {
			return nil
		}
		start, end := files.Position(node.Pos()), files.Position(node.End())
		source.text[start.Filename] = text
		if before, twice := source.declarations[name]; twice {
			return problem{
				place: fmt.Sprintf("%s:%d", filepath.Join(source.dir, start.Filename), start.Line),
				what:  fmt.Sprintf("redeclares %s (also at %s:%d)", name, before.file, before.line), hint: unknownSource,
			}
		}
		source.declarations[name] = declaration{
			name, start.Filename, start.Line, start.Offset, end.Offset,
			fingerprint(text[start.Offset:end.Offset]),
		}
		return nil
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if err := keep(functionName(decl), decl); err != nil {
				return err
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				name := decl.Tok.String()
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					name = spec.Name.Name
				case *ast.ValueSpec:
					name = spec.Names[0].Name
				}
				if err := keep(name, spec); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// touchesSpecials reports whether a declaration mentions a watched name, a pointer to
// the type special, or the next or offset field of a special embedded in another record.
func touchesSpecials(node ast.Node) bool {
	found := false
	ast.Inspect(node, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			found = found || watched[node.Name]
		case *ast.StarExpr:
			found = found || isNamed(node.X, "special")
		case *ast.TypeSpec:
			found = found || node.Name.Name == "special"
		case *ast.SelectorExpr:
			inside, ok := node.X.(*ast.SelectorExpr)
			found = found || ok && inside.Sel.Name == "special" && (node.Sel.Name == "next" || node.Sel.Name == "offset")
		}
		return !found
	})
	return found
}

func isNamed(node ast.Expr, name string) bool {
	ident, ok := node.(*ast.Ident)
	return ok && ident.Name == name
}

// functionName returns a function's name. A method's name begins with the receiver's
// type, as in "(mspan).init".
func functionName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	receiver := decl.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if ident, ok := receiver.(*ast.Ident); ok {
		return "(" + ident.Name + ")." + decl.Name.Name
	}
	return decl.Name.Name
}

// fingerprint returns a hash of the tokens of Go source. It does not depend on comments,
// layout, or the release of go/printer that this command was built with.
func fingerprint(text []byte) string {
	sum := sha256.New()
	for _, word := range tokens(text) {
		fmt.Fprintln(sum, word.text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// names returns the names of the declarations, sorted by file and line.
func (source *runtimeSource) names() []string {
	var names []string
	for name := range source.declarations {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := source.declarations[names[i]], source.declarations[names[j]]
		return a.file < b.file || a.file == b.file && a.start < b.start
	})
	return names
}
