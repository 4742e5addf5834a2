//go:build go1.24

// Command kinds is a program of each kind that registers finalizers, cleanups or weak pointers,
// and the same program with each remedy that gccost explain proposes. The script remedy-trial
// applies the remedies and compares the CPU time.
//
//	kinds KIND WAY OPERATIONS [PROFILE]
//
// It prints the CPU time of an operation in nanoseconds, with the collections that free what the
// operations left.
package main

/*
#include <stdlib.h>
#include <string.h>

static void *block_new(void)
{
	void *p = malloc(100);
	memset(p, 1, 100);
	return p;
}

static void block_free(void *p) { free(p); }

static void blocks_free(void **p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(p[i]);
}
*/
import "C"

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"unique"
	"unsafe"
	"weak"

	"example.org/gccost/slab"
)

// An object is a wrapper of a C block.
type object interface{ Close() }

// --- Wrappers without a net, and with a finalizer, of 8, 32 and 64 bytes ---------------------

type (
	word struct{ block unsafe.Pointer }
	four struct {
		word
		_ [24]byte
	}
	eight struct {
		word
		_ [56]byte
	}
)

func (w *word) free() {
	if w.block != nil {
		C.block_free(w.block)
		w.block = nil
	}
}

type sized interface{ word | four | eight }

func first[T sized](w *T) *word { return (*word)(unsafe.Pointer(w)) }

type manual[T sized] struct{ wrapper T }

func (m *manual[T]) Close() { first(&m.wrapper).free() }

type finalized[T sized] struct{ wrapper T }

// Close is also the finalizer, as in many wrappers.
func (f *finalized[T]) Close() {
	runtime.SetFinalizer(f, nil)
	first(&f.wrapper).free()
}

// A plain wrapper's finalizer frees the block, and leaves the registration.
type plain[T sized] struct{ wrapper T }

func (p *plain[T]) Close() { first(&p.wrapper).free() }

func (p *plain[T]) finalize() { first(&p.wrapper).free() }

// A handed wrapper is closed by a goroutine, to which its finalizer hands it.
type handed[T sized] struct{ wrapper T }

func (h *handed[T]) Close() {
	runtime.SetFinalizer(h, nil)
	first(&h.wrapper).free()
}

var closing = make(chan object, 1000)

func reap() {
	for each := range closing {
		each.Close()
	}
}

// --- With a cleanup, of 24 and 64 bytes ------------------------------------------------------

type cleaned struct {
	block   unsafe.Pointer
	cleanup runtime.Cleanup
}

type cleaned64 struct {
	cleaned
	_ [40]byte
}

func (c *cleaned) Close() {
	if c.block != nil {
		c.cleanup.Stop()
		C.block_free(c.block)
		c.block = nil
	}
}

func free(block unsafe.Pointer) { C.block_free(block) }

// --- With a recycled net (gosrc/guardian), and with slabs ---------------------------------------

type guarded struct {
	guardian *guardian
	_        [16]byte
}

type guardian struct {
	block unsafe.Pointer
	_     [24]byte
}

var guardians = sync.Pool{New: func() any {
	g := new(guardian)
	runtime.SetFinalizer(g, (*guardian).free)
	return g
}}

func (g *guardian) free() {
	if g.block != nil {
		C.block_free(g.block)
		g.block = nil
	}
}

func (g *guarded) Close() {
	g.guardian.free()
	guardians.Put(g.guardian)
	g.guardian = nil
}

type adopted struct{ handle slab.Handle[unsafe.Pointer] }

var blocks = slab.Pool[unsafe.Pointer]{Free: func(dead []unsafe.Pointer) error {
	C.blocks_free(unsafe.SliceData(dead), C.size_t(len(dead)))
	return nil
}}

func (a *adopted) Close() { _ = a.handle.Close() }

// --- Ways to make a wrapper --------------------------------------------------------------------

func withFinalizer[T sized]() object {
	f := new(finalized[T])
	first(&f.wrapper).block = C.block_new()
	runtime.SetFinalizer(f, (*finalized[T]).Close)
	return f
}

func withPlain[T sized]() object {
	p := new(plain[T])
	first(&p.wrapper).block = C.block_new()
	runtime.SetFinalizer(p, (*plain[T]).finalize)
	return p
}

func withHanded[T sized]() object {
	h := new(handed[T])
	first(&h.wrapper).block = C.block_new()
	runtime.SetFinalizer(h, func(h *handed[T]) { closing <- h })
	return h
}

func withNothing[T sized]() object {
	m := new(manual[T])
	first(&m.wrapper).block = C.block_new()
	return m
}

var ways = map[string]func() object{
	"finalizer-8":  withFinalizer[word],
	"finalizer-32": withFinalizer[four],
	"finalizer-64": withFinalizer[eight],
	"plain-8":      withPlain[word],
	"plain-64":     withPlain[eight],
	"handed-8":     withHanded[word],
	"handed-64":    withHanded[eight],
	"none-8":       withNothing[word],
	"none-32":      withNothing[four],
	"none-64":      withNothing[eight],
	"cleanup-24": func() object {
		c := new(cleaned)
		c.block = C.block_new()
		c.cleanup = runtime.AddCleanup(c, free, c.block)
		return c
	},
	"cleanup-64": func() object {
		c := new(cleaned64)
		c.block = C.block_new()
		c.cleanup = runtime.AddCleanup(c, free, c.block)
		return c
	},
	"net": func() object {
		g := new(guarded)
		g.guardian = guardians.Get().(*guardian)
		g.guardian.block = C.block_new()
		return g
	},
	"slabs": func() object { return &adopted{blocks.Adopt(C.block_new())} },
}

// --- Kinds of programs -----------------------------------------------------------------------

var (
	live [100_000]object
	sink object
)

// wrappers are programs that make wrappers, and close or forget them.
var wrappers = map[string]func(open func() object, n int){
	"forgotten": func(open func() object, n int) {
		for i := 0; i < n; i++ {
			sink = open()
		}
	},
	"closed": func(open func() object, n int) {
		for i := 0; i < n; i++ {
			sink = open()
			sink.Close()
		}
	},
	"mixed": func(open func() object, n int) {
		for i := 0; i < n; i++ {
			if sink = open(); i%2 == 0 {
				sink.Close()
			}
		}
	},
	"live-forgotten": func(open func() object, n int) {
		replace(open, n, func(object) {})
	},
	"live-closed": func(open func() object, n int) {
		replace(open, n, object.Close)
	},
}

func replace(open func() object, n int, end func(object)) {
	chance := rand.New(rand.NewSource(1))
	for i := range live {
		live[i] = open()
	}
	for i := 0; i < n; i++ {
		at := chance.Intn(len(live))
		end(live[at])
		live[at] = open()
	}
}

// others are programs in which Go's own packages register, each as it is, and with what
// data/go-registers.csv says.
var others = map[string]map[string]func(n int){
	"pinner": {
		"two": func(n int) {
			for i := 0; i < n; i++ {
				a, b := make([]byte, 64), make([]byte, 64)
				var p, q runtime.Pinner
				p.Pin(&a[0])
				q.Pin(&b[0])
				q.Unpin()
				p.Unpin()
			}
		},
		"one": func(n int) {
			for i := 0; i < n; i++ {
				a, b := make([]byte, 64), make([]byte, 64)
				var p runtime.Pinner
				p.Pin(&a[0])
				p.Pin(&b[0])
				p.Unpin()
			}
		},
	},
	"readfile": {
		"each": func(n int) {
			for i := 0; i < n; i++ {
				if _, err := os.ReadFile(small()); err != nil {
					panic(err)
				}
			}
		},
		"open": func(n int) {
			f, err := os.Open(small())
			if err != nil {
				panic(err)
			}
			defer f.Close()
			for i := 0; i < n; i++ {
				if _, err := f.ReadAt(make([]byte, 512), 0); err != io.EOF {
					panic(err)
				}
			}
		},
	},
	"dial": {"each": func(n int) { talk(n, true) }, "open": func(n int) { talk(n, false) }},
	"unique": {
		"each": func(n int) {
			for i := 0; i < n; i++ {
				name = unique.Make(strconv.Itoa(i % 1000))
				if i%1000 == 999 {
					runtime.GC() // forgets them
				}
			}
		},
		"kept": func(n int) {
			handles := make([]unique.Handle[string], 1000)
			for i := range handles {
				handles[i] = unique.Make(strconv.Itoa(i))
			}
			for i := 0; i < n; i++ {
				name = handles[i%1000]
				if i%1000 == 999 {
					runtime.GC()
				}
			}
			runtime.KeepAlive(handles)
		},
	},
	"weak": {
		"each": func(n int) {
			objects := many()
			for i := 0; i < n; i++ {
				link = weak.Make(objects[i*7919%len(objects)])
			}
			runtime.KeepAlive(objects)
		},
		"kept": func(n int) {
			objects := many()
			links := make([]weak.Pointer[node], len(objects))
			for i := range objects {
				links[i] = weak.Make(objects[i])
			}
			for i := 0; i < n; i++ {
				link = links[i*7919%len(objects)]
			}
			runtime.KeepAlive(objects)
		},
	},
	"ed25519": {
		"each": func(n int) {
			seed := make([]byte, ed25519.SeedSize)
			for i := 0; i < n; i++ {
				ed25519.Sign(ed25519.NewKeyFromSeed(seed), seed)
			}
		},
		"kept": func(n int) {
			seed := make([]byte, ed25519.SeedSize)
			key := ed25519.NewKeyFromSeed(seed)
			for i := 0; i < n; i++ {
				ed25519.Sign(key, seed)
			}
		},
	},
}

type node struct{ key, value int }

func many() []*node {
	objects := make([]*node, 100_000)
	for i := range objects {
		objects[i] = &node{i, i}
	}
	return objects
}

var (
	name unique.Handle[string]
	link weak.Pointer[node]
)

func small() string { return filepath.Join(os.TempDir(), "gccost-kinds") }

// talk sends n messages to a server on loopback, over a connection each, or over one.
func talk(n int, each bool) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	var c net.Conn
	for i := 0; i < n; i++ {
		if each || c == nil {
			if c, err = net.Dial("tcp", listener.Addr().String()); err != nil {
				panic(err)
			}
		}
		b := []byte{1}
		if _, err := c.Write(b); err != nil {
			panic(err)
		}
		if _, err := io.ReadFull(c, b); err != nil {
			panic(err)
		}
		if each {
			c.Close()
		}
	}
}

func main() {
	kind, way := os.Args[1], os.Args[2]
	n, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	go reap()
	if err := os.WriteFile(small(), make([]byte, 100), 0o600); err != nil {
		panic(err)
	}
	if len(os.Args) > 4 {
		f, err := os.Create(os.Args[4])
		if err != nil {
			panic(err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			panic(err)
		}
	}
	before := cpu()
	if run := wrappers[kind]; run != nil {
		run(ways[way], n)
	} else {
		others[kind][way](n)
	}
	sink, live = nil, [len(live)]object{}
	for i := 0; i < 3; i++ { // a slab's last handles take three
		blocks.Flush()
		runtime.GC()
	}
	blocks.Flush()
	fmt.Println(float64(cpu()-before) / float64(n))
	pprof.StopCPUProfile()
}

// cpu is the CPU time of this process in nanoseconds.
func cpu() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
