#include "late.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct object {
	int64_t made;  /* in ns */
	int64_t *room; /* for its time, or NULL */
};

static int64_t allocated, freed;
static int64_t *times; /* the room of new objects */

/* Shifts the code below, for linkers that cannot randomize the layout. */
#ifdef GCCOST_PADDING
#define SPACE_(n) ".skip 16 * " #n
#define SPACE(n) SPACE_(n)
__asm__(".text\n" SPACE(GCCOST_PADDING));
#endif

#define ADD(counter) __atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED)
#define LOAD(from) __atomic_load_n(&(from), __ATOMIC_RELAXED)

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

object *object_new(size_t size)
{
	object *o = malloc(size);
	if (o == NULL)
		abort();
	memset(o, 1, size);
	o->room = LOAD(times);
	o->made = o->room ? now() : 0;
	ADD(allocated);
	return o;
}

void object_free(object *o)
{
	if (o->room)
		o->room[1 + ADD(o->room[0])] = now() - o->made;
	free(o);
	ADD(freed);
}

void object_free_all(object **objects, size_t n)
{
	for (size_t i = 0; i < n; i++)
		object_free(objects[i]);
}

void object_time(int64_t *room)
{
	__atomic_store_n(&times, room, __ATOMIC_RELAXED);
}

struct object_counts object_count(void)
{
	struct object_counts n = {LOAD(allocated), LOAD(freed)};
	return n;
}
