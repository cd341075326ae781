/*
 * A pool's free count is kept apart from the inventory, which never changes. Placing
 * looks at the nodes in order, O(nodes) for each request that is served and for each
 * kind that has no room; `fit` plays it on an empty ledger of its own for gangs, and
 * counts node by node for executors.
 */
#include "cluster/slurm/accounts/ledger_state.h"
#include "cluster/slurm/shared/driver_share.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

/* ---- parts and nodes ---- */

/* Arrays of the same length, by node or by part: each grows to the same capacity. */
#define GROW(v, had, footprint, ret_cap)                                               \
    (*(ret_cap) = (had), TRP_ARRAY_RESERVE_ZEROED(v, *(ret_cap), (footprint)))

/* Room for all that the inventory has. */
static int make_room(trp_slurm_ledger *b, trp_error *err)
{
    uint32_t nodes = b->inventory->nnodes + 1, parts = b->inventory->nparts + 1;
    uint32_t nodes_cap, parts_cap;
    if (!GROW(b->all.rooms, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->free.rooms, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->placed, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->standing, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->held, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->resized, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->order, b->nodes_cap, nodes, &nodes_cap) ||
        !GROW(b->all.licences, b->parts_cap, parts, &parts_cap) ||
        !GROW(b->free.licences, b->parts_cap, parts, &parts_cap) ||
        !GROW(b->spans, b->parts_cap, parts, &parts_cap))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the job's ledger");
    b->nodes_cap = nodes_cap;
    b->parts_cap = parts_cap;
    return 0;
}

/* The driver's node is the first of its part. */
void trp_slurm_ledger_set_order(trp_slurm_ledger *b)
{
    uint32_t n = 0, here = b->driver.node;
    for (uint32_t i = 0; i < b->nspans; i++) {
        struct trp_slurm_span *s = &b->spans[i];
        s->begin = n;
        if (here < b->inventory->nnodes && b->inventory->nodes[here].part == s->part)
            b->order[n++] = here;
        for (uint32_t k = 0; k < b->inventory->nnodes; k++) {
            const struct trp_slurm_node *node = &b->inventory->nodes[k];
            if (k != here && node->name && node->part == s->part)
                b->order[n++] = k;
        }
        s->n = n - s->begin;
    }
}

static void add_part(trp_slurm_ledger *b, uint32_t part)
{
    const struct trp_slurm_part *p = &b->inventory->parts[part];
    for (uint32_t i = 0; i < b->inventory->nnodes; i++) {
        const struct trp_slurm_node *node = &b->inventory->nodes[i];
        if (!node->name || node->part != part)
            continue;
        struct trp_slurm_room *r = &b->all.rooms[i];
        *r = (struct trp_slurm_room){.cores = node->cores,
                                     .memory_mib = node->memory_mib};
        for (uint32_t k = 0; k < node->npools; k++)
            r->pools[k] = node->pools[k].count;
        b->standing[i] = TRP_SLURM_GOOD;
        b->held[i] = false;
    }
    for (uint32_t k = 0; k < p->nlicences; k++)
        b->all.licences[part][k] = p->licences[k].count;
    b->spans[b->nspans++] = (struct trp_slurm_span){.part = part};
}

void trp_slurm_ledger_empty(trp_slurm_ledger *b)
{
    memcpy(b->free.rooms, b->all.rooms, b->inventory->nnodes * sizeof *b->free.rooms);
    memcpy(b->free.licences, b->all.licences,
           b->inventory->nparts * sizeof *b->free.licences);
}

int trp_slurm_ledger_add_part(trp_slurm_ledger *b, uint32_t part)
{
    int code = make_room(b, NULL);
    if (code < 0)
        return code;
    add_part(b, part);
    for (uint32_t i = 0; i < b->inventory->nnodes; i++) {
        if (b->inventory->nodes[i].name && b->inventory->nodes[i].part == part)
            b->free.rooms[i] = b->all.rooms[i];
    }
    memcpy(b->free.licences[part], b->all.licences[part], sizeof *b->free.licences);
    trp_slurm_ledger_set_order(b);
    return 0;
}

void trp_slurm_ledger_removed(trp_slurm_ledger *b)
{
    for (uint32_t i = 0; i < b->inventory->nnodes; i++) {
        if (!b->inventory->nodes[i].name)
            b->all.rooms[i] = b->free.rooms[i] = (struct trp_slurm_room){0};
    }
    trp_slurm_ledger_set_order(b);
}

void trp_slurm_ledger_close_part(trp_slurm_ledger *b, uint32_t part)
{
    for (uint32_t i = 0; i < b->nspans; i++) {
        if (b->spans[i].part != part)
            continue;
        b->nspans--;
        memmove(&b->spans[i], &b->spans[i + 1], (b->nspans - i) * sizeof *b->spans);
        trp_slurm_ledger_set_order(b);
        return;
    }
}

uint32_t trp_slurm_ledger_placed_on(const trp_slurm_ledger *b, uint32_t node)
{
    return b->placed[node];
}

uint32_t trp_slurm_ledger_placed(const trp_slurm_ledger *b, uint32_t part)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->inventory->nnodes; i++) {
        if (b->inventory->nodes[i].name && b->inventory->nodes[i].part == part)
            n += b->placed[i];
    }
    return n;
}

static int take_driver_share(trp_slurm_ledger *b, trp_error *err)
{
    const struct trp_slurm_share *d = &b->driver;
    if (d->node >= b->inventory->nnodes)
        return 0;
    struct trp_slurm_room *r = &b->all.rooms[d->node];
    const char *name = b->inventory->nodes[d->node].name;
    trp_error less;
    int code =
        trp_slurm_driver_fits(d->memory_mib, d->srun_mib, name, r->memory_mib, &less);
    if (code < 0)
        return trp_error_set(err, code, "%s; ask for more memory or set driver.memory",
                             less.text);
    if (d->cores > r->cores)
        return trp_error_set(
            err, TRP_ENEVER,
            "the driver's own share of %s is %u cores, the job has %llu "
            "there; ask for more or set driver.cores",
            name, d->cores, (unsigned long long)r->cores);
    r->memory_mib -= d->memory_mib;
    r->cores -= d->cores;
    return 0;
}

int trp_slurm_ledger_new(const struct trp_slurm_inventory *inventory,
                         const struct trp_slurm_share *driver, trp_slurm_ledger **ret,
                         trp_error *err)
{
    trp_slurm_ledger *b = calloc(1, sizeof *b);
    int code;
    if (!b)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the job's ledger");
    b->inventory = inventory;
    b->driver = *driver;
    code = make_room(b, err);
    for (uint32_t i = 0; code == 0 && i < inventory->nparts; i++)
        add_part(b, i);
    b->nown = b->nspans;
    if (code == 0)
        code = take_driver_share(b, err);
    if (code < 0) {
        trp_slurm_ledger_free(b);
        return code;
    }
    trp_slurm_ledger_set_order(b);
    trp_slurm_ledger_empty(b);
    *ret = b;
    return 0;
}

void trp_slurm_ledger_free(trp_slurm_ledger *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; i < b->nkinds; i++) {
        free(b->kinds[i]->not_on);
        free(b->kinds[i]);
    }
    free(b->kinds);
    free(b->spans);
    free(b->order);
    free(b->placed);
    free(b->standing);
    free(b->held);
    free(b->resized);
    free(b->all.rooms);
    free(b->free.rooms);
    free(b->all.licences);
    free(b->free.licences);
    free(b);
}

uint32_t trp_slurm_ledger_cores(const trp_slurm_ledger *b, uint32_t node)
{
    return (uint32_t)b->all.rooms[node].cores;
}

int64_t trp_slurm_ledger_memory(const trp_slurm_ledger *b, uint32_t node)
{
    return b->all.rooms[node].memory_mib;
}

void trp_slurm_ledger_set_standing(trp_slurm_ledger *b, uint32_t node,
                                   enum trp_slurm_standing standing)
{
    if (b->standing[node] == TRP_SLURM_GONE)
        return;
    b->standing[node] = standing;
    if (standing == TRP_SLURM_GONE)
        b->all.rooms[node] = (struct trp_slurm_room){0};
}

enum trp_slurm_standing trp_slurm_ledger_standing(const trp_slurm_ledger *b,
                                                  uint32_t node)
{
    return b->standing[node];
}

void trp_slurm_ledger_hold(trp_slurm_ledger *b, uint32_t node, bool held)
{
    b->held[node] = held;
}

void trp_slurm_ledger_resized(trp_slurm_ledger *b, uint32_t part)
{
    for (uint32_t i = 0; i < b->inventory->nnodes; i++) {
        if (b->inventory->nodes[i].name && b->inventory->nodes[i].part == part)
            b->resized[i]++;
    }
}

uint32_t trp_slurm_ledger_driver(const trp_slurm_ledger *b)
{
    return b->driver.node;
}

bool trp_slurm_ledger_is_held(const trp_slurm_ledger *b, uint32_t node)
{
    return b->held[node];
}

/* ---- one node ---- */

bool trp_slurm_names_have(const char *features, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = features; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n]))
            return true;
    }
    return false;
}

static bool is_kind(const struct trp_slurm_pool *p, const struct trp_slurm_want *w)
{
    return strcmp(p->name, w->name) == 0 &&
           (!*w->type || strcmp(p->type, w->type) == 0);
}

/* The pools that a want may be taken from, with what is free in them. */
static const struct trp_slurm_pool *
pools_of(const trp_slurm_ledger *b, const struct trp_slurm_side *side, uint32_t node,
         const struct trp_slurm_want *w, uint32_t **ret_free, uint32_t *ret_n)
{
    const struct trp_slurm_node *n = &b->inventory->nodes[node];
    const struct trp_slurm_part *part = &b->inventory->parts[n->part];
    bool device = w->kind == TRP_SLURM_GRES;
    *ret_free = device ? side->rooms[node].pools : side->licences[n->part];
    *ret_n = device ? n->npools : part->nlicences;
    return device ? n->pools : part->licences;
}

uint64_t trp_slurm_ledger_available(const trp_slurm_ledger *b,
                                    const struct trp_slurm_side *side, uint32_t node,
                                    const struct trp_slurm_want *w)
{
    uint32_t *left, n;
    uint64_t sum = 0;
    if (w->kind == TRP_SLURM_FEATURE)
        return trp_slurm_names_have(b->inventory->nodes[node].features, w->name)
                   ? UINT32_MAX
                   : 0;
    const struct trp_slurm_pool *p = pools_of(b, side, node, w, &left, &n);
    for (uint32_t i = 0; i < n; i++)
        sum += is_kind(&p[i], w) ? left[i] : 0;
    return sum;
}

/* Cores that so many units take: a step gets whole ones. */
static uint64_t cores_for(const struct trp_slurm_node *n, uint64_t cores)
{
    return (cores + n->threads - 1) / n->threads * n->threads;
}

/* Units that there is room for on a node. */
uint64_t trp_slurm_ledger_units(const trp_slurm_ledger *b,
                                const struct trp_slurm_side *side, uint32_t node,
                                const struct trp_slurm_footprint *footprint)
{
    const struct trp_slurm_node *n = &b->inventory->nodes[node];
    const struct trp_slurm_room *r = &side->rooms[node];
    uint64_t units = UINT32_MAX, cores = cores_for(n, footprint->cores);
    int64_t memory = r->memory_mib - (node == b->driver.node ? b->driver.srun_mib : 0);
    if (cores && r->cores / cores < units)
        units = r->cores / cores;
    if (memory < footprint->memory_mib)
        units = 0;
    else if (footprint->memory_mib &&
             (uint64_t)(memory / footprint->memory_mib) < units)
        units = (uint64_t)(memory / footprint->memory_mib);
    for (uint32_t i = 0; i < footprint->nwants && units; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        uint64_t room =
            trp_slurm_ledger_available(b, side, node, w) / w->count * w->each;
        units = room < units ? room : units;
    }
    return units;
}

bool trp_slurm_wants_devices(const struct trp_slurm_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        if (footprint->wants[i].kind == TRP_SLURM_GRES)
            return true;
    }
    return false;
}

/* Takes `count` of a want; a pool that has all of it first. */
static void take_want(trp_slurm_ledger *b, struct trp_slurm_spot *s,
                      const struct trp_slurm_want *w, uint32_t index, uint32_t count)
{
    uint32_t *left, n;
    const struct trp_slurm_pool *p = pools_of(b, &b->free, s->node, w, &left, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (is_kind(&p[i], w) && left[i] >= count) {
            left[i] -= count;
            s->takes[s->ntakes++] = (struct trp_slurm_take){index, i, count};
            return;
        }
    }
    for (uint32_t i = 0; i < n && count && s->ntakes < TRP_PROFILE_RESOURCES; i++) {
        uint32_t part = is_kind(&p[i], w) ? (left[i] < count ? left[i] : count) : 0;
        if (!part)
            continue;
        left[i] -= part;
        count -= part;
        s->takes[s->ntakes++] = (struct trp_slurm_take){index, i, part};
    }
}

/* Devices are taken for `even` units, all else for those that are there. */
static void take_spot(trp_slurm_ledger *b, const struct trp_slurm_footprint *footprint,
                      struct trp_slurm_spot *s, uint32_t even)
{
    const struct trp_slurm_node *n = &b->inventory->nodes[s->node];
    struct trp_slurm_room *r = &b->free.rooms[s->node];
    b->placed[s->node]++;
    s->resized = b->resized[s->node];
    r->cores -= cores_for(n, footprint->cores) * s->units;
    r->memory_mib -= footprint->memory_mib * s->units;
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        uint32_t units = w->kind == TRP_SLURM_GRES ? even : s->units;
        if (w->kind != TRP_SLURM_FEATURE)
            take_want(b, s, w, i, (units + w->each - 1) / w->each * w->count);
    }
}

/* `ended`: Slurm itself has ended the step, on all of its nodes. */
static void give_spot(trp_slurm_ledger *b, const struct trp_slurm_footprint *footprint,
                      const struct trp_slurm_spot *s, bool ended)
{
    const struct trp_slurm_node *n = &b->inventory->nodes[s->node];
    struct trp_slurm_room *r = &b->free.rooms[s->node];
    b->placed[s->node]--;
    if (ended || s->resized == b->resized[s->node])
        r->cores += cores_for(n, footprint->cores) * s->units;
    r->memory_mib += footprint->memory_mib * s->units;
    for (uint32_t i = 0; i < s->ntakes; i++) {
        uint32_t *left, unused;
        pools_of(b, &b->free, s->node, &footprint->wants[s->takes[i].want], &left,
                 &unused);
        left[s->takes[i].pool] += s->takes[i].count;
    }
}

/* ---- placement ---- */

bool trp_slurm_ledger_srun_room(const trp_slurm_ledger *b)
{
    return b->driver.node >= b->inventory->nnodes ||
           b->free.rooms[b->driver.node].memory_mib >= b->driver.srun_mib;
}

static void charge_srun(trp_slurm_ledger *b, int sign)
{
    if (b->driver.node < b->inventory->nnodes)
        b->free.rooms[b->driver.node].memory_mib += sign * b->driver.srun_mib;
}

static void unplace(trp_slurm_ledger *b, struct trp_slurm_request *r)
{
    bool ended = false;
    for (uint32_t i = 0; i < r->nspots; i++)
        ended = ended || b->standing[r->spots[i].node] == TRP_SLURM_GONE;
    for (uint32_t i = 0; i < r->nspots; i++)
        give_spot(b, &r->footprint, &r->spots[i], ended);
    r->nspots = 0;
}

/* A start of the kind has failed there, and there alone. */
static bool is_avoided(const trp_slurm_ledger *b,
                       const struct trp_slurm_request_kind *kind, uint32_t node)
{
    return kind && *kind->failed_on &&
           strcmp(kind->failed_on, b->inventory->nodes[node].name) == 0;
}

/* Is it never to be there? */
static bool is_barred(const trp_slurm_ledger *b,
                      const struct trp_slurm_request_kind *kind, uint32_t node)
{
    return kind && kind->not_on &&
           trp_slurm_names_have(kind->not_on, b->inventory->nodes[node].name);
}

/* What there is on a node for those who look, no more than they want. */
static uint32_t room_on(const trp_slurm_ledger *b, const struct trp_slurm_look *l,
                        uint32_t node)
{
    if (b->standing[node] > l->worst || b->held[node] || is_barred(b, l->kind, node) ||
        (l->worst == TRP_SLURM_GOOD && is_avoided(b, l->kind, node)))
        return 0;
    uint64_t room = trp_slurm_ledger_units(b, l->side, node, l->footprint);
    return room < l->units ? (uint32_t)room : l->units;
}

/* The most of any node of the part, but fewer than `below`. */
static uint32_t most_below(const trp_slurm_ledger *b, const struct trp_slurm_look *l,
                           const struct trp_slurm_span *span, uint32_t below)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < span->n; i++) {
        uint32_t room = room_on(b, l, b->order[span->begin + i]);
        most = room < below && room > most ? room : most;
    }
    return most;
}

static uint64_t sum_of(const trp_slurm_ledger *b, const struct trp_slurm_look *l,
                       const struct trp_slurm_span *span, uint32_t even)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < span->n; i++) {
        uint32_t room = room_on(b, l, b->order[span->begin + i]);
        sum += !even ? room : room >= even ? even : 0;
    }
    return sum;
}

bool trp_slurm_ledger_has_room(const trp_slurm_ledger *b,
                               const struct trp_slurm_look *l,
                               const struct trp_slurm_span *span)
{
    if (!trp_slurm_wants_devices(l->footprint))
        return sum_of(b, l, span, 0) >= l->units;
    uint32_t even = most_below(b, l, span, UINT32_MAX);
    while (even && sum_of(b, l, span, even) < l->units)
        even = most_below(b, l, span, even);
    return even > 0;
}

/* All units, with the devices of `even` on each node; 0: there are none. Or nothing. */
static bool place_by(trp_slurm_ledger *b, struct trp_slurm_request *r,
                     const struct trp_slurm_look *l, const struct trp_slurm_span *span,
                     uint32_t even)
{
    uint32_t left = r->units;
    for (uint32_t i = 0; i < span->n && left; i++) {
        uint32_t node = b->order[span->begin + i], units = room_on(b, l, node);
        if (!units || units < even)
            continue;
        units = even ? even : units;
        units = units < left ? units : left;
        struct trp_slurm_spot *s = &r->spots[r->nspots++];
        *s = (struct trp_slurm_spot){.node = node, .units = units};
        take_spot(b, &r->footprint, s, even);
        left -= units;
    }
    if (left)
        unplace(b, r);
    return !left;
}

/* All units in one part, on nodes whose standing is no worse, or none. */
static bool place_in(trp_slurm_ledger *b, struct trp_slurm_request *r,
                     const struct trp_slurm_span *span, enum trp_slurm_standing worst)
{
    const struct trp_slurm_look l = {&b->free, &r->footprint, r->units, r->kind, worst};
    if (!trp_slurm_wants_devices(&r->footprint))
        return place_by(b, r, &l, span, 0);
    uint32_t even = most_below(b, &l, span, UINT32_MAX);
    while (even && !place_by(b, r, &l, span, even))
        even = most_below(b, &l, span, even);
    return even > 0;
}

bool trp_slurm_ledger_place(trp_slurm_ledger *b, struct trp_slurm_request *r,
                            enum trp_slurm_standing worst)
{
    if (!trp_slurm_ledger_srun_room(b))
        return false;
    for (int k = TRP_SLURM_GOOD; k <= (int)worst; k++) {
        for (uint32_t i = 0; i < b->nspans; i++) {
            const struct trp_slurm_part *part = &b->inventory->parts[b->spans[i].part];
            if (!b->spans[i].blocked && (part->ahead || !r->ahead) &&
                place_in(b, r, &b->spans[i], (enum trp_slurm_standing)k)) {
                charge_srun(b, -1);
                r->state = TRP_SLURM_PLACED;
                return true;
            }
        }
    }
    return false;
}

void trp_slurm_ledger_unplace(trp_slurm_ledger *b, struct trp_slurm_request *r)
{
    unplace(b, r);
    charge_srun(b, 1);
}
