/*
 * Outputs of stages, looked for when a stage's tasks are over: once at once, since they
 * are there as a rule, then after 10 ms, 20, 40, … up to 1 s, for `outputs.wait` in all.
 * What a task wrote on its node is seen here late on file systems that nodes share. The
 * stage has not ended meanwhile: nothing that comes after it begins.
 */
#include "driver/driver_state.h"

#define STEP_NS (TRP_SECOND / 100)
#define STEP_MAX_NS TRP_SECOND

/* Whether there is an answer, which the engine gets. */
static bool answer(trp_driver *d, struct trp_driver_stage *s)
{
    trp_error err = {0};
    int64_t wait = trp_options_time_ns(d->options, "outputs.wait");
    int r = s->job->work.stage_check(s->job->work.context, s->index, &err);
    if (r == TRP_EWAIT && d->now - s->check_since < wait)
        return false;
    struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_CHECKED,
        .checked = {.stage = s->id, .text = r < 0 ? err.text : NULL}
    };
    s->check_since = 0;
    d->checking--;
    trp_driver_try_step(d, &ev, NULL);
    return true;
}

void trp_driver_check_stage(trp_driver *d, trp_stage_id id)
{
    struct trp_driver_stage *s = trp_driver_stage_of(d, id);
    d->checking++;
    s->check_since = d->now;
    if (answer(d, s))
        return;
    d->check_step = STEP_NS;
    d->check_due = d->now + STEP_NS;
}

void trp_driver_check_late(trp_driver *d, int64_t now)
{
    if (!d->checking || now < d->check_due)
        return;
    for (uint32_t i = 0; i < d->nstages; i++) {
        struct trp_driver_stage *s = d->stages[i];
        if (s && s->check_since)
            answer(d, s);
    }
    d->check_step = d->check_step < STEP_MAX_NS / 2 ? 2 * d->check_step : STEP_MAX_NS;
    d->check_due = now + d->check_step;
    trp_driver_perform(d);
}
