// Package zstd compresses small messages with github.com/DataDog/zstd, whose contexts
// have a finalizer and no Close.
package zstd

/*
#include <stddef.h>
#include <stdint.h>
// The library's own functions. Its package has them, so that they are found only when the
// program is linked.
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#cgo darwin LDFLAGS: -Wl,-undefined,dynamic_lookup
size_t ZSTD_freeCCtx(void *);
size_t ZSTD_freeDCtx(void *);
static void free_compressing(uintptr_t context) { ZSTD_freeCCtx((void *)context); }
static void free_decompressing(uintptr_t context) { ZSTD_freeDCtx((void *)context); }
static void free_all_compressing(uintptr_t *contexts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free_compressing(contexts[i]);
}
static void free_all_decompressing(uintptr_t *contexts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free_decompressing(contexts[i]);
}
*/
import "C"

import (
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	zstd "github.com/DataDog/zstd"

	"example.org/gccost/libraries/loop"
	"example.org/gccost/slab"
)

// A context has the layout of the struct that zstd.NewCtx returns a pointer to: one C
// context to compress and one to decompress.
type context struct{ compressing, decompressing uintptr }

// The ways to free contexts.
const (
	Dropped = "their finalizers"
	Closed  = "manual frees"
	Adopted = "slabs"
)

// The pools free the two kinds of C contexts. Bytes is the memory of a context after one
// message, from mallinfo2: 132 kB for both.
var (
	Compressing = slab.Pool[uintptr]{
		Free: func(dead []uintptr) error {
			C.free_all_compressing((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(dead))), C.size_t(len(dead)))
			return nil
		},
		Handles: 16,
		Bytes:   36 << 10,
	}
	Decompressing = slab.Pool[uintptr]{
		Free: func(dead []uintptr) error {
			C.free_all_decompressing((*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(dead))), C.size_t(len(dead)))
			return nil
		},
		Handles: 16,
		Bytes:   96 << 10,
	}
)

// Messages returns n JSON messages of some 300 to 1,000 bytes, the same in each call.
func Messages(n int) [][]byte {
	random := rand.New(rand.NewSource(1))
	messages := make([][]byte, n)
	for i := range messages {
		message := fmt.Appendf(nil, `{"id":%d,"user":"user-%d","items":[`, i, random.Intn(1000))
		for j := 4 + random.Intn(12); j > 0; j-- {
			message = fmt.Appendf(message, `{"sku":"%08x","count":%d,"price":%d.%02d},`,
				random.Uint32(), 1+random.Intn(9), random.Intn(500), random.Intn(100))
		}
		messages[i] = append(message[:len(message)-1], "]}"...)
	}
	return messages
}

// Send compresses a message in a new context. freed is the way to free the context.
func Send(message []byte, freed string) ([]byte, error) {
	ctx := zstd.NewCtx()
	defer runtime.KeepAlive(ctx) // its finalizer must not free it while C compresses
	switch freed {
	case Closed:
		defer close(ctx)
	case Adopted:
		c := withoutFinalizer(ctx)
		one, other := Compressing.Adopt(c.compressing), Decompressing.Adopt(c.decompressing)
		defer runtime.KeepAlive(&one)
		defer runtime.KeepAlive(&other)
	}
	return ctx.Compress(nil, message)
}

// withoutFinalizer removes a context's finalizer and returns its C contexts.
func withoutFinalizer(ctx zstd.Ctx) *context {
	runtime.SetFinalizer(ctx, nil)
	return (*context)(reflect.ValueOf(ctx).UnsafePointer())
}

// Bench compresses messages in new contexts. freed is the way to free them.
func Bench(b *testing.B, freed string) {
	bench(b, func(message []byte) ([]byte, error) { return Send(message, freed) })
}

func bench(b *testing.B, operation func(message []byte) ([]byte, error)) {
	messages := Messages(1000)
	loop.Run(b, func(i int) {
		if _, err := operation(messages[i%len(messages)]); err != nil {
			b.Fatal(err)
		}
	})
}

// close frees a context; the library has no such function, unless it has slabs of its own.
func close(ctx zstd.Ctx) {
	if closer, ok := ctx.(io.Closer); ok {
		closer.Close()
		return
	}
	c := withoutFinalizer(ctx)
	C.free_compressing(C.uintptr_t(c.compressing))
	C.free_decompressing(C.uintptr_t(c.decompressing))
}
