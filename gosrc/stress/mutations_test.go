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
	mutations = flag.String("mutations", "", "run mutations that the runtime's own tests may miss, and check that TestPromises fails: \"all\", or the `name` of one")
	upon      = flag.String("upon", "", "mutate the runtime of this `overlay.json`, which package overlay wrote, instead of the stock runtime")
)

// A mutation is an edit of one line in a function of the runtime, or of two lines if
// either edit alone has no effect. It is a typical mistake in code that finds and links
// specials.
type mutation struct {
	name, file, function, old, new string
	closing                        bool      // new opens a brace; close it at the end of the line
	also                           [2]string // old and new of a second edit after the first
	with                           *mutation // a second edit in another function
	settings                       string    // GODEBUG settings that make the effect visible
	rounds                         int       // of the stress test, if the effect is rarer
}

var stockMutations = []mutation{
	{
		name: "insertion before records of lower kinds", file: "mheap.go", function: "specialFindSplicePoint(",
		old: "kind < s.kind", new: "kind != s.kind",
	},
	{
		name: "insertion before records of lower offsets", file: "mheap.go", function: "specialFindSplicePoint(",
		old: "if offset < s.offset ||", new: "if offset < s.offset+16 && offset != s.offset ||",
	},
	{
		name: "search sometimes misses a record", file: "mheap.go", function: "specialFindSplicePoint(",
		old: "found = true", new: "found = cheaprandn(5000) != 0",
	},
	{
		name: "insertion sometimes loses the record", file: "mheap.go", function: "func addspecial(",
		old: "*iter = s", new: "if cheaprandn(500) != 0 { *iter = s }",
	},
	{
		name: "insertion sometimes loses the next record", file: "mheap.go", function: "func addspecial(",
		old: "s.next = *iter", new: "if s.next = *iter; s.next != nil && cheaprandn(5000) == 0 { s.next = s.next.next }",
	},
	{
		name: "insertion without the lock", file: "mheap.go", function: "func addspecial(",
		old: "\tlock(&span.speciallock)", new: "\t",
		also: [2]string{"unlock(&span.speciallock)", ""},
	},
	{
		name: "insertion into an unswept span", file: "mheap.go", function: "func addspecial(",
		old: "span.ensureSwept()", new: "", rounds: 100,
	},
	{
		name: "span with records is not flagged", file: "mheap.go", function: "func addspecial(",
		old: "spanHasSpecials(span)", new: "if cheaprandn(2) == 0 { spanHasSpecials(span) }",
	},
	{
		name: "removal also unlinks earlier records", file: "mheap.go", function: "func removespecial(",
		old: "*iter = s.next", new: "span.specials = s.next",
	},
	{
		name: "removal flags the span as empty", file: "mheap.go", function: "func removespecial(",
		old: "if span.specials == nil {", new: "if exists {",
	},
	{
		name: "Stop removes the first of several cleanups", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "(*specialCleanup)(unsafe.Pointer(s)).id == c.id", new: "true",
	},
	{
		name: "Stop frees the record but keeps it in the list", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "*iter = s.next", new: "",
	},
	{
		name: "Stop sometimes finds nothing", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "if exists {", new: "if exists && cheaprandn(1000) != 0 {",
	},
	{
		name: "Stop flags the span as empty", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "if span.specials == nil {", new: "if found != nil {",
	},
	{
		name: "marking sometimes skips a cleanup", file: "mgcmark.go", function: "func gcScanCleanup(",
		old: "scanblock(", new: "if cheaprandn(100) != 0 { return }; scanblock(",
	},
	{
		name: "marking skips a cleanup's argument", file: "mgcmark.go", function: "func gcScanCleanup(",
		old: "&cleanupFnPtrMask[0]", new: "&oneptrmask[0]",
	},
	{
		name: "marking sometimes skips a finalizer", file: "mgcmark.go", function: "func gcScanFinalizer(",
		old: "scanblock(", new: "if cheaprandn(2) == 0 { return }; scanblock(",
	},
	{
		// Either edit alone has no effect: the store's write barrier also shades what
		// the record holds, and there is no safepoint between the two.
		name: "AddCleanup during marking does not mark", file: "mheap.go", function: "func addCleanup(",
		old: "s.cleanup = c", new: "*(*[3]uintptr)(unsafe.Pointer(&s.cleanup)) = *(*[3]uintptr)(unsafe.Pointer(&c))",
		also: [2]string{"gcphase != _GCoff", "false"},
	},
	{
		name: "SetFinalizer during marking does not mark what the object refers to", file: "mheap.go", function: "func addfinalizer(",
		old: "!span.spanclass.noscan()", new: "span == nil",
	},
	{
		name: "sweeping sometimes keeps a dead object's record", file: "mheap.go", function: "unlinkAndNext(",
		old: "*i.pprev = i.s", new: "if cheaprandn(100000) != 0 { *i.pprev = i.s }",
	},
	{
		name: "sweeping sometimes loses the next record", file: "mheap.go", function: "unlinkAndNext(",
		old: "i.s = cur.next", new: "if i.s = cur.next; i.s != nil && cheaprandn(20000) == 0 { i.s = i.s.next }",
	},
	{
		name: "weak handle survives the finalizer", file: "mgcsweep.go", function: "sweep(preserve bool)",
		old: "special.kind == _KindSpecialWeakHandle", new: "false",
	},
	{
		name: "weak handle is sometimes not cleared", file: "mheap.go", function: "func freeSpecial(",
		old: "sw.handle.Store(0)", new: "if cheaprandn(100) != 0 { sw.handle.Store(0) }",
	},
	{
		name: "cleanup is sometimes not queued", file: "mheap.go", function: "func freeSpecial(",
		old: "gcCleanups.enqueue(sc.cleanup)", new: "if cheaprandn(500) != 0 { gcCleanups.enqueue(sc.cleanup) }",
	},
	{
		name: "cleanup is sometimes queued twice", file: "mheap.go", function: "func freeSpecial(",
		old: "gcCleanups.enqueue(sc.cleanup)", new: "gcCleanups.enqueue(sc.cleanup); if cheaprandn(5000) == 0 { gcCleanups.enqueue(sc.cleanup) }",
	},
	{
		name: "unpinning keeps the counter in the list", file: "pinner.go", function: "decPinCounter(",
		old: "*ref = counter.special.next", new: "",
	},
	{
		name: "unpinning decrements the counter twice", file: "pinner.go", function: "decPinCounter(",
		old: "counter.counter--", new: "counter.counter -= min(2, counter.counter)",
	},
	{
		name: "profile sometimes misses a free", file: "mheap.go", function: "func freeSpecial(",
		old: "mProf_Free(", new: "if cheaprandn(100) != 0 { mProf_Free(", closing: true, settings: "memprofilerate=512",
	},
	{
		name: "sweeping sometimes frees an object with a queued finalizer", file: "mgcsweep.go", function: "sweep(preserve bool)",
		old: "mbits.setMarkedNonAtomic()", new: "if cheaprandn(1000) != 0 { mbits.setMarkedNonAtomic() }",
	},
}

// indexMutations mutate the index variant of package overlay. Its checked variant would
// throw at once; here the stress test must notice the effects. An index that misses
// records, or that is leaked, is not a mutation: searches walk further but find the same
// place, and a leak only wastes memory. The tests of the patch notice these.
var indexMutations = []mutation{
	{
		name: "index keeps an unlinked record", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "idx.used[b/specialsPerWord] &^=", new: "if cheaprandn(1000) != 0 { idx.used[b/specialsPerWord] &^=", closing: true,
	},
	{
		name: "index assigns a record to a later bucket", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "idx.bucket(before.offset) == b", new: "(idx.bucket(before.offset) == b || cheaprandn(1000) == 0)",
	},
	{
		name: "search starts in its own bucket", file: "mspecialindex.go", function: ") specialBefore(",
		old: "idx.lastBelow(idx.bucket(offset))", new: "idx.lastBelow(idx.bucket(offset)+1&(1<<specialIndexes[idx.level].logBuckets-1))",
	},
	{
		name: "new index assigns a record to an earlier bucket", file: "mspecialindex.go", function: ") makeSpecialIndex(",
		old: "idx.setLast(idx.bucket(s.offset), s)", new: "idx.setLast(idx.bucket(s.offset), s); if s.next != nil && cheaprandn(100) == 0 { idx.setLast(idx.bucket(s.offset), s.next) }",
	},
	{
		name: "reused index keeps its bit mask", file: "mspecialindex.go", function: ") makeSpecialIndex(",
		old: "*idx = specialIndex{level: level}", new: "idx.level, idx.count = level, 0",
	},
	{
		name: "freed index stays in use", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "span.specialIndex = nil", new: "",
	},
	{
		// Either edit alone leaks some memory or has no effect.
		name: "reused span keeps its index", file: "mspecialindex.go", function: ") unlinkSpecial(",
		old: "if span.specials == nil {", new: "if span.specials == nil && cheaprandn(10) != 0 {",
		with: &mutation{
			file: "mheap.go", function: ") init(base uintptr",
			old: "span.specials, span.specialIndex = nil, nil", new: "span.specials = nil",
		},
	},
	{
		name: "sweeping does not update the index", file: "mheap.go", function: "unlinkAndNext(",
		old: "i.span.unlinkSpecial(i.before)", new: "*i.span.specialLink(i.before) = i.s",
	},
	{
		name: "Stop does not update the index", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "span.unlinkSpecial(before)", new: "*span.specialLink(before) = s.next",
	},
	{
		name: "unpinning does not update the index", file: "pinner.go", function: "decPinCounter(",
		old: "span.unlinkSpecial(before)", new: "*span.specialLink(before) = counter.special.next",
	},
}

// hintMutations mutate the hint variant. A reused span that keeps its hint is not a
// mutation, because an empty list has no hint.
var hintMutations = []mutation{
	{
		name: "hint stays at an unlinked record", file: "mspecialhint.go", function: ") unlinkSpecial(",
		old: "span.specialHint = before", new: "",
	},
	{
		name: "search starts after records of its object", file: "mspecialhint.go", function: ") specialBefore(",
		old: "hint.offset != offset ||", new: "hint.offset > offset &&",
	},
	{
		name: "search starts after its first matching record", file: "mspecialhint.go", function: ") specialBefore(",
		old: "hint.kind >= kind", new: "hint.kind > kind",
	},
	{
		name: "sweeping does not update the hint", file: "mheap.go", function: "unlinkAndNext(",
		old: "i.span.unlinkSpecial(i.before)", new: "*i.span.specialLink(i.before) = i.s",
	},
	{
		name: "Stop does not update the hint", file: "mcleanup.go", function: "func (c Cleanup) Stop(",
		old: "span.unlinkSpecial(before)", new: "*span.specialLink(before) = s.next",
	},
	{
		name: "unpinning does not update the hint", file: "pinner.go", function: "decPinCounter(",
		old: "span.unlinkSpecial(before)", new: "*span.specialLink(before) = counter.special.next",
	},
}

// plusMutations mutate what the plus variant adds to the index. It does not mark records
// that it believes hold no root, so a mistake causes a use after free. Ignoring c.call is
// not a mutation, because that closure is in the heap only if the argument is. Counting a
// root too often is not one either, because it only causes unnecessary marking.
var plusMutations = []mutation{
	{
		name: "cleanup's argument is not a root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "|| inHeap(c.arg)", new: "", settings: "clobberfree=1",
	},
	{
		name: "cleanup's function is not a root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "|| inHeap(unsafe.Pointer(c.fn))", new: "", settings: "clobberfree=1",
	},
	{
		name: "finalizer's object is not a root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "!span.spanclass.noscan() ||", new: "", settings: "clobberfree=1",
	},
	{
		name: "finalizer's function is not a root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "|| inHeap(unsafe.Pointer((*specialfinalizer)(unsafe.Pointer(s)).fn))", new: "", settings: "clobberfree=1",
	},
	{
		name: "weak handle is not a root", file: "mspecialplus_on.go", function: ") holdsRoot(",
		old: "return true", new: "return false", settings: "clobberfree=1",
	},
	{
		name: "root is sometimes not counted", file: "mspecialplus_on.go", function: ") linkRoot(",
		old: "span.holdsRoot(s)", new: "span.holdsRoot(s) && cheaprandn(100) != 0", settings: "clobberfree=1",
	},
	{
		name: "removal of a record without a root decrements the count", file: "mspecialplus_on.go", function: ") unlinkRoot(",
		old: "if s.isRoot {", new: "if s.isRoot || span.specialRoots > 0 {", settings: "clobberfree=1",
	},
	{
		name: "single root is ignored", file: "mspecialplus_on.go", function: ") specialsWithRoots(",
		old: "span.specialRoots == 0", new: "span.specialRoots <= 1", settings: "clobberfree=1",
	},
}

// TestMutations checks that TestPromises fails, crashes or hangs with each mutation. It
// builds the runtime once for each.
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
			// A round takes seconds, so a minute without output is a hang.
			output := &watchdog{timer: time.AfterFunc(time.Minute, cancel)}
			command.Stdout, command.Stderr = output, output
			err := command.Run()
			output.timer.Stop()
			if err == nil {
				t.Fatalf("mutation not noticed: %s", output.text.String())
			}
			how := firstLines(output.text.String())
			// A hang counts as noticed, slowness does not.
			done := strings.Count(output.text.String(), "\nround ")
			switch ctx.Err() {
			case context.DeadlineExceeded:
				t.Fatalf("mutation not noticed in %d rounds", done)
			case context.Canceled:
				how = fmt.Sprintf("hangs after %d rounds", done)
			}
			t.Logf("built in %.0f s, noticed in %.1f s: %s",
				built.Sub(started).Seconds(), time.Since(built).Seconds(), how)
		})
	}
}

// build builds the test program with the mutated runtime and returns its path.
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
	// Go does not replace files below its module cache, where downloaded toolchains are.
	build.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "GOMODCACHE="+filepath.Join(scratch, "modules"))
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return program
}

// apply edits the first match in the function. It is an error if there is none.
func (m mutation) apply(text string) (string, error) {
	for at := 0; ; {
		i := strings.Index(text[at:], m.function)
		if i < 0 {
			return "", fmt.Errorf("%s has no function %q that contains %q; is it from another release?", m.file, m.function, m.old)
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

// A watchdog stores the output of a program. Its timer stops the program if there is none
// for a minute.
type watchdog struct {
	text  bytes.Buffer // not embedded: its ReadFrom would bypass Write
	timer *time.Timer
}

func (h *watchdog) Write(b []byte) (int, error) {
	h.timer.Reset(time.Minute)
	return h.text.Write(b)
}

// firstLines returns the first lines of output that report a failure.
func firstLines(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
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
