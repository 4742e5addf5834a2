package guardian

import (
	"encoding/json"
	"flag"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"gccost/meter"
)

// TestMain sets a short benchtime for tests that call testing.Benchmark. A run with -bench
// keeps its benchtime.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		if err := flag.Set("test.benchtime", "20000x"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// collect runs the collector until only the given number of blocks is held since an earlier
// count, or gives up. It fails the test if another number is, or if a block was freed twice.
func collect(t *testing.T, since meter.Blocks, want int64) {
	t.Helper()
	held := func() int64 {
		now := Count()
		return (now.Allocated - now.Freed) - (since.Allocated - since.Freed)
	}
	for i := 0; i < 200 && (i < 4 || held() > want); i++ { // a pool drops its items in the second
		runtime.GC()
		time.Sleep(2 * time.Millisecond) // finalizers run in another goroutine
	}
	if got := held(); got != want {
		t.Errorf("%d blocks are held, want %d", got, want)
	}
	if now := Count(); now.Misfreed != since.Misfreed {
		t.Errorf("%d blocks were freed twice", now.Misfreed-since.Misfreed)
	}
}

// escaped makes blocks escape to the heap.
var escaped *Block

func TestForgottenBlocksAreFreed(t *testing.T) {
	before := Count()
	var kept []*Block
	for i := 0; i < 5000; i++ {
		escaped = New()
		if i%100 == 0 {
			kept = append(kept, escaped)
		}
	}
	escaped = nil
	collect(t, before, int64(len(kept)))
	for _, b := range kept {
		if err := b.Use(); err != nil {
			t.Error(err)
		}
	}
	kept = nil
	collect(t, before, 0)
}

// TestClosedBlocksAreFreedAtOnce checks that a block is freed by its first Close, and that
// closing and opening allocates a Block only: the guardian is used again.
func TestClosedBlocksAreFreedAtOnce(t *testing.T) {
	before := Count()
	for i := 0; i < 1000; i++ {
		b := New()
		if err := b.Use(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if closed, used := b.Close(), b.Use(); closed != ErrClosed || used != ErrClosed {
			t.Errorf("a closed block returns %v and %v", closed, used)
		}
	}
	if now := Count(); now.Freed-before.Freed != 1000 || now.Allocated-before.Allocated != 1000 {
		t.Errorf("%+v, %+v before 1000 blocks", now, before)
	}
	want := 1.0
	if strings.HasPrefix(runtime.Version(), "go1.20") {
		want++ // its cgo allocates to check a pointer to an opaque type
	}
	if n := testing.AllocsPerRun(1000, func() { escaped = New(); escaped.Close() }); !raceEnabled && n > want {
		t.Errorf("%v allocations in an operation, want %v", n, want)
	}
	if got := unsafe.Sizeof(guardian{}); got != 32 {
		t.Errorf("a guardian has %d bytes", got)
	}
}

// TestPooledGuardiansFreeNothing has the pool drop guardians, whose finalizers then run.
func TestPooledGuardiansFreeNothing(t *testing.T) {
	before := Count()
	for round := 0; round < 10; round++ {
		var blocks [1000]*Block
		for i := range blocks {
			blocks[i] = New()
		}
		for _, b := range blocks {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		for i := 0; i < 4; i++ {
			runtime.GC()
		}
	}
	collect(t, before, 0)
}

// TestFailingFree checks that a block is freed once though the library says that it failed.
func TestFailingFree(t *testing.T) {
	before := Count()
	with(freeFails, func() {}, func() {
		for i := 0; i < 1000; i++ {
			b := New()
			if i%2 == 0 {
				continue // forgotten: the error is lost
			}
			if err := b.Close(); err != ErrFailed {
				t.Errorf("Close returns %v", err)
			}
			if err := b.Close(); err != ErrClosed {
				t.Errorf("a second Close returns %v", err)
			}
		}
		collect(t, before, 0)
	})
}

// panics reports whether f panics if C calls back into Go, which panics.
func panics(how int, f func()) (did bool) {
	defer func() { did = recover() != nil }()
	with(how, func() { panic("in a callback") }, f)
	return false
}

// TestPanicInFree panics in a callback from C, when C has freed the block.
func TestPanicInFree(t *testing.T) {
	before := Count()
	var blocks [100]*Block
	for i := range blocks {
		blocks[i] = New()
	}
	for _, b := range blocks {
		if !panics(freeCalls, func() { b.Close() }) {
			t.Error("the panic is lost")
		}
		if err := b.Close(); err != ErrClosed {
			t.Errorf("a second Close returns %v", err)
		}
	}
	collect(t, before, 0)
}

// TestPanicInUse checks that a block can be closed or forgotten after a panic in a use.
func TestPanicInUse(t *testing.T) {
	before := Count()
	for i := 0; i < 100; i++ {
		b := New()
		if !panics(useCalls, func() { b.Use() }) {
			t.Error("the panic is lost")
		}
		if i%2 == 0 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	collect(t, before, 0)
}

// TestUseKeepsTheBlock collects garbage while C uses a block that nothing else refers to.
func TestUseKeepsTheBlock(t *testing.T) {
	before := Count()
	for i := 0; i < 10; i++ {
		b := New()
		collects := func() {
			for i := 0; i < 5; i++ {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
		with(useCalls, collects, func() {
			if err := b.Use(); err != nil {
				t.Error("a block was freed during a use")
			}
		})
	}
	collect(t, before, 0)
}

// owner closes its block by a finalizer of its own, after both were forgotten.
type owner struct{ block *Block }

func TestCloseAfterForgetting(t *testing.T) {
	before := Count()
	const n = 1000
	closed := make(chan error, n)
	for i := 0; i < n; i++ {
		runtime.SetFinalizer(&owner{New()}, func(o *owner) {
			err := o.block.Use()
			if err == nil {
				err = o.block.Close()
			}
			closed <- err
		})
	}
	for i := 0; i < 200 && len(closed) < n; i++ {
		runtime.GC()
		time.Sleep(2 * time.Millisecond)
	}
	if len(closed) < n {
		t.Fatalf("%d of %d owners were finalized", len(closed), n)
	}
	for i := 0; i < n; i++ {
		if err := <-closed; err != nil {
			t.Fatal("a block was freed before the finalizer of its owner:", err)
		}
	}
	collect(t, before, 0)
}

// TestStress checks that every block is freed once. Goroutines close blocks, also twice and
// at the same time, use them, forget them, and hand them to each other.
func TestStress(t *testing.T) {
	before := Count()
	const goroutines, each = 8, 40_000
	shared := make(chan *Block, 1000)
	var all sync.WaitGroup
	var made atomic.Int64
	for g := 0; g < goroutines; g++ {
		chance := rand.New(rand.NewSource(int64(g)))
		all.Add(1)
		go func() {
			defer all.Done()
			kept := make([]*Block, 1000)
			for i := range kept {
				kept[i] = new(Block) // closed
			}
			for i := 0; i < each; i++ {
				at := chance.Intn(len(kept))
				switch what := chance.Intn(64); {
				case what < 30: // and forget the block that was there
					kept[at] = New()
					made.Add(1)
				case what < 40:
					// Another goroutine may close a shared block during the use, which the
					// race detector reports.
					if err := kept[at].Use(); raceEnabled && err == ErrFailed {
						t.Error("a block was freed during a use")
					}
				case what < 50:
					_ = kept[at].Close()
					if err := kept[at].Close(); err != ErrClosed {
						t.Errorf("a second Close returns %v", err)
					}
				case what < 56 && !raceEnabled: // two goroutines have it now
					select {
					case shared <- kept[at]:
					default:
					}
				case what < 56: // only the other goroutine has it now
					select {
					case shared <- kept[at]:
						kept[at] = new(Block)
					default:
					}
				case what < 62:
					select {
					case b := <-shared:
						done := make(chan error)
						go func() { done <- b.Close() }()
						if one, other := b.Close(), <-done; one == nil && other == nil {
							t.Error("two calls of Close succeed")
						}
					default:
					}
				case what == 62 && chance.Intn(1000) == 0:
					runtime.GC()
				}
			}
		}()
	}
	all.Wait()
	close(shared)
	for range shared {
	}
	collect(t, before, 0)
	t.Logf("%d blocks", made.Load())
}

// TestRaceDetectorFindsCloseDuringUse runs itself under the race detector, which must report
// a Close that another goroutine calls during a use.
func TestRaceDetectorFindsCloseDuringUse(t *testing.T) {
	if os.Getenv("GUARDIAN_RACE") != "" {
		waits := func() { time.Sleep(50 * time.Millisecond) }
		with(useCalls, waits, func() {
			for i := 0; i < 10; i++ {
				b, used := New(), make(chan error)
				go func() { used <- b.Use() }()
				time.Sleep(10 * time.Millisecond) // a channel would order the use before Close
				b.Close()
				<-used
			}
		})
		return
	}
	if !raceEnabled {
		t.Skip("needs -race")
	}
	child := exec.Command(os.Args[0], "-test.run=^TestRaceDetectorFindsCloseDuringUse$")
	child.Env = append(os.Environ(), "GUARDIAN_RACE=1")
	if out, err := child.CombinedOutput(); err == nil || !strings.Contains(string(out), "DATA RACE") {
		t.Errorf("the detector finds nothing: %v, %s", err, out)
	}
}

func TestVetFindsCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copies").CombinedOutput()
	if err == nil || strings.Count(string(out), "copies lock value") != 1 {
		t.Errorf("vet returns %v: %s", err, out)
	}
}

// TestExampleIsShort checks that what a reader copies has at most 35 lines, without comments.
func TestExampleIsShort(t *testing.T) {
	text, err := os.ReadFile("guardian.go")
	if err != nil {
		t.Fatal(err)
	}
	declarations := string(text)[strings.Index(string(text), "\ntype Block"):]
	if lines := regexp.MustCompile(`(?m)^\s*[^/\s].*$`).FindAllString(declarations, -1); len(lines) > 35 {
		t.Errorf("%d lines", len(lines))
	}
}

// mutations are mistakes in the example: pairs of text and its replacement. Each must fail a
// test, or not build.
var mutations = []struct {
	what, fails string
	edits       []string
}{
	{"free clears the pointer after it calls C", "TestPanicInFree", []string{
		"atomic.SwapPointer(&g.block, nil); block != nil {\n\t\treturn check(C.block_free((*C.block)(block)))",
		"atomic.LoadPointer(&g.block); block != nil {\n\t\terr := check(C.block_free((*C.block)(block)))\n\t\tatomic.StorePointer(&g.block, nil)\n\t\treturn err",
	}},
	{"a use does not keep the block", "TestUseKeepsTheBlock", []string{"\t\tdefer runtime.KeepAlive(b)\n", ""}},
	{"the finalizer puts its guardian back", "initialization cycle", []string{
		"block != nil {\n\t\treturn", "block != nil {\n\t\tdefer guardians.Put(g)\n\t\treturn",
	}},
	{"a guardian is a tiny object", "TestForgottenBlocksAreFreed", []string{
		"\tblock unsafe.Pointer // *C.block, nil in the pool\n\t_     [24]byte\n", "\tblock uintptr\n",
		"atomic.SwapPointer(&g.block, nil); block != nil", "atomic.SwapUintptr(&g.block, 0); block != 0",
		"(*C.block)(block)", "(*C.block)(unsafe.Pointer(block))",
		"atomic.StorePointer(&g.block, unsafe.Pointer(block))", "atomic.StoreUintptr(&g.block, uintptr(unsafe.Pointer(block)))",
		"(*C.block)(g.block)", "(*C.block)(unsafe.Pointer(g.block))",
	}},
	{"a guardian refers to its block", "TestForgottenBlocksAreFreed", []string{
		"[24]byte\n", "[16]byte\n\towner *Block\n",
		"\tb.guardian.Store(g)\n", "\tg.owner = b\n\tb.guardian.Store(g)\n",
	}},
	{"guardians are not used again", "TestClosedBlocksAreFreedAtOnce", []string{"\t\tdefer guardians.Put(g)\n", ""}},
	{"guardians have no finalizer", "TestForgottenBlocksAreFreed", []string{"\truntime.SetFinalizer(g, (*guardian).free)\n", "\t_ = runtime.SetFinalizer\n"}},
	{"two calls of Close may free", "TestStress", []string{
		"if g := b.guardian.Swap(nil); g != nil {", "if g := b.guardian.Load(); g != nil {\n\t\truntime.Gosched()\n\t\tb.guardian.Store(nil)",
	}},
}

// TestTestsFindMistakes runs the other tests with each mistake in the example.
func TestTestsFindMistakes(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("builds the package several times")
	}
	text, err := os.ReadFile("guardian.go")
	if err != nil {
		t.Fatal(err)
	}
	original, err := filepath.Abs("guardian.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		mistaken := string(text)
		for i := 0; i < len(m.edits); i += 2 {
			if strings.Count(mistaken, m.edits[i]) != 1 {
				t.Fatalf("%s: %q does not occur exactly once", m.what, m.edits[i])
			}
			mistaken = strings.Replace(mistaken, m.edits[i], m.edits[i+1], 1)
		}
		folder := t.TempDir()
		file, overlay := filepath.Join(folder, "guardian.go"), filepath.Join(folder, "overlay.json")
		replaced, err := json.Marshal(map[string]map[string]string{"Replace": {original: file}})
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{file: []byte(mistaken), overlay: replaced} {
			if err := os.WriteFile(name, content, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("go", "test", "-vet=off", "-short", "-timeout=120s", "-overlay="+overlay,
			"-run=^Test(Forgotten|Closed|Pooled|Failing|Panic|Use|CloseAfter|Stress)", ".").CombinedOutput()
		if err == nil || !strings.Contains(string(out), m.fails) {
			t.Errorf("%s: %s does not fail: %v, %s", m.what, m.fails, err, out)
		}
	}
}
