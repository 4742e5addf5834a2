#ifndef GCCOST_ACROSS_H
#define GCCOST_ACROSS_H

#include <stdint.h>

char *across_allocate(void);
void across_free(char *block);
void across_nothing(void);
void across_pairs(int n);
void across_fill(uintptr_t *blocks, int n);
void across_empty(uintptr_t *blocks, int n);

#endif
