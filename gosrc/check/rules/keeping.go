package rules

import (
	"go/ast"
	"go/token"
	"go/types"
)

// An object that something else holds is not freed when the variables of a function are dead. Rule
// 1 does not judge objects that may be held so: by a package variable, by another object, by a
// goroutine, or by a function that this package does not declare.

const byGoroutine = "a goroutine has it"

// passing are the packages whose functions do not keep what they are given.
var passing = map[string]bool{
	"C": true, "errors": true, "fmt": true, "log": true, "log/slog": true, "runtime": true,
	"sync/atomic": true, "unsafe": true,
}

// keptBy is what may hold a registration's object while it is in use; empty if nothing does. That
// is what its constructor does with it, or else what all of the constructor's callers do.
func (p *Package) keptBy(r *Registration) string {
	if why, done := p.kept[r]; done {
		return why
	}
	p.kept[r] = ""
	why := p.keptIn(r.in, p.rootVar(r.Object), depth)
	if why == "" {
		why = p.keptByCallers(r)
	}
	p.kept[r] = why
	return why
}

// keptByCallers is what every caller of a constructor gives the object to.
func (p *Package) keptByCallers(r *Registration) string {
	if r.in.decl == nil || r.in.lit != nil || r.in.decl.Name.IsExported() {
		return ""
	}
	constructor := p.Info.Defs[r.in.decl.Name]
	if constructor == nil || !p.registersResult(constructor) || p.mentioned[constructor] > len(p.calls[constructor]) {
		return ""
	}
	why := ""
	for _, each := range p.calls[constructor] {
		why = p.keptIn(each.in, p.resultOf(each), depth)
		if why == "" {
			return ""
		}
	}
	return why
}

// resultOf is the variable that gets the first result of a call; nil if none does.
func (p *Package) resultOf(each site) *types.Var {
	var found *types.Var
	ownNodes(each.in.block, func(n ast.Node) {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Rhs) != 1 || p.unconverted(assign.Rhs[0]) != ast.Expr(each.call) {
			return
		}
		if id, ok := assign.Lhs[0].(*ast.Ident); ok {
			found = p.identVar(id)
		}
	})
	return found
}

// keptIn is what a body gives the object of v to, which may hold it; empty if nothing.
func (p *Package) keptIn(in *body, v *types.Var, deep int) string {
	if v == nil || deep == 0 {
		return ""
	}
	holders := p.holders(in, v)
	why := ""
	ownNodes(in.block, func(n ast.Node) {
		if why != "" || p.isDead(n) {
			return
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			why = p.keptByAssignment(n, v, holders)
		case *ast.SendStmt:
			if p.refers(n.Value, holders) {
				why = "a channel gets it"
			}
		case *ast.GoStmt:
			if p.callRefers(n.Call, holders) {
				why = byGoroutine
			}
		case *ast.CallExpr:
			why = p.keptByCall(n, holders, deep)
		}
	})
	return why
}

// keptByAssignment is the package variable, or another object than v's, that an assignment stores in.
func (p *Package) keptByAssignment(n *ast.AssignStmt, v *types.Var, holders map[*types.Var]bool) string {
	for i, value := range n.Rhs {
		if i >= len(n.Lhs) || !p.refers(value, holders) {
			continue
		}
		to := ast.Unparen(n.Lhs[i])
		root := p.rootVar(to)
		if root == nil {
			continue
		}
		if root.Parent() == p.Types.Scope() {
			return "the package variable " + root.Name() + " gets it"
		}
		if _, isName := to.(*ast.Ident); !isName && !p.isFresh(root) && root != v {
			return root.Name() + " gets it"
		}
	}
	return ""
}

// isFresh reports whether a local variable's object was made in its own function, so that nothing
// else holds it: no parameter, and no result of a call.
func (p *Package) isFresh(v *types.Var) bool {
	for _, in := range p.bodies {
		if in.block.Pos() > v.Pos() || v.Pos() > in.block.End() {
			continue
		}
		for _, value := range p.assigned(in.block, v) {
			call, isCall := p.unconverted(value).(*ast.CallExpr)
			if isCall && !isNew(call) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *Package) callRefers(call *ast.CallExpr, holders map[*types.Var]bool) bool {
	if p.refers(ast.Unparen(call.Fun), holders) {
		return true
	}
	for _, arg := range p.arguments(call) {
		if p.refers(arg, holders) {
			return true
		}
	}
	return false
}

// keptByCall is the function that a call gives the object to; empty for one that does not keep it.
func (p *Package) keptByCall(call *ast.CallExpr, holders map[*types.Var]bool, deep int) string {
	if p.isConversion(call) || p.cCall(call) != "" || isBuiltin(p, call) {
		return ""
	}
	callee := p.callee(call)
	function := p.function(call)
	if callee == nil && function != nil && (passing[packagePath(function)] || function.FullName() == "(*sync.Once).Do") {
		return ""
	}
	for i, arg := range p.arguments(call) {
		if !p.refers(arg, holders) {
			continue
		}
		if callee == nil {
			return p.keptByUnknown(call, function, i)
		}
		decl := p.functions[callee]
		params := p.declParams(decl)
		if i >= len(params) {
			continue
		}
		if why := p.keptIn(&body{decl: decl, block: decl.Body}, params[i], deep-1); why != "" {
			return why
		}
	}
	return ""
}

// keptByUnknown is a function that this package does not declare, with the object as an argument
// of its own; what the object itself declares elsewhere is a method, which gets it as its receiver.
func (p *Package) keptByUnknown(call *ast.CallExpr, function *types.Func, index int) string {
	if len(p.arguments(call)) > len(call.Args) && index == 0 {
		return ""
	}
	if function != nil {
		return function.FullName() + " gets it"
	}
	return types.ExprString(call.Fun) + " gets it"
}

func isBuiltin(p *Package, call *ast.CallExpr) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	_, is := p.Info.Uses[id].(*types.Builtin)
	return is
}

// keptDuring reports whether an argument of a call is a call that keeps the object of v.
func (p *Package) keptDuring(call *ast.CallExpr, v *types.Var) bool {
	holders := map[*types.Var]bool{v: true}
	kept := false
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			inner, ok := n.(*ast.CallExpr)
			kept = kept || ok && p.keptByCall(inner, holders, depth) != ""
			return !kept
		})
	}
	return kept
}

// elements are the expressions in a composite literal, or in one whose address is taken.
func (p *Package) elements(e ast.Expr) []ast.Expr {
	e = p.unconverted(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = ast.Unparen(address.X)
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var found []ast.Expr
	for _, element := range lit.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		found = append(found, element)
	}
	return found
}
