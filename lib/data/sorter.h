/*
 * Records in memory, and their order by partition and key. Internal to lib/data.
 *
 * Records lie one behind the other in the form of record.h; beside each there is an
 * *entry* with the first bytes of its key, by which it is sorted without a look at the
 * record. Sorting keeps the order of equal keys.
 *
 *     trp_sorter_init(&s, order);
 *     while (trp_sorter_needs(n) <= limit - trp_sorter_memory(&s))
 *         trp_sorter_add(&s, partition, key, nk, value, nv);
 *     trp_sorter_sort(&s, &err);
 *     for (i = 0; i < s.n; i++)
 *         … trp_sorter_record(&s, &s.entries[i]) …
 *     trp_sorter_clear(&s);
 */
#ifndef TRP_DATA_SORTER_H
#define TRP_DATA_SORTER_H

#include "data/record.h"
#include "data/region.h"

struct trp_entry {
    uint64_t prefix;    /* trp_key_prefix */
    uint32_t partition; /* sorted by this, then by key */
    uint32_t at;        /* of the record, in units of TRP_SORTER_UNIT bytes */
};

enum { TRP_SORTER_UNIT = 4 };
/* What the offsets of entries reach. */
#define TRP_SORTER_BYTES_MAX ((uint64_t)TRP_SORTER_UNIT << 32)

struct trp_sorter {
    const struct trp_shuffle_order *order;
    struct trp_region bytes, index, scratch;
    size_t used;               /* of bytes */
    size_t garbage;            /* of these: records that were replaced */
    struct trp_entry *entries; /* n of them, in `index` */
    size_t n;
    uint32_t npartitions; /* one above the highest that was added */
};

void trp_sorter_init(struct trp_sorter *s, const struct trp_shuffle_order *order);
void trp_sorter_free(struct trp_sorter *s);
/* The same, and nobody keeps the memory (region.h). */
void trp_sorter_unmap(struct trp_sorter *s);
/* Forgets all records, and keeps the memory. */
void trp_sorter_clear(struct trp_sorter *s);

static inline size_t trp_sorter_units(size_t bytes)
{
    return (bytes + TRP_SORTER_UNIT - 1) / TRP_SORTER_UNIT;
}

/* What a record of `n` bytes takes, with what sorting it takes. */
static inline size_t trp_sorter_needs(size_t n)
{
    return trp_sorter_units(n) * TRP_SORTER_UNIT + 2 * sizeof(struct trp_entry);
}

/* What all records take. */
static inline size_t trp_sorter_memory(const struct trp_sorter *s)
{
    return s->used + s->n * 2 * sizeof(struct trp_entry);
}

/* TRP_ENOMEM; TRP_ELIMIT: offsets reach no further. */
int trp_sorter_add(struct trp_sorter *s, uint32_t partition, const void *key,
                   uint32_t nk, const void *value, uint32_t nv);

/* Another value for an entry's key. The same failures; it is as before then. */
int trp_sorter_replace(struct trp_sorter *s, struct trp_entry *e, uint32_t nv,
                       const void *value);
/* Leaves out what was replaced, which takes as much memory again as what was not.
 * TRP_ENOMEM. */
int trp_sorter_compact(struct trp_sorter *s);

/* The bytes of an entry's record, as many as *ret_size. */
const uint8_t *trp_sorter_record(const struct trp_sorter *s, const struct trp_entry *e,
                                 size_t *ret_size);
/* The same, read. */
static inline struct trp_record trp_sorter_get(const struct trp_sorter *s,
                                               const struct trp_entry *e)
{
    const uint8_t *bytes = (const uint8_t *)s->bytes.p;
    struct trp_record r = {0};
    trp_record_get(bytes + (size_t)e->at * TRP_SORTER_UNIT, bytes + s->used, &r);
    return r;
}

/* TRP_ENOMEM; TRP_EINVAL: the comparison is no order. */
int trp_sorter_sort(struct trp_sorter *s, trp_error *err);

#endif
