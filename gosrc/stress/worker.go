//go:build go1.26

package stress

import (
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"unique"
	"unsafe"
	"weak"
)

type worker struct {
	*ledger
	chance *rand.Rand
	things []*thing
	mine   []stoppable // cleanups on shared objects
	late   []stoppable // cleanups of dropped objects, to be stopped late
	tiny   bool
}

// most is the number of things above which a worker drops most of them.
const most = 3000

func (w *worker) work() {
	for !w.full() {
		switch n := w.chance.IntN(100); {
		case n < 14:
			w.batch()
		case n < 34:
			w.some(func(t *thing) { w.attach(t) })
		case n < 44:
			w.some(func(t *thing) { w.stopOne(t) })
		case n < 52:
			w.some(func(t *thing) { w.check(t) })
		case n < 60:
			w.some(func(t *thing) { w.pin(t); w.hide(t) })
		case n < 66:
			w.some(func(t *thing) { w.unpin(t) })
		case n < 70:
			w.some(w.addChild)
		case n < 74:
			w.dropSome()
		case n < 77:
			w.attachMany()
		case n < 82:
			w.exchange()
		case n < 94:
			w.attachToShared()
		case n < 97:
			w.probeSome()
		case n < 99:
			w.checkUnique()
			w.attachDuringSweep()
		default:
			runtime.Gosched()
		}
		if len(w.things) > most {
			w.dropAllBut(w.chance.IntN(16))
		}
	}
	w.finish()
}

// some calls do for a few random things of those that w holds.
func (w *worker) some(do func(*thing)) {
	for range min(len(w.things), 1+w.chance.IntN(12)) {
		t := w.things[w.chance.IntN(len(w.things))]
		if t.base == nil {
			w.unhide(t)
		}
		do(t)
		runtime.KeepAlive(t)
	}
}

func (w *worker) newKind() (objectKind, uintptr) {
	kind := objectKind(w.chance.IntN(7) / 3)
	if kind == tiny && !w.tiny {
		kind = pointers
	}
	of := sizes[kind]
	// Prefer small objects, which are those that programs mostly use specials for.
	return kind, of[min(w.chance.IntN(len(of)), w.chance.IntN(len(of)))]
}

// batch makes up to several spans of objects of one size class and adds the same specials
// to all of them: in allocation order, its reverse, descending address order or at random.
func (w *worker) batch() {
	kind, size := w.newKind()
	n := 1 + w.chance.IntN(min(1500, 1+200_000/int(size)))
	if w.chance.IntN(3) > 0 {
		n = 1 + n/8
	}
	batch := make([]*thing, 0, n)
	between := w.chance.IntN(4) == 0
	var idle []unsafe.Pointer
	for range n {
		batch = append(batch, w.newThing(kind, size))
		if between { // objects without specials
			idle = append(idle, allocate(kind, size))
		}
	}
	switch w.chance.IntN(4) {
	case 0:
		slices.Reverse(batch)
	case 1:
		slices.SortFunc(batch, func(a, b *thing) int { return int(uintptr(b.base)) - int(uintptr(a.base)) })
	case 2:
		w.chance.Shuffle(n, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	}
	recipe := w.chance.IntN(16)
	attach := w.chance.IntN(2 * len(attachments))
	for _, t := range batch {
		if recipe&1 != 0 || recipe == 0 {
			// Often use one attachment for all, so that some spans have no roots.
			w.clean(t, 0, attach)
		}
		if recipe&2 != 0 && w.chance.IntN(3) == 0 {
			w.finalize(t)
		}
		if recipe&4 != 0 {
			w.watch(t, 0)
		}
		if recipe&8 != 0 {
			w.clean(t, w.offset(t), -1)
		}
	}
	switch w.chance.IntN(6) {
	case 0: // leave gaps of all sizes
		for i, t := range batch {
			if w.chance.IntN(2) == 0 {
				w.drop(&batch[i])
			} else if w.chance.IntN(2) == 0 {
				w.stopAll(t)
			}
		}
		batch = slices.DeleteFunc(batch, func(t *thing) bool { return t == nil })
	case 1: // remove all specials in random order
		w.chance.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		for _, t := range batch {
			w.stopAll(t)
		}
	case 2: // drop all at once
		for i := range batch {
			w.drop(&batch[i])
		}
		batch = nil
	}
	w.things = append(w.things, batch...)
	runtime.KeepAlive(idle)
}

func (w *worker) offset(t *thing) uintptr {
	switch w.chance.IntN(4) {
	case 0:
		return 0
	case 1:
		return t.size - 1
	default:
		return uintptr(w.chance.IntN(int(min(t.size, 64))))
	}
}

func (w *worker) attach(t *thing) {
	switch w.chance.IntN(6) {
	case 0, 1:
		w.clean(t, 0, -1)
	case 2:
		w.clean(t, w.offset(t), -1)
	case 3:
		w.watch(t, w.offset(t))
	case 4:
		w.watch(t, 0)
	case 5:
		w.finalize(t)
	}
}

// clean adds a cleanup with attachments[attachment], or with a random one if that is out
// of range.
func (w *worker) clean(t *thing, offset uintptr, attachment int) {
	if attachment < 0 || attachment >= len(attachments) {
		attachment = w.chance.IntN(len(attachments))
	}
	key := w.register(t.id, false)
	t.cleanups = append(t.cleanups, stoppable{attachments[attachment](t.at(offset), key), key})
	runtime.KeepAlive(t)
}

func (w *worker) watch(t *thing, offset uintptr) {
	one := watch{weak.Make(t.at(offset)), t.id, offset}
	if one.weak.Value() != t.at(offset) {
		w.findings.add("a weak pointer does not return its object, which is held")
	}
	t.weaks = append(t.weaks, one)
	if w.chance.IntN(8) == 0 {
		select {
		case w.watched <- one:
		default:
		}
	}
	runtime.KeepAlive(t)
}

// finalize sets a finalizer, or removes the one that is set.
func (w *worker) finalize(t *thing) {
	if t.finalizer != 0 {
		runtime.SetFinalizer(t.at(0), nil)
		w.stop(t.finalizer, stopped)
		t.finalizer = 0
		runtime.KeepAlive(t)
		return
	}
	t.finalizer = w.register(t.id, true)
	var weaks []weak.Pointer[byte]
	for _, one := range t.weaks {
		weaks = append(weaks, one.weak)
	}
	runtime.SetFinalizer(t.at(0), finalizers[w.chance.IntN(len(finalizers))](t.finalizer, weaks))
	runtime.KeepAlive(t)
}

func (w *worker) stopOne(t *thing) {
	if n := len(t.cleanups); n > 0 {
		i := w.chance.IntN(n)
		one := t.cleanups[i]
		t.cleanups[i] = t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		one.handle.Stop()
		w.stop(one.key, stopped)
		if w.chance.IntN(8) == 0 {
			one.handle.Stop() // a second Stop has no effect
		}
	}
	runtime.KeepAlive(t)
}

func (w *worker) stopAll(t *thing) {
	for len(t.cleanups) > 0 {
		w.stopOne(t)
	}
	if t.finalizer != 0 {
		w.finalize(t)
	}
}

// attachMany adds many specials to one object and removes some.
func (w *worker) attachMany() {
	kind, size := w.newKind()
	t := w.newThing(kind, size)
	for range 1 + w.chance.IntN(150) {
		switch w.chance.IntN(8) {
		case 0:
			w.stopOne(t)
		case 1:
			w.watch(t, w.offset(t))
		case 2:
			w.clean(t, w.offset(t), -1)
		case 3:
			w.pin(t)
		default:
			w.clean(t, 0, -1)
		}
	}
	w.check(t)
	w.things = append(w.things, t)
}

// race has two goroutines add cleanups to the same objects, starting on each object at the
// same moment. So they often write one link at the same time, which workers rarely do,
// and a missing lock is noticed.
func (w *worker) race(objects int) {
	const each = 12
	things := make([]*thing, objects)
	keys := [2][][each]uint64{}
	for i := range things {
		things[i] = w.newThing(w.newKind())
	}
	for side := range keys {
		keys[side] = make([][each]uint64, objects)
		for i, t := range things {
			for j := range keys[side][i] {
				keys[side][i][j] = w.register(t.id, false)
			}
		}
	}
	var arrived atomic.Int64
	var racing sync.WaitGroup
	for _, mine := range keys {
		racing.Add(1)
		go func() {
			defer racing.Done()
			for i, t := range things {
				arrived.Add(1)
				// Spin for long: a goroutine that yields at once gets no CPU of its own.
				for spun := 1; arrived.Load() < int64(2*(i+1)); spun++ {
					if spun%100_000 == 0 {
						runtime.Gosched()
					}
				}
				for j := range mine[i] {
					attachments[0](t.at(0), mine[i][j])
				}
			}
		}()
	}
	racing.Wait()
	for i := range things {
		w.check(things[i])
		w.drop(&things[i])
	}
}

// A pendingSpecial is a special that is about to be added: a finalizer, or a cleanup whose
// key is in its function or in its argument.
type pendingSpecial struct {
	thing *thing
	key   uint64
	clean func(struct{})
	arg   *private
	final func(*byte)
}

func (w *worker) newPending() pendingSpecial {
	final := w.chance.IntN(3) == 0
	g := pendingSpecial{thing: w.newThing(pointers, sizes[pointers][w.chance.IntN(9)])}
	g.key = w.register(g.thing.id, final)
	p := newPrivate(g.key)
	switch {
	case final:
		g.final = func(at *byte) { finalize(at, p.key, p.seal()) }
	case w.chance.IntN(2) == 0:
		g.clean = func(struct{}) { p.run() }
	default:
		g.arg = p
	}
	return g
}

// attachDuringMark adds specials after the collector has marked the roots in the objects'
// spans and before it has scanned the stack of this goroutine. Only that stack refers to
// the argument or closure, and afterwards only the record, which is not scanned again. So
// adding the record must mark it, and for a finalizer also what the object refers to.
// Workers hardly ever add a special in this short interval.
func (w *worker) attachDuringMark(times int) {
	// The collector scans stacks one after the other. These take a while.
	var parked sync.WaitGroup
	leave := make(chan struct{})
	for range 64 {
		parked.Add(1)
		go func() {
			defer parked.Done()
			parkDeep(100, w, leave)
		}()
	}
	done := make(chan struct{})
	go func() { // a new goroutine, as most of those stacks are then scanned before its own
		defer close(done)
		for range times {
			w.attachDuringMarkOnce()
		}
	}()
	<-done
	close(leave)
	parked.Wait()
}

func (w *worker) attachDuringMarkOnce() {
	var pending [150]pendingSpecial // must not escape: only this stack may refer to these
	var kept [len(pending)]*thing
	for i := range pending {
		pending[i] = w.newPending()
		if w.chance.IntN(2) == 0 {
			kept[i] = pending[i].thing
		}
	}
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	before := histogramCount(sample)
	collected := make(chan struct{})
	go func() {
		runtime.GC()
		close(collected)
	}()
	for histogramCount(sample) == before { // the world stops once before marking
	}
	for i := range pending {
		at := pending[i].thing.at(0)
		switch {
		case pending[i].final != nil:
			runtime.SetFinalizer(at, pending[i].final)
		case pending[i].clean != nil:
			runtime.AddCleanup(at, pending[i].clean, struct{}{})
		default:
			runtime.AddCleanup(at, (*private).run, pending[i].arg)
		}
		if kept[i] == nil {
			w.subjects[pending[i].thing.id].held.Store(false)
		}
		pending[i] = pendingSpecial{} // not in a function: its write barrier would mark the pointers
	}
	<-collected
	for i := range kept {
		if kept[i] != nil {
			w.check(kept[i])
			w.drop(&kept[i])
		}
	}
}

// parkDeep waits at the bottom of a deep call stack.
func parkDeep(calls int, w *worker, leave <-chan struct{}) {
	if calls == 0 {
		<-leave
	} else {
		parkDeep(calls-1, w, leave)
	}
	runtime.KeepAlive(w)
}

// histogramCount returns the number of values in a histogram.
func histogramCount(sample []metrics.Sample) (n uint64) {
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}

// pin pins an object one to three more times.
func (w *worker) pin(t *thing) {
	if len(t.pins) == 0 || w.chance.IntN(3) > 0 {
		t.pins = append(t.pins, new(runtime.Pinner))
	}
	p := t.pins[w.chance.IntN(len(t.pins))]
	for range 1 + w.chance.IntN(3) {
		p.Pin(t.at(w.offset(t)))
	}
}

// hide sometimes drops the pointer to a pinned object, so that only the pins hold it.
func (w *worker) hide(t *thing) {
	if w.chance.IntN(3) == 0 {
		t.address = uintptr(t.base)
		t.base = nil
	}
}

// unhide restores the pointer from its address, as if C returned it.
func (w *worker) unhide(t *thing) {
	t.base = *(*unsafe.Pointer)(unsafe.Pointer(&t.address))
	w.check(t)
}

func (w *worker) unpin(t *thing) {
	if n := len(t.pins); n > 0 {
		i := w.chance.IntN(n)
		p := t.pins[i]
		t.pins[i] = t.pins[n-1]
		t.pins = t.pins[:n-1]
		p.Unpin()
		w.check(t)
	}
}

// addChild makes a new object that t refers to, instead of its current child.
func (w *worker) addChild(t *thing) {
	if t.kind != pointers || t.size < wordSize*(link+1) {
		return
	}
	// Update the records first: the old child may die as soon as it is detached.
	w.detachChild(t)
	kind, size := w.newKind()
	child := w.newThing(kind, size)
	w.subjects[child.id].parent.Store(t.id)
	w.subjects[t.id].child.Store(child.id)
	t.slots()[link] = child.base
	w.clean(child, w.offset(child), -1)
	if w.chance.IntN(2) == 0 {
		w.finalize(child)
	}
	if w.chance.IntN(2) == 0 {
		w.things = append(w.things, child)
	} else {
		w.drop(&child)
	}
}

func (w *worker) detachChild(t *thing) {
	if child := w.subjects[t.id].child.Load(); child != 0 {
		w.subjects[child].parent.Store(0)
		t.slots()[link] = nil
	}
}

// drop drops an object. *t keeps it reachable until the ledger records that it is no
// longer held.
func (w *worker) drop(t **thing) {
	w.subjects[(*t).id].held.Store(false)
	if n := len((*t).cleanups); n > 0 && w.chance.IntN(16) == 0 {
		w.late = append(w.late, (*t).cleanups[w.chance.IntN(n)])
	}
	for _, p := range (*t).pins {
		p.Unpin()
	}
	*t = nil
}

func (w *worker) dropSome() {
	if len(w.things) == 0 {
		return
	}
	from := w.chance.IntN(len(w.things))
	to := min(len(w.things), from+1+w.chance.IntN(200))
	for i := from; i < to; i++ {
		w.drop(&w.things[i])
	}
	w.things = slices.Delete(w.things, from, to)
	for _, one := range w.late {
		w.stop(one.key, raced)
		one.handle.Stop()
	}
	w.late = w.late[:0]
}

// dropAllBut drops all things except every n-th, so that single objects keep their spans
// in use. If n is 0 it drops all.
func (w *worker) dropAllBut(n int) {
	for i := range w.things {
		if n == 0 || i%n != 0 {
			w.drop(&w.things[i])
		}
	}
	w.things = slices.DeleteFunc(w.things, func(t *thing) bool { return t == nil })
}

// exchange hands things to other workers, and takes handed or resurrected ones.
func (w *worker) exchange() {
	for range 8 {
		if n := len(w.things); n > 0 {
			select {
			case w.handed <- w.things[n-1]:
				w.things = slices.Delete(w.things, n-1, n)
			default:
			}
		}
		select {
		case t := <-w.handed:
			w.things = append(w.things, t)
		case t := <-w.revived:
			w.check(t)
			w.things = append(w.things, t)
		default:
		}
	}
}

// attachToShared adds cleanups to objects that all workers share, and stops some of them.
func (w *worker) attachToShared() {
	for range 1 + w.chance.IntN(40) {
		c := w.shared[w.chance.IntN(len(w.shared))]
		if n := len(w.mine); n > 300 || n > 0 && w.chance.IntN(2) == 0 {
			i := w.chance.IntN(n)
			w.mine[i].handle.Stop()
			w.stop(w.mine[i].key, stopped)
			w.mine[i] = w.mine[n-1]
			w.mine = w.mine[:n-1]
		} else {
			key := w.register(c.thing.id, false)
			at := c.thing.at(w.offset(c.thing))
			w.mine = append(w.mine, stoppable{attachments[w.chance.IntN(len(attachments))](at, key), key})
		}
		switch w.chance.IntN(6) {
		case 0:
			c.canonical(w.findings)
		case 1:
			var p runtime.Pinner
			for range 1 + w.chance.IntN(4) {
				p.Pin(c.thing.at(w.offset(c.thing)))
			}
			w.check(c.thing)
			p.Unpin()
		}
	}
}

func (w *worker) probeSome() {
	for range 20 {
		select {
		case one := <-w.watched:
			w.probe(one)
			select {
			case w.watched <- one:
			default:
			}
		default:
		}
	}
}

// checkUnique tests package unique, which uses weak pointers and cleanups.
func (w *worker) checkUnique() {
	for range 100 {
		text := strconv.Itoa(w.chance.IntN(5000))
		a, b := unique.Make(text), unique.Make(strconv.Itoa(0)[:0]+text)
		if a != b || a.Value() != text {
			w.findings.add("two unique handles of one value are not equal")
		}
	}
}

// attachDuringSweep adds specials to the surviving objects of spans that are being swept,
// while the sweeper removes most of the records in these spans.
func (w *worker) attachDuringSweep() {
	kind, size := plain, sizes[plain][w.chance.IntN(7)]
	if w.chance.IntN(2) == 0 {
		kind, size = pointers, sizes[pointers][w.chance.IntN(9)]
	}
	var survivors []*thing
	for i := range 3000 {
		t := w.newThing(kind, size)
		w.clean(t, 0, -1)
		if i%50 == 7 {
			survivors = append(survivors, t)
		} else {
			w.drop(&t)
		}
	}
	// After marking, spans are swept by the collector, by the background sweeper, and by
	// goroutines that need a span.
	swept := make(chan struct{})
	go func() {
		runtime.GC()
		close(swept)
	}()
	before := collections()
	for collections() == before {
		runtime.Gosched()
	}
	for range 20 {
		for _, t := range survivors {
			w.clean(t, 0, w.chance.IntN(2*len(attachments)))
			if len(t.cleanups) > 3 {
				w.stopOne(t)
			}
		}
	}
	<-swept
	w.things = append(w.things, survivors...)
}

// collections returns the number of GC cycles whose mark phase is done.
func collections() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// finish stops half of the cleanups on shared objects, and drops all things.
func (w *worker) finish() {
	for i, one := range w.mine {
		if i%2 == 0 {
			one.handle.Stop()
			w.stop(one.key, stopped)
		}
	}
	w.dropAllBut(0)
}
