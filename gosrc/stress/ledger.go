//go:build go1.26

package stress

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
)

// mix returns a hash of x. Damaged memory is unlikely to contain it by accident.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// A subject is the record of one object. Neither a subject nor a registration contains
// pointers, so they do not keep the object alive.
type subject struct {
	front uint64
	size  uintptr
	kind  objectKind
	// held is set before the object becomes reachable, and cleared just before its
	// last holder drops it.
	held      atomic.Bool
	finalizer atomic.Bool   // a finalizer is set and has not run
	cleaned   atomic.Bool   // a cleanup has run
	parent    atomic.Uint32 // the object that refers to this one, or 0
	child     atomic.Uint32 // the object that this one refers to, or 0
	back      uint64
}

type state uint32

const (
	armed   state = iota
	stopped       // stopped while the object was held: must not run
	raced         // stopped when the object may have been dead: may have run
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

// A ledger is the record of a round. Its slices do not grow, so that all goroutines can
// use their elements.
type ledger struct {
	round         uint32
	limit         uint32
	subjects      []subject
	registrations []registration
	objects       atomic.Uint32 // number of subjects in use, including subject 0, which is no object
	registered    atomic.Uint32
	ran           atomic.Int64
	findings      *findings

	shared  []*sharedObject
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

// full reports whether the round should end.
func (l *ledger) full() bool { return l.objects.Load() > l.limit || l.registered.Load() > l.limit }

// margin exceeds the number of subjects or registrations that a worker adds between two
// calls of full.
const margin = 6000

func (l *ledger) seal(index uint32) uint64 { return mix(uint64(l.round)<<32 | uint64(index)) }

func (l *ledger) addSubject(kind objectKind, size uintptr) uint32 {
	id := l.objects.Add(1) - 1
	s := &l.subjects[id]
	s.front, s.back = l.seal(id), ^l.seal(id)
	s.kind, s.size = kind, size
	s.held.Store(true)
	return id
}

// register adds a registration and returns its key: the round and the index in its ledger.
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

// stop records that a cleanup or finalizer was stopped.
func (l *ledger) stop(key uint64, as state) {
	r := l.of(key)
	r.state.Store(uint32(as))
	if r.final {
		l.subjects[r.subject].finalizer.Store(false)
	}
	if as == stopped && r.runs.Load() != 0 {
		l.findings.add("a cleanup or finalizer ran before it was stopped, while its object was held")
	}
}

// ledgers holds the ledgers of the last rounds, by round, for cleanups and finalizers that
// run after their round.
var ledgers sync.Map

// run records that the cleanup or finalizer with this key runs. seal is the hash of the
// key as its argument or closure held it.
func run(key, seal uint64) (*ledger, *registration) {
	found, ok := ledgers.Load(uint32(key >> 32))
	if !ok {
		return nil, nil // it runs long after its round, or the key is damaged
	}
	l := found.(*ledger)
	if seal != mix(key) || uint32(key) >= l.registered.Load() {
		l.findings.add("the argument or closure of a cleanup or finalizer is damaged")
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
			l.findings.add(what + " ran while a held object referred to its object")
		}
	}
	if state(r.state.Load()) == stopped {
		l.findings.add(what + " ran after it was stopped")
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

// outstanding returns the number of objects with a cleanup or finalizer that should have
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

// findings counts broken promises, by message.
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
