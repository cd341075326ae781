/*
 * Answers are written from what there is: stages that are over from the log's statistics,
 * the others as the engine sees them. Cost: O(stages + executors); why a submitted stage
 * waits is O(executors), so of those only the first WHY_MAX are told it.
 */
#include "driver/answers.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/profile/footprint.h"
#include "driver/driver_state.h"
#include "events/json_text.h"
#include "events/status.h"
#include "os/clock.h"

enum { WHY_MAX = 100 };

/* ---- stages ---- */

struct look {
    const trp_driver *d;
    int64_t now; /* mono */
    uint32_t whys;
    char why[1024];
};

static bool is_over(const struct trp_driver_stage *s)
{
    return !s || s->ended;
}

/* Why nothing of it runs; "" where something does, or too many were told. */
static const char *why_of(struct look *l, const struct trp_driver_stage *s)
{
    l->why[0] = '\0';
    if (s->live || (s->submitted && l->whys++ >= WHY_MAX))
        return l->why;
    trp_driver_why_waiting(l->d, s->id, l->now, l->why, sizeof l->why);
    return l->why;
}

static struct trp_status_stage live_stage(struct look *l,
                                          const struct trp_driver_stage *s)
{
    const trp_driver *d = l->d;
    struct trp_stage_view v = {0};
    trp_engine_stage(d->engine, s->id, &v);
    return (struct trp_status_stage){
        .name = s->name,
        .id = s->id.n,
        .profile = trp_profiles_get(d->profiles, s->profile)->name,
        .state = !s->submitted ? "waiting"
                 : s->live     ? "running"
                               : "ready",
        .tasks = s->ntasks,
        .done = s->done,
        .running = v.running,
        .pending = v.pending + v.queued,
        .given_up = s->given_up,
        .skipped = s->skipped,
        .failures = s->failures,
        .began = s->started,
        .why = why_of(l, s)};
}

static const struct trp_stage_statistics *told_of(const struct trp_statistics *all,
                                                  uint32_t id)
{
    return id < all->nstages ? all->stages[id] : NULL;
}

static void put_stages(struct look *l, const struct trp_statistics *all, uint32_t first,
                       struct trp_buf *b)
{
    const trp_driver *d = l->d;
    for (uint32_t i = first; i < d->nstages; i++) {
        const struct trp_driver_stage *s = d->stages[i];
        const struct trp_stage_statistics *t = told_of(all, i);
        struct trp_status_stage one;
        if (!is_over(s))
            one = live_stage(l, s);
        else if (t)
            one = trp_status_of(all, t);
        else
            continue;
        trp_status_stage(b, &one);
    }
}

/* ---- executors ---- */

static void put_profiles(const trp_driver *d, struct trp_buf *b)
{
    uint32_t n = trp_profiles_count(d->profiles);
    for (uint32_t i = 0; i < n; i++) {
        const struct trp_resource_profile *p =
            trp_profiles_get(d->profiles, (trp_profile_id){i});
        char needs[512];
        struct trp_status_profile one = {.name = p->name};
        for (uint32_t x = 0; x < d->nrecords; x++) {
            const struct trp_executor_record *r = d->records[x];
            if (!r || r->profile.n != i || r->released)
                continue;
            one.up += r->state == TRP_RECORD_UP;
            one.coming += r->state == TRP_RECORD_COMING;
        }
        one.needs = trp_profile_text(p, 0, needs, sizeof needs);
        if (one.up || one.coming)
            trp_status_profile(b, &one);
    }
}

/* ---- answers ---- */

static void put_status(const trp_driver *d, struct trp_buf *b)
{
    const struct trp_statistics *all = trp_event_log_statistics(d->log);
    struct look l = {.d = d, .now = trp_clock_ns()};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    struct trp_status s = {.run = d->run_name,
                           .name = d->config.app_name,
                           .status = d->stop ? "stopping" : "running",
                           .from = "driver",
                           .host = host,
                           .now = trp_driver_wall(d, l.now),
                           .started = all->first};
    uint32_t first = trp_status_first(d->nstages, &s.left_out);
    trp_status_begin(b, &s);
    put_stages(&l, all, first, b);
    trp_status_executors(b);
    put_profiles(d, b);
    trp_status_end(b);
}

void trp_driver_answer(void *driver, const struct trp_ask *q, struct trp_buf *ret)
{
    const trp_driver *d = driver;
    (void)q;
    put_status(d, ret);
}
