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

// Config says how hard.
type Config struct {
	Rounds        int
	Registrations int // cleanups and finalizers in a round
	Workers       int
	Seed          uint64
	Tiny          bool // objects that share an allocation, too
	Log           io.Writer
}

// Report is what came of it.
type Report struct {
	Objects, Registrations, Ran int64
	Collections                 uint32
	// Unrun is of how many dropped objects a cleanup or finalizer had not run when
	// the round ended, and Undead how many weak pointers still gave one, of all
	// rounds. Unfreed is how many objects the memory profile counted as in use, the
	// most of any round.
	Unrun, Undead, Unfreed int
	// Wrong is what must never be, a line each. It is empty if all is well.
	Wrong string
}

// Tolerated is how many objects may be left of so many rounds, to a word on a stack
// or in a register that looks like a pointer to them: a few of millions.
func Tolerated(rounds int) int { return 3 + rounds/50 }

func (r Report) String() string {
	return fmt.Sprintf("%d objects, %d cleanups and finalizers, %d ran, %d collections; "+
		"left of dropped objects: %d with what did not run, %d weak pointers, %d in the profile",
		r.Objects, r.Registrations, r.Ran, r.Collections, r.Unrun, r.Undead, r.Unfreed)
}

// Run goes through the rounds, up to one that shows a fault. It changes GOMAXPROCS and
// GOGC meanwhile.
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
		watched := l.letGo()
		l.settle()
		undead := 0
		for _, w := range watched {
			if w.weak.Value() != nil {
				undead++
			}
		}
		unfreed := profiled(&wrong)
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
			break // the rest would not make it good
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
		kind := objectKind(len(l.commons) % 2)
		size := sizes[kind][len(l.commons)/2%12]
		l.commons = append(l.commons, &common{thing: l.newThing(kind, size)})
	}
	// Before there are workers, who would leave no core to one of the two that race, to
	// the collector or to the sweeper.
	first := &worker{ledger: l, chance: rand.New(rand.NewPCG(c.Seed, uint64(l.round))), tiny: c.Tiny}
	first.race(c.Registrations / 1000)
	first.hurry(c.Registrations / 15_000)
	first.alone(c.Registrations / 500)
	for range c.Registrations / 10_000 {
		first.besiege()
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

// mostProcs is the most that GOMAXPROCS is set to.
const mostProcs = 8

// disturb does what the runtime does at other times of its own accord, and what
// looks at its lists.
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
			if null != nil { // it stops the world and walks every list
				debug.WriteHeapDump(null.Fd())
			}
		default:
			runtime.Gosched()
		}
	}
}

// letGo lets go of what no worker holds any more, and returns weak pointers to
// what is dead.
//
//go:noinline
func (l *ledger) letGo() []watch {
	w := &worker{ledger: l, chance: rand.New(rand.NewPCG(0, 0))}
	w.emptyChannels()
	for i := range l.commons {
		l.check(l.commons[i].thing)
		w.drop(&l.commons[i].thing)
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

// settle collects until all has run, or nothing more does.
//
// What waits to run waits on a P, and is not seen while GOMAXPROCS is lower than
// the number of that P (in 1.24 to 1.27, and without mending nothing would be left
// to hold the counts against): all come back first.
func (l *ledger) settle() {
	runtime.GOMAXPROCS(mostProcs)
	w := &worker{ledger: l, chance: rand.New(rand.NewPCG(0, 0))}
	for last, still := -1, 0; still < 8; {
		runtime.GC()
		// Cleanups and finalizers run beside the program; one that is late is waited
		// for again.
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

// profiled returns how many objects the memory profile counts as in use.
func profiled(wrong *findings) int {
	// A profile is of the collection before the last.
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
