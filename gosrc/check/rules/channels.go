package rules

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// ownChannel is the field of a finalized object that holds a channel, and how many values fit into
// it; nil if others may have the channel, or no value fits.
func (s *blockSearch) ownChannel(e ast.Expr, own owned) (field *types.Var, room int64) {
	at, ok := s.p.path(e)
	if !ok || !s.finalizer || own[at.root] == nil || !at.inside || at.last() == nil {
		return nil, 0
	}
	room = s.p.room(at.last())
	if room == 0 {
		return nil, 0
	}
	return at.last(), room
}

// unlimited stands for a buffer whose size is no constant.
const unlimited = 1 << 32

// room is the number of values that fit into the channels that a package makes for a field; 0 if
// it gives such a channel to anything else, so that others may send too.
func (p *Package) room(field *types.Var) int64 {
	room := int64(unlimited)
	made := false
	give := func(value ast.Expr) {
		if p.isNil(value) {
			return // the channel is given up
		}
		made = true
		room = min(room, p.buffer(value))
	}
	for _, file := range p.Files {
		var above []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				above = above[:len(above)-1]
				return true
			}
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if selection := p.Info.Selections[n]; selection != nil && isField(selection.Obj(), field) {
					if value := p.assignedTo(n, above); value != nil {
						give(value)
					} else if !p.onlyUses(n, above[len(above)-1]) {
						room = 0
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && isField(p.Info.Uses[key], field) {
					give(n.Value)
				}
			case *ast.CompositeLit:
				if p.isUnkeyed(n, field) {
					room = 0
				}
			}
			above = append(above, n)
			return true
		})
	}
	if !made {
		return 0
	}
	return room
}

func isField(object types.Object, field *types.Var) bool {
	v, ok := object.(*types.Var)
	return ok && v.Origin() == field
}

// buffer is how many values fit into what make makes; 0 for any other expression.
func (p *Package) buffer(e ast.Expr) int64 {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return 0
	}
	if id, ok := call.Fun.(*ast.Ident); !ok || id.Name != "make" {
		return 0
	}
	value := p.Info.Types[call.Args[1]].Value
	if value == nil {
		return unlimited
	}
	size, _ := constant.Int64Val(value)
	return size
}

// assignedTo is what an assignment gives a selector; nil if it is no target of one.
func (p *Package) assignedTo(n *ast.SelectorExpr, above []ast.Node) ast.Expr {
	assign, ok := above[len(above)-1].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != len(assign.Rhs) {
		return nil
	}
	for i, to := range assign.Lhs {
		if to == ast.Expr(n) {
			return assign.Rhs[i]
		}
	}
	return nil
}

// onlyUses reports whether a channel is sent on, received from, closed, or measured, and not given
// to anything.
func (p *Package) onlyUses(n *ast.SelectorExpr, by ast.Node) bool {
	switch by := by.(type) {
	case *ast.SendStmt:
		return by.Chan == ast.Expr(n)
	case *ast.UnaryExpr:
		return by.Op == token.ARROW
	case *ast.RangeStmt:
		return by.X == ast.Expr(n)
	case *ast.BinaryExpr:
		return true // compared
	case *ast.CallExpr:
		id, ok := by.Fun.(*ast.Ident)
		return ok && isBuiltin(p, by) && (id.Name == "close" || id.Name == "len" || id.Name == "cap")
	}
	return false
}

func (p *Package) isUnkeyed(lit *ast.CompositeLit, field *types.Var) bool {
	structure, ok := underlying(p.Info.TypeOf(lit)).(*types.Struct)
	if !ok || len(lit.Elts) == 0 {
		return false
	}
	if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed {
		return false
	}
	for i := range structure.NumFields() {
		if structure.Field(i).Origin() == field {
			return true
		}
	}
	return false
}
