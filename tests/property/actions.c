/*
 * Takes the engine's actions: each is checked against what is known so far, then noted.
 */
#include <string.h>

#include "cluster.h"

#define BREAK(c, broken, ...) verdict_break((c)->verdict, broken, __VA_ARGS__)

/* ---- attempts ---- */

static struct cl_attempt *find_attempt(struct cluster *c, trp_attempt_id id)
{
    for (uint32_t i = 0; i < c->nattempts; i++)
        if (c->attempts[i].id.n == id.n)
            return &c->attempts[i];
    return NULL;
}

/* Takes (sign 1) or gives back (sign -1) what an attempt holds. */
static void book(struct cluster *c, const struct cl_attempt *a, int sign)
{
    struct cl_executor *x = &c->executors[a->executor];
    x->used += sign * a->cpus;
    x->running += (uint32_t)sign;
    for (uint32_t i = 0; i < a->ngrants; i++)
        x->taken[a->grants[i].resource][a->grants[i].address] +=
            sign * a->grants[i].amount;
}

static void forget_attempt(struct cluster *c, uint32_t i)
{
    c->past[c->npast++ % MAX_PAST] = c->attempts[i].id;
    memmove(&c->attempts[i], &c->attempts[i + 1],
            (c->nattempts - i - 1) * sizeof(*c->attempts));
    c->nattempts--;
}

static void take_launch(struct cluster *c, const struct trp_action *act)
{
    bool gang = act->kind == TRP_ACTION_GANG;
    struct cl_attempt a = {.executor = TRP_NONE, .level = TRP_ANY};
    a.id = gang ? act->gang.attempt : act->launch.attempt;
    a.stage = gang ? act->gang.stage.n : act->launch.stage.n;
    a.number = gang ? act->gang.number : act->launch.number;
    check_launch(c, act, gang);
    if (c->verdict->broken[0])
        return;
    struct cl_stage *s = &c->stages[a.stage];
    if (!gang) {
        a.task = act->launch.task;
        a.executor = act->launch.executor.n;
        a.level = act->launch.level;
        a.queued = act->launch.queued;
        a.copy = act->launch.speculative;
        a.cpus = cluster_task_profile(c, s, &c->executors[a.executor])->task_cpus;
        a.ngrants = act->launch.ngrants;
        for (uint32_t i = 0; i < a.ngrants; i++)
            a.grants[i] = act->launch.grants[i];
        if (!a.queued)
            book(c, &a, 1);
    }
    s->tasks[a.task].speculatable &= !a.copy;
    s->tasks[a.task].live++;
    s->tasks[a.task].attempts++;
    s->running += !a.queued;
    s->queued += a.queued;
    c->attempts[c->nattempts++] = a;
    if (c->nattempts > c->most_attempts)
        c->most_attempts = c->nattempts;
    cluster_say(c, "    launch %08llx: stage %u task %u.%u on executor %d, %s%s%s\n",
                (unsigned long long)a.id.n, a.stage, a.task, a.number, (int)a.executor,
                trp_level_name(a.level), a.queued ? ", queued" : "",
                a.copy ? ", a copy" : "");
}

static void take_kill(struct cluster *c, const struct trp_action *act)
{
    struct cl_attempt *a = find_attempt(c, act->kill.attempt);
    cluster_say(c, "    %s %08llx\n", act->kill.recall ? "recall" : "kill",
                (unsigned long long)act->kill.attempt.n);
    if (!a || a->executor != act->kill.executor.n) {
        BREAK(c, "only what lives is killed", "kill of attempt %llx on executor %d",
              (unsigned long long)act->kill.attempt.n, (int)act->kill.executor.n);
        return;
    }
    a->kill |= !act->kill.recall;
    a->recall |= act->kill.recall;
}

/* The place of an attempt that ended: the first of its stage that waits there takes it.
 */
static void hand_on(struct cluster *c, const struct cl_attempt *ended)
{
    for (uint32_t i = 0; i < c->nattempts; i++) {
        struct cl_attempt *b = &c->attempts[i];
        if (b->executor != ended->executor || !b->queued || b->stage != ended->stage)
            continue;
        b->queued = false;
        b->ngrants = ended->ngrants;
        memcpy(b->grants, ended->grants, sizeof(b->grants));
        book(c, b, 1);
        c->stages[b->stage].running++;
        c->stages[b->stage].queued--;
        return;
    }
}

static bool is_not_retried(const struct cl_stage *s, const struct trp_action *act)
{
    for (uint32_t i = 0; i < s->spec.nnot_on; i++)
        if (act->task_end.status == TRP_END_EXIT &&
            act->task_end.code == s->spec.not_on[i])
            return true;
    return false;
}

static void take_task_end(struct cluster *c, const struct trp_action *act)
{
    struct cl_attempt *a = find_attempt(c, act->task_end.attempt);
    uint32_t task = act->task_end.task;
    cluster_say(c, "    end %08llx: stage %u task %u.%u %s%s%s, %u failures\n",
                (unsigned long long)act->task_end.attempt.n, act->task_end.stage.n,
                task, act->task_end.number, trp_end_status_name(act->task_end.status),
                act->task_end.counted ? ", counted" : "",
                act->task_end.retried ? ", retried" : "", act->task_end.failures);
    if (!a || a->stage != act->task_end.stage.n || a->task != task ||
        a->number != act->task_end.number || a->executor != act->task_end.executor.n) {
        BREAK(c, "every attempt gets one verdict", "a verdict on attempt %llx",
              (unsigned long long)act->task_end.attempt.n);
        return;
    }
    struct cl_attempt was = *a;
    struct cl_stage *s = &c->stages[a->stage];
    struct cl_task *t = &s->tasks[task];
    forget_attempt(c, (uint32_t)(a - c->attempts));
    t->live--;
    s->running -= !was.queued;
    s->queued -= was.queued;
    bool gone = was.executor != TRP_NONE &&
                c->executors[was.executor].state == CL_GONE; /* being lost */
    if (was.executor != TRP_NONE && !was.queued) {
        book(c, &was, -1);
        if (!gone)
            hand_on(c, &was);
    }
    if (act->task_end.status == TRP_END_RECALLED)
        t->attempts--;
    bool was_over = t->done || t->failed;
    t->failures = act->task_end.counted ? t->failures + 1 : t->failures;
    s->excludes |= act->task_end.counted && c->config.exclusion.enabled;
    uint32_t max = s->spec.max_failures ? s->spec.max_failures : c->config.max_failures;
    if (act->task_end.status == TRP_END_SUCCESS && !s->ended && !t->done) {
        t->done = true;
        s->ndone++;
        t->failures = 0;
    } else if (act->task_end.counted && !t->done && !t->failed &&
               (t->failures >= max || is_not_retried(s, act))) {
        t->failed = true;
        s->nfailed++;
    }
    if (act->task_end.retried && act->task_end.status == TRP_END_MEMORY &&
        s->spec.memory_factor_ppm && !c->config.fixed && was.executor != TRP_NONE)
        t->grown++;
    bool success = act->task_end.status == TRP_END_SUCCESS;
    if (act->task_end.failures != t->failures && !s->ended && !success)
        BREAK(c, "failures are counted right", "stage %u task %u: %u failures, told %u",
              was.stage, task, t->failures, act->task_end.failures);
    if ((t->failures > max && !was_over) ||
        (t->failures == max && act->task_end.retried))
        BREAK(c, "a task has no more failures than allowed",
              "stage %u task %u: %u failures of %u%s", was.stage, task, t->failures,
              max, act->task_end.retried ? ", and is retried" : "");
    if (act->task_end.retried && s->ended)
        BREAK(c, "nothing runs again after its stage ended", "stage %u task %u",
              was.stage, task);
}

/* ---- stages and jobs ---- */

static bool is_lost_above(const struct cluster *c, const struct cl_stage *s,
                          const struct trp_action *act)
{
    for (uint32_t i = 0; i < s->spec.nparents; i++) {
        uint32_t id = s->parents[i].stage;
        const struct cl_stage *p = &c->stages[id];
        const struct cl_task *t = &p->tasks[act->given_up.task];
        if (s->parents[i].each && id == act->given_up.parent.n &&
            (t->failed || (p->ended && !t->done)))
            return true;
    }
    return false;
}

static void take_given_up(struct cluster *c, const struct trp_action *act)
{
    uint32_t id = act->given_up.stage.n, task = act->given_up.task;
    bool skipped = act->given_up.parent.n != TRP_NONE;
    cluster_say(c, "    stage %u task %u is given up, parent %u\n", id, task,
                act->given_up.parent.n);
    struct cl_stage *s = id < c->nstages ? &c->stages[id] : NULL;
    struct cl_task *t = s && task < s->ntasks ? &s->tasks[task] : NULL;
    if (t && !skipped && t->failed && !s->ended)
        return;
    if (!t || !skipped || s->ended || t->live || t->done || t->failed || t->attempts ||
        !is_lost_above(c, s, act)) {
        BREAK(c, "what is given up has failed, or waits for what was",
              "stage %u task %u", id, task);
        return;
    }
    t->failed = true;
    s->nfailed++;
}

static void take_stage_ended(struct cluster *c, const struct trp_action *act)
{
    uint32_t id = act->stage_ended.stage.n;
    cluster_say(c, "    stage %u %s: %s\n", id,
                trp_outcome_name(act->stage_ended.outcome), act->stage_ended.text);
    if (id >= c->nstages || c->stages[id].ended || c->jobs[c->stages[id].job].ended) {
        BREAK(c, "every stage ends once, before its job", "stage %u", id);
        return;
    }
    struct cl_stage *s = &c->stages[id];
    bool ok = act->stage_ended.outcome == TRP_OUTCOME_SUCCEEDED;
    if (ok && s->ndone + s->nfailed != s->ntasks)
        BREAK(c, "a stage succeeds when its tasks have", "stage %u: %u of %u done", id,
              s->ndone, s->ntasks);
    uint32_t part = (uint32_t)((uint64_t)s->ntasks * s->spec.tolerate_ppm / 1000000);
    uint32_t tolerated = s->spec.tolerate > part ? s->spec.tolerate : part;
    if (ok && s->nfailed > tolerated)
        BREAK(c, "a stage succeeds when its tasks have",
              "stage %u: %u tasks failed, %u are tolerated", id, s->nfailed, tolerated);
    s->ended = true;
}

static void take_job_ended(struct cluster *c, const struct trp_action *act)
{
    uint32_t id = act->job_ended.job.n;
    cluster_say(c, "    job %u %s\n", id, trp_outcome_name(act->job_ended.outcome));
    if (id >= c->njobs || c->jobs[id].ended) {
        BREAK(c, "every job ends once", "job %u", id);
        return;
    }
    c->jobs[id].ended = true;
    for (uint32_t i = 0; i < c->jobs[id].nstages; i++)
        if (!c->stages[c->jobs[id].first + i].ended)
            BREAK(c, "every stage ends once, before its job", "stage %u of job %u",
                  c->jobs[id].first + i, id);
}

static void take_need(struct cluster *c, const struct trp_action *act)
{
    uint32_t n = act->executor.executor.n;
    cluster_say(c, "    executor %u is needed\n", n);
    if (n >= c->nexecutors || c->executors[n].state != CL_REQUESTED ||
        !c->executors[n].ahead)
        BREAK(c, "who is needed was asked for ahead", "executor %u", n);
    else
        c->executors[n].ahead = false;
}

static void take_may_add(struct cluster *c, const struct trp_action *act)
{
    uint32_t n = act->executor.executor.n;
    cluster_say(c, "    executor %u may be had elsewhere\n", n);
    if (n >= c->nexecutors || c->executors[n].state != CL_REQUESTED ||
        c->executors[n].may_add)
        BREAK(c, "who may be had elsewhere waits", "executor %u", n);
    else
        c->executors[n].may_add = true;
}

static void take_executor(struct cluster *c, const struct trp_action *act)
{
    uint32_t n = act->executor.executor.n;
    static const char *const words[] = {"start", "release", "relabel"};
    int word = (int)act->kind - (int)TRP_ACTION_START_EXECUTOR;
    cluster_say(c, "    %s executor %u, profile %u\n", words[word], n,
                act->executor.profile.n);
    check_executor_action(c, act);
    if (c->verdict->broken[0])
        return;
    struct cl_executor *x = &c->executors[n];
    if (act->kind == TRP_ACTION_START_EXECUTOR) {
        *x = (struct cl_executor){.state = CL_REQUESTED,
                                  .ahead = act->executor.ahead,
                                  .label = act->executor.profile.n,
                                  .shape = act->executor.profile.n};
        if (n >= c->nexecutors)
            c->nexecutors = n + 1;
    } else if (act->kind == TRP_ACTION_RELEASE_EXECUTOR) {
        x->came = x->state == CL_LIVE;
        x->state = CL_RELEASING;
    } else {
        x->label = act->executor.profile.n;
    }
}

static void take_set_ended(struct cluster *c, const struct trp_action *act)
{
    uint32_t id = act->set.stage.n;
    cluster_say(c, "    set of stage %u ended: %d %s\n", id, (int)act->set.how,
                act->set.text ? act->set.text : "");
    uint32_t bit = UINT32_C(1) << act->set.stage_attempt % 32;
    if (id >= c->nstages || (c->stages[id].sets_ended & bit))
        BREAK(c, "a task set ends once", "stage %u", id);
    else
        c->stages[id].sets_ended |= bit;
}

static void take_speculatable(struct cluster *c, const struct trp_action *act)
{
    uint32_t id = act->task.stage.n, task = act->task.task;
    cluster_say(c, "    stage %u task %u is slow\n", id, task);
    if (id >= c->nstages || task >= c->stages[id].ntasks ||
        c->stages[id].tasks[task].live != 1 || c->stages[id].tasks[task].done ||
        c->stages[id].tasks[task].speculatable)
        BREAK(c, "a task is found slow once, while one attempt runs",
              "stage %u task %u", id, task);
    else
        c->stages[id].tasks[task].speculatable = true;
}

static void take_excluded(struct cluster *c, const struct trp_action *act)
{
    uint32_t n = act->excluded.executor.n;
    const char *host = act->excluded.host ? act->excluded.host : "";
    cluster_say(c, "    %s %s %d\n", act->excluded.excluded ? "excluded" : "included",
                host, (int)n);
    c->excluded_any = true;
    if (n < c->nexecutors)
        c->executors[n].excluded = act->excluded.excluded;
    for (uint32_t h = 0; n == TRP_NONE && h < MAX_HOSTS; h++)
        if (strcmp(host, cluster_host(h)) == 0)
            c->excluded_hosts[h] = act->excluded.excluded;
}

static void mix(struct cluster *c, uint64_t v)
{
    c->hash = (c->hash ^ v) * UINT64_C(1099511628211);
}

void cluster_take(struct cluster *c, const struct trp_action *a)
{
    mix(c, (uint64_t)a->kind);
    c->quiet_since = c->now;
    switch (a->kind) {
    case TRP_ACTION_JOB_STARTED:
        if (a->job.n + 1 != c->njobs || c->jobs[a->job.n].started)
            BREAK(c, "jobs are numbered one by one", "job %u", a->job.n);
        else
            c->jobs[a->job.n].started = true;
        return;
    case TRP_ACTION_PROFILE_ADDED:
        c->new_profiles[c->nnew_profiles++ % MAX_PROFILES] = a->profile.n;
        return;
    case TRP_ACTION_STAGE_READY:
        if (a->stage.n >= c->nstages || c->stages[a->stage.n].ready)
            BREAK(c, "a stage asks once for its tasks", "stage %u", a->stage.n);
        else
            c->stages[a->stage.n].ready = true;
        return;
    case TRP_ACTION_STAGE_SUBMITTED:
        cluster_say(c, "    stage %u submitted\n", a->stage.n);
        if (a->stage.n >= c->nstages || c->stages[a->stage.n].submitted)
            BREAK(c, "a stage is submitted once", "stage %u", a->stage.n);
        else
            c->stages[a->stage.n].submitted = true;
        return;
    case TRP_ACTION_LAUNCH:
    case TRP_ACTION_GANG:
        mix(c, a->launch.attempt.n);
        take_launch(c, a);
        return;
    case TRP_ACTION_KILL:
        mix(c, a->kill.attempt.n);
        take_kill(c, a);
        return;
    case TRP_ACTION_TASK_END:
        mix(c, a->task_end.attempt.n + a->task_end.retried);
        take_task_end(c, a);
        return;
    case TRP_ACTION_TASK_GIVEN_UP:
        mix(c, a->given_up.task);
        take_given_up(c, a);
        return;
    case TRP_ACTION_STAGE_ENDED:
        mix(c, a->stage_ended.stage.n);
        take_stage_ended(c, a);
        return;
    case TRP_ACTION_JOB_ENDED:
        mix(c, a->job_ended.job.n);
        take_job_ended(c, a);
        return;
    case TRP_ACTION_START_EXECUTOR:
    case TRP_ACTION_RELEASE_EXECUTOR:
    case TRP_ACTION_RELABEL_EXECUTOR:
        mix(c, a->executor.executor.n);
        take_executor(c, a);
        return;
    case TRP_ACTION_SET_ENDED:
        mix(c, a->set.stage.n);
        take_set_ended(c, a);
        return;
    case TRP_ACTION_NEED_EXECUTOR:
        mix(c, a->executor.executor.n);
        take_need(c, a);
        return;
    case TRP_ACTION_MAY_ADD:
        mix(c, a->executor.executor.n);
        take_may_add(c, a);
        return;
    case TRP_ACTION_ASK_WAIT:
        mix(c, a->wait.executors);
        return;
    case TRP_ACTION_SPECULATABLE:
        mix(c, a->task.task);
        take_speculatable(c, a);
        return;
    case TRP_ACTION_OUT_OF_TIME:
    case TRP_ACTION_EXCLUDED:
        mix(c, a->excluded.executor.n);
        take_excluded(c, a);
        return;
    case TRP_ACTION_RESUBMITTED:
    default:
        BREAK(c, "actions are known", "kind %d", (int)a->kind);
    }
}
