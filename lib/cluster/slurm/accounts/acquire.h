/*
 * When additional jobs are asked for, and for how many executors at a time: the
 * decisions for one kind of executors.
 *
 * A *need* is the requests that have no room and are not coming in a queued job. It is
 * asked for *now*: all of it at once; when Slurm is too busy half as many, and so on
 * down to one. What cannot be had now is *queued*, in one job; in a few small ones
 * where a job cannot give nodes back before its end. When all is queued, what comes to
 * wait next is gathered for a second, and longer while this happens again soon:
 * executors that fail to start, one by one, would each ask for a job that is cancelled
 * a moment later. What is refused for another reason is asked for again, later and
 * later. When what is queued is more than what waits, the rest is cancelled.
 *
 * While executors are going away whose room would do, that is waited for, HOLD at most:
 * between stages the same nodes are cut anew. Room that would not do goes back to
 * Slurm: what cannot be had now is tried once more after that before it is queued.
 *
 *     struct trp_acquire_step s = trp_acquire_next(&a, &need, now);
 *     if (s.what == TRP_ACQUIRE_NOW) { ask for s.count; trp_acquire_asked(&a); }
 *     … trp_acquire_busy(&a, count);
 *
 * Pure: no I/O, no clock. Times in ns.
 */
#ifndef TRP_CLUSTER_SLURM_ACCOUNTS_ACQUIRE_H
#define TRP_CLUSTER_SLURM_ACCOUNTS_ACQUIRE_H

#include <stdbool.h>
#include <stdint.h>

struct trp_acquire {
    int64_t poll_ns;     /* filled by the caller: slurm.poll */
    bool asking;         /* a call is under way */
    bool busy;           /* not even one can be had now */
    uint32_t next;       /* how many are asked for next; 0: all */
    uint32_t chunk;      /* in a queued job */
    uint32_t chunk_most; /* what Slurm takes into its queue; 0: not known */
    int64_t retry_at, pause_ns;
    int64_t held_until;              /* 0: not held */
    int64_t gather_until, gather_ns; /* until then needs are gathered */
};

struct trp_acquire_need {
    uint32_t waiting;   /* requests without room that are worth an additional job */
    uint32_t coming;    /* executors of queued jobs, not granted yet */
    uint32_t jobs_left; /* that may be had more */
    uint32_t node;      /* jobs cannot shrink: how many a node has room for; else 0 */
    bool freeing;       /* room for them is about to be free */
    bool leaving;       /* Slurm is about to have more room */
};

enum trp_acquire_what {
    TRP_ACQUIRE_NOTHING,
    TRP_ACQUIRE_NOW,
    TRP_ACQUIRE_QUEUE,
    TRP_ACQUIRE_CANCEL, /* jobs of `count` executors together, at most */
};

struct trp_acquire_step {
    enum trp_acquire_what what;
    uint32_t count;
    int64_t due; /* look again then; INT64_MAX: when something happens */
};

struct trp_acquire_step trp_acquire_next(struct trp_acquire *a,
                                         const struct trp_acquire_need *need,
                                         int64_t now);

/* After TRP_ACQUIRE_NOTHING: neither an answer nor room that is about to be free is
 * waited for. */
bool trp_acquire_exhausted(const struct trp_acquire *a, int64_t now);

/* What became of a step: the call is made … */
void trp_acquire_asked(struct trp_acquire *a);
/* … and granted, or queued; */
void trp_acquire_had(struct trp_acquire *a);
/* something runs in what was granted: what is refused or comes to wait next is asked for
 * soon; */
void trp_acquire_used(struct trp_acquire *a);
/* so many (2 at least) are more than Slurm takes into the queue as one job; */
void trp_acquire_too_large(struct trp_acquire *a, uint32_t count);
/* so many cannot be had now; */
void trp_acquire_busy(struct trp_acquire *a, uint32_t count);
/* it was refused, or a job was lost: later again. */
void trp_acquire_refused(struct trp_acquire *a, int64_t now);

#endif
