package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// NotTheObject is rule 6: what is registered on is not the start of a heap object of its own, or
// has a finalizer already.
const NotTheObject = "not-the-object"

func (p *Package) notTheObject(report func(Finding)) {
	for _, r := range p.Registrations {
		what, do := p.refused(r)
		if what == "" {
			what, do = p.interior(r)
		}
		if what == "" {
			what, do = p.ofVariable(r)
		}
		if what == "" {
			what, do = p.ofPackage(r)
		}
		if what == "" {
			what, do = p.second(r)
		}
		if what != "" {
			report(p.finding(NotTheObject, r, r.Call.Pos(), "not the object: "+what, do))
		}
	}
}

// refused is why the runtime refuses a finalizer: its function cannot take the object's pointer.
func (p *Package) refused(r *Registration) (what, do string) {
	if r.API != "SetFinalizer" || r.Type == nil {
		return "", ""
	}
	function, ok := underlying(p.Info.TypeOf(r.Func)).(*types.Signature)
	if !ok || function.TypeParams() != nil {
		return "", ""
	}
	given := p.Info.TypeOf(r.Object)
	what = fmt.Sprintf("the runtime cannot pass %s to this function: a fatal error ends the program", p.TypeName(given))
	do = fmt.Sprintf("register a function with one parameter, of type %s", p.TypeName(given))
	if function.Params().Len() != 1 || function.Variadic() {
		return what, do
	}
	param := function.Params().At(0).Type()
	if !isWhole(param) || !isWhole(given) || types.AssignableTo(given, param) {
		return "", ""
	}
	return what, do
}

// isWhole reports whether a type, and what it points to, is known.
func isWhole(t types.Type) bool {
	for {
		pointer, ok := underlying(t).(*types.Pointer)
		if !ok {
			_, isParam := types.Unalias(t).(*types.TypeParam)
			return isKnown(t) && !isParam
		}
		t = pointer.Elem()
	}
}

// ofVariable is what registering on a variable that holds a pointer does.
func (p *Package) ofVariable(r *Registration) (what, do string) {
	address, ok := p.unconverted(r.Object).(*ast.UnaryExpr)
	if !ok || address.Op != token.AND {
		return "", ""
	}
	v := p.variable(address.X)
	if v == nil || !isPointer(v.Type()) || v.Parent() == p.Types.Scope() {
		return "", ""
	}
	what = fmt.Sprintf("&%s is the variable that holds the pointer: this runs when the variable is dead, "+
		"while others may use the object", v.Name())
	return what, "register on " + v.Name()
}

// interior is what an address inside of an object does; empty for its start.
func (p *Package) interior(r *Registration) (what, do string) {
	address, ok := p.source(r).(*ast.UnaryExpr)
	if !ok || address.Op != token.AND {
		return "", ""
	}
	part := ""
	switch e := ast.Unparen(address.X).(type) {
	case *ast.SelectorExpr:
		if p.isLaterField(e) {
			part = "the field " + e.Sel.Name + " of an object"
		}
	case *ast.IndexExpr:
		if p.isLaterElement(e) {
			part = "an element of a slice or an array"
		}
	}
	if part == "" {
		return "", ""
	}
	do = "register on the whole object"
	if r.API == "AddCleanup" {
		return "the cleanup of " + part + " runs when the whole object is dead", do
	}
	size, pointerFree := p.SizeOf(r.Type)
	switch {
	case size < 0:
		p.notChecked(NotTheObject, r.Call.Pos(), "the size of "+p.TypeName(r.Type)+" is unknown")
		return "", ""
	case pointerFree && size < tinyBlock:
		// The runtime takes it for a value that shares its block.
		return "the finalizer of " + part + " runs when the whole object is dead", do
	}
	return part + " is not the start of it: a fatal error ends the program", do
}

// source is the expression that a registration's object comes from: the one value of its local
// variable, if it is in one.
func (p *Package) source(r *Registration) ast.Expr {
	given := p.unconverted(r.Object)
	v := p.variable(given)
	if v == nil || v.Parent() == p.Types.Scope() || p.isParam(r.in, v) {
		return given
	}
	values := p.assigned(r.in.outer(), v)
	if len(values) != 1 {
		return given
	}
	return p.unconverted(values[0])
}

// isParam reports whether a variable is a parameter of a body, or of the declaration that it is in.
func (p *Package) isParam(in *body, v *types.Var) bool {
	var params []*types.Var
	if in.decl != nil {
		params = p.declParams(in.decl)
	}
	if in.lit != nil {
		params = append(params, p.params(nil, in.lit.Type)...)
	}
	return slices.Contains(params, v)
}

// isLaterField reports whether a field lies behind the start of its object.
func (p *Package) isLaterField(e *ast.SelectorExpr) bool {
	selection := p.Info.Selections[e]
	if selection == nil || selection.Kind() != types.FieldVal {
		return false
	}
	later := false
	at := selection.Recv()
	if !isPointer(at) {
		if outer, ok := ast.Unparen(e.X).(*ast.SelectorExpr); ok {
			later = p.isLaterField(outer)
		}
	}
	for _, index := range selection.Index() {
		if pointer, ok := at.Underlying().(*types.Pointer); ok {
			at, later = pointer.Elem(), false
		}
		structure, ok := at.Underlying().(*types.Struct)
		if !ok {
			return false
		}
		later = later || index > 0
		at = structure.Field(index).Type()
	}
	return later
}

func (p *Package) isLaterElement(e *ast.IndexExpr) bool {
	if _, isMap := underlying(p.Info.TypeOf(e.X)).(*types.Map); isMap {
		return false
	}
	value := p.Info.Types[e.Index].Value
	if value == nil || value.String() != "0" {
		return true
	}
	cut, ok := ast.Unparen(e.X).(*ast.SliceExpr)
	if !ok || cut.Low == nil {
		return false
	}
	low := p.Info.Types[cut.Low].Value
	return low == nil || low.String() != "0"
}

// ofPackage is what registering on the object of a package variable does.
func (p *Package) ofPackage(r *Registration) (what, do string) {
	v := p.rootVar(r.Object)
	if v == nil || v.Parent() != p.Types.Scope() {
		return "", ""
	}
	if address, ok := p.unconverted(r.Object).(*ast.UnaryExpr); ok && address.Op == token.AND {
		if at, ok := p.path(address.X); !ok || !at.inside || isPointer(v.Type()) {
			return "", ""
		}
		return v.Name() + " is a package variable, which is never freed", "free it at the program's end"
	}
	if !p.names(p.unconverted(r.Object), v) || p.assignments(v) > 1 {
		return "", ""
	}
	what = "the package variable " + v.Name() + " holds the object for as long as the program runs"
	return what, "free it at the program's end"
}

// assignments is how many expressions the package assigns to a package variable.
func (p *Package) assignments(v *types.Var) int {
	count := 0
	for _, file := range p.Files {
		count += len(p.assigned(file, v))
	}
	return count
}

// second is what a second registration on one object does.
func (p *Package) second(r *Registration) (what, do string) {
	v := p.rootVar(r.Object)
	if v == nil || !p.names(p.unconverted(r.Object), v) || v.Parent() == p.Types.Scope() {
		return "", ""
	}
	for _, first := range p.Registrations {
		if first != r && first.in == r.in && first.API == r.API && p.names(p.unconverted(first.Object), v) &&
			p.follows(r.in, first.Call, r.Call, v) {
			return p.again(first, r)
		}
	}
	for _, value := range p.assigned(r.in.block, v) {
		maker, ok := p.unconverted(value).(*ast.CallExpr)
		if !ok || r.API != "SetFinalizer" {
			continue
		}
		callee := p.callee(maker)
		if callee != nil && p.finalizesResult(callee) && p.follows(r.in, maker, r.Call, v) {
			what = fmt.Sprintf("%s has set a finalizer on it already: a fatal error ends the program", callee.Name())
			return what, "clear it first: runtime.SetFinalizer(x, nil)"
		}
	}
	return "", ""
}

func (p *Package) again(first, r *Registration) (what, do string) {
	if r.API == "SetFinalizer" {
		what = "it has a finalizer already: a fatal error ends the program"
		return what, "clear it first: runtime.SetFinalizer(x, nil)"
	}
	if types.ExprString(first.Func) != types.ExprString(r.Func) || types.ExprString(first.Arg) != types.ExprString(r.Arg) {
		return "", ""
	}
	return "it has the same cleanup already, and both run", "register it once"
}

func (p *Package) finalizesResult(callee types.Object) bool {
	for _, r := range p.Registrations {
		if r.in.decl == p.functions[callee] && r.API == "SetFinalizer" {
			return p.registersResult(callee)
		}
	}
	return false
}

// follows reports whether one call runs after another without a clearing, or another object in v,
// between them.
func (p *Package) follows(in *body, first, then ast.Node, v *types.Var) bool {
	start, ok := p.find(in, first)
	if !ok {
		return false
	}
	reached := false
	p.after(start, func(n ast.Node) bool {
		if contains(n, then) {
			reached = true
		}
		return !reached && !p.assigns(n, v) && !p.clearsIn(n, v)
	})
	return reached
}

func (p *Package) clearsIn(n ast.Node, v *types.Var) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && p.clearsObject(call, p.named(v.Type()), depth)
		return !found
	})
	return found
}
