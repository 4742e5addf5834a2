// Check finds finalizers and cleanups that harm, or that cost more than they need to.
//
//	check [-json] [-tags list] [-release 1.24] [-prices file] [folder [pattern ...]]
//	go vet -vettool=$(which check) ./...
//
// Alone it needs neither a C compiler nor C's headers: what it then cannot type, it lists as not
// checked. As a tool of go vet it reads packages that compile, with the sizes of C's types.
//
// The exit status is 0 without findings, 3 with one, 2 if the module cannot be read.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"example.org/gccost/check/load"
	"example.org/gccost/check/rules"
)

func main() {
	if asVettool(os.Args[1:]) {
		unitchecker.Main(rules.Analyzers...)
	}
	os.Exit(check(os.Args[1:], os.Stdout, os.Stderr))
}

// asVettool reports whether the go command runs the program.
func asVettool(arguments []string) bool {
	for _, each := range arguments {
		if strings.HasPrefix(each, "-V=") || each == "-flags" || strings.HasSuffix(each, ".cfg") {
			return true
		}
	}
	return false
}

// A report is what the program prints with -json.
type report struct {
	Module        string         `json:"module"`
	Release       string         `json:"release"`
	Packages      int            `json:"packages"`
	Lines         int            `json:"lines"`
	Registrations []registration `json:"registrations"`
	Findings      []finding      `json:"findings"`
	Unchecked     []unchecked    `json:"unchecked"`
	Problems      []load.Problem `json:"problems"`
	Passing       int            `json:"functions_passing_to_c"`
	Dying         int            `json:"functions_with_use_after_free"`
	Closers       int            `json:"closing_methods"`
	Paying        int            `json:"closing_methods_that_pay"`
}

type registration struct {
	API    string `json:"api"`
	Object string `json:"object"`
	Bytes  int64  `json:"bytes"` // -1 if unknown
	Class  int64  `json:"class"` // the size class; -1 if unknown
	Place  string `json:"place"`
}

type finding struct {
	Rule   string `json:"rule"`
	Place  string `json:"place"`
	What   string `json:"what"`
	Do     string `json:"do"`
	API    string `json:"api"`
	Object string `json:"object"`
	Bytes  int64  `json:"bytes"`
	Class  int64  `json:"class"`
}

type unchecked struct {
	Rule  string `json:"rule"`
	Place string `json:"place"`
	Why   string `json:"why"`
}

type options struct {
	asJSON, many          bool
	tags, release, prices string
}

func check(arguments []string, output, failed io.Writer) int {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(failed)
	var chosen options
	flags.BoolVar(&chosen.asJSON, "json", false, "print a JSON object for each module")
	flags.BoolVar(&chosen.many, "modules", false, "the arguments are folders of modules")
	flags.StringVar(&chosen.tags, "tags", "", "build tags, separated by commas")
	flags.StringVar(&chosen.release, "release", "", "the oldest Go release to check for; the module's, if empty")
	flags.StringVar(&chosen.prices, "prices", "", "a file of prices, as gccost check writes it")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	var prices *rules.Prices
	if chosen.prices != "" {
		read, err := rules.ReadPrices(chosen.prices)
		if err != nil {
			fmt.Fprintln(failed, err)
			return 2
		}
		prices = read
	}
	folder, patterns := ".", []string{"./..."}
	if flags.NArg() > 0 {
		folder = flags.Arg(0)
	}
	if flags.NArg() > 1 {
		patterns = flags.Args()[1:]
	}
	folders := []string{folder}
	if chosen.many {
		folders, patterns = flags.Args(), []string{"./..."}
	}
	status := 0
	loader := load.New()
	for _, each := range folders {
		status = max(status, one(loader, each, patterns, chosen, prices, output, failed))
	}
	return status
}

// one checks one module.
func one(loader *load.Loader, folder string, patterns []string, chosen options, prices *rules.Prices, output, failed io.Writer) int {
	module, err := loader.Module(folder, chosen.tags, patterns)
	if err != nil {
		fmt.Fprintf(failed, "%s: %v\n", folder, err)
		return 2
	}
	if chosen.release != "" {
		module.Release = chosen.release
	}
	found := reportOf(module, prices, folder)
	if chosen.asJSON {
		encoder := json.NewEncoder(output)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(found); err != nil {
			return 2
		}
	} else {
		print(output, found)
	}
	if len(found.Findings) > 0 {
		return 3
	}
	return 0
}

func reportOf(module *load.Module, prices *rules.Prices, folder string) report {
	found := report{
		Module: module.Path, Release: module.Release, Packages: module.Packages, Lines: module.Lines,
		Registrations: []registration{}, Findings: []finding{}, Unchecked: []unchecked{}, Problems: []load.Problem{},
	}
	for _, each := range module.Problems {
		each.Place = relative(folder, each.Place)
		found.Problems = append(found.Problems, each)
	}
	for _, pkg := range module.Register {
		pkg.Release, pkg.Prices = module.Release, prices
		found.add(pkg, rules.Check(pkg.Package), folder)
	}
	return found
}

func (r *report) add(pkg *load.Package, result rules.Result, folder string) {
	place := func(n ast.Node) string {
		at := pkg.Fset.Position(n.Pos())
		return relative(folder, fmt.Sprintf("%s:%d", at.Filename, at.Line))
	}
	for _, each := range pkg.Registrations {
		size, _ := pkg.SizeOf(each.Type)
		r.Registrations = append(r.Registrations, registration{
			each.API, pkg.TypeName(each.Type), size, classOf(size), place(each.Call),
		})
	}
	for _, each := range result.Findings {
		where := place(at{each.Pos})
		r.Findings = append(r.Findings, finding{
			each.Rule, where, each.What, each.Do, each.API, each.Object, each.Size, classOf(each.Size),
		})
	}
	for _, each := range result.Unchecked {
		r.Unchecked = append(r.Unchecked, unchecked{each.Rule, place(at{each.Pos}), each.Why})
	}
	r.Passing += result.Passing
	r.Dying += result.Dying
	r.Closers += result.Closers
	r.Paying += result.Paying
}

func classOf(size int64) int64 {
	if size < 0 {
		return -1
	}
	return rules.Class(size)
}

// relative is a place below a folder.
func relative(folder, place string) string {
	full, err := filepath.Abs(folder)
	if err != nil {
		return place
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real
	}
	if short, err := filepath.Rel(full, place); err == nil && !strings.HasPrefix(short, "..") {
		return short
	}
	return place
}

func print(output io.Writer, found report) {
	for _, each := range found.Problems {
		fmt.Fprintf(output, "%s: %s\n", each.Place, each.Message)
	}
	for _, each := range found.Findings {
		fmt.Fprintf(output, "%s: %s: %s. To fix it: %s\n", each.Place, each.Rule, each.What, each.Do)
	}
	for _, each := range found.Unchecked {
		fmt.Fprintf(output, "%s: %s: not checked: %s\n", each.Place, each.Rule, each.Why)
	}
}
