/*
 * Open addressing over an array of n-grams, whose texts lie in one buffer: two growing
 * arrays and no allocation for an n-gram.
 */
#define _GNU_SOURCE 1 /* qsort_r */
#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRY = 12 };

/* FNV-1a. */
static uint32_t hash_of(uint8_t section, uint8_t n, const char *text, size_t size)
{
    uint32_t h = (2166136261u ^ section) * 16777619u;
    h = (h ^ n) * 16777619u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ (uint8_t)text[i]) * 16777619u;
    return h;
}

static int grow_slots(struct table *t)
{
    size_t n = t->nslots ? 2 * t->nslots : 1024;
    uint32_t *slots = calloc(n, sizeof(*slots));
    if (!slots)
        return -1;
    for (size_t i = 0; i < t->ngrams; i++) {
        size_t at = t->grams[i].hash & (n - 1);
        while (slots[at])
            at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->nslots = n;
    return 0;
}

/* Room for one more n-gram of `size` bytes of text. */
static int reserve(struct table *t, size_t size)
{
    if (t->ngrams == t->grams_capacity) {
        size_t n = t->grams_capacity ? 2 * t->grams_capacity : 512;
        struct ngram *p = n <= UINT32_MAX ? realloc(t->grams, n * sizeof(*p)) : NULL;
        if (!p)
            return -1;
        t->grams = p;
        t->grams_capacity = n;
    }
    if (t->texts_capacity - t->texts_size < size) {
        size_t n = 2 * t->texts_capacity + size + 4096;
        char *p = realloc(t->texts, n);
        if (!p)
            return -1;
        t->texts = p;
        t->texts_capacity = n;
    }
    return 0;
}

int table_add(struct table *t, uint8_t section, uint8_t n, const char *text,
              size_t size, uint64_t count)
{
    if (size > UINT16_MAX)
        return 0; /* no word of a language */
    if (t->ngrams * 4 >= t->nslots * 3 && grow_slots(t) < 0)
        return -1;
    uint32_t hash = hash_of(section, n, text, size);
    size_t at = hash & (t->nslots - 1);
    for (; t->slots[at]; at = (at + 1) & (t->nslots - 1)) {
        struct ngram *g = &t->grams[t->slots[at] - 1];
        if (g->hash == hash && g->size == size && g->section == section && g->n == n &&
            memcmp(t->texts + g->text, text, size) == 0) {
            g->count += count;
            return 0;
        }
    }
    if (reserve(t, size) < 0)
        return -1;
    t->grams[t->ngrams] = (struct ngram){.count = count,
                                         .text = t->texts_size,
                                         .hash = hash,
                                         .size = (uint16_t)size,
                                         .section = section,
                                         .n = n};
    if (size)
        memcpy(t->texts + t->texts_size, text, size);
    t->texts_size += size;
    t->slots[at] = (uint32_t)++t->ngrams;
    return 0;
}

void table_free(struct table *t)
{
    free(t->grams);
    free(t->slots);
    free(t->texts);
}

int bytes_put(struct bytes *b, const void *p, size_t n)
{
    if (b->capacity - b->size < n) {
        size_t want = 2 * b->capacity + n + 4096;
        char *q = realloc(b->data, want);
        if (!q)
            return -1;
        b->data = q;
        b->capacity = want;
    }
    if (n)
        memcpy(b->data + b->size, p, n);
    b->size += n;
    return 0;
}

int bytes_put_ngram(struct bytes *b, const struct table *t, const struct ngram *g)
{
    char head[ENTRY] = {(char)g->section, (char)g->n};
    memcpy(head + 2, &g->size, 2);
    memcpy(head + 4, &g->count, 8);
    if (bytes_put(b, head, sizeof(head)) < 0)
        return -1;
    return bytes_put(b, t->texts + g->text, g->size);
}

int ngram_next(const char **at, const char *end, struct ngram *ret,
               const char **ret_text)
{
    if (end - *at < ENTRY)
        return 0;
    *ret = (struct ngram){.section = (uint8_t)(*at)[0], .n = (uint8_t)(*at)[1]};
    memcpy(&ret->size, *at + 2, 2);
    memcpy(&ret->count, *at + 4, 8);
    if (end - *at - ENTRY < ret->size)
        return 0;
    *ret_text = *at + ENTRY;
    *at += ENTRY + ret->size;
    return 1;
}

int table_add_bytes(struct table *t, const void *data, size_t size)
{
    const char *at = data, *end = at + size, *text;
    struct ngram g;
    while (ngram_next(&at, end, &g, &text))
        if (table_add(t, g.section, g.n, text, g.size, g.count) < 0)
            return -1;
    return at == end ? 0 : -1;
}

static int by_count(const void *a, const void *b, void *table)
{
    const struct ngram *x = a, *y = b;
    const struct table *t = table;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    size_t common = x->size < y->size ? x->size : y->size;
    int order = memcmp(t->texts + x->text, t->texts + y->text, common);
    return order ? order : (int)x->size - (int)y->size;
}

int table_top(struct table *t, uint32_t top, struct bytes *ret)
{
    if (t->ngrams)
        qsort_r(t->grams, t->ngrams, sizeof(*t->grams), by_count, t);
    uint32_t taken = 0;
    for (size_t i = 0; i < t->ngrams; i++) {
        const struct ngram *g = &t->grams[i];
        if (i == 0 || g[-1].section != g->section || g[-1].n != g->n)
            taken = 0;
        if (taken++ < top && bytes_put_ngram(ret, t, g) < 0)
            return -1;
    }
    return 0;
}
