#ifndef SLAB_SAMPLE_H
#define SLAB_SAMPLE_H

#include <stddef.h>

/* A C library as there are many: parse makes a tree of a text, from which cursors are
 * made; each is deleted by itself. The last two are what its Go wrapper adds. */
typedef struct sample_tree sample_tree;

sample_tree *sample_parse(const char *text, size_t length);
size_t sample_words(const sample_tree *tree);
void sample_delete(sample_tree *tree);
long sample_live(void);

void sample_delete_all(sample_tree **trees, size_t n);
int sample_make_all(sample_tree **trees, size_t n);

#endif
