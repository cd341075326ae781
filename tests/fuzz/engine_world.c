/*
 * The pretended cluster of the engine's fuzz target.
 */
#include "engine_world.h"
#include "conf/options.h"

#include <string.h>

static void trace(struct fuzz_world *w, uint64_t a, uint64_t b)
{
    w->trace = (w->trace ^ a) * UINT64_C(1099511628211);
    w->trace = (w->trace ^ b) * UINT64_C(1099511628211);
}

/* With FUZZ_TELL in the environment every event and action is told on stderr. */
#define TELL(w, ...)                                                                   \
    do {                                                                               \
        if ((w)->tell)                                                                 \
            fprintf(stderr, __VA_ARGS__);                                              \
    } while (0)

/* ---- actions ---- */

static struct world_attempt *find(struct fuzz_world *w, trp_attempt_id id)
{
    for (uint32_t i = 0; i < w->nattempts; i++)
        if (w->attempts[i].id.n == id.n)
            return &w->attempts[i];
    return NULL;
}

static void add_attempt(struct fuzz_world *w, const struct world_attempt *a)
{
    TELL(w, "    launch %llx: task %u of stage %u on %d%s\n",
         (unsigned long long)a->id.n, a->task, a->stage.n, (int)a->executor,
         a->queued ? ", queued" : "");
    FUZZ_CHECK(w->nattempts < WORLD_ATTEMPTS, "more attempts than tasks");
    FUZZ_CHECK(!find(w, a->id), "attempt %llx is launched twice",
               (unsigned long long)a->id.n);
    FUZZ_CHECK(!w->draining, "a launch while draining");
    FUZZ_CHECK(a->stage.n < w->nstages && !(w->stages[a->stage.n] & WORLD_ENDED),
               "a task of stage %u, which is over", a->stage.n);
    for (uint32_t i = 0; i < w->nattempts; i++) {
        const struct world_attempt *o = &w->attempts[i];
        FUZZ_CHECK(o->stage.n != a->stage.n || o->task != a->task || o->killed ||
                       o->stage_attempt != a->stage_attempt || o->copy != a->copy,
                   "task %u of stage %u runs twice", a->task, a->stage.n);
    }
    w->attempts[w->nattempts++] = *a;
    trace(w, a->id.n, (uint64_t)a->executor << 32 | a->task);
}

static void on_launch(struct fuzz_world *w, const struct trp_action *act)
{
    uint32_t x = act->launch.executor.n;
    const trp_ledger *ledger = trp_engine_ledger(w->engine, act->launch.executor);
    FUZZ_CHECK(x < w->nexecutors && w->executors[x] == WORLD_LIVE,
               "a launch on executor %u, which is not there", x);
    for (uint32_t i = 0; i < act->launch.ngrants; i++) {
        const struct trp_grant *g = &act->launch.grants[i];
        FUZZ_CHECK(trp_ledger_address(ledger, g->resource, g->address) && g->amount > 0,
                   "a grant of nothing on executor %u", x);
    }
    const struct world_attempt a = {.id = act->launch.attempt,
                                    .stage = act->launch.stage,
                                    .task = act->launch.task,
                                    .executor = x,
                                    .stage_attempt = act->launch.stage_attempt,
                                    .queued = act->launch.queued,
                                    .copy = act->launch.speculative};
    FUZZ_CHECK(w->features || !a.copy, "a copy that nobody asked for");
    add_attempt(w, &a);
}

static void on_gang(struct fuzz_world *w, const struct trp_action *act)
{
    const struct world_attempt a = {
        .id = act->gang.attempt, .stage = act->gang.stage, .executor = TRP_NONE};
    FUZZ_CHECK(act->gang.ranks > 0, "a gang of nobody");
    add_attempt(w, &a);
}

static void on_kill(struct fuzz_world *w, const struct trp_action *act)
{
    TELL(w, "    %s %llx\n", act->kill.recall ? "recall" : "kill",
         (unsigned long long)act->kill.attempt.n);
    struct world_attempt *a = find(w, act->kill.attempt);
    FUZZ_CHECK(a, "attempt %llx is killed, but not there",
               (unsigned long long)act->kill.attempt.n);
    FUZZ_CHECK(a->executor == act->kill.executor.n, "a kill for another executor");
    a->killed |= !act->kill.recall;
    a->recalled |= act->kill.recall;
    trace(w, a->id.n, act->kill.recall);
}

static void on_task_end(struct fuzz_world *w, const struct trp_action *act)
{
    TELL(w, "    %llx ends: %s, %scounted, %sretried\n",
         (unsigned long long)act->task_end.attempt.n,
         trp_end_status_name(act->task_end.status), act->task_end.counted ? "" : "not ",
         act->task_end.retried ? "" : "not ");
    struct world_attempt *a = find(w, act->task_end.attempt);
    FUZZ_CHECK(a, "attempt %llx ends twice, or never began",
               (unsigned long long)act->task_end.attempt.n);
    FUZZ_CHECK(a->stage.n == act->task_end.stage.n && a->task == act->task_end.task &&
                   a->executor == act->task_end.executor.n,
               "the verdict on attempt %llx is of another",
               (unsigned long long)a->id.n);
    trace(w, a->id.n, (uint64_t)act->task_end.status << 1 | act->task_end.counted);
    uint32_t i = (uint32_t)(a - w->attempts);
    w->nattempts--;
    memmove(a, a + 1, (w->nattempts - i) * sizeof *a);
}

static void on_stage(struct fuzz_world *w, trp_stage_id stage, uint8_t what)
{
    FUZZ_CHECK(stage.n < trp_engine_stages(w->engine), "no stage %u", stage.n);
    FUZZ_CHECK(stage.n < WORLD_STAGES, "more stages than were submitted");
    while (w->nstages <= stage.n)
        w->stages[w->nstages++] = 0;
    uint8_t *known = &w->stages[stage.n];
    TELL(w, "    stage %u is %s\n", stage.n,
         what == WORLD_READY       ? "ready"
         : what == WORLD_SUBMITTED ? "submitted"
         : what == WORLD_CHECK     ? "to be checked"
                                   : "over");
    if (w->features && what == WORLD_SUBMITTED)
        *known &= (uint8_t) ~(WORLD_SUBMITTED | WORLD_ENDED);
    FUZZ_CHECK(!(*known & (what | WORLD_ENDED)), "stage %u: %d after %d", stage.n, what,
               *known);
    *known |= what;
    trace(w, stage.n, what);
}

static void on_job(struct fuzz_world *w, trp_job_id job, uint8_t what)
{
    TELL(w, "    job %u %s\n", job.n, what == 1 ? "begins" : "is over");
    FUZZ_CHECK(job.n < WORLD_JOBS && w->jobs[job.n] == what - 1, "job %u: %d after %d",
               job.n, what, w->jobs[job.n]);
    w->jobs[job.n] = what;
    w->njobs += what == 1;
    w->jobs_ended += what == 2;
    trace(w, job.n, what);
}

static void on_executor(struct fuzz_world *w, const struct trp_action *act)
{
    uint32_t x = act->executor.executor.n;
    FUZZ_CHECK(x < WORLD_EXECUTORS, "more executors than anybody needs");
    uint8_t *known = &w->executors[x];
    trace(w, x, act->kind);
    TELL(w, "    executor %u is %s\n", x,
         act->kind == TRP_ACTION_START_EXECUTOR     ? "asked for"
         : act->kind == TRP_ACTION_RELEASE_EXECUTOR ? "released"
         : act->kind == TRP_ACTION_NEED_EXECUTOR    ? "needed"
         : act->kind == TRP_ACTION_MAY_ADD          ? "worth an additional job"
                                                    : "relabelled");
    switch (act->kind) {
    case TRP_ACTION_START_EXECUTOR:
        FUZZ_CHECK(*known == WORLD_UNKNOWN, "executor %u is asked for twice", x);
        FUZZ_CHECK(!w->draining, "executor %u is asked for while draining", x);
        *known = WORLD_REQUESTED;
        w->nexecutors = x + 1 > w->nexecutors ? x + 1 : w->nexecutors;
        break;
    case TRP_ACTION_RELEASE_EXECUTOR:
        FUZZ_CHECK(*known == WORLD_REQUESTED || *known == WORLD_LIVE,
                   "executor %u is released in state %d", x, *known);
        for (uint32_t i = 0; i < w->nattempts; i++)
            FUZZ_CHECK(w->features || w->attempts[i].executor != x,
                       "executor %u is released at work", x);
        *known = WORLD_RELEASED;
        break;
    case TRP_ACTION_NEED_EXECUTOR:
    case TRP_ACTION_MAY_ADD:
        FUZZ_CHECK(*known == WORLD_REQUESTED, "executor %u is needed in state %d", x,
                   *known);
        break;
    default:
        FUZZ_CHECK(*known == WORLD_LIVE, "executor %u is relabelled in state %d", x,
                   *known);
    }
}

static void take_action(struct fuzz_world *w, const struct trp_action *act)
{
    switch (act->kind) {
    case TRP_ACTION_LAUNCH:
        on_launch(w, act);
        return;
    case TRP_ACTION_GANG:
        on_gang(w, act);
        return;
    case TRP_ACTION_KILL:
        on_kill(w, act);
        return;
    case TRP_ACTION_TASK_END:
        on_task_end(w, act);
        return;
    case TRP_ACTION_STAGE_READY:
        on_stage(w, act->stage, WORLD_READY);
        return;
    case TRP_ACTION_STAGE_SUBMITTED:
        on_stage(w, act->stage, WORLD_SUBMITTED);
        return;
    case TRP_ACTION_STAGE_CHECK:
        on_stage(w, act->stage, WORLD_CHECK);
        return;
    case TRP_ACTION_STAGE_ENDED:
        FUZZ_CHECK(act->stage_ended.text, "a stage ends without a text");
        on_stage(w, act->stage_ended.stage, WORLD_ENDED);
        return;
    case TRP_ACTION_JOB_STARTED:
        on_job(w, act->job, 1);
        return;
    case TRP_ACTION_JOB_ENDED:
        on_job(w, act->job_ended.job, 2);
        return;
    case TRP_ACTION_START_EXECUTOR:
    case TRP_ACTION_RELEASE_EXECUTOR:
    case TRP_ACTION_RELABEL_EXECUTOR:
    case TRP_ACTION_NEED_EXECUTOR:
    case TRP_ACTION_MAY_ADD:
        on_executor(w, act);
        return;
    case TRP_ACTION_ASK_WAIT:
        FUZZ_CHECK(act->wait.executors, "it is asked how long nobody waits");
        trace(w, act->wait.profile.n, act->wait.executors);
        return;
    case TRP_ACTION_PROFILE_ADDED:
        trace(w, act->profile.n, act->kind);
        return;
    case TRP_ACTION_SYNCED:
        FUZZ_CHECK(act->synced.text, "a sync is answered without a text");
        trace(w, act->synced.attempt.n, act->kind);
        return;
    case TRP_ACTION_STAGE_RETRIED:
        FUZZ_CHECK(act->stage_retried.text, "a stage is retried without a text");
        trace(w, act->stage_retried.stage.n, act->stage_retried.attempt);
        return;
    case TRP_ACTION_SET_ENDED:
        FUZZ_CHECK(act->set.text, "a set ends without a text");
        trace(w, act->set.stage.n, act->set.how);
        return;
    case TRP_ACTION_RESUBMITTED:
    case TRP_ACTION_SPECULATABLE:
        trace(w, act->task.stage.n, act->task.task);
        return;
    case TRP_ACTION_TASK_GIVEN_UP:
        trace(w, act->given_up.stage.n, act->given_up.task);
        return;
    case TRP_ACTION_OUT_OF_TIME:
    case TRP_ACTION_OUTLIVED:
    case TRP_ACTION_EXCLUDED:
        FUZZ_CHECK(act->excluded.host || act->excluded.executor.n != TRP_NONE,
                   "nobody is excluded");
        trace(w, act->excluded.executor.n, act->excluded.excluded);
        return;
    }
}

/* ---- events ---- */

/* What the event makes of an executor, before the engine says what follows. */
static void note(struct fuzz_world *w, const struct trp_event *ev)
{
    uint32_t x = ev->kind == TRP_EVENT_EXECUTOR_ADDED     ? ev->added.executor.n
                 : ev->kind == TRP_EVENT_EXECUTOR_REFUSED ? ev->refused.executor.n
                 : ev->kind == TRP_EVENT_EXECUTOR_LOST    ? ev->lost.executor.n
                                                          : TRP_NONE;
    if (ev->kind == TRP_EVENT_DRAIN)
        w->draining = true;
    if (x == TRP_NONE || x >= w->nexecutors)
        return;
    uint8_t *known = &w->executors[x];
    if (ev->kind == TRP_EVENT_EXECUTOR_ADDED && *known == WORLD_REQUESTED)
        *known = WORLD_LIVE;
    else if (ev->kind == TRP_EVENT_EXECUTOR_LOST && *known != WORLD_UNKNOWN)
        *known = WORLD_GONE;
    else if (ev->kind == TRP_EVENT_EXECUTOR_REFUSED && *known == WORLD_REQUESTED)
        *known = WORLD_GONE;
}

static void tell_event(const struct fuzz_world *w, const struct trp_event *ev)
{
    static const char *const names[] = {"job",
                                        "tasks of stage",
                                        "refused: stage",
                                        "fit of profile",
                                        "added executor",
                                        "refused: executor",
                                        "lost executor",
                                        "ended",
                                        "sync",
                                        "cancel job",
                                        "drain",
                                        "time",
                                        "decommission",
                                        "progress",
                                        "dataset",
                                        "released dataset",
                                        "cached dataset",
                                        "moved output of stage",
                                        "cancel stage"};
    unsigned long long id = ev->kind == TRP_EVENT_TASK_ENDED ? ev->ended.attempt.n : 0;
    /* Of all others but JOB, DRAIN and TIME the id comes first. */
    if (ev->kind >= TRP_EVENT_STAGE_TASKS && ev->kind <= TRP_EVENT_CANCEL_JOB && !id)
        id = ev->tasks.stage.n;
    TELL(w, "%lld %s %llx\n", (long long)w->now,
         (size_t)ev->kind < sizeof names / sizeof *names ? names[ev->kind] : "?", id);
}

int world_step(struct fuzz_world *w, const struct trp_event *ev)
{
    trp_error err = {0};
    const struct trp_action *act;
    tell_event(w, ev);
    note(w, ev);
    int rc = trp_engine_step(w->engine, w->now, ev, &err);
    FUZZ_CHECK(rc == 0 || (rc == TRP_EINVAL && *err.text), "event %d: %d: %s",
               (int)ev->kind, rc, err.text);
    while ((act = trp_engine_next(w->engine)))
        take_action(w, act);
    rc = rc ? rc : trp_engine_sanity_check(w->engine, &err);
    FUZZ_CHECK(rc == 0 || rc == TRP_EINVAL, "after event %d: %s", (int)ev->kind,
               err.text);
    return rc;
}

void world_come(struct fuzz_world *w, uint32_t executor, const char *host,
                const char *rack)
{
    static const char *const addresses[] = {"0", "1"};
    static const struct trp_resource_addresses gpu = {"gpu", addresses, 2};
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {{executor}, host, rack, &gpu, 1, 0}
    };
    world_step(w, &ev);
}

uint32_t world_expect(struct fuzz_world *w, trp_profile_id profile)
{
    uint32_t x = trp_engine_expect_executor(w->engine, profile).n;
    FUZZ_CHECK(x < WORLD_EXECUTORS && w->executors[x] == WORLD_UNKNOWN,
               "executor %u is expected twice", x);
    w->executors[x] = WORLD_REQUESTED;
    w->nexecutors = x + 1 > w->nexecutors ? x + 1 : w->nexecutors;
    return x;
}

/* One that is to be handed back is, unless it runs meanwhile: then it is ignored, and
 * the next time the attempt ends as a running one. */
static void end_first(struct fuzz_world *w)
{
    struct world_attempt *a = &w->attempts[0];
    bool back = a->queued && (a->killed || a->recalled);
    const struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = a->id,
                  .status = back        ? TRP_END_RECALLED
                            : a->killed ? TRP_END_KILLED
                                        : TRP_END_SUCCESS,
                  .duration_ns = 1000}
    };
    a->queued = false;
    world_step(w, &ev);
}

/* ---- the end ---- */

/* One thing that a healthy cluster would do now; false: there is nothing. */
static bool help(struct fuzz_world *w)
{
    w->now += 1000;
    for (uint32_t i = 0; i < w->nstages; i++)
        if ((w->stages[i] & ~(WORLD_SUBMITTED | WORLD_CHECK | WORLD_CHECKED)) ==
            WORLD_READY) {
            const struct trp_event ev = {
                .kind = TRP_EVENT_STAGE_TASKS, .tasks = {.stage = {i}, .ntasks = 3}
            };
            w->stages[i] |= WORLD_ANSWERED;
            world_step(w, &ev);
            return true;
        }
    for (uint32_t i = 0; i < w->nstages; i++)
        if ((w->stages[i] & (WORLD_CHECK | WORLD_CHECKED | WORLD_ENDED)) ==
            WORLD_CHECK) {
            const struct trp_event ev = {.kind = TRP_EVENT_STAGE_CHECKED,
                                         .checked = {.stage = {i}}};
            w->stages[i] |= WORLD_CHECKED;
            world_step(w, &ev);
            return true;
        }
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct trp_event ev = {
            .kind = TRP_EVENT_EXECUTOR_LOST,
            .lost = {.executor = {i}, .reason = TRP_LOSS_RELEASED}
        };
        if (w->executors[i] == WORLD_REQUESTED)
            world_come(w, i, "late", NULL);
        else if (w->executors[i] == WORLD_RELEASED)
            world_step(w, &ev);
        else
            continue;
        return true;
    }
    if (!w->nattempts)
        return false;
    end_first(w);
    return true;
}

static void tell_waiting(const struct fuzz_world *w)
{
    struct trp_stage_view v;
    char why[200];
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++)
        if (trp_engine_stage(w->engine, (trp_stage_id){i}, &v) == 0)
            fprintf(stderr,
                    "stage %u, profile %u, %s: %u tasks, %u pending, %u running, %u "
                    "queued, %u succeeded, %u failed: %s\n",
                    i, v.profile.n, trp_outcome_name(v.outcome), v.ntasks, v.pending,
                    v.running, v.queued, v.succeeded, v.failed,
                    trp_engine_why_waiting(w->engine, w->now, (trp_stage_id){i}, why,
                                           sizeof why));
}

/* Runs out; false: nothing is due and jobs are left, or it takes for ever. */
static bool run_out(struct fuzz_world *w)
{
    const struct trp_event time = {.kind = TRP_EVENT_TIME};
    for (int i = 0; i < 20000; i++) {
        if (w->jobs_ended == w->njobs && !w->nattempts)
            return true;
        if (help(w))
            continue;
        int64_t due = trp_engine_next_timer(w->engine);
        if (due == INT64_MAX)
            return false;
        w->now = due > w->now ? due : w->now;
        world_step(w, &time);
    }
    return false;
}

static void finish_jobs(struct fuzz_world *w)
{
    bool over = run_out(w);
    if (!over)
        tell_waiting(w);
    FUZZ_CHECK(over, "%u of %u jobs ended, %u attempts are left", w->jobs_ended,
               w->njobs, w->nattempts);
}

void world_finish(struct fuzz_world *w)
{
    const struct trp_event drain = {.kind = TRP_EVENT_DRAIN};
    struct trp_engine_counts counts;
    struct trp_stage_view view;
    for (uint32_t i = 0; w->fixed && i < WORLD_PROFILES; i++)
        world_come(w, world_expect(w, w->profile[i]), "late", NULL);
    finish_jobs(w);
    world_step(w, &drain);
    for (uint32_t i = 0; i < w->ndatasets; i++) {
        const struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED,
                                     .released = {i}};
        world_step(w, &ev);
    }
    for (uint32_t i = 0; i < w->nexecutors; i++) {
        const struct trp_event ev = {
            .kind = TRP_EVENT_EXECUTOR_LOST,
            .lost = {.executor = {i}, .reason = TRP_LOSS_RELEASED}
        };
        if (w->executors[i] != WORLD_GONE)
            world_step(w, &ev);
    }
    trp_engine_counts(w->engine, &counts);
    FUZZ_CHECK(counts.executors_live == 0 && counts.executors_requested == 0,
               "executors are left: %u, and %u asked for", counts.executors_live,
               counts.executors_requested);
    FUZZ_CHECK(counts.bytes_per_task == 0, "tasks are left");
    FUZZ_CHECK(counts.launches == counts.ends, "%llu launches, %llu ends",
               (unsigned long long)counts.launches, (unsigned long long)counts.ends);
    for (uint32_t i = 0; i < trp_engine_stages(w->engine); i++)
        FUZZ_CHECK(trp_engine_stage(w->engine, (trp_stage_id){i}, &view) < 0,
                   "stage %u is left", i);
}

/* ---- begin and end ---- */

static trp_profile_id add_profile(trp_profiles *p, const char *name, int64_t cores,
                                  int64_t cpus, trp_amount gpu)
{
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_error err;
    trp_profile_builder_init(&b, name);
    int rc = 0;
    if (cores)
        rc = trp_profile_builder_executor(&b, "cores", cores, &err);
    if (rc == 0)
        rc = trp_profile_builder_task(&b, "cpus", cpus * TRP_ONE, &err);
    if (rc == 0 && gpu)
        rc = trp_profile_builder_executor(&b, "gpu", 2, &err);
    if (rc == 0 && gpu)
        rc = trp_profile_builder_task(&b, "gpu", gpu, &err);
    if (rc == 0)
        rc = trp_profiles_add(p, &b, &id, &err);
    FUZZ_CHECK(rc == 0, "profile %s: %s", name, err.text);
    return id;
}

bool world_begin(struct fuzz_world *w, const struct trp_engine_config *config)
{
    struct trp_profile_defaults d;
    trp_error err;
    memset(w, 0, sizeof *w);
    w->tell = getenv("FUZZ_TELL") != NULL;
    w->fixed = config->fixed;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 2;
    d.cores_configured = true;
    if (trp_profiles_new(&d, NULL, &w->profiles, &err) < 0)
        abort();
    w->profile[1] = add_profile(w->profiles, "wide", 5, 2, 0);
    w->profile[2] = add_profile(w->profiles, "gpu", 3, 1, TRP_ONE / 3);
    w->profile[3] = add_profile(w->profiles, "light", 0, 1, 0);
    int rc = trp_engine_new(config, w->profiles, &w->engine, &err);
    FUZZ_CHECK(rc == 0 || rc == TRP_EINVAL, "no engine: %d: %s", rc, err.text);
    if (rc < 0)
        trp_profiles_free(w->profiles);
    return rc == 0;
}

void world_end(struct fuzz_world *w)
{
    trp_engine_free(w->engine);
    trp_profiles_free(w->profiles);
}
