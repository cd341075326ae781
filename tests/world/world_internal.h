/* What the files of a world share. */
#ifndef TESTS_WORLD_WORLD_INTERNAL_H
#define TESTS_WORLD_WORLD_INTERNAL_H

#include <glib.h>
#include <malloc.h>

#include "world.h"

/* Room for one more: lists double, and how long they may get is what malloc says, so that one
 * that goes up and down is not copied each time. They are GLib's memory, which property tests
 * do not count. */
#define GROW(list, n)                                                                  \
    do {                                                                               \
        if (malloc_usable_size(list) < ((gsize)(n) + 1) * sizeof(*(list)))             \
            (list) = g_realloc_n((list), 2 * ((gsize)(n) + 1), sizeof(*(list)));       \
    } while (0)

/* actions.c */
void world_take(struct world *w, const struct trp_action *a);

/* attempts.c */
void world_take_launch(struct world *w, const struct trp_action *act);
void world_take_gang(struct world *w, const struct trp_action *act);
void world_take_kill(struct world *w, const struct trp_action *act);
void world_take_synced(struct world *w, const struct trp_action *act);
void world_take_task_end(struct world *w, const struct trp_action *act);

#endif
