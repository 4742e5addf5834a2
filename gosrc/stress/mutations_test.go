//go:build go1.26

package stress

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	mutations = flag.String("mutations", "", "break the runtime so that its tests may miss it, and see that TestPromises does not: all, or one by its name")
	upon      = flag.String("upon", "", "an overlay.json that package overlay wrote: break what that runtime adds instead")
)

// A mutation is an edit of one line of the runtime, in the function named, or of two
// of which each makes up for the other, such as one makes by mistake when one changes
// how specials are found and linked.
type mutation struct {
	name, file, function, old, new string
	closing                        bool      // a brace is opened, which the line's end closes
	also                           [2]string // a second edit, after the first
	with                           *mutation // a second edit, elsewhere
	settings                       string    // of GODEBUG, without which it cannot be seen
	rounds                         int       // of the stress, where it takes more luck than elsewhere
}

var stockMutations = []mutation{
	{
		name: "a record goes in before those of lower kinds", file: "mheap.go", function: "specialFindSplicePoint(",
		old: "kind < s.kind", new: "kind != s.kind",
	},
	{
		name: "a record goes in before those of lower offsets", file: "mheap.go", function: "specialFindSplicePoint(",
		old: "if offset < s.offset ||", new: "if offset < s.offset+16 && offset != s.offset ||",
	},
	{
		name: "what is there is not found now and then", file: "mheap.go", function: "specialFindSplicePoint(",
		old: "found = true", new: "found = cheaprandn(5000) != 0",
	},
	{
		name: "a record is lost now and then", file: "mheap.go", function: "func addspecial(",
		old: "*iter = s", new: "if cheaprandn(500) != 0 { *iter = s }",
	},
	{
		name: "a record hides those behind it now and then", file: "mheap.go", function: "func addspecial(",
		old: "s.next = *iter", new: "if s.next = *iter; s.next != nil && cheaprandn(5000) == 0 { s.next = s.next.next }",
	},
	{
		name: "records go in without a lock", file: "mheap.go", function: "func addspecial(",
		old: "\tlock(&span.speciallock)", new: "\t",
		also: [2]string{"unlock(&span.speciallock)", ""},
	},
	{
		name: "records go into a span that is not swept", file: "mheap.go", function: "func addspecial(",
		old: "span.ensureSwept()", new: "", rounds: 100,
	},
	{
		name: "a span with records is not marked so", file: "mheap.go", function: "func addspecial(",
		old: "spanHasSpecials(span)", new: "if cheaprandn(2) == 0 { spanHasSpecials(span) }",
	},
	{
		name: "removal unlinks those before it", file: "mheap.go", function: "func removespecial(",
		old: "*iter = s.next", new: "span.specials = s.next",
	},
	{
		name: "after a removal the span counts as empty", file: "mheap.go", function: "func removespecial(",
		old: "if span.specials == nil {", new: "if exists {",
	},
	{
		name: "Stop takes the first record", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "(*specialCleanup)(unsafe.Pointer(s)).id == c.id", new: "true",
	},
	{
		name: "Stop frees the record and leaves it in the list", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "*iter = s.next", new: "",
	},
	{
		name: "Stop finds nothing now and then", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "if exists {", new: "if exists && cheaprandn(1000) != 0 {",
	},
	{
		name: "after Stop the span counts as empty", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "if span.specials == nil {", new: "if found != nil {",
	},
	{
		name: "a cleanup is no root", file: "mgcmark.go", function: "func gcScanCleanup(",
		old: "scanblock(", new: "if cheaprandn(100) != 0 { return }; scanblock(",
	},
	{
		name: "a cleanup's argument is no root", file: "mgcmark.go", function: "func gcScanCleanup(",
		old: "&cleanupFnPtrMask[0]", new: "&oneptrmask[0]",
	},
	{
		name: "a finalizer is no root", file: "mgcmark.go", function: "func gcScanFinalizer(",
		old: "scanblock(", new: "if cheaprandn(2) == 0 { return }; scanblock(",
	},
	{
		// Either edit alone changes nothing: the store has a write barrier, which
		// shades what the record then holds, and no safepoint lies between the two.
		name: "a cleanup added during marking is no root", file: "mheap.go", function: "func addCleanup(",
		old: "s.cleanup = c", new: "*(*[3]uintptr)(unsafe.Pointer(&s.cleanup)) = *(*[3]uintptr)(unsafe.Pointer(&c))",
		also: [2]string{"gcphase != _GCoff", "false"},
	},
	{
		name: "an object is no root whose finalizer is set during marking", file: "mheap.go", function: "func addfinalizer(",
		old: "!span.spanclass.noscan()", new: "span == nil",
	},
	{
		name: "sweeping keeps a dead object's record", file: "mheap.go", function: "unlinkAndNext(",
		old: "*i.pprev = i.s", new: "if cheaprandn(100000) != 0 { *i.pprev = i.s }",
	},
	{
		name: "sweeping loses the record behind", file: "mheap.go", function: "unlinkAndNext(",
		old: "i.s = cur.next", new: "if i.s = cur.next; i.s != nil && cheaprandn(20000) == 0 { i.s = i.s.next }",
	},
	{
		name: "a weak handle outlives the finalizer", file: "mgcsweep.go", function: "sweep(preserve bool)",
		old: "special.kind == _KindSpecialWeakHandle", new: "false",
	},
	{
		name: "a weak handle is not emptied now and then", file: "mheap.go", function: "func freeSpecial(",
		old: "sw.handle.Store(0)", new: "if cheaprandn(100) != 0 { sw.handle.Store(0) }",
	},
	{
		name: "a cleanup is not queued now and then", file: "mheap.go", function: "func freeSpecial(",
		old: "gcCleanups.enqueue(sc.cleanup)", new: "if cheaprandn(500) != 0 { gcCleanups.enqueue(sc.cleanup) }",
	},
	{
		name: "a cleanup is queued twice now and then", file: "mheap.go", function: "func freeSpecial(",
		old: "gcCleanups.enqueue(sc.cleanup)", new: "gcCleanups.enqueue(sc.cleanup); if cheaprandn(5000) == 0 { gcCleanups.enqueue(sc.cleanup) }",
	},
	{
		name: "a pin's counter stays in the list", file: "pinner.go", function: "decPinCounter(",
		old: "*ref = counter.special.next", new: "",
	},
	{
		name: "a pin's counter is counted down twice", file: "pinner.go", function: "decPinCounter(",
		old: "counter.counter--", new: "counter.counter -= min(2, counter.counter)",
	},
	{
		name: "the profile misses a free now and then", file: "mheap.go", function: "func freeSpecial(",
		old: "mProf_Free(", new: "if cheaprandn(100) != 0 { mProf_Free(", closing: true, settings: "memprofilerate=512",
	},
	{
		name: "an object that a finalizer gets is swept", file: "mgcsweep.go", function: "sweep(preserve bool)",
		old: "mbits.setMarkedNonAtomic()", new: "if cheaprandn(1000) != 0 { mbits.setMarkedNonAtomic() }",
	},
}

// indexMutations are of the runtime that package overlay writes. Its checked variant
// would throw at once: here the stress is to see what they do. An index that knows
// too little is no such, as one that misses a record when it is made or a record is
// linked: a lookup then walks further, and finds the same. Nor is one that is lost,
// which takes memory and damages nothing.
var indexMutations = []mutation{
	{
		name: "the index keeps a record that is unlinked", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "idx.clear(b)", new: "if cheaprandn(1000) != 0 { idx.clear(b) }",
	},
	{
		name: "the index takes the record before for one of the bucket", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "idx.bucket(before.offset) == b", new: "(idx.bucket(before.offset) == b || cheaprandn(1000) == 0)",
	},
	{
		name: "a lookup begins in its own bucket", file: "mspecialindex.go", function: ") specialFindSplicePoint(",
		old: "idx.lastBelow(idx.bucket(offset))", new: "idx.lastBelow(idx.bucket(offset)+1&(1<<specialIndexes[idx.level].logBuckets-1))",
	},
	{
		name: "a lookup takes the first of a higher kind for its own", file: "mspecialindex.go", function: ") specialFindSplicePoint(",
		old: "return link, s.kind == kind", new: "return link, true",
	},
	{
		name: "a new index takes the first of a bucket for one of the bucket before", file: "mspecialindex.go", function: ") makeSpecialIndex(",
		old: "idx.setLast(idx.bucket(s.offset), s)", new: "idx.setLast(idx.bucket(s.offset), s); if s.next != nil && cheaprandn(100) == 0 { idx.setLast(idx.bucket(s.offset), s.next) }",
	},
	{
		name: "an index is used again as it was", file: "mspecialindex.go", function: "initSpecialIndexes(",
		old: "&memstats.other_sys)", new: "&memstats.other_sys); at.alloc.zero = false",
	},
	{
		name: "an index is freed and kept", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "span.specialIndex = nil", new: "",
	},
	{
		// Either edit alone loses some memory, or nothing.
		name: "a span passes its index on", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "if span.specials == nil {", new: "if span.specials == nil && cheaprandn(10) != 0 {",
		with: &mutation{
			file: "mheap.go", function: ") init(base uintptr",
			old: "span.specials, span.specialIndex, span.specialCount = nil, nil, 0", new: "span.specials, span.specialCount = nil, 0",
		},
	},
	{
		name: "sweeping does not tell the index", file: "mheap.go", function: "unlinkAndNext(",
		old: "i.span.unlinkSpecial(i.pprev)", new: "*i.pprev = i.s",
	},
	{
		name: "Stop does not tell the index", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "span.unlinkSpecial(iter)", new: "*iter = s.next",
	},
	{
		name: "a pin's counter does not tell the index", file: "pinner.go", function: "decPinCounter(",
		old: "span.unlinkSpecial(ref)", new: "*ref = counter.special.next",
	},
}

// hintMutations are of the runtime with a hint. A span that passes its hint on is none, as
// an empty list has no hint.
var hintMutations = []mutation{
	{
		name: "the hint is a record that is unlinked", file: "mspecialhint.go", function: ") unlinkSpecial(",
		old: "span.setSpecialHint(link)", new: "",
	},
	{
		name: "a lookup begins behind its own object's records", file: "mspecialhint.go", function: ") specialFindSplicePoint(",
		old: "hint.offset < offset", new: "hint.offset <= offset",
	},
	{
		name: "a lookup begins behind the first of its own records", file: "mspecialhint.go", function: ") specialFindSplicePoint(",
		old: "hint.kind < kind", new: "hint.kind <= kind",
	},
	{
		name: "a lookup takes the first of a higher kind for its own", file: "mspecialhint.go", function: ") specialFindSplicePoint(",
		old: "return link, s.kind == kind", new: "return link, true",
	},
	{
		name: "sweeping does not set the hint", file: "mheap.go", function: "unlinkAndNext(",
		old: "i.span.unlinkSpecial(i.pprev)", new: "*i.pprev = i.s",
	},
	{
		name: "Stop does not set the hint", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "span.unlinkSpecial(iter)", new: "*iter = s.next",
	},
	{
		name: "a pin's counter does not set the hint", file: "pinner.go", function: "decPinCounter(",
		old: "span.unlinkSpecial(ref)", new: "*ref = counter.special.next",
	},
}

// plusMutations are of what the plus variant adds to the index: it skips marking what it
// takes for no root, so a mistake is a use after free. A closure that calls a cleanup is in
// the heap only if the argument is, and a root that is counted too often is only marked in
// vain: those are none.
var plusMutations = []mutation{
	{
		name: "a cleanup's argument is taken for no root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "|| inHeap(c.arg)", new: "", settings: "clobberfree=1",
	},
	{
		name: "a cleanup's function is taken for no root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "|| inHeap(unsafe.Pointer(c.fn))", new: "", settings: "clobberfree=1",
	},
	{
		name: "what a finalizer's object refers to is taken for no root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "!span.spanclass.noscan() ||", new: "", settings: "clobberfree=1",
	},
	{
		name: "a finalizer's function is taken for no root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "|| inHeap(unsafe.Pointer((*specialfinalizer)(unsafe.Pointer(s)).fn))", new: "", settings: "clobberfree=1",
	},
	{
		name: "a weak handle is taken for no root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "return true", new: "return false", settings: "clobberfree=1",
	},
	{
		name: "a root is not counted now and then", file: "mspecialplus_on.go", function: ") linkRoot(",
		old: "span.holdsRoot(s)", new: "span.holdsRoot(s) && cheaprandn(100) != 0", settings: "clobberfree=1",
	},
	{
		name: "what is no root is counted down", file: "mspecialplus_on.go", function: ") unlinkRoot(",
		old: "if s.isRoot {", new: "if s.isRoot || span.specialRoots > 0 {", settings: "clobberfree=1",
	},
	{
		name: "one root is taken for none", file: "mspecialplus_on.go", function: ") specialsWithRoots(",
		old: "span.specialRoots == 0", new: "span.specialRoots <= 1", settings: "clobberfree=1",
	},
}

// TestMutations shows that TestPromises fails, or the process dies, with each of
// the mutations: else it would be no test of a runtime. It builds the runtime as
// often.
func TestMutations(t *testing.T) {
	if *mutations == "" {
		t.Skip("takes minutes: go test ./stress -run Mutations -mutations all")
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "runtime")
	list := stockMutations
	base := map[string]string{}
	if *upon != "" {
		text, err := os.ReadFile(*upon)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &struct{ Replace *map[string]string }{&base}); err != nil {
			t.Fatal(err)
		}
		list = indexMutations
		for name := range base {
			switch filepath.Base(name) {
			case "mspecialhint.go":
				list = hintMutations
			case "mspecialplus_on.go":
				list = plusMutations
			}
		}
	}
	for _, m := range list {
		if *mutations != "all" && *mutations != m.name {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			started := time.Now()
			scratch := t.TempDir()
			program := m.build(t, source, base, scratch)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			built := time.Now()
			command := exec.CommandContext(ctx, program, "-test.v", "-test.run=^TestPromises$", fmt.Sprintf("-rounds=%d", max(m.rounds, 30)), "-tiny=false")
			command.Env = append(os.Environ(), "GODEBUG="+m.settings)
			// A round takes seconds: one that takes this long hangs.
			said := &heard{hangs: time.AfterFunc(time.Minute, cancel)}
			command.Stdout, command.Stderr = said, said
			err := command.Run()
			said.hangs.Stop()
			if err == nil {
				t.Fatalf("it was not noticed: %s", said.text.String())
			}
			how := gist(said.text.String())
			// One that hangs is noticed, one that is only slow is not.
			done := strings.Count(said.text.String(), "\nround ")
			switch ctx.Err() {
			case context.DeadlineExceeded:
				t.Fatalf("it was not noticed in %d rounds", done)
			case context.Canceled:
				how = fmt.Sprintf("it hangs after %d rounds", done)
			}
			t.Logf("built in %.0f s, noticed in %.1f s: %s",
				built.Sub(started).Seconds(), time.Since(built).Seconds(), how)
		})
	}
}

// build makes the test program with the mutated runtime.
func (m mutation) build(t *testing.T, source string, base map[string]string, scratch string) string {
	replace := map[string]string{}
	for original, replacement := range base {
		replace[original] = replacement
	}
	for edit := &m; edit != nil; edit = edit.with {
		original := filepath.Join(source, edit.file)
		before, replaced := replace[original]
		if !replaced {
			before = original
		}
		text, err := os.ReadFile(before)
		if err != nil {
			t.Fatal(err)
		}
		mutated, err := edit.apply(string(text))
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = filepath.Join(scratch, edit.file)
		if err := os.WriteFile(replace[original], []byte(mutated), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "overlay.json"), overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(scratch, "stress.test")
	build := exec.Command("go", "test", "-c", "-o", program, "-overlay", filepath.Join(scratch, "overlay.json"), ".")
	// Go replaces no file below its module cache, and a downloaded Go stands there.
	build.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "GOMODCACHE="+filepath.Join(scratch, "modules"))
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}

// apply edits the first place in the function: there must be one.
func (m mutation) apply(text string) (string, error) {
	for at := 0; ; {
		i := strings.Index(text[at:], m.function)
		if i < 0 {
			return "", fmt.Errorf("%s has no function %q with %q: it is of another release", m.file, m.function, m.old)
		}
		at += i + len(m.function)
		if line := strings.LastIndexByte(text[:at], '\n') + 1; !strings.HasPrefix(text[line:], "func ") {
			continue
		}
		end := at + strings.Index(text[at:], "\n}\n")
		body := text[at:end]
		j := strings.Index(body, m.old)
		if j < 0 {
			continue
		}
		before, after := body[:j]+m.new, body[j+len(m.old):]
		if m.closing {
			after = strings.Replace(after, "\n", " }\n", 1)
		}
		if m.also[0] != "" {
			after = strings.Replace(after, m.also[0], m.also[1], 1)
		}
		return text[:at] + before + after + text[end:], nil
	}
}

// heard is what a program says, and stops it if it falls silent.
type heard struct {
	text  bytes.Buffer // not embedded: it would be read into past Write
	hangs *time.Timer
}

func (h *heard) Write(b []byte) (int, error) {
	h.hangs.Reset(time.Minute)
	return h.text.Write(b)
}

// gist is what was said first of what is wrong.
func gist(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "round ") || strings.Contains(line, "; left of dropped objects: ") {
			continue
		}
		if lines = append(lines, line); len(lines) == 3 {
			break
		}
	}
	return strings.Join(lines, " | ")
}
