/*
 * Accumulators as a program has them. What counts is in driver/accumulators.h; a task
 * gathers what its functions add, by the function's dataset and partition, and tells it
 * with its end.
 */
#include "api/api.h"
#include "api/task.h"
#include "core/base/array.h"

struct trp_accumulator trp_accumulator(trp_context *ctx, const char *name)
{
    struct trp_accumulator a = {0};
    if (!ctx)
        return a;
    if (!trp_name_is_text(name))
        trp_dataset_fail(ctx, TRP_EINVAL,
                         "trp_accumulator: a name has 1 to %d bytes of UTF-8 and no "
                         "control characters",
                         TRP_STAGE_NAME_MAX);
    else if (!(a.id = ctx->driver ? trp_driver_accumulator(ctx->driver, name)
                                  : trp_accumulators_add(
                                        trp_inline_accumulators(ctx->in_line), name)))
        trp_dataset_fail(ctx, TRP_ENOMEM, "out of memory for an accumulator");
    return a;
}

int64_t trp_accumulator_value(struct trp_accumulator a)
{
    const trp_context *ctx = trp_context_current();
    if (!ctx)
        return 0;
    return ctx->driver
               ? trp_driver_accumulated(ctx->driver, a.id)
               : trp_accumulators_value(trp_inline_accumulators(ctx->in_line), a.id);
}

static bool is_same(const struct trp_added *a, uint32_t accumulator,
                    const struct trp_maker *by)
{
    return a->accumulator == accumulator && a->maker == by->maker &&
           a->partition == by->partition;
}

int trp_add(trp_task *t, struct trp_accumulator a, int64_t n)
{
    struct trp_added_list *l = t->added;
    if (!a.id) {
        trp_task_error(t, "trp_add: there is no such accumulator");
        return TRP_EINVAL;
    }
    uint32_t at = l->last;
    if (at < l->from || at >= l->n || !is_same(&l->v[at], a.id, &t->by))
        for (at = l->from; at < l->n && !is_same(&l->v[at], a.id, &t->by);)
            at++;
    if (at == l->n) {
        if (!TRP_ARRAY_GROW(l->v, l->n, l->capacity)) {
            trp_task_error(t, "out of memory for an accumulator");
            return TRP_ENOMEM;
        }
        l->v[l->n++] = (struct trp_added){
            .accumulator = a.id, .maker = t->by.maker, .partition = t->by.partition};
    }
    l->v[at].value = (int64_t)((uint64_t)l->v[at].value + (uint64_t)n);
    l->last = at;
    return 0;
}
