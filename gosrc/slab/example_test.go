package slab_test

import (
	"fmt"
	"unsafe"

	"gccost/slab"
)

// ones is an allocator whose blocks hold a 1. Another would call C here.
type ones struct{ *heap }

func (o ones) Exchange(dead, fresh []uintptr) error {
	err := o.heap.Exchange(dead, fresh)
	for _, block := range fresh {
		if block != 0 {
			o.live[block][0] = 1
		}
	}
	return err
}

func Example() {
	pool := slab.New(ones{newHeap()}, slab.Config{})
	h, err := pool.Get()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close() // if it were forgotten, the collector would see to it
	err = h.Use(func(block unsafe.Pointer) { fmt.Println(*(*uint64)(block)) })
	if err != nil {
		fmt.Println(err)
	}
	// Output: 1
}
