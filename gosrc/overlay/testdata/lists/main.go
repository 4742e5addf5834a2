// Lists adds special records of all kinds to objects that share spans, in ascending,
// descending and shuffled order, and removes some. It drops the objects and checks
// which finalizers and cleanups run. It prints what is wrong, or "ok".
//
// Tests build it with an overlay, so that the checker in the runtime also runs.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// object is in a size class that no allocation for a record uses.
type object struct{ links [3]*object }

const objects = 3000 // in more than twenty spans

var orders = []struct {
	name  string
	order func([]*object)
}{
	{"ascending", func([]*object) {}},
	{"descending", func(all []*object) {
		for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
			all[i], all[j] = all[j], all[i]
		}
	}},
	{"shuffled", func(all []*object) {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}},
}

func main() {
	var group sync.WaitGroup
	problems := make(chan string, len(orders))
	for _, order := range orders {
		order := order
		group.Add(1)
		go func() {
			defer group.Done()
			if problem := try(order.order); problem != "" {
				problems <- order.name + ": " + problem
			}
		}()
	}
	group.Wait()
	close(problems)
	wrong := 0
	for problem := range problems {
		fmt.Println(problem)
		wrong++
	}
	if wrong > 0 {
		os.Exit(1)
	}
	fmt.Println("ok")
}

// counts holds how often a finalizer or cleanup of each object ran.
type counts [objects]int32

func try(order func([]*object)) string {
	var finalized, cleaned, inside, stopped, pointed counts
	weaks := make([]weak.Pointer[object], objects)
	attach(order, &finalized, &cleaned, &inside, &stopped, weaks)
	attachPlain(order, &pointed)

	left := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		runtime.GC()
		if left = unfinished(&finalized, &cleaned, &inside, &pointed, weaks); left == "" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if left != "" {
		return left
	}
	for i := range stopped {
		if stopped[i] != 0 {
			return fmt.Sprintf("cleanup %d ran after it was stopped", i)
		}
	}
	return ""
}

// attach gives every object a weak pointer, a cleanup that it then stops, and either a
// finalizer, or two cleanups (one for an inner pointer) and a finalizer that it then
// removes.
func attach(order func([]*object), finalized, cleaned, inside, stopped *counts, weaks []weak.Pointer[object]) {
	all := make([]*object, objects)
	for i := range all {
		all[i] = new(object)
	}
	order(all)
	stops := make([]runtime.Cleanup, objects)
	for i, o := range all {
		i := i
		weaks[i] = weak.Make(o)
		stops[i] = runtime.AddCleanup(o, func(i int) { atomic.AddInt32(&stopped[i], 1) }, i)
		if i%2 == 0 {
			runtime.SetFinalizer(o, func(*object) { atomic.AddInt32(&finalized[i], 1) })
		} else {
			runtime.SetFinalizer(o, func(*object) { panic("a removed finalizer ran") })
			runtime.AddCleanup(o, func(i int) { atomic.AddInt32(&cleaned[i], 1) }, i)
			runtime.AddCleanup(&o.links[1], func(i int) { atomic.AddInt32(&inside[i], 1) }, i)
		}
	}
	order(all)
	var pins runtime.Pinner
	for i, o := range all {
		if i%16 == 0 {
			// From the second pin on, a record counts the pins.
			pins.Pin(o)
			pins.Pin(o)
		}
	}
	for _, i := range rand.Perm(objects) {
		stops[i].Stop()
	}
	for _, o := range all {
		if weak.Make(o).Value() != o {
			panic("a weak pointer has the wrong value")
		}
	}
	pins.Unpin()
	// Objects with two cleanups have a finalizer to remove.
	for i, w := range weaks {
		if i%2 == 1 {
			runtime.SetFinalizer(w.Value(), nil)
		}
	}
	runtime.KeepAlive(all)
}

// plain has no pointers, so the garbage collector does not scan its spans.
type plain struct{ words [4]uint64 }

// box is reachable only from its cleanup, which must keep it alive.
type box struct {
	magic  [2]uint64
	counts *int32
}

const magic = 0x600D600D600D600D

// attachPlain gives each object without pointers a cleanup whose argument points into
// the heap. Every second object also gets a finalizer, and a cleanup whose argument does
// not point into the heap.
func attachPlain(order func([]*object), counts *counts) {
	all := make([]*object, objects)
	at := map[*object]*plain{}
	for i := range all {
		all[i] = new(object)
		at[all[i]] = new(plain)
		at[all[i]].words[0] = uint64(i)
	}
	order(all)
	for _, o := range all {
		i := int(at[o].words[0])
		if b := (&box{[2]uint64{magic, magic}, &counts[i]}); i%3 > 0 {
			runtime.AddCleanup(at[o], open, b)
		} else {
			runtime.AddCleanup(at[o], func(b any) { open(b.(*box)) }, any(b))
		}
		if i%2 == 0 {
			runtime.AddCleanup(at[o], ignore, &ignored)
			runtime.SetFinalizer(at[o], finalize)
			last.Lock()
			last.of[i] = append(last.of[i], &counts[i])
			last.Unlock()
		}
	}
}

func open(b *box) {
	if b.magic != [2]uint64{magic, magic} {
		panic("a cleanup's argument was freed")
	}
	atomic.AddInt32(b.counts, 1)
}

var ignored int

func ignore(at *int) {
	if at != &ignored {
		panic("a cleanup got the wrong argument")
	}
}

// last holds, by object number, the counters for finalize, which is not a closure.
var last = struct {
	sync.Mutex
	of [objects][]*int32
}{}

func finalize(p *plain) {
	last.Lock()
	defer last.Unlock()
	of := last.of[p.words[0]]
	last.of[p.words[0]] = of[1:]
	atomic.AddInt32(of[0], 1)
}

// unfinished describes a finalizer or cleanup that has not run exactly as often as it
// should, or a weak pointer that is not nil. It returns "" if there is none.
func unfinished(finalized, cleaned, inside, pointed *counts, weaks []weak.Pointer[object]) string {
	for i := range weaks {
		even := int32(1 - i%2)
		switch {
		case atomic.LoadInt32(&finalized[i]) != even:
			return fmt.Sprintf("finalizer %d ran %d times, not %d", i, finalized[i], even)
		case atomic.LoadInt32(&cleaned[i]) != 1-even || atomic.LoadInt32(&inside[i]) != 1-even:
			return fmt.Sprintf("cleanups %d ran %d and %d times, not %d", i, cleaned[i], inside[i], 1-even)
		case atomic.LoadInt32(&pointed[i]) != 1+even:
			return fmt.Sprintf("plain object %d: %d finalizers and cleanups ran, not %d", i, pointed[i], 1+even)
		case weaks[i].Value() != nil:
			return fmt.Sprintf("weak pointer %d is not nil", i)
		}
	}
	return ""
}
