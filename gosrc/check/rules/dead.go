package rules

import (
	"go/ast"
	"go/constant"
	"go/token"
)

// A span is what a branch that never runs spans in its file.
type span struct{ from, to token.Pos }

// deadBranches are the branches of a file's if statements whose condition is a constant.
func (p *Package) deadBranches(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		branch, ok := n.(*ast.IfStmt)
		if !ok {
			return true
		}
		switch is, known := p.constant(branch.Cond); {
		case known && !is:
			p.dead = append(p.dead, span{branch.Body.Pos(), branch.Body.End()})
		case known && branch.Else != nil:
			p.dead = append(p.dead, span{branch.Else.Pos(), branch.Else.End()})
		}
		return true
	})
}

// constant is a condition that is the same in every run.
func (p *Package) constant(e ast.Expr) (is, known bool) {
	e = ast.Unparen(e)
	if value := p.Info.Types[e].Value; value != nil && value.Kind() == constant.Bool {
		return constant.BoolVal(value), true
	}
	binary, ok := e.(*ast.BinaryExpr)
	if !ok || binary.Op != token.LAND && binary.Op != token.LOR {
		return false, false
	}
	// What decides: false for &&, true for ||.
	decides := binary.Op == token.LOR
	for _, operand := range []ast.Expr{binary.X, binary.Y} {
		if is, known := p.constant(operand); known && is == decides {
			return decides, true
		}
	}
	return false, false
}

// isDead reports whether a node is in a branch that never runs.
func (p *Package) isDead(n ast.Node) bool {
	for _, each := range p.dead {
		if each.from <= n.Pos() && n.Pos() < each.to {
			return true
		}
	}
	return false
}
