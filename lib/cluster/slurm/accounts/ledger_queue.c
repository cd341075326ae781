/*
 * Who waits for room: a list of requests for each kind. First come, first served
 * within a part: what a kind that came earlier waits for is left alone by the others.
 * A look is O(kinds), and O(nodes) for each that has no room.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "cluster/slurm/accounts/ledger_state.h"
#include "core/base/array.h"

static bool is_same_footprint(const struct trp_slurm_footprint *a,
                              const struct trp_slurm_footprint *b)
{
    bool same = a->cores == b->cores && a->memory_mib == b->memory_mib &&
                a->nwants == b->nwants && a->nscripted == b->nscripted;
    for (uint32_t i = 0; same && i < a->nwants; i++) {
        const struct trp_slurm_want *x = &a->wants[i], *y = &b->wants[i];
        same = x->kind == y->kind && x->count == y->count && x->each == y->each &&
               strcmp(x->resource, y->resource) == 0 && strcmp(x->name, y->name) == 0 &&
               strcmp(x->type, y->type) == 0;
    }
    return same;
}

/* The kind of a request; made when it is the first. */
static struct trp_slurm_request_kind *kind_of(trp_slurm_ledger *b,
                                              const struct trp_slurm_request *r)
{
    const char *not_on = r->not_on ? r->not_on : "";
    for (uint32_t i = 0; i < b->nkinds; i++) {
        struct trp_slurm_request_kind *s = b->kinds[i];
        if (s->units == r->units && s->gang == r->gang && s->ahead == r->ahead &&
            strcmp(s->not_on ? s->not_on : "", not_on) == 0 &&
            is_same_footprint(&s->footprint, &r->footprint))
            return s;
    }
    if (!TRP_ARRAY_GROW(b->kinds, b->nkinds, b->kinds_cap))
        return NULL;
    struct trp_slurm_request_kind *s = calloc(1, sizeof *s);
    if (!s || (*not_on && !(s->not_on = strdup(not_on)))) {
        free(s);
        return NULL;
    }
    s->footprint = r->footprint;
    s->units = r->units;
    s->gang = r->gang;
    s->ahead = r->ahead;
    return b->kinds[b->nkinds++] = s;
}

int trp_slurm_ledger_ask(trp_slurm_ledger *b, struct trp_slurm_request *r,
                         trp_error *err)
{
    r->kind = kind_of(b, r);
    r->not_on = NULL; /* the kind's is our own */
    /* One spot a unit at most. The nodes may not be there yet. */
    r->spots = r->kind ? calloc((size_t)r->units + 1, sizeof *r->spots) : NULL;
    if (!r->spots)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a request");
    struct trp_slurm_request_kind *s = r->kind;
    r->state = TRP_SLURM_QUEUED;
    r->nspots = 0;
    r->turn = b->turns++;
    DL_APPEND2(s->first, r, before, behind);
    s->waiting++;
    s->may_add += r->may_add;
    return 0;
}

void trp_slurm_ledger_may_add(struct trp_slurm_request *r)
{
    r->kind->may_add += r->state == TRP_SLURM_QUEUED && !r->may_add;
    r->may_add = true;
}

static void unlink_request(struct trp_slurm_request *r)
{
    struct trp_slurm_request_kind *s = r->kind;
    DL_DELETE2(s->first, r, before, behind);
    s->waiting--;
    s->may_add -= r->may_add;
}

int trp_slurm_ledger_need_now(trp_slurm_ledger *b, struct trp_slurm_request *r)
{
    struct trp_slurm_spot *spots = r->spots;
    unlink_request(r);
    r->ahead = false;
    int code = trp_slurm_ledger_ask(b, r, NULL);
    free(spots);
    if (code < 0)
        r->state = TRP_SLURM_NONE;
    return code;
}

/* The kind whose first request came next after turn `after`. */
static struct trp_slurm_request_kind *next_kind(const trp_slurm_ledger *b, bool ahead,
                                                uint64_t from)
{
    struct trp_slurm_request_kind *best = NULL;
    for (uint32_t i = 0; i < b->nkinds; i++) {
        struct trp_slurm_request_kind *s = b->kinds[i];
        if (s->first && s->ahead == ahead && s->first->turn >= from &&
            (!best || s->first->turn < best->first->turn))
            best = s;
    }
    return best;
}

static struct trp_slurm_request *next_of(trp_slurm_ledger *b, bool ahead)
{
    for (struct trp_slurm_request_kind *s = next_kind(b, ahead, 0); s;
         s = next_kind(b, ahead, s->first->turn + 1)) {
        struct trp_slurm_request *r = s->first;
        enum trp_slurm_standing worst =
            s->last_resort ? TRP_SLURM_DOUBTFUL : TRP_SLURM_GOOD;
        if (trp_slurm_ledger_place(b, r, worst)) {
            unlink_request(r);
            return r;
        }
        const struct trp_slurm_look l = {&b->all, &s->footprint, s->units, s, worst};
        for (uint32_t i = 0; i < b->nspans && !s->not_on; i++)
            b->spans[i].blocked |= trp_slurm_ledger_has_room(b, &l, &b->spans[i]);
    }
    return NULL;
}

struct trp_slurm_request *trp_slurm_ledger_next(trp_slurm_ledger *b)
{
    for (uint32_t i = 0; i < b->nspans; i++)
        b->spans[i].blocked = false;
    struct trp_slurm_request *r = next_of(b, false);
    return r ? r : next_of(b, true);
}

uint32_t trp_slurm_ledger_kinds(const trp_slurm_ledger *b)
{
    return b->nkinds;
}

struct trp_slurm_request_kind *trp_slurm_ledger_kind(const trp_slurm_ledger *b,
                                                     uint32_t index)
{
    return b->kinds[index];
}

void trp_slurm_ledger_leave(trp_slurm_ledger *b, struct trp_slurm_request *r)
{
    if (r->state == TRP_SLURM_NONE)
        return;
    if (r->state == TRP_SLURM_QUEUED) {
        unlink_request(r);
    } else {
        trp_slurm_ledger_unplace(b, r);
    }
    free(r->spots);
    r->spots = NULL;
    r->state = TRP_SLURM_NONE;
}
