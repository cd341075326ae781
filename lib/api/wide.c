/* Wide operations as the program makes them: checked here, computed by an action. */
#include "api/wide.h"

#include <string.h>

#include "api/api.h"

static trp_dataset *wide_new(trp_dataset *a, trp_dataset *b, uint32_t partitions,
                             const struct trp_wide_plan *plan)
{
    trp_dataset *d = trp_dataset_source(a->context, TRP_NODE_WIDE, trp_wide_name(plan),
                                        partitions, plan->arg_size);
    if (!d)
        return NULL;
    struct trp_wide_plan *p = &d->wide.plan;
    *p = *plan;
    p->partitions = partitions;
    p->nsides = b ? 2 : 1;
    p->dataset[0] = p->dataset[1] = TRP_NONE;
    d->wide.from[0] = a;
    d->wide.from[1] = b;
    if (plan->arg_size) {
        memcpy(d + 1, plan->arg, plan->arg_size);
        p->arg = d + 1;
    } else {
        p->arg = NULL;
    }
    if (b && b != a)
        trp_dataset_made_of(d, b);
    return trp_dataset_made_of(d, a);
}

/* The function of a plan, by its name. False, told: it has none. */
static bool take_function(trp_context *ctx, struct trp_wide_plan *p, void (*f)(void),
                          const char *macro, const void *arg, size_t arg_size)
{
    p->function = f ? trp_registry_name(f) : NULL;
    if (!p->function) {
        trp_dataset_fail(ctx, TRP_EINVAL,
                         "%s: the function is not known by a name; write %s(name) "
                         "before its definition",
                         trp_wide_name(p), macro);
        return false;
    }
    if (arg_size > TRP_ARGUMENT_MAX || (arg_size && !arg)) {
        trp_dataset_fail(ctx, TRP_EINVAL,
                         "%s: %zu bytes of argument for %s; there may be 0 to %d",
                         trp_wide_name(p), arg_size, p->function, TRP_ARGUMENT_MAX);
        return false;
    }
    p->arg = arg;
    p->arg_size = arg_size;
    p->code = f;
    return true;
}

trp_dataset *trp_reduce_by_key(trp_dataset *d, enum trp_sum sum, uint32_t partitions)
{
    if (!d)
        return NULL;
    if (!trp_sum_known(sum))
        return trp_dataset_refuse(d->context, TRP_EINVAL,
                                  "trp_reduce_by_key: no sum %d", (int)sum);
    struct trp_wide_plan plan = {.kind = TRP_WIDE_REDUCE, .sum = sum};
    return wide_new(d, NULL, partitions, &plan);
}

trp_dataset *trp_combine_by_key(trp_dataset *d, trp_combine f, const void *arg,
                                size_t arg_size, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_COMBINE};
    if (!d || !take_function(d->context, &plan, (void (*)(void))f, "TRP_COMBINE", arg,
                             arg_size))
        return NULL;
    return wide_new(d, NULL, partitions, &plan);
}

trp_dataset *trp_group_by_key(trp_dataset *d, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_GROUP};
    return d ? wide_new(d, NULL, partitions, &plan) : NULL;
}

trp_dataset *trp_group_sorted(trp_dataset *d, unsigned order, uint32_t partitions)
{
    unsigned type = order & ~(unsigned)TRP_DESCENDING;
    struct trp_wide_plan plan = {.kind = TRP_WIDE_GROUP, .values = order};
    if (!d)
        return NULL;
    if (type < TRP_BYTES || type > TRP_F64)
        return trp_dataset_refuse(d->context, TRP_EINVAL,
                                  "trp_group_sorted: no order %u", order);
    return wide_new(d, NULL, partitions, &plan);
}

/* By a function of the program. */
static trp_dataset *by_function(trp_dataset *d, struct trp_wide_plan plan,
                                void (*f)(void), const char *macro, const void *arg,
                                size_t arg_size, uint32_t partitions)
{
    if (!d || !take_function(d->context, &plan, f, macro, arg, arg_size))
        return NULL;
    return wide_new(d, NULL, partitions, &plan);
}

trp_dataset *trp_group_sorted_by(trp_dataset *d, trp_compare f, const void *arg,
                                 size_t arg_size, uint32_t partitions)
{
    const struct trp_wide_plan plan = {.kind = TRP_WIDE_GROUP};
    return by_function(d, plan, (void (*)(void))f, "TRP_COMPARE", arg, arg_size,
                       partitions);
}

trp_dataset *trp_combine_by_key_with_task(trp_dataset *d, trp_task_combine f,
                                          const void *arg, size_t arg_size,
                                          uint32_t partitions)
{
    const struct trp_wide_plan plan = {.kind = TRP_WIDE_COMBINE, .tasked = true};
    return by_function(d, plan, (void (*)(void))f, "TRP_TASK_COMBINE", arg, arg_size,
                       partitions);
}

trp_dataset *trp_sort_by_with_task(trp_dataset *d, trp_task_compare f, const void *arg,
                                   size_t arg_size, uint32_t partitions)
{
    const struct trp_wide_plan plan = {.kind = TRP_WIDE_SORT, .tasked = true};
    return by_function(d, plan, (void (*)(void))f, "TRP_TASK_COMPARE", arg, arg_size,
                       partitions);
}

trp_dataset *trp_group_sorted_by_with_task(trp_dataset *d, trp_task_compare f,
                                           const void *arg, size_t arg_size,
                                           uint32_t partitions)
{
    const struct trp_wide_plan plan = {.kind = TRP_WIDE_GROUP, .tasked = true};
    return by_function(d, plan, (void (*)(void))f, "TRP_TASK_COMPARE", arg, arg_size,
                       partitions);
}

trp_dataset *trp_partition_by_with_task(trp_dataset *d, trp_task_partition f,
                                        const void *arg, size_t arg_size,
                                        uint32_t partitions)
{
    const struct trp_wide_plan plan = {.kind = TRP_WIDE_PARTITION, .tasked = true};
    return by_function(d, plan, (void (*)(void))f, "TRP_TASK_PARTITION", arg, arg_size,
                       partitions);
}

trp_dataset *trp_distinct(trp_dataset *d, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_DISTINCT};
    return d ? wide_new(d, NULL, partitions, &plan) : NULL;
}

trp_dataset *trp_repartition(trp_dataset *d, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_REPARTITION};
    return d ? wide_new(d, NULL, partitions, &plan) : NULL;
}

trp_dataset *trp_partition_by(trp_dataset *d, trp_partition f, const void *arg,
                              size_t arg_size, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_PARTITION};
    if (!d || !take_function(d->context, &plan, (void (*)(void))f, "TRP_PARTITION", arg,
                             arg_size))
        return NULL;
    return wide_new(d, NULL, partitions, &plan);
}

trp_dataset *trp_sort_by_key(trp_dataset *d, unsigned order, uint32_t partitions)
{
    unsigned type = order & ~(unsigned)TRP_DESCENDING;
    struct trp_wide_plan plan = {.kind = TRP_WIDE_SORT, .order = order};
    if (!d)
        return NULL;
    if (type < TRP_BYTES || type > TRP_F64)
        return trp_dataset_refuse(d->context, TRP_EINVAL,
                                  "trp_sort_by_key: no order %u", order);
    return wide_new(d, NULL, partitions, &plan);
}

trp_dataset *trp_sort_by(trp_dataset *d, trp_compare f, const void *arg,
                         size_t arg_size, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_SORT};
    if (!d || !take_function(d->context, &plan, (void (*)(void))f, "TRP_COMPARE", arg,
                             arg_size))
        return NULL;
    return wide_new(d, NULL, partitions, &plan);
}

trp_dataset *trp_join(trp_dataset *a, trp_dataset *b, enum trp_join type,
                      uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_JOIN, .join = type};
    if (!a || !b)
        return NULL;
    if (type < TRP_INNER || type > TRP_OUTER)
        return trp_dataset_refuse(a->context, TRP_EINVAL, "trp_join: no join %d",
                                  (int)type);
    return wide_new(a, b, partitions, &plan);
}

trp_dataset *trp_cogroup(trp_dataset *a, trp_dataset *b, trp_cogroup_function f,
                         const void *arg, size_t arg_size, uint32_t partitions)
{
    struct trp_wide_plan plan = {.kind = TRP_WIDE_COGROUP};
    if (!a || !b ||
        !take_function(a->context, &plan, (void (*)(void))f, "TRP_COGROUP", arg,
                       arg_size))
        return NULL;
    return wide_new(a, b, partitions, &plan);
}
