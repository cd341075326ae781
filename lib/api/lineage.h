/*
 * Lineage: what the driver is told of datasets, and the stages it makes of them.
 *
 * The engine knows as many datasets as there are stages: one for each side of a wide
 * node, and one for each action, whose parents are the sides that its chain reads. What
 * is narrow is inside of them and none of its business, but for the kept datasets that
 * they are made of (narrow.h): these stand between them, so that tasks go where they
 * are, and what they read is not computed when they are there. A side is told once, and
 * so is a kept dataset: jobs share them. Wide nodes that deal the records of one
 * dataset out in the same way have one side together: of a join in rounds, the half
 * that stays is dealt out once.
 */
#ifndef TRP_API_LINEAGE_H
#define TRP_API_LINEAGE_H

#include "api/chain.h"

/* What one of the driver's datasets is. */
struct trp_told {
    trp_dataset *node; /* the wide node of a side, or what an action is on */
    uint32_t side;
    bool kept;                /* none of both: a kept dataset, in no stage of its own */
    struct trp_chain_end end; /* TRP_DO_SHUFFLE; or of an action: what it is called,
                               * the rest is its job's */
    uint32_t other_side;      /* told before, of what the same dataset computes */
    trp_profile_id profile;
    char *name;
    uint32_t running; /* jobs for it that are not over */
    uint64_t bound;   /* the last walk that found a node for it (reach.c) */
};

/* Tells the driver of all sides behind an action and of the action itself; *ret_id is
 * the dataset that its job computes. What has to be computed for that is a job in the
 * same pool, which is waited for. Fails with the text in the context. */
int trp_lineage_tell(trp_dataset *d, const struct trp_chain_end *end, const char *pool,
                     uint32_t *ret_id);
/* The dataset that the tasks of a told one compute. */
trp_dataset *trp_told_last(const struct trp_told *t);
/* Nothing speaks of a told one any more: the driver is told, and what there is of it goes.
 */
void trp_lineage_forget(trp_context *ctx, uint32_t id);
void trp_lineage_free(trp_context *ctx);

#endif
