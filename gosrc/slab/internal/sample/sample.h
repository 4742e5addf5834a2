#ifndef SLAB_SAMPLE_H
#define SLAB_SAMPLE_H

#include <stddef.h>

/* A typical C library: sample_parse makes a tree of a text, and each tree is deleted
 * separately. The last two functions are added for the Go wrapper. */
typedef struct sample_tree sample_tree;

sample_tree *sample_parse(const char *text, size_t length);
size_t sample_words(const sample_tree *tree);
void sample_delete(sample_tree *tree);
long sample_live(void);

void sample_delete_all(sample_tree **trees, size_t n);
int sample_make_all(sample_tree **trees, size_t n);

#endif
