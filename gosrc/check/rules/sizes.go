package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// cSizes are the sizes in bytes of C's arithmetic types on 64-bit Unix, and their kinds in Go.
var cSizes = map[string]types.BasicKind{
	"char": types.Int8, "schar": types.Int8, "uchar": types.Uint8, "_Bool": types.Bool, "bool": types.Bool,
	"short": types.Int16, "ushort": types.Uint16, "int": types.Int32, "uint": types.Uint32,
	"long": types.Int64, "ulong": types.Uint64, "longlong": types.Int64, "ulonglong": types.Uint64,
	"float": types.Float32, "double": types.Float64,
	"int8_t": types.Int8, "uint8_t": types.Uint8, "int16_t": types.Int16, "uint16_t": types.Uint16,
	"int32_t": types.Int32, "uint32_t": types.Uint32, "int64_t": types.Int64, "uint64_t": types.Uint64,
	"size_t": types.Uint64, "ssize_t": types.Int64, "intptr_t": types.Int64, "uintptr_t": types.Uintptr,
	"off_t": types.Int64, "time_t": types.Int64, "ptrdiff_t": types.Int64,
}

func isCType(name string) bool {
	_, known := cSizes[name]
	return known || strings.HasPrefix(name, "struct_") || strings.HasPrefix(name, "enum_") ||
		strings.HasPrefix(name, "union_") || strings.HasSuffix(name, "_t") || name == "gpointer"
}

// CTypes makes up a package C with the types that files name, so that what points to them has a
// type. One whose size is unknown without C's headers has the field "_unknown".
func CTypes(files []*ast.File) *types.Package {
	c := types.NewPackage("C", "C")
	for _, file := range files {
		for _, name := range typesNamed(file) {
			if c.Scope().Lookup(name) == nil {
				declareCType(c, name)
			}
		}
	}
	c.MarkComplete()
	return c
}

func declareCType(c *types.Package, name string) {
	object := types.NewTypeName(token.NoPos, c, name, nil)
	var is types.Type
	kind, known := cSizes[name]
	switch {
	case known:
		is = types.Typ[kind]
	case strings.HasPrefix(name, "enum_"):
		is = types.Typ[types.Uint32]
	default:
		unknown := types.NewField(token.NoPos, c, "_unknown", types.Typ[types.Int8], false)
		is = types.NewStruct([]*types.Var{unknown}, nil)
	}
	types.NewNamed(object, is, nil)
	c.Scope().Insert(object)
}

// typesNamed are the names of C that a file uses as types.
func typesNamed(file *ast.File) []string {
	var names []string
	add := func(e ast.Expr) {
		for {
			switch inner := e.(type) {
			case *ast.StarExpr:
				e = inner.X
				continue
			case *ast.ParenExpr:
				e = inner.X
				continue
			case *ast.Ellipsis:
				e = inner.Elt
				continue
			case *ast.SelectorExpr:
				if id, ok := inner.X.(*ast.Ident); ok && id.Name == "C" {
					names = append(names, inner.Sel.Name)
				}
			}
			return
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			add(n.Type)
		case *ast.ValueSpec:
			add(n.Type)
		case *ast.TypeSpec:
			add(n.Type)
		case *ast.ArrayType:
			add(n.Elt)
		case *ast.MapType:
			add(n.Key)
			add(n.Value)
		case *ast.ChanType:
			add(n.Value)
		case *ast.CompositeLit:
			add(n.Type)
		case *ast.TypeAssertExpr:
			add(n.Type)
		case *ast.StarExpr:
			add(n.X)
		case *ast.IndexExpr:
			add(n.Index)
		case *ast.CallExpr:
			addCalled(n, add)
		}
		return true
	})
	return names
}

// addCalled adds the type of new(C.t), and that of a conversion to a type that is known.
func addCalled(call *ast.CallExpr, add func(ast.Expr)) {
	if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "new" || id.Name == "make") && len(call.Args) > 0 {
		add(call.Args[0])
	}
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok && isCType(selector.Sel.Name) {
		add(call.Fun)
	}
}

// SizeOf is the size of a type in bytes, and whether it holds no pointer; -1 if it is unknown.
func (p *Package) SizeOf(t types.Type) (bytes int64, pointerFree bool) {
	if t == nil {
		return -1, false
	}
	t = types.Default(t) // of a constant
	if real := p.compiled(t); real != nil {
		t = real
	}
	pointerFree, known := layout(t, map[types.Type]bool{})
	if !known {
		return -1, false
	}
	return p.Sizes.Sizeof(t), pointerFree
}

// compiled is the package's own type with the real types of C in it; nil if there is none.
func (p *Package) compiled(t types.Type) types.Type {
	name := p.named(t)
	if p.Compiled == nil || name == nil || name.Pkg() != p.Types {
		return nil
	}
	real, ok := p.Compiled.Scope().Lookup(name.Name()).(*types.TypeName)
	if !ok {
		return nil
	}
	if named, ok := real.Type().(*types.Named); ok && named.TypeParams() != nil {
		return nil
	}
	return real.Type()
}

// layout reports whether a type holds no pointer, and whether its size is known.
func layout(t types.Type, seen map[types.Type]bool) (pointerFree, known bool) {
	if seen[t] {
		return false, true
	}
	seen[t] = true
	if _, ok := types.Unalias(t).(*types.TypeParam); ok {
		return false, false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		holds := u.Kind() == types.String || u.Kind() == types.UnsafePointer
		return !holds, u.Kind() != types.Invalid && u.Kind() != types.UntypedNil
	case *types.Array:
		return layout(u.Elem(), seen)
	case *types.Struct:
		pointerFree, known = true, true
		for i := range u.NumFields() {
			if u.Field(i).Name() == "_unknown" {
				return false, false
			}
			free, sized := layout(u.Field(i).Type(), map[types.Type]bool{t: true})
			pointerFree, known = pointerFree && free, known && sized
		}
		return pointerFree, known
	case *types.Pointer:
		return isIncomplete(u.Elem()), true
	}
	return false, true
}

// isIncomplete reports whether a type is one of C's of which the headers have the name only, such as
// `struct sqlite3;`. A pointer to it is none for Go's collector, nor for its allocator: cgo makes the
// type a runtime/cgo.Incomplete, whose field marks what is not in Go's heap.
func isIncomplete(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok || s.NumFields() != 1 {
		return false
	}
	mark, ok := types.Unalias(s.Field(0).Type()).(*types.Named)
	return ok && mark.Obj().Name() == "NotInHeap" && mark.Obj().Pkg() != nil &&
		strings.HasSuffix(mark.Obj().Pkg().Path(), "/sys")
}

// classes are the sizes in bytes to which Go's allocator rounds small objects; see the runtime's
// sizeclasses.go.
var classes = []int64{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
	288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024,
}

// Class is the size class of an object of so many bytes: what it takes of the heap.
func Class(bytes int64) int64 {
	for _, class := range classes {
		if bytes <= class {
			return class
		}
	}
	return bytes
}
