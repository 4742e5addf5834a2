package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzers are the rules for `go vet -vettool`.
var Analyzers = []*analysis.Analyzer{
	analyzer("useafterfree", "report pointers that may be freed while C uses them", func(p *Package, report func(Finding)) {
		p.useAfterFree(report)
	}),
	analyzer("neverruns", "report finalizers and cleanups that never run", (*Package).neverRuns),
	analyzer("closepays", "report closing methods that leave the finalizer or cleanup", func(p *Package, report func(Finding)) {
		p.closePays(report)
	}),
	expensiveSizes,
	analyzer("blocksall", "report finalizers and cleanups that block the others", (*Package).blocksAll),
	analyzer("nottheobject", "report finalizers and cleanups on something else than an object", (*Package).notTheObject),
}

var expensiveSizes = analyzer("expensivesize", "report objects of a size that is expensive to register on (needs -expensivesize.prices)", (*Package).expensiveSize)

var pricesFile, release string

func init() {
	expensiveSizes.Flags.StringVar(&pricesFile, "prices", "", "a file of prices, as gccost check writes it")
	read.Flags.StringVar(&release, "release", "", "the oldest Go release to check for, such as 1.24; the module's, if empty")
}

// read is the analyzer that the others share: it reads a package's registrations.
var read = &analysis.Analyzer{
	Name:             "registrations",
	Doc:              "read the finalizers and cleanups that a package registers",
	Run:              readPass,
	ResultType:       reflect.TypeFor[*Package](),
	RunDespiteErrors: true,
}

func analyzer(name, doc string, rule func(*Package, func(Finding))) *analysis.Analyzer {
	run := func(pass *analysis.Pass) (any, error) {
		p := pass.ResultOf[read].(*Package)
		// Rules run at the same time, and share what each finds out about the package.
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if pricesFile != "" && p.Prices == nil {
			prices, err := ReadPrices(pricesFile)
			if err != nil {
				return nil, err
			}
			p.Prices = prices
		}
		rule(p, func(f Finding) {
			pass.Report(analysis.Diagnostic{Pos: f.Pos, Category: f.Rule, Message: f.What + ". To fix it: " + f.Do})
		})
		return nil, nil
	}
	return &analysis.Analyzer{
		Name: name, Doc: doc, Run: run, Requires: []*analysis.Analyzer{read}, RunDespiteErrors: true,
	}
}

func readPass(pass *analysis.Pass) (any, error) {
	files, info, pkg := pass.Files, pass.TypesInfo, pass.Pkg
	if originals := cgoFiles(pass); len(originals) > 0 {
		files, info, pkg = asWritten(pass, originals)
	}
	p := New(pass.Fset, files, info, pkg, pass.TypesSizes)
	if pkg != pass.Pkg {
		p.Compiled = pass.Pkg
	}
	p.Release = release
	if p.Release == "" {
		p.Release = strings.TrimPrefix(pass.Pkg.GoVersion(), "go")
	}
	return p, nil
}

// cgoFiles are the names of a package's files as they were written, if cgo has rewritten some.
func cgoFiles(pass *analysis.Pass) []string {
	var names []string
	rewritten := false
	for _, file := range pass.Files {
		own := pass.Fset.File(file.FileStart).Name()
		name := pass.Fset.Position(file.Package).Filename
		rewritten = rewritten || name != own
		if filepath.Base(name) != "_cgo_gotypes.go" && strings.HasSuffix(name, ".go") {
			names = append(names, name)
		}
	}
	if !rewritten {
		return nil
	}
	return names
}

// asWritten types a package's files as they were written, because cgo rewrites its calls.
func asWritten(pass *analysis.Pass, names []string) ([]*ast.File, *types.Info, *types.Package) {
	var files []*ast.File
	for _, name := range names {
		// pass.ReadFile reads what cgo wrote only.
		file, err := parser.ParseFile(pass.Fset, name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err == nil {
			files = append(files, file)
		}
	}
	known := map[string]*types.Package{"C": CTypes(files), "unsafe": types.Unsafe}
	for _, each := range pass.Pkg.Imports() {
		known[each.Path()] = each
	}
	pkg, info := TypeCheck(pass.Fset, pass.Pkg.Path(), files, importer(known), pass.TypesSizes, nil)
	return files, info, pkg
}

type importer map[string]*types.Package

func (known importer) Import(path string) (*types.Package, error) {
	if pkg := known[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("cannot import %s", path)
}

// TypeCheck types a package as far as it can; `failed` gets what is wrong, if it is not nil.
func TypeCheck(fset *token.FileSet, path string, files []*ast.File, from types.Importer, sizes types.Sizes, failed func(error)) (*types.Package, *types.Info) {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Instances: map[*ast.Ident]types.Instance{}, Implicits: map[ast.Node]types.Object{},
	}
	if failed == nil {
		failed = func(error) {}
	}
	config := types.Config{Importer: from, Sizes: sizes, Error: failed}
	pkg, _ := config.Check(path, fset, files, info)
	return pkg, info
}
