/*
 * Executors that are lost, and kills. Semantics, section 10, differences 8, 15
 * and 17.
 *
 * Of a lost executor the outputs are dropped first: finished map tasks are pending
 * again if their files were the executor's. Then what was queued there is recalled.
 * Then what ran there fails, in the order in which it was launched; one table says
 * which of it counts. After all that the stages are told.
 */
#include "core/engine_state.h"

#define EVENT_NS INT64_C(1000000000) /* in which one event's losses are told */

/* ---- kills ---- */

static void add_kill(struct trp_engine *e, uint32_t slot, bool recall)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    struct trp_action *act = trp_action_add(e, TRP_ACTION_KILL);
    act->kill.attempt = trp_attempt_id_of(e, slot);
    act->kill.executor.n = a->executor;
    act->kill.recall = recall;
    act->kill.stage = a->set->stage->id;
    act->kill.stage_attempt = a->set->stage_attempt;
    act->kill.task = a->task;
    act->kill.number = a->number;
}

void trp_attempt_kill(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    if (a->kill_sent)
        return;
    a->kill_sent = true;
    add_kill(e, slot, false);
}

TRP_RARE void trp_task_kill_attempts(struct trp_engine *e, const struct trp_task *t)
{
    for (uint32_t slot = t->attempt; slot != TRP_NONE;
         slot = e->attempts.v[slot].twin) {
        e->attempts.v[slot].flags |= TRP_ATTEMPT_BEATEN;
        trp_attempt_kill(e, slot);
    }
}

void trp_attempt_recall(struct trp_engine *e, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    if (a->kill_sent || a->recall_sent)
        return;
    a->recall_sent = true;
    e->classes[e->executors[a->executor]->class]->recalls++;
    add_kill(e, slot, true);
}

/* All that waits there. */
void trp_attempts_recall(struct trp_engine *e, const struct trp_executor *x)
{
    for (uint32_t slot = x->queue_first; slot != TRP_NONE;
         slot = e->attempts.v[slot].next)
        trp_attempt_recall(e, slot);
}

void trp_attempt_forget_recall(struct trp_engine *e, struct trp_attempt *a)
{
    if (a->recall_sent)
        e->classes[e->executors[a->executor]->class]->recalls--;
    a->recall_sent = false;
}

static void kill_list(struct trp_engine *e, const struct trp_task_set *s, uint32_t slot)
{
    for (; slot != TRP_NONE; slot = e->attempts.v[slot].next)
        if (e->attempts.v[slot].set == s)
            trp_attempt_kill(e, slot);
}

/* Kills all live attempts of a set. O(executors), once a stage that fails. */
void trp_attempts_kill(struct trp_engine *e, struct trp_task_set *s)
{
    if (!s->attempts)
        return;
    if (!s->class) {
        if (s->tasks[0].attempt != TRP_NONE)
            trp_attempt_kill(e, s->tasks[0].attempt);
        return;
    }
    for (; s; s = s->overflow)
        for (uint32_t i = 0; s->running + s->queued && i < e->nexecutors; i++) {
            struct trp_executor *x = trp_executor_at(e, i);
            if (!x || (!e->sched_alone && e->classes[x->class] != s->class))
                continue;
            kill_list(e, s, x->queue_first);
            kill_list(e, s, x->running);
        }
}

/* ---- outputs ---- */

/* Do map outputs go with this executor? */
static bool outputs_go(const struct trp_engine *e, const struct trp_executor *x,
                       enum trp_loss reason)
{
    if (!e->config.host_files && !e->config.shuffle_service)
        return true;
    if (e->sched_alone) /* as with a shuffle service, which a decommissioned host loses
                         */
        return reason == TRP_LOSS_DECOMMISSIONED || x->decommissioned_ns != INT64_MAX;
    return reason == TRP_LOSS_HOST;
}

/* O(tasks of running map stages), and only where files are lost. */
static void undo_outputs(struct trp_engine *e, const struct trp_executor *x)
{
    for (struct trp_task_set *s = e->sets; s; s = trp_set_after(e, s))
        for (uint32_t i = 0; s->success_executor && !s->zombie && i < s->ntasks; i++)
            if (s->success_executor[i] == x->id.n &&
                (s->tasks[i].flags & TRP_TASK_DONE)) {
                trp_task_undo(e, s, i);
                e->offer_all = true; /* it may have served another class since */
            }
}

/* ---- losses ---- */

/* Does this loss count against the attempt that ran there? Decision 15. */
static bool loss_counts(enum trp_loss reason, bool is_culprit, bool has_culprit)
{
    switch (reason) {
    case TRP_LOSS_EXITED:
    case TRP_LOSS_HEARTBEAT:
    case TRP_LOSS_HOST:
    case TRP_LOSS_TIME_LIMIT:
    case TRP_LOSS_SPAWNER_DIED:
    case TRP_LOSS_SPAWNER_HUNG:
        return true;
    case TRP_LOSS_CRASHED:
    case TRP_LOSS_MEMORY:
    case TRP_LOSS_TIMEOUT:
    case TRP_LOSS_CALLED_EXIT:
        return is_culprit || !has_culprit;
    case TRP_LOSS_RELEASED:
    case TRP_LOSS_NEVER_CAME:
    case TRP_LOSS_DECOMMISSIONED:
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
    case TRP_LOSS_CALLED_EXIT:
        return TRP_END_MISTAKE;
    default:
        return TRP_END_LOST;
    }
}

/* One of the attempts that end together. */
struct ending {
    uint64_t order; /* of its set, then of its launch */
    uint32_t slot;
};

static int by_order(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* What runs there, in the order in which it is to end: set by set as they arrived, in
 * each the earliest launched first. NULL: out of memory. */
static struct ending *running_of(const struct trp_engine *e,
                                 const struct trp_executor *x)
{
    uint32_t n = 0;
    struct ending *v = malloc((x->nrunning ? x->nrunning : 1) * sizeof(*v));
    for (uint32_t slot = x->running; v && slot != TRP_NONE;
         slot = e->attempts.v[slot].next) {
        const struct trp_task_set *s = trp_task_set_main(e->attempts.v[slot].set);
        v[n] = (struct ending){(uint64_t)s->arrival << 32 | (x->nrunning - n), slot};
        n++;
    }
    if (v)
        qsort(v, n, sizeof(*v), by_order);
    return v;
}

/* An attempt that ran until the end of its allocation: the first of its task? */
static bool outran_first(struct trp_engine *e, uint32_t slot)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    uint8_t *flags = &a->set->tasks[a->task].flags;
    bool first = !(*flags & TRP_TASK_OUTRAN);
    *flags |= TRP_TASK_OUTRAN;
    return first;
}

bool trp_gang_blameless(struct trp_engine *e, uint32_t slot,
                        const struct trp_task_end *end)
{
    if (end->code == TRP_LOSS_TIME_LIMIT)
        return outran_first(e, slot);
    return !loss_counts((enum trp_loss)end->code, false, false);
}

/* What one event took counts once: when many executors die together, a task is started
 * again on those that are not known to be dead yet. True: the loss belongs to the event
 * that began at e->loss_ns. Those of a scenario are events of their own. */
static bool is_same_event(struct trp_engine *e, enum trp_loss reason)
{
    bool outside = reason == TRP_LOSS_EXITED || reason == TRP_LOSS_HOST;
    if (e->sched_alone || !outside)
        return false;
    if (e->losses > 0 && e->now - e->loss_ns <= EVENT_NS)
        return true;
    e->losses++;
    e->loss_ns = e->now;
    return false;
}

static void end_running(struct trp_engine *e, const struct trp_executor *x,
                        const struct trp_event *ev, uint32_t guilty)
{
    bool blameless = ev->lost.not_by_app || x->decommissioned_ns != INT64_MAX;
    bool same = is_same_event(e, ev->lost.reason);
    uint32_t n = x->nrunning;
    struct ending *ends = running_of(e, x);
    e->out_of_memory |= !ends;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = ends ? ends[i].slot : x->running;
        bool is_culprit = slot == guilty;
        bool launching = e->attempts.v[slot].flags & TRP_ATTEMPT_LAUNCHING;
        struct trp_task_end end = {.status = TRP_END_LOST};
        if (ev->lost.reason == TRP_LOSS_SPAWNER_DIED ||
            ev->lost.reason == TRP_LOSS_SPAWNER_HUNG)
            end.code = (int32_t)ev->lost.reason;
        if (is_culprit) {
            end.status = culprit_status(ev->lost.reason);
            end.code = ev->lost.code;
        }
        bool began_in_it = same && e->attempts.v[slot].launched_ns >= e->loss_ns;
        bool counts = !blameless && !launching && !began_in_it &&
                      loss_counts(ev->lost.reason, is_culprit, guilty != TRP_NONE);
        if (ev->lost.reason == TRP_LOSS_TIME_LIMIT) {
            end.code = TRP_LOSS_TIME_LIMIT;
            counts = !launching && !outran_first(e, slot);
        }
        trp_attempt_ended(e, slot, &end, !counts);
    }
    free(ends);
}

void trp_executor_lost(struct trp_engine *e, struct trp_executor *x,
                       const struct trp_event *ev)
{
    const struct trp_task_end recalled = {.status = TRP_END_RECALLED};
    /* It may stand in the queue here: the end whose place it took was never told. */
    const struct trp_task_end blamed = {.status = culprit_status(ev->lost.reason),
                                        .code = ev->lost.code};
    uint32_t guilty =
        ev->lost.has_culprit ? trp_attempt_find(e, ev->lost.culprit) : TRP_NONE;
    if (guilty != TRP_NONE && e->attempts.v[guilty].executor != x->id.n)
        guilty = TRP_NONE;
    bool came = x->came;
    trp_executor_retire(e, x);
    if (came && outputs_go(e, x, ev->lost.reason))
        undo_outputs(e, x);
    for (uint32_t slot; (slot = x->queue_first) != TRP_NONE;)
        trp_attempt_ended(e, slot, slot == guilty ? &blamed : &recalled, false);
    end_running(e, x, ev, guilty);
    if (came && !e->sched_alone)
        trp_dag_executor_lost(e, x, ev->lost.reason);
    trp_executor_remove(e, x);
}
