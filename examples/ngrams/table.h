/*
 * How often each n-gram was seen: a hash table, and the bytes in which parts of one
 * travel between tasks. An n-gram is a text of `n` words of a section; n == 0 stands
 * for all words of the section together.
 *
 * An entry in bytes: section (1), n (1), length of the text (2), count (8), text.
 */
#ifndef NGRAMS_TABLE_H
#define NGRAMS_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct ngram {
    uint64_t count;
    size_t text; /* offset in table.texts */
    uint32_t hash;
    uint16_t size; /* of the text */
    uint8_t section, n;
};

struct table {
    struct ngram *grams;
    size_t ngrams, grams_capacity;
    uint32_t *slots; /* index into grams + 1; 0: empty */
    size_t nslots;   /* a power of two */
    char *texts;
    size_t texts_size, texts_capacity;
};

/* Zero-initialise a table; 0, or -1 when memory is out. */
int table_add(struct table *t, uint8_t section, uint8_t n, const char *text,
              size_t size, uint64_t count);
void table_free(struct table *t);

struct bytes {
    char *data;
    size_t size, capacity;
};
int bytes_put(struct bytes *b, const void *p, size_t n);
int bytes_put_ngram(struct bytes *b, const struct table *t, const struct ngram *g);

/* Takes the entry at *at (moved behind it): 1, or 0 at the end or when the bytes are
 * not entries. The text is borrowed. */
int ngram_next(const char **at, const char *end, struct ngram *ret,
               const char **ret_text);
/* Adds all entries of `data`. */
int table_add_bytes(struct table *t, const void *data, size_t size);
/* The `top` most frequent n-grams of each section and n, in that order, as bytes.
 * Sorts the table, which takes no more after that. */
int table_top(struct table *t, uint32_t top, struct bytes *ret);

#endif
