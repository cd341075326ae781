/*
 * When the tasks of a set that run began, coarsely: how many began in which column of
 * time. So it is known how much longer they run without looking at them.
 *
 * The columns have one length, which doubles when too many tasks are older than all of
 * them; what is older than the first column is in one more. Tasks begin in the order of
 * time.
 *
 *     struct trp_start_times t = {0};
 *     trp_start_times_add(&t, now_ns);                 // a task begins
 *     trp_start_times_remove(&t, began_ns);            // one that began then ends
 *     for (k = 0; k <= TRP_START_COLUMNS; k++)         // the oldest first
 *         t.columns[k].n tasks began at t.columns[k].first_ns or a little later
 *
 * Cost: O(1) each.
 */
#ifndef TRP_CORE_ALLOC_START_TIMES_H
#define TRP_CORE_ALLOC_START_TIMES_H

#include <stdint.h>

enum { TRP_START_COLUMNS = 32 };

struct trp_start_times {
    int64_t from_ns; /* the start of columns[1] */
    uint32_t shift;  /* a column is 1 << shift ns long */
    struct {
        uint32_t n;
        int64_t first_ns; /* when the first one that is counted here began */
    } columns[TRP_START_COLUMNS + 1]; /* the first: what is older than the others */
};

/* Makes a column for a task that begins at `at_ns`. */
void trp_start_times_shift(struct trp_start_times *t, int64_t at_ns);

/* Columns after from_ns: what lies before it has a number that is far too large. */
static inline uint64_t trp_start_times_after(const struct trp_start_times *t,
                                             int64_t at_ns)
{
    return ((uint64_t)at_ns - (uint64_t)t->from_ns) >> t->shift;
}

static inline void trp_start_times_add(struct trp_start_times *t, int64_t at_ns)
{
    if (trp_start_times_after(t, at_ns) >= TRP_START_COLUMNS)
        trp_start_times_shift(t, at_ns);
    uint64_t k = trp_start_times_after(t, at_ns) + 1;
    if (t->columns[k].n++ == 0)
        t->columns[k].first_ns = at_ns;
}

static inline void trp_start_times_remove(struct trp_start_times *t, int64_t at_ns)
{
    uint64_t k = trp_start_times_after(t, at_ns);
    t->columns[k < TRP_START_COLUMNS ? k + 1 : 0].n--;
}

#endif
