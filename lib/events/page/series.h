/*
 * Cores, memory and devices over time, as means of equal bins of the page's axis.
 *
 * Of each profile: what was *asked for* and was not there yet, what executors (and
 * gangs) *held*, and what its tasks *used*: as in the closing summary what the profile
 * says a task takes, while it runs. Of memory used is the sum of the tasks' peaks, so it
 * is at least what they had at any moment. Of each stage what its tasks used; those that
 * used least are one, the last.
 */
#ifndef TRP_EVENTS_PAGE_SERIES_H
#define TRP_EVENTS_PAGE_SERIES_H

#include "events/page/axis.h"

enum {
    TRP_PAGE_BINS = 600,
    TRP_PAGE_SERIES_STAGES = 24,   /* told one by one */
    TRP_PAGE_SERIES_PROFILES = 12, /* the same; the rest is one, the last */
    TRP_PAGE_QUANTITIES = 2 + TRP_PROFILE_RESOURCES, /* cores, MiB, each device */
};

enum trp_page_measure {
    TRP_PAGE_ASKED,
    TRP_PAGE_HELD,
    TRP_PAGE_USED,
    TRP_PAGE_MEASURES
};

/* `which` is a place of a profile or of a stage; TRP_NONE: the rest. */
struct trp_page_line {
    uint32_t which;
    double *v[TRP_PAGE_QUANTITIES]; /* TRP_PAGE_BINS each; NULL: nothing */
};

struct trp_page_series {
    struct trp_page_line *profiles[TRP_PAGE_MEASURES]; /* nprofiles each */
    uint32_t nprofiles;
    struct trp_page_line *stages; /* used */
    uint32_t nstages;
    bool failed; /* out of memory */
};

/* TRP_ENOMEM. */
int trp_page_series_make(const struct trp_page_facts *f, const struct trp_page_axis *a,
                         struct trp_page_series *ret);
void trp_page_series_free(struct trp_page_series *s);

#endif
