//go:build go1.26

package stress

import (
	"runtime"
	"sync/atomic"
	"unsafe"
	"weak"
)

type objectKind uint8

const (
	plain    objectKind = iota // no pointers
	pointers                   // with pointers; over 512 bytes with a malloc header
	tiny                       // several share an allocation
)

// sizes lists object sizes, in bytes. Spans hold from one to a thousand such objects, with
// and without unused bytes at the end.
var sizes = [...][]uintptr{
	plain: {
		16, 16, 16, 24, 32, 48, 64, 80, 96, 128, 208, 256, 384, 512, 640, 1024, 1152,
		2048, 4096, 6528, 8192, 10240, 32768, 40000,
	},
	pointers: {
		8, 8, 8, 16, 16, 24, 32, 48, 64, 96, 128, 256, 512, 520, 640, 1016, 1024, 2048,
		4096, 8184, 8192, 20000, 32768, 66000,
	},
	tiny: {1, 2, 3, 5, 7, 8, 12, 15},
}

// A thing is an object and its holder's data about it.
type thing struct {
	id      uint32
	kind    objectKind
	size    uintptr
	base    unsafe.Pointer // nil while only a pin holds the object
	address uintptr        // the address of the object while base is nil

	cleanups  []stoppable
	weaks     []watch
	finalizer uint64 // its key, or 0 if none is set
	pins      []*runtime.Pinner
}

type stoppable struct {
	handle runtime.Cleanup
	key    uint64
}

// A watch is a weak pointer to the byte at an offset of an object.
type watch struct {
	weak   weak.Pointer[byte]
	id     uint32
	offset uintptr
}

// A token is the target of the pointers in objects with pointers.
type token struct{ front, back uint64 }

func (t *thing) at(offset uintptr) *byte { return (*byte)(unsafe.Add(t.base, offset)) }

func (t *thing) words() []uint64 { return unsafe.Slice((*uint64)(t.base), t.size/8) }

func (t *thing) slots() []unsafe.Pointer {
	return unsafe.Slice((*unsafe.Pointer)(t.base), t.size/wordSize)
}

const wordSize = unsafe.Sizeof(uintptr(0))

// link is the slot of an object's pointer to another object.
const link = 1

// allocate allocates an object. The memory profile counts the objects of this package by
// the name of this function.
//
//go:noinline
func allocate(kind objectKind, size uintptr) unsafe.Pointer {
	switch kind {
	case pointers:
		return unsafe.Pointer(unsafe.SliceData(make([]unsafe.Pointer, size/wordSize)))
	case tiny:
		return unsafe.Pointer(unsafe.SliceData(make([]byte, size)))
	default:
		return unsafe.Pointer(unsafe.SliceData(make([]uint64, size/8)))
	}
}

func (l *ledger) newThing(kind objectKind, size uintptr) *thing {
	t := &thing{id: l.addSubject(kind, size), kind: kind, size: size, base: allocate(kind, size)}
	switch kind {
	case plain:
		// Writing all words of large objects would dominate the run time.
		for i, words := 0, t.words(); i < len(words); i += 1 + i/8 {
			words[i] = l.word(t.id, i)
		}
	case tiny:
		for i, bytes := 0, unsafe.Slice((*byte)(t.base), size); i < len(bytes); i++ {
			bytes[i] = byte(l.word(t.id, i))
		}
	case pointers:
		slots := t.slots()
		for i := range slots {
			if hasToken(i, len(slots)) {
				seal := l.word(t.id, i)
				slots[i] = unsafe.Pointer(&token{seal, ^seal})
			}
		}
	}
	return t
}

func hasToken(i, n int) bool { return i != link && (i < 4 || i == n-1 || i%100 == 0) }

func (l *ledger) word(id uint32, i int) uint64 { return mix(l.seal(id) + uint64(i)) }

// check compares an object's contents with what was written, and checks its weak pointers.
func (l *ledger) check(t *thing) {
	damaged := false
	switch t.kind {
	case plain:
		for i, words := 0, t.words(); i < len(words); i += 1 + i/8 {
			damaged = damaged || words[i] != l.word(t.id, i)
		}
	case tiny:
		for i, bytes := 0, unsafe.Slice((*byte)(t.base), t.size); i < len(bytes); i++ {
			damaged = damaged || bytes[i] != byte(l.word(t.id, i))
		}
	case pointers:
		slots := t.slots()
		for i, p := range slots {
			if hasToken(i, len(slots)) {
				token, seal := (*token)(p), l.word(t.id, i)
				damaged = damaged || token == nil || token.front != seal || token.back != ^seal
			} else if i != link {
				damaged = damaged || p != nil
			}
		}
	}
	if damaged {
		l.findings.add("the contents of a held object are damaged")
	}
	for _, w := range t.weaks {
		if got := w.weak.Value(); got != t.at(w.offset) {
			l.findings.add("a weak pointer does not return its object, which is held")
		}
		if weak.Make(t.at(w.offset)) != w.weak {
			l.findings.add("two weak pointers to one address are not equal")
		}
	}
	runtime.KeepAlive(t)
}

// probe checks a weak pointer to an object that may be dead.
func (l *ledger) probe(w watch) {
	s := &l.subjects[w.id]
	dead := s.cleaned.Load()
	p := w.weak.Value()
	if p == nil {
		if s.held.Load() && s.front == 0 {
			l.findings.add("an object's record is damaged")
		}
		return
	}
	if dead {
		l.findings.add("a weak pointer returned an object after its cleanup ran")
	}
	damaged := false
	switch s.kind {
	case plain:
		if i := int(w.offset / 8); i < 8 {
			word := *(*uint64)(unsafe.Add(unsafe.Pointer(p), -int(w.offset%8)))
			damaged = word != l.word(w.id, i)
		}
	case tiny:
		damaged = *p != byte(l.word(w.id, int(w.offset)))
	case pointers:
		if i := int(w.offset / wordSize); hasToken(i, int(s.size/wordSize)) {
			slot := (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(p), -int(w.offset%wordSize)))
			seal := l.word(w.id, i)
			token := (*token)(atomic.LoadPointer(slot))
			damaged = token == nil || token.front != seal || token.back != ^seal
		}
	}
	if damaged {
		l.findings.add("the contents of an object that a weak pointer returned are damaged")
	}
	runtime.KeepAlive(p)
}

// A sharedObject is an object to which all workers add specials concurrently.
type sharedObject struct {
	thing *thing
	weak  atomic.Pointer[weak.Pointer[byte]]
}

// canonical makes a weak pointer to the object. All of them must be equal.
func (c *sharedObject) canonical(f *findings) {
	made := weak.Make(c.thing.at(0))
	if !c.weak.CompareAndSwap(nil, &made) && *c.weak.Load() != made {
		f.add("two goroutines' weak pointers to one address are not equal")
	}
	if made.Value() != c.thing.at(0) {
		f.add("a weak pointer does not return its object, which is held")
	}
}
