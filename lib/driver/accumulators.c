/*
 * What was counted is a set of bits for each maker that added to an accumulator. There are
 * few, and the last one is mostly asked for.
 */
#include "driver/accumulators.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/engine.h"
#include "wire/message.h"

struct counted {
    uint32_t maker;
    uint32_t nbits; /* words */
    uint64_t *bits; /* by partition */
};

struct accumulator {
    struct counted *counted;
    uint32_t ncounted, counted_capacity;
    char *name;
    int64_t value;
    uint32_t update; /* 1 + its place among those of the present call; 0: none */
};

struct trp_accumulators {
    struct accumulator *v; /* by id - 1 */
    uint32_t n, capacity;
    struct trp_event_update *updates;
    uint32_t nupdates, updates_capacity;
};

trp_accumulators *trp_accumulators_new(void)
{
    return calloc(1, sizeof(trp_accumulators));
}

void trp_accumulators_free(trp_accumulators *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->n; i++) {
        for (uint32_t k = 0; k < a->v[i].ncounted; k++)
            free(a->v[i].counted[k].bits);
        free(a->v[i].counted);
        free(a->v[i].name);
    }
    free(a->v);
    free(a->updates);
    free(a);
}

uint32_t trp_accumulators_add(trp_accumulators *a, const char *name)
{
    char *copy = strdup(name);
    if (!copy || !TRP_ARRAY_GROW(a->v, a->n, a->capacity)) {
        free(copy);
        return 0;
    }
    a->v[a->n++] = (struct accumulator){.name = copy};
    return a->n;
}

int64_t trp_accumulators_value(const trp_accumulators *a, uint32_t id)
{
    return id > 0 && id <= a->n ? a->v[id - 1].value : 0;
}

static struct counted *find(struct accumulator *a, uint32_t maker)
{
    for (uint32_t i = a->ncounted; i-- > 0;)
        if (a->counted[i].maker == maker)
            return &a->counted[i];
    if (!TRP_ARRAY_GROW(a->counted, a->ncounted, a->counted_capacity))
        return NULL;
    a->counted[a->ncounted] = (struct counted){.maker = maker};
    return &a->counted[a->ncounted++];
}

/* 1: it is the first of its partition; 0: it is not. */
static int note_partition(struct accumulator *a, const struct trp_added *e)
{
    struct counted *c = find(a, e->maker);
    uint64_t bit = UINT64_C(1) << e->partition % 64;
    if (!c ||
        !TRP_ARRAY_RESERVE_ZEROED(c->bits, c->nbits, (uint64_t)e->partition / 64 + 1))
        return TRP_ENOMEM;
    uint64_t *word = &c->bits[e->partition / 64];
    if (*word & bit)
        return 0;
    *word |= bit;
    return 1;
}

static int take_update(trp_accumulators *a, const struct trp_added *e)
{
    struct accumulator *to = &a->v[e->accumulator - 1];
    int rc = note_partition(to, e);
    if (rc <= 0)
        return rc;
    if (!to->update) {
        if (!TRP_ARRAY_GROW(a->updates, a->nupdates, a->updates_capacity))
            return TRP_ENOMEM;
        a->updates[a->nupdates++] =
            (struct trp_event_update){.id = e->accumulator, .name = to->name};
        to->update = a->nupdates;
    }
    struct trp_event_update *u = &a->updates[to->update - 1];
    to->value = (int64_t)((uint64_t)to->value + (uint64_t)e->value);
    u->update = (int64_t)((uint64_t)u->update + (uint64_t)e->value);
    u->value = to->value;
    return 0;
}

int trp_accumulators_take(trp_accumulators *a, const uint8_t *added, uint32_t nadded,
                          const struct trp_event_update **ret_updates)
{
    int rc = 0;
    a->nupdates = 0;
    for (uint32_t i = 0; rc == 0 && i < nadded; i++) {
        const struct trp_added e = trp_added_at(added, i);
        if (e.accumulator > 0 && e.accumulator <= a->n &&
            e.partition < TRP_DATASET_PARTITIONS_MAX)
            rc = take_update(a, &e);
    }
    for (uint32_t i = 0; i < a->nupdates; i++)
        a->v[a->updates[i].id - 1].update = 0;
    *ret_updates = a->updates;
    return rc < 0 ? rc : (int)a->nupdates;
}
