/*
 * Datasets that are kept: what the program says of them.
 *
 * Each is one of the driver's datasets, too, once an action has told it (lineage.c), so
 * that the engine can have tasks run where its partitions are. What a barrier stage
 * computes is not kept: a task that had its partition would not wait for the others.
 */
#include "api/job.h"

static bool is_barrier(trp_dataset *d)
{
    trp_context *ctx = d->context;
    trp_context_enter(ctx); /* its loop walks chains, too */
    bool barrier = trp_chain_walk(d) < 0;
    for (size_t i = 0; !barrier && i < ctx->nnodes; i++)
        barrier = ctx->nodes[i]->kind == TRP_NODE_BARRIER;
    trp_context_leave(ctx);
    return barrier;
}

trp_dataset *trp_persist(trp_dataset *d, enum trp_storage level)
{
    if (!d)
        return NULL;
    if (level < TRP_MEMORY_ONLY || level > TRP_MEMORY_AND_DISK)
        return trp_dataset_refuse(
            d->context, TRP_EINVAL,
            "trp_persist: %d is no level; there are TRP_MEMORY_ONLY, "
            "TRP_DISK_ONLY and TRP_MEMORY_AND_DISK",
            (int)level);
    if (!trp_dataset_steps_ok(d, "trp_persist"))
        return NULL;
    trp_dataset *n = trp_dataset_mark(d, TRP_NODE_PERSIST, 0);
    if (!n)
        return NULL;
    n->steps = d->steps + 1;
    n->persist.dataset = TRP_NONE;
    n->persist.level = level;
    n->persist.in_vain = is_barrier(d);
    return trp_dataset_made_of(n, d);
}

bool trp_dataset_keeps(const trp_dataset *d)
{
    return d->kind == TRP_NODE_PERSIST && !d->persist.in_vain && !d->persist.gone;
}

int trp_unpersist(trp_dataset *d)
{
    if (!d)
        return trp_action_no_dataset("trp_unpersist");
    trp_context *ctx = d->context;
    while (d->kind > TRP_NODE_PERSIST)
        d = d->a;
    if (d->kind != TRP_NODE_PERSIST)
        return trp_dataset_fail(ctx, TRP_EINVAL,
                                "trp_unpersist: give what trp_persist returned");
    d->persist.gone = true;
    if (d->persist.dataset != TRP_NONE && ctx->driver)
        trp_driver_unpersist(ctx->driver, d->persist.dataset);
    ctx->unreached = true;
    trp_reach_sweep(ctx);
    return 0;
}
