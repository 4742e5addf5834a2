//go:build cgo

package slab_test

import (
	"fmt"
	"runtime"

	"example.org/gccost/slab"
	"example.org/gccost/slab/internal/sample"
)

// A wrapper of a C library stores a handle instead of a C pointer: see internal/sample. Its
// users may close objects or forget them.
func Example() {
	tree, err := sample.Parse("a tree of five words")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tree.Words())
	fmt.Println(tree.Close())
	fmt.Println(tree.Words())
	for i := 0; i < 1000; i++ {
		sample.Parse("forgotten")
	}
	for sample.Live() > 0 { // for the example's output only; a program need not wait
		runtime.GC()
	}
	fmt.Println(sample.Live(), "trees live")
	// Output:
	// 5 <nil>
	// <nil>
	// 0 slab: the handle is closed
	// 0 trees live
}

func ExamplePool_Adopt() {
	freed := make(chan uintptr, 1)
	pool := slab.Pool[uintptr]{
		Free: func(dead []uintptr) error {
			for _, object := range dead {
				freed <- object // call C here
			}
			return nil
		},
	}
	one := pool.Adopt(0xc0) // what C returned
	fmt.Println(one.Use(func(object uintptr) error {
		fmt.Printf("use %#x\n", object) // call C here
		return nil
	}))
	fmt.Println(one.Close())
	fmt.Printf("freed %#x\n", <-freed)
	// Output:
	// use 0xc0
	// <nil>
	// <nil>
	// freed 0xc0
}

func ExamplePool_Get() {
	next := uintptr(0xc0)
	pool := slab.Pool[uintptr]{
		Make: func(fresh []uintptr) error {
			for i := range fresh {
				fresh[i] = next // call C here, once for all of them
				next++
			}
			return nil
		},
		Free: func(dead []uintptr) error { return nil },
	}
	one, err := pool.Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(one.Use(func(object uintptr) error {
		fmt.Printf("use %#x\n", object)
		return nil
	}))
	// Output:
	// use 0xc0
	// <nil>
}
