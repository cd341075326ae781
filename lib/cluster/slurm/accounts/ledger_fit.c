/*
 * What the driver's own job, or all that is held, has room for when it is empty: played
 * on an empty ledger of its own for gangs, counted node by node for executors.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/accounts/ledger_state.h"

enum { GANGS_COUNTED = 4096 };

static uint32_t nodes_of(const trp_slurm_ledger *b)
{
    const struct trp_slurm_span *last = b->nspans ? &b->spans[b->nspans - 1] : NULL;
    return last ? last->begin + last->n : 0;
}

/* Why not even one unit has room on any node: what is short on the best of them. */
static void explain(const trp_slurm_ledger *b,
                    const struct trp_slurm_footprint *footprint, uint32_t units,
                    trp_error *err)
{
    uint64_t cores = 0;
    int64_t memory = 0;
    for (uint32_t i = 0; i < nodes_of(b); i++) {
        const struct trp_slurm_room *r = &b->all.rooms[b->order[i]];
        int64_t own = b->order[i] == b->driver.node ? b->driver.srun_mib : 0;
        cores = r->cores > cores ? r->cores : cores;
        memory = r->memory_mib - own > memory ? r->memory_mib - own : memory;
    }
    if (footprint->cores > cores) {
        trp_error_set(err, TRP_ENEVER, "cores wanted %llu, at most %llu on a node",
                      (unsigned long long)footprint->cores, (unsigned long long)cores);
        return;
    }
    if (footprint->memory_mib > memory) {
        struct trp_memory_pair m = trp_memory_pair(footprint->memory_mib, memory);
        trp_error_set(err, TRP_ENEVER, "memory wanted %s, at most %s on a node", m.a,
                      m.b);
        return;
    }
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        uint64_t most = 0;
        for (uint32_t k = 0; k < nodes_of(b); k++) {
            uint64_t n = trp_slurm_ledger_available(b, &b->all, b->order[k], w);
            most = n > most ? n : most;
        }
        if (most < w->count) {
            trp_error_set(err, TRP_ENEVER, "%s wanted %u, at most %llu on a node",
                          w->resource, w->count, (unsigned long long)most);
            return;
        }
    }
    if (units > 1)
        trp_error_set(err, TRP_ENEVER,
                      "%u ranks wanted at once, and the job's nodes have not so many",
                      units);
    else
        trp_error_set(err, TRP_ENEVER,
                      "no node of the job has all of what is wanted at once");
}

static uint32_t count_executors(trp_slurm_ledger *b,
                                const struct trp_slurm_footprint *footprint)
{
    const struct trp_slurm_inventory *v = b->inventory;
    uint64_t sum = 0, here = 0;
    bool known = b->driver.node < v->nnodes;
    for (uint32_t i = 0; i < nodes_of(b); i++) {
        uint64_t n = trp_slurm_ledger_units(b, &b->free, b->order[i], footprint);
        here = b->order[i] == b->driver.node ? n : here;
        sum += n;
    }
    /* Each has its srun on the driver's node: fewer there, or fewer altogether. */
    int64_t memory = known ? b->free.rooms[b->driver.node].memory_mib : 0;
    while (known && here > 0 &&
           (int64_t)here * footprint->memory_mib + (int64_t)sum * b->driver.srun_mib >
               memory) {
        here--;
        sum--;
    }
    if (known && b->driver.srun_mib > 0 && (int64_t)sum * b->driver.srun_mib > memory)
        sum = (uint64_t)(memory / b->driver.srun_mib);
    return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

/* Licences are the job's, not a node's. */
static bool wants_licences(const struct trp_slurm_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        if (footprint->wants[i].kind == TRP_SLURM_LICENCE)
            return true;
    }
    return false;
}

static uint32_t count_placed(trp_slurm_ledger *b,
                             const struct trp_slurm_footprint *footprint,
                             uint32_t units)
{
    struct trp_slurm_request r = {.footprint = *footprint, .units = units};
    uint32_t n = 0;
    r.spots = calloc(b->inventory->nnodes + 1, sizeof *r.spots);
    while (r.spots && n < GANGS_COUNTED &&
           trp_slurm_ledger_place(b, &r, TRP_SLURM_GOOD)) {
        r.nspots = 0;
        n++;
    }
    free(r.spots);
    return n;
}

trp_slurm_ledger *trp_slurm_ledger_own(const trp_slurm_ledger *b, uint32_t parts,
                                       trp_error *err)
{
    trp_slurm_ledger *own;
    const struct trp_slurm_share whole = {
        .node = UINT32_MAX}; /* the share is off `all` already */
    if (trp_slurm_ledger_new(b->inventory, &whole, &own, err) < 0)
        return NULL;
    own->driver = b->driver;
    memcpy(own->all.rooms, b->all.rooms, b->inventory->nnodes * sizeof *own->all.rooms);
    own->nspans = 0;
    for (uint32_t i = 0; i < b->nspans; i++) {
        if (b->spans[i].part >= parts)
            continue;
        own->spans[own->nspans] = b->spans[i];
        own->spans[own->nspans++].blocked = false; /* nobody waits there */
    }
    trp_slurm_ledger_set_order(own);
    trp_slurm_ledger_empty(own);
    return own;
}

static uint32_t fit(const trp_slurm_ledger *b,
                    const struct trp_slurm_footprint *footprint, uint32_t units,
                    uint32_t parts, trp_error *err)
{
    trp_slurm_ledger *own = trp_slurm_ledger_own(b, parts, err);
    if (!own)
        return 0;
    uint32_t n = units > 1 || wants_licences(footprint)
                     ? count_placed(own, footprint, units)
                     : count_executors(own, footprint);
    if (n == 0) {
        trp_slurm_ledger_empty(own);
        explain(own, footprint, units, err);
    }
    trp_slurm_ledger_free(own);
    return n;
}

uint32_t trp_slurm_ledger_fit(const trp_slurm_ledger *b,
                              const struct trp_slurm_footprint *footprint,
                              uint32_t units, trp_error *err)
{
    return fit(b, footprint, units, b->nown, err);
}

uint32_t trp_slurm_ledger_held(const trp_slurm_ledger *b,
                               const struct trp_slurm_footprint *footprint,
                               uint32_t units)
{
    return fit(b, footprint, units, UINT32_MAX, NULL);
}

bool trp_slurm_ledger_another(const trp_slurm_ledger *b,
                              const struct trp_slurm_request_kind *kind,
                              const char *host)
{
    for (uint32_t i = 0; i < nodes_of(b); i++) {
        uint32_t node = b->order[i];
        if (b->standing[node] < TRP_SLURM_CLOSED && !b->held[node] &&
            strcmp(b->inventory->nodes[node].name, host) != 0 &&
            trp_slurm_ledger_units(b, &b->all, node, &kind->footprint) > 0)
            return true;
    }
    return false;
}

void trp_slurm_ledger_room(const trp_slurm_ledger *b, struct trp_room *ret)
{
    *ret = (struct trp_room){0};
    for (uint32_t i = 0; i < b->inventory->nnodes; i++) {
        const struct trp_slurm_node *n = &b->inventory->nodes[i];
        const struct trp_slurm_room *all = &b->all.rooms[i], *left = &b->free.rooms[i];
        if (!n->name || b->standing[i] >= TRP_SLURM_CLOSED)
            continue;
        ret->hosts++;
        ret->cores += all->cores;
        ret->cores_free += left->cores;
        ret->memory_mib += all->memory_mib;
        ret->memory_free += left->memory_mib;
        for (uint32_t k = 0; k < n->npools; k++)
            trp_room_add(ret, n->pools[k].name, all->pools[k], left->pools[k]);
    }
}
