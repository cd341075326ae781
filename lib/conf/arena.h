/*
 * Memory of one parsed file: many small pieces that live and die together.
 *
 *     struct trp_conf_arena a = {0};
 *     char *s = trp_conf_arena_text(&a, "x", 1);
 *     trp_conf_arena_free(&a);
 *
 * Pieces are zeroed and aligned for any type. NULL: out of memory. A piece of 0 bytes
 * is a valid pointer.
 */
#ifndef TRP_CONF_ARENA_H
#define TRP_CONF_ARENA_H

#include <stddef.h>

struct trp_conf_arena {
    struct trp_conf_chunk *chunks;
};

void *trp_conf_arena_alloc(struct trp_conf_arena *a, size_t count, size_t size);
/* A NUL-terminated copy of `size` bytes. */
char *trp_conf_arena_text(struct trp_conf_arena *a, const char *text, size_t size);
void trp_conf_arena_free(struct trp_conf_arena *a);

#endif
