/*
 * How much longer a task set will take: each pending task is estimated to take the
 * median of the tasks that ended last, on the slot that is free first. There is no
 * estimate until as many tasks have ended as run, since the first to end are the short
 * ones. O(executors), and O(slots) of the set's class.
 */
#include "core/engine_state.h"

enum { COLUMNS = 64 };

static int64_t median(const struct trp_task_set *s)
{
    int64_t v[TRP_TIMES_KEPT];
    uint32_t n = s->timed < TRP_TIMES_KEPT ? s->timed : TRP_TIMES_KEPT;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at && v[at - 1] > s->took_ns[i]; at--)
            v[at] = v[at - 1];
        v[at] = s->took_ns[i];
    }
    return v[n / 2];
}

/* How much longer the running attempts of a set need, as a histogram. */
struct running {
    int64_t step; /* of a column */
    uint32_t n, columns[COLUMNS];
};

static struct running find_running(const struct trp_engine *e,
                                   const struct trp_task_set *s, struct trp_left *left)
{
    struct running r = {.step = left->took_ns / COLUMNS + 1};
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        const struct trp_executor *x = e->executors[i];
        if (!x || x->class != s->class->profile.n)
            continue;
        for (uint32_t k = x->running; k != TRP_NONE; k = e->attempts.v[k].next) {
            const struct trp_attempt *a = &e->attempts.v[k];
            int64_t ran = e->now - a->launched_ns, more = left->took_ns - ran;
            if (a->set != s)
                continue;
            more = more > 0 ? more : 0;
            left->oldest_ns = ran > left->oldest_ns ? ran : left->oldest_ns;
            left->running_ns += (double)more;
            r.n++;
            r.columns[more / r.step]++;
        }
    }
    return r;
}

/* The longest that the `n` shortest of them need: the end of their last column. */
static int64_t shortest(const struct running *r, uint32_t n)
{
    uint32_t i = 0, seen = r->columns[0];
    while (seen < n)
        seen += r->columns[++i];
    return i ? (i + 1) * r->step : 0;
}

struct trp_left trp_left_of(const struct trp_engine *e, const struct trp_task_set *s)
{
    uint64_t pending = (uint64_t)s->pending + s->queued;
    struct trp_left left = {.all_ns = TRP_LEFT_UNKNOWN, .oldest_ns = -1};
    if (!pending && !s->running) {
        left.all_ns = 0;
        return left;
    }
    if (!s->class)
        return left;
    left.took_ns = s->timed ? median(s) : 0;
    const struct running r = find_running(e, s, &left);
    if (!s->timed || s->timed < s->running || !r.n)
        return left;
    uint64_t waves = pending / r.n;
    uint32_t more = (uint32_t)(pending % r.n);
    int64_t took = left.took_ns, last = shortest(&r, r.n);
    if (took > 0 && waves > (uint64_t)(INT64_MAX / 4 / took)) {
        left.all_ns = INT64_MAX / 2;
        return left;
    }
    if (more && shortest(&r, more) + took > last)
        last = shortest(&r, more) + took;
    left.all_ns = (int64_t)waves * took + last;
    return left;
}
