/*
 * What of the graph can still be reached; all else goes.
 *
 * C has no owner for a chain's intermediate handles, so they are no reason to keep what
 * was computed for them: a handle that was used once, to make something of it, is *held*
 * by that. It is held by itself when it was used otherwise, too: something else was made
 * of it, or an action ran on it later, or it is kept (trp_persist). Nothing is wrong when
 * this misjudges: what went is computed again.
 *
 * A sweep walks everything twice, by marks. First from what is held and from what jobs
 * compute that are not over: a node that is not met is *unwanted*, and lets go of its
 * datasets of the driver. Those that nobody has any more are forgotten, the youngest first,
 * since what is made of one is younger. Then from handles that were not freed: nodes that
 * are not met are freed. Cost: O(nodes), when a handle was freed, a checkpoint written,
 * something unpersisted, and at the end of a job on what was freed.
 *
 * Rejected: counting who wants a node, which costs only what changes, but has to be right in
 * each call that makes, uses, tells or frees something.
 */
#include "api/job.h"
#include "core/base/array.h"

static bool is_held(const trp_dataset *d)
{
    bool kept = d->kind == TRP_NODE_PERSIST && !d->persist.gone;
    return !d->freed && (d->made != 1 || kept);
}

/* What `d` is made of, also beyond its stage: up to three. */
static uint32_t below(const trp_dataset *d, trp_dataset *ret[3])
{
    uint32_t n = 0;
    if (d->a)
        ret[n++] = d->a;
    if (d->b)
        ret[n++] = d->b;
    if (d->kind == TRP_NODE_CHECKPOINT && d->checkpoint.from)
        ret[n++] = d->checkpoint.from;
    for (uint32_t k = 0; d->kind == TRP_NODE_WIDE && k < d->wide.plan.nsides; k++)
        ret[n++] = d->wide.from[k];
    return n;
}

static int mark(trp_context *ctx, trp_dataset *d)
{
    if (!d || d->walk == ctx->walks)
        return 0;
    if (!TRP_ARRAY_GROW(ctx->nodes, ctx->nnodes, ctx->nodes_capacity))
        return TRP_ENOMEM;
    d->walk = ctx->walks;
    ctx->nodes[ctx->nnodes++] = d;
    return 0;
}

static int mark_below(trp_context *ctx, bool lenders)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ctx->nnodes; i++) {
        trp_dataset *of[3];
        uint32_t n = below(ctx->nodes[i], of);
        for (uint32_t k = 0; rc == 0 && k < n; k++)
            rc = mark(ctx, of[k]);
        if (rc == 0 && lenders)
            rc = mark(ctx, ctx->nodes[i]->lender);
    }
    return rc;
}

static void begin_walk(trp_context *ctx)
{
    ctx->walks++;
    ctx->nnodes = 0;
}

/* ---- what the driver knows ---- */

static uint32_t bound(trp_context *ctx, const trp_dataset *d, uint32_t told)
{
    if (d->walk != ctx->walks)
        return TRP_NONE;
    if (told != TRP_NONE)
        ctx->told[told]->bound = ctx->walks;
    return told;
}

/* A node that is wanted has its datasets; another one loses them. */
static void bind_all(trp_context *ctx)
{
    for (trp_dataset *d = ctx->datasets; d; d = d->next) {
        d->result = bound(ctx, d, d->result);
        if (d->kind == TRP_NODE_PERSIST)
            d->persist.dataset = bound(ctx, d, d->persist.dataset);
        for (uint32_t k = 0; d->kind == TRP_NODE_WIDE && k < d->wide.plan.nsides; k++)
            d->wide.plan.dataset[k] = bound(ctx, d, d->wide.plan.dataset[k]);
    }
}

static int forget_unwanted(trp_context *ctx)
{
    begin_walk(ctx);
    int rc = 0;
    for (trp_dataset *d = ctx->datasets; rc == 0 && d; d = d->next)
        if (d->running || is_held(d))
            rc = mark(ctx, d);
    if (rc == 0)
        rc = mark_below(ctx, false);
    if (rc < 0)
        return rc;
    bind_all(ctx);
    const uint64_t walk = ctx->walks; /* the driver may ask for a stage's chain */
    for (uint32_t i = ctx->ntold; i-- > 0;) {
        const struct trp_told *t = ctx->told[i];
        if (t && !t->running && t->bound != walk)
            trp_lineage_forget(ctx, i);
    }
    return 0;
}

/* ---- memory ---- */

static int free_unreached(trp_context *ctx)
{
    begin_walk(ctx);
    int rc = 0;
    for (trp_dataset *d = ctx->datasets; rc == 0 && d; d = d->next)
        if (!d->freed || d->jobs)
            rc = mark(ctx, d);
    for (uint32_t i = 0; rc == 0 && i < ctx->ntold; i++)
        if (ctx->told[i])
            rc = mark(ctx, ctx->told[i]->node);
    if (rc == 0)
        rc = mark_below(ctx, true);
    for (trp_dataset **at = &ctx->datasets; rc == 0 && *at;) {
        trp_dataset *d = *at;
        if (d->walk == ctx->walks) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        if (d->owed.status && (!ctx->owed.status || d->owed.since < ctx->owed.since))
            ctx->owed = d->owed; /* nothing can make it good */
        trp_dataset_release(d);
    }
    return rc;
}

/* Out of memory: another time. */
void trp_reach_sweep(trp_context *ctx)
{
    if (!ctx->unreached)
        return;
    trp_context_enter(ctx);
    ctx->unreached = forget_unwanted(ctx) < 0 || free_unreached(ctx) < 0;
    trp_context_leave(ctx);
}

void trp_reach_cut(trp_dataset *d)
{
    trp_context *ctx = d->context;
    trp_context_enter(ctx);
    begin_walk(ctx);
    if (mark(ctx, d) == 0 && mark_below(ctx, false) == 0)
        for (size_t i = 0; i < ctx->nnodes; i++)
            ctx->nodes[i]->made = 1;
    ctx->unreached = true;
    trp_context_leave(ctx);
}

void trp_dataset_free(trp_dataset *d)
{
    if (!d)
        return;
    d->freed = true;
    d->context->unreached = true;
    trp_reach_sweep(d->context);
}
