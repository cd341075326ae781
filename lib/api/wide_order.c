/* In what order the records of a shuffle are, and what becomes of values of one key. */
#include <string.h>

#include "api/task.h"
#include "api/wide.h"
#include "core/base/error.h"

static void begin_combining(struct trp_combining *c, const struct trp_wide_plan *plan)
{
    c->plan = plan;
    c->code = 0;
    c->failed = NULL;
    c->task = NULL;
    c->raised = false;
    trp_writer_reset(&c->out);
}

void trp_combining_free(struct trp_combining *c)
{
    trp_writer_free(&c->out);
}

/* ---- combining ---- */

static int combine_sum(void *context, const void *a, size_t na, const void *b,
                       size_t nb, const void **ret, size_t *ret_size)
{
    struct trp_combining *c = context;
    if (na != 8 || nb != 8)
        return TRP_EINVAL; /* checked where records come in */
    trp_sum_combine(c->plan->sum, a, b, &c->value);
    *ret = &c->value;
    *ret_size = sizeof(c->value);
    return 0;
}

static int combine_function(void *context, const void *a, size_t na, const void *b,
                            size_t nb, const void **ret, size_t *ret_size)
{
    struct trp_combining *c = context;
    trp_writer_clear(&c->out);
    c->out.keyed = TRP_KEYED_OPEN;
    c->code = c->plan->tasked
                  ? ((trp_task_combine)c->plan->code)(c->task, a, na, b, nb, &c->out,
                                                      c->plan->arg)
                  : ((trp_combine)c->plan->code)(a, na, b, nb, &c->out, c->plan->arg);
    if (c->code)
        return TRP_EFAILED;
    if (c->out.failed && !c->out.mistake)
        return TRP_ENOMEM;
    if (c->out.failed || c->out.count != 1) {
        c->failed = c->out.failed ? c->out.failed
                                  : "a combine function must emit exactly one value";
        return TRP_EINVAL;
    }
    *ret = c->out.values.data ? (const void *)c->out.values.data : "";
    *ret_size = c->out.values.size;
    return 0;
}

/* Records that are the same: either will do. */
static int combine_same(void *context, const void *a, size_t na, const void *b,
                        size_t nb, const void **ret, size_t *ret_size)
{
    (void)context, (void)a, (void)na, (void)b, (void)nb;
    *ret = "";
    *ret_size = 0;
    return 0;
}

/* ---- comparing ---- */

int trp_wide_compare(struct trp_combining *c, const void *a, size_t na, const void *b,
                     size_t nb)
{
    const struct trp_wide_plan *p = c->plan;
    if (!p->tasked)
        return ((trp_compare)p->code)(a, na, b, nb, p->arg);
    int rc = ((trp_task_compare)p->code)(c->task, a, na, b, nb, p->arg);
    c->raised |= trp_task_has_failed(c->task);
    return rc;
}

static int compare_keys(void *context, const void *a, size_t na, const void *b,
                        size_t nb)
{
    return trp_wide_compare(context, a, na, b, nb);
}

static void set_key_order(const struct trp_wide_plan *p,
                          struct trp_shuffle_order *order)
{
    static const enum trp_shuffle_keys keys[] = {[TRP_BYTES] = TRP_KEYS_BYTES,
                                                 [TRP_I64] = TRP_KEYS_I64,
                                                 [TRP_F64] = TRP_KEYS_F64};
    order->descending = (p->order & TRP_DESCENDING) != 0;
    order->keys = keys[p->order & ~(unsigned)TRP_DESCENDING];
    if (!p->order)
        order->compare = compare_keys;
}

struct trp_shuffle_order trp_wide_order(const struct trp_wide_plan *p,
                                        struct trp_combining *c)
{
    struct trp_shuffle_order order = {.context = c};
    begin_combining(c, p);
    switch (p->kind) {
    case TRP_WIDE_REDUCE:
        order.combine = combine_sum;
        break;
    case TRP_WIDE_COMBINE:
        order.combine = combine_function;
        break;
    case TRP_WIDE_DISTINCT:
        order.combine = combine_same;
        break;
    case TRP_WIDE_REPARTITION:
        order.unordered = true;
        break;
    case TRP_WIDE_SORT:
        set_key_order(p, &order);
        break;
    default:
        break;
    }
    return order;
}
