package edges

/*
#include <stdlib.h>
#include <string.h>

static void *block(size_t size) { return memset(malloc(size), 1, size); }
*/
import "C"

import "unsafe"

// newBlock returns a C block that is in memory.
func newBlock(size int) unsafe.Pointer { return C.block(C.size_t(size)) }

func freeBlock(block unsafe.Pointer) { C.free(block) }
