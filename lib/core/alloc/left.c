/*
 * How much longer a task set will take: each pending task is estimated to take the
 * median of the tasks that ended last, on the slot that is free first. There is no
 * estimate until as many tasks have ended as run, since the first to end are the short
 * ones. When the tasks that run began is kept as they begin and end (start_times.h), so
 * that an estimate costs the same for any number of them.
 */
#include "core/engine_state.h"

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

/* The tasks that run, from the one that began first: how much longer each column of
 * them needs. */
static int64_t more_of(const struct trp_engine *e, const struct trp_task_set *s,
                       uint32_t column, int64_t took_ns)
{
    int64_t more = took_ns - (e->now - s->began.columns[column].first_ns);
    return more > 0 ? more : 0;
}

static void look_at_running(const struct trp_engine *e, const struct trp_task_set *s,
                            struct trp_left *left)
{
    for (uint32_t i = 0; i <= TRP_START_COLUMNS; i++) {
        const uint32_t n = s->began.columns[i].n;
        if (n && left->oldest_ns < 0)
            left->oldest_ns = e->now - s->began.columns[i].first_ns;
        left->running_ns += (double)n * (double)more_of(e, s, i, left->took_ns);
    }
}

/* The longest that the `n` shortest of them need. */
static int64_t shortest(const struct trp_engine *e, const struct trp_task_set *s,
                        uint32_t n, int64_t took_ns)
{
    uint32_t i = 0, seen = s->began.columns[0].n;
    while (seen < n)
        seen += s->began.columns[++i].n;
    return more_of(e, s, i, took_ns);
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
    look_at_running(e, s, &left);
    if (!s->timed || s->timed < s->running || !s->running)
        return left;
    uint64_t waves = pending / s->running;
    uint32_t more = (uint32_t)(pending % s->running);
    int64_t took = left.took_ns, last = shortest(e, s, s->running, took);
    if (took > 0 && waves > (uint64_t)(INT64_MAX / 4 / took)) {
        left.all_ns = INT64_MAX / 2;
        return left;
    }
    if (more && shortest(e, s, more, took) + took > last)
        last = shortest(e, s, more, took) + took;
    left.all_ns = (int64_t)waves * took + last;
    return left;
}

uint32_t trp_left_end_within(const struct trp_engine *e, const struct trp_task_set *s,
                             int64_t ns)
{
    int64_t took = s->timed ? median(s) : 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i <= TRP_START_COLUMNS; i++)
        n += more_of(e, s, i, took) <= ns ? s->began.columns[i].n : 0;
    return n;
}
