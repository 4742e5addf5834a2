#ifndef GCCOST_REMEDIES_H
#define GCCOST_REMEDIES_H

#include <stddef.h>
#include <stdint.h>

struct remedies_counts {
	int64_t allocated, freed, misfreed;
};

/* Frees the blocks of dead, skipping zeros, and puts n_fresh new ones into fresh. If in_turn
 * is set, excludes other threads that set it. */
void remedies_exchange(uintptr_t *dead, size_t n_dead, uintptr_t *fresh, size_t n_fresh,
		       int in_turn);
uintptr_t remedies_allocate(void);
void remedies_touch(void *block);
void remedies_free(uintptr_t block);
struct remedies_counts remedies_count(void);

#endif
