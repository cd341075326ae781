/*
 * A need that is met starts anew from the top: the next one is first asked for now
 * again.
 */
#include "cluster/slurm/accounts/acquire.h"
#include "core/base/time.h"

#define HOLD_NS (3 * TRP_SECOND)
#define GATHER_MOST_NS (8 * TRP_SECOND)

enum { QUEUED_JOBS = 8, LATER = 8 };

static struct trp_acquire_step nothing(int64_t due)
{
    return (struct trp_acquire_step){.what = TRP_ACQUIRE_NOTHING, .due = due};
}

static void start_anew(struct trp_acquire *a)
{
    a->busy = false;
    a->next = a->chunk = 0;
    a->held_until = 0;
}

/* True: room will be free soon, until a->held_until. */
static bool hold(struct trp_acquire *a, const struct trp_acquire_need *need,
                 int64_t now)
{
    bool refused = a->busy || a->next;
    if (!need->freeing && !(need->leaving && refused)) {
        if (a->held_until && refused)
            start_anew(a);
        a->held_until = 0;
        return false;
    }
    if (!a->held_until)
        a->held_until = now + HOLD_NS;
    return now < a->held_until;
}

/* All that waits is about to be in the queue: what comes to wait next is gathered. */
static void gather(struct trp_acquire *a, int64_t now)
{
    bool soon = now < a->gather_until + a->gather_ns;
    a->gather_ns = soon ? 2 * a->gather_ns : TRP_SECOND;
    if (a->gather_ns > GATHER_MOST_NS)
        a->gather_ns = GATHER_MOST_NS;
    a->gather_until = now + a->gather_ns;
}

static struct trp_acquire_step queue(struct trp_acquire *a, uint32_t want,
                                     const struct trp_acquire_need *need, int64_t now)
{
    uint32_t jobs = need->jobs_left < QUEUED_JOBS ? need->jobs_left : QUEUED_JOBS;
    uint32_t share = need->node ? (want - 1) / jobs + 1 : want;
    share = share > need->node ? share : need->node;
    if (!a->chunk || !need->node || need->jobs_left < QUEUED_JOBS)
        a->chunk = share;
    if (a->chunk_most && a->chunk > a->chunk_most)
        a->chunk = a->chunk_most;
    if (want <= a->chunk)
        gather(a, now);
    return (struct trp_acquire_step){.what = TRP_ACQUIRE_QUEUE,
                                     .count = want < a->chunk ? want : a->chunk,
                                     .due = INT64_MAX};
}

struct trp_acquire_step trp_acquire_next(struct trp_acquire *a,
                                         const struct trp_acquire_need *need,
                                         int64_t now)
{
    if (a->asking)
        return nothing(INT64_MAX);
    if (need->coming > need->waiting)
        return (struct trp_acquire_step){.what = TRP_ACQUIRE_CANCEL,
                                         .count = need->coming - need->waiting,
                                         .due = INT64_MAX};
    uint32_t want = need->waiting - need->coming;
    if (want == 0) {
        start_anew(a);
        return nothing(INT64_MAX);
    }
    if (now < a->retry_at)
        return nothing(a->retry_at);
    if (now < a->gather_until)
        return nothing(a->gather_until);
    if (hold(a, need, now))
        return nothing(a->held_until);
    if (need->jobs_left == 0)
        return nothing(INT64_MAX);
    if (a->busy)
        return queue(a, want, need, now);
    return (struct trp_acquire_step){.what = TRP_ACQUIRE_NOW,
                                     .count =
                                         a->next && a->next < want ? a->next : want,
                                     .due = INT64_MAX};
}

bool trp_acquire_exhausted(const struct trp_acquire *a, int64_t now)
{
    return !a->asking && now >= a->held_until;
}

void trp_acquire_asked(struct trp_acquire *a)
{
    a->asking = true;
}

void trp_acquire_had(struct trp_acquire *a)
{
    a->asking = false;
}

void trp_acquire_used(struct trp_acquire *a)
{
    a->pause_ns = 0;
    a->gather_ns = a->gather_until = 0;
}

void trp_acquire_too_large(struct trp_acquire *a, uint32_t count)
{
    a->asking = false;
    a->chunk_most = count / 2;
    a->gather_until = 0;
}

void trp_acquire_busy(struct trp_acquire *a, uint32_t count)
{
    a->asking = false;
    a->next = count / 2;
    a->busy = count <= 1;
}

void trp_acquire_refused(struct trp_acquire *a, int64_t now)
{
    int64_t most = LATER * a->poll_ns;
    a->asking = false;
    a->pause_ns = a->pause_ns ? 2 * a->pause_ns : TRP_SECOND;
    if (a->pause_ns > most)
        a->pause_ns = most;
    a->retry_at = now + a->pause_ns;
}
