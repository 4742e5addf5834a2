//go:build go1.26

package stress

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// mix makes of a number one that no other is likely to be by mistake.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A subject is what is known of one object. Neither it nor a registration refers
// to the object: the collector does not even look into a ledger.
type subject struct {
	front uint64
	size  uintptr
	kind  objectKind
	// held is set from before the object can be reached until just before the
	// last that holds it lets go.
	held      atomic.Bool
	finalizer atomic.Bool   // one is set and has not run
	cleaned   atomic.Bool   // a cleanup has run
	parent    atomic.Uint32 // the object that refers to this one; 0 is none
	child     atomic.Uint32 // the object that this one refers to
	back      uint64
}

type state uint32

const (
	armed   state = iota
	stopped       // while the object was held: it must not run
	raced         // stopped when the object may have been dead: it may have run
)

// A registration is one cleanup or finalizer.
type registration struct {
	front   uint64
	subject uint32
	final   bool
	state   atomic.Uint32
	runs    atomic.Int32
	back    uint64
}

// A ledger is the record of a round. Its slices never grow, so that what is in
// them can be had from any goroutine.
type ledger struct {
	round         uint32
	limit         uint32
	subjects      []subject
	registrations []registration
	objects       atomic.Uint32 // how many subjects are in use; the first is none
	registered    atomic.Uint32
	ran           atomic.Int64
	findings      *findings

	commons []*common
	handed  chan *thing
	revived chan *thing
	watched chan watch
}

func newLedger(round uint32, c Config, f *findings) *ledger {
	l := &ledger{
		round:         round,
		limit:         uint32(c.Registrations),
		subjects:      make([]subject, c.Registrations+c.Workers*margin),
		registrations: make([]registration, c.Registrations+c.Workers*margin),
		findings:      f,
		handed:        make(chan *thing, 64),
		revived:       make(chan *thing, 256),
		watched:       make(chan watch, 4096),
	}
	l.objects.Store(1)
	return l
}

// full says that the round should end.
func (l *ledger) full() bool { return l.objects.Load() > l.limit || l.registered.Load() > l.limit }

// margin is more than what a worker enters until it asks.
const margin = 6000

func (l *ledger) seal(index uint32) uint64 { return mix(uint64(l.round)<<32 | uint64(index)) }

func (l *ledger) enter(kind objectKind, size uintptr) uint32 {
	id := l.objects.Add(1) - 1
	s := &l.subjects[id]
	s.front, s.back = l.seal(id), ^l.seal(id)
	s.kind, s.size = kind, size
	s.held.Store(true)
	return id
}

// register returns the registration's key: the round and the index in its ledger.
func (l *ledger) register(id uint32, final bool) uint64 {
	i := l.registered.Add(1) - 1
	r := &l.registrations[i]
	r.front, r.back = l.seal(i), ^l.seal(i)
	r.subject, r.final = id, final
	if final {
		l.subjects[id].finalizer.Store(true)
	}
	return uint64(l.round)<<32 | uint64(i)
}

func (l *ledger) of(key uint64) *registration { return &l.registrations[uint32(key)] }

// stop notes that a registration was taken back while the object was held.
func (l *ledger) stop(key uint64, as state) {
	r := l.of(key)
	r.state.Store(uint32(as))
	if r.final {
		l.subjects[r.subject].finalizer.Store(false)
	}
	if as == stopped && r.runs.Load() != 0 {
		l.findings.add("ran before it was stopped, while its object was held")
	}
}

// ledgers are those of the last rounds: what a round left over may run later.
var ledgers sync.Map

// run notes that the cleanup or finalizer with this key runs; seal came with it.
func run(key, seal uint64) (*ledger, *registration) {
	found, ok := ledgers.Load(uint32(key >> 32))
	if !ok {
		return nil, nil // long after its round, or damaged: then the seal is, too
	}
	l := found.(*ledger)
	if seal != mix(key) || uint32(key) >= l.registered.Load() {
		l.findings.add("what a cleanup or finalizer was given is damaged")
		return nil, nil
	}
	r := l.of(key)
	if r.front != l.seal(uint32(key)) || r.back != ^r.front {
		l.findings.add("a registration's record is damaged")
	}
	s := &l.subjects[r.subject]
	if s.front != l.seal(r.subject) || s.back != ^s.front {
		l.findings.add("an object's record is damaged")
	}
	what := "a cleanup"
	if r.final {
		what = "a finalizer"
	}
	if s.held.Load() {
		l.findings.add(what + " ran while its object was held")
	}
	for up := s.parent.Load(); up != 0; up = l.subjects[up].parent.Load() {
		if l.subjects[up].held.Load() {
			l.findings.add(what + " ran while another object that is held referred to its object")
		}
	}
	if state(r.state.Load()) == stopped {
		l.findings.add(what + " ran though it was stopped")
	}
	if r.runs.Add(1) != 1 {
		l.findings.add(what + " ran twice")
	} else {
		l.ran.Add(1)
	}
	if r.final {
		s.finalizer.Store(false)
	} else {
		if s.finalizer.Load() {
			l.findings.add("a cleanup ran before its object's finalizer")
		}
		s.cleaned.Store(true)
	}
	return l, r
}

// outstanding counts the objects that have a cleanup or finalizer that should have
// run and has not.
func (l *ledger) outstanding() int {
	objects := map[uint32]bool{}
	for i := range l.registrations[:l.registered.Load()] {
		r := &l.registrations[i]
		if state(r.state.Load()) == armed && r.runs.Load() == 0 {
			objects[r.subject] = true
		}
	}
	return len(objects)
}

// findings counts what was wrong, by what it was.
type findings struct {
	sync.Mutex
	count map[string]int
}

func (f *findings) add(what string) {
	f.Lock()
	defer f.Unlock()
	if f.count == nil {
		f.count = map[string]int{}
	}
	f.count[what]++
}

func (f *findings) String() string {
	f.Lock()
	defer f.Unlock()
	var lines []string
	for what, n := range f.count {
		lines = append(lines, fmt.Sprintf("%s (%d times)", what, n))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
