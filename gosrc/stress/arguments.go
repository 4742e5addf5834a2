//go:build go1.26

package stress

import (
	"fmt"
	"runtime"
	"strconv"
	"unsafe"
	"weak"
)

// private is data that only a cleanup or finalizer refers to.
type private struct {
	front uint64
	key   uint64
	next  *private
	back  uint64
}

func newPrivate(key uint64) *private {
	p := &private{front: mix(key), key: key, back: ^mix(key)}
	p.next = &private{front: ^p.front, key: key, back: p.front}
	return p
}

// seal returns the seal that [run] expects, or a wrong one if p is damaged.
func (p *private) seal() uint64 {
	if p.back != ^p.front || p.next == nil || p.next.key != p.key ||
		p.next.front != ^p.front || p.next.back != p.front {
		return ^mix(p.key)
	}
	return p.front
}

func (p *private) run() { run(p.key, p.seal()) }

type (
	words struct{ key, seal uint64 }
	bulky struct {
		words [37]uint64
		p     *private
		more  [3]*private
	}
	watching struct {
		key, seal uint64
		weak      weak.Pointer[byte]
	}
)

// attachments add a cleanup and pass its key in different ways: with and without a
// pointer, in an argument of pointer size or larger, in data that only the cleanup refers
// to, in the argument, and in the function.
var attachments = []func(at *byte, key uint64) runtime.Cleanup{
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(key uint64) { run(key, mix(key)) }, key)
	},
	func(at *byte, key uint64) runtime.Cleanup {
		if wordSize < 8 { // the key does not fit
			return runtime.AddCleanup(at, func(k [2]uintptr) {
				key := uint64(k[0])<<32 | uint64(k[1])
				run(key, mix(key))
			}, [2]uintptr{uintptr(key >> 32), uintptr(uint32(key))})
		}
		return runtime.AddCleanup(at, func(key uintptr) { run(uint64(key), mix(uint64(key))) }, uintptr(key))
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(w words) { run(w.key, w.seal) }, words{key, mix(key)})
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, (*private).run, newPrivate(key))
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(p [1]*private) { p[0].run() }, [1]*private{newPrivate(key)})
	},
	func(at *byte, key uint64) runtime.Cleanup {
		type boxed struct{ p *private }
		return runtime.AddCleanup(at, func(b boxed) { b.p.run() }, boxed{newPrivate(key)})
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(p unsafe.Pointer) { (*private)(p).run() }, unsafe.Pointer(newPrivate(key)))
	},
	func(at *byte, key uint64) runtime.Cleanup {
		p := newPrivate(key)
		return runtime.AddCleanup(at, func(f func()) { f() }, func() { p.run() })
	},
	func(at *byte, key uint64) runtime.Cleanup {
		p := newPrivate(key)
		return runtime.AddCleanup(at, func(struct{}) { p.run() }, struct{}{})
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(p any) { p.(*private).run() }, any(newPrivate(key)))
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(text string) {
			var w words
			if _, err := fmt.Sscanf(text, "%d %d", &w.key, &w.seal); err != nil {
				w = words{key, 0}
			}
			run(w.key, w.seal)
		}, strconv.FormatUint(key, 10)+" "+strconv.FormatUint(mix(key), 10))
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(s []uint64) { run(s[0], s[1]) }, []uint64{key, mix(key)})
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(m map[uint64]*private) { m[key].run() },
			map[uint64]*private{key: newPrivate(key)})
	},
	func(at *byte, key uint64) runtime.Cleanup {
		c := make(chan *private, 1)
		c <- newPrivate(key)
		return runtime.AddCleanup(at, func(c chan *private) { (<-c).run() }, c)
	},
	func(at *byte, key uint64) runtime.Cleanup {
		b := bulky{p: newPrivate(key)}
		for i := range b.words {
			b.words[i] = mix(key + uint64(i))
		}
		b.more[2] = b.p.next
		return runtime.AddCleanup(at, func(b bulky) {
			seal := b.p.seal()
			for i := range b.words {
				if b.words[i] != mix(b.p.key+uint64(i)) || b.more[2] != b.p.next {
					seal = ^seal
				}
			}
			run(b.p.key, seal)
		}, b)
	},
	func(at *byte, key uint64) runtime.Cleanup {
		return runtime.AddCleanup(at, func(w watching) {
			if l, _ := run(w.key, w.seal); l != nil && w.weak.Value() != nil {
				l.findings.add("a weak pointer returned an object whose cleanup runs")
			}
		}, watching{key, mix(key), weak.Make(at)})
	},
}

// finalizers make finalizer functions that hold their key in different ways. One has
// results, which the runtime ignores.
var finalizers = []func(key uint64, weaks []weak.Pointer[byte]) any{
	func(key uint64, _ []weak.Pointer[byte]) any {
		return func(at *byte) { finalize(at, key, mix(key)) }
	},
	func(key uint64, _ []weak.Pointer[byte]) any {
		p := newPrivate(key)
		return func(at *byte) { finalize(at, p.key, p.seal()) }
	},
	func(key uint64, _ []weak.Pointer[byte]) any {
		p := newPrivate(key)
		return func(at *byte) (*private, [5]uint64) {
			finalize(at, p.key, p.seal())
			return p, [5]uint64{key}
		}
	},
	func(key uint64, _ []weak.Pointer[byte]) any {
		p := newPrivate(key)
		return func(at any) { finalize(at.(*byte), p.key, p.seal()) }
	},
	func(key uint64, weaks []weak.Pointer[byte]) any {
		return func(at *byte) {
			for _, w := range weaks {
				if got := w.Value(); got != nil {
					if found, ok := ledgers.Load(uint32(key >> 32)); ok {
						found.(*ledger).findings.add("a weak pointer returned an object whose finalizer runs")
					}
				}
			}
			finalize(at, key, mix(key))
		}
	},
}

// finalize checks the object and resurrects some: it sends them to the workers.
func finalize(at *byte, key, seal uint64) {
	l, r := run(key, seal)
	if l == nil {
		return
	}
	s := &l.subjects[r.subject]
	t := &thing{id: r.subject, kind: s.kind, base: unsafe.Pointer(at), size: s.size}
	l.check(t)
	if mix(^key)%4 == 0 {
		s.held.Store(true)
		select {
		case l.revived <- t:
		default:
			s.held.Store(false)
		}
	}
	runtime.KeepAlive(t)
}
