#include "guardian.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct block {
	/* Says whether the block is allocated, as in package cstr. */
	volatile uint64_t state;
	char rest[92]; /* 100 bytes in all, as in package cstr */
} __attribute__((packed));

static const uint64_t LIVE = 0x6c6976656c697665, DEAD = 0x6465616464656164;

/* Each thread has its own counter, as in package cstr. */
struct counter {
	struct block_counts n;
	struct counter *next;
};

static __thread struct counter *mine;
static struct counter *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) struct counter *register_thread(void)
{
	/* One counter per cache line avoids false sharing. */
	struct counter *c = aligned_alloc(64, 64);
	if (c == NULL)
		abort();
	memset(c, 0, 64);
	pthread_mutex_lock(&all_lock);
	c->next = all;
	all = c;
	pthread_mutex_unlock(&all_lock);
	return mine = c;
}

static inline struct counter *counter(void)
{
	struct counter *c = mine;
	return __builtin_expect(c != NULL, 1) ? c : register_thread();
}

/* Shifts the code below, for linkers that cannot randomize the layout. */
#ifdef GCCOST_PADDING
#define SPACE_(n) ".skip 16 * " #n
#define SPACE(n) SPACE_(n)
__asm__(".text\n" SPACE(GCCOST_PADDING));
#endif

/* Only one thread writes a counter, so relaxed accesses suffice. They compile to
 * a plain add and do not race with block_count. */
#define ADD(field) __atomic_store_n(&(field), (field) + 1, __ATOMIC_RELAXED)

extern void guardianCallback(void); /* in Go */

static int test;

void block_test(int how)
{
	__atomic_store_n(&test, how, __ATOMIC_RELAXED);
}

static inline int tested(void)
{
	return __builtin_expect(__atomic_load_n(&test, __ATOMIC_RELAXED), 0);
}

block *block_new(void)
{
	block *b = malloc(sizeof *b);
	if (b == NULL)
		abort();
	b->state = LIVE;
	struct counter *mine = counter();
	ADD(mine->n.allocated);
	return b;
}

int block_free(block *b)
{
	struct counter *mine = counter();
	if (b->state != LIVE) {
		ADD(mine->n.misfreed);
		return -1;
	}
	b->state = DEAD;
	free(b);
	ADD(mine->n.freed);
	int how = tested();
	if (how & BLOCK_FREE_CALLS)
		guardianCallback();
	return how & BLOCK_FREE_FAILS;
}

int block_use(const block *b)
{
	if (tested() & BLOCK_USE_CALLS)
		guardianCallback();
	return b->state != LIVE;
}

void block_free_all(block **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		block_free(blocks[i]);
}

struct block_counts block_count(void)
{
	struct block_counts sum = {0, 0, 0};
	pthread_mutex_lock(&all_lock);
	for (struct counter *c = all; c != NULL; c = c->next) {
		sum.allocated += __atomic_load_n(&c->n.allocated, __ATOMIC_RELAXED);
		sum.freed += __atomic_load_n(&c->n.freed, __ATOMIC_RELAXED);
		sum.misfreed += __atomic_load_n(&c->n.misfreed, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&all_lock);
	return sum;
}
