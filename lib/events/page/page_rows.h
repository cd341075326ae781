/*
 * The rows of the page's timeline: one an executor, and one a stage for its gangs. When
 * there are too many executors, one a host; when there are too many hosts, one a profile.
 *
 * A row has its attempts one by one as long as the page has no more than
 * TRP_PAGE_TASKS of them: short rows come first. Of the others it has how much of it
 * each stage used in equal bins of the axis, as few as TRP_PAGE_CELLS allows, and its
 * failures one by one, as far as there is room for them.
 */
#ifndef TRP_EVENTS_PAGE_PAGE_ROWS_H
#define TRP_EVENTS_PAGE_PAGE_ROWS_H

#include "core/base/bytes.h"
#include "events/page/axis.h"

enum {
    TRP_PAGE_ROWS = 4000,
    TRP_PAGE_TASKS = 60000,
    TRP_PAGE_CELLS = 80000, /* rows with bins, by bins */
    TRP_PAGE_ROW_BINS = 480,
    TRP_PAGE_FAILED_TASKS = 3000, /* in rows that have bins */
};

/* Adds `{"by":…,"bins":…,"rows":[…]}`; TRP_ENOMEM. docs/decisions/0063 has the form. */
int trp_page_rows_put(const struct trp_page_facts *f, const struct trp_page_axis *a,
                      struct trp_buf *b);

#endif
