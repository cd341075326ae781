/*
 * Answers are written from what there is: stages that are over from the log's statistics,
 * the others as the engine sees them. Cost: O(stages + executors); why a submitted stage
 * waits is O(executors), so of those only the first WHY_MAX are told it.
 */
#include "driver/answers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/time.h"
#include "core/profile/footprint.h"
#include "driver/driver_state.h"
#include "events/json_text.h"
#include "events/run_status.h"
#include "os/clock.h"

enum { WHY_MAX = 100 };

/* ---- stages ---- */

struct look {
    const trp_driver *d;
    int64_t now; /* mono */
    bool no_why; /* nobody wants to know why stages wait */
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
    if (l->no_why || trp_driver_runs(s) || (s->submitted && l->whys++ >= WHY_MAX))
        return l->why;
    trp_driver_why_waiting(l->d, s->id, l->now, l->why, sizeof l->why);
    return l->why;
}

static const char *state_of(const struct trp_driver_stage *s)
{
    return !s->submitted ? "waiting" : trp_driver_runs(s) ? "running" : "ready";
}

/* `t`: what the log has of it; NULL: nothing yet. */
static struct trp_status_stage live_stage(struct look *l,
                                          const struct trp_driver_stage *s,
                                          const struct trp_stage_statistics *t)
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
        .ran = t ? t->durations.count : 0,
        .began = s->started,
        .why = why_of(l, s)};
}

static const struct trp_stage_statistics *told_of(const struct trp_statistics *all,
                                                  uint32_t id)
{
    return trp_statistics_own(all, id);
}

/* False: nothing is known of it. */
static bool one_stage(struct look *l, const struct trp_statistics *all, uint32_t i,
                      struct trp_status_stage *ret)
{
    const struct trp_driver_stage *s = l->d->stages[i];
    const struct trp_stage_statistics *t = told_of(all, i);
    if (is_over(s) && !t)
        return false;
    *ret = is_over(s) ? trp_status_of(all, t) : live_stage(l, s, t);
    return true;
}

static void put_stages(struct look *l, const struct trp_statistics *all, uint32_t first,
                       struct trp_buf *b)
{
    const trp_driver *d = l->d;
    struct trp_status_stage one;
    for (uint32_t i = first; i < d->nstages; i++)
        if (one_stage(l, all, i, &one))
            trp_status_stage(b, &one);
}

bool trp_driver_stage_status(const trp_driver *d, uint32_t i,
                             struct trp_status_stage *ret)
{
    struct look l = {.d = d, .no_why = true};
    bool known = one_stage(&l, trp_event_log_statistics(d->log), i, ret);
    ret->why = "";
    return known;
}

/* ---- executors ---- */

bool trp_driver_profile_status(const trp_driver *d, uint32_t i,
                               struct trp_status_profile *ret)
{
    const struct trp_statistics *all = trp_event_log_statistics(d->log);
    const struct trp_resource_profile *p =
        trp_profiles_get(d->profiles, (trp_profile_id){i});
    *ret = (struct trp_status_profile){.name = p->name, .needs = ""};
    for (uint32_t x = 0; x < d->nrecords; x++) {
        const struct trp_executor_record *r = d->records[x];
        if (!r || r->profile.n != i)
            continue;
        if (r->released) {
            ret->leaving += r->here && (r->state & TRP_RECORD_JOINED);
            continue;
        }
        ret->up += r->state == TRP_RECORD_UP;
        ret->busy += r->state == TRP_RECORD_UP && x < all->nexecutors &&
                     all->executors[x].open > 0;
        ret->coming += r->state == TRP_RECORD_COMING;
    }
    return ret->up || ret->coming || ret->leaving;
}

static void put_profiles(const trp_driver *d, struct trp_buf *b)
{
    uint32_t n = trp_profiles_count(d->profiles);
    for (uint32_t i = 0; i < n; i++) {
        char needs[512];
        struct trp_status_profile one;
        if (!trp_driver_profile_status(d, i, &one))
            continue;
        one.needs = trp_profile_text(trp_profiles_get(d->profiles, (trp_profile_id){i}),
                                     0, needs, sizeof needs);
        trp_status_profile(b, &one);
    }
}

/* ---- jobs ---- */

struct trp_status_job trp_driver_job_status(const struct trp_cluster_job *j)
{
    return (struct trp_status_job){.job = j->job,
                                   .additional = j->additional,
                                   .state = j->state,
                                   .profile = j->profile,
                                   .reason = j->reason,
                                   .nodes = j->nodes,
                                   .start = j->start * TRP_SECOND,
                                   .ends = j->ends * TRP_SECOND};
}

static void put_job(void *context, const struct trp_cluster_job *j)
{
    const struct trp_status_job one = trp_driver_job_status(j);
    trp_status_job(context, &one);
}

/* ---- why stages wait ---- */

static void put_seconds(struct trp_buf *b, int64_t ns)
{
    trp_json_int(b, ns > 0 ? ns / 1000000 : 0);
}

/* Executors of its profile: how many are there and asked for, since when the first. */
static void put_executors(const struct look *l, trp_profile_id profile,
                          struct trp_buf *b)
{
    const trp_driver *d = l->d;
    uint32_t up = 0, coming = 0;
    int64_t since = l->now;
    for (uint32_t i = 0; i < d->nrecords; i++) {
        const struct trp_executor_record *r = d->records[i];
        if (!r || r->profile.n != profile.n || r->released)
            continue;
        up += r->state == TRP_RECORD_UP;
        coming += r->state == TRP_RECORD_COMING;
        if (r->state == TRP_RECORD_COMING && r->requested < since)
            since = r->requested;
    }
    TRP_JSON_INT(b, "up", up);
    TRP_JSON_INT(b, "coming", coming);
    TRP_JSON(b, ",\"coming_for\":");
    put_seconds(b, coming ? l->now - since : 0);
}

/* One that is over: whoever asks has it in the log, but for its last second. */
static void put_over(const struct look *l, uint32_t i, struct trp_buf *b)
{
    struct trp_status_stage one;
    if (!trp_driver_stage_status(l->d, i, &one))
        return;
    trp_json_comma(b);
    TRP_JSON(b, "{\"name\":");
    trp_json_text(b, one.name);
    TRP_JSON_TEXT(b, "state", one.state);
    TRP_JSON_INT(b, "tasks", one.tasks);
    TRP_JSON_BOOL(b, "over", true);
    TRP_JSON(b, "}");
}

static void put_why(struct look *l, const struct trp_driver_stage *s, struct trp_buf *b)
{
    const trp_driver *d = l->d;
    const struct trp_resource_profile *p = trp_profiles_get(d->profiles, s->profile);
    char text[512];
    struct trp_stage_view v = {0};
    trp_engine_stage(d->engine, s->id, &v);
    bool waits = !trp_driver_runs(s) || v.pending > 0;
    if (waits)
        trp_driver_why_waiting(d, s->id, l->now, l->why, sizeof l->why);
    trp_json_comma(b);
    TRP_JSON(b, "{\"name\":");
    trp_json_text(b, s->name);
    TRP_JSON_INT(b, "id", s->id.n);
    TRP_JSON_TEXT(b, "state", state_of(s));
    TRP_JSON_INT(b, "tasks", s->ntasks);
    TRP_JSON_TEXT(b, "why", waits ? l->why : "");
    TRP_JSON_INT(b, "running", v.running);
    TRP_JSON_INT(b, "pending", v.pending + v.queued);
    TRP_JSON(b, ",\"idle\":");
    put_seconds(b, s->submitted && !trp_driver_runs(s) ? l->now - s->idle_since : 0);
    TRP_JSON_TEXT(b, "profile", p->name);
    TRP_JSON_TEXT(b, "executor", trp_profile_text(p, 0, text, sizeof text));
    TRP_JSON_TEXT(b, "task",
                  s->ranks ? trp_profile_text(p, s->ranks, text, sizeof text)
                           : trp_profile_text_of_task(p, text, sizeof text));
    TRP_JSON_INT(b, "ranks", s->ranks);
    put_executors(l, s->profile, b);
    TRP_JSON(b, "}");
}

/* Of all stages those that wait, of a named one all there is. */
static void put_explained(const trp_driver *d, const char *stage, struct trp_buf *b)
{
    struct look l = {.d = d, .now = trp_clock_ns()};
    struct trp_room room = {0};
    char text[512] = "";
    if (d->cluster)
        d->cluster->ops->room(d->cluster, &room);
    TRP_JSON(b, "{\"run\":");
    trp_json_text(b, d->run_name);
    TRP_JSON_TEXT(b, "room", d->cluster ? trp_room_text(&room, text, sizeof text) : "");
    TRP_JSON(b, ",\"stages\":[");
    for (uint32_t i = 0; i < d->nstages; i++) {
        const struct trp_driver_stage *s = d->stages[i];
        if (!s || (*stage && strcmp(stage, s->name) != 0))
            continue;
        if (is_over(s) && *stage)
            put_over(&l, i, b);
        else if (!is_over(s) && (*stage || (!trp_driver_runs(s) && l.whys++ < WHY_MAX)))
            put_why(&l, s, b);
    }
    TRP_JSON(b, "],\"left_out\":");
    trp_json_int(b, l.whys > WHY_MAX ? l.whys - WHY_MAX : 0);
    TRP_JSON(b, "}");
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
                           .started = all->first,
                           .tasks = d->tasks,
                           .done = d->tasks_done};
    uint32_t first = trp_status_first(d->nstages, &s.left_out);
    trp_status_begin(b, &s);
    put_stages(&l, all, first, b);
    trp_status_executors(b);
    put_profiles(d, b);
    trp_status_jobs(b);
    if (d->cluster && d->cluster->ops->batch.jobs)
        d->cluster->ops->batch.jobs(d->cluster, put_job, b);
    trp_status_end(b);
}

void trp_driver_answer(void *driver, const struct trp_ask *q, struct trp_buf *ret)
{
    const trp_driver *d = driver;
    if (q->what == TRP_ASK_EXPLAIN)
        put_explained(d, q->stage, ret);
    else
        put_status(d, ret);
}
