/* What the files of a world share. */
#ifndef TESTS_WORLD_WORLD_INTERNAL_H
#define TESTS_WORLD_WORLD_INTERNAL_H

#include <glib.h>

#include "world.h"

/* Room for one more: lists double, so their room follows from how long they are. They are
 * GLib's memory, which property tests do not count. */
#define GROW(list, n)                                                                  \
    do {                                                                               \
        if (((n) & ((n)-1)) == 0)                                                      \
            (list) = g_realloc_n((list), (n) ? 2 * (gsize)(n) : 1, sizeof(*(list)));   \
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
