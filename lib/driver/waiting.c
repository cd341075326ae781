/*
 * Tells why a stage waits: one that has tasks and has run none for 15 s, in the event
 * log and on stderr, again after 30 s, then every minute. The reason is the
 * engine's, the same that the progress line shows.
 */
#include <stdio.h>
#include <string.h>

#include "driver/driver_state.h"

#define WAITING_NS (15 * TRP_SECOND)
#define WAITING_MAX_NS (60 * TRP_SECOND)

bool trp_driver_runs(const trp_driver *d, const struct trp_driver_stage *s)
{
    return s->live && !(s->gang && d->cluster && d->cluster->ops->gang_waits &&
                        d->cluster->ops->gang_waits(d->cluster, s->gang_attempt));
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
    if (*text)
        snprintf(why + n, size - n, "; %s", text);
}

static bool tell_stage(trp_driver *d, const struct trp_driver_stage *s, trp_stage_id id,
                       int64_t now)
{
    char why[1024], line[1400];
    if (!s || !s->submitted || s->ended || now - s->idle_since < WAITING_NS ||
        trp_driver_runs(d, s))
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
    bool open = d->stages_known > d->stages_done && !d->stop, told = false;
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
