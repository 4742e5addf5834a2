// Package rules has analyzers for finalizers and cleanups: six rules, each of which finds code in
// which they harm or cost more than they need to.
//
// The rules read one package at a time, its syntax and the control flow of its functions, with
// what types there are. They see the functions of that package only.
package rules

import (
	"cmp"
	"go/token"
	"slices"
)

// Names are the rules, in the order in which they are explained.
var Names = []string{UseAfterFree, NeverRuns, ClosePays, ExpensiveSize, BlocksAll, NotTheObject}

// A Result is what the rules found in a package.
type Result struct {
	Findings  []Finding
	Unchecked []Unchecked
	// Passing are the functions that pass C a pointer which a finalizer or cleanup frees, and
	// Dying those of them with a finding of rule 1.
	Passing, Dying int
	// Closers are the closing methods, and Paying those with a finding of rule 3.
	Closers, Paying int
}

// Check applies the rules to a package.
func Check(p *Package) Result {
	var r Result
	report := func(f Finding) { r.Findings = append(r.Findings, f) }
	p.unchecked = nil
	r.Passing, r.Dying = p.useAfterFree(report)
	p.neverRuns(report)
	r.Closers, r.Paying = p.closePays(report)
	p.expensiveSize(report)
	p.blocksAll(report)
	p.notTheObject(report)
	p.untyped()
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return comparePlaces(a.Pos, b.Pos, a.Rule, b.Rule) })
	r.Unchecked = p.unchecked
	slices.SortStableFunc(r.Unchecked, func(a, b Unchecked) int { return comparePlaces(a.Pos, b.Pos, a.Rule, b.Rule) })
	return r
}

func comparePlaces(a, b token.Pos, ruleA, ruleB string) int {
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(ruleA, ruleB))
}

// untyped notes the registrations whose object or function is unknown, for rules 1 and 3.
func (p *Package) untyped() {
	for _, r := range p.Registrations {
		block, _ := p.target(r)
		switch {
		case r.Type == nil:
			p.notChecked(UseAfterFree, r.Call.Pos(), "the object's type is unknown")
			p.notChecked(ClosePays, r.Call.Pos(), "the object's type is unknown")
		case block == nil:
			p.notChecked(UseAfterFree, r.Call.Pos(), "the function that frees is not in this package")
			p.notChecked(ClosePays, r.Call.Pos(), "the function that frees is not in this package")
		case p.keptBy(r) != "":
			p.notChecked(UseAfterFree, r.Call.Pos(), "the object may be held: "+p.keptBy(r))
		}
	}
}
