/*
 * How attempts end and what follows: success, counted failures and retries, the end of
 * a set by one of its tasks (semantics, section 9).
 *
 * A verdict is reported for every attempt exactly once (TRP_ACTION_TASK_END), also when
 * its set is a zombie. What an end means is one table: does it count as a failure of
 * the task, and what does it do to the set.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

enum effect {
    RUN_AGAIN,
    SUCCEED,
    LEAVE,    /* its input is gone: the set is a zombie, the task the next attempt's */
    GIVE_UP,  /* the set is given up at once */
    PLATFORM, /* the same, and it is nobody's fault */
    NEVER,    /* the same: the cluster cannot do it */
};

/* clang-format off */
static const struct {
    bool counts;
    enum effect effect;
    const char *why;
} meanings[] = {
    [TRP_END_SUCCESS]     = {false, SUCCEED,   ""},
    [TRP_END_EXIT]        = {true,  RUN_AGAIN, "it failed"},
    [TRP_END_SIGNAL]      = {true,  RUN_AGAIN, "killed by a signal"},
    [TRP_END_TIMEOUT]     = {true,  RUN_AGAIN, "over its timeout"},
    [TRP_END_MEMORY]      = {true,  RUN_AGAIN, "killed for memory"},
    [TRP_END_START]       = {true,  RUN_AGAIN, "it could not be started"},
    [TRP_END_KILLED]      = {false, RUN_AGAIN, "killed"},
    [TRP_END_RECALLED]    = {false, RUN_AGAIN, "recalled"},
    [TRP_END_LOST]        = {true,  RUN_AGAIN, "its executor was lost"},
    [TRP_END_PLATFORM]    = {false, PLATFORM,  "its ranks could not be started"},
    [TRP_END_DENIED]      = {false, RUN_AGAIN, "another attempt may commit"},
    [TRP_END_FETCH]       = {false, LEAVE,     "a map output could not be fetched"},
    [TRP_END_RESULT_LOST] = {true,  RUN_AGAIN, "its result was lost"},
    [TRP_END_UNWRITABLE]  = {false, GIVE_UP,   "had a not serializable result"},
    [TRP_END_EXISTS]      = {false, GIVE_UP,   "wants to write an output file that already exists"},
    [TRP_END_MISTAKE]     = {true,  GIVE_UP,   "failed by a mistake in the program"},
    [TRP_END_NEVER]       = {false, NEVER,     "its ranks can never be had"},
    [TRP_END_OUTPUT]      = {true,  RUN_AGAIN, "an output was not made"},
};
/* clang-format on */

static bool not_retried(const struct trp_stage *s, const struct trp_task_end *end)
{
    if (end->status == TRP_END_EXIT)
        for (uint32_t i = 0; i < s->nnot_on; i++)
            if (s->not_on[i] == end->code)
                return true;
    return false;
}

static void count_duration(struct trp_engine *e, struct trp_task_set *s,
                           int64_t duration_ns)
{
    if (duration_ns < 0)
        duration_ns = 0;
    s->took_ns[s->timed % TRP_TIMES_KEPT] = duration_ns;
    if (s->timed++ == 0)
        s->mean_ns = duration_ns;
    else
        s->mean_ns += (duration_ns - s->mean_ns) >> 3;
    if (s->timed & (s->timed - 1))
        return;
    trp_ahead_news(e, s->stage);
    if (s->class)
        trp_patience_news(e, s->class);
}

static void verdict(struct trp_engine *e, uint32_t slot, enum trp_end_status status,
                    int32_t code, bool counted, bool retried)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_action *act = trp_action_add(e, TRP_ACTION_TASK_END);
    act->task_end.attempt = trp_attempt_id_of(e, slot);
    act->task_end.stage = a->set->stage->id;
    act->task_end.stage_attempt = a->set->stage_attempt;
    act->task_end.task = a->task;
    act->task_end.number = a->number;
    act->task_end.executor.n = a->executor;
    act->task_end.level = a->level;
    act->task_end.status = status;
    act->task_end.code = code;
    act->task_end.counted = counted;
    act->task_end.retried = retried;
    act->task_end.speculative = a->flags & TRP_ATTEMPT_COPY;
    act->task_end.failures = a->set->tasks[a->task].failures;
    act->task_end.launched_ns = a->launched_ns;
}

TRP_RARE static void leave_queue(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_executor *x = e->executors[a->executor];
    trp_attempt_forget_recall(e, a);
    a->set->queued--;
    trp_executor_detach(e, x, slot);
}

/* Takes the attempt out of all ledgers. Its place is handed on or freed. */
static void leave_place(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task_set *s = a->set;
    if (a->executor == TRP_NONE) {
        e->gangs--;
        s->running--;
        return;
    }
    if (a->state == TRP_ATTEMPT_QUEUED) {
        leave_queue(e, slot);
        return;
    }
    trp_set_runs_no_more(e, s, a->launched_ns);
    trp_round_replace(e, slot);
    trp_ramp_ended(e, a);
}

static void close_task(struct trp_task_set *s)
{
    if (s->class && !s->is_bounded && !s->zombie)
        s->class->open--;
}

/* It waited to start, and its task does not wait any more: another attempt of it does
 * the work, or has. Or it had started before that was known here. */
static void skip_start(struct trp_engine *e, const struct trp_attempt *a)
{
    if (a->state != TRP_ATTEMPT_QUEUED || (a->flags & TRP_ATTEMPT_COPY))
        return;
    trp_ramp_started(e, a);
    trp_ramp_ended(e, a);
}

/* Has a task of it more memory when it was killed for that? */
static bool may_grow(const struct trp_engine *e, const struct trp_task_set *s)
{
    return s->stage->memory_factor_ppm && s->class && !e->config.fixed;
}

/* Back among the pending ones: in the same set, or after a kill for memory in the next
 * larger one. */
static void run_again(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                      bool memory)
{
    struct trp_task_set *to = NULL;
    if (memory && may_grow(e, s))
        to = trp_overflow_set(e, s);
    if (!to) {
        trp_ramp_again(e, s, task);
        trp_task_set_push(e, s, task);
        return;
    }
    if (s->tasks[task].flags & TRP_TASK_SPECULATABLE)
        trp_copy_unmark(e, s, task); /* the mark is of the set it leaves */
    close_task(s);
    s->tasks[task].grown++;
    to->class->open++;
    trp_ramp_tasks(e, to, 1);
    trp_task_set_push(e, to, task);
    e->any_dirty = true;
    trp_round_full(e, to->class);
}

/* ---- the three ways on ---- */

TRP_RARE static void count_result(struct trp_engine *e, struct trp_task_set *s,
                                  uint64_t bytes)
{
    char text[160];
    s->result_bytes += bytes;
    if (s->map || !e->config.max_result_bytes ||
        s->result_bytes <= (uint64_t)e->config.max_result_bytes)
        return;
    snprintf(text, sizeof(text),
             "the results of %u tasks are %.1f MiB, above driver.maxResultSize "
             "(%.1f MiB)",
             s->done, (double)s->result_bytes / 1048576,
             (double)e->config.max_result_bytes / 1048576);
    trp_set_abort(e, s, TRP_EFAILED, TRP_NONE, text);
}

static void succeed(struct trp_engine *e, struct trp_task_set *s,
                    struct trp_task_set *own, uint32_t task, uint32_t executor,
                    const struct trp_task_end *end)
{
    struct trp_task *t = &s->tasks[task];
    if (s->past_hosts_first && executor != TRP_NONE)
        trp_copies_past(e, s, task, e->executors[executor]->host);
    if (t->attempt != TRP_NONE)
        trp_task_kill_attempts(e, t);
    if (t->flags & TRP_TASK_OVER)
        return;
    if (s->durations)
        trp_speculation_succeeded(s->durations, end->duration_ns, end->records);
    if (e->has_ends)
        trp_ends_succeeded(e, s, end);
    if (t->flags & TRP_TASK_SPECULATABLE)
        trp_copy_unmark(e, s, task);
    t->flags |= TRP_TASK_DONE;
    t->failures = 0;
    t->losses = t->repeats = 0;
    own->done++;
    if (own->success_executor)
        own->success_executor[task] = executor;
    if (end->result_bytes) /* first: the last task's may be the one too much */
        count_result(e, own, end->result_bytes);
    if (!e->sched_alone)
        trp_stage_done(e, own->stage, own->stage_attempt, task, executor, end);
    trp_set_check_finished(e, own);
}

void trp_task_failed_text(uint32_t task, uint32_t failures, char *buf, size_t size)
{
    if (failures == 1)
        snprintf(buf, size, "task %u failed once", task);
    else
        snprintf(buf, size, "task %u failed %u times", task, failures);
}

static void too_many(struct trp_engine *e, struct trp_task_set *own, uint32_t task)
{
    const struct trp_task *t = &own->tasks[task];
    char text[160];
    trp_task_failed_text(task, t->failures, text, sizeof(text));
    trp_set_abort(e, own, TRP_EFAILED, task, text);
}

/* It will not be tried again. */
static void fail_task(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    struct trp_task_set *own = trp_task_set_main(s);
    if (s->tasks[task].flags & TRP_TASK_SPECULATABLE)
        trp_copy_unmark(e, s, task);
    s->tasks[task].flags |= TRP_TASK_FAILED;
    own->failed++;
    bool goes_on = trp_stage_may_lose(
        e, s->stage, e->sched_alone ? own->failed : s->stage->given_up + 1);
    if (goes_on)
        trp_task_kill_attempts(e, &s->tasks[task]);
    struct trp_stage *stage = own->stage;
    bool lost = !e->sched_alone && trp_stage_given_up(e, stage, task);
    if (goes_on)
        trp_set_check_finished(e, own);
    else
        too_many(e, own, task);
    if (lost)
        trp_stage_lose(e, stage, task);
}

/* The end of a task that ends its set. */
static void end_set(struct trp_engine *e, struct trp_task_set *own, uint32_t task,
                    const struct trp_task_end *end)
{
    char text[160];
    const char *why = meanings[end->status].why;
    switch (meanings[end->status].effect) {
    case PLATFORM:
        trp_set_abort(e, own, TRP_ESYSTEM, task, why);
        return;
    case NEVER:
        trp_set_abort(e, own, TRP_ENEVER, task, why);
        return;
    case GIVE_UP:
        snprintf(text, sizeof(text), "task %u %s", task, why);
        trp_set_abort(e, own, TRP_EFAILED, task, text);
        return;
    default: /* of a barrier set */
        trp_set_zombie(e, own);
        if (end->status == TRP_END_EXIT)
            snprintf(text, sizeof(text), "exit status %d", (int)end->code);
        else
            snprintf(text, sizeof(text), "%s", why);
        if (!e->sched_alone)
            trp_stage_barrier_failed(e, own->stage, own->stage_attempt, task, text);
    }
}

/* Its input is gone. Told for zombies as well: each may have missed another output. */
static void leave_task(struct trp_engine *e, struct trp_task_set *own, uint32_t task,
                       const struct trp_task_end *end)
{
    if (!(own->tasks[task].flags & TRP_TASK_OVER))
        own->tasks[task].flags |= TRP_TASK_LEFT;
    trp_set_zombie(e, own);
    if (end->from.executor.n != TRP_NONE)
        trp_exclusion_fetch_failed(e, end->from.executor.n);
    if (!e->sched_alone)
        trp_stage_fetch_failed(e, own->stage, own->stage_attempt, &end->from);
}

/* One more of a kind that has a count of its own. */
static uint32_t count(uint8_t *n)
{
    return *n < UINT8_MAX ? ++*n : UINT8_MAX;
}

/* Notes a failure that counts. Is the task given up? */
static bool note_failure(struct trp_engine *e, struct trp_task_set *s, uint32_t task,
                         uint32_t executor, const struct trp_task_end *end)
{
    const struct trp_stage *stage = s->stage;
    uint32_t max = stage->max_failures ? stage->max_failures : e->config.max_failures;
    struct trp_task *t = &s->tasks[task];
    t->failures++;
    if (e->tracker && executor != TRP_NONE)
        trp_exclusion_failed(e, s, task, executor, meanings[end->status].why);
    if (end->status == TRP_END_LOST && stage->max_losses)
        return count(&t->losses) >= stage->max_losses;
    if (end->status == TRP_END_MEMORY && stage->max_repeats && may_grow(e, s))
        return count(&t->repeats) > stage->max_repeats;
    return t->failures - t->losses - t->repeats >= (int64_t)max ||
           not_retried(stage, end);
}

TRP_RARE static void fail(struct trp_engine *e, uint32_t slot,
                          const struct trp_task_end *end, bool uncounted)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task_set *s = a->set, *own = trp_task_set_main(s);
    uint32_t task = a->task, executor = a->executor;
    struct trp_task *t = &s->tasks[task];
    bool gang = executor == TRP_NONE, over = t->flags & TRP_TASK_OVER;
    bool ends = !s->zombie && end->status != TRP_END_RECALLED &&
                (s->barrier || meanings[end->status].effect != RUN_AGAIN);
    bool ends_as_failure = meanings[end->status].effect == GIVE_UP;
    bool counted = !s->zombie && (!ends || ends_as_failure) && !uncounted &&
                   meanings[end->status].counts && !(a->flags & TRP_ATTEMPT_BEATEN);
    bool give_up = counted && note_failure(e, s, task, executor, end);
    bool again = !s->zombie && !ends && !give_up && trp_task_is_pending(t);
    if (s->past_hosts_first && !gang && end->status != TRP_END_RECALLED)
        trp_copies_past(e, s, task, e->executors[executor]->host);
    verdict(e, slot, end->status, end->code, counted, again && !e->draining);
    if (!again)
        close_task(s);
    if (!again || end->status != TRP_END_RECALLED)
        skip_start(e, a);
    if (meanings[end->status].effect == LEAVE) {
        leave_task(e, own, task, end);
    } else if (ends) {
        end_set(e, own, task, end);
    } else if (give_up && !over) {
        fail_task(e, s, task);
    } else if (again) {
        run_again(e, s, task, end->status == TRP_END_MEMORY);
        if (gang && !e->draining)
            trp_gang_launch(e, s);
    }
}

/* Ended well after another attempt of its task had. */
static const struct trp_task_end beaten = {.status = TRP_END_KILLED};

__attribute__((flatten)) void trp_attempt_ended(struct trp_engine *e, uint32_t slot,
                                                const struct trp_task_end *end,
                                                bool uncounted)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_task_set *s = a->set, *own = trp_task_set_main(s);
    struct trp_stage *stage = s->stage;
    struct trp_task *t = &s->tasks[a->task];
    uint32_t task = a->task, executor = a->executor;
    e->ends++;
    leave_place(e, slot);
    trp_attempt_unlink(e, t, slot);
    if (end->status == TRP_END_RECALLED)
        t->attempts--; /* it never began */
    else if (end->status != TRP_END_LOST)
        count_duration(e, s, end->duration_ns);
    if (end->status != TRP_END_SUCCESS) {
        fail(e, slot, end, uncounted);
    } else if (a->flags & TRP_ATTEMPT_BEATEN) {
        fail(e, slot, &beaten, false);
    } else {
        verdict(e, slot, TRP_END_SUCCESS, end->code, false, false);
        close_task(s);
        if (e->targets)
            skip_start(e, &e->attempts.v[slot]);
        succeed(e, s, own, task, executor, end);
    }
    if (stage->commits)
        trp_commit_ended(stage, task, trp_attempt_id_of(e, slot), end->status);
    trp_attempt_free(e, slot);
    /* Only now: until here this attempt kept its set and its stage alive. */
    own->attempts--;
    if (!own->attempts && own->zombie)
        trp_set_bury(e, own);
    trp_dag_attempt_gone(e, stage);
}

void trp_task_undo(struct trp_engine *e, struct trp_task_set *s, uint32_t task)
{
    struct trp_task *t = &s->tasks[task];
    t->flags &= (uint8_t)~TRP_TASK_DONE;
    s->done--;
    s->told_finished = false;
    if (s->past_hosts_first && s->success_executor)
        trp_copies_past(e, s, task, e->executors[s->success_executor[task]]->host);
    if (s->success_executor)
        s->success_executor[task] = TRP_NONE;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_RESUBMITTED);
    act->task.stage = s->stage->id;
    act->task.stage_attempt = s->stage_attempt;
    act->task.task = task;
    if (trp_task_is_pending(t)) {
        if (s->class && !s->is_bounded)
            s->class->open++;
        trp_ramp_again(e, s, task);
        trp_task_set_push(e, s, task);
        e->any_dirty = true;
    }
    if (!e->sched_alone)
        trp_stage_resubmitted(e, s->stage, s->stage_attempt, task);
}

/* A gang is one attempt without an executor; the cluster waits for its room. */
void trp_gang_launch(struct trp_engine *e, struct trp_task_set *s)
{
    uint32_t slot = trp_attempt_make(e, s, 0, TRP_ANY, false);
    if (slot == TRP_NONE)
        return;
    struct trp_attempt *a = &e->attempts.v[slot];
    a->executor = TRP_NONE;
    a->state = TRP_ATTEMPT_RUNNING;
    s->running++;
    s->requested_before = e->nexecutors;
    e->gangs++;
    struct trp_action *act = trp_action_add(e, TRP_ACTION_GANG);
    act->gang.attempt = trp_attempt_id_of(e, slot);
    act->gang.stage = s->stage->id;
    act->gang.number = a->number;
    act->gang.ranks = s->stage->ranks;
    act->gang.profile = s->stage->profile;
}
