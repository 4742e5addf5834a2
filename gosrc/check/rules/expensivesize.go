package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/types"
	"os"
	"slices"
	"strconv"
)

// ExpensiveSize is rule 4: registering on an object of a size class under 64 bytes costs over 1.5
// times what it costs on one of 64 bytes.
const ExpensiveSize = "expensive-size"

const (
	baselineSize = 64  // bytes
	tooExpensive = 1.5 // times the price of the baseline
)

// Prices are what an object's finalizer or cleanup costs, by the object's size.
type Prices struct {
	// Nanoseconds has them by "SetFinalizer" or "AddCleanup", then by size class in bytes.
	Nanoseconds map[string]map[string]float64 `json:"nanoseconds"`
}

// ReadPrices reads the file that `gccost check` writes.
func ReadPrices(name string) (*Prices, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	prices := new(Prices)
	if err := json.Unmarshal(text, prices); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return prices, nil
}

// Of is the price of a size class. A class that was not measured has that of the next larger one,
// which is the cheaper one of its neighbours.
func (prices *Prices) Of(api string, class int64) (float64, bool) {
	best, price := int64(-1), 0.0
	for text, each := range prices.Nanoseconds[api] {
		size, err := strconv.ParseInt(text, 10, 64)
		if err == nil && size >= class && (best < 0 || size < best) {
			best, price = size, each
		}
	}
	return price, best >= 0
}

func (p *Package) expensiveSize(report func(Finding)) {
	for _, r := range p.Registrations {
		if p.Prices == nil {
			p.notChecked(ExpensiveSize, r.Call.Pos(), "there are no prices: name a file with -prices, or use gccost check")
			continue
		}
		if what, _ := p.refused(r); what != "" {
			continue // nothing is registered
		}
		for _, each := range p.instances(r) {
			p.expensive(each, report)
		}
	}
}

// instances are a registration for each type that the package gives a generic function which
// registers on an object of a type parameter; else the registration itself.
func (p *Package) instances(r *Registration) []*Registration {
	param, ok := types.Unalias(r.Type).(*types.TypeParam)
	if !ok || r.in.decl == nil {
		return []*Registration{r}
	}
	var found []*Registration
	function := p.Info.Defs[r.in.decl.Name]
	for id, instance := range p.Info.Instances {
		used, ok := p.Info.Uses[id].(*types.Func)
		if !ok || used.Origin() != function {
			continue
		}
		each := *r
		each.Type = instance.TypeArgs.At(param.Index())
		same := func(other *Registration) bool { return types.Identical(other.Type, each.Type) }
		if !slices.ContainsFunc(found, same) {
			found = append(found, &each)
		}
	}
	if len(found) == 0 {
		return []*Registration{r}
	}
	byName := func(a, b *Registration) int { return cmp.Compare(p.TypeName(a.Type), p.TypeName(b.Type)) }
	slices.SortFunc(found, byName)
	return found
}

func (p *Package) expensive(r *Registration, report func(Finding)) {
	// Small objects without a pointer share blocks of 16 bytes, so a span has at least as many.
	size, _ := p.SizeOf(r.Type)
	if size < 0 {
		p.notChecked(ExpensiveSize, r.Call.Pos(), "the size of "+p.TypeName(r.Type)+" is unknown")
		return
	}
	own, known := p.Prices.Of(r.API, Class(size))
	baseline, measured := p.Prices.Of(r.API, baselineSize)
	if !known || !measured || Class(size) >= baselineSize || own <= tooExpensive*baseline {
		return
	}
	what := fmt.Sprintf("expensive size: %d bytes cost %.0f ns an object, %d bytes %.0f ns",
		Class(size), own, baselineSize, baseline)
	do := fmt.Sprintf("pad the object to %d bytes: a field `_ [%d]byte`", baselineSize, baselineSize-size)
	report(p.finding(ExpensiveSize, r, r.Call.Pos(), what, do))
}
