/*
 * How attempts end and what follows: success, counted failures and retries (semantics
 * 9), the loss of an executor (10, decision 15), kills.
 *
 * A verdict is told for every attempt exactly once (TRP_ACTION_TASK_END), also when its
 * stage is over already. Which ends count as a failure of the task is one table.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

static bool counts_as_failure(enum trp_end_status status)
{
    static const bool table[] = {
        [TRP_END_SUCCESS] = false,  [TRP_END_EXIT] = true,      [TRP_END_SIGNAL] = true,
        [TRP_END_TIMEOUT] = true,   [TRP_END_MEMORY] = true,    [TRP_END_START] = true,
        [TRP_END_KILLED] = false,   [TRP_END_RECALLED] = false, [TRP_END_LOST] = true,
        [TRP_END_PLATFORM] = false,
    };
    return table[status];
}

static bool not_retried(const struct trp_stage *s, enum trp_end_status status,
                        int32_t code)
{
    if (status == TRP_END_EXIT)
        for (uint32_t i = 0; i < s->nnot_on; i++)
            if (s->not_on[i] == code)
                return true;
    return false;
}

static uint32_t tolerated(const struct trp_stage *s)
{
    uint64_t part = (uint64_t)s->ntasks * s->tolerate_ppm / 1000000;
    return s->tolerate > part ? s->tolerate : (uint32_t)part;
}

/* The words of TASK_END's status for a stage's failure; the driver adds the metrics. */
static void gave_up(struct trp_engine *e, struct trp_stage *s, uint32_t task)
{
    const struct trp_task *t = &s->set->tasks[task];
    char text[160];
    snprintf(text, sizeof(text), "task %u failed %u times", task, t->failures);
    if (t->failures == 1)
        snprintf(text, sizeof(text), "task %u failed once", task);
    trp_stage_end(e, s, TRP_OUTCOME_FAILED, TRP_EFAILED, task, text);
}

/* Is the task given up after this end? Notes the failure. */
static bool note_failure(struct trp_engine *e, struct trp_task_set *s,
                         struct trp_task *t, enum trp_end_status status, int32_t code)
{
    uint32_t max =
        s->stage->max_failures ? s->stage->max_failures : e->config.max_failures;
    t->failures++;
    return t->failures >= max || not_retried(s->stage, status, code);
}

static void measure(struct trp_task_set *s, int64_t duration_ns)
{
    if (duration_ns < 0)
        duration_ns = 0;
    if (s->timed++ == 0)
        s->mean_ns = duration_ns;
    else
        s->mean_ns += (duration_ns - s->mean_ns) >> 3;
}

static void verdict(struct trp_engine *e, uint32_t slot, enum trp_end_status status,
                    int32_t code, bool counted, bool retried)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_action *act = trp_action_add(e, TRP_ACTION_TASK_END);
    act->task_end.attempt = trp_attempt_id_of(e, slot);
    act->task_end.stage = a->set->stage->id;
    act->task_end.task = a->task;
    act->task_end.number = a->number;
    act->task_end.executor.n = a->executor;
    act->task_end.level = a->level;
    act->task_end.status = status;
    act->task_end.code = code;
    act->task_end.counted = counted;
    act->task_end.retried = retried;
    act->task_end.failures = a->set->tasks[a->task].failures;
    act->task_end.launched_ns = a->launched_ns;
}

/* Takes the attempt out of all books. Its place is handed on or freed. */
static void leave_place(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task_set *s = a->set;
    if (a->executor == TRP_NONE) {
        e->gangs--;
        s->running--;
        return;
    }
    struct trp_executor *x = e->executors[a->executor];
    if (a->state == TRP_ATTEMPT_QUEUED) {
        if (a->kill_sent && !s->ended && e->classes[x->class]->recalls)
            e->classes[x->class]->recalls--;
        s->queued--;
        trp_executor_detach(e, x, slot);
        return;
    }
    s->running--;
    trp_round_replace(e, slot);
}

static void close_task(struct trp_task_set *s)
{
    if (s->class && !s->is_bounded)
        s->class->open--;
}

/* Back among the pending ones: in the same set, or after a kill for memory in the next
 * larger one. */
static void run_again(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                      bool memory)
{
    struct trp_task_set *to = NULL;
    if (memory && s->stage->memory_factor_ppm && s->class && !e->config.fixed)
        to = trp_overflow_set(e, s);
    if (!to) {
        trp_task_set_push(e, s, task);
        return;
    }
    close_task(s);
    s->tasks[task].grown++;
    to->class->open++;
    trp_task_set_push(e, to, task);
    e->any_dirty = true;
    trp_round_full(e, to->class);
}

/* The set may go once its stage has ended and nothing of it is left anywhere. */
static void release_set(struct trp_engine *e, struct trp_task_set *s)
{
    if (s->attempts)
        return;
    s->stage->set = NULL;
    trp_task_set_free(e, s);
}

void trp_attempt_ended(struct trp_engine *e, uint32_t slot, enum trp_end_status status,
                       int32_t code, int64_t duration_ns, bool counted)
{
    struct trp_task_set *s = e->attempts.v[slot].set, *own = trp_task_set_main(s);
    struct trp_stage *stage = s->stage;
    struct trp_job *job = stage->job;
    uint32_t task = e->attempts.v[slot].task;
    struct trp_task *t = &s->tasks[task];
    bool gang = e->attempts.v[slot].executor == TRP_NONE, give_up = false;
    e->ends++;
    leave_place(e, slot);
    t->attempt = TRP_NONE;
    if (status == TRP_END_RECALLED)
        t->attempts--; /* it never began */
    else if (status != TRP_END_LOST)
        measure(s, duration_ns);
    counted =
        status != TRP_END_SUCCESS && counted && counts_as_failure(status) && !s->ended;
    if (status == TRP_END_SUCCESS && !s->ended) {
        t->flags |= TRP_TASK_DONE;
        own->done++;
        t->failures = 0;
        close_task(s);
    } else if (counted) {
        give_up = note_failure(e, s, t, status, code);
    }
    bool retried = !s->ended && !t->flags && !give_up && status != TRP_END_PLATFORM;
    verdict(e, slot, status, code, counted, retried);
    trp_attempt_free(e, slot);
    if (status == TRP_END_PLATFORM && !s->ended) {
        close_task(s);
        trp_stage_end(e, stage, TRP_OUTCOME_FAILED, TRP_ESYSTEM, task,
                      "its ranks could not be started");
    } else if (give_up) {
        t->flags |= TRP_TASK_FAILED;
        own->failed++;
        close_task(s);
        if (own->failed > tolerated(stage))
            gave_up(e, stage, task);
    } else if (retried) {
        run_again(e, s, task, status == TRP_END_MEMORY);
        if (gang && !e->draining)
            trp_gang_launch(e, s);
    }
    if (stage->nchildren && !s->ended && t->flags)
        trp_stage_task_done(e, stage, task);
    if (!s->ended && own->done + own->failed == own->ntasks)
        trp_stage_check_end(e, stage);
    /* Only now: until here this attempt kept its set and its job alive. */
    own->attempts--;
    job->attempts--;
    if (own->ended)
        release_set(e, own);
    if (job->ended == job->nstages)
        trp_job_check_over(e, job);
}

/* ---- executors that are lost ---- */

/* Does this loss count against the attempt that ran there? Decision 15. */
static bool loss_counts(enum trp_loss reason, bool is_culprit, bool has_culprit)
{
    switch (reason) {
    case TRP_LOSS_EXITED:
    case TRP_LOSS_HEARTBEAT:
        return true;
    case TRP_LOSS_CRASHED:
    case TRP_LOSS_MEMORY:
    case TRP_LOSS_TIMEOUT:
        return is_culprit || !has_culprit;
    case TRP_LOSS_RELEASED:
    case TRP_LOSS_NEVER_CAME:
        return false;
    }
    return false;
}

static enum trp_end_status culprit_status(enum trp_loss reason)
{
    switch (reason) {
    case TRP_LOSS_CRASHED:
        return TRP_END_SIGNAL;
    case TRP_LOSS_MEMORY:
        return TRP_END_MEMORY;
    case TRP_LOSS_TIMEOUT:
        return TRP_END_TIMEOUT;
    default:
        return TRP_END_LOST;
    }
}

void trp_executor_lost(struct trp_engine *e, struct trp_executor *x,
                       enum trp_loss reason, trp_attempt_id culprit, int32_t code,
                       bool has_culprit)
{
    uint32_t guilty = has_culprit ? trp_attempt_find(e, culprit) : TRP_NONE;
    trp_executor_retire(e, x);
    while (x->queue_first != TRP_NONE)
        trp_attempt_ended(e, x->queue_first, TRP_END_RECALLED, 0, 0, false);
    while (x->running != TRP_NONE) {
        uint32_t slot = x->running;
        bool is_culprit = slot == guilty;
        enum trp_end_status status = is_culprit ? culprit_status(reason) : TRP_END_LOST;
        trp_attempt_ended(e, slot, status, is_culprit ? code : 0, 0,
                          loss_counts(reason, is_culprit, guilty != TRP_NONE));
    }
    trp_executor_remove(e, x);
}

/* ---- kills and gangs ---- */

static void kill_list(struct trp_engine *e, const struct trp_task_set *s, uint32_t slot)
{
    for (; slot != TRP_NONE; slot = e->attempts.v[slot].next) {
        struct trp_attempt *a = &e->attempts.v[slot];
        if (a->set != s || (a->kill_sent && a->state == TRP_ATTEMPT_RUNNING))
            continue;
        a->kill_sent = true;
        struct trp_action *act = trp_action_add(e, TRP_ACTION_KILL);
        act->kill.attempt = trp_attempt_id_of(e, slot);
        act->kill.executor.n = a->executor;
        act->kill.recall = false;
    }
}

/* Kills all live attempts of a set. O(executors), once a stage that fails. */
void trp_attempts_kill(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s->attempts)
        return;
    if (!s->class) {
        uint32_t slot = s->tasks[0].attempt;
        if (slot == TRP_NONE)
            return;
        struct trp_action *act = trp_action_add(e, TRP_ACTION_KILL);
        act->kill.attempt = trp_attempt_id_of(e, slot);
        act->kill.executor.n = TRP_NONE;
        act->kill.recall = false;
        return;
    }
    for (; s; s = s->overflow)
        for (uint32_t i = 0; i < e->nexecutors; i++) {
            struct trp_executor *x = e->executors[i];
            if (!x || e->classes[x->class] != s->class)
                continue;
            kill_list(e, s, x->queue_first);
            kill_list(e, s, x->running);
        }
}

/* A gang is one attempt without an executor; the cluster waits for its room. */
void trp_gang_launch(struct trp_engine *e, struct trp_task_set *s)
{
    uint32_t slot = trp_attempt_new(e);
    if (slot == TRP_NONE)
        return;
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task *t = &s->tasks[0];
    trp_task_set_take(s, 0);
    t->attempt = slot;
    a->set = s;
    a->task = 0;
    a->executor = TRP_NONE;
    a->number = t->attempts++;
    a->level = TRP_ANY;
    a->state = TRP_ATTEMPT_RUNNING;
    a->launched_ns = e->now;
    s->attempts++;
    s->running++;
    s->stage->job->attempts++;
    e->gangs++;
    e->launches++;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_GANG);
    act->gang.attempt = trp_attempt_id_of(e, slot);
    act->gang.stage = s->stage->id;
    act->gang.number = a->number;
    act->gang.ranks = s->stage->ranks;
    act->gang.profile = s->stage->profile;
}
