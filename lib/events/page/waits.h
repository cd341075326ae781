/*
 * What the tasks of each stage waited for, from when the stage could run until their
 * first attempts began, or the stage ended without them. What the driver has noted of the
 * stage (TroupeStageWaits) counts where it is the stage's own reason; else each moment
 * counts for the first of the others that holds then, by what is to be seen of the
 * executors of its profile.
 */
#ifndef TRP_EVENTS_PAGE_WAITS_H
#define TRP_EVENTS_PAGE_WAITS_H

#include "events/page/page_facts.h"

enum trp_page_wait {
    TRP_PAGE_WAIT_PLACE, /* a slot was free, and it is not known why it was not taken */
    TRP_PAGE_WAIT_START, /* an executor was starting */
    TRP_PAGE_WAIT_QUEUE, /* one was asked for, and an additional Slurm job was in the queue
                          * (in logs without that: it came in such a job) */
    TRP_PAGE_WAIT_ASKED, /* one was asked for, and there was no room for it yet */
    TRP_PAGE_WAIT_ROOM,  /* all slots were taken, and no executor was asked for */
    /* As noted: enum trp_wait has more of each. */
    TRP_PAGE_WAIT_LOCALITY,
    TRP_PAGE_WAIT_EXCLUDED,
    TRP_PAGE_WAIT_MAX_RUNNING,
    TRP_PAGE_WAIT_LIMITS,
    TRP_PAGE_WAIT_BARRIER,
    TRP_PAGE_WAIT_GANG,
    TRP_PAGE_WAIT_PARENTS,
    TRP_PAGE_WAIT_END,
    TRP_PAGE_WAITS,
};
/* "free_slot", "starting", …: the name in documents. */
const char *trp_page_wait_name(enum trp_page_wait w);

struct trp_page_stage_wait {
    int64_t ms[TRP_PAGE_WAITS]; /* of all its tasks together */
    int64_t nothing_ran;        /* ms while it could run and had tasks left */
};

/* An array by place of the stage, malloc'ed; NULL: out of memory. */
struct trp_page_stage_wait *trp_page_waits(const struct trp_page_facts *f);

#endif
