#include "remedies.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	BLOCK = 100, /* bytes, as in package cstr */
	AHEAD = 8,   /* prefetch distance, in blocks */
};

/* The first word of a block says whether it is allocated, as in package cstr. */
static const uint64_t LIVE = 0x6c6976656c697665, DEAD = 0x6465616464656164;

/* Shared by all threads, and updated once per call. */
static struct remedies_counts counts;

#define ADD(field, n) __atomic_fetch_add(&counts.field, (n), __ATOMIC_RELAXED)

/* A heap takes its own lock for every block. If threads free and allocate many blocks of one
 * heap at the same time, the lock moves between their caches, which costs more than the work
 * that it protects. So a thread holds this mutex for its whole batch. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void remedies_exchange(uintptr_t *dead, size_t n_dead, uintptr_t *fresh, size_t n_fresh,
		       int in_turn)
{
	int64_t freed = 0, misfreed = 0;

	if (in_turn)
		pthread_mutex_lock(&turn);
	for (size_t i = 0; i < n_dead; i++) {
		/* Blocks that have been dead for long are no longer in the caches. */
		if (i + AHEAD < n_dead) {
			__builtin_prefetch((char *)dead[i + AHEAD] - 16, 1);
			__builtin_prefetch((char *)dead[i + AHEAD] + BLOCK, 1);
		}
		volatile uint64_t *block = (volatile uint64_t *)dead[i];
		if (block == NULL)
			continue;
		dead[i] = 0;
		if (*block != LIVE) {
			misfreed++;
			continue;
		}
		*block = DEAD;
		free((void *)block);
		freed++;
	}
	for (size_t i = 0; i < n_fresh; i++) {
		volatile uint64_t *block = malloc(BLOCK);
		if (block == NULL)
			abort();
		*block = LIVE;
		fresh[i] = (uintptr_t)block;
	}
	if (in_turn)
		pthread_mutex_unlock(&turn);
	if (freed)
		ADD(freed, freed);
	if (misfreed)
		ADD(misfreed, misfreed);
	if (n_fresh)
		ADD(allocated, (int64_t)n_fresh);
}

uintptr_t remedies_allocate(void)
{
	uintptr_t block;
	remedies_exchange(NULL, 0, &block, 1, 0);
	return block;
}

void remedies_touch(void *block)
{
	*(volatile uint64_t *)block = LIVE;
}

void remedies_free(uintptr_t block)
{
	remedies_exchange(&block, 1, NULL, 0, 0);
}

struct remedies_counts remedies_count(void)
{
	struct remedies_counts n = {
		__atomic_load_n(&counts.allocated, __ATOMIC_RELAXED),
		__atomic_load_n(&counts.freed, __ATOMIC_RELAXED),
		__atomic_load_n(&counts.misfreed, __ATOMIC_RELAXED),
	};
	return n;
}
