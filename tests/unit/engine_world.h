/*
 * A pretended cluster for engine tests: takes the engine's actions, keeps who runs
 * what, and lets a test end tasks, lose executors and move time. Executors come up at
 * once (or when the test says so) on hosts h<number>. Every step is followed by the
 * engine's own sanity check.
 */
#ifndef TESTS_UNIT_ENGINE_WORLD_H
#define TESTS_UNIT_ENGINE_WORLD_H

#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "conf/options.h"
#include "core/engine.h"

#define SECOND INT64_C(1000000000)

struct world_attempt {
    trp_attempt_id id;
    trp_stage_id stage;
    uint32_t task, number, executor;
    enum trp_level level;
    bool queued, kill, recall, gang;
};

struct world {
    trp_engine *engine;
    trp_profiles *profiles;
    int64_t now;
    GArray *attempts;  /* struct world_attempt, live, in order of launch */
    GArray *executors; /* uint32_t: asked for and not yet come */
    GArray *live;      /* uint32_t: live */
    GArray *verdicts;  /* struct trp_action of kind TASK_END */
    GArray *ended;     /* struct trp_action of kind STAGE_ENDED; text cut off */
    GPtrArray *texts;  /* texts of those */
    GArray *ready;     /* trp_stage_id that asked for tasks */
    GArray *given_up;  /* struct trp_action of kind TASK_GIVEN_UP */
    struct trp_action job_end;
    struct trp_action synced, outlived;
    uint32_t job_ends, releases, relabels, syncs, out_of_time, outlives;
    uint32_t may_add; /* requests that may be had from additional jobs, so far */
    uint32_t ahead, needed, waits_asked; /* executors asked for ahead; needed then */
    uint32_t checks_asked;
    char not_on[64]; /* where the last one asked for is not to be */
    bool manual;     /* executors do not come up by themselves */
    const char *(*host_of)(uint32_t executor);
    const struct trp_resource_addresses *resources;
    uint32_t nresources;
    bool unchecked; /* no sanity check after steps (speed) */
};

static inline void world_drain(struct world *w);

static inline void world_step(struct world *w, const struct trp_event *ev)
{
    trp_error err = {0};
    int rc = trp_engine_step(w->engine, w->now, ev, &err);
    if (rc < 0)
        g_error("step failed: %s", err.text);
    world_drain(w);
    if (!w->unchecked && trp_engine_sanity_check(w->engine, &err) < 0)
        g_error("after event %d: %s", (int)ev->kind, err.text);
}

static inline const char *world_host(uint32_t executor)
{
    static char names[8][32];
    static int at;
    at = (at + 1) % 8;
    snprintf(names[at], sizeof(names[at]), "h%u", executor);
    return names[at];
}

static inline void world_come(struct world *w, uint32_t executor)
{
    for (guint i = 0; i < w->executors->len; i++)
        if (g_array_index(w->executors, uint32_t, i) == executor)
            g_array_remove_index(w->executors, i--);
    g_array_append_val(w->live, executor);
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {.executor = {executor},
                  .host = w->host_of ? w->host_of(executor) : world_host(executor),
                  .resources = w->resources,
                  .nresources = w->nresources}
    };
    world_step(w, &ev);
}

static inline void world_forget_live(struct world *w, uint32_t executor)
{
    for (guint i = 0; i < w->live->len; i++)
        if (g_array_index(w->live, uint32_t, i) == executor)
            g_array_remove_index(w->live, i--);
}

static inline void world_lose_with(struct world *w, uint32_t executor,
                                   enum trp_loss reason, bool has_culprit,
                                   trp_attempt_id culprit)
{
    world_forget_live(w, executor);
    for (guint i = 0; i < w->attempts->len; i++)
        if (g_array_index(w->attempts, struct world_attempt, i).executor == executor)
            g_array_remove_index(w->attempts, i--);
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {.executor = {executor},
                 .reason = reason,
                 .has_culprit = has_culprit,
                 .culprit = culprit}
    };
    world_step(w, &ev);
}

static inline void world_lose(struct world *w, uint32_t executor, enum trp_loss reason)
{
    world_lose_with(w, executor, reason, false, (trp_attempt_id){0});
}

static inline struct world_attempt *world_find(struct world *w, trp_attempt_id id)
{
    for (guint i = 0; i < w->attempts->len; i++) {
        struct world_attempt *a = &g_array_index(w->attempts, struct world_attempt, i);
        if (a->id.n == id.n)
            return a;
    }
    return NULL;
}

static inline void world_take_action(struct world *w, const struct trp_action *a)
{
    struct world_attempt at = {0}, *found;
    switch (a->kind) {
    case TRP_ACTION_LAUNCH:
        at = (struct world_attempt){.id = a->launch.attempt,
                                    .stage = a->launch.stage,
                                    .task = a->launch.task,
                                    .number = a->launch.number,
                                    .executor = a->launch.executor.n,
                                    .level = a->launch.level,
                                    .queued = a->launch.queued};
        g_array_append_val(w->attempts, at);
        break;
    case TRP_ACTION_GANG:
        at = (struct world_attempt){.id = a->gang.attempt,
                                    .stage = a->gang.stage,
                                    .number = a->gang.number,
                                    .executor = TRP_NONE,
                                    .gang = true};
        g_array_append_val(w->attempts, at);
        break;
    case TRP_ACTION_KILL:
        found = world_find(w, a->kill.attempt);
        if (found) {
            found->kill |= !a->kill.recall;
            found->recall |= a->kill.recall;
        }
        break;
    case TRP_ACTION_TASK_END:
        g_array_append_val(w->verdicts, *a);
        break;
    case TRP_ACTION_TASK_GIVEN_UP:
        g_array_append_val(w->given_up, *a);
        break;
    case TRP_ACTION_STAGE_ENDED:
        g_array_append_val(w->ended, *a);
        g_ptr_array_add(w->texts, g_strdup(a->stage_ended.text));
        break;
    case TRP_ACTION_STAGE_READY:
        g_array_append_val(w->ready, a->stage);
        break;
    case TRP_ACTION_JOB_ENDED:
        w->job_end = *a;
        w->job_ends++;
        break;
    case TRP_ACTION_START_EXECUTOR:
        g_array_append_val(w->executors, a->executor.executor.n);
        w->ahead += a->executor.ahead;
        g_strlcpy(w->not_on, a->executor.not_on, sizeof(w->not_on));
        break;
    case TRP_ACTION_NEED_EXECUTOR:
        w->needed++;
        break;
    case TRP_ACTION_MAY_ADD:
        w->may_add++;
        break;
    case TRP_ACTION_ASK_WAIT:
        w->waits_asked++;
        break;
    case TRP_ACTION_STAGE_CHECK:
        w->checks_asked++;
        break;
    case TRP_ACTION_RELEASE_EXECUTOR:
        w->releases++;
        g_array_append_val(w->executors, a->executor.executor.n);
        g_array_index(w->executors, uint32_t, w->executors->len - 1) |= UINT32_C(1)
                                                                        << 31;
        break;
    case TRP_ACTION_SYNCED:
        w->synced = *a;
        w->syncs++;
        break;
    case TRP_ACTION_RELABEL_EXECUTOR:
        w->relabels++;
        break;
    case TRP_ACTION_OUT_OF_TIME:
        w->out_of_time++;
        break;
    case TRP_ACTION_OUTLIVED:
        w->outlived = *a;
        w->outlives++;
        break;
    default:
        break;
    }
}

/* Performs all actions; started executors come, released ones go. */
static inline void world_drain(struct world *w)
{
    const struct trp_action *a;
    while ((a = trp_engine_next(w->engine)))
        world_take_action(w, a);
    while (w->executors->len && !w->manual) {
        uint32_t n = g_array_index(w->executors, uint32_t, 0);
        g_array_remove_index(w->executors, 0);
        if (n >> 31)
            world_lose(w, n & ~(UINT32_C(1) << 31), TRP_LOSS_RELEASED);
        else
            world_come(w, n);
    }
}

/* Ends one attempt; the head of the queue of its stage there takes over. */
static inline void world_end(struct world *w, trp_attempt_id id,
                             enum trp_end_status status, int32_t code,
                             int64_t duration_ns)
{
    for (guint i = 0; i < w->attempts->len; i++) {
        struct world_attempt a = g_array_index(w->attempts, struct world_attempt, i);
        if (a.id.n != id.n)
            continue;
        g_array_remove_index(w->attempts, i);
        for (guint k = 0; k < w->attempts->len && !a.queued; k++) {
            struct world_attempt *b =
                &g_array_index(w->attempts, struct world_attempt, k);
            if (b->executor == a.executor && b->queued && b->stage.n == a.stage.n) {
                b->queued = false;
                break;
            }
        }
        break;
    }
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {
                  .attempt = id, .status = status, .code = code, .duration_ns = duration_ns}
    };
    world_step(w, &ev);
}

static inline void world_time(struct world *w, int64_t to)
{
    struct trp_event ev = {.kind = TRP_EVENT_TIME};
    while (trp_engine_next_timer(w->engine) <= to) {
        int64_t due = trp_engine_next_timer(w->engine);
        w->now = due > w->now ? due : w->now;
        world_step(w, &ev);
    }
    w->now = to;
}

static inline void world_submit(struct world *w, const struct trp_stage_spec *stages,
                                uint32_t n)
{
    struct trp_job_spec spec = {.stages = stages, .nstages = n};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &spec}};
    world_step(w, &ev);
}

/* Ends all running attempts successfully until none is left. */
static inline void world_run_out(struct world *w, int64_t duration_ns)
{
    while (w->attempts->len) {
        guint i = 0;
        while (g_array_index(w->attempts, struct world_attempt, i).queued)
            g_assert_cmpuint(++i, <, w->attempts->len);
        w->now += duration_ns;
        world_end(w, g_array_index(w->attempts, struct world_attempt, i).id,
                  TRP_END_SUCCESS, 0, duration_ns);
    }
}

static inline void world_init(struct world *w,
                              const struct trp_profile_defaults *defaults)
{
    struct trp_profile_defaults d;
    trp_error err;
    memset(w, 0, sizeof(*w));
    trp_options_profile_defaults(NULL, &d);
    if (trp_profiles_new(defaults ? defaults : &d, NULL, &w->profiles, &err) < 0)
        g_error("%s", err.text);
    w->attempts = g_array_new(FALSE, TRUE, sizeof(struct world_attempt));
    w->executors = g_array_new(FALSE, TRUE, sizeof(uint32_t));
    w->live = g_array_new(FALSE, TRUE, sizeof(uint32_t));
    w->verdicts = g_array_new(FALSE, TRUE, sizeof(struct trp_action));
    w->ended = g_array_new(FALSE, TRUE, sizeof(struct trp_action));
    w->texts = g_ptr_array_new_with_free_func(g_free);
    w->ready = g_array_new(FALSE, TRUE, sizeof(trp_stage_id));
    w->given_up = g_array_new(FALSE, TRUE, sizeof(struct trp_action));
}

static inline void world_start(struct world *w, const struct trp_engine_config *config)
{
    trp_error err;
    if (trp_engine_new(config, w->profiles, &w->engine, &err) < 0)
        g_error("%s", err.text);
}

/* With executors of so many cores. */
static inline void world_begin(struct world *w, const struct trp_engine_config *config,
                               int64_t cores)
{
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = cores;
    world_init(w, &d);
    world_start(w, config);
}

/* The default options, but nothing is queued ahead. */
static inline struct trp_engine_config world_config(uint32_t max_executors)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = max_executors;
    c.queue_ahead_ns = 0;
    return c;
}

static inline struct trp_stage_spec world_stage(const char *name, uint32_t ntasks)
{
    return (struct trp_stage_spec){.name = name, .tasks_known = true, .ntasks = ntasks};
}

/* The i-th of the live attempts. */
static inline const struct world_attempt *world_attempt_at(const struct world *w,
                                                           guint i)
{
    g_assert_cmpuint(i, <, w->attempts->len);
    return &g_array_index(w->attempts, struct world_attempt, i);
}

static inline trp_profile_id world_profile(struct world *w, const char *name,
                                           int64_t cores, const char *custom,
                                           int64_t amount, trp_amount task)
{
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_error err;
    trp_profile_builder_init(&b, name);
    int rc = trp_profile_builder_executor(&b, "cores", cores, &err);
    if (rc == 0 && custom)
        rc = trp_profile_builder_executor(&b, custom, amount, &err);
    if (rc == 0 && custom)
        rc = trp_profile_builder_task(&b, custom, task, &err);
    if (rc == 0)
        rc = trp_profiles_add(w->profiles, &b, &id, &err);
    if (rc < 0)
        g_error("%s", err.text);
    return id;
}

static inline void world_free(struct world *w)
{
    trp_engine_free(w->engine);
    trp_profiles_free(w->profiles);
    g_array_free(w->attempts, TRUE);
    g_array_free(w->executors, TRUE);
    g_array_free(w->live, TRUE);
    g_array_free(w->verdicts, TRUE);
    g_array_free(w->ended, TRUE);
    g_ptr_array_free(w->texts, TRUE);
    g_array_free(w->ready, TRUE);
    g_array_free(w->given_up, TRUE);
}

#endif
