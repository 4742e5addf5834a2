// Package load reads the packages of a module without compiling them, so that C's headers need not
// be there: the go command lists them, and go/types types them from their sources.
package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"example.org/gccost/check/rules"
)

// A Problem is what is wrong with a package.
type Problem struct {
	Package string `json:"package"`
	Place   string `json:"place"` // file:line, if known
	Message string `json:"message"`
	// Syntax reports whether a file cannot be parsed.
	Syntax bool `json:"syntax"`
}

// A Package is one that registers, with what could not be typed in it.
type Package struct {
	*rules.Package
	Path     string
	Problems []Problem
}

// A Module is what the go command lists for some patterns.
type Module struct {
	Path     string
	Release  string // the Go release of its go.mod, such as "1.25"
	Packages int    // how many packages match
	Lines    int    // of their Go files
	Register []*Package
	Problems []Problem
}

// listed is what the go command says of a package.
type listed struct {
	Dir, ImportPath, Name string
	GoFiles, CgoFiles     []string
	Imports               []string
	ImportMap             map[string]string
	DepOnly, Standard     bool
	Module                *struct{ Path, GoVersion string }
	Error                 *struct{ Pos, Err string }
}

// A Loader types packages; what several of them import, it types once.
type Loader struct {
	fset  *token.FileSet
	known map[string]*listed
	typed map[string]*types.Package
	sizes types.Sizes
}

// New makes a loader.
func New() *Loader {
	sizes := types.SizesFor("gc", runtime.GOARCH)
	return &Loader{token.NewFileSet(), map[string]*listed{}, map[string]*types.Package{}, sizes}
}

// Module reads the packages of the module in a folder that match patterns, and of these the ones
// that register. The error is that of the go command.
func (l *Loader) Module(folder, tags string, patterns []string) (*Module, error) {
	packages, err := list(folder, tags, patterns)
	if err != nil {
		return nil, err
	}
	for _, each := range packages {
		if !each.Standard || l.known[each.ImportPath] == nil {
			l.known[each.ImportPath] = each
		}
		if !each.Standard {
			delete(l.typed, each.ImportPath)
		}
	}
	module := new(Module)
	for _, each := range packages {
		if each.DepOnly {
			continue
		}
		l.add(module, each)
	}
	return module, nil
}

func (l *Loader) add(module *Module, each *listed) {
	if each.Module != nil {
		module.Path, module.Release = each.Module.Path, each.Module.GoVersion
	}
	names := append(append([]string{}, each.GoFiles...), each.CgoFiles...)
	if each.Error != nil {
		problem := Problem{Package: each.ImportPath, Place: each.Error.Pos, Message: firstLine(each.Error.Err)}
		module.Problems = append(module.Problems, problem)
	}
	if len(names) == 0 {
		return
	}
	module.Packages++
	registers := false
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(each.Dir, name))
		if err != nil {
			continue
		}
		module.Lines += bytes.Count(text, []byte("\n"))
		registers = registers || bytes.Contains(text, []byte("SetFinalizer")) || bytes.Contains(text, []byte("AddCleanup"))
	}
	if !registers {
		l.parse(each, names, &module.Problems)
		return
	}
	pkg := l.own(each, names)
	pkg.Release = module.Release
	module.Problems = append(module.Problems, pkg.Problems...)
	if len(pkg.Registrations) > 0 {
		module.Register = append(module.Register, pkg)
	}
}

// list asks the go command for packages and everything that they import.
func list(folder, tags string, patterns []string) ([]*listed, error) {
	fields := "-json=Dir,ImportPath,Name,GoFiles,CgoFiles,Imports,ImportMap,DepOnly,Standard,Module,Error"
	arguments := append([]string{"list", "-e", "-deps", "-tags=" + tags, fields, "--"}, patterns...)
	command := exec.Command("go", arguments...)
	command.Dir = folder
	// Cgo's files are listed, although there may be no C compiler.
	command.Env = append(os.Environ(), "CGO_ENABLED=1")
	var output, failed bytes.Buffer
	command.Stdout, command.Stderr = &output, &failed
	if err := command.Run(); err != nil {
		if said := strings.TrimSpace(failed.String()); said != "" {
			return nil, errors.New(said)
		}
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []*listed
	decoder := json.NewDecoder(&output)
	for {
		each := new(listed)
		if err := decoder.Decode(each); err == io.EOF {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, each)
	}
}

// own types a package with the bodies of its functions.
func (l *Loader) own(each *listed, names []string) *Package {
	pkg := &Package{Path: each.ImportPath}
	files := l.parse(each, names, &pkg.Problems)
	c := rules.CTypes(files)
	fail := func(err error) {
		var failed types.Error
		if !errors.As(err, &failed) || isOfC(failed.Msg) || len(pkg.Problems) > 0 {
			return
		}
		pkg.Problems = append(pkg.Problems, Problem{each.ImportPath, l.place(failed.Pos), failed.Msg, false})
	}
	typed, info := rules.TypeCheck(l.fset, each.ImportPath, files, imports{l, each, c}, l.sizes, fail)
	pkg.Package = rules.New(l.fset, files, info, typed, l.sizes)
	return pkg
}

// isOfC reports whether an error comes from the package C, which is made up.
func isOfC(message string) bool {
	return strings.Contains(message, "C.") || strings.Contains(message, "package C") || strings.Contains(message, "by C")
}

func (l *Loader) parse(each *listed, names []string, problems *[]Problem) []*ast.File {
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(l.fset, filepath.Join(each.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil && problems != nil {
			*problems = append(*problems, syntaxProblem(each, name, err))
		}
		if file != nil {
			files = append(files, file)
		}
	}
	return files
}

func syntaxProblem(each *listed, name string, err error) Problem {
	problem := Problem{each.ImportPath, filepath.Join(each.Dir, name), err.Error(), true}
	var all scanner.ErrorList
	if errors.As(err, &all) && len(all) > 0 {
		problem.Place, problem.Message = all[0].Pos.String(), all[0].Msg
	}
	return problem
}

func (l *Loader) place(pos token.Pos) string {
	at := l.fset.Position(pos)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// imports are the packages that one imports.
type imports struct {
	l  *Loader
	by *listed
	c  *types.Package
}

// Import types a package without the bodies of its functions.
func (from imports) Import(path string) (*types.Package, error) {
	switch path {
	case "C":
		return from.c, nil
	case "unsafe":
		return types.Unsafe, nil
	}
	if mapped := from.by.ImportMap[path]; mapped != "" {
		path = mapped
	}
	l := from.l
	if done := l.typed[path]; done != nil {
		return done, nil
	}
	each := l.known[path]
	if each == nil || len(each.GoFiles)+len(each.CgoFiles) == 0 {
		return nil, fmt.Errorf("the package %s is not on this machine", path)
	}
	files := l.parse(each, append(append([]string{}, each.GoFiles...), each.CgoFiles...), nil)
	config := types.Config{
		Importer: imports{l, each, rules.CTypes(files)}, Sizes: l.sizes,
		IgnoreFuncBodies: true, Error: func(error) {},
	}
	done, _ := config.Check(path, l.fset, files, nil)
	l.typed[path] = done
	return done, nil
}
