package wasm

import (
	"syscall/js"
	"testing"
)

// A tree like a page's: a root, lists, and items, each with a tag and a width.
const (
	lists = 30
	items = 30
	nodes = 1 + lists + lists*items
)

var (
	page = js.Global().Call("eval", `(lists, items) => {
		const node = (tag, children) => ({tag, children, width: children.length + 1})
		const many = (n, make) => Array.from({length: n}, make)
		const item = () => node("li", [])
		return node("body", many(lists, () => node("ul", many(items, item))))
	}`)
	// Gives JavaScript's objects numbers, by which Go names them: a function that returns the
	// number of a node's first child (its children follow), its number of children, and its
	// width.
	numbered = js.Global().Call("eval", `(root) => {
		const all = [root]
		const first = []
		for (let i = 0; i < all.length; i++) {
			first.push(all.length)
			all.push(...all[i].children)
		}
		return {
			first: (i) => first[i],
			count: (i) => all[i].children.length,
			width: (i) => all[i].width,
		}
	}`)
	// The sum of the widths, found in JavaScript.
	summed = js.Global().Call("eval", `(root) => {
		const sum = (node) => node.children.reduce((all, child) => all + sum(child), node.width)
		return sum(root)
	}`)
	root = page.Invoke(lists, items)
)

// want is the sum of the widths of all nodes.
const want = (lists + 1) + lists*(items+1) + lists*items

var process = js.Global().Get("process")

// spent returns the CPU time of the process so far, in ns.
func spent() float64 {
	used := process.Call("cpuUsage")
	return 1000 * (used.Get("user").Float() + used.Get("system").Float())
}

// timed calls operation b.N times, or as often as is needed if a call counts for several.
func timed(b *testing.B, operations int, operation func(i int)) {
	before := spent()
	b.ResetTimer()
	for i := 0; i < b.N; i += operations {
		operation(i)
	}
	b.StopTimer()
	b.ReportMetric((spent()-before)/float64(b.N), "cpu-ns/op")
}

// get reads a property of one object b.N times.
func get(b *testing.B, property string) {
	timed(b, 1, func(int) { root.Get(property) })
}

// BenchmarkWasmObject times Get of an object.
func BenchmarkWasmObject(b *testing.B) { get(b, "children") }

// BenchmarkWasmString times Get of a string.
func BenchmarkWasmString(b *testing.B) { get(b, "tag") }

// BenchmarkWasmNumber times Get of a number, which needs no finalizer.
func BenchmarkWasmNumber(b *testing.B) { get(b, "width") }

// keeping is the number of live values of BenchmarkWasmKept.
const keeping = 100_000

// BenchmarkWasmKept times Get of an object, with the last 100,000 objects live.
func BenchmarkWasmKept(b *testing.B) {
	kept := make([]js.Value, keeping)
	for i := 0; b.N > 1 && i < keeping; i++ {
		kept[i] = root.Get("children")
	}
	timed(b, 1, func(i int) { kept[i%keeping] = root.Get("children") })
}

// walked times a walk through the tree per node: it walks often enough for b.N nodes.
func walked(b *testing.B, walk func() int) {
	timed(b, nodes, func(int) {
		if got := walk(); got != want {
			b.Fatalf("the widths add up to %d, not %d", got, want)
		}
	})
}

// visit returns the sum of the widths of a node and those below it. It calls keep with each.
func visit(node js.Value, keep func(js.Value)) int {
	keep(node)
	sum := node.Get("width").Int()
	children := node.Get("children")
	for i, n := 0, children.Length(); i < n; i++ {
		sum += visit(children.Index(i), keep)
	}
	return sum
}

// BenchmarkWasmTree walks the tree from Go.
func BenchmarkWasmTree(b *testing.B) {
	walked(b, func() int { return visit(root, func(js.Value) {}) })
}

// BenchmarkWasmTreeKept walks the tree from Go. A hundred walks' values are live.
func BenchmarkWasmTreeKept(b *testing.B) {
	kept := make([]js.Value, 100*nodes)
	at := 0
	walked(b, func() int {
		return visit(root, func(node js.Value) {
			kept[at%len(kept)] = node
			at++
		})
	})
}

// BenchmarkWasmTreeNumbers walks the tree from Go, which names nodes by numbers.
func BenchmarkWasmTreeNumbers(b *testing.B) {
	tree := numbered.Invoke(root)
	first, count, width := tree.Get("first"), tree.Get("count"), tree.Get("width")
	var visit func(node int) int
	visit = func(node int) int {
		sum := width.Invoke(node).Int()
		n := count.Invoke(node).Int()
		for child, i := first.Invoke(node).Int(), 0; i < n; i++ {
			sum += visit(child + i)
		}
		return sum
	}
	walked(b, func() int { return visit(0) })
}

// BenchmarkWasmTreeInside walks the tree in JavaScript, and returns the result to Go.
func BenchmarkWasmTreeInside(b *testing.B) {
	walked(b, func() int { return summed.Invoke(root).Int() })
}
