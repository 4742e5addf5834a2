package rules

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/cfg"
)

// Liveness is the compiler's: an object is alive at a call if a path from there reaches a use of
// the variable that points to it. What only mentions it, such as `_ = x`, is no use.

// A place is a node of a control-flow graph.
type place struct {
	block *cfg.Block
	index int
}

// find is the place of a node in a body; ok is false for code that is never reached.
func (p *Package) find(in *body, n ast.Node) (found place, ok bool) {
	for _, block := range p.graph(in).Blocks {
		for i, node := range block.Nodes {
			if node.Pos() <= n.Pos() && n.End() <= node.End() && (!ok || smaller(node, found)) {
				found, ok = place{block, i}, true
			}
		}
	}
	return found, ok
}

func smaller(n ast.Node, than place) bool {
	other := than.block.Nodes[than.index]
	return n.End()-n.Pos() < other.End()-other.Pos()
}

// reaches visits the nodes that may run after a place, until visit returns false on a path.
func (p *Package) after(from place, visit func(ast.Node) bool) {
	seen := map[*cfg.Block]bool{}
	var walk func(block *cfg.Block, index int)
	walk = func(block *cfg.Block, index int) {
		for _, node := range block.Nodes[index:] {
			if !visit(node) {
				return
			}
		}
		for _, next := range block.Succs {
			if !seen[next] {
				seen[next] = true
				walk(next, 0)
			}
		}
	}
	walk(from.block, from.index+1)
}

// usedAfter reports whether a body may use v, or a copy of it, after a call in it.
func (p *Package) usedAfter(in *body, call *ast.CallExpr, v *types.Var) bool {
	at, ok := p.find(in, call)
	if !ok || p.isHeld(in, v) {
		return true
	}
	for _, each := range append(p.copies(in, v), v) {
		if p.usedInNode(at.block.Nodes[at.index], call, each) {
			return true
		}
		used := false
		p.after(at, func(n ast.Node) bool {
			used = used || p.uses(n, each)
			return !used && !p.assigns(n, each)
		})
		if used {
			return true
		}
	}
	return false
}

// isHeld reports whether something else than the flow of a body keeps v's object alive: a
// closure, a deferred call, a goroutine, or a place that v was stored in.
func (p *Package) isHeld(in *body, v *types.Var) bool {
	held := false
	ownNodes(in.block, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncLit:
			held = held || p.mentions(n, v)
		case *ast.DeferStmt:
			held = held || p.callHolds(n.Call, v)
		case *ast.GoStmt:
			held = held || p.callHolds(n.Call, v)
		case *ast.UnaryExpr:
			held = held || n.Op == token.AND && p.names(n.X, v)
		case *ast.AssignStmt:
			held = held || p.stores(n, v)
		case *ast.SendStmt:
			held = held || p.holds(n.Value, v)
		case *ast.CallExpr:
			held = held || p.appends(n, v) || p.keptByCall(n, map[*types.Var]bool{v: true}, depth) != ""
		}
	})
	return held
}

// names reports whether an expression is the variable itself.
func (p *Package) names(e ast.Expr, v *types.Var) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && p.identVar(id) == v
}

func (p *Package) callHolds(call *ast.CallExpr, v *types.Var) bool {
	for _, arg := range call.Args {
		if p.holds(arg, v) {
			return true
		}
	}
	return p.receiverHolds(call, v)
}

// stores reports whether an assignment puts v into another object.
func (p *Package) stores(n *ast.AssignStmt, v *types.Var) bool {
	for i, value := range n.Rhs {
		if i >= len(n.Lhs) || !p.holds(value, v) {
			continue
		}
		to, isName := ast.Unparen(n.Lhs[i]).(*ast.Ident)
		if !isName {
			return p.rootVar(n.Lhs[i]) != v // a pointer to itself holds nothing
		}
		if object := p.identVar(to); object != nil && object.Parent() == p.Types.Scope() {
			return true
		}
	}
	return false
}

func (p *Package) appends(call *ast.CallExpr, v *types.Var) bool {
	if id, ok := call.Fun.(*ast.Ident); !ok || id.Name != "append" || len(call.Args) < 2 {
		return false
	}
	for _, arg := range call.Args[1:] {
		if p.holds(arg, v) {
			return true
		}
	}
	return false
}

// copies are the other local variables that are assigned v.
func (p *Package) copies(in *body, v *types.Var) []*types.Var {
	var found []*types.Var
	ownNodes(in.block, func(n ast.Node) {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			return
		}
		for i, value := range assign.Rhs {
			id, isName := assign.Lhs[i].(*ast.Ident)
			if !isName || id.Name == "_" || !p.isCopy(value, v) {
				continue
			}
			if other := p.identVar(id); other != nil && other != v {
				found = append(found, other)
			}
		}
	})
	return found
}

// isCopy reports whether a value is v, or a new object with v in it.
func (p *Package) isCopy(value ast.Expr, v *types.Var) bool {
	for _, element := range p.elements(value) {
		if p.isCopy(element, v) {
			return true
		}
	}
	return p.holds(value, v)
}

// usedInNode reports whether the node of a call uses v once the call has begun.
func (p *Package) usedInNode(node ast.Node, call *ast.CallExpr, v *types.Var) bool {
	for _, arg := range call.Args {
		if p.holds(arg, v) {
			return true // cgo keeps a call's arguments
		}
	}
	if p.keptDuring(call, v) {
		return true
	}
	if idle(node) {
		return false
	}
	used := false
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		if used || n == ast.Node(call) {
			return false
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.LAND || n.Op == token.LOR) && contains(n.Y, call) {
				ast.Inspect(n.Y, visit)
				return false
			}
		case *ast.CallExpr:
			if n.End() <= call.Pos() && p.cCall(n) != "" {
				return false // an earlier call
			}
		case *ast.Ident:
			used = used || p.Info.Uses[n] == types.Object(v) && !isTarget(node, n)
		}
		return true
	}
	ast.Inspect(node, visit)
	return used
}

func contains(outer, inner ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

// uses reports whether a node needs the value of v.
func (p *Package) uses(n ast.Node, v *types.Var) bool {
	if idle(n) {
		return false
	}
	used := false
	ast.Inspect(n, func(inner ast.Node) bool {
		if id, ok := inner.(*ast.Ident); ok && p.Info.Uses[id] == types.Object(v) && !isTarget(n, id) {
			used = true
		}
		return !used
	})
	return used
}

// idle reports whether a statement computes nothing, such as `_ = x` or `_ = x.f`.
func idle(n ast.Node) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, to := range assign.Lhs {
		if id, ok := to.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	calls := false
	for _, value := range assign.Rhs {
		ast.Inspect(value, func(n ast.Node) bool {
			_, isCall := n.(*ast.CallExpr)
			calls = calls || isCall
			return true
		})
	}
	return !calls
}

// isTarget reports whether an identifier is what a statement assigns to.
func isTarget(n ast.Node, id *ast.Ident) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok || assign.Tok != token.ASSIGN && assign.Tok != token.DEFINE {
		return false
	}
	for _, to := range assign.Lhs {
		if to == ast.Expr(id) {
			return true
		}
	}
	return false
}

// assigns reports whether a statement gives v another value.
func (p *Package) assigns(n ast.Node, v *types.Var) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok {
		return false
	}
	for _, to := range assign.Lhs {
		if id, ok := to.(*ast.Ident); ok && p.identVar(id) == v {
			return true
		}
	}
	return false
}

// values are the expressions that a body assigns to a variable.
func (p *Package) assigned(block ast.Node, v *types.Var) []ast.Expr {
	var found []ast.Expr
	add := func(to []ast.Expr, from []ast.Expr) {
		for i, each := range to {
			if id, ok := each.(*ast.Ident); ok && p.identVar(id) == v {
				if len(to) == len(from) {
					found = append(found, from[i])
				} else if len(from) == 1 {
					found = append(found, from[0])
				}
			}
		}
	}
	ast.Inspect(block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			add(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) && p.identVar(name) == v {
					found = append(found, n.Values[i])
				}
			}
		}
		return true
	})
	return found
}

// params are the receiver and the parameters of a function, in order.
func (p *Package) params(receiver *ast.FieldList, kind *ast.FuncType) []*types.Var {
	var found []*types.Var
	for _, list := range []*ast.FieldList{receiver, kind.Params} {
		if list == nil {
			continue
		}
		for _, field := range list.List {
			if len(field.Names) == 0 {
				found = append(found, nil)
			}
			for _, name := range field.Names {
				v, _ := p.Info.Defs[name].(*types.Var)
				found = append(found, v)
			}
		}
	}
	return found
}

func (p *Package) declParams(decl *ast.FuncDecl) []*types.Var {
	return p.params(decl.Recv, decl.Type)
}

// arguments are the receiver and the arguments of a call, in the order of params.
func (p *Package) arguments(call *ast.CallExpr) []ast.Expr {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if ok {
		if selection := p.Info.Selections[selector]; selection != nil && selection.Kind() == types.MethodVal {
			return append([]ast.Expr{selector.X}, call.Args...)
		}
	}
	return call.Args
}
