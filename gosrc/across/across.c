#include "across.h"

#include <stdlib.h>

enum { BLOCK = 100 }; /* bytes, as in Lemire's document */

/* Shifts the code below, for linkers that cannot randomize the layout. */
#ifdef GCCOST_PADDING
#define SPACE_(n) ".skip 16 * " #n
#define SPACE(n) SPACE_(n)
__asm__(".text\n" SPACE(GCCOST_PADDING));
#endif

/* The write prevents the compiler from removing an allocation and its free. */
char *across_allocate(void)
{
	char *block = malloc(BLOCK);
	if (block == NULL)
		abort();
	*(volatile char *)block = 1;
	return block;
}

void across_free(char *block) { free(block); }

void across_nothing(void) {}

void across_pairs(int n)
{
	for (int i = 0; i < n; i++)
		across_free(across_allocate());
}

void across_fill(uintptr_t *blocks, int n)
{
	for (int i = 0; i < n; i++)
		blocks[i] = (uintptr_t)across_allocate();
}

void across_empty(uintptr_t *blocks, int n)
{
	for (int i = 0; i < n; i++)
		across_free((char *)blocks[i]);
}
