#ifndef GCCOST_GUARDIAN_H
#define GCCOST_GUARDIAN_H

#include <stddef.h>
#include <stdint.h>

/* A library of blocks of 100 bytes. It counts them, and finds frees and uses of dead ones. */
typedef struct block block;

block *block_new(void);
int block_free(block *b);      /* frees b; returns nonzero if it shall fail */
int block_use(const block *b); /* returns nonzero if b was freed */
void block_free_all(block **blocks, size_t n);

struct block_counts {
	int64_t allocated, freed, misfreed;
};

struct block_counts block_count(void);

/* For tests: block_free fails; block_free calls back into Go when it has freed; block_use
 * calls back before it looks at the block. */
enum { BLOCK_FREE_FAILS = 1, BLOCK_FREE_CALLS = 2, BLOCK_USE_CALLS = 4 };
void block_test(int how);

#endif
