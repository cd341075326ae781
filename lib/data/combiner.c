/*
 * Keys in memory: open addressing with linear probing, at most half full. A slot has
 * 32 bits of the hash, so that a key is looked at only where it is nearly sure to be
 * the one.
 *
 * Slot, entry and record of a key lie in three places, each known by the one before. With
 * many keys none is in the processor's caches, so those of several keys are fetched side
 * by side before the first is looked at.
 */
#include "data/combiner.h"

#include <stdlib.h>

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

static struct trp_slot *slot_of(const struct trp_combiner *c, uint64_t hash)
{
    return &c->slots[(hash >> 32) & (c->nslots - 1)];
}

void trp_combiner_fetch(const struct trp_combiner *c, const struct trp_sorter *s,
                        const uint64_t *hashes, size_t n)
{
    const uint8_t *records = (const uint8_t *)s->bytes.p;
    if (c->nslots == 0)
        return;
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(slot_of(c, hashes[i]));
    for (size_t i = 0; i < n; i++)
        if (slot_of(c, hashes[i])->entry != 0)
            __builtin_prefetch(&s->entries[slot_of(c, hashes[i])->entry - 1]);
    for (size_t i = 0; i < n; i++)
        if (slot_of(c, hashes[i])->entry != 0)
            __builtin_prefetch(records +
                               (size_t)s->entries[slot_of(c, hashes[i])->entry - 1].at *
                                   TRP_SORTER_UNIT);
}

struct trp_entry *trp_combiner_find(const struct trp_combiner *c,
                                    const struct trp_sorter *s, uint32_t partition,
                                    const struct trp_shuffle_record *r, uint64_t hash)
{
    const uint32_t wanted = (uint32_t)(hash >> 32);
    for (size_t i = wanted; c->nslots > 0; i++) {
        const struct trp_slot *slot = &c->slots[i & (c->nslots - 1)];
        if (slot->entry == 0)
            return NULL;
        if (slot->hash != wanted)
            continue;
        struct trp_entry *e = &s->entries[slot->entry - 1];
        struct trp_record has = trp_sorter_get(s, e);
        if (e->partition == partition && has.nk == r->nk &&
            (r->nk == 0 || memcmp(has.key, r->key, r->nk) == 0))
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

static int grow_table(struct trp_combiner *c)
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

int trp_combiner_put(struct trp_combiner *c, const struct trp_sorter *s, uint64_t hash)
{
    if (s->n * 2 > c->nslots && grow_table(c) < 0)
        return TRP_ENOMEM;
    put(c, (struct trp_slot){(uint32_t)(hash >> 32), (uint32_t)s->n});
    return 0;
}
