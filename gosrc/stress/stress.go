//go:build go1.26

package stress

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"time"
)

// Config sets how much work Run does.
type Config struct {
	Rounds        int
	Registrations int // cleanups and finalizers in a round
	Workers       int
	Seed          uint64
	Tiny          bool // also use objects that share an allocation
	Log           io.Writer
}

// Report is the result of Run.
type Report struct {
	Objects, Registrations, Ran int64
	Collections                 uint32
	// Unrun is the number of dropped objects with a cleanup or finalizer that had not
	// run at the end of its round, summed over all rounds. Undead is the number of weak
	// pointers that still returned a dropped object, also summed. Unfreed is the number
	// of objects that the memory profile counted as in use, the maximum of all rounds.
	Unrun, Undead, Unfreed int
	// Wrong lists the broken promises, one per line. It is empty if there are none.
	Wrong string
}

// Tolerated returns how many objects may be left after that many rounds. A word on a stack
// or in a register may look like a pointer and keep an object alive; this affects a few
// objects out of millions.
func Tolerated(rounds int) int { return 3 + rounds/50 }

func (r Report) String() string {
	return fmt.Sprintf("%d objects, %d cleanups and finalizers, %d ran, %d collections; "+
		"left of dropped objects: %d with what did not run, %d weak pointers, %d in the profile",
		r.Objects, r.Registrations, r.Ran, r.Collections, r.Unrun, r.Undead, r.Unfreed)
}

// Run runs the rounds and stops after the first that shows a fault. It changes GOMAXPROCS
// and GOGC, and restores them before it returns.
func Run(c Config) Report {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	var report Report
	var wrong findings
	for round := range uint32(c.Rounds) {
		l := newLedger(round, c, &wrong)
		ledgers.Store(round, l)
		if round > 2 {
			ledgers.Delete(round - 3)
		}
		c.round(l)
		watched := l.dropShared()
		l.settle()
		undead := 0
		for _, w := range watched {
			if w.weak.Value() != nil {
				undead++
			}
		}
		unfreed := profiledInUse(&wrong)
		report.Objects += int64(l.objects.Load()) - 1
		report.Registrations += int64(l.registered.Load())
		report.Ran += l.ran.Load()
		report.Unrun += l.outstanding()
		report.Undead += undead
		report.Unfreed = max(report.Unfreed, unfreed)
		if c.Log != nil {
			fmt.Fprintf(c.Log, "round %d: %d objects, %d registered, %d ran, %d unrun, %d undead, %d unfreed\n",
				round, l.objects.Load()-1, l.registered.Load(), l.ran.Load(), l.outstanding(), undead, unfreed)
		}
		if wrong.String() != "" || max(report.Unrun, report.Undead, report.Unfreed) > Tolerated(c.Rounds) {
			break // more rounds cannot make up for it
		}
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	report.Collections = stats.NumGC
	report.Wrong = wrong.String()
	return report
}

func (c Config) round(l *ledger) {
	for range 200 {
		kind := objectKind(len(l.shared) % 2)
		size := sizes[kind][len(l.shared)/2%12]
		l.shared = append(l.shared, &sharedObject{thing: l.newThing(kind, size)})
	}
	// Run these before the workers start. Workers would leave no CPU for the racing
	// goroutines, the collector or the sweeper.
	first := &worker{ledger: l, chance: rand.New(rand.NewPCG(c.Seed, uint64(l.round))), tiny: c.Tiny}
	first.race(c.Registrations / 1000)
	first.attachDuringMark(c.Registrations / 15_000)
	first.attachSingleRoots(c.Registrations / 500)
	for range c.Registrations / 10_000 {
		first.attachDuringSweep()
	}
	first.dropAllBut(0)
	var workers, disturbers sync.WaitGroup
	done := make(chan struct{})
	disturbers.Add(1)
	go func() {
		defer disturbers.Done()
		disturb(rand.New(rand.NewPCG(c.Seed, uint64(l.round))), done)
	}()
	for i := range c.Workers {
		workers.Add(1)
		go func() {
			defer workers.Done()
			w := &worker{
				ledger: l,
				chance: rand.New(rand.NewPCG(c.Seed+uint64(l.round)<<32, uint64(i))),
				tiny:   c.Tiny,
			}
			w.work()
		}()
	}
	workers.Wait()
	close(done)
	disturbers.Wait()
}

// mostProcs is the highest value that GOMAXPROCS is set to.
const mostProcs = 8

// disturb calls runtime functions at random times until done is closed: those for what
// the runtime also does on its own, and those that read its lists.
func disturb(chance *rand.Rand, done <-chan struct{}) {
	all := metrics.All()
	samples := make([]metrics.Sample, len(all))
	for i := range all {
		samples[i].Name = all[i].Name
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		defer null.Close()
	}
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(chance.IntN(3000)) * time.Microsecond):
		}
		switch n := chance.IntN(40); {
		case n < 16:
			runtime.GC()
		case n < 18:
			debug.FreeOSMemory()
		case n < 26:
			runtime.GOMAXPROCS(1 + chance.IntN(mostProcs))
		case n < 32:
			debug.SetGCPercent([]int{5, 20, 50, 100, 400}[chance.IntN(5)])
		case n < 34:
			metrics.Read(samples)
		case n < 35:
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
		case n < 37:
			runtime.MemProfile(make([]runtime.MemProfileRecord, 5000), true)
		case n < 38:
			if null != nil { // a heap dump stops the world and walks every list
				debug.WriteHeapDump(null.Fd())
			}
		default:
			runtime.Gosched()
		}
	}
}

// dropShared drops the shared objects and those in channels, after the workers are done.
// It returns the weak pointers of watched, whose objects are then all dead.
//
//go:noinline
func (l *ledger) dropShared() []watch {
	w := &worker{ledger: l, chance: rand.New(rand.NewPCG(0, 0))}
	w.emptyChannels()
	for i := range l.shared {
		l.check(l.shared[i].thing)
		w.drop(&l.shared[i].thing)
	}
	var watched []watch
	for {
		select {
		case one := <-l.watched:
			watched = append(watched, one)
			continue
		default:
		}
		return watched
	}
}

func (w *worker) emptyChannels() {
	for {
		select {
		case t := <-w.handed:
			w.drop(&t)
			continue
		case t := <-w.revived:
			w.drop(&t)
			continue
		default:
		}
		return
	}
}

// settle runs GC cycles until all cleanups and finalizers have run, or no more run.
//
// First it restores all Ps. In Go 1.25 to 1.27, cleanups remain queued on a P that
// GOMAXPROCS removed, and would be counted as not run: see overlay/upstream/queued.md.
func (l *ledger) settle() {
	runtime.GOMAXPROCS(mostProcs)
	w := &worker{ledger: l, chance: rand.New(rand.NewPCG(0, 0))}
	for last, still := -1, 0; still < 8; {
		runtime.GC()
		// Cleanups and finalizers run concurrently. The loop waits again for late ones.
		time.Sleep(2 * time.Millisecond)
		w.emptyChannels()
		left := l.outstanding()
		if left == 0 && still > 2 {
			return
		}
		if left == last {
			still++
		} else {
			still = 0
		}
		last = left
	}
}

// profiledInUse returns how many objects of this package the memory profile counts as in
// use.
func profiledInUse(wrong *findings) int {
	// The profile lags up to two GC cycles behind.
	runtime.GC()
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 10_000)
	n, ok := runtime.MemProfile(records, true)
	if !ok {
		records = make([]runtime.MemProfileRecord, 2*n)
		n, _ = runtime.MemProfile(records, true)
	}
	inUse := 0
	for _, r := range records[:n] {
		if r.FreeObjects > r.AllocObjects {
			wrong.add("the memory profile counts more objects freed than allocated")
		}
		if ours(r.Stack()) {
			inUse += int(r.InUseObjects())
		}
	}
	return inUse
}

func ours(stack []uintptr) bool {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, "stress.allocate") {
			return true
		}
		if !more {
			return false
		}
	}
}
