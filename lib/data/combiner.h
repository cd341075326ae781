/*
 * A table of the keys that are in memory, so that values are combined as they come.
 * Internal to lib/data.
 *
 * It finds entries of a sorter that is not sorted yet, by partition and bytes of the
 * key. Whoever uses it hashes keys.
 */
#ifndef TRP_DATA_COMBINER_H
#define TRP_DATA_COMBINER_H

#include "data/sorter.h"

struct trp_combiner {
    struct trp_slot {
        uint32_t hash;
        uint32_t entry; /* its index and 1; 0: free */
    } * slots;
    size_t nslots; /* a power of two; 0: none yet */
};

void trp_combiner_free(struct trp_combiner *c);
/* All keys are gone. */
void trp_combiner_clear(struct trp_combiner *c);

static inline size_t trp_combiner_memory(const struct trp_combiner *c)
{
    return c->nslots * sizeof *c->slots;
}
/* What it grows by with the next key, mostly nothing. */
static inline size_t trp_combiner_needs(const struct trp_combiner *c,
                                        const struct trp_sorter *s)
{
    return (s->n + 1) * 2 > c->nslots ? trp_combiner_memory(c) : 0;
}

/* What trp_combiner_find will look at for keys of these hashes is fetched, for all at
 * once: most of it is far from the processor. */
void trp_combiner_fetch(const struct trp_combiner *c, const struct trp_sorter *s,
                        const uint64_t *hashes, size_t n);
/* The entry of a key; NULL: it is not there. */
struct trp_entry *trp_combiner_find(const struct trp_combiner *c,
                                    const struct trp_sorter *s, uint32_t partition,
                                    const struct trp_shuffle_record *r, uint64_t hash);
/* Puts in the last entry of the sorter. TRP_ENOMEM. */
int trp_combiner_put(struct trp_combiner *c, const struct trp_sorter *s, uint64_t hash);

#endif
