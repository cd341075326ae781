/*
 * Tells why a stage waits: one that has tasks and has run none for 15 s, in the event
 * log and on stderr, again after 30 s, then every minute. The reason is the
 * engine's, the same that the progress line shows.
 *
 * The event log also has, as a word, what each stage's tasks wait for whenever that
 * changes, for the page of the run. Tasks come and go much faster than anybody wants to
 * know, so nothing is looked at when they do. There is a look every 100 ms, and none if
 * the engine has not stepped since. A look takes a millisecond at most; the next one goes
 * on where it stopped. A stage gets at most one line in 100 ms, and at most one in a
 * thousandth of its age: 8,000 in its first day.
 */
#include <stdio.h>
#include <string.h>

#include "driver/driver_state.h"
#include "os/clock.h"

#define WAITING_NS (15 * TRP_SECOND)
#define WAITING_MAX_NS (60 * TRP_SECOND)
#define LOOK_NS (TRP_SECOND / 10)
#define SLICE_NS (TRP_SECOND / 1000)

enum { AGE_PARTS = 1000 };

bool trp_driver_runs(const struct trp_driver_stage *s)
{
    return s->live && (!s->gang || s->has_room);
}

/* Which output it is that is not there; "": none. */
static void late_output(const trp_driver *d, const struct trp_driver_stage *s,
                        char *text, size_t size)
{
    const struct trp_work *w = s->check_since ? &s->job->work : NULL;
    trp_error err;
    if (w && w->stage_check(w->context, s->index, &err) == TRP_EWAIT)
        snprintf(
            text, size, "%.400s yet; it may be %lld s late (outputs.wait)", err.text,
            (long long)(trp_options_time_ns(d->options, "outputs.wait") / TRP_SECOND));
}

void trp_driver_why_waiting(const trp_driver *d, trp_stage_id id, int64_t now,
                            char *why, size_t size)
{
    const struct trp_driver_stage *s = trp_driver_stage_of(d, id);
    char text[512] = "";
    trp_engine_why_waiting(d->engine, now, id, why, size);
    size_t n = strlen(why);
    if (d->cluster && d->cluster->ops->batch.why)
        d->cluster->ops->batch.why(
            d->cluster, trp_profiles_get(d->profiles, s->profile), text, sizeof(text));
    late_output(d, s, text, sizeof(text));
    if (*text)
        snprintf(why + n, size - n, "; %s", text);
}

static bool tell_stage(trp_driver *d, const struct trp_driver_stage *s, trp_stage_id id,
                       int64_t now)
{
    char why[1024], line[1400];
    if (!s || !s->submitted || s->ended || now - s->idle_since < WAITING_NS ||
        trp_driver_runs(s))
        return false;
    trp_driver_why_waiting(d, id, now, why, sizeof(why));
    snprintf(line, sizeof(line), "stage %.250s has run nothing for %lld s: %s", s->name,
             (long long)((now - s->idle_since) / TRP_SECOND), why);
    trp_progress_line(d->progress, now, line);
    trp_event_message(d->log, "warning", line, trp_driver_wall(d, now));
    return true;
}

void trp_driver_tell_waiting(trp_driver *d, int64_t now)
{
    bool open = d->stages_known > d->stages_done && !d->stop && !d->drains,
         told = false;
    if (!open) {
        d->waiting_due = INT64_MAX;
        return;
    }
    if (d->waiting_due == INT64_MAX) {
        d->waiting_step = WAITING_NS;
        d->waiting_due = now + WAITING_NS;
    }
    if (now < d->waiting_due)
        return;
    for (uint32_t i = 0; i < d->nstages; i++)
        told |= tell_stage(d, d->stages[i], (trp_stage_id){i}, now);
    d->waiting_step = told ? 2 * d->waiting_step : WAITING_NS;
    if (d->waiting_step > WAITING_MAX_NS)
        d->waiting_step = WAITING_MAX_NS;
    d->waiting_due = now + d->waiting_step;
}

/* ---- what stages wait for, in the event log ---- */

static enum trp_wait waits_for(const trp_driver *d, const struct trp_driver_stage *s)
{
    if (s->gang && s->live)
        return trp_driver_runs(s) ? TRP_WAIT_NOTHING : TRP_WAIT_ROOM;
    return trp_engine_waits_for(d->engine, s->id);
}

static void log_stage(trp_driver *d, struct trp_driver_stage *s, int64_t now)
{
    int64_t at = trp_driver_wall(d, now), pause = (at - s->started) / AGE_PARTS;
    enum trp_wait what = waits_for(d, s);
    if (what == s->waits_for)
        return;
    s->waits_for = what;
    s->waits_due = now + (pause > LOOK_NS ? pause : LOOK_NS);
    trp_event_stage_waits(d->log, s->id, what, at);
}

/* False: the time for it is over. */
static bool log_job(trp_driver *d, const struct trp_driver_job *j, uint32_t below,
                    int64_t now, int64_t until)
{
    for (uint32_t i = j->first + j->nstages; i-- > j->first;) {
        struct trp_driver_stage *s = d->stages[i];
        if (i >= below || !s || !s->submitted || s->ended)
            continue;
        if (now < s->waits_due) {
            d->waits.late = s->waits_due < d->waits.late ? s->waits_due : d->waits.late;
            continue;
        }
        log_stage(d, s, now);
        d->waits.at = i;
        if (trp_clock_ns() > until)
            return false;
    }
    return true;
}

int64_t trp_driver_log_waits_due(const trp_driver *d)
{
    bool soon = d->waits.at || d->steps != d->waits.steps;
    int64_t late = soon ? 0 : d->waits.late;
    return late > d->waits.due ? late : d->waits.due;
}

/* Jobs, and their stages, from the last one on. */
void trp_driver_log_waits(trp_driver *d, int64_t now)
{
    const struct trp_driver_job *j = d->there;
    uint32_t below = d->waits.at ? d->waits.at : UINT32_MAX;
    if (now < trp_driver_log_waits_due(d))
        return;
    int64_t until = trp_clock_ns() + SLICE_NS;
    if (below == UINT32_MAX) {
        d->waits.steps = d->steps;
        d->waits.late = INT64_MAX;
    }
    d->waits.due = now + LOOK_NS;
    while (j && log_job(d, j, below, now, until))
        j = j->next;
    if (!j)
        d->waits.at = 0;
}
