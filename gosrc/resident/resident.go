// Package resident measures what stays in memory after all C objects are freed.
//
// A program makes C blocks of 1 KiB on four goroutines, and drops all at once. Each way frees
// all of them. Then the C library gives back what it can:
//
//	MALLOC_ARENA_MAX=1 go test -run '^$' -bench Resident/way=slabs -benchtime 400000x ./resident
package resident

/*
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void *block_new(size_t size)
{
	void *p = malloc(size);
	memset(p, 1, size);
	return p;
}

static void blocks_free(void **p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(p[i]);
}

static int trim(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
	return 1;
#else
	return 0;
#endif
}
*/
import "C"

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

const size = 1024 // bytes of a block

var freed atomic.Int64

func newBlock() unsafe.Pointer { return C.block_new(size) }

func free(blocks []unsafe.Pointer) error {
	C.blocks_free(&blocks[0], C.size_t(len(blocks)))
	freed.Add(int64(len(blocks)))
	return nil
}

func freeOne(block unsafe.Pointer) { _ = free([]unsafe.Pointer{block}) }

// trim has glibc return free memory to the system. It reports whether there is such a function.
func trim() bool { return C.trim() != 0 }

// rss returns the resident memory of this process in bytes, or 0 if it is not known.
func rss() float64 {
	var size, resident float64
	data, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(data), &size, &resident)
	return resident * float64(os.Getpagesize())
}
