/*
 * The oracle's steps that are not rounds: task sets come, executors come and go, tasks
 * end (semantics 9, 10), slow tasks are marked (11).
 */
#include "oracle.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void or_decide(struct oracle *o, struct or_decision d)
{
    assert(o->ndecisions < OR_DECISIONS);
    o->decisions[o->ndecisions++] = d;
}

static void decide(struct oracle *o, enum or_decision_kind kind, int set, int task,
                   int attempt)
{
    or_decide(o, (struct or_decision){
                     .kind = kind, .set = set, .task = task, .attempt = attempt});
}

void oracle_init(struct oracle *o, const struct or_setup *setup)
{
    memset(o, 0, sizeof(*o));
    o->setup = setup;
    for (int h = 0; h < OR_HOSTS; h++)
        o->host_excluded_until[h] = -1;
    for (int x = 0; x < OR_EXECUTORS; x++)
        o->executors[x].excluded_until = -1;
    for (int s = 0; s < OR_SETS; s++)
        o->sets[s].abort_at = INT64_MAX;
}

void oracle_begin(struct oracle *o, int64_t now)
{
    o->ndecisions = 0;
    o->now = now;
    for (int s = 0; s < o->setup->nsets; s++)
        if (o->sets[s].submitted && o->sets[s].abort_at <= now) {
            o->sets[s].abort_at = INT64_MAX;
            or_abort(o, s);
        }
}

bool or_alive(const struct oracle *o, int executor)
{
    const struct or_executor *x = &o->executors[executor];
    return x->state == OR_LIVE && !x->decommissioned;
}

bool or_needs_to_run(const struct or_task *t)
{
    return t->copies == 0 && !t->done && !t->picked;
}

bool or_all_done(const struct oracle *o, int set)
{
    for (int t = 0; t < o->setup->sets[set].ntasks; t++)
        if (!o->sets[set].tasks[t].done)
            return false;
    return true;
}

int or_running_of(const struct oracle *o, int set)
{
    int n = 0;
    for (int a = 0; a < o->nattempts; a++)
        n += o->attempts[a].set == set && o->attempts[a].state == OR_RUNNING;
    return n;
}

bool or_executor_idle(const struct oracle *o, int executor)
{
    for (int a = 0; a < o->nattempts; a++)
        if (o->attempts[a].executor == executor && o->attempts[a].state == OR_RUNNING)
            return false;
    return true;
}

void or_push(struct oracle *o, int set, int task)
{
    struct or_set *s = &o->sets[set];
    assert(s->nall < OR_LIST);
    s->tasks[task].pushed = ++s->pushes;
    s->all[s->nall++] = task;
}

static void become_zombie(struct oracle *o, int set)
{
    if (!o->sets[set].zombie)
        decide(o, OR_ZOMBIE, set, OR_NONE, OR_NONE);
    o->sets[set].zombie = true;
}

void or_abort(struct oracle *o, int set)
{
    struct or_set *s = &o->sets[set];
    if (s->aborted || s->zombie)
        return;
    s->aborted = s->zombie = true;
    decide(o, OR_ABORTED, set, OR_NONE, OR_NONE);
}

/* ---- task sets and executors ---- */

void oracle_submit(struct oracle *o, int set)
{
    struct or_set *s = &o->sets[set];
    const struct or_set_spec *spec = &o->setup->sets[set];
    for (int i = 0; i < o->setup->nsets; i++)
        if (i != set && o->sets[i].submitted && o->setup->sets[i].stage == spec->stage)
            become_zombie(o, i);
    s->submitted = true;
    s->no_reject = true;
    s->last = o->now;
    for (int t = spec->ntasks - 1; t >= 0; t--)
        or_push(o, set, t);
    or_recompute(o, set);
    s->current = 0;
}

static void recompute_all(struct oracle *o)
{
    for (int s = 0; s < o->setup->nsets; s++)
        if (o->sets[s].submitted && !o->sets[s].zombie)
            or_recompute(o, s);
}

void oracle_add(struct oracle *o, int executor)
{
    struct or_executor *x = &o->executors[executor];
    const struct or_profile *p =
        &o->setup->profiles[o->setup->executors[executor].profile];
    assert(x->state == OR_ABSENT);
    x->state = OR_LIVE;
    x->order = o->added++;
    x->cores = p->cores;
    for (int r = 0; r < OR_RESOURCES; r++)
        for (int i = 0; i < p->have[r]; i++)
            x->left[r][i] = OR_UNIT;
    recompute_all(o);
}

void oracle_decommission(struct oracle *o, int executor)
{
    o->executors[executor].decommissioned = true;
    recompute_all(o);
}

/* ---- ends ---- */

static void give_back(struct oracle *o, const struct or_attempt *a)
{
    struct or_executor *x = &o->executors[a->executor];
    x->cores += o->setup->profiles[o->setup->sets[a->set].profile].cpus;
    for (int r = 0; r < OR_RESOURCES; r++)
        for (int i = 0; i < OR_ADDRESSES; i++)
            x->left[r][i] += a->taken[r][i];
}

/* A set is over when it is zombie and nothing of it runs. */
static void maybe_over(struct oracle *o, int set)
{
    struct or_set *s = &o->sets[set];
    if (!s->zombie || s->removed || or_running_of(o, set))
        return;
    s->removed = true;
    for (int t = 0; t < o->setup->sets[set].ntasks; t++)
        if (s->tasks[t].left)
            return;
    if (or_all_done(o, set))
        or_set_succeeded(o, set);
}

static bool counts(enum or_end status)
{
    return status == OR_END_FAILED || status == OR_END_LOST_RESULT ||
           status == OR_END_EXECUTOR_LOST;
}

static void end_failed(struct oracle *o, int attempt, enum or_end status)
{
    struct or_attempt *a = &o->attempts[attempt];
    struct or_set *s = &o->sets[a->set];
    struct or_task *t = &s->tasks[a->task];
    a->state = OR_ENDED;
    t->copies--;
    if (status == OR_END_NOT_SERIALIZABLE || status == OR_END_OUTPUT_EXISTS) {
        or_abort(o, a->set);
        maybe_over(o, a->set);
        return;
    }
    if (status == OR_END_FETCH_FAILED) {
        t->left |= !t->done;
        t->done = true;
        become_zombie(o, a->set);
    }
    if (o->setup->sets[a->set].barrier)
        become_zombie(o, a->set);
    if (!s->zombie && counts(status) && !a->by_other) {
        or_count_failure(o, a->set, a->task, a->executor);
        if (++t->failures >= o->setup->max_failures) {
            t->left = true;
            or_abort(o, a->set);
            maybe_over(o, a->set);
            return;
        }
    }
    if (!t->done && t->copies == 0) { /* while a copy runs it needs no other */
        or_push(o, a->set, a->task);
        if (!s->zombie)
            decide(o, OR_REQUEUED, a->set, a->task, OR_NONE);
    }
    maybe_over(o, a->set);
}

static void end_success(struct oracle *o, int attempt, int64_t records)
{
    struct or_attempt *a = &o->attempts[attempt];
    struct or_set *s = &o->sets[a->set];
    struct or_task *t = &s->tasks[a->task];
    if (a->by_other) {
        end_failed(o, attempt, OR_END_KILLED);
        return;
    }
    a->state = OR_SUCCEEDED;
    t->copies--;
    s->durations[s->ndurations++] = o->now - a->launched;
    s->total_records += records;
    s->total_runtime += o->now - a->launched;
    for (int i = 0; i < o->nattempts; i++) {
        struct or_attempt *b = &o->attempts[i];
        if (b->set == a->set && b->task == a->task && b->state == OR_RUNNING &&
            !b->by_other) {
            b->by_other = true;
            decide(o, OR_KILL, b->set, b->task, b->number);
        }
    }
    if (!t->done) {
        t->done = true;
        t->failures = 0;
        t->speculatable = false; /* it needs no copy any more */
        if (or_all_done(o, a->set) && !s->zombie) {
            s->finished = s->zombie = true;
            decide(o, OR_FINISHED, a->set, OR_NONE, OR_NONE);
        }
    }
    maybe_over(o, a->set);
}

void oracle_end(struct oracle *o, int attempt, enum or_end status, int64_t records)
{
    give_back(o, &o->attempts[attempt]);
    if (status == OR_END_SUCCESS)
        end_success(o, attempt, records);
    else
        end_failed(o, attempt, status);
}

void oracle_started(struct oracle *o, int attempt)
{
    o->attempts[attempt].launching = false;
}

void oracle_progress(struct oracle *o, int attempt, int64_t records)
{
    double ran = (double)(o->now - o->attempts[attempt].launched);
    o->attempts[attempt].rate = ran > 0 ? (double)records / (ran / 1000) : 0;
}

/* ---- loss ---- */

static void lose_in_set(struct oracle *o, int set, int executor, enum or_loss loss)
{
    struct or_set *s = &o->sets[set];
    bool outputs_lost = o->setup->sets[set].map && !s->zombie &&
                        (loss == OR_DECOMMISSIONED || !o->setup->shuffle_service ||
                         o->executors[executor].decommissioned);
    for (int t = 0; outputs_lost && t < o->setup->sets[set].ntasks; t++)
        for (int i = 0; i < o->nattempts; i++) {
            const struct or_attempt *a = &o->attempts[i];
            if (a->set == set && a->task == t && a->executor == executor &&
                a->state == OR_SUCCEEDED && s->tasks[t].done && !a->by_other) {
                s->tasks[t].done = false;
                if (s->tasks[t].copies == 0) /* a loser may still run */
                    or_push(o, set, t);
                decide(o, OR_REQUEUED, set, t, OR_NONE);
            }
        }
    for (int i = 0; i < o->nattempts; i++) {
        const struct or_attempt *a = &o->attempts[i];
        if (a->set != set || a->executor != executor || a->state != OR_RUNNING)
            continue;
        bool by_app = (loss == OR_EXITED || loss == OR_HEARTBEAT) && !a->launching &&
                      !o->executors[executor].decommissioned;
        end_failed(o, i, by_app ? OR_END_EXECUTOR_LOST : OR_END_EXECUTOR_LOST_FREE);
    }
    if (!s->zombie)
        or_recompute(o, set);
}

void oracle_lose(struct oracle *o, int executor, enum or_loss loss)
{
    o->executors[executor].state = OR_GONE;
    for (int s = 0; s < o->setup->nsets; s++)
        if (o->sets[s].submitted)
            lose_in_set(o, s, executor, loss);
    o->executors[executor].nfailures = 0;
}

/* ---- speculation ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int slots_of_executor(const struct or_profile *p)
{
    int slots = p->cores / p->cpus;
    for (int r = 0; r < OR_RESOURCES; r++) {
        int take = p->take[r], n;
        if (!take)
            continue;
        n = take >= OR_UNIT ? p->have[r] / (take / OR_UNIT)
                            : p->have[r] * (OR_UNIT / take);
        slots = n < slots ? n : slots;
    }
    return slots;
}

static bool inefficient(const struct oracle *o, const struct or_attempt *a,
                        double threshold)
{
    const struct or_set *s = &o->sets[a->set];
    double runtime = (double)(o->now - a->launched);
    /* Nothing read yet: everything is inefficient. */
    double average = s->total_records > 0
                         ? (double)s->total_records / ((double)s->total_runtime / 1000)
                         : INFINITY;
    return runtime > o->setup->speculation.long_factor * threshold ||
           a->rate < o->setup->speculation.rate_multiplier * average;
}

static const struct or_attempt *running_attempt(const struct oracle *o, int set,
                                                int task)
{
    for (int i = 0; i < o->nattempts; i++) {
        const struct or_attempt *a = &o->attempts[i];
        if (a->set == set && a->task == task && a->state == OR_RUNNING)
            return a;
    }
    return NULL;
}

static void speculate_set(struct oracle *o, int set)
{
    const struct or_speculation *c = &o->setup->speculation;
    const struct or_set_spec *spec = &o->setup->sets[set];
    struct or_set *s = &o->sets[set];
    if (s->zombie || spec->barrier || (spec->ntasks == 1 && !c->threshold))
        return;
    double threshold;
    bool by_median;
    int enough = (int)floor(c->quantile * spec->ntasks);
    if (enough < 1)
        enough = 1;
    by_median = s->ndurations >= enough;
    if (by_median) {
        int64_t sorted[OR_ATTEMPTS];
        memcpy(sorted, s->durations, (size_t)s->ndurations * sizeof(*sorted));
        qsort(sorted, (size_t)s->ndurations, sizeof(*sorted), by_value);
        threshold = c->multiplier * (double)sorted[s->ndurations / 2];
        if (threshold < (double)c->min_runtime)
            threshold = (double)c->min_runtime;
    } else if (c->threshold &&
               spec->ntasks <= slots_of_executor(&o->setup->profiles[spec->profile])) {
        threshold = (double)c->threshold;
    } else {
        return;
    }
    /* In no order that is said; like the first filling of the lists: the lowest task
     * ends on top. */
    for (int i = spec->ntasks - 1; i >= 0; i--) {
        const struct or_attempt *a = running_attempt(o, set, i);
        if (!a)
            continue;
        struct or_task *t = &s->tasks[a->task];
        bool slow = (double)(o->now - a->launched) > threshold;
        if (t->done || t->copies != 1 || t->speculatable || !slow)
            continue;
        if (by_median && c->efficiency && !inefficient(o, a, threshold))
            continue;
        t->speculatable = true;
        t->speculative_pushed = ++s->pushes;
        s->copies[s->ncopies++] = i;
        decide(o, OR_SPECULATABLE, set, a->task, OR_NONE);
    }
}

void oracle_speculate(struct oracle *o)
{
    for (int s = 0; o->setup->speculation.on && s < o->setup->nsets; s++)
        if (o->sets[s].submitted)
            speculate_set(o, s);
}
