package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// NeverRuns is rule 2: the object stays reachable from its own finalizer or cleanup, or shares its
// memory block with other values, so that it is not freed.
const NeverRuns = "never-runs"

const tinyBlock = 16 // bytes: the runtime puts smaller pointer-free objects together into these

func (p *Package) neverRuns(report func(Finding)) {
	for _, r := range p.Registrations {
		what, do := p.heldByItself(r)
		if what == "" {
			what, do = p.tiny(r)
		}
		if what == "" && r.API == "SetFinalizer" {
			what, do = p.inCycle(r)
		}
		if what != "" {
			report(p.finding(NeverRuns, r, r.Call.Pos(), "never runs: "+what, do))
		}
	}
}

// heldByItself is what a registration holds its object with; empty if with nothing.
func (p *Package) heldByItself(r *Registration) (what, do string) {
	v := p.rootVar(r.Object)
	if v == nil || v.Parent() == p.Types.Scope() {
		return "", ""
	}
	holders := p.holders(r.in, v)
	if name := p.captured(r.Func, r.in, holders, 0); name != "" {
		if r.API == "SetFinalizer" {
			what = fmt.Sprintf("the finalizer's closure holds %s, and with it the object", name)
			return what, "use the finalizer's parameter instead of " + name
		}
		what = fmt.Sprintf("the cleanup's function holds %s, and with it the object; "+
			"Go 1.26 and later panic here, earlier releases leak silently", name)
		return what, "pass what is to be freed as the cleanup's argument"
	}
	if r.Arg == nil {
		return "", ""
	}
	if p.names(p.unconverted(r.Arg), v) && p.names(r.Object, v) {
		return "the cleanup's argument is the object itself; AddCleanup panics", "pass what is to be freed"
	}
	if p.refers(r.Arg, holders) {
		what = "the cleanup's argument leads to the object"
		return what, "pass only what is to be freed"
	}
	return "", ""
}

// holders are the local variables whose value keeps the object of v alive, with v.
func (p *Package) holders(in *body, v *types.Var) map[*types.Var]bool {
	found := map[*types.Var]bool{v: true}
	for size := 0; size != len(found); {
		size = len(found)
		ast.Inspect(in.block, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				p.addHolders(n, v, found)
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) && p.refers(n.Values[i], found) {
						p.addHolder(name, found)
					}
				}
			}
			return true
		})
	}
	return found
}

func (p *Package) addHolders(n *ast.AssignStmt, v *types.Var, found map[*types.Var]bool) {
	for i, to := range n.Lhs {
		if len(n.Lhs) != len(n.Rhs) || !p.refers(n.Rhs[i], found) {
			continue
		}
		if id, ok := to.(*ast.Ident); ok {
			p.addHolder(id, found)
			continue
		}
		// A variable that points to what holds the object; not one whose field only was read.
		if at, ok := p.path(to); ok && at.root != nil && at.root != v && at.root.Parent() != p.Types.Scope() {
			found[at.root] = true
		}
	}
}

func (p *Package) addHolder(id *ast.Ident, found map[*types.Var]bool) {
	if other := p.identVar(id); other != nil && other.Parent() != p.Types.Scope() {
		found[other] = true
	}
}

// refers reports whether the value of an expression leads to what one of the variables points to.
func (p *Package) refers(e ast.Expr, to map[*types.Var]bool) bool {
	switch e := p.unconverted(e).(type) {
	case *ast.Ident:
		v := p.identVar(e)
		return v != nil && to[v] && !isNumber(v.Type())
	case *ast.UnaryExpr:
		return e.Op == token.AND && p.refersAddress(e.X, to)
	case *ast.CompositeLit:
		return p.refersElements(e, to)
	case *ast.FuncLit:
		return p.capturedIn(e, to) != ""
	case *ast.SelectorExpr:
		return p.isMethodValue(e) && p.refers(e.X, to)
	case *ast.CallExpr:
		return p.refersResult(e, to)
	}
	return false
}

func isNumber(t types.Type) bool {
	basic, ok := underlying(t).(*types.Basic)
	return ok && basic.Kind() != types.UnsafePointer && basic.Kind() != types.Invalid
}

func (p *Package) refersAddress(e ast.Expr, to map[*types.Var]bool) bool {
	if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
		return p.refersElements(lit, to)
	}
	at, ok := p.path(e)
	return ok && at.root != nil && to[at.root] && at.inside
}

func (p *Package) refersElements(lit *ast.CompositeLit, to map[*types.Var]bool) bool {
	for _, element := range lit.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		if p.refers(element, to) {
			return true
		}
	}
	return false
}

// keepers are functions whose result holds their argument.
var keepers = map[string]bool{
	"sync.NewCond": true, "bufio.NewReader": true, "bufio.NewWriter": true,
	"sync.OnceFunc": true, "sync.OnceValue": true, "context.WithValue": true,
}

func (p *Package) refersResult(call *ast.CallExpr, to map[*types.Var]bool) bool {
	if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "append" {
		for _, arg := range call.Args {
			if p.refers(arg, to) {
				return true
			}
		}
		return false
	}
	function, callee := p.function(call), p.callee(call)
	for i, arg := range p.arguments(call) {
		if !p.refers(arg, to) {
			continue
		}
		if function != nil && keepers[packagePath(function)+"."+function.Name()] {
			return true
		}
		if callee != nil && p.returnsHolder(p.functions[callee], i) {
			return true
		}
	}
	return false
}

// returnsHolder reports whether a function returns a literal that has its parameter in it.
func (p *Package) returnsHolder(decl *ast.FuncDecl, index int) bool {
	params := p.declParams(decl)
	if index >= len(params) || params[index] == nil {
		return false
	}
	param := map[*types.Var]bool{params[index]: true}
	found := false
	ownNodes(decl.Body, func(n ast.Node) {
		returned, ok := n.(*ast.ReturnStmt)
		if !ok || len(returned.Results) == 0 {
			return
		}
		result := p.unconverted(returned.Results[0])
		if v := p.variable(result); v != nil {
			if values := p.assigned(decl.Body, v); len(values) == 1 {
				result = p.unconverted(values[0])
			}
		}
		if address, ok := result.(*ast.UnaryExpr); ok {
			result = address.X
		}
		if lit, ok := result.(*ast.CompositeLit); ok {
			found = found || p.refersElements(lit, param)
		}
	})
	return found
}

// captured is the variable through which a function holds the object; empty if through none.
func (p *Package) captured(function ast.Expr, in *body, holders map[*types.Var]bool, tries int) string {
	function = p.unconverted(function)
	switch f := function.(type) {
	case *ast.FuncLit:
		return p.capturedIn(f, holders)
	case *ast.SelectorExpr:
		if p.isMethodValue(f) && p.refers(f.X, holders) {
			return p.rootName(f.X)
		}
	case *ast.Ident:
		v := p.identVar(f)
		if v == nil || tries > 2 {
			return ""
		}
		if values := p.assigned(in.block, v); len(values) == 1 {
			return p.captured(values[0], in, holders, tries+1)
		}
	}
	return ""
}

func (p *Package) rootName(e ast.Expr) string {
	if v := p.rootVar(e); v != nil {
		return v.Name()
	}
	return "it"
}

func (p *Package) capturedIn(lit *ast.FuncLit, holders map[*types.Var]bool) string {
	name := ""
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || name != "" {
			return true
		}
		v, ok := p.Info.Uses[id].(*types.Var)
		if ok && holders[v] && !contains(lit, positioned{v.Pos()}) && !isNumber(v.Type()) {
			name = v.Name()
		}
		return true
	})
	return name
}

// positioned is a node of no length.
type positioned struct{ at token.Pos }

func (n positioned) Pos() token.Pos { return n.at }
func (n positioned) End() token.Pos { return n.at }

// tiny is what is wrong with registering on an object in a block that it shares.
func (p *Package) tiny(r *Registration) (what, do string) {
	size, pointerFree := p.SizeOf(r.Type)
	if size < 0 {
		p.notChecked(NeverRuns, r.Call.Pos(), "the size of "+p.TypeName(r.Type)+" is unknown")
		return "", ""
	}
	if size == 0 || size >= tinyBlock || !pointerFree || p.isElement(r.Object) || p.isLarger(r) {
		return "", ""
	}
	do = "give the object a pointer, or 16 bytes"
	if r.API == "SetFinalizer" {
		what = fmt.Sprintf("an object of %d bytes without a pointer shares a block of 16 bytes with other "+
			"values: its finalizer waits until all of them are dead, for ever if one stays", size)
		return what, do
	}
	if !p.mayRunBefore(26) {
		return "", ""
	}
	argument, argumentFree := p.SizeOf(p.Info.TypeOf(r.Arg))
	if argument <= 0 || argument >= tinyBlock || !argumentFree {
		return "", ""
	}
	what = fmt.Sprintf("on Go 1.24 and 1.25 the cleanup's argument (%d bytes) is stored in the same block "+
		"of 16 bytes as the object (%d bytes), and keeps it for ever", argument, size)
	return what, do + ", or require Go 1.26"
}

func (p *Package) isElement(e ast.Expr) bool {
	address, ok := p.unconverted(e).(*ast.UnaryExpr)
	if !ok {
		return false
	}
	_, isLit := ast.Unparen(address.X).(*ast.CompositeLit)
	_, isName := ast.Unparen(address.X).(*ast.Ident)
	return !isLit && !isName
}

// isLarger reports whether a pointer may be to a larger object than its type says: it comes from an
// unsafe.Pointer, as that to a mapping does.
func (p *Package) isLarger(r *Registration) bool {
	values := []ast.Expr{r.Object}
	if v := p.variable(r.Object); v != nil {
		values = append(values, p.assigned(r.in.block, v)...)
	}
	for _, value := range values {
		call, ok := ast.Unparen(value).(*ast.CallExpr)
		if !ok || !p.isConversion(call) {
			continue
		}
		basic, ok := underlying(p.Info.TypeOf(call.Args[0])).(*types.Basic)
		if ok && basic.Kind() == types.UnsafePointer {
			return true
		}
	}
	return false
}

// mayRunBefore reports whether the module may be built with a release before Go 1.minor.
func (p *Package) mayRunBefore(minor int) bool {
	parts := strings.Split(p.Release, ".")
	if len(parts) < 2 {
		return true
	}
	number, err := strconv.Atoi(leadingDigits(parts[1]))
	return err != nil || number < minor
}

func leadingDigits(text string) string {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	return text[:end]
}

// inCycle is the cycle that an object with a finalizer is in; empty if it is in none. The
// collector ignores an object's pointer to itself.
func (p *Package) inCycle(r *Registration) (what, do string) {
	v := p.rootVar(r.Object)
	if v == nil || v.Parent() == p.Types.Scope() || !p.names(r.Object, v) {
		return "", ""
	}
	holders := p.holders(r.in, v)
	through := ""
	ast.Inspect(r.in.block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if through == "" && len(n.Lhs) == len(n.Rhs) {
					through = p.closesCycle(to, n.Rhs[i], v, holders)
				}
			}
		case *ast.CompositeLit:
			if through == "" && p.isObjectOf(r.in, n, v) {
				through = p.heldElement(n, v, holders)
			}
		}
		return true
	})
	if through == "" {
		return "", ""
	}
	what = fmt.Sprintf("the object is in a cycle through %s: the collector does not run finalizers of objects "+
		"that reach themselves", through)
	return what, "register on an object that is not in the cycle, or use a cleanup (Go 1.24), which runs"
}

// closesCycle is the field of v's object that an assignment gives something that leads back to it.
func (p *Package) closesCycle(to, value ast.Expr, v *types.Var, holders map[*types.Var]bool) string {
	at, ok := p.path(to)
	if !ok || at.root != v || len(at.fields) == 0 || !p.refers(value, holders) {
		return ""
	}
	if at.inside && p.holds(value, v) {
		return "" // a pointer to itself
	}
	return at.last().Name()
}

func (p *Package) isObjectOf(in *body, lit *ast.CompositeLit, v *types.Var) bool {
	for _, value := range p.assigned(in.block, v) {
		if address, ok := p.unconverted(value).(*ast.UnaryExpr); ok && address.X == ast.Expr(lit) {
			return true
		}
	}
	return false
}

func (p *Package) heldElement(lit *ast.CompositeLit, v *types.Var, holders map[*types.Var]bool) string {
	others := map[*types.Var]bool{}
	for each := range holders {
		others[each] = each != v
	}
	for _, element := range lit.Elts {
		name := "an element"
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				name = key.Name
			}
			element = pair.Value
		}
		if p.refers(element, others) {
			return name
		}
	}
	return ""
}
