/*
 * Attempts of stages that fail, and what runs again (semantics, sections 13 and 14).
 *
 * A reader that could not have its input ends its stage's attempt; the output it named
 * is dropped, and all of that executor's, for whoever asks next will not have them
 * either. The stage and the map stage are marked failed, and 200 ms later, when the
 * burst of such failures is over, all failed stages are wanted again: what is missing
 * then is run, the map stage first. Each first failure of a stage starts a timer of its
 * own; one that finds nothing to do does nothing.
 *
 * When an indeterminate map stage runs again, what was made of its former outputs is
 * worthless: map stages behind it drop theirs when the timer fires, or when they end
 * what they run now; stages of results begin anew, where what their tasks gave may be
 * given again, else a result that was given out in part cannot be taken back.
 */
#include "core/engine_state.h"

static const int64_t RESUBMIT_NS = INT64_C(200000000);

/* ---- marking and resubmission ---- */

static void mark_failed(struct trp_engine *e, struct trp_stage *s)
{
    if (s->state == TRP_STAGE_ENDED || s->failed)
        return;
    s->failed = true;
    if (!trp_stack_push(&e->dag.failed, s->id.n))
        e->out_of_memory = true;
}

static void start_timer(struct trp_engine *e)
{
    struct trp_dag *d = &e->dag;
    if (d->resubmit_head == d->nresubmit)
        d->resubmit_head = d->nresubmit = 0;
    if (!TRP_ARRAY_GROW(d->resubmit_due, d->nresubmit, d->resubmit_cap)) {
        e->out_of_memory = true;
        return;
    }
    d->resubmit_due[d->nresubmit++] = e->now + RESUBMIT_NS;
}

static void drop_rolled_back(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->dag.rolling.n; i++) {
        struct trp_stage *s = e->stages[e->dag.rolling.v[i]];
        if (!s || !s->roll_back || s->state == TRP_STAGE_RUNNING)
            continue;
        s->roll_back = false;
        trp_map_outputs_drop_all(e->dag.outputs, s->shuffle);
        e->dag.changes++;
    }
    e->dag.rolling.n = 0;
}

void trp_stages_resubmit(struct trp_engine *e)
{
    struct trp_dag *d = &e->dag;
    if (d->resubmit_head == d->nresubmit || d->resubmit_due[d->resubmit_head] > e->now)
        return;
    while (d->resubmit_head < d->nresubmit &&
           d->resubmit_due[d->resubmit_head] <= e->now)
        d->resubmit_head++;
    drop_rolled_back(e);
    if (d->failed.n)
        trp_stack_sort(&d->failed);
    for (uint32_t i = 0; i < d->failed.n; i++) {
        struct trp_stage *s = e->stages[d->failed.v[i]];
        if (!s || !s->failed)
            continue;
        s->failed = false;
        trp_stage_want(e, s);
    }
    d->failed.n = 0;
}

/* ---- an attempt ends without success ---- */

static void end_attempt(struct trp_engine *e, struct trp_stage *s, const char *text)
{
    if (s->state != TRP_STAGE_RUNNING)
        return;
    trp_stage_to(s, TRP_STAGE_IDLE);
    const char *own = trp_action_text(e, "%s", text);
    struct trp_action *act = trp_action_add(e, TRP_ACTION_STAGE_RETRIED);
    act->stage_retried.stage = s->id;
    act->stage_retried.attempt = s->attempts - 1;
    act->stage_retried.text = own;
}

/* The attempt counts as failed, once. Whether it was one too many. */
static bool count_failure(struct trp_engine *e, struct trp_stage *s, uint32_t attempt)
{
    if (s->last_failed != attempt) {
        s->last_failed = attempt;
        s->failed_attempts++;
    }
    return s->failed_attempts >= e->config.max_stage_attempts;
}

static void give_up(struct trp_engine *e, struct trp_stage *s, const char *text)
{
    trp_error whole;
    trp_error_set(&whole, TRP_EFAILED,
                  "stage %.100s has failed the maximum allowable number of times: %u. "
                  "Most recent failure reason: %s",
                  s->name, e->config.max_stage_attempts, text);
    trp_stage_abort(e, s, TRP_EFAILED, TRP_NONE, whole.text);
}

/* Whether what the tasks of a stage of results gave may be given again: files of a
 * pipeline, and what an action collects, are made anew. */
static bool may_redo(const struct trp_stage *s)
{
    return s->redo && !s->unasked;
}

static void undo_results(struct trp_stage *s)
{
    for (uint32_t i = 0; i < s->ntasks; i++)
        trp_bit_clear(s->bits, i);
    s->succeeded = 0;
    for (struct trp_stage_link *l = s->children; l; l = l->next)
        if (l->by)
            trp_task_links_count(l);
    trp_commits_undo(s);
}

/* What a barrier stage did is lost as a whole. */
static void undo_barrier(struct trp_engine *e, struct trp_stage *s, const char *text)
{
    trp_error whole;
    if (s->is_map) {
        trp_map_outputs_drop_all(e->dag.outputs, s->shuffle);
        e->dag.changes++;
        return;
    }
    if (may_redo(s)) {
        undo_results(s);
        return;
    }
    trp_error_set(&whole, TRP_EFAILED,
                  "Could not recover from a failed barrier ResultStage. Most recent "
                  "failure reason: %s",
                  text);
    trp_stage_abort(e, s, TRP_EFAILED, TRP_NONE, whole.text);
}

void trp_stage_barrier_failed(struct trp_engine *e, struct trp_stage *s,
                              uint32_t attempt, uint32_t task, const char *text)
{
    trp_error whole;
    if (s->state == TRP_STAGE_ENDED || attempt + 1 != s->attempts)
        return;
    trp_error_set(&whole, TRP_EFAILED,
                  "task %u of barrier stage %.100s finished unsuccessfully: %s", task,
                  s->name, text);
    if (s->set)
        trp_set_kill(e, s->set);
    if (s->uses && trp_job_drains(s->uses->job)) {
        trp_stage_abort(e, s, TRP_EFAILED, task, whole.text);
        return;
    }
    end_attempt(e, s, whole.text);
    if (count_failure(e, s, attempt)) {
        give_up(e, s, whole.text);
        return;
    }
    undo_barrier(e, s, whole.text);
    if (s->failed || s->state == TRP_STAGE_ENDED)
        return;
    mark_failed(e, s);
    start_timer(e);
}

/* ---- indeterminate stages ---- */

static void roll_back_outputs(struct trp_engine *e, struct trp_stage *s)
{
    if (s->roll_back ||
        trp_map_outputs_missing(e->dag.outputs, s->shuffle) >= s->ntasks)
        return;
    s->roll_back = true;
    if (!trp_stack_push(&e->dag.rolling, s->id.n))
        e->out_of_memory = true;
}

/* Also when nothing of it is done: what runs may have read some of the old outputs. */
static void roll_back_results(struct trp_engine *e, struct trp_stage *s)
{
    trp_error text;
    if (may_redo(s) && (s->succeeded || s->state == TRP_STAGE_RUNNING)) {
        if (s->set)
            trp_set_kill(e, s->set);
        end_attempt(e, s, "what it reads is made again, and may be another");
        undo_results(s);
        mark_failed(e, s);
        return;
    }
    if (!s->succeeded)
        return;
    trp_error_set(
        &text, TRP_EFAILED,
        "A shuffle map stage with indeterminate output was failed and retried. "
        "However, stage %.100s cannot be rolled back to re-process its input, "
        "and the job has to fail",
        s->name);
    trp_stage_abort(e, s, TRP_EFAILED, TRP_NONE, text.text);
}

/* All stages behind `m`: its children have higher ids, so one pass finds them. */
static void roll_back(struct trp_engine *e, struct trp_stage *m)
{
    uint32_t mark = ++e->dag.mark;
    m->mark = mark;
    for (uint32_t i = m->id.n + 1; i < e->nstages; i++) {
        struct trp_stage *s = trp_stage_at(e, i);
        if (!s || !s->uses)
            continue;
        for (uint32_t p = 0; p < s->nparents && s->mark != mark; p++)
            if (s->parents[p].parent->mark == mark)
                s->mark = mark;
        if (s->mark != mark)
            continue;
        if (s->is_map)
            roll_back_outputs(e, s);
        else if (s->state != TRP_STAGE_ENDED)
            roll_back_results(e, s);
    }
}

void trp_stage_made_anew(struct trp_engine *e, struct trp_stage *m)
{
    uint32_t failed = e->dag.failed.n, rolling = e->dag.rolling.n;
    roll_back(e, m);
    if (e->dag.failed.n > failed || e->dag.rolling.n > rolling)
        start_timer(e);
}

/* ---- fetch failures ---- */

static bool is_shared(const struct trp_engine *e, const struct trp_stage *m,
                      uint32_t map)
{
    struct trp_output_place at;
    return trp_map_outputs_place(e->dag.outputs, m->shuffle, map, &at) &&
           at.host == TRP_NONE;
}

/* What is not at the place any more stays. */
static void drop_at(struct trp_engine *e, const struct trp_stage *m,
                    const struct trp_fetch_source *from)
{
    struct trp_output_place at = {TRP_NONE, TRP_NONE};
    if (from->executor.n != TRP_NONE)
        at = trp_dag_place(e, from->executor.n);
    trp_map_outputs_drop(e->dag.outputs, m->shuffle, from->map, at);
    for (uint32_t i = 0; i < from->nmore; i++)
        trp_map_outputs_drop(e->dag.outputs, m->shuffle, from->more[i], at);
}

static void drop_output(struct trp_engine *e, const struct trp_stage *m,
                        const struct trp_fetch_source *from)
{
    if (m->barrier)
        trp_map_outputs_drop_all(e->dag.outputs, m->shuffle);
    else if (from->map != TRP_NONE &&
             (trp_dag_executor(e, from->executor.n) ||
              (from->executor.n == TRP_NONE && is_shared(e, m, from->map))))
        drop_at(e, m, from);
    else
        trp_map_outputs_grow_epoch(e->dag.outputs);
    e->dag.changes++;
}

static void lose_source(struct trp_engine *e, const struct trp_fetch_source *from,
                        uint64_t epoch)
{
    const struct trp_engine_config *c = &e->config;
    const struct trp_dag_executor *x = trp_dag_executor(e, from->executor.n);
    if (!x)
        return;
    bool host_gone = x->host_decommissioned;
    bool whole_host =
        (c->shuffle_service || c->host_files || host_gone) && c->unregister_host;
    trp_dag_files_lost(e, from->executor.n, true, whole_host, epoch, host_gone);
}

void trp_stage_fetch_failed(struct trp_engine *e, struct trp_stage *s, uint32_t attempt,
                            const struct trp_fetch_source *from)
{
    const char *text = from->text ? from->text : "a map output could not be fetched";
    struct trp_stage *m = trp_stage_find(e, from->stage);
    if (s->state == TRP_STAGE_ENDED || attempt + 1 != s->attempts) {
        e->ignored++;
        return;
    }
    if (!m || !m->is_map) /* nobody knows what it missed: it runs again */
        m = s;
    uint64_t epoch = s->epochs[attempt];
    bool one_too_many =
        !trp_dag_loss_was_planned(e, from->executor.n) && count_failure(e, s, attempt);
    /* Nothing of it counts any more (semantics, difference 9). */
    if (s->set && s->barrier)
        trp_set_kill(e, s->set);
    else if (s->set)
        trp_set_zombie(e, s->set);
    end_attempt(e, s, text);
    if (m != s)
        drop_output(e, m, from);
    if (s->barrier)
        undo_barrier(e, s, text);
    if (one_too_many) {
        give_up(e, s, text);
    } else if (s->failed) {
        mark_failed(e, m);
    } else {
        mark_failed(e, s);
        mark_failed(e, m);
        if (m != s && m->indeterminate)
            roll_back(e, m);
        start_timer(e);
    }
    if (m != s)
        lose_source(e, from, epoch);
}
