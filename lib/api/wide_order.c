/* In what order the records of a shuffle are, and what becomes of values of one key. */
#include <math.h>
#include <string.h>

#include "api/wide.h"
#include "core/base/error.h"

void trp_combining_init(struct trp_combining *c, const struct trp_wide_plan *plan)
{
    c->plan = plan;
    c->code = 0;
    c->failed = NULL;
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
    c->code = ((trp_combine)c->plan->code)(a, na, b, nb, &c->out, c->plan->arg);
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

static int compare_bytes(const void *a, size_t na, const void *b, size_t nb)
{
    size_t n = na < nb ? na : nb;
    int rc = n ? memcmp(a, b, n) : 0;
    return rc ? rc : (na > nb) - (na < nb);
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Those that are no numbers are above all others. */
static int compare_f64(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    if (isnan(x) || isnan(y))
        return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}

int trp_wide_compare(const struct trp_wide_plan *p, const void *a, size_t na,
                     const void *b, size_t nb)
{
    int rc;
    if (!p->order)
        return ((trp_compare)p->code)(a, na, b, nb, p->arg);
    switch (p->order & ~(unsigned)TRP_DESCENDING) {
    case TRP_I64:
        rc = compare_i64(a, b);
        break;
    case TRP_F64:
        rc = compare_f64(a, b);
        break;
    default:
        rc = compare_bytes(a, na, b, nb);
        break;
    }
    return p->order & TRP_DESCENDING ? (rc < 0) - (rc > 0) : rc;
}

static int compare_keys(void *context, const void *a, size_t na, const void *b,
                        size_t nb)
{
    const struct trp_combining *c = context;
    return trp_wide_compare(c->plan, a, na, b, nb);
}

struct trp_shuffle_order trp_wide_order(const struct trp_wide_plan *p,
                                        struct trp_combining *c)
{
    struct trp_shuffle_order order = {.context = c};
    trp_combining_init(c, p);
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
        if (p->order != TRP_BYTES)
            order.compare = compare_keys;
        break;
    default:
        break;
    }
    return order;
}
