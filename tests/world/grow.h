/* The lists of a world. They are GLib's memory, which property tests do not count. */
#ifndef TESTS_WORLD_GROW_H
#define TESTS_WORLD_GROW_H

#include <glib.h>

/* Room for one more: lists double, so their room follows from how long they are. */
#define GROW(list, n)                                                                  \
    do {                                                                               \
        if (((n) & ((n)-1)) == 0)                                                      \
            (list) = g_realloc_n((list), (n) ? 2 * (gsize)(n) : 1, sizeof(*(list)));   \
    } while (0)

#endif
