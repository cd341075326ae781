/*
 * When a task begins behind the last column, the columns move on by half of them, or
 * more: what they leave behind is older than the first. That is right for the few that
 * run much longer than the others. Where more than an eighth would be left behind, tasks
 * run longer than the columns tell apart, and pairs of columns become one. They become
 * short again when nothing runs any more; until then an estimate is off by the length of
 * a task at most, for no task needs longer than one that begins now.
 *
 * Rejected: a list of the tasks in the order in which they began, which costs each
 * attempt two links and an estimate a walk.
 */
#include "core/alloc/start_times.h"

enum {
    FIRST_SHIFT = 20,    /* a millisecond */
    LEFT_BEHIND_MOST = 8 /* one of so many */
};

/* Tasks before that column. */
static uint64_t count(const struct trp_start_times *t, uint64_t column)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < column && i <= TRP_START_COLUMNS; i++)
        n += t->columns[i].n;
    return n;
}

/* Tasks of a column that lies before the other are counted there. */
static void join(struct trp_start_times *t, uint64_t from, uint64_t to)
{
    if (from == to || !t->columns[from].n)
        return;
    if (!t->columns[to].n || t->columns[from].first_ns < t->columns[to].first_ns)
        t->columns[to].first_ns = t->columns[from].first_ns;
    t->columns[to].n += t->columns[from].n;
    t->columns[from].n = 0;
}

static void widen(struct trp_start_times *t)
{
    for (uint64_t i = 2; i <= TRP_START_COLUMNS; i++)
        join(t, i, (i + 1) / 2);
    t->shift++;
}

static void move_on(struct trp_start_times *t, uint64_t by)
{
    for (uint64_t i = 1; i <= TRP_START_COLUMNS; i++)
        join(t, i, i <= by ? 0 : i - by);
    t->from_ns += (int64_t)(by << t->shift);
}

void trp_start_times_shift(struct trp_start_times *t, int64_t at_ns)
{
    const uint64_t all = count(t, TRP_START_COLUMNS + 1);
    if (!all) {
        *t = (struct trp_start_times){.from_ns = at_ns, .shift = FIRST_SHIFT};
        return;
    }
    for (;;) {
        uint64_t k = trp_start_times_after(t, at_ns), by = k - TRP_START_COLUMNS + 1;
        if (k < TRP_START_COLUMNS)
            return;
        if (by < TRP_START_COLUMNS / 2)
            by = TRP_START_COLUMNS / 2;
        if (count(t, by + 1) > all / LEFT_BEHIND_MOST)
            widen(t);
        else
            move_on(t, by);
    }
}
