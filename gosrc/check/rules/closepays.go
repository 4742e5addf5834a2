package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"

	"golang.org/x/tools/go/cfg"
)

// ClosePays is rule 3: a closing method frees, and leaves the finalizer or cleanup on a path.
const ClosePays = "close-pays"

// closePays reports the closing methods of rule 3. It returns how many closing methods there are,
// and how many of these have a finding.
func (p *Package) closePays(report func(Finding)) (closers, found int) {
	for _, in := range p.bodies {
		if in.lit != nil || in.decl == nil || in.decl.Recv == nil {
			continue
		}
		params := p.declParams(in.decl)
		if len(params) == 0 || params[0] == nil {
			continue
		}
		r := p.closes(in, params[0])
		if r == nil {
			continue
		}
		closers++
		if what, do := p.stillPays(in, params[0], r); what != "" {
			report(p.finding(ClosePays, r, in.decl.Name.Pos(), what, do))
			found++
		}
	}
	return closers, found
}

// closing names methods that callers use to free an object: others may free it too, after an error.
// disposing names those that may also take something out of it, if they have a parameter.
var (
	closing = regexp.MustCompile(`(?i)^(must)?(close|free|destroy|release|unref|dispose|finali[sz]e|term|clean|` +
		`unmap|shutdown|unload|deinit)`)
	disposing = regexp.MustCompile(`(?i)^(delete|stop|end|done|discard|remove|kill|quit|cancel|clear|detach|drop)`)
)

func mayClose(decl *ast.FuncDecl) bool {
	name := decl.Name.Name
	return closing.MatchString(name) || disposing.MatchString(name) && decl.Type.Params.NumFields() == 0
}

// closes is the registration whose freeing a method does itself; nil if it is no closing method.
func (p *Package) closes(in *body, receiver *types.Var) *Registration {
	name := p.named(receiver.Type())
	if name == nil || len(p.actions(name)) == 0 || !mayClose(in.decl) {
		return nil
	}
	if !p.isClosing(in.decl) || p.replaces(in, receiver) {
		return nil
	}
	if !p.hasFree(in.block, in, receiver) {
		return nil
	}
	for _, r := range p.Registrations {
		if p.named(r.Type) == name {
			return r
		}
	}
	return nil
}

// isClosing reports whether a method is called to close: by others, or by the package's functions
// that are not methods of the same type.
func (p *Package) isClosing(decl *ast.FuncDecl) bool {
	if decl.Name.IsExported() {
		return true
	}
	object := p.Info.Defs[decl.Name]
	for _, each := range p.calls[object] {
		if p.inTarget(each.in) || each.in.decl == nil || p.receiverName(each.in.decl) == p.receiverName(decl) {
			continue
		}
		if len(p.registrationsOf(each.in.decl)) > 0 || p.makes(each, decl) {
			continue
		}
		return !p.clearedByCaller(each, p.receiverName(decl))
	}
	return false
}

// makes reports whether a caller is the constructor of what it closes, after an error.
func (p *Package) makes(each site, decl *ast.FuncDecl) bool {
	for _, r := range p.Registrations {
		if r.in == each.in && p.named(r.Type) == p.receiverName(decl) {
			return true
		}
	}
	return false
}

func (p *Package) clearedByCaller(each site, name *types.TypeName) bool {
	cleared := false
	ast.Inspect(each.in.block, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && call != each.call {
			cleared = cleared || p.clearsObject(call, name, 1)
		}
		return true
	})
	return cleared
}

func (p *Package) receiverName(decl *ast.FuncDecl) *types.TypeName {
	params := p.declParams(decl)
	if decl.Recv == nil || len(params) == 0 {
		return nil
	}
	if params[0] == nil {
		return p.named(p.Info.TypeOf(decl.Recv.List[0].Type))
	}
	return p.named(params[0].Type())
}

// replaces reports whether a method gives the freed field a new value, or recycles the object.
func (p *Package) replaces(in *body, receiver *types.Var) bool {
	found := false
	ast.Inspect(in.block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				at, ok := p.path(to)
				if ok && at.root == receiver && p.isFreed(receiver, at.last()) && len(n.Lhs) == len(n.Rhs) {
					found = found || !p.isZero(n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			selector, ok := n.Fun.(*ast.SelectorExpr)
			if ok && selector.Sel.Name == "Put" && len(n.Args) == 1 && p.rootVar(n.Args[0]) == receiver {
				found = true // a recycled net
			}
		}
		return true
	})
	return found
}

func (p *Package) isZero(e ast.Expr) bool {
	value := p.Info.Types[e].Value
	lit, isLit := p.unconverted(e).(*ast.CompositeLit)
	basic, isNumber := p.unconverted(e).(*ast.BasicLit)
	return p.isNil(p.unconverted(e)) || value != nil || isLit && len(lit.Elts) == 0 || isNumber && basic != nil
}

func (p *Package) isFreed(receiver, field *types.Var) bool {
	for _, each := range p.actions(p.named(receiver.Type())) {
		if each.field == field && field != nil {
			return true
		}
	}
	return false
}

// hasFree reports whether a node frees what the finalizer or cleanup would free.
func (p *Package) hasFree(n ast.Node, in *body, receiver *types.Var) bool {
	return p.freeIn(n, in, receiver) != nil
}

// freeIn is the call in a node that frees what the finalizer or cleanup would free; nil if none does.
func (p *Package) freeIn(n ast.Node, in *body, receiver *types.Var) *ast.CallExpr {
	wanted := map[action]bool{}
	for _, each := range p.actions(p.named(receiver.Type())) {
		wanted[action{callee: each.callee, field: each.field}] = true
	}
	var found *ast.CallExpr
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found != nil || p.isDead(call) {
			return found == nil
		}
		for _, each := range p.actionsOf(in.block, call, receiver, depth) {
			if wanted[action{callee: each.callee, field: each.field}] {
				found = call
			}
		}
		return true
	})
	return found
}

// The states of a path through a closing method.
const (
	freed = 1 << iota
	cleared
)

// stillPays is what a closing method leaves undone on a path; empty if nothing.
func (p *Package) stillPays(in *body, receiver *types.Var, r *Registration) (what, do string) {
	search := &closeSearch{p, in, receiver, map[closeState]bool{}}
	if !search.leaves(closeState{block: p.graph(in).Blocks[0]}) {
		return "", ""
	}
	return p.paying(in, receiver, r)
}

// A closeState is a block of a closing method, with what has happened before it.
type closeState struct {
	block *cfg.Block
	done  int
	// by is the call that freed last, and result the variable that has its result. They are unset
	// once the object has been told that it is free.
	by     *ast.CallExpr
	result *types.Var
}

// A closeSearch looks for a path through a closing method that frees and does not clear.
type closeSearch struct {
	p        *Package
	in       *body
	receiver *types.Var
	known    map[closeState]bool
}

// leaves reports whether a path from a state returns with what was registered. If the function
// branches on the result of the free, and clears on one branch only, the free has failed on the
// other one, which keeps the finalizer on purpose.
func (s *closeSearch) leaves(state closeState) bool {
	if known, seen := s.known[state]; seen {
		return known
	}
	s.known[state] = false // for a loop that comes back
	found := s.leavesAfter(state)
	s.known[state] = found
	return found
}

func (s *closeSearch) leavesAfter(state closeState) bool {
	for _, node := range state.block.Nodes {
		s.step(&state, node)
	}
	next := state.block.Succs
	if len(next) == 0 {
		return returns(state.block) && state.done == freed
	}
	leaving := 0
	for _, each := range next {
		after := state
		after.block = each
		if s.leaves(after) {
			leaving++
		}
	}
	if leaving == 1 && len(next) == 2 && s.testsFree(state) {
		return false
	}
	return leaving > 0
}

func (s *closeSearch) step(state *closeState, n ast.Node) {
	event := s.p.event(n, s.in, s.receiver)
	state.done |= event
	if s.p.tellsObject(n, s.receiver) {
		state.by, state.result = nil, nil
	}
	if event&freed == 0 {
		return
	}
	state.by = s.p.freeIn(n, s.in, s.receiver)
	if assign, ok := n.(*ast.AssignStmt); ok && len(assign.Rhs) == 1 {
		if id, ok := assign.Lhs[len(assign.Lhs)-1].(*ast.Ident); ok {
			state.result = s.p.identVar(id)
		}
	}
}

// testsFree reports whether a block ends with a condition on what the free has returned.
func (s *closeSearch) testsFree(state closeState) bool {
	nodes := state.block.Nodes
	if state.done != freed || len(nodes) == 0 {
		return false
	}
	condition, ok := nodes[len(nodes)-1].(ast.Expr)
	if !ok {
		return false
	}
	tests := state.result != nil && s.p.mentions(condition, state.result)
	return tests || state.by != nil && contains(condition, state.by)
}

// tellsObject reports whether a statement changes the object.
func (p *Package) tellsObject(n ast.Node, receiver *types.Var) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok || assign.Tok == token.DEFINE {
		return false
	}
	for _, to := range assign.Lhs {
		if at, ok := p.path(to); ok && at.root == receiver && len(at.fields) > 0 {
			return true
		}
	}
	return false
}

// returns reports whether the function returns at the end of a block, and does not panic.
func returns(block *cfg.Block) bool {
	if len(block.Nodes) == 0 {
		return true
	}
	statement, ok := block.Nodes[len(block.Nodes)-1].(*ast.ExprStmt)
	if !ok {
		return true
	}
	call, ok := statement.X.(*ast.CallExpr)
	if !ok {
		return true
	}
	id, ok := call.Fun.(*ast.Ident)
	return !ok || id.Name != "panic"
}

func (p *Package) event(n ast.Node, in *body, receiver *types.Var) int {
	state := 0
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && p.clearsObject(call, p.named(receiver.Type()), depth) {
			state |= cleared
		}
		return true
	})
	if p.hasFree(n, in, receiver) {
		state |= freed
	}
	return state
}

func (p *Package) paying(in *body, receiver *types.Var, r *Registration) (what, do string) {
	method := in.decl.Name.Name
	net, do := "finalizer", fmt.Sprintf("runtime.SetFinalizer(%s, nil) on every path", receiver.Name())
	if r.API == "AddCleanup" {
		net, do = "cleanup", "keep the runtime.Cleanup that AddCleanup returns, and call its Stop on every path"
	}
	what = fmt.Sprintf("%s still pays: it frees, and leaves the %s on a path", method, net)
	if p.freesTwice(in, receiver) {
		what += fmt.Sprintf("; the %s then frees a second time", net)
	}
	return what, do
}

// freesTwice reports whether nothing tells the finalizer or cleanup that a method has freed.
func (p *Package) freesTwice(in *body, receiver *types.Var) bool {
	for _, each := range p.actions(p.named(receiver.Type())) {
		if each.bare {
			return true // the argument does not change
		}
	}
	return !p.tells(in.block, receiver, depth)
}

// tells reports whether a block changes the object, or uses one of its guards such as a sync.Once.
func (p *Package) tells(block *ast.BlockStmt, receiver *types.Var, deep int) bool {
	told := false
	ast.Inspect(block, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				at, ok := p.path(to)
				told = told || ok && at.root == receiver && n.Tok != token.DEFINE
			}
		case *ast.CallExpr:
			told = told || p.tellsByCall(n, receiver, deep)
		}
		return !told
	})
	return told
}

func (p *Package) tellsByCall(call *ast.CallExpr, receiver *types.Var, deep int) bool {
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok && p.rootVar(selector.X) == receiver {
		switch selector.Sel.Name {
		case "Do", "Swap", "CompareAndSwap", "Store", "Add":
			return true
		}
	}
	for _, arg := range call.Args { // atomic.StoreInt32(&h.closed, 1), C.free_handle(&h.p)
		address, ok := p.unconverted(arg).(*ast.UnaryExpr)
		if ok && address.Op == token.AND && p.rootVar(arg) == receiver {
			return true
		}
	}
	callee := p.callee(call)
	if callee == nil || deep == 0 {
		return false
	}
	params := p.declParams(p.functions[callee])
	for i, arg := range p.arguments(call) {
		if i < len(params) && params[i] != nil && p.rootVar(arg) == receiver {
			return p.tells(p.functions[callee].Body, params[i], deep-1)
		}
	}
	return false
}
