#include "handles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 100 }; /* bytes, as in package cstr */

/* The first word of a block says whether it is allocated, as in package cstr. */
static const uint64_t LIVE = 0x6c6976656c697665, DEAD = 0x6465616464656164;

/* Each thread has its own counter, as in package cstr. */
struct counter {
	struct handles_counts n;
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
 * a plain add and do not race with handles_count. */
#define ADD(field) __atomic_store_n(&(field), (field) + 1, __ATOMIC_RELAXED)

char *handles_allocate(void)
{
	char *c = malloc(BLOCK);
	if (c == NULL)
		abort();
	*(volatile uint64_t *)c = LIVE;
	struct counter *mine = counter();
	ADD(mine->n.allocated);
	return c;
}

void handles_free(char *c)
{
	struct counter *mine = counter();
	if (*(volatile uint64_t *)c != LIVE) {
		ADD(mine->n.misfreed);
		return;
	}
	*(volatile uint64_t *)c = DEAD;
	free(c);
	ADD(mine->n.freed);
}

struct handles_counts handles_count(void)
{
	struct handles_counts sum = {0, 0, 0};
	pthread_mutex_lock(&all_lock);
	for (struct counter *c = all; c != NULL; c = c->next) {
		sum.allocated += __atomic_load_n(&c->n.allocated, __ATOMIC_RELAXED);
		sum.freed += __atomic_load_n(&c->n.freed, __ATOMIC_RELAXED);
		sum.misfreed += __atomic_load_n(&c->n.misfreed, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&all_lock);
	return sum;
}
