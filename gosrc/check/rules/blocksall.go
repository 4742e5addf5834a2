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
		own := map[*types.Var]bool{}
		if len(params) > 0 && params[0] != nil {
			own[params[0]] = true
		}
		how := p.blocks(block, own, depth)
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

// blocks is how a block may block or end its goroutine; empty if it cannot. `own` are the
// variables whose object nobody else can reach any more.
func (p *Package) blocks(block ast.Node, own map[*types.Var]bool, deep int) string {
	how := ""
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		if how != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.SendStmt:
			how = "sends on a channel"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				how = "receives from a channel"
			}
		case *ast.RangeStmt:
			if _, ok := underlying(p.Info.TypeOf(n.X)).(*types.Chan); ok {
				how = "receives from a channel"
			}
		case *ast.SelectStmt:
			how = p.selects(n, visit)
			return false
		case *ast.CallExpr:
			how = p.blocksInCall(n, own, deep)
			return !p.isCall(n, "time", "AfterFunc")
		}
		return how == ""
	}
	ast.Inspect(block, visit)
	return how
}

// selects is how a select statement blocks: not, if it has a default case.
func (p *Package) selects(n *ast.SelectStmt, visit func(ast.Node) bool) string {
	for _, each := range n.Body.List {
		if clause, ok := each.(*ast.CommClause); ok && clause.Comm == nil {
			p.visitClauses(n, visit)
			return ""
		}
	}
	return "selects without a default case"
}

func (p *Package) visitClauses(n *ast.SelectStmt, visit func(ast.Node) bool) {
	for _, each := range n.Body.List {
		if clause, ok := each.(*ast.CommClause); ok {
			for _, statement := range clause.Body {
				ast.Inspect(statement, visit)
			}
		}
	}
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

func (p *Package) blocksInCall(call *ast.CallExpr, own map[*types.Var]bool, deep int) string {
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
	callee := p.callee(call)
	if callee == nil || deep == 0 {
		return ""
	}
	decl := p.functions[callee]
	inner := map[*types.Var]bool{}
	params := p.declParams(decl)
	for i, arg := range p.arguments(call) {
		if i < len(params) && params[i] != nil && p.isOwn(arg, own) {
			inner[params[i]] = true
		}
	}
	return p.blocks(decl.Body, inner, deep-1)
}

// isOwn reports whether an argument is, or is in, an object that nobody else can reach.
func (p *Package) isOwn(e ast.Expr, own map[*types.Var]bool) bool {
	e = p.unconverted(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = address.X
	}
	at, ok := p.path(e)
	return ok && own[at.root] && at.inside && (len(at.fields) == 0 || !isPointer(at.last().Type()))
}

func (p *Package) locksOwn(call *ast.CallExpr, own map[*types.Var]bool) bool {
	for v := range own {
		if p.receiverHolds(call, v) {
			return true
		}
	}
	return false
}
