/*
 * Tells the driver which datasets an action has to compute.
 *
 * Sides are told parents first. Those that have not been told yet are on a stack of our
 * own. The chain of the side on top is walked, and sides that it reads and that have
 * not been told are pushed; when there are none, the side itself is told and popped. So
 * a deep lineage does not overflow the C stack, and a side is walked twice at most.
 */
#include "api/lineage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/job.h"
#include "api/narrow.h"
#include "api/sample.h"
#include "core/base/array.h"

trp_dataset *trp_told_last(const struct trp_told *t)
{
    return t->end.kind == TRP_DO_SHUFFLE ? t->node->wide.from[t->side] : t->node;
}

static void told_release(struct trp_told *t)
{
    if (t)
        free(t->name);
    free(t);
}

/* It is among the sides of what it computes no more. */
static void leave_sides(trp_context *ctx, uint32_t id)
{
    const struct trp_told *t = ctx->told[id];
    if (t->end.kind != TRP_DO_SHUFFLE)
        return;
    uint32_t *at = &trp_told_last(t)->side;
    while (*at != TRP_NONE && *at != id)
        at = &ctx->told[*at]->other_side;
    if (*at == id)
        *at = t->other_side;
}

void trp_lineage_forget(trp_context *ctx, uint32_t id)
{
    leave_sides(ctx, id);
    if (ctx->in_line)
        trp_inline_dataset_free(ctx->in_line, id);
    else if (ctx->driver)
        trp_driver_dataset_free(ctx->driver, id);
    told_release(ctx->told[id]);
    ctx->told[id] = NULL;
}

void trp_lineage_free(trp_context *ctx)
{
    for (uint32_t i = 0; i < ctx->ntold; i++)
        told_release(ctx->told[i]);
    free(ctx->told);
}

/* ---- what a stage must fulfil, by the nodes of the last walk ---- */

static int choose_profile(trp_context *ctx, struct trp_told *t)
{
    uint32_t n = 0;
    for (size_t i = 0; i < ctx->nnodes; i++)
        n += ctx->nodes[i]->kind == TRP_NODE_PROFILE;
    t->profile = (trp_profile_id){0};
    if (n == 0)
        return 0;
    trp_profile_id *ids = malloc(n * sizeof(*ids));
    if (!ids)
        return trp_context_fail(ctx, TRP_ENOMEM, "out of memory for an action");
    n = 0;
    for (size_t i = 0; i < ctx->nnodes; i++)
        if (ctx->nodes[i]->kind == TRP_NODE_PROFILE)
            ids[n++] = ctx->nodes[i]->profile;
    trp_error err;
    uint32_t known = trp_profiles_count(ctx->profiles);
    int rc = trp_profiles_of_stage(ctx->profiles, ids, n, &t->profile, &err);
    free(ids);
    if (rc == 0 && t->profile.n >= known) { /* merged: a new one */
        rc = trp_profiles_supported(ctx->profiles, t->profile, &err);
        if (rc == 0)
            rc = trp_context_profile_added(ctx, t->profile, &err);
    }
    return rc < 0 ? trp_context_fail(ctx, rc, "%s: %s", t->name, err.text) : 0;
}

/* A dataset of the last walk is marked so. */
static bool is_marked(const trp_context *ctx, enum trp_node_kind kind)
{
    for (size_t i = 0; i < ctx->nnodes; i++)
        if (ctx->nodes[i]->kind == kind)
            return true;
    return false;
}

static int check_size(trp_context *ctx, const struct trp_told *t)
{
    size_t size = t->end.step.arg_size;
    for (size_t i = 0; i < ctx->nnodes; i++)
        if (ctx->nodes[i]->kind >= TRP_NODE_TRANSFORM &&
            ctx->nodes[i]->kind <= TRP_NODE_PARTITIONS)
            size += ctx->nodes[i]->step.arg_size;
    if (size <= TRP_MESSAGE_MAX / 4)
        return 0;
    return trp_context_fail(ctx, TRP_ELIMIT,
                            "%s: its functions' arguments are %zu MiB; a stage may "
                            "have %u",
                            t->name, size >> 20, TRP_MESSAGE_MAX / 4 >> 20);
}

/* ---- telling ---- */

/* What the tasks of a told one read: of a kept dataset what it is made of. */
static trp_dataset *made_of(const struct trp_told *t)
{
    return t->kept ? t->node->a : trp_told_last(t);
}

/* A kept dataset in the last walk, but for `except`; NULL: none. Those further down are
 * found first, mostly. */
static trp_dataset *kept_in_walk(const trp_context *ctx, const trp_dataset *except,
                                 bool untold)
{
    for (size_t i = ctx->nnodes; i-- > 0;) {
        trp_dataset *d = ctx->nodes[i];
        if (d != except && trp_dataset_keeps(d) &&
            (!untold || d->persist.dataset == TRP_NONE))
            return d;
    }
    return NULL;
}

/* All sides that the chain of the last walk reads. */
static int find_sides(const trp_context *ctx, struct trp_narrow *ret)
{
    *ret = (struct trp_narrow){.prefers = trp_chain_prefers(ctx)};
    for (size_t i = 0; i < ctx->nnodes; i++) {
        const trp_dataset *d = ctx->nodes[i];
        for (uint32_t k = 0; d->kind == TRP_NODE_WIDE && k < d->wide.plan.nsides; k++)
            if (trp_narrow_add(
                    ret, (struct trp_dataset_parent){.dataset = d->wide.plan.dataset[k],
                                                     .shuffle = true}) < 0)
                return TRP_ENOMEM;
    }
    return 0;
}

/* What the chain of the last walk reads. All tasks of a barrier stage begin at once, on
 * as many slots, so there what is kept counts one to one alone. */
static int find_parents(const trp_context *ctx, const struct trp_told *t,
                        struct trp_narrow *ret)
{
    if (kept_in_walk(ctx, t->kept ? t->node : NULL, false)) {
        if (trp_narrow_find(made_of(t), ret) < 0)
            return TRP_ENOMEM;
        if (ret->one_to_one || t->kept || !is_marked(ctx, TRP_NODE_BARRIER))
            return 0;
        trp_narrow_free(ret);
    }
    return find_sides(ctx, ret);
}

static int preferences(trp_dataset *d, struct trp_dataset_place **ret, uint32_t *ret_n)
{
    struct trp_chain_places at;
    if (trp_chain_places(d, &at) < 0)
        return TRP_ENOMEM;
    uint32_t n = at.first[d->partitions];
    *ret = malloc((n ? n : 1) * sizeof(**ret));
    for (uint32_t i = 0; *ret && i < d->partitions; i++)
        for (uint32_t k = at.first[i]; k < at.first[i + 1]; k++)
            (*ret)[k] = (struct trp_dataset_place){i, at.places[k].host};
    *ret_n = n;
    trp_chain_places_free(&at);
    return *ret ? 0 : TRP_ENOMEM;
}

/* The chain of what it computes was walked just now. */
static int tell_driver(trp_context *ctx, const struct trp_told *t)
{
    trp_dataset *last = trp_told_last(t);
    struct trp_dataset_spec spec = {
        .name = t->name,
        .partitions = last->partitions,
        .has_profile = t->profile.n != 0,
        .profile = t->profile,
        .cached = t->kept,
        .barrier = !t->kept && is_marked(ctx, TRP_NODE_BARRIER),
        .indeterminate = is_marked(ctx, TRP_NODE_INDETERMINATE)};
    struct trp_narrow reads = {0};
    struct trp_dataset_place *prefer = NULL;
    trp_error err;
    uint32_t id;
    int rc = TRP_ENOMEM;
    trp_error_set(&err, rc, "out of memory for an action");
    if (find_parents(ctx, t, &reads) == 0 &&
        (!reads.prefers || preferences(last, &prefer, &spec.nprefer) == 0)) {
        spec.parents = reads.parents;
        spec.nparents = reads.nparents;
        spec.prefer = prefer;
        rc = ctx->in_line ? trp_inline_dataset(ctx->in_line, &spec, &id, &err)
                          : trp_driver_dataset(ctx->driver, &spec, &id, &err);
    }
    trp_narrow_free(&reads);
    free(prefer);
    return rc < 0 ? trp_context_fail(ctx, rc, "%s: %s", t->name, err.text) : 0;
}

/* Tells of `t`, whose chain was walked just now, and keeps it. */
static int tell_stage(trp_context *ctx, struct trp_told *t)
{
    char name[256];
    trp_chain_name(trp_told_last(t), &t->end, name, sizeof(name));
    t->name = strdup(name);
    struct trp_told *own = malloc(sizeof(*own));
    int rc = t->name && own && TRP_ARRAY_GROW(ctx->told, ctx->ntold, ctx->told_capacity)
                 ? 0
                 : trp_context_fail(ctx, TRP_ENOMEM, "out of memory for an action");
    if (rc == 0 && !t->kept)
        rc = check_size(ctx, t);
    if (rc == 0 && !t->kept)
        rc = choose_profile(ctx, t);
    if (rc == 0)
        rc = tell_driver(ctx, t);
    if (rc == 0) {
        *own = *t;
        ctx->told[ctx->ntold++] = own;
    } else {
        free(t->name);
        free(own);
    }
    return rc;
}

/* Tells of the kept datasets that `d` is made of, the deepest first, and walks `d`. The
 * sides behind them are told. */
static int tell_kept(trp_context *ctx, trp_dataset *d)
{
    for (;;) {
        int rc = trp_chain_walk(d);
        trp_dataset *next = NULL,
                    *below = rc == 0 ? kept_in_walk(ctx, NULL, true) : NULL;
        while (rc == 0 && below) {
            next = below;
            rc = trp_chain_walk(next);
            below = kept_in_walk(ctx, next, true);
        }
        if (rc < 0 || !next)
            return rc;
        struct trp_told t = {.node = next, .kept = true};
        uint32_t id = ctx->ntold;
        if ((rc = tell_stage(ctx, &t)) < 0)
            return rc;
        next->persist.dataset = id;
        if (ctx->driver)
            trp_driver_keeps(ctx->driver, id, next->persist.level);
    }
}

/* ---- sides ---- */

struct sides {
    trp_dataset **v; /* wide nodes, and checkpoints */
    uint32_t n, capacity;
    const char *pool;
};

static bool is_told(const trp_dataset *d)
{
    if (d->kind == TRP_NODE_CHECKPOINT)
        return d->checkpoint.written;
    for (uint32_t k = 0; k < d->wide.plan.nsides; k++)
        if (d->wide.plan.dataset[k] == TRP_NONE)
            return false;
    return true;
}

/* Puts the wide nodes of the last walk that are not told, and checkpoints that are not
 * written, on the stack. */
static int push_untold(trp_context *ctx, struct sides *s)
{
    for (size_t i = 0; i < ctx->nnodes; i++) {
        trp_dataset *d = ctx->nodes[i];
        if ((d->kind != TRP_NODE_WIDE && d->kind != TRP_NODE_CHECKPOINT) || is_told(d))
            continue;
        if (!TRP_ARRAY_GROW(s->v, s->n, s->capacity))
            return trp_context_fail(ctx, TRP_ENOMEM, "out of memory for an action");
        s->v[s->n++] = d;
    }
    return 0;
}

/* The ranges of a sort come from a sample of what is sorted, which is computed for it.
 */
static int find_ranges(trp_context *ctx, trp_dataset *d, const char *pool)
{
    struct trp_wide_plan *p = &d->wide.plan;
    trp_dataset *from = d->wide.from[0];
    trp_job *j;
    if (p->kind != TRP_WIDE_SORT || p->partitions == 1 || p->bounded)
        return 0;
    const struct trp_chain_end end = {
        .kind = TRP_DO_SAMPLE, .plan = p, .want = trp_sample_want(p, from->partitions)};
    int rc = trp_job_before(from, &end, pool, &j);
    if (rc < 0)
        return rc;
    trp_error err;
    rc = trp_sample_ranges(p, j->parts, from->partitions, &err);
    trp_job_free(j);
    return rc < 0 ? trp_context_fail_with(ctx, &err) : 0;
}

/* The side that deals the same records out in the same way; TRP_NONE: there is none yet.
 */
static uint32_t told_side(const trp_context *ctx, const trp_dataset *d, uint32_t k)
{
    uint32_t at = d->wide.from[k]->side;
    while (at != TRP_NONE &&
           !trp_wide_deals_alike(ctx->told[at]->end.plan, &d->wide.plan))
        at = ctx->told[at]->other_side;
    return at;
}

static int tell_side(trp_context *ctx, trp_dataset *d, uint32_t k)
{
    trp_dataset *from = d->wide.from[k];
    struct trp_told t = {
        .node = d,
        .side = k,
        .end = {.kind = TRP_DO_SHUFFLE, .plan = &d->wide.plan, .side = k},
        .other_side = from->side
    };
    int rc = tell_kept(ctx, from);
    if (rc == 0 && (rc = tell_stage(ctx, &t)) == 0)
        d->wide.plan.dataset[k] = from->side = ctx->ntold - 1;
    return rc;
}

/* Tells the sides of a wide node, unless their own chains need others first. */
static int tell_sides(trp_context *ctx, trp_dataset *d, struct sides *s)
{
    struct trp_wide_plan *p = &d->wide.plan;
    uint32_t before = s->n, untold = 0;
    int rc = 0;
    for (uint32_t k = 0; rc == 0 && k < p->nsides; k++) {
        p->dataset[k] = told_side(ctx, d, k);
        if (p->dataset[k] != TRP_NONE)
            continue;
        untold++;
        if ((rc = trp_chain_walk(d->wide.from[k])) == 0)
            rc = push_untold(ctx, s);
    }
    if (rc == 0 && untold && s->n == before)
        rc = find_ranges(ctx, d, s->pool);
    for (uint32_t k = 0; rc == 0 && s->n == before && k < p->nsides; k++)
        if ((p->dataset[k] = told_side(ctx, d, k)) == TRP_NONE) /* a join with itself */
            rc = tell_side(ctx, d, k);
    return rc;
}

/* Writes a checkpoint, unless what it is made of needs others first. */
static int write_checkpoint(trp_context *ctx, trp_dataset *d, struct sides *s,
                            const char *pool)
{
    uint32_t before = s->n;
    int rc = trp_chain_walk(d->checkpoint.from);
    if (rc == 0)
        rc = push_untold(ctx, s);
    return rc == 0 && s->n == before ? trp_checkpoint_write(d, pool) : rc;
}

static int tell_all_sides(trp_dataset *d, const char *pool)
{
    trp_context *ctx = d->context;
    struct sides s = {.pool = pool};
    int rc = trp_chain_walk(d);
    if (rc == 0)
        rc = push_untold(ctx, &s);
    while (rc == 0 && s.n) {
        trp_dataset *top = s.v[s.n - 1];
        if (is_told(top))
            s.n--;
        else if (top->kind == TRP_NODE_CHECKPOINT)
            rc = write_checkpoint(ctx, top, &s, pool);
        else
            rc = tell_sides(ctx, top, &s);
    }
    free(s.v);
    return rc;
}

/* ---- actions ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The dataset's last action was the same: its stage has the same name and needs. */
static bool again(const trp_context *ctx, const trp_dataset *d,
                  const struct trp_chain_end *end)
{
    const struct trp_told *t = d->result == TRP_NONE ? NULL : ctx->told[d->result];
    return t && t->end.kind == end->kind &&
           same_text(t->end.step.name, end->step.name) &&
           end->step.arg_size <= t->end.step.arg_size;
}

int trp_lineage_tell(trp_dataset *d, const struct trp_chain_end *end, const char *pool,
                     uint32_t *ret_id)
{
    trp_context *ctx = d->context;
    if (!again(ctx, d, end)) {
        struct trp_told t = {.node = d, .end = *end};
        int rc = tell_all_sides(d, pool);
        if (rc == 0)
            rc = tell_kept(ctx, d);
        if (rc == 0)
            rc = tell_stage(ctx, &t);
        if (rc < 0)
            return rc;
        d->result = ctx->ntold - 1;
        ctx->told[d->result]->end.step.arg = NULL;
        ctx->told[d->result]->end.dir = NULL;
    }
    *ret_id = d->result;
    return 0;
}
