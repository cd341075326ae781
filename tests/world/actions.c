/*
 * Takes the engine's actions: each is held against what the world knows, then noted.
 *
 * The switch in world_take has no `default:`: an action that is new does not compile
 * here until somebody has said what it means for a test.
 */
#include "world_internal.h"

/* ---- stages and jobs ---- */

static void take_ready(struct world *w, trp_stage_id stage)
{
    struct world_stage *s = world_stage_at(w, stage.n);
    world_mix(w, stage.n);
    world_say(w, "    stage %u asks for its tasks\n", stage.n);
    if (s->ready || s->ended)
        world_break(w, "a stage asks once for its tasks", "stage %u", stage.n);
    s->ready = true;
    GROW(w->ready, w->nready);
    w->ready[w->nready++] = stage;
}

static void take_submitted(struct world *w, trp_stage_id stage)
{
    struct world_stage *s = world_stage_at(w, stage.n);
    world_mix(w, stage.n);
    world_say(w, "    stage %u submitted\n", stage.n);
    if (s->once && (s->submitted || s->ended))
        world_break(w, "a stage is submitted once", "stage %u", stage.n);
    s->submitted = true;
    s->ended = false;
    if (w->hooks->submitted)
        w->hooks->submitted(w, stage);
}

static void take_check(struct world *w, trp_stage_id stage)
{
    struct world_stage *s = world_stage_at(w, stage.n);
    world_mix(w, stage.n);
    world_say(w, "    stage %u is to be checked\n", stage.n);
    if (s->check || s->ended)
        world_break(w, "it is asked once whether all is well", "stage %u", stage.n);
    s->check = true;
    w->checks_asked++;
}

static void take_drains(struct world *w, trp_stage_id stage)
{
    world_mix(w, stage.n);
    world_say(w, "    stage %u gave up: what runs may finish\n", stage.n);
    if (w->drains++)
        world_break(w, "a job drains once", "stage %u", stage.n);
    w->draining = true;
}

static void take_stage_ended(struct world *w, const struct trp_action *act)
{
    uint32_t id = act->stage_ended.stage.n;
    struct world_stage *s = world_stage_at(w, id);
    world_mix(w, id);
    world_say(w, "    stage %u %s: %s\n", id,
              trp_outcome_name(act->stage_ended.outcome), act->stage_ended.text);
    if (s->ended)
        world_break(w, "every stage ends once", "stage %u", id);
    for (uint32_t i = 0; i < w->njobs; i++)
        if (w->jobs[i].ended && id - w->jobs[i].first < w->jobs[i].nstages)
            world_break(w, "every stage ends before its job", "stage %u", id);
    s->ended = true;
    w->texts = g_renew(char *, w->texts, w->nended + 1);
    w->texts[w->nended] = g_strdup(act->stage_ended.text);
    GROW(w->ended, w->nended);
    w->ended[w->nended++] = *act;
    if (w->hooks->stage_ended)
        w->hooks->stage_ended(w, act);
}

static void take_set_ended(struct world *w, const struct trp_action *act)
{
    struct world_stage *s = world_stage_at(w, act->set.stage.n);
    uint64_t bit =
        act->set.stage_attempt < 64 ? UINT64_C(1) << act->set.stage_attempt : 0;
    world_mix(w, act->set.stage.n + (uint64_t)act->set.how);
    world_say(w, "    set of stage %u.%u ended: %d %s\n", act->set.stage.n,
              act->set.stage_attempt, (int)act->set.how, act->set.text);
    if (!act->set.text || (s->sets_ended & bit))
        world_break(w, "a task set ends once, with a text", "stage %u",
                    act->set.stage.n);
    s->sets_ended |= bit;
    if (w->hooks->set_ended)
        w->hooks->set_ended(w, act);
}

static void take_job_started(struct world *w, trp_job_id job)
{
    world_mix(w, job.n);
    world_say(w, "    job %u begins\n", job.n);
    if (job.n >= w->njobs)
        world_break(w, "jobs are numbered one by one", "job %u", job.n);
}

static void take_job_ended(struct world *w, const struct trp_action *act)
{
    uint32_t id = act->job_ended.job.n;
    world_mix(w, id);
    world_say(w, "    job %u %s: %s\n", id, trp_outcome_name(act->job_ended.outcome),
              act->job_ended.text);
    w->job_end = *act;
    w->job_ends++;
    if (id >= w->njobs || w->jobs[id].ended) {
        world_break(w, "every job ends once", "job %u", id);
        return;
    }
    struct world_job *j = &w->jobs[id];
    j->ended = true;
    for (uint32_t i = 0; i < j->nstages; i++)
        if (!world_stage_at(w, j->first + i)->ended)
            world_break(w, "every stage ends before its job", "stage %u of job %u",
                        j->first + i, id);
}

static void take_retried(struct world *w, const struct trp_action *act)
{
    world_stage_at(w, act->stage_retried.stage.n)->submitted = false;
    world_mix(w, act->stage_retried.stage.n);
    world_say(w, "    stage %u.%u came to nothing: %s\n", act->stage_retried.stage.n,
              act->stage_retried.attempt, act->stage_retried.text);
    if (!act->stage_retried.text)
        world_break(w, "it is said why a stage runs again", "stage %u",
                    act->stage_retried.stage.n);
}

/* Of one task, that nothing but a hook wants to know. */
static void take_task(struct world *w, const struct trp_action *act, const char *what,
                      void (*hook)(struct world *w, const struct trp_action *a))
{
    world_mix(w, (uint64_t)act->task.stage.n << 32 | act->task.task);
    world_say(w, "    stage %u.%u task %u %s\n", act->task.stage.n,
              act->task.stage_attempt, act->task.task, what);
    if (hook)
        hook(w, act);
}

static void take_given_up(struct world *w, const struct trp_action *act)
{
    GROW(w->given_up, w->ngiven_up);
    w->given_up[w->ngiven_up++] = *act;
    world_mix(w, (uint64_t)act->given_up.stage.n << 32 | act->given_up.task);
    world_mix(w, act->given_up.parent_task);
    world_say(w, "    stage %u task %u is given up, parent %d\n", act->given_up.stage.n,
              act->given_up.task, (int)act->given_up.parent.n);
    if (w->hooks->given_up)
        w->hooks->given_up(w, act);
}

/* ---- executors ---- */

static void note_asked(struct world *w, uint32_t executor)
{
    GROW(w->asked, w->nasked);
    w->asked[w->nasked++] = executor;
}

static void take_start(struct world *w, const struct trp_action *act,
                       struct world_executor *x)
{
    uint32_t n = act->executor.executor.n, profile = act->executor.profile.n;
    if (x->state != WORLD_UNKNOWN)
        world_break(w, "an executor is asked for once", "executor %u", n);
    if (w->draining || w->config.fixed)
        world_break(w, "executors are asked for only when they may be", "executor %u",
                    n);
    *x = (struct world_executor){.state = WORLD_REQUESTED,
                                 .ahead = act->executor.ahead,
                                 .label = profile,
                                 .shape = profile};
    w->ahead += act->executor.ahead;
    g_strlcpy(w->not_on, act->executor.not_on, sizeof(w->not_on));
    note_asked(w, n);
}

/* One that works is released only when its time is over, or what it runs may end. */
static bool may_end_work(const struct world *w, const struct world_executor *x)
{
    int64_t force = w->config.decommission.force_kill_ns;
    return w->config.exclusion.kill ||
           (x->decommissioned && force && w->now - x->decommissioned_at >= force);
}

static void check_idle(struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < w->nattempts; i++)
        if (w->attempts[i].executor == n)
            world_break(w, "only idle executors are released or relabelled",
                        "executor %u runs stage %u task %u", n, w->attempts[i].stage.n,
                        w->attempts[i].task);
}

static void take_release(struct world *w, uint32_t n, struct world_executor *x)
{
    if (w->alone)
        return;
    if (x->state != WORLD_LIVE && x->state != WORLD_REQUESTED)
        world_break(w, "only what is there is released", "executor %u", n);
    if (!may_end_work(w, x))
        check_idle(w, n);
    x->came = x->state == WORLD_LIVE;
    x->state = WORLD_RELEASED;
    w->releases++;
    note_asked(w, n | WORLD_GOES);
}

static void take_relabel(struct world *w, const struct trp_action *act,
                         struct world_executor *x)
{
    uint32_t n = act->executor.executor.n;
    if (x->state != WORLD_LIVE)
        world_break(w, "executors change only while they are there", "executor %u", n);
    if (w->config.reuse == TRP_REUSE_NEVER)
        world_break(w, "executors are not reused when they may not be", "executor %u",
                    n);
    check_idle(w, n);
    x->label = act->executor.profile.n;
    w->relabels++;
}

static void take_need(struct world *w, uint32_t n, struct world_executor *x)
{
    if (x->state != WORLD_REQUESTED || !x->ahead)
        world_break(w, "who is needed was asked for ahead", "executor %u", n);
    x->ahead = false;
    w->needed++;
}

static void take_may_add(struct world *w, uint32_t n, struct world_executor *x)
{
    if (x->state != WORLD_REQUESTED || x->may_add)
        world_break(w, "who may be had elsewhere waits", "executor %u", n);
    x->may_add = true;
    w->may_add++;
}

static struct world_executor *
about_executor(struct world *w, const struct trp_action *act, const char *what)
{
    uint32_t n = act->executor.executor.n;
    world_mix(w, n);
    world_say(w, "    %s executor %u, profile %u\n", what, n, act->executor.profile.n);
    if (w->hooks->executor && !w->broken)
        w->hooks->executor(w, act);
    return world_executor_at(w, n);
}

static void take_excluded(struct world *w, const struct trp_action *act)
{
    uint32_t n = act->excluded.executor.n, k = 0;
    const char *host = act->excluded.host;
    world_mix(w, n);
    world_say(w, "    %s %s %d\n", act->excluded.excluded ? "excluded" : "included",
              host ? host : "executor", (int)n);
    w->excluded_any = true;
    if (n != TRP_NONE) {
        world_executor_at(w, n)->excluded = act->excluded.excluded;
        return;
    }
    if (!host) {
        world_break(w, "somebody is excluded", "nobody");
        return;
    }
    host = g_intern_string(host);
    while (k < w->nexcluded_hosts && w->excluded_hosts[k] != host)
        k++;
    if (act->excluded.excluded && k == w->nexcluded_hosts &&
        k < G_N_ELEMENTS(w->excluded_hosts))
        w->excluded_hosts[w->nexcluded_hosts++] = host;
    else if (!act->excluded.excluded && k < w->nexcluded_hosts)
        w->excluded_hosts[k] = w->excluded_hosts[--w->nexcluded_hosts];
}

/* ---- all ---- */

void world_take(struct world *w, const struct trp_action *a)
{
    world_mix(w, (uint64_t)a->kind);
    w->actions++;
    switch (a->kind) {
    case TRP_ACTION_JOB_STARTED:
        take_job_started(w, a->job);
        return;
    case TRP_ACTION_PROFILE_ADDED:
        world_mix(w, a->profile.n);
        if (w->hooks->profile_added)
            w->hooks->profile_added(w, a->profile);
        return;
    case TRP_ACTION_STAGE_READY:
        take_ready(w, a->stage);
        return;
    case TRP_ACTION_STAGE_SUBMITTED:
        take_submitted(w, a->stage);
        return;
    case TRP_ACTION_LAUNCH:
        world_take_launch(w, a);
        return;
    case TRP_ACTION_GANG:
        world_take_gang(w, a);
        return;
    case TRP_ACTION_KILL:
        world_take_kill(w, a);
        return;
    case TRP_ACTION_SYNCED:
        world_take_synced(w, a);
        return;
    case TRP_ACTION_TASK_END:
        world_take_task_end(w, a);
        return;
    case TRP_ACTION_STAGE_ENDED:
        take_stage_ended(w, a);
        return;
    case TRP_ACTION_JOB_ENDED:
        take_job_ended(w, a);
        return;
    case TRP_ACTION_START_EXECUTOR:
        take_start(w, a, about_executor(w, a, "start"));
        return;
    case TRP_ACTION_RELEASE_EXECUTOR:
        take_release(w, a->executor.executor.n, about_executor(w, a, "release"));
        return;
    case TRP_ACTION_RELABEL_EXECUTOR:
        take_relabel(w, a, about_executor(w, a, "relabel"));
        return;
    case TRP_ACTION_NEED_EXECUTOR:
        take_need(w, a->executor.executor.n, about_executor(w, a, "needed:"));
        return;
    case TRP_ACTION_MAY_ADD:
        take_may_add(w, a->executor.executor.n, about_executor(w, a, "had elsewhere:"));
        return;
    case TRP_ACTION_STAGE_RETRIED:
        take_retried(w, a);
        return;
    case TRP_ACTION_SET_ENDED:
        take_set_ended(w, a);
        return;
    case TRP_ACTION_RESUBMITTED:
        take_task(w, a, "runs again: its output is gone", w->hooks->resubmitted);
        if (a->task.task < 64 &&
            !(world_stage_at(w, a->task.stage.n)->done >> a->task.task & 1))
            world_break(w, "only what was done is done again", "stage %u task %u",
                        a->task.stage.n, a->task.task);
        return;
    case TRP_ACTION_SPECULATABLE:
        take_task(w, a, "is slow", w->hooks->slow);
        return;
    case TRP_ACTION_EXCLUDED:
        take_excluded(w, a);
        return;
    case TRP_ACTION_OUT_OF_TIME:
        w->out_of_time++;
        return;
    case TRP_ACTION_OUTLIVED:
        w->outlived = *a;
        w->outlives++;
        return;
    case TRP_ACTION_TASK_GIVEN_UP:
        take_given_up(w, a);
        return;
    case TRP_ACTION_ASK_WAIT:
        world_mix(w, (uint64_t)a->wait.profile.n << 32 | a->wait.executors);
        w->waits_asked++;
        if (!a->wait.executors)
            world_break(w, "it is asked how long somebody waits", "nobody");
        return;
    case TRP_ACTION_STAGE_CHECK:
        take_check(w, a->stage);
        return;
    case TRP_ACTION_JOB_DRAINS:
        take_drains(w, a->stage);
        return;
    }
}
