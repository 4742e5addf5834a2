package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// UseAfterFree is rule 1: C gets a pointer that the object's finalizer or cleanup frees, and
// nothing uses the object once the call has begun. The collector may then free it during the call.
const UseAfterFree = "use-after-free"

// useAfterFree reports the calls of rule 1. It returns the number of functions that pass such a
// pointer to C, and how many of these have a finding.
func (p *Package) useAfterFree(report func(Finding)) (functions, found int) {
	for _, in := range p.bodies {
		if in.lit != nil {
			continue // a closure holds what it captures
		}
		passes, faults := false, false
		ownNodes(in.block, func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || p.cReader(call) == "" || p.isDead(call) {
				return
			}
			if p.cannotStart(in, call) {
				return
			}
			for _, arg := range call.Args {
				r, taken := p.freedArgument(in, arg)
				if r == nil {
					continue
				}
				passes = true
				if p.deadAt(in, call, taken, depth, map[types.Object]bool{}) {
					if !faults || !p.reportedIn(call, in) {
						report(p.freedDuring(r, call, taken))
					}
					faults = true
					return
				}
			}
		})
		if passes && !p.onlyFrees(in) {
			functions++
		}
		if faults {
			found++
		}
	}
	return functions, found
}

// cannotStart reports whether a call panics before it begins: an argument is an address in the object
// of a result that is still nil.
func (p *Package) cannotStart(in *body, call *ast.CallExpr) bool {
	for _, arg := range call.Args {
		address, ok := p.unconverted(arg).(*ast.UnaryExpr)
		if !ok || address.Op != token.AND || in.decl == nil {
			continue
		}
		at, ok := p.path(address.X)
		if !ok || len(at.fields) == 0 || at.root == nil || !isPointer(at.root.Type()) {
			continue
		}
		if p.isNamedResult(in.decl, at.root) && len(p.assigned(in.block, at.root)) == 0 {
			return true
		}
	}
	return false
}

// reportedIn reports whether a call is an argument of another call of C, which is reported.
func (p *Package) reportedIn(call *ast.CallExpr, in *body) bool {
	nested := false
	ownNodes(in.block, func(n ast.Node) {
		outer, ok := n.(*ast.CallExpr)
		if ok && outer != call && contains(outer, call) && p.cCall(outer) != "" {
			nested = true
		}
	})
	return nested
}

// onlyFrees reports whether a function only runs as a finalizer.
func (p *Package) onlyFrees(in *body) bool {
	return len(p.registrationsOf(in.decl)) > 0 && !p.isCalled(in.decl)
}

func (p *Package) freedDuring(r *Registration, call *ast.CallExpr, taken path) Finding {
	object := "the object"
	if taken.root != nil {
		object = taken.root.Name()
	}
	registers := map[string]string{"SetFinalizer": "finalizer", "AddCleanup": "cleanup"}[r.API]
	what := fmt.Sprintf(
		"use after free: nothing uses %s once C.%s has begun, so the collector may run its %s, which frees %s, during the call",
		object, p.cReader(call), registers, taken.last().Name(),
	)
	do := fmt.Sprintf("runtime.KeepAlive(%s) after the call", object)
	if taken.root == nil {
		do = "keep the object in a variable, and call runtime.KeepAlive with it after the call"
	} else if !isPointer(taken.root.Type()) {
		do = "give the method a pointer receiver, and call runtime.KeepAlive with it after the call"
	}
	return p.finding(UseAfterFree, r, call.Pos(), what, do)
}

// freedArgument is the registration that frees an argument's pointer, and where that was read.
func (p *Package) freedArgument(in *body, arg ast.Expr) (*Registration, path) {
	if address, ok := p.unconverted(arg).(*ast.UnaryExpr); ok && address.Op == token.AND {
		return nil, path{}
	}
	taken, ok := p.taken(in.block, arg, depth)
	if !ok || taken.last() == nil {
		return nil, path{}
	}
	var of types.Type
	if taken.root != nil {
		of = taken.root.Type()
	} else {
		of = p.Info.TypeOf(taken.call)
	}
	name := p.named(of)
	if name == nil || !mayFree(taken.last().Type()) {
		return nil, path{}
	}
	for _, r := range p.Registrations {
		if p.named(r.Type) != name {
			continue
		}
		if p.freesField(r, taken.last()) && p.keptBy(r) == "" {
			return r, taken
		}
	}
	return nil, path{}
}

// mayFree reports whether a value may name memory of C: a pointer, or a number that stands for one.
func mayFree(t types.Type) bool {
	switch u := underlying(t).(type) {
	case *types.Basic:
		return u.Kind() == types.UnsafePointer || u.Kind() == types.Uintptr || u.Kind() == types.Invalid
	case *types.Struct:
		return u.NumFields() == 1 && u.Field(0).Name() == "_unknown" // a typedef of C, often a pointer
	}
	return isPointer(t)
}

// deadAt reports whether an object is dead once a call has begun, in this function and in one of
// its callers at least.
func (p *Package) deadAt(in *body, call *ast.CallExpr, at path, deep int, seen map[types.Object]bool) bool {
	if at.root == nil {
		return at.call != nil
	}
	v := at.root
	if v.Parent() == p.Types.Scope() || v.IsField() {
		return false
	}
	byValue := !isPointer(v.Type())
	if !byValue && p.usedAfter(in, call, v) {
		return false
	}
	if p.clearedBefore(in, call, v) || p.locksAgainst(in, call, v, at.last()) {
		return false
	}
	index := p.paramIndex(in, v)
	if index < 0 {
		return p.madeAndRegistered(in, call, v)
	}
	return p.deadInCaller(in, index, deep, seen)
}

func (p *Package) paramIndex(in *body, v *types.Var) int {
	if in.decl == nil || in.lit != nil {
		return -1
	}
	for i, param := range p.declParams(in.decl) {
		if param == v {
			return i
		}
	}
	return -1
}

// madeAndRegistered reports whether a local variable got its object from a call, or from a literal
// that is registered before the call. What comes from elsewhere may be held there.
func (p *Package) madeAndRegistered(in *body, call *ast.CallExpr, v *types.Var) bool {
	values := p.assigned(in.block, v)
	if len(values) != 1 {
		return false
	}
	made := p.unconverted(values[0])
	if maker, ok := made.(*ast.CallExpr); ok && !isNew(maker) {
		callee := p.callee(maker)
		return callee != nil && p.registersResult(callee)
	}
	for _, r := range p.Registrations {
		if r.in == in && p.rootVar(r.Object) == v && p.reachable(in, r.Call, call) {
			return true
		}
	}
	return false
}

func isNew(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "new"
}

// reachable reports whether one node may run after another.
func (p *Package) reachable(in *body, from, to ast.Node) bool {
	start, ok := p.find(in, from)
	if !ok {
		return false
	}
	reached := false
	p.after(start, func(n ast.Node) bool {
		reached = reached || contains(n, to)
		return !reached
	})
	return reached
}

// clearedBefore reports whether the finalizer may have been cleared, or the cleanup stopped,
// before a call.
func (p *Package) clearedBefore(in *body, call *ast.CallExpr, v *types.Var) bool {
	cleared := false
	ownNodes(in.block, func(n ast.Node) {
		each, ok := n.(*ast.CallExpr)
		if ok && !cleared && p.clearsObject(each, p.named(v.Type()), depth) && !p.isDeferred(in, each) {
			cleared = p.reachable(in, each, call) || p.sameNode(in, each, call)
		}
	})
	return cleared
}

// isFieldCall reports whether a call is of a function that an object holds.
func (p *Package) isFieldCall(call *ast.CallExpr) bool {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	selection := p.Info.Selections[selector]
	return selection != nil && selection.Kind() == types.FieldVal
}

func (p *Package) isDeferred(in *body, call *ast.CallExpr) bool {
	deferred := false
	ownNodes(in.block, func(n ast.Node) {
		if each, ok := n.(*ast.DeferStmt); ok && each.Call == call {
			deferred = true
		}
	})
	return deferred
}

func (p *Package) sameNode(in *body, first, second ast.Node) bool {
	a, ok := p.find(in, first)
	b, found := p.find(in, second)
	return ok && found && a == b && first.Pos() < second.Pos()
}

// clearsObject reports whether a call clears the finalizer or stops the cleanup of a type's object,
// itself or in a function that it calls.
func (p *Package) clearsObject(call *ast.CallExpr, name *types.TypeName, deep int) bool {
	for _, each := range p.clears {
		if each.call == call {
			return each.of == nil || each.of == name
		}
	}
	if p.stopsLater && p.isFieldCall(call) {
		return true
	}
	callee := p.callee(call)
	if callee == nil || deep == 0 {
		return false
	}
	cleared := false
	ast.Inspect(p.functions[callee].Body, func(n ast.Node) bool {
		inner, ok := n.(*ast.CallExpr)
		if ok && !cleared && inner != call {
			cleared = p.clearsObject(inner, name, deep-1)
		}
		return !cleared
	})
	return cleared
}

// isCalled reports whether the package calls a function, outside of what runs as a finalizer, or
// others may.
func (p *Package) isCalled(decl *ast.FuncDecl) bool {
	object := p.Info.Defs[decl.Name]
	if decl.Name.IsExported() {
		return true
	}
	for _, each := range p.calls[object] {
		if !p.inTarget(each.in) {
			return true
		}
	}
	return false
}

// deadInCaller reports whether a parameter's object is dead during the call of a function: one of
// its callers does not use it afterwards, or callers are unknown.
func (p *Package) deadInCaller(in *body, index, deep int, seen map[types.Object]bool) bool {
	object := p.Info.Defs[in.decl.Name]
	if object == nil || seen[object] || deep == 0 {
		return false
	}
	seen[object] = true
	if in.decl.Name.IsExported() {
		return true
	}
	registered := len(p.registrationsOf(in.decl))
	if p.mentioned[object] > len(p.calls[object])+registered {
		return true // somebody has it as a value
	}
	for _, each := range p.calls[object] {
		if !p.inTarget(each.in) && p.deadAtSite(each, index, deep-1, seen) {
			return true
		}
	}
	return false
}

func (p *Package) deadAtSite(each site, index, deep int, seen map[types.Object]bool) bool {
	arguments := p.arguments(each.call)
	if index >= len(arguments) || each.in.lit != nil {
		return false
	}
	if each.in.decl != nil && p.onlyFrees(each.in) {
		return false
	}
	at, ok := p.path(arguments[index])
	if !ok || len(at.fields) > 0 {
		return false // another object holds it
	}
	return p.deadAt(each.in, each.call, at, deep, seen)
}

// registersResult reports whether a function registers the object that it returns.
func (p *Package) registersResult(callee types.Object) bool {
	decl := p.functions[callee]
	for _, r := range p.Registrations {
		if r.in.decl != decl || r.in.lit != nil {
			continue
		}
		v := p.rootVar(r.Object)
		returned := false
		ownNodes(decl.Body, func(n ast.Node) {
			result, ok := n.(*ast.ReturnStmt)
			if ok && len(result.Results) > 0 && v != nil && p.variable(result.Results[0]) == v {
				returned = true
			}
		})
		if returned || p.isNamedResult(decl, v) {
			return true
		}
	}
	return false
}

func (p *Package) isNamedResult(decl *ast.FuncDecl, v *types.Var) bool {
	if decl.Type.Results == nil || v == nil {
		return false
	}
	for _, field := range decl.Type.Results.List {
		for _, name := range field.Names {
			if p.Info.Defs[name] == types.Object(v) {
				return true
			}
		}
	}
	return false
}

// locksAgainst reports whether a body holds, during a call, a mutex that the finalizers and cleanups
// which free a field of v lock first: they wait until the call has ended.
func (p *Package) locksAgainst(in *body, call *ast.CallExpr, v, field *types.Var) bool {
	held := p.locksHeld(in, call)
	if len(held) == 0 {
		return false
	}
	registered := false
	for _, r := range p.Registrations {
		if p.named(r.Type) != p.named(v.Type()) || field != nil && !p.freesField(r, field) {
			continue
		}
		block, _ := p.target(r)
		if block == nil || !p.locksAny(block, held, depth) {
			return false
		}
		registered = true
	}
	return registered
}

func (p *Package) freesField(r *Registration, field *types.Var) bool {
	for _, each := range p.frees(r) {
		if each.field == field {
			return true
		}
	}
	return false
}

// locksHeld are the mutexes that a body has locked and not unlocked when a call begins.
func (p *Package) locksHeld(in *body, call *ast.CallExpr) map[*types.Var]bool {
	held := map[*types.Var]bool{}
	ownNodes(in.block, func(n ast.Node) {
		each, ok := n.(*ast.CallExpr)
		if !ok || each.Pos() >= call.Pos() || p.isDeferred(in, each) {
			return
		}
		if function := p.function(each); function != nil {
			if mutex := p.mutexOf(each); mutex != nil {
				held[mutex] = locks[function.FullName()]
			}
		}
	})
	for mutex, is := range held {
		if !is {
			delete(held, mutex)
		}
	}
	return held
}

// mutexOf is the field or the variable whose method of package sync a call names.
func (p *Package) mutexOf(call *ast.CallExpr) *types.Var {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || packagePath(p.function(call)) != "sync" {
		return nil
	}
	at, ok := p.path(selector.X)
	selection := p.Info.Selections[selector]
	if !ok || selection == nil {
		return nil
	}
	receiver := selection.Recv()
	for _, index := range selection.Index()[:len(selection.Index())-1] {
		if pointer, ok := receiver.Underlying().(*types.Pointer); ok {
			receiver = pointer.Elem()
		}
		structure, ok := receiver.Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		at.fields = append(at.fields, structure.Field(index).Origin())
		receiver = structure.Field(index).Type()
	}
	if at.last() != nil {
		return at.last()
	}
	return at.root
}

// locksAny reports whether a block, or what it calls, locks one of these mutexes.
func (p *Package) locksAny(block ast.Node, held map[*types.Var]bool, deep int) bool {
	found := false
	ast.Inspect(block, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		if function := p.function(call); function != nil && locks[function.FullName()] {
			found = found || held[p.mutexOf(call)]
		}
		if callee := p.callee(call); callee != nil && deep > 0 {
			found = found || p.locksAny(p.functions[callee].Body, held, deep-1)
		}
		return !found
	})
	return found
}
