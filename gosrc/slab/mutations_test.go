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
	{"Close does not wait for uses", "if state == 0 {\n\t\t\t\th.core", "if true {\n\t\t\t\th.core"},
	{"the last use does not free", "h.cell.state.Add(^uint32(0)) == closed", "h.cell.state.Add(^uint32(0)) == closed+1"},
	{"a use does not end", "	defer h.used()\n", ""},
	{"a panic does not end a use", "	defer h.used()\n	return f(*(*P)(unsafe.Pointer(&h.cell.object)))", "	err := f(*(*P)(unsafe.Pointer(&h.cell.object)))\n	h.used()\n	return err"},
	{"a closed object is freed with its slab again", "	given.object = 0\n", ""},
	{"an object that fills a lane is lost", "		l.kept = nil\n	}\n	l.mu.Unlock()\n	runtime", "		l.kept, b = nil, &buffer{}\n	}\n	l.mu.Unlock()\n	runtime"},
	{"what waits is not freed by itself", "time.AfterFunc(delay, c.tick)", "_ = c.tick"},
	{"the timer is not set again", "	c.armed.Store(false)\n", ""},
	{"Flush forgets the lanes", "range c.lanes {\n\t\tl := &c.lanes[i]", "range c.lanes[:0] {\n\t\tl := &c.lanes[i]"},
	{"Flush frees two slabs only", "for c.freeSome() {\n\t}", "c.freeSome()"},
	{"slabs have no finalizer", "	runtime.SetFinalizer(&o.cells[0], c.died)\n", ""},
	{"the last cell of a slab is not freed", "unsafe.Slice(first, int(first.cells))", "unsafe.Slice(first, int(first.cells)-1)"},
	{"a cell is handed out twice", "if o.next++; o.next == len(o.cells)", "if o.next += o.next%3%2*0 + boolean(o.next != 5); o.next == len(o.cells)"},
	{"what is handed out keeps its slab", "o.cells, o.next = nil, 0 // it would still hold the slab", "c.last, o.cells, o.next = o.cells, nil, 0"},
	{"dead slabs have no bound", "waits := c.waiting+n <= c.most", "waits := true"},
	{"what waits is not counted off", "		c.waiting -= int(some[n].cells)\n", ""},
	{"closed objects have no bound", "if c.keep > 2*c.handles {", "if c.keep = 1 << 20; false {"},
	{"bytes have no bound", "most < limit {\n\t\tlimit = most", "most < limit {\n\t\tlimit = limit"},
	{"the error of Free is lost", "			c.onError(err)\n", "			_ = err\n"},
	{"objects of a Make that failed are lost", "	if err != nil {\n\t\tb.objects = b.objects[:n]\n\t\tc.release(b)\n", "	if err != nil {\n"},
	{"Make may make too few", "if err == nil && n < len(o.cells)", "if false"},
	{"buffers are not cleared", "	for range o.cells {\n\t\tb.objects = append(b.objects, 0)\n\t}", "	b.objects = b.objects[:len(o.cells)]"},
	{"the collector sees nothing", "	if c.seen {\n", "	if false {\n"},
	{"the collector sees what is closed", "	c.weigh(-len(b.objects))\n", ""},
	{"a collection is forced", "	runtime.Gosched()\n", "	runtime.GC()\n"},
	{"what the collector sees is touched", "		b.Grow(int(unseen))\n", "		_ = make([]byte, unseen)[unseen/2:]\n		b.WriteString(strings.Repeat(\"x\", int(unseen)))\n"},
	{"Free is called under the lock", "	c.mu.Unlock()\n	if n == 0 {", "	defer c.mu.Unlock()\n	if n == 0 {"},
	{"a lane is held in Free", "	l.mu.Unlock()\n	runtime.KeepAlive(given) // its slab was not to be found dead before\n", "	defer l.mu.Unlock()\n"},
	{"a pool is kept by a table", "	if !p.core.CompareAndSwap(nil, c) {", "	all = append(all, c)\n	if !p.core.CompareAndSwap(nil, c) {"},
	{"pointers are tagged", "	h.cell.object = word //", "	h.cell.object = word &^ (1 << 63) //"},
	{"a nil pointer gets a handle", "	if word == 0 {\n\t\treturn Handle[P]{}\n\t}\n", ""},
	{"any type is taken", "if unsafe.Sizeof(object) != unsafe.Sizeof(uintptr(0)) {", "if false {"},
}

const helpers = `
var all []any

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
`

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
		if err := os.WriteFile(filepath.Join(folder, "slab.go"), []byte(text+helpers), 0o666); err != nil {
			t.Fatal(err)
		}
		test := exec.Command("go", "test", "-short", "-failfast", "-timeout=60s", ".")
		test.Dir = folder
		out, err := test.CombinedOutput()
		return string(out), err
	}
	if out, err := run(strings.Replace(string(source), "armed atomic.Bool\n", "armed atomic.Bool\n	last []cell\n", 1)); err != nil {
		t.Fatal("without a mistake: ", out)
	}
	for _, m := range mutations {
		if strings.Count(string(source), m.old) != 1 {
			t.Errorf("%s: slab.go has not one place for it", m.what)
			continue
		}
		text := strings.Replace(string(source), m.old, m.new, 1)
		text = strings.Replace(text, "armed atomic.Bool\n", "armed atomic.Bool\n	last []cell\n", 1)
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
