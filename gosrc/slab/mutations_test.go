package slab_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var mutate = flag.Bool("mutations", false, "test that each mutation of the package fails a test")

// mutations are deliberate bugs. Each must make a test fail.
var mutations = []struct{ what, old, new string }{
	{"a closed handle can be used", "if state&closed != 0 {\n\t\t\treturn false\n\t\t}\n\t\tif h.cell.state.CompareAndSwap(state, state+1)", "if h.cell.state.CompareAndSwap(state, state+1)"},
	{"a handle can be closed twice", "if state&closed != 0 {\n\t\t\treturn ErrClosed\n\t\t}\n\t\tif h.cell.state.CompareAndSwap(state, state|closed)", "if h.cell.state.CompareAndSwap(state, state|closed)"},
	{"the last use of a closed handle does not free", "h.cell.state.Add(^uint32(0)) == closed", "h.cell.state.Add(^uint32(0)) == closed+1"},
	{"a use does not end", "	defer h.used()\n\treturn f(h.object())\n}\n\n// Use is", "\treturn f(h.object())\n}\n\n// Use is"},
	{"a use with a result does not end", "	defer h.used()\n\treturn f(h.object())\n}\n\nfunc", "\treturn f(h.object())\n}\n\nfunc"},
	{"a panic does not end a use", "	defer h.used()\n	return f(h.object())\n}\n\n// Use is", "	err := f(h.object())\n	h.used()\n	return err\n}\n\n// Use is"},
	{"a panic does not end a use with a result", "	defer h.used()\n	return f(h.object())\n}\n\nfunc", "	result, err = f(h.object())\n	h.used()\n	return result, err\n}\n\nfunc"},
	{"the timer does not free waiting objects", "time.AfterFunc(delay, c.tick)", "_ = c.tick"},
	{"Flush skips the lanes", "range c.lanes {\n\t\tl := &c.lanes[i]\n\t\tl.mu.Lock()\n\t\tdead", "range c.lanes[:0] {\n\t\tl := &c.lanes[i]\n\t\tl.mu.Lock()\n\t\tdead"},
	{"slabs have no finalizer", "	runtime.SetFinalizer(&o.cells[0], c.died)\n", ""},
	{"the last cell of a slab is not freed", "unsafe.Slice(first, int(first.cells))", "unsafe.Slice(first, int(first.cells)-1)"},
	{"new slabs do not free more if too much waits", "c.waiting > c.most", "false"},
	{"finalizers call Free", "\tc.mu.Unlock()\n\tc.arm()\n}\n\n// enter", "\tc.mu.Unlock()\n\tc.freeOne()\n\tc.arm()\n}\n\n// enter"},
	{"ticks leave every backlog to calls", "n > 16*int(c.busy.Swap(0))", "c.busy.Swap(0) == 0 && n > 0"},
	{"ticks leave no slabs to calls", "n > 16*int(c.busy.Swap(0))", "c.busy.Swap(0) >= 0"},
	{"calls do not count what they free", "\t\tc.busy.Add(1)\n", ""},
	{"a tick always schedules another", "again = c.slabs() > 0", "again = true"},
	{"a serial pool takes no turns", "serial: p.Serial,", "serial: false,"},
	{"Make takes no turn", "\ts.core.enter(true)\n\tdefer s.core.leave()\n", ""},
	{"Close of an AtOnce pool takes no turn", "\t\tc.enter(true)\n\t\tdefer c.leave()\n", ""},
	{"a full lane takes no turn", " && c.enter(false) {\n\t\tfull, l", " {\n\t\tfull, l"},
	{"a call waits for the turn", "\tif !wait {\n", "\tif false {\n"},
	{"a turn does not end", "\tif c.serial {\n\t\tc.turn.Unlock()\n\t}\n", ""},
	{"Flush skips the slabs being handed out", "\t\t\topen = append(open, o)\n", "\t\t\t_ = o\n"},
	{"Flush skips the slabs of Get", "range []*sync.Pool{&s.adopting, &s.making}", "range []*sync.Pool{&s.adopting}"},
	{"Flush leaves the finalizer of an opening", "\t\truntime.SetFinalizer(o, nil)\n", ""},
	{"Flush does not register the slabs that it ends", "\tc.retire(o)\n\tc.release(unused)", "\tc.release(unused)"},
	{"Flush keeps unused objects", "\tc.retire(o)\n\tc.release(unused)", "\tc.retire(o)"},
	{"Flush frees unused objects twice", "\t\tcell.state.Store(closed)\n", ""},
	{"Flush frees handed-out objects", "range o.cells[o.next:] {\n\t\tcell := &o.cells[o.next+i]\n\t\tcell.state", "range o.cells[o.next-1:] {\n\t\tcell := &o.cells[o.next-1+i]\n\t\tcell.state"},
	{"Flush does not free what Free closes", "\tfor c.freeClosed() || c.freeOne() {\n\t}", "\tc.freeClosed()\n\tfor c.freeOne() {\n\t}"},
	{"a Go map is accepted", "case reflect.Chan, reflect.Func, reflect.Map:", "case reflect.Chan, reflect.Func:"},
	{"negative Handles are used", "if s.handles <= 0 {", "if s.handles == 0 {"},
	{"Goexit does not end a use", "\tdefer h.used()\n\treturn f(h.object())\n}\n\n// Use is", "\tdefer func() {\n\t\tif e := recover(); e != nil {\n\t\t\th.used()\n\t\t\tpanic(e)\n\t\t}\n\t}()\n\terr := f(h.object())\n\th.used()\n\treturn err\n}\n\n// Use is"},
	{"a collection is forced", "	runtime.Gosched()\n", "	runtime.GC()\n"},
	{"Close does not wait for uses", "\t\t\tif state != 0 {\n\t\t\t\treturn nil\n\t\t\t}\n\t\t\treturn h.core", "\t\t\treturn h.core"},
	{"a closed object is freed again with its slab", "object == 0 || state&closed != 0", "object == 0"},
	{"unused objects count as forgotten", "if state != unused {", "if true {"},
	{"closed objects are not counted", "\tc.closed.Add(int64(len(full)))\n", ""},
	{"closed objects do not wait", "\t\twaiting += len(l.objects)\n", ""},
	{"a full lane is lost", "\tc.unshow(len(full))\n\tc.release(full)\n", "\tc.unshow(len(full))\n"},
	{"an AtOnce pool shows closed objects", "\t\t\tc.unshow(c.keep)\n", ""},
	{"a full lane is freed twice", "\tif l.objects == nil {\n\t\tl.objects = full[:0]", "\tif l.objects == nil {\n\t\tl.objects = full[:1]"},
	{"the timer is never set again", "\tc.due.Store(0)\n", "\t_ = c.due\n"},
	{"ticks run concurrently", "\tif c.ticks.Add(1) > 1 {\n\t\treturn\n\t}\n", "\tc.ticks.Add(1)\n"},
	{"a tick during another is lost", "if c.ticks.Swap(0) > 1 || again {", "if c.ticks.Swap(0); again {"},
	{"no tick follows one whose goroutine Free ended", "again := true //", "again := false //"},
	{"arm waits for the timer of a synctest bubble", "due > bubbles", "due > 0"},
	{"Flush frees only one slab", "\tfor c.freeClosed() || c.freeOne() {\n\t}", "\tc.freeClosed()\n\tc.freeOne()"},
	{"a new slab never frees a second dead slab", "c.traded%extra == 0", "c.traded < 0"},
	{"a new slab always frees two dead slabs", "c.traded%extra == 0", "c.traded > 0"},
	{"freed objects still count as waiting", "\tc.waiting -= int(first.cells)\n", ""},
	{"a lane holds any number of bytes", "n < c.keep {", "false {"},
	{"no closed object is kept", "if c.keep < 1 {", "if false {"},
	{"pools of large objects are AtOnce", "atOnce: p.AtOnce}", "atOnce: p.AtOnce || p.Bytes > mostLane}"},
	{"the limit on waiting bytes ignores the object size", "c.most = mostWaiting / c.bytes", "c.most = mostWaiting"},
	{"the error of Free is lost", "\t\tc.onError(err)\n\t}\n}\n\n// freeOne", "\t\t_ = err\n\t}\n}\n\n// freeOne"},
	{"objects of a failed Make are leaked", "\t\t\ts.core.release(dead)\n", "\t\t\t_ = dead\n"},
	{"Make may make too few objects", "if made < len(o.cells) {\n\t\treturn", "if false {\n\t\treturn"},
	{"the buffer for Make is not cleared", "\t\to.fresh[i] = 0\n", "\t\t_ = i\n"},
	{"the collector is not shown new objects", "\ts.core.show(n)\n", ""},
	{"the collector is shown only part of large objects", "for ; unseen > 0; unseen -= mostShown {", "for ; unseen > 0; unseen = 0 {"},
	{"the collector is shown closed objects", "\tc.unshow(len(full))\n", ""},
	{"a dropped opening leaks its slab", "\t\truntime.SetFinalizer(o, s.core.retire)\n", ""},
	{"Free is called under the lock", "\tc.mu.Unlock()\n\tc.freeSlab(first)\n\treturn true", "\tdefer c.mu.Unlock()\n\tc.freeSlab(first)\n\treturn true"},
	{"a nil pointer gets a handle", "\tif given == 0 {\n\t\treturn Handle[P]{}\n\t}\n", ""},
	{"a type of any size is accepted", "if t.Size() != word {", "if false {"},
	{"AtOnce has no effect", "atOnce: p.AtOnce}", "atOnce: false}"},
	{"pointers are tagged", "\tcell.object = given //", "\tcell.object = given &^ (1 << 63) //"},
}

// TestTestsFindMutations runs the other tests on the package with each mutation.
func TestTestsFindMutations(t *testing.T) {
	source, err := os.ReadFile("slab.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		if strings.Count(string(source), m.old) != 1 {
			t.Fatalf("%s: its text does not occur exactly once in slab.go", m.what)
		}
	}
	if !*mutate {
		t.Skip("takes minutes; run with -mutations")
	}
	folder := t.TempDir()
	if out, err := exec.Command("cp", "-r", ".", folder).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	run := func(text string) (string, error) {
		if err := os.WriteFile(filepath.Join(folder, "slab.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		// Examples are left out: they would hang if a mutation leaks objects.
		test := exec.Command("go", "test", "-run=^(Test|Fuzz)", "-short", "-failfast", "-timeout=60s", ".")
		test.Dir = folder
		out, err := test.CombinedOutput()
		return string(out), err
	}
	if out, err := run(string(source)); err != nil {
		t.Fatal("the tests fail without a mutation: ", out)
	}
	for _, m := range mutations {
		text := strings.Replace(string(source), m.old, m.new, 1)
		out, err := run(text)
		switch {
		case err == nil:
			t.Errorf("%s: no test fails", m.what)
		case strings.Contains(out, "[build failed]"):
			t.Errorf("%s: the mutation does not build: %s", m.what, out)
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
