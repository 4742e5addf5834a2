#include "sample.h"

#include <stdlib.h>

struct sample_tree {
	size_t words;
};

static long live;

sample_tree *sample_parse(const char *text, size_t length)
{
	sample_tree *tree = malloc(sizeof *tree);
	if (tree == NULL)
		return NULL;
	tree->words = 0;
	for (size_t i = 0; i < length; i++)
		tree->words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
	__atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
	return tree;
}

size_t sample_words(const sample_tree *tree)
{
	return tree->words;
}

void sample_delete(sample_tree *tree)
{
	if (tree == NULL)
		return;
	__atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
	free(tree);
}

long sample_live(void)
{
	return __atomic_load_n(&live, __ATOMIC_RELAXED);
}

void sample_delete_all(sample_tree **trees, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i + 8 < n)
			__builtin_prefetch(trees[i + 8]); /* it has left the CPU's caches */
		sample_delete(trees[i]);
	}
}

int sample_make_all(sample_tree **trees, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((trees[i] = sample_parse("", 0)) == NULL)
			return -1;
	return 0;
}
