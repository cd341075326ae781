/*
 * A list of chunks, the newest first; a piece is cut from the newest one. Chunks double
 * from 4 KiB to 1 MiB, so that a small file costs little and a large one few calls. A
 * piece larger than a chunk gets one of its own. Rejected: a malloc for each scalar,
 * which for 100,000 items costs twice the memory and a walk over all of them to free.
 */
#include "conf/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 4 << 10, LARGEST = 1 << 20 };

struct trp_conf_chunk {
    struct trp_conf_chunk *next;
    size_t size, used;
    max_align_t data[];
};

static struct trp_conf_chunk *add_chunk(struct trp_conf_arena *a, size_t need)
{
    size_t size = a->chunks ? a->chunks->size * 2 : FIRST;
    if (size > LARGEST)
        size = LARGEST;
    if (size < need)
        size = need;
    struct trp_conf_chunk *c = calloc(1, sizeof(*c) + size);
    if (!c)
        return NULL;
    c->size = size;
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

void *trp_conf_arena_alloc(struct trp_conf_arena *a, size_t count, size_t size)
{
    size_t align = _Alignof(max_align_t);
    size_t need;
    if (__builtin_mul_overflow(count, size, &need) || need > SIZE_MAX / 4)
        return NULL;
    need = (need + align - 1) / align * align;
    struct trp_conf_chunk *c = a->chunks;
    if (!c || c->size - c->used < need) {
        c = add_chunk(a, need);
        if (!c)
            return NULL;
    }
    void *piece = (char *)c->data + c->used;
    c->used += need;
    return piece;
}

char *trp_conf_arena_text(struct trp_conf_arena *a, const char *text, size_t size)
{
    char *copy = trp_conf_arena_alloc(a, size + 1, 1);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void trp_conf_arena_free(struct trp_conf_arena *a)
{
    for (struct trp_conf_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    a->chunks = NULL;
}
