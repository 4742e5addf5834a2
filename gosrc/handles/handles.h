#ifndef GCCOST_HANDLES_H
#define GCCOST_HANDLES_H

#include <stddef.h>
#include <stdint.h>

struct handles_counts {
	int64_t allocated, freed, misfreed;
};

char *handles_allocate(void);
void handles_free(char *c);
struct handles_counts handles_count(void);

#endif
