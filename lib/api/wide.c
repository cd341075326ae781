/* Wide operations as the program makes them, and the plan of one in a stage's body. */
#include "api/wide.h"

#include <string.h>

#include "api/api.h"

static const char *const names[TRP_WIDE_KINDS] = {
    [TRP_WIDE_REDUCE] = "trp_reduce_by_key",
};

const char *trp_wide_name(const struct trp_wide_plan *p)
{
    return names[p->kind];
}

/* ---- the plan in a body ---- */

void trp_wide_plan_put(struct trp_buf *b, const struct trp_wide_plan *p)
{
    trp_put_u8(b, (uint8_t)p->kind);
    trp_put_u8(b, (uint8_t)p->sum);
    trp_put_u32(b, p->partitions);
    trp_put_u8(b, (uint8_t)p->nsides);
    for (uint32_t i = 0; i < p->nsides; i++)
        trp_put_u32(b, p->dataset[i]);
}

bool trp_wide_plan_get(struct trp_view *v, struct trp_wide_plan *ret)
{
    uint8_t kind = trp_get_u8(v), sum = trp_get_u8(v);
    *ret = (struct trp_wide_plan){.kind = (enum trp_wide_kind)kind,
                                  .sum = (enum trp_sum)sum,
                                  .partitions = trp_get_u32(v),
                                  .nsides = trp_get_u8(v)};
    if (v->bad || kind < TRP_WIDE_REDUCE || kind >= TRP_WIDE_KINDS ||
        (sum && !trp_sum_known(sum)) || ret->partitions < 1 || ret->nsides < 1 ||
        ret->nsides > TRP_SIDES_MAX)
        return false;
    for (uint32_t i = 0; i < ret->nsides; i++)
        ret->dataset[i] = trp_get_u32(v);
    return !v->bad;
}

/* ---- what the program calls ---- */

static trp_dataset *wide_new(trp_dataset *a, const char *what, uint32_t partitions,
                             const struct trp_wide_plan *plan)
{
    trp_dataset *d = trp_dataset_source(a->context, TRP_NODE_WIDE, what, partitions);
    if (!d)
        return NULL;
    d->wide.plan = *plan;
    d->wide.plan.partitions = partitions;
    for (uint32_t i = 0; i < plan->nsides; i++)
        d->wide.plan.dataset[i] = TRP_NONE;
    d->wide.from[0] = a;
    return d;
}

trp_dataset *trp_reduce_by_key(trp_dataset *d, enum trp_sum sum, uint32_t partitions)
{
    if (!d)
        return NULL;
    if (!trp_sum_known(sum)) {
        trp_dataset_fail(d->context, TRP_EINVAL, "trp_reduce_by_key: no sum %d",
                         (int)sum);
        return NULL;
    }
    struct trp_wide_plan plan = {.kind = TRP_WIDE_REDUCE, .sum = sum, .nsides = 1};
    return wide_new(d, "trp_reduce_by_key", partitions, &plan);
}
