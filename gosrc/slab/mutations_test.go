package slab_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var mutate = flag.Bool("mutations", false, "hold the tests against mistakes in the package")

// mutations are mistakes, each of which a test must find.
var mutations = []struct{ what, old, new string }{
	{"a closed handle can be used", "if state&closed != 0 {\n\t\t\treturn ErrClosed\n\t\t}\n\t\tif h.cell.state.CompareAndSwap(state, state+1)", "if h.cell.state.CompareAndSwap(state, state+1)"},
	{"a handle can be closed twice", "if state&closed != 0 {\n\t\t\treturn ErrClosed\n\t\t}\n\t\tif h.cell.state.CompareAndSwap(state, state|closed)", "if h.cell.state.CompareAndSwap(state, state|closed)"},
	{"the last use does not free", "h.cell.state.Add(^uint32(0)) == closed", "h.cell.state.Add(^uint32(0)) == closed+1"},
	{"a use does not end", "	defer h.used()\n", ""},
	{"a panic does not end a use", "	defer h.used()\n	return f(*(*P)(unsafe.Pointer(&h.cell.object)))", "	err := f(*(*P)(unsafe.Pointer(&h.cell.object)))\n	h.used()\n	return err"},
	{"what waits is not freed by itself", "time.AfterFunc(delay, c.tick)", "_ = c.tick"},
	{"Flush forgets the lanes", "range c.lanes {\n\t\tl := &c.lanes[i]", "range c.lanes[:0] {\n\t\tl := &c.lanes[i]"},
	{"slabs have no finalizer", "	runtime.SetFinalizer(&o.cells[0], c.died)\n", ""},
	{"the last cell of a slab is not freed", "unsafe.Slice(first, int(first.cells))", "unsafe.Slice(first, int(first.cells)-1)"},
	{"dead slabs have no bound", "waits := c.waiting+n <= c.most", "waits := true"},
	{"a collection is forced", "	runtime.Gosched()\n", "	runtime.GC()\n"},
	{"Close does not wait for uses", "\t\t\tif state != 0 {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\treturn h.core", "\t\t\treturn h.core"},
	{"a closed object is freed with its slab again", "object != 0 && cells[i].state.Load()&closed == 0", "object != 0"},
	{"a full lane is lost", "\tc.unshow(len(full))\n\tc.release(full)\n", "\tc.unshow(len(full))\n"},
	{"a full lane is freed twice", "\tif l.objects == nil {\n\t\tl.objects = full[:0]", "\tif l.objects == nil {\n\t\tl.objects = full[:1]"},
	{"the timer is not set again", "\tc.due.Store(0)\n", "\t_ = c.due\n"},
	{"ticks add up", "\tif c.ticks.Add(1) > 1 {\n\t\treturn\n\t}\n", "\tc.ticks.Add(1)\n"},
	{"what comes in a tick is not seen", "if c.ticks.Swap(0) > 1 || again {", "if c.ticks.Swap(0); again {"},
	{"a tick that Free ends is the last", "again := true //", "again := false //"},
	{"the timer of a bubble is waited for", "due > bubbles", "due > 0"},
	{"Flush frees one slab only", "\t\tfor s.core.freeOne() {\n\t\t}", "\t\ts.core.freeOne()"},
	{"a new slab frees one dead slab at most", "%extra == 0", "%extra == extra"},
	{"a new slab frees two dead slabs", "%extra == 0", "%extra != extra"},
	{"what waits is not counted off", "\tc.waiting -= int(first.cells)\n", ""},
	{"closed objects have no bound", "; c.keep > mostClosed {", "; true {"},
	{"bytes have no bound", "c.most = mostWaiting / c.bytes", "c.most = mostWaiting"},
	{"the error of Free is lost", "\t\tc.onError(err)\n\t}\n}\n\n// freeOne", "\t\t_ = err\n\t}\n}\n\n// freeOne"},
	{"objects of a Make that failed are lost", "\t\t\ts.core.release(dead)\n", "\t\t\t_ = dead\n"},
	{"Make may make too few", "if made < len(o.cells) {\n\t\treturn", "if false {\n\t\treturn"},
	{"room for Make is not cleared", "\t\to.fresh[i] = 0\n", "\t\t_ = i\n"},
	{"the collector sees nothing", "\ts.core.show(n)\n", ""},
	{"the collector sees little of large objects", "for ; unseen > 0; unseen -= mostShown {", "for ; unseen > 0; unseen = 0 {"},
	{"the collector sees what is closed", "\tc.unshow(len(full))\n", ""},
	{"an opening that is gone loses its slab", "\t\truntime.SetFinalizer(o, s.core.retire)\n", ""},
	{"Free is called under the lock", "\tc.mu.Unlock()\n\tc.freeSlab(first)\n\treturn true", "\tdefer c.mu.Unlock()\n\tc.freeSlab(first)\n\treturn true"},
	{"a nil pointer gets a handle", "\tif given == 0 {\n\t\treturn Handle[P]{}\n\t}\n", ""},
	{"any type is taken", "if unsafe.Sizeof(object) != word {", "if false {"},
	{"AtOnce is not", "\tif p.AtOnce {\n", "\tif false {\n"},
	{"pointers are tagged", "\tcell.object = given //", "\tcell.object = given &^ (1 << 63) //"},
}

// TestTestsFindMutations builds the package with each mistake, and runs the other tests.
func TestTestsFindMutations(t *testing.T) {
	if !*mutate {
		t.Skip("takes minutes: -mutations")
	}
	source, err := os.ReadFile("slab.go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if out, err := exec.Command("cp", "-r", ".", folder).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	run := func(text string) (string, error) {
		if err := os.WriteFile(filepath.Join(folder, "slab.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		// An example waits for what some mistakes lose.
		test := exec.Command("go", "test", "-run=^(Test|Fuzz)", "-short", "-failfast", "-timeout=60s", ".")
		test.Dir = folder
		out, err := test.CombinedOutput()
		return string(out), err
	}
	if out, err := run(string(source)); err != nil {
		t.Fatal("without a mistake: ", out)
	}
	for _, m := range mutations {
		if strings.Count(string(source), m.old) != 1 {
			t.Errorf("%s: slab.go has not one place for it", m.what)
			continue
		}
		text := strings.Replace(string(source), m.old, m.new, 1)
		out, err := run(text)
		switch {
		case err == nil:
			t.Errorf("%s: no test finds it", m.what)
		case strings.Contains(out, "[build failed]"):
			t.Errorf("%s: it does not build: %s", m.what, out)
		default:
			t.Logf("%s: %s", m.what, firstFailure(out))
		}
	}
}

func firstFailure(out string) string {
	for _, line := range strings.Split(out, "\n") {
		for _, word := range []string{"--- FAIL: ", "fatal error: ", "panic: "} {
			if strings.HasPrefix(line, word) {
				return line
			}
		}
	}
	return strings.TrimSpace(out)
}
