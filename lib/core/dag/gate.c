/*
 * Barrier stages that need more slots than there are (semantics, section 13). If more
 * executors can be obtained (semantics, difference 6) they are requested and the stage
 * waits. In a fixed set the job is tried again every 15 s, 40 times, before it fails:
 * executors of a static run come one after the other. The same holds for a stage that
 * has been submitted and has not launched yet, since executors may have been lost
 * meanwhile. Those that wait stand in lists by due time.
 */
#include <utlist.h>

#include "core/engine_state.h"
#include "core/scenario/dag_alone.h"

int trp_gate_check(const struct trp_engine *e, const char *name, trp_profile_id profile,
                   uint32_t ntasks, trp_error *err)
{
    if (!e->config.fixed || (e->dag.alone && e->dag.alone->elastic))
        return 0;
    uint64_t slots = trp_barrier_slots(e, profile);
    if (ntasks <= slots)
        return 0;
    return trp_error_set(err, TRP_EWAIT,
                         "[SPARK-24819]: Barrier execution mode does not allow run a "
                         "barrier stage that requires more slots than the total number "
                         "of slots in the cluster currently: %s needs %u slots, there "
                         "are %llu",
                         name, ntasks, (unsigned long long)slots);
}

void trp_gate_add(struct trp_engine *e, struct trp_job *j)
{
    struct trp_job **at = &e->dag.gated;
    j->gate_due = e->now + e->config.barrier.check_interval_ns;
    while (*at && (*at)->gate_due <= j->gate_due)
        at = &(*at)->gate_next;
    j->gate_next = *at;
    *at = j;
    j->gated = true;
}

void trp_gate_remove(struct trp_engine *e, struct trp_job *j)
{
    if (!j->gated)
        return;
    LL_DELETE2(e->dag.gated, j, gate_next);
    j->gated = false;
}

/* ---- stages that have been submitted ---- */

/* Has it not launched yet? Its tasks may be held back by parents (after … each). */
static bool waits(const struct trp_stage *s)
{
    return s->state == TRP_STAGE_RUNNING && s->set && !s->set->zombie &&
           s->set->running + s->set->done == 0;
}

static bool lacks_slots(const struct trp_engine *e, const struct trp_stage *s)
{
    return s->ntasks > trp_barrier_slots(e, s->profile);
}

static void watch_stage(struct trp_engine *e, struct trp_stage *s)
{
    struct trp_stage **at = &e->dag.watched;
    s->gate_due = e->now + e->config.barrier.check_interval_ns;
    while (*at && (*at)->gate_due <= s->gate_due)
        at = &(*at)->gate_next;
    s->gate_next = *at;
    *at = s;
    s->gated = true;
}

void trp_gate_watch(struct trp_engine *e, struct trp_stage *s)
{
    if (!s->barrier || !e->config.fixed || s->gated || !waits(s))
        return;
    s->gate_failures = lacks_slots(e, s);
    watch_stage(e, s);
}

void trp_gate_unwatch(struct trp_engine *e, struct trp_stage *s)
{
    if (!s->gated)
        return;
    LL_DELETE2(e->dag.watched, s, gate_next);
    s->gated = false;
}

static void look_again(struct trp_engine *e, struct trp_stage *s)
{
    trp_error text;
    if (!waits(s))
        return;
    s->gate_failures = lacks_slots(e, s) ? s->gate_failures + 1 : 0;
    if (s->gate_failures <= e->config.barrier.check_max_failures) {
        watch_stage(e, s);
        return;
    }
    trp_gate_check(e, s->name, s->profile, s->ntasks, &text);
    trp_stage_abort(e, s, TRP_EFAILED, TRP_NONE, text.text);
}

/* ---- time ---- */

static void look_at_gated(struct trp_engine *e)
{
    while (e->dag.gated && e->dag.gated->gate_due <= e->now) {
        struct trp_job *j = e->dag.gated;
        trp_gate_remove(e, j);
        trp_job_start(e, j);
    }
    while (e->dag.watched && e->dag.watched->gate_due <= e->now) {
        struct trp_stage *s = e->dag.watched;
        trp_gate_unwatch(e, s);
        look_again(e, s);
    }
}

int64_t trp_dag_next_timer(const struct trp_engine *e)
{
    const struct trp_dag *d = &e->dag;
    int64_t due = d->gated ? d->gated->gate_due : INT64_MAX;
    if (d->watched && d->watched->gate_due < due)
        due = d->watched->gate_due;
    if (d->resubmit_head < d->nresubmit && d->resubmit_due[d->resubmit_head] < due)
        due = d->resubmit_due[d->resubmit_head];
    return due;
}

void trp_dag_time(struct trp_engine *e)
{
    trp_stages_resubmit(e);
    look_at_gated(e);
}
