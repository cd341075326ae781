/*
 * What the tasks of each stage waited for, from when the stage could run until their
 * first attempts began, or the stage ended without them, by what was to be seen of the
 * executors of its profile: each moment of a task's wait counts for the first of these
 * that holds then.
 */
#ifndef TRP_EVENTS_PAGE_WAITS_H
#define TRP_EVENTS_PAGE_WAITS_H

#include "events/page/page_facts.h"

enum trp_page_wait {
    TRP_PAGE_WAIT_PLACE, /* a slot was free: it was not taken (locality, exclusion, the
                          * stage's own limits, all tasks of a barrier at once) */
    TRP_PAGE_WAIT_START, /* an executor was starting */
    TRP_PAGE_WAIT_QUEUE, /* one was asked for, in an additional Slurm job */
    TRP_PAGE_WAIT_ASKED, /* one was asked for, and there was no room for it yet */
    TRP_PAGE_WAIT_ROOM,  /* all slots were taken, and no executor was asked for */
    TRP_PAGE_WAITS,
};

struct trp_page_stage_wait {
    int64_t ms[TRP_PAGE_WAITS]; /* of all its tasks together */
    int64_t nothing_ran;        /* ms while it could run and had tasks left */
};

/* An array by place of the stage, malloc'ed; NULL: out of memory. */
struct trp_page_stage_wait *trp_page_waits(const struct trp_page_facts *f);

#endif
