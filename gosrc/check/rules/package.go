package rules

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
	"sync"

	"golang.org/x/tools/go/cfg"
)

// A Package is what the rules read of one package: its syntax, and its types as far as they are
// known. Without C's headers the types of C are those that [CTypes] makes up.
type Package struct {
	Fset  *token.FileSet
	Files []*ast.File
	Info  *types.Info
	Types *types.Package
	Sizes types.Sizes
	// Compiled is the same package with the real types of C, or nil.
	Compiled *types.Package
	// Release is the Go release that the module names, such as "1.25"; empty if it names none.
	Release string
	// Prices is what registering costs by size; nil if it is not known.
	Prices *Prices

	Registrations []*Registration

	mutex     sync.Mutex
	functions map[types.Object]*ast.FuncDecl
	bodies    []*body
	graphs    map[*ast.BlockStmt]*cfg.CFG
	clears    []clear
	freeing   map[*types.TypeName][]action
	calls     map[types.Object][]site
	mentioned map[types.Object]int
	dead      []span
	kept      map[*Registration]string
	unchecked []Unchecked
	// stopsLater reports whether the package keeps the Stop of a cleanup as a value.
	stopsLater bool
}

// A Registration is a call of runtime.SetFinalizer or runtime.AddCleanup.
type Registration struct {
	Call   *ast.CallExpr
	API    string     // "SetFinalizer" or "AddCleanup"
	Object ast.Expr   // the pointer to the object
	Type   types.Type // of the object; nil if it is unknown
	Func   ast.Expr   // the finalizer, or the cleanup function
	Arg    ast.Expr   // the cleanup's argument; nil for a finalizer
	in     *body
}

// A clear is a call that clears a finalizer or stops a cleanup.
type clear struct {
	call *ast.CallExpr
	of   *types.TypeName // the object's type; nil for a cleanup
	v    *types.Var      // the variable that is cleared, if it is one
	in   *body
}

// A body is that of a function: a declaration's or a literal's.
type body struct {
	decl  *ast.FuncDecl // the declaration that it is in; nil outside of any
	lit   *ast.FuncLit  // nil for a declaration's own body
	block *ast.BlockStmt
}

// A site is a call of one of the package's functions.
type site struct {
	call *ast.CallExpr
	in   *body
}

// A Finding is what a rule reports.
type Finding struct {
	Rule   string
	Pos    token.Pos
	What   string // what happens, and from which release on
	Do     string // what to do
	API    string // what is registered
	Object string // the object's type
	Size   int64  // of the object in bytes; -1 if it is unknown
}

// An Unchecked is a place where a rule could not be checked.
type Unchecked struct {
	Rule string
	Pos  token.Pos
	Why  string
}

// New reads a package's registrations.
func New(fset *token.FileSet, files []*ast.File, info *types.Info, pkg *types.Package, sizes types.Sizes) *Package {
	p := &Package{
		Fset: fset, Files: files, Info: info, Types: pkg, Sizes: sizes,
		functions: map[types.Object]*ast.FuncDecl{},
		graphs:    map[*ast.BlockStmt]*cfg.CFG{},
		freeing:   map[*types.TypeName][]action{},
		calls:     map[types.Object][]site{},
		mentioned: map[types.Object]int{},
		kept:      map[*Registration]string{},
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			p.declare(decl)
		}
		p.deadBranches(file)
	}
	for _, in := range p.bodies {
		p.read(in)
	}
	for _, object := range info.Uses {
		if function, ok := object.(*types.Func); ok {
			p.mentioned[function.Origin()]++
		}
	}
	return p
}

func (p *Package) declare(decl ast.Decl) {
	function, ok := decl.(*ast.FuncDecl)
	if !ok {
		p.literals(nil, decl)
		return
	}
	if function.Body == nil {
		return
	}
	if object := p.Info.Defs[function.Name]; object != nil {
		p.functions[object] = function
	}
	p.bodies = append(p.bodies, &body{decl: function, block: function.Body})
	p.literals(function, function.Body)
}

func (p *Package) literals(decl *ast.FuncDecl, root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok {
			p.bodies = append(p.bodies, &body{decl: decl, lit: lit, block: lit.Body})
		}
		return true
	})
}

// read finds what a body itself calls, without the literals in it.
func (p *Package) read(in *body) {
	stops := 0 // that are not called
	ownNodes(in.block, func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if p.isDead(n) {
			return
		}
		if !ok {
			if selector, ok := n.(*ast.SelectorExpr); ok && p.isStop(selector) && p.isMethodValue(selector) {
				stops++
			}
			return
		}
		if function := p.callee(call); function != nil {
			p.calls[function] = append(p.calls[function], site{call, in})
		}
		switch {
		case p.isCall(call, "runtime", "SetFinalizer") && len(call.Args) == 2:
			if p.isNil(call.Args[1]) {
				p.clears = append(p.clears, clear{call, p.named(p.pointee(call.Args[0])), p.rootVar(call.Args[0]), in})
				return
			}
			p.register(in, call, "SetFinalizer", nil)
		case p.isCall(call, "runtime", "AddCleanup") && len(call.Args) == 3:
			p.register(in, call, "AddCleanup", call.Args[2])
		case p.isStop(call.Fun):
			p.clears = append(p.clears, clear{call: call, in: in})
			stops--
		}
	})
	p.stopsLater = p.stopsLater || stops > 0
}

func (p *Package) register(in *body, call *ast.CallExpr, api string, arg ast.Expr) {
	p.Registrations = append(p.Registrations, &Registration{
		Call: call, API: api, Object: call.Args[0], Type: p.pointee(call.Args[0]),
		Func: call.Args[1], Arg: arg, in: in,
	})
}

// ownNodes visits the nodes of a body, but not those of the function literals in it.
func ownNodes(root ast.Node, visit func(ast.Node)) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if lit, ok := n.(*ast.FuncLit); ok && ast.Node(lit) != root {
			visit(n)
			return false
		}
		visit(n)
		return true
	})
}

// graph is the control flow of a body.
func (p *Package) graph(in *body) *cfg.CFG {
	if made := p.graphs[in.block]; made != nil {
		return made
	}
	made := cfg.New(in.block, p.mayReturn)
	p.graphs[in.block] = made
	return made
}

func (p *Package) mayReturn(call *ast.CallExpr) bool {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && id.Name == "panic" {
		return false
	}
	return !p.isCall(call, "os", "Exit") && !p.isCall(call, "runtime", "Goexit") && !p.isFatal(call)
}

func (p *Package) isFatal(call *ast.CallExpr) bool {
	function := p.function(call)
	return function != nil && packagePath(function) == "log" && strings.HasPrefix(function.Name(), "Fatal")
}

// --- Calls ----------------------------------------------------------------

// function is the function or method that a call names, wherever it is declared; nil if unknown.
func (p *Package) function(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch indexed := fun.(type) {
	case *ast.IndexExpr:
		fun = ast.Unparen(indexed.X)
	case *ast.IndexListExpr:
		fun = ast.Unparen(indexed.X)
	}
	return p.functionOf(fun)
}

func (p *Package) functionOf(fun ast.Expr) *types.Func {
	var id *ast.Ident
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	function, ok := p.Info.Uses[id].(*types.Func)
	if !ok {
		return nil
	}
	return function.Origin()
}

// callee is the function that a call names if the package declares it, else nil.
func (p *Package) callee(call *ast.CallExpr) types.Object {
	function := p.function(call)
	if function == nil || p.functions[function] == nil {
		return nil
	}
	return function
}

// isCall reports whether a call is of a package's function.
func (p *Package) isCall(call *ast.CallExpr, path string, names ...string) bool {
	function := p.function(call)
	if function == nil || packagePath(function) != path {
		return false
	}
	if function.Signature().Recv() != nil {
		return false
	}
	for _, name := range names {
		if function.Name() == name {
			return true
		}
	}
	return false
}

func packagePath(function *types.Func) string {
	if function.Pkg() == nil {
		return ""
	}
	return function.Pkg().Path()
}

func (p *Package) isStop(fun ast.Expr) bool {
	selector, ok := ast.Unparen(fun).(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Stop" {
		return false
	}
	name := p.named(p.Info.TypeOf(selector.X))
	return name != nil && name.Name() == "Cleanup" && name.Pkg() != nil && name.Pkg().Path() == "runtime"
}

// isConversion reports whether a call converts its one argument.
func (p *Package) isConversion(call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	if known, ok := p.Info.Types[ast.Unparen(call.Fun)]; ok && known.IsType() {
		return true
	}
	name := p.cName(call)
	return name != "" && isCType(name)
}

// helpers of cgo that are Go code.
var helpers = map[string]bool{
	"CString": true, "CBytes": true, "GoString": true, "GoStringN": true, "GoBytes": true,
}

// cCall is the name of the C function that is called; empty if it is none.
func (p *Package) cCall(call *ast.CallExpr) string {
	name := p.cName(call)
	if name == "" || helpers[name] || p.isConversion(call) {
		return ""
	}
	return name
}

// cReader is the name of the C function that is called, or of the helper that reads C's memory.
func (p *Package) cReader(call *ast.CallExpr) string {
	switch name := p.cName(call); name {
	case "GoString", "GoStringN", "GoBytes":
		return name
	}
	return p.cCall(call)
}

func (p *Package) cName(call *ast.CallExpr) string {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	id, ok := selector.X.(*ast.Ident)
	if !ok || id.Name != "C" {
		return ""
	}
	if object := p.Info.Uses[id]; object != nil {
		if imported, ok := object.(*types.PkgName); !ok || imported.Imported().Path() != "C" {
			return ""
		}
	}
	return selector.Sel.Name
}

func (p *Package) isNil(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok || id.Name != "nil" {
		return false
	}
	object := p.Info.Uses[id]
	return object == nil || object == types.Universe.Lookup("nil")
}

// --- Variables and paths --------------------------------------------------

// variable is the variable that an expression names, without conversions; nil if it names none.
func (p *Package) variable(e ast.Expr) *types.Var {
	id, ok := p.unconverted(e).(*ast.Ident)
	if !ok {
		return nil
	}
	return p.identVar(id)
}

func (p *Package) identVar(id *ast.Ident) *types.Var {
	if v, ok := p.Info.Uses[id].(*types.Var); ok {
		return v
	}
	v, _ := p.Info.Defs[id].(*types.Var)
	return v
}

// unconverted is an expression without its parentheses and conversions.
func (p *Package) unconverted(e ast.Expr) ast.Expr {
	for {
		e = ast.Unparen(e)
		call, ok := e.(*ast.CallExpr)
		if !ok || !p.isConversion(call) {
			return e
		}
		e = call.Args[0]
	}
}

// A path is a variable and the fields that lead from it.
type path struct {
	root   *types.Var
	call   *ast.CallExpr // instead of a root: what made the object
	fields []*types.Var
	// inside reports whether the path stays in the object that the root points to.
	inside bool
}

func (t path) last() *types.Var {
	if len(t.fields) == 0 {
		return nil
	}
	return t.fields[len(t.fields)-1]
}

// path follows an expression to the variable it begins with; ok is false if there is none.
func (p *Package) path(e ast.Expr) (found path, ok bool) {
	switch e := p.unconverted(e).(type) {
	case *ast.Ident:
		v := p.identVar(e)
		return path{root: v, inside: true}, v != nil
	case *ast.StarExpr:
		return p.path(e.X)
	case *ast.CallExpr:
		return path{call: e, inside: true}, true
	case *ast.SelectorExpr:
		selection := p.Info.Selections[e]
		if selection == nil || selection.Kind() != types.FieldVal {
			return path{}, false
		}
		found, ok = p.path(e.X)
		if !ok {
			return path{}, false
		}
		found.follow(selection)
		return found, true
	}
	return path{}, false
}

// follow adds the fields of a selection, with those of embedded structs.
func (t *path) follow(selection *types.Selection) {
	at := selection.Recv()
	for _, index := range selection.Index() {
		if pointer, ok := at.Underlying().(*types.Pointer); ok {
			t.inside = t.inside && len(t.fields) == 0
			at = pointer.Elem()
		}
		structure, ok := at.Underlying().(*types.Struct)
		if !ok || index >= structure.NumFields() {
			return
		}
		field := structure.Field(index)
		t.fields = append(t.fields, field.Origin())
		at = field.Type()
	}
}

// rootVar is the variable that a pointer expression begins with, such as x of &x.f and of x.
func (p *Package) rootVar(e ast.Expr) *types.Var {
	e = p.unconverted(e)
	if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
		e = ast.Unparen(address.X)
	}
	for {
		index, ok := e.(*ast.IndexExpr)
		if !ok {
			break
		}
		e = ast.Unparen(index.X)
	}
	found, ok := p.path(e)
	if !ok {
		return nil
	}
	return found.root
}

// holds reports whether the value of an expression keeps alive the object that v points to: it is
// v itself, or an address in the object.
func (p *Package) holds(e ast.Expr, v *types.Var) bool {
	e = p.unconverted(e)
	switch e := e.(type) {
	case *ast.Ident:
		return p.identVar(e) == v
	case *ast.UnaryExpr:
		return e.Op == token.AND && p.addresses(e.X, v)
	case *ast.SliceExpr:
		if _, isArray := underlying(p.Info.TypeOf(e.X)).(*types.Array); isArray {
			return p.addresses(e.X, v)
		}
	}
	return false
}

// addresses reports whether the address of an expression is in the object that v points to.
func (p *Package) addresses(e ast.Expr, v *types.Var) bool {
	e = ast.Unparen(e)
	if index, ok := e.(*ast.IndexExpr); ok {
		if _, isArray := underlying(p.Info.TypeOf(index.X)).(*types.Array); !isArray {
			return false
		}
		e = index.X
	}
	found, ok := p.path(e)
	return ok && found.root == v && found.inside
}

// receiverHolds reports whether calling a method keeps the object of v alive: the method has a
// pointer receiver, and that is v or an address in its object.
func (p *Package) receiverHolds(call *ast.CallExpr, v *types.Var) bool {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	selection := p.Info.Selections[selector]
	if selection == nil || selection.Kind() != types.MethodVal {
		return false
	}
	method, ok := selection.Obj().(*types.Func)
	if !ok || !isPointer(method.Signature().Recv().Type()) {
		return false
	}
	at, ok := p.path(selector.X)
	if !ok || at.root != v {
		return false
	}
	through := selection.Index()[:len(selection.Index())-1]
	receiver := selection.Recv()
	whole := at
	for _, index := range through { // promoted from embedded structs
		if pointer, ok := receiver.Underlying().(*types.Pointer); ok {
			whole.inside = whole.inside && len(whole.fields) == 0
			receiver = pointer.Elem()
		}
		structure, ok := receiver.Underlying().(*types.Struct)
		if !ok {
			return false
		}
		whole.fields = append(whole.fields, structure.Field(index))
		receiver = structure.Field(index).Type()
	}
	// A pointer in the object leads to another one.
	return whole.inside && (len(whole.fields) == 0 || !isPointer(receiver))
}

func isPointer(t types.Type) bool {
	_, ok := underlying(t).(*types.Pointer)
	return ok
}

func underlying(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

// mentions reports whether a node names a variable.
func (p *Package) mentions(n ast.Node, v *types.Var) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && p.Info.Uses[id] == types.Object(v) {
			found = true
		}
		return !found
	})
	return found
}

// --- Types ----------------------------------------------------------------

// pointee is the type that an expression points to; nil if it is unknown.
func (p *Package) pointee(e ast.Expr) types.Type {
	pointer, ok := underlying(p.Info.TypeOf(e)).(*types.Pointer)
	if !ok || !isKnown(pointer.Elem()) {
		return nil
	}
	return pointer.Elem()
}

func isKnown(t types.Type) bool {
	basic, ok := underlying(t).(*types.Basic)
	return t != nil && (!ok || basic.Kind() != types.Invalid)
}

// named is the name of a type, or of what it points to; nil if it has none.
func (p *Package) named(t types.Type) *types.TypeName {
	if t == nil {
		return nil
	}
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = types.Unalias(pointer.Elem())
	}
	if named, ok := t.(*types.Named); ok {
		return named.Origin().Obj()
	}
	return nil
}

// TypeName is the name of a registration's object as its package writes it.
func (p *Package) TypeName(t types.Type) string {
	if t == nil {
		return "an unknown type"
	}
	return types.TypeString(t, func(other *types.Package) string {
		if other == p.Types {
			return ""
		}
		return other.Name()
	})
}

func (p *Package) finding(rule string, r *Registration, pos token.Pos, what, do string) Finding {
	size, _ := p.SizeOf(r.Type)
	return Finding{rule, pos, what, do, r.API, p.TypeName(r.Type), size}
}

func (p *Package) notChecked(rule string, pos token.Pos, why string) {
	p.unchecked = append(p.unchecked, Unchecked{rule, pos, why})
}
