package rules

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
)

// An action is how a finalizer or cleanup frees: a function that it gives a field's value.
type action struct {
	callee string
	field  *types.Var
	// bare reports whether the value was taken when the cleanup was registered: what the field
	// holds later does not matter.
	bare bool
}

// depth is how many functions deep calls are followed.
const depth = 6

// nothing frees are the packages whose functions free nothing.
var nothing = map[string]bool{
	"bytes": true, "context": true, "errors": true, "fmt": true, "log": true, "log/slog": true,
	"reflect": true, "runtime": true, "runtime/debug": true, "sort": true, "strings": true,
	"sync": true, "sync/atomic": true, "testing": true, "time": true, "unsafe": true,
}

// actions are how the finalizers and cleanups of a type free.
func (p *Package) actions(name *types.TypeName) []action {
	if found, ok := p.freeing[name]; ok {
		return found
	}
	var found []action
	for _, r := range p.Registrations {
		if name != nil && p.named(r.Type) == name {
			found = append(found, p.frees(r)...)
		}
	}
	p.freeing[name] = found
	return found
}

// frees is how a registration frees.
func (p *Package) frees(r *Registration) []action {
	block, params := p.target(r)
	if block == nil || len(params) == 0 || params[0] == nil {
		return nil
	}
	found := p.actionsOn(block, params[0], depth)
	if r.API == "AddCleanup" {
		field := p.fieldOf(r)
		for i, each := range found {
			if each.field == nil {
				found[i].field, found[i].bare = field, true
			}
		}
	}
	return onlyFrees(found)
}

// frees names functions that free.
var frees = regexp.MustCompile(`(?i)free|clos|destr(oy|uct)|delete|releas|unref|dispos|finali[sz]e|_term|drop|clean|` +
	`unmap|decref|dec_ref|shutdown|fini|unload|remove|discard|_del$|deinit`)

// onlyFrees are the actions on a field that free: the ones whose function's name says so, or the only one.
func onlyFrees(found []action) []action {
	var kept []action
	callees := map[string]bool{}
	for _, each := range found {
		if each.field != nil {
			callees[each.callee] = true
		}
	}
	for _, each := range found {
		name := each.callee[strings.LastIndex(each.callee, ".")+1:]
		if each.field != nil && (len(callees) == 1 || frees.MatchString(name)) {
			kept = append(kept, each)
		}
	}
	return kept
}

// target is the body and the parameters of the function that a registration names.
func (p *Package) target(r *Registration) (*ast.BlockStmt, []*types.Var) {
	return p.resolve(r.Func, r.in, 0)
}

func (p *Package) resolve(e ast.Expr, in *body, tries int) (*ast.BlockStmt, []*types.Var) {
	e = p.unconverted(e)
	if lit, ok := e.(*ast.FuncLit); ok {
		return lit.Body, p.params(nil, lit.Type)
	}
	if function := p.functionOf(indexedOf(e)); function != nil {
		decl := p.functions[function]
		if decl == nil {
			return nil, nil
		}
		if p.isMethodValue(e) {
			return decl.Body, p.params(nil, decl.Type)
		}
		return decl.Body, p.declParams(decl)
	}
	v := p.variable(e)
	if v == nil || tries > 2 {
		return nil, nil
	}
	if values := p.assigned(in.outer(), v); len(values) == 1 {
		return p.resolve(values[0], in, tries+1)
	}
	return nil, nil
}

// indexedOf is a function without its type arguments.
func indexedOf(e ast.Expr) ast.Expr {
	switch e := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return e.X
	case *ast.IndexListExpr:
		return e.X
	}
	return e
}

func (p *Package) isMethodValue(e ast.Expr) bool {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	selection := p.Info.Selections[selector]
	return selection != nil && selection.Kind() == types.MethodVal
}

// outer is the body of the declaration that a body is in.
func (in *body) outer() *ast.BlockStmt {
	if in.decl != nil {
		return in.decl.Body
	}
	return in.block
}

// actionsOn are the actions of a block on the value of a variable: on its fields, or, without a
// field, on the value itself.
func (p *Package) actionsOn(block *ast.BlockStmt, v *types.Var, deep int) []action {
	var found []action
	ast.Inspect(block, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			found = append(found, p.actionsOf(block, call, v, deep)...)
		}
		return true
	})
	return found
}

// actionsOf are the actions of one call.
func (p *Package) actionsOf(block *ast.BlockStmt, call *ast.CallExpr, v *types.Var, deep int) []action {
	if callee := p.callee(call); callee != nil {
		return p.actionsWithin(block, call, callee, v, deep)
	}
	name := p.freeingCall(call)
	if name == "" {
		return nil
	}
	var found []action
	for _, arg := range p.arguments(call) {
		if taken, ok := p.taken(block, arg, depth); ok && taken.root == v {
			found = append(found, action{callee: name, field: taken.last()})
		}
	}
	return found
}

// actionsWithin are those of a call of one of the package's functions.
func (p *Package) actionsWithin(block *ast.BlockStmt, call *ast.CallExpr, callee types.Object, v *types.Var, deep int) []action {
	if deep == 0 {
		return nil
	}
	decl := p.functions[callee]
	params := p.declParams(decl)
	var found []action
	for i, arg := range p.arguments(call) {
		if i >= len(params) || params[i] == nil {
			continue
		}
		taken, ok := p.taken(block, arg, depth)
		if address, isAddress := p.unconverted(arg).(*ast.UnaryExpr); isAddress {
			taken, ok = p.path(address.X)
		}
		if !ok || taken.root != v {
			continue
		}
		for _, each := range p.actionsOn(decl.Body, params[i], deep-1) {
			if each.field == nil {
				each.field = taken.last()
			}
			found = append(found, each)
		}
	}
	return found
}

// freeingCall names the function outside of the package that a call may free with.
func (p *Package) freeingCall(call *ast.CallExpr) string {
	if name := p.cCall(call); name != "" {
		return "C." + name
	}
	function := p.function(call)
	if function == nil || function.Pkg() == nil || nothing[packagePath(function)] || p.functions[function] != nil {
		return ""
	}
	return function.FullName()
}

// taken is the path that a value was read from, also through local variables and getters.
func (p *Package) taken(block ast.Node, e ast.Expr, deep int) (path, bool) {
	e = p.unconverted(e)
	if call, ok := e.(*ast.CallExpr); ok {
		return p.gotten(block, call, deep)
	}
	found, ok := p.path(e)
	if !ok || found.root == nil || len(found.fields) > 0 || deep == 0 {
		return found, ok
	}
	values := p.assigned(block, found.root)
	if len(values) != 1 {
		return found, ok
	}
	if source, ok := p.taken(block, values[0], deep-1); ok && source.root != nil && len(source.fields) > 0 {
		return source, true
	}
	return found, ok
}

// gotten is the path that a getter reads: a method that only returns a field of its receiver.
func (p *Package) gotten(block ast.Node, call *ast.CallExpr, deep int) (path, bool) {
	callee := p.callee(call)
	if callee == nil || deep == 0 {
		return path{call: call, inside: true}, true
	}
	decl := p.functions[callee]
	if len(decl.Body.List) != 1 {
		return path{call: call, inside: true}, true
	}
	returned, ok := decl.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(returned.Results) != 1 {
		return path{call: call, inside: true}, true
	}
	inner, ok := p.taken(decl.Body, returned.Results[0], deep-1)
	if !ok || inner.root == nil || len(inner.fields) == 0 {
		return path{call: call, inside: true}, true
	}
	params, arguments := p.declParams(decl), p.arguments(call)
	for i, param := range params {
		if param != inner.root || i >= len(arguments) {
			continue
		}
		outer, ok := p.taken(block, arguments[i], deep-1)
		if !ok {
			return path{}, false
		}
		outer.fields = append(append([]*types.Var{}, outer.fields...), inner.fields...)
		return outer, true
	}
	return path{call: call, inside: true}, true
}

// fieldOf is the field of the object that holds what a cleanup gets as its argument.
func (p *Package) fieldOf(r *Registration) *types.Var {
	found, ok := p.path(r.Arg)
	if ok && len(found.fields) > 0 {
		return found.last()
	}
	if !ok || found.root == nil {
		return nil
	}
	object := p.rootVar(r.Object)
	var field *types.Var
	ast.Inspect(r.in.outer(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if i < len(n.Lhs) && p.variable(value) == found.root {
					to, ok := p.path(n.Lhs[i])
					if ok && to.root == object && to.last() != nil {
						field = to.last()
					}
				}
			}
		case *ast.CompositeLit:
			if p.named(p.Info.TypeOf(n)) == p.named(r.Type) {
				if in := p.elementOf(n, found.root); in != nil {
					field = in
				}
			}
		}
		return true
	})
	return field
}

// elementOf is the field of a composite literal that gets the value of a variable.
func (p *Package) elementOf(lit *ast.CompositeLit, v *types.Var) *types.Var {
	structure, ok := underlying(p.Info.TypeOf(lit)).(*types.Struct)
	if !ok {
		return nil
	}
	for i, element := range lit.Elts {
		pair, keyed := element.(*ast.KeyValueExpr)
		if !keyed {
			if p.variable(element) == v && i < structure.NumFields() {
				return structure.Field(i).Origin()
			}
			continue
		}
		key, ok := pair.Key.(*ast.Ident)
		if !ok || p.variable(pair.Value) != v {
			continue
		}
		if field, ok := p.Info.Uses[key].(*types.Var); ok {
			return field.Origin()
		}
	}
	return nil
}

// isTarget reports whether a function is registered as a finalizer or cleanup function, and by
// which registrations.
func (p *Package) registrationsOf(decl *ast.FuncDecl) []*Registration {
	var found []*Registration
	for _, r := range p.Registrations {
		if block, _ := p.target(r); block != nil && block == decl.Body {
			found = append(found, r)
		}
	}
	return found
}

// inTarget reports whether a body is, or is in, a function literal that is registered.
func (p *Package) inTarget(in *body) bool {
	for _, r := range p.Registrations {
		block, _ := p.target(r)
		if block != nil && contains(block, in.block) && (in.lit != nil || block == in.block) {
			return true
		}
	}
	return false
}
