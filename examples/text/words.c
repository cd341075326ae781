/*
 * Open addressing with linear probing, at most half full; the hash is FNV-1a, which
 * also says which bucket a word belongs to when counts are dealt to several tasks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "words.h"

enum { BLOCK_SIZE = 256 << 10 };

struct words_block {
    struct words_block *next;
    size_t used;
    char text[BLOCK_SIZE];
};

static void *need(void *p)
{
    if (!p)
        text_fail("out of memory");
    return p;
}

uint32_t words_hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        h = (h ^ *p) * 16777619u;
    return h;
}

static const char *keep(struct words *w, const char *text)
{
    size_t n = strlen(text) + 1;
    if (n > BLOCK_SIZE)
        text_fail("a word of %zu bytes", n);
    if (!w->blocks || w->blocks->used + n > BLOCK_SIZE) {
        struct words_block *b = need(malloc(sizeof(*b)));
        b->next = w->blocks;
        b->used = 0;
        w->blocks = b;
    }
    char *kept = w->blocks->text + w->blocks->used;
    memcpy(kept, text, n);
    w->blocks->used += n;
    return kept;
}

/* Where the word is, or where it would be put. */
static uint32_t *slot_of(const struct words *w, const char *text, uint32_t hash)
{
    size_t mask = w->nslots - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &w->slots[i];
        if (!*slot || (w->all[*slot - 1].hash == hash &&
                       strcmp(w->all[*slot - 1].text, text) == 0))
            return slot;
    }
}

static void grow(struct words *w)
{
    w->capacity = w->capacity ? 2 * w->capacity : 256;
    w->all = need(reallocarray(w->all, w->capacity, sizeof(*w->all)));
    free(w->slots);
    w->nslots = 2 * w->capacity;
    w->slots = need(calloc(w->nslots, sizeof(*w->slots)));
    for (size_t i = 0; i < w->n; i++)
        *slot_of(w, w->all[i].text, w->all[i].hash) = (uint32_t)(i + 1);
}

struct word *words_get(struct words *w, const char *text)
{
    if (w->n == w->capacity)
        grow(w);
    uint32_t hash = words_hash(text), *slot = slot_of(w, text, hash);
    if (!*slot) {
        w->all[w->n++] = (struct word){.text = keep(w, text), .hash = hash};
        *slot = (uint32_t)w->n;
    }
    return &w->all[*slot - 1];
}

const struct word *words_find(const struct words *w, const char *text)
{
    uint32_t *slot = w->nslots ? slot_of(w, text, words_hash(text)) : NULL;
    return slot && *slot ? &w->all[*slot - 1] : NULL;
}

static int by_text(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    return strcmp(x->text, y->text);
}

void words_sort(struct words *w)
{
    if (w->n)
        qsort(w->all, w->n, sizeof(*w->all), by_text);
}

void words_free(struct words *w)
{
    while (w->blocks) {
        struct words_block *b = w->blocks;
        w->blocks = b->next;
        free(b);
    }
    free(w->all);
    free(w->slots);
    *w = (struct words){0};
}

void words_load(struct words *w, const char *path)
{
    FILE *f = text_open(path, "re");
    char text[TEXT_WORD_MAX + 1];
    uint64_t count;
    uint32_t files;
    int n;
    while ((n = fscanf(f, "%30[^\t\n]\t%" SCNu64 "\t%" SCNu32 "\n", text, &count,
                       &files)) == 3) {
        struct word *word = words_get(w, text);
        word->count += count;
        word->files += files;
    }
    if (n != EOF)
        text_fail("%s: not a list of words", path);
    fclose(f);
}
