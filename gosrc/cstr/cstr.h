#ifndef GCCOST_CSTR_H
#define GCCOST_CSTR_H

#include <stdint.h>

struct cstr_counts {
	int64_t allocated, freed, misfreed;
};

char *cstr_allocate(void);
void cstr_free(char *c);
struct cstr_counts cstr_count(void);

#endif
