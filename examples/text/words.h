/*
 * How often each word was seen, and in how many files: a hash table over words that are
 * kept in blocks, so that a word's text stays where it is. Functions end the program
 * when memory is out.
 */
#ifndef EXAMPLE_WORDS_H
#define EXAMPLE_WORDS_H

#include <stddef.h>
#include <stdint.h>

struct word {
    const char *text;
    uint64_t count;
    uint32_t files;
    uint32_t last; /* the file it was last seen in */
    uint32_t hash;
};

struct words {
    struct word *all; /* in the order of their first appearance */
    size_t n, capacity;
    uint32_t *slots; /* index into all + 1; 0: empty */
    size_t nslots;   /* a power of two */
    struct words_block *blocks;
};

uint32_t words_hash(const char *text);
/* The word, added with zeros when it is new. Valid until the next call. */
struct word *words_get(struct words *w, const char *text);
/* The word, or NULL. */
const struct word *words_find(const struct words *w, const char *text);
/* Sorts `all` by text; no other call but words_free may follow. */
void words_sort(struct words *w);
void words_free(struct words *w);

/* Adds the lines "WORD\tCOUNT\tFILES" of a file. */
void words_load(struct words *w, const char *path);

#endif
