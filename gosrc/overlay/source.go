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

// A declaration is a function or a type of package runtime, as its source has it.
type declaration struct {
	name        string // as in "addspecial", "(mspan).init"
	file        string // base name
	line        int
	start, end  int // of its text, in bytes from the file's start
	fingerprint string
}

// A runtimeSource is what stands below GOROOT/src/runtime: the text of the files
// that touch lists of specials, and the declarations there that do.
type runtimeSource struct {
	dir          string
	text         map[string][]byte
	declarations map[string]declaration
}

// watched names are those by which code reaches a list of specials. What declares
// or mentions one may link or unlink a record, so it must be known.
var watched = map[string]bool{
	"newSpecialsIter":        true,
	"specialFindSplicePoint": true,
	"specials":               true,
	"specialsIter":           true,
	"unlinkAndNext":          true,
}

// readRuntime reads package runtime of a GOROOT, for every platform at once, as an
// overlay is not made for one. Errors name the file.
func readRuntime(goroot string) (*runtimeSource, error) {
	dir := filepath.Join(goroot, "src", "runtime")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, problem{
			place: dir, what: "cannot be read: " + reason(err),
			hint: "name with -goroot a Go that has its source, such as one that `go mod download` brought",
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
				hint: "make it readable, or install that Go again",
			}
		}
		// A file without the word need not be parsed, which most do not have.
		if !strings.Contains(strings.ToLower(string(text)), "special") {
			continue
		}
		if err := source.add(name, text); err != nil {
			return nil, err
		}
	}
	return source, nil
}

// add takes up one file's declarations that touch lists of specials.
func (source *runtimeSource) add(name string, text []byte) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return problem{
			place: filepath.Join(source.dir, name), what: fmt.Sprintf("is not Go as this command reads it (%v)", err),
			hint: "install that Go again, or run this command with it",
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
				what:  fmt.Sprintf("declares %s, as %s:%d does", name, before.file, before.line), hint: unknownSource,
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

// touchesSpecials reports whether a declaration mentions a watched name, the type
// special, or the links of a record inside of another.
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

// functionName is a function's name, with its receiver's type before a method's.
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

// fingerprint identifies source by its tokens. Comments and layout do not count,
// nor does the release of go/printer that this command was built with.
func fingerprint(text []byte) string {
	sum := sha256.New()
	for _, word := range tokens(text) {
		fmt.Fprintln(sum, word.text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// names of the declarations, sorted by file and line.
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
