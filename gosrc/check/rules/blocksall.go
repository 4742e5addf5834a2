package rules

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// BlocksAll is rule 5: one goroutine runs all finalizers (and, on Go 1.24, all cleanups; later a
// quarter of the CPUs' number at most), and this one may block it or end it.
const BlocksAll = "blocks-all"

func (p *Package) blocksAll(report func(Finding)) {
	for _, r := range p.Registrations {
		block, params := p.target(r)
		if block == nil {
			p.notChecked(BlocksAll, r.Call.Pos(), "the function is not in this package")
			continue
		}
		if p.isNeverRun(r) {
			continue
		}
		if why := p.keptBy(r); why == byGoroutine {
			p.notChecked(BlocksAll, r.Call.Pos(), "the object may be held, so that this does not run: "+why)
			continue
		}
		own := owned{}
		if len(params) > 0 && params[0] != nil {
			own[params[0]] = params[0].Type()
			if r.API == "SetFinalizer" && r.Type != nil {
				own[params[0]] = p.Info.TypeOf(r.Object)
			}
		}
		search := &blockSearch{p, r.API == "SetFinalizer", map[*types.Var]int64{}}
		how := search.blocks(block, own, depth)
		if how == "" {
			continue
		}
		which, who := "finalizer", "every other finalizer waits"
		if r.API == "AddCleanup" {
			which, who = "cleanup", "others wait (on Go 1.24 all cleanups and finalizers)"
		}
		what := fmt.Sprintf("one stops all: the %s %s, and meanwhile %s", which, how, who)
		if strings.HasPrefix(how, "ends the program") {
			what = fmt.Sprintf("one stops all: the %s %s, at a time that the collector chooses", which, how)
		}
		do := "start a goroutine for it: go func() { … }()"
		report(p.finding(BlocksAll, r, r.Call.Pos(), what, do))
	}
}

// owned are the variables whose object nobody else can reach any more, with the type that the
// object has, or the pointer to it: an interface does not say.
type owned map[*types.Var]types.Type

// A blockSearch looks for what may block in one finalizer or cleanup, and in what that calls.
type blockSearch struct {
	p         *Package
	finalizer bool
	// sent are how many values the function has put into each of its object's own channels.
	sent map[*types.Var]int64
}

// blocks is how a block may block or end its goroutine; empty if it cannot.
func (s *blockSearch) blocks(block ast.Node, own owned, deep int) string {
	how := ""
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		if how != "" || n == nil || s.p.isDead(n) {
			return false
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.SendStmt, *ast.UnaryExpr:
			how = s.waits(n, own)
		case *ast.RangeStmt:
			if _, ok := underlying(s.p.Info.TypeOf(n.X)).(*types.Chan); ok {
				how = "receives from a channel"
			}
		case *ast.SelectStmt:
			if how = s.selects(n, own); how == "" {
				visitBodies(n.Body, visit)
			}
			return false
		case *ast.TypeSwitchStmt:
			if clause, known := s.matching(n, own); known {
				visitClause(clause, visit)
				return false
			}
		case *ast.CallExpr:
			how = s.blocksInCall(n, own, deep)
			return how == "" && !s.p.isCall(n, "time", "AfterFunc")
		}
		return how == ""
	}
	ast.Inspect(block, visit)
	return how
}

// waits is how a statement waits for a channel; empty for what is neither a send nor a receive.
func (s *blockSearch) waits(n ast.Node, own owned) string {
	switch n := n.(type) {
	case *ast.SendStmt:
		field, room := s.ownChannel(n.Chan, own)
		if field == nil || s.sent[field] >= room {
			return "sends on a channel"
		}
		s.sent[field]++
	case *ast.UnaryExpr:
		if n.Op != token.ARROW {
			return ""
		}
		field, _ := s.ownChannel(n.X, own)
		if field == nil || s.sent[field] == 0 {
			return "receives from a channel"
		}
		s.sent[field]--
	}
	return ""
}

// selects is how a select statement blocks: not, if one of its cases can go on at once.
func (s *blockSearch) selects(n *ast.SelectStmt, own owned) string {
	for _, each := range n.Body.List {
		clause, ok := each.(*ast.CommClause)
		if !ok {
			continue
		}
		if clause.Comm == nil || s.goesOn(clause.Comm, own) {
			return ""
		}
	}
	return "selects without a default case"
}

func (s *blockSearch) goesOn(statement ast.Stmt, own owned) bool {
	waits := false
	ast.Inspect(statement, func(n ast.Node) bool {
		waits = waits || n != nil && s.waits(n, own) != ""
		return !waits
	})
	return !waits
}

func visitBodies(cases *ast.BlockStmt, visit func(ast.Node) bool) {
	for _, each := range cases.List {
		if clause, ok := each.(*ast.CommClause); ok {
			for _, statement := range clause.Body {
				ast.Inspect(statement, visit)
			}
		}
	}
}

// matching is the case of a type switch that an owned object has, nil if none; known is false if
// that cannot be told.
func (s *blockSearch) matching(n *ast.TypeSwitchStmt, own owned) (clause *ast.CaseClause, known bool) {
	var subject ast.Expr
	ast.Inspect(n.Assign, func(n ast.Node) bool {
		if assertion, ok := n.(*ast.TypeAssertExpr); ok {
			subject = assertion.X
		}
		return true
	})
	is := own[s.p.variable(subject)]
	if is == nil || types.IsInterface(is) {
		return nil, false
	}
	var otherwise *ast.CaseClause
	for _, each := range n.Body.List {
		clause := each.(*ast.CaseClause)
		if clause.List == nil {
			otherwise = clause
		}
		for _, name := range clause.List {
			wanted := s.p.Info.TypeOf(name)
			if !isKnown(wanted) {
				return nil, false
			}
			if types.AssignableTo(is, wanted) {
				if v, ok := s.p.Info.Implicits[clause].(*types.Var); ok {
					own[v] = is
				}
				return clause, true
			}
		}
	}
	return otherwise, true
}

func visitClause(clause *ast.CaseClause, visit func(ast.Node) bool) {
	if clause == nil {
		return
	}
	for _, statement := range clause.Body {
		ast.Inspect(statement, visit)
	}
}

// isNeverRun reports whether rule 2 finds that a finalizer or cleanup never runs.
func (p *Package) isNeverRun(r *Registration) bool {
	what, _ := p.heldByItself(r)
	if what == "" && r.API == "SetFinalizer" {
		what, _ = p.inCycle(r)
	}
	return what != ""
}

var blocking = map[string]string{
	"time.Sleep":                    "sleeps",
	"runtime.Goexit":                "ends the goroutine that runs them",
	"(*sync.WaitGroup).Wait":        "waits for a sync.WaitGroup",
	"(*sync.Cond).Wait":             "waits for a sync.Cond",
	"(*os/exec.Cmd).Run":            "waits for a process",
	"(*os/exec.Cmd).Wait":           "waits for a process",
	"(*os/exec.Cmd).Output":         "waits for a process",
	"(*os/exec.Cmd).CombinedOutput": "waits for a process",
	"(*os.Process).Wait":            "waits for a process",
	"(*log.Logger).Fatal":           "ends the program",
	"(*log.Logger).Fatalf":          "ends the program",
	"(*log.Logger).Fatalln":         "ends the program",
	"log.Fatal":                     "ends the program",
	"log.Fatalf":                    "ends the program",
	"log.Fatalln":                   "ends the program",
	"os.Exit":                       "ends the program",
	"net.Dial":                      "uses the network",
	"net.DialTimeout":               "uses the network",
	"(net.Conn).Read":               "uses the network",
	"(net.Conn).Write":              "uses the network",
	"net/http.Get":                  "uses the network",
	"net/http.Post":                 "uses the network",
	"(*net/http.Client).Do":         "uses the network",
	"(*net/http.Client).Get":        "uses the network",
}

var locks = map[string]bool{
	"(*sync.Mutex).Lock": true, "(*sync.RWMutex).Lock": true, "(*sync.RWMutex).RLock": true,
	"(sync.Locker).Lock": true,
}

func (s *blockSearch) blocksInCall(call *ast.CallExpr, own owned, deep int) string {
	p := s.p
	function := p.function(call)
	if function == nil {
		return ""
	}
	name := function.FullName()
	if how := blocking[name]; how != "" {
		return how
	}
	if locks[name] && !p.locksOwn(call, own) {
		return "waits for a mutex that others may hold"
	}
	decl := s.called(call, function, own)
	if decl == nil || deep == 0 {
		return ""
	}
	inner := owned{}
	params := p.declParams(decl)
	for i, arg := range p.arguments(call) {
		if i < len(params) && params[i] != nil && p.isOwn(arg, own) {
			inner[params[i]] = s.typeOf(arg, params[i], own)
		}
	}
	return s.blocks(decl.Body, inner, deep-1)
}

// called is the declaration that a call runs, also through an interface whose object is known.
func (s *blockSearch) called(call *ast.CallExpr, function *types.Func, own owned) *ast.FuncDecl {
	if decl := s.p.functions[function]; decl != nil {
		return decl
	}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	is := own[s.p.variable(selector.X)]
	if is == nil {
		return nil
	}
	method, _, _ := types.LookupFieldOrMethod(is, true, s.p.Types, function.Name())
	found, ok := method.(*types.Func)
	if !ok {
		return nil
	}
	return s.p.functions[found.Origin()]
}

// typeOf is the type of an owned argument: the parameter's, if that is no interface.
func (s *blockSearch) typeOf(arg ast.Expr, param *types.Var, own owned) types.Type {
	if is := own[s.p.variable(arg)]; is != nil && types.IsInterface(param.Type()) {
		return is
	}
	return param.Type()
}

// isOwn reports whether an argument is, or is in, an object that nobody else can reach.
func (p *Package) isOwn(e ast.Expr, own owned) bool {
	e = p.unconverted(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = address.X
	}
	at, ok := p.path(e)
	return ok && own[at.root] != nil && at.inside && (len(at.fields) == 0 || !isPointer(at.last().Type()))
}

func (p *Package) locksOwn(call *ast.CallExpr, own owned) bool {
	for v := range own {
		if p.receiverHolds(call, v) {
			return true
		}
	}
	return false
}
