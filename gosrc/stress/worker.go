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
	mine   []stoppable // on the commons
	late   []stoppable // of objects that may be dead
	tiny   bool
}

// most is how many things a worker holds.
const most = 3000

func (w *worker) work() {
	for !w.full() {
		switch n := w.chance.IntN(100); {
		case n < 14:
			w.batch()
		case n < 34:
			w.some(func(t *thing) { w.hang(t) })
		case n < 44:
			w.some(func(t *thing) { w.stopOne(t) })
		case n < 52:
			w.some(func(t *thing) { w.check(t) })
		case n < 60:
			w.some(func(t *thing) { w.pin(t); w.hide(t) })
		case n < 66:
			w.some(func(t *thing) { w.unpin(t) })
		case n < 70:
			w.some(w.grow)
		case n < 74:
			w.dropSome()
		case n < 77:
			w.crowd()
		case n < 82:
			w.exchange()
		case n < 94:
			w.onCommons()
		case n < 97:
			w.probeSome()
		case n < 99:
			w.canon()
			w.besiege()
		default:
			runtime.Gosched()
		}
		if len(w.things) > most {
			w.dropAllBut(w.chance.IntN(16))
		}
	}
	w.finish()
}

// some does a thing to a few of those held.
func (w *worker) some(do func(*thing)) {
	for range min(len(w.things), 1+w.chance.IntN(12)) {
		t := w.things[w.chance.IntN(len(w.things))]
		if t.base == nil {
			w.fetch(t)
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
	// The small ones are most of what programs hang things on.
	return kind, of[min(w.chance.IntN(len(of)), w.chance.IntN(len(of)))]
}

// batch makes objects of one class, as many as may fill several spans, and hangs
// the same on all of them: in the order of their addresses, against it, at random.
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
		if between { // objects with nothing on them
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
			// Often the same on all, so that there are spans without any pointer.
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
	case 0: // holes of all widths
		for i, t := range batch {
			if w.chance.IntN(2) == 0 {
				w.drop(&batch[i])
			} else if w.chance.IntN(2) == 0 {
				w.stopAll(t)
			}
		}
		batch = slices.DeleteFunc(batch, func(t *thing) bool { return t == nil })
	case 1: // nothing is left on any, by steps
		w.chance.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		for _, t := range batch {
			w.stopAll(t)
		}
	case 2: // dead at once
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

func (w *worker) hang(t *thing) {
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

// clean adds a cleanup, with an argument of the sort given, or of any.
func (w *worker) clean(t *thing, offset uintptr, sort int) {
	if sort < 0 || sort >= len(attachments) {
		sort = w.chance.IntN(len(attachments))
	}
	key := w.register(t.id, false)
	t.cleanups = append(t.cleanups, stoppable{attachments[sort](t.at(offset), key), key})
	runtime.KeepAlive(t)
}

func (w *worker) watch(t *thing, offset uintptr) {
	one := watch{weak.Make(t.at(offset)), t.id, offset}
	if one.weak.Value() != t.at(offset) {
		w.findings.add("a weak pointer does not give its object, which is held")
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

// finalize sets the finalizer, or takes back the one that is set.
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
			one.handle.Stop() // changes nothing
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

// crowd hangs many things on one object, and takes back some.
func (w *worker) crowd() {
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

// race has two goroutines hang cleanups on the same objects, on each from the same
// moment on. So they often want to write one link at once, which is rare in what the
// workers do: a lock that is not taken could go unnoticed.
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
				// Whoever yields at once gets no core of its own.
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

// A gift is what an object is about to be given: a cleanup with what it needs in the
// function or in the argument, or a finalizer.
type gift struct {
	thing *thing
	key   uint64
	clean func(struct{})
	arg   *private
	final func(*byte)
}

func (w *worker) newGift() gift {
	final := w.chance.IntN(3) == 0
	g := gift{thing: w.newThing(pointers, sizes[pointers][w.chance.IntN(9)])}
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

// hurry hangs things on objects when the collector has already looked at what hangs
// there, and not yet at the stack of the one who does. On that stack alone is what is
// given, and then in a record alone that is not looked at again: adding the record
// has to mark it, and for a finalizer what the object refers to. That is an instant,
// which the workers hardly ever meet.
func (w *worker) hurry(times int) {
	// Stacks are looked at in turn, and these take a while.
	var parked sync.WaitGroup
	leave := make(chan struct{})
	for range 64 {
		parked.Add(1)
		go func() {
			defer parked.Done()
			deep(100, w, leave)
		}()
	}
	done := make(chan struct{})
	go func() { // most of them come before this one's then
		defer close(done)
		for range times {
			w.hurryOnce()
		}
	}()
	<-done
	close(leave)
	parked.Wait()
}

func (w *worker) hurryOnce() {
	var gifts [150]gift // neither this nor what it holds goes anywhere else
	var kept [len(gifts)]*thing
	for i := range gifts {
		gifts[i] = w.newGift()
		if w.chance.IntN(2) == 0 {
			kept[i] = gifts[i].thing
		}
	}
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	before := counted(sample)
	collected := make(chan struct{})
	go func() {
		runtime.GC()
		close(collected)
	}()
	for counted(sample) == before { // the world is stopped once before marking
	}
	for i := range gifts {
		at := gifts[i].thing.at(0)
		switch {
		case gifts[i].final != nil:
			runtime.SetFinalizer(at, gifts[i].final)
		case gifts[i].clean != nil:
			runtime.AddCleanup(at, gifts[i].clean, struct{}{})
		default:
			runtime.AddCleanup(at, (*private).run, gifts[i].arg)
		}
		if kept[i] == nil {
			w.subjects[gifts[i].thing.id].held.Store(false)
		}
		gifts[i] = gift{} // not by a function, which would tell the collector
	}
	<-collected
	for i := range kept {
		if kept[i] != nil {
			w.check(kept[i])
			w.drop(&kept[i])
		}
	}
}

// deep waits far down a stack.
func deep(calls int, w *worker, leave <-chan struct{}) {
	if calls == 0 {
		<-leave
	} else {
		deep(calls-1, w, leave)
	}
	runtime.KeepAlive(w)
}

// counted is how many values a histogram holds.
func counted(sample []metrics.Sample) (n uint64) {
	metrics.Read(sample)
	for _, count := range sample[0].Value.Float64Histogram().Counts {
		n += count
	}
	return n
}

// pin pins an object once more.
func (w *worker) pin(t *thing) {
	if len(t.pins) == 0 || w.chance.IntN(3) > 0 {
		t.pins = append(t.pins, new(runtime.Pinner))
	}
	p := t.pins[w.chance.IntN(len(t.pins))]
	for range 1 + w.chance.IntN(3) {
		p.Pin(t.at(w.offset(t)))
	}
}

// hide leaves a pinned object to its pins alone, now and then.
func (w *worker) hide(t *thing) {
	if w.chance.IntN(3) == 0 {
		t.away = uintptr(t.base)
		t.base = nil
	}
}

// fetch takes the pointer back, as C would give it: from a number.
func (w *worker) fetch(t *thing) {
	t.base = *(*unsafe.Pointer)(unsafe.Pointer(&t.away))
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

// grow makes an object that an older one refers to, in the place of another.
func (w *worker) grow(t *thing) {
	if t.kind != pointers || t.size < wordSize*(link+1) {
		return
	}
	// The record first: cut off, the one that was there may die at once.
	w.cutOff(t)
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

func (w *worker) cutOff(t *thing) {
	if child := w.subjects[t.id].child.Load(); child != 0 {
		w.subjects[child].parent.Store(0)
		t.slots()[link] = nil
	}
}

// drop lets an object go. The thing is where it can be reached until that is on
// record.
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

// dropAllBut keeps every n-th, so that spans stay for the sake of one object.
func (w *worker) dropAllBut(n int) {
	for i := range w.things {
		if n == 0 || i%n != 0 {
			w.drop(&w.things[i])
		}
	}
	w.things = slices.DeleteFunc(w.things, func(t *thing) bool { return t == nil })
}

// exchange gives a thing to another worker, and takes what is there.
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

// onCommons hangs things on what all workers have in hand, and takes them back.
func (w *worker) onCommons() {
	for range 1 + w.chance.IntN(40) {
		c := w.commons[w.chance.IntN(len(w.commons))]
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

// canon is what package unique does with weak pointers and cleanups.
func (w *worker) canon() {
	for range 100 {
		text := strconv.Itoa(w.chance.IntN(5000))
		a, b := unique.Make(text), unique.Make(strconv.Itoa(0)[:0]+text)
		if a != b || a.Value() != text {
			w.findings.add("two unique handles of a value are not equal")
		}
	}
}

// besiege hangs things on the survivors of spans that are being swept: most of what
// hangs on their objects is being taken off at the time.
func (w *worker) besiege() {
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
	// From the end of marking on, spans are swept: by the collector, beside the
	// program, and by whoever wants something of one.
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

// collections counts those whose marking is done.
func collections() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// finish lets all go but what is hung on the commons.
func (w *worker) finish() {
	for i, one := range w.mine {
		if i%2 == 0 {
			one.handle.Stop()
			w.stop(one.key, stopped)
		}
	}
	w.dropAllBut(0)
}
