/* Typed sums: how two values of one key become one. Values are taken as they lie, since
 * records are not aligned. */
#include <string.h>

#include "api/wide.h"

bool trp_sum_known(unsigned sum)
{
    return sum >= TRP_SUM_I64 && sum <= TRP_COUNT;
}

uint32_t trp_sum_width(enum trp_sum sum)
{
    (void)sum;
    return 8; /* of all that there are */
}

static int64_t combine_i64(enum trp_sum sum, int64_t a, int64_t b)
{
    if (sum == TRP_MIN_I64)
        return b < a ? b : a;
    if (sum == TRP_MAX_I64)
        return b > a ? b : a;
    return (int64_t)((uint64_t)a + (uint64_t)b); /* it wraps around */
}

static double combine_f64(enum trp_sum sum, double a, double b)
{
    if (sum == TRP_MIN_F64)
        return b < a ? b : a;
    if (sum == TRP_MAX_F64)
        return b > a ? b : a;
    return a + b;
}

void trp_sum_combine(enum trp_sum sum, const void *a, const void *b, uint64_t *ret)
{
    if (sum == TRP_SUM_F64 || sum == TRP_MIN_F64 || sum == TRP_MAX_F64) {
        double x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        x = combine_f64(sum, x, y);
        memcpy(ret, &x, 8);
    } else {
        int64_t x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        x = combine_i64(sum, x, y);
        memcpy(ret, &x, 8);
    }
}
