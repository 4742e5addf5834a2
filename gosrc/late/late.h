#ifndef GCCOST_LATE_H
#define GCCOST_LATE_H

#include <stddef.h>
#include <stdint.h>

/* A library of objects of any size from 16 bytes on. It counts them. */
typedef struct object object;

object *object_new(size_t size); /* all of its memory is written */
void object_free(object *o);
void object_free_all(object **objects, size_t n);

/* Times the objects that are made from now on, unless room is NULL. The time from making each
 * until it is freed (ns) is written to room, after the number of the times that it has. */
void object_time(int64_t *room);

struct object_counts {
	int64_t allocated, freed;
};

struct object_counts object_count(void);

#endif
