/*
 * The time axis of a page: ms from the run's first beginning on, in which what lies
 * between two starts of a run (it died on Friday and was resumed on Monday) is cut down
 * to a fiftieth of all that it ran.
 */
#ifndef TRP_EVENTS_PAGE_AXIS_H
#define TRP_EVENTS_PAGE_AXIS_H

#include "events/page/page_facts.h"

struct trp_page_axis {
    struct trp_page_stretch {
        int64_t from, to; /* wall, ms */
        int64_t at;       /* on the axis */
    } * v;                /* one a start */
    uint32_t n;
    int64_t length; /* at least 1 */
};

/* TRP_ENOMEM. */
int trp_page_axis_make(const struct trp_page_facts *f, struct trp_page_axis *ret);
void trp_page_axis_free(struct trp_page_axis *a);
/* Where a time is on it, from 0 to its length. */
int64_t trp_page_axis_at(const struct trp_page_axis *a, int64_t wall_ms);

/* A quantity over time, as means of equal bins. */
struct trp_page_bins {
    double *v;
    uint32_t n;
    int64_t length; /* of the axis */
};
/* Adds `amount` from `from` to `to` on the axis. */
void trp_page_bins_add(struct trp_page_bins *b, int64_t from, int64_t to,
                       double amount);

#endif
