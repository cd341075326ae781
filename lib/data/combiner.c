/*
 * Keys in memory: open addressing with linear probing, at most half full. A slot has
 * 32 bits of the hash, so that a key is looked at only where it is nearly sure to be
 * the one.
 */
#include "data/combiner.h"

#include <stdlib.h>
#include <xxhash.h>

enum { SLOTS_MIN = 1024 };

void trp_combiner_free(struct trp_combiner *c)
{
    free(c->slots);
    *c = (struct trp_combiner){0};
}

void trp_combiner_clear(struct trp_combiner *c)
{
    if (c->nslots > 0)
        memset(c->slots, 0, c->nslots * sizeof *c->slots);
}

struct trp_entry *trp_combiner_find(const struct trp_combiner *c,
                                    const struct trp_sorter *s, uint32_t partition,
                                    const void *key, size_t nk, uint32_t *ret_hash)
{
    uint32_t hash = (uint32_t)XXH3_64bits_withSeed(key, nk, partition);
    *ret_hash = hash;
    for (size_t i = hash; c->nslots > 0; i++) {
        const struct trp_slot *slot = &c->slots[i & (c->nslots - 1)];
        if (slot->entry == 0)
            return NULL;
        if (slot->hash != hash)
            continue;
        struct trp_entry *e = &s->entries[slot->entry - 1];
        struct trp_record r = trp_sorter_get(s, e);
        if (e->partition == partition && r.nk == nk &&
            (nk == 0 || memcmp(r.key, key, nk) == 0))
            return e;
    }
    return NULL;
}

static void put(struct trp_combiner *c, struct trp_slot slot)
{
    size_t i = slot.hash & (c->nslots - 1);
    while (c->slots[i].entry != 0)
        i = (i + 1) & (c->nslots - 1);
    c->slots[i] = slot;
}

static int grow(struct trp_combiner *c)
{
    struct trp_combiner larger = {.nslots = c->nslots ? c->nslots * 2 : SLOTS_MIN};
    larger.slots = (struct trp_slot *)calloc(larger.nslots, sizeof *larger.slots);
    if (!larger.slots)
        return TRP_ENOMEM;
    for (size_t i = 0; i < c->nslots; i++)
        if (c->slots[i].entry != 0)
            put(&larger, c->slots[i]);
    free(c->slots);
    *c = larger;
    return 0;
}

int trp_combiner_put(struct trp_combiner *c, const struct trp_sorter *s, uint32_t hash)
{
    if (s->n * 2 > c->nslots && grow(c) < 0)
        return TRP_ENOMEM;
    put(c, (struct trp_slot){hash, (uint32_t)s->n});
    return 0;
}
