/*
 * Gives the engine its events. What an event says of executors, stages and attempts is
 * noted before the engine takes it, so that its actions are held against that; actions.c
 * takes those.
 */
#include <stdarg.h>
#include <string.h>

#include "conf/options.h"
#include "core/engine_state.h"
#include "world_internal.h"

/* ---- breaking and telling ---- */

void world_break(struct world *w, const char *what, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (w->broken)
        return;
    w->broken = true;
    if (w->hooks->broken)
        w->hooks->broken(w, what, text);
    else
        g_error("%s: %s", what, text);
}

void world_say(const struct world *w, const char *fmt, ...)
{
    va_list ap;
    if (!w->explain)
        return;
    va_start(ap, fmt);
    vfprintf(w->explain, fmt, ap);
    va_end(ap);
}

void world_mix(struct world *w, uint64_t v)
{
    w->hash = (w->hash ^ v) * UINT64_C(1099511628211);
}

/* ---- lists ---- */

static struct world_stage *grow_stages(struct world *w, uint32_t id)
{
    while (w->nstages <= id) {
        GROW(w->stages, w->nstages);
        w->stages[w->nstages++] = (struct world_stage){0};
    }
    return &w->stages[id];
}

struct world_stage *world_stage_at(struct world *w, uint32_t id)
{
    if (id >= trp_engine_stages(w->engine) && id >= w->nstages)
        world_break(w, "a stage is there", "stage %u", id);
    return grow_stages(w, id);
}

void world_tell_stage(struct world *w, uint32_t stage, trp_profile_id profile)
{
    struct world_stage *s = grow_stages(w, stage);
    s->told = s->submitted = true;
    s->profile = profile;
}

struct world_executor *world_executor_at(struct world *w, uint32_t id)
{
    if (id > w->nexecutors + 100000)
        world_break(w, "executors are numbered one by one", "executor %u", id);
    while (w->nexecutors <= id) {
        GROW(w->executors, w->nexecutors);
        w->executors[w->nexecutors++] = (struct world_executor){0};
    }
    return &w->executors[id];
}

struct world_attempt *world_find(const struct world *w, trp_attempt_id id)
{
    for (uint32_t i = 0; i < w->nattempts; i++)
        if (w->attempts[i].id.n == id.n)
            return &w->attempts[i];
    return NULL;
}

const struct world_attempt *world_attempt_at(const struct world *w, uint32_t i)
{
    g_assert_cmpuint(i, <, w->nattempts);
    return &w->attempts[i];
}

uint32_t world_executor_in(const struct world *w, enum world_executor_state state,
                           uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < w->nexecutors; k++)
        n += w->executors[k].state == state;
    i = n ? i % n : 0;
    for (uint32_t k = 0; n && k < w->nexecutors; k++)
        if (w->executors[k].state == state && i-- == 0)
            return k;
    return TRP_NONE;
}

bool world_excludes(const struct world *w, const char *host)
{
    for (uint32_t i = 0; i < w->nexcluded_hosts; i++)
        if (g_strcmp0(host, w->excluded_hosts[i]) == 0)
            return true;
    return false;
}

bool world_all_over(const struct world *w)
{
    for (uint32_t i = 0; i < w->njobs; i++)
        if (!w->jobs[i].ended)
            return false;
    return w->nattempts == 0;
}

/* ---- what an event says ---- */

static void note_job(struct world *w, const struct trp_job_spec *spec)
{
    struct world_job j = {.first = trp_engine_stages(w->engine),
                          .nstages = spec->is_dataset ? 0 : spec->nstages};
    for (uint32_t i = 0; i < j.nstages; i++) {
        const struct trp_stage_spec *told = &spec->stages[i];
        struct world_stage *s = grow_stages(w, j.first + i);
        *s = (struct world_stage){.told = true, .profile = told->profile};
        s->once = !told->map;
    }
    GROW(w->jobs, w->njobs);
    w->jobs[w->njobs++] = j;
}

/* A job that is impossible has no number, and no stages. */
static void forget_job(struct world *w)
{
    w->njobs--;
    w->nstages = MIN(w->nstages, w->jobs[w->njobs].first);
}

static void note_added(struct world *w, const struct trp_event *ev)
{
    uint32_t id = ev->added.executor.n;
    const struct trp_executor *known = trp_executor_find(w->engine, ev->added.executor);
    if (!known)
        return;
    struct world_executor *x = world_executor_at(w, id);
    if (x->state == WORLD_UNKNOWN) /* one that was expected */
        *x = (struct world_executor){
            .state = WORLD_REQUESTED, .label = known->class, .shape = known->class};
    if (x->state != WORLD_REQUESTED)
        return;
    const struct trp_resource_profile *p =
        trp_profiles_get(w->profiles, (trp_profile_id){x->shape});
    x->state = WORLD_LIVE;
    x->cores = ev->added.cores ? ev->added.cores : p->cores;
    x->host = g_intern_string(ev->added.host);
    x->rack = g_intern_string(ev->added.rack);
    GROW(w->live, w->nlive);
    w->live[w->nlive++] = id;
}

static void note_gone(struct world *w, uint32_t id)
{
    if (id >= w->nexecutors || w->executors[id].state == WORLD_UNKNOWN)
        return;
    w->executors[id].state = WORLD_GONE;
    for (uint32_t i = 0; i < w->nlive; i++)
        if (w->live[i] == id)
            memmove(&w->live[i], &w->live[i + 1], (--w->nlive - i) * sizeof(*w->live));
}

static void note_decommissioned(struct world *w, const struct trp_event *ev)
{
    uint32_t id = ev->decommissioned.executor.n;
    if (id >= w->nexecutors || w->executors[id].state != WORLD_LIVE)
        return;
    if (!w->executors[id].decommissioned)
        w->executors[id].decommissioned_at = w->now;
    w->executors[id].decommissioned = true;
}

static void note_sync(struct world *w, const struct trp_event *ev)
{
    struct world_attempt *a = world_find(w, ev->sync.attempt);
    if (!a)
        return;
    a->waits = true;
    a->asks = ev->sync.kind == TRP_SYNC_COMMIT;
}

static void note_answer(struct world *w, trp_stage_id stage, bool checked)
{
    if (stage.n >= w->nstages)
        return;
    w->stages[stage.n].answered |= !checked && w->stages[stage.n].ready;
    w->stages[stage.n].checked |= checked && w->stages[stage.n].check;
}

static void note(struct world *w, const struct trp_event *ev)
{
    uint32_t id;
    switch (ev->kind) {
    case TRP_EVENT_JOB:
        note_job(w, ev->job.spec);
        break;
    case TRP_EVENT_STAGE_TASKS:
        note_answer(w, ev->tasks.stage, false);
        break;
    case TRP_EVENT_STAGE_REFUSED:
        note_answer(w, ev->refused_stage.stage, false);
        break;
    case TRP_EVENT_STAGE_CHECKED:
        note_answer(w, ev->checked.stage, true);
        break;
    case TRP_EVENT_EXECUTOR_ADDED:
        note_added(w, ev);
        break;
    case TRP_EVENT_EXECUTOR_REFUSED:
        id = ev->refused.executor.n;
        if (id < w->nexecutors &&
            (w->executors[id].state == WORLD_REQUESTED ||
             (w->executors[id].state == WORLD_RELEASED && !w->executors[id].came)))
            note_gone(w, id);
        break;
    case TRP_EVENT_EXECUTOR_LOST:
        note_gone(w, ev->lost.executor.n);
        break;
    case TRP_EVENT_EXECUTOR_DECOMMISSIONED:
        note_decommissioned(w, ev);
        break;
    case TRP_EVENT_SYNC:
        note_sync(w, ev);
        break;
    case TRP_EVENT_DRAIN:
        w->draining = true;
        break;
    default: /* the rest says nothing of what a world knows */
        break;
    }
}

/* ---- steps ---- */

/* Executors come and go as they are asked to. */
static void serve(struct world *w)
{
    while (w->nasked && !w->manual && !w->broken) {
        uint32_t n = w->asked[0];
        world_unask(w, 0);
        if (n & WORLD_GOES)
            world_lose(w, n & ~WORLD_GOES, TRP_LOSS_RELEASED);
        else
            world_come(w, n);
    }
}

void world_drain(struct world *w)
{
    const struct trp_action *a;
    uint32_t n = 0;
    while (!w->broken && (a = trp_engine_next(w->engine))) {
        if (w->trace)
            trp_engine_trace_action(w->trace, a);
        world_take(w, a);
        n++;
    }
    w->most_actions = MAX(w->most_actions, n);
    serve(w);
}

/* What a timer brought about may be due at once, too: a few times. */
static void check_timer(struct world *w, const struct trp_event *ev)
{
    bool again = ev->kind == TRP_EVENT_TIME && w->now == w->fired_at;
    w->fired = again ? w->fired + 1 : 0;
    w->fired_at = w->now;
    if (ev->kind == TRP_EVENT_TIME && w->fired >= w->repeats &&
        trp_engine_next_timer(w->engine) <= w->now)
        world_break(w, "a timer that has fired is due later", "due %lld, now %lld",
                    (long long)trp_engine_next_timer(w->engine), (long long)w->now);
}

int world_try(struct world *w, const struct trp_event *ev)
{
    trp_error err = {0};
    if (w->broken)
        return 0;
    note(w, ev);
    int rc = w->trace ? trp_engine_trace_step(w->trace, w->engine, w->now, ev, &err)
                      : trp_engine_step(w->engine, w->now, ev, &err);
    if (rc < 0 && ev->kind == TRP_EVENT_JOB)
        forget_job(w);
    const bool later = rc == TRP_EWAIT && ev->kind == TRP_EVENT_DATASET_FREED;
    if (rc < 0 && !later && (rc != TRP_EINVAL || !*err.text))
        world_break(w, "an event is taken, or impossible", "event %d: %d: %s",
                    (int)ev->kind, rc, err.text);
    world_drain(w);
    if (w->broken)
        return rc;
    if (!w->unchecked && trp_engine_sanity_check(w->engine, &err) < 0)
        world_break(w, "the engine's own check", "after event %d: %s", (int)ev->kind,
                    err.text);
    check_timer(w, ev);
    if (w->hooks->stepped && !w->broken)
        w->hooks->stepped(w);
    return rc;
}

void world_step(struct world *w, const struct trp_event *ev)
{
    if (world_try(w, ev) < 0)
        world_break(w, "a good event is taken", "event %d", (int)ev->kind);
}

void world_step_ignored(struct world *w, const struct trp_event *ev)
{
    struct trp_engine_counts before, after;
    world_time(w, w->now); /* what is due now happens before */
    if (w->broken)
        return;
    trp_engine_counts(w->engine, &before);
    uint64_t actions = w->actions;
    world_step(w, ev);
    trp_engine_counts(w->engine, &after);
    if (w->actions != actions || after.ignored_events != before.ignored_events + 1)
        world_break(w, "an event about nobody is ignored and counted",
                    "event %d: %d actions, %d ignored", (int)ev->kind,
                    (int)(w->actions - actions),
                    (int)(after.ignored_events - before.ignored_events));
}

void world_submit(struct world *w, const struct trp_stage_spec *stages, uint32_t n)
{
    const struct trp_job_spec spec = {
        .stages = stages, .nstages = n, .drains = w->job_drains};
    world_step(w, &(struct trp_event){.kind = TRP_EVENT_JOB, .job = {&spec}});
}

void world_tasks(struct world *w, uint32_t stage, uint32_t ntasks,
                 const uint32_t *first, const struct trp_place *places)
{
    struct trp_event ev = {.kind = TRP_EVENT_STAGE_TASKS};
    ev.tasks.stage.n = stage;
    ev.tasks.ntasks = ntasks;
    ev.tasks.prefer = (struct trp_preferences){first, places};
    world_step(w, &ev);
}

void world_unask(struct world *w, uint32_t i)
{
    g_assert_cmpuint(i, <, w->nasked);
    w->nasked--;
    memmove(&w->asked[i], &w->asked[i + 1], (w->nasked - i) * sizeof(*w->asked));
}

void world_come_on(struct world *w, uint32_t executor, const char *host,
                   const char *rack)
{
    for (uint32_t i = 0; i < w->nasked;)
        if (w->asked[i] == executor)
            world_unask(w, i);
        else
            i++;
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {
                  .executor = {executor},
                  .host = host,
                  .rack = rack,
                  .resources = w->resources,
                  .nresources = w->nresources,
                  }
    };
    world_step(w, &ev);
}

void world_come(struct world *w, uint32_t executor)
{
    char name[32];
    snprintf(name, sizeof name, "h%u", executor);
    world_come_on(w, executor, w->host_of ? w->host_of(executor) : name, NULL);
}

uint32_t world_expect(struct world *w, trp_profile_id profile)
{
    uint32_t n = w->trace ? trp_engine_trace_expect(w->trace, w->engine, profile).n
                          : trp_engine_expect_executor(w->engine, profile).n;
    struct world_executor *x = world_executor_at(w, n);
    if (x->state != WORLD_UNKNOWN)
        world_break(w, "an executor is expected once", "executor %u", n);
    *x = (struct world_executor){
        .state = WORLD_REQUESTED, .label = profile.n, .shape = profile.n};
    w->appeared = true;
    return n;
}

void world_lose_with(struct world *w, uint32_t executor, enum trp_loss reason,
                     bool has_culprit, trp_attempt_id culprit)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {
                 .executor = {executor},
                 .reason = reason,
                 .has_culprit = has_culprit,
                 .culprit = culprit,
                 }
    };
    world_step(w, &ev);
}

void world_lose(struct world *w, uint32_t executor, enum trp_loss reason)
{
    world_lose_with(w, executor, reason, false, (trp_attempt_id){0});
}

void world_refuse(struct world *w, uint32_t executor, enum trp_refusal how,
                  const char *text)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {{executor}, how, false, text, NULL}
    };
    world_step(w, &ev);
}

void world_end(struct world *w, trp_attempt_id id, enum trp_end_status status,
               int32_t code, int64_t duration_ns)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {
                  .attempt = id,
                  .status = status,
                  .code = code,
                  .duration_ns = duration_ns,
                  }
    };
    world_step(w, &ev);
}

void world_time(struct world *w, int64_t to)
{
    const struct trp_event ev = {.kind = TRP_EVENT_TIME};
    while (!w->broken && trp_engine_next_timer(w->engine) <= to) {
        w->now = MAX(w->now, trp_engine_next_timer(w->engine));
        world_step(w, &ev);
    }
    w->now = MAX(w->now, to);
}

void world_run_out(struct world *w, int64_t duration_ns)
{
    while (w->nattempts && !w->broken) {
        uint32_t i = 0;
        while (world_attempt_at(w, i)->queued)
            i++;
        w->now += duration_ns;
        world_end(w, w->attempts[i].id, TRP_END_SUCCESS, 0, duration_ns);
    }
}

/* ---- beginning and end ---- */

void world_init_with(struct world *w, trp_profiles *profiles)
{
    static const struct world_hooks none;
    memset(w, 0, sizeof(*w));
    w->hooks = &none;
    w->repeats = 5;
    w->fired_at = INT64_MIN;
    w->profiles = profiles;
    w->hash = UINT64_C(14695981039346656037);
}

void world_init(struct world *w, const struct trp_profile_defaults *defaults)
{
    struct trp_profile_defaults d;
    trp_profiles *profiles;
    trp_error err;
    trp_options_profile_defaults(NULL, &d);
    if (trp_profiles_new(defaults ? defaults : &d, NULL, &profiles, &err) < 0)
        g_error("%s", err.text);
    world_init_with(w, profiles);
}

int world_try_start(struct world *w, const struct trp_engine_config *config)
{
    trp_error err;
    w->config = *config;
    int rc = trp_engine_new(config, w->profiles, &w->engine, &err);
    if (rc < 0 && rc != TRP_EINVAL)
        world_break(w, "an engine can be made", "%s", err.text);
    return rc;
}

void world_start(struct world *w, const struct trp_engine_config *config)
{
    if (world_try_start(w, config) < 0)
        world_break(w, "an engine can be made", "it is refused");
}

void world_begin(struct world *w, const struct trp_engine_config *config, int64_t cores)
{
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = cores;
    world_init(w, &d);
    world_start(w, config);
}

void world_record(struct world *w, const char *file)
{
    trp_error err;
    if (trp_engine_trace_new(file, &w->config, w->profiles, false, &w->trace, &err) < 0)
        world_break(w, "a trace can be written", "%s", err.text);
}

void world_free(struct world *w)
{
    trp_error err;
    if (trp_engine_trace_close(w->trace, &err) < 0)
        world_break(w, "a trace can be written", "%s", err.text);
    trp_engine_free(w->engine);
    trp_profiles_free(w->profiles);
    for (uint32_t i = 0; i < w->nended; i++)
        g_free(w->texts[i]);
    void *lists[] = {w->attempts, w->executors, w->stages,   w->jobs,
                     w->asked,    w->live,      w->verdicts, w->ended,
                     w->given_up, w->texts,     w->ready};
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        g_free(lists[i]);
}

struct trp_engine_config world_config(uint32_t max_executors)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = max_executors;
    c.queue_ahead_ns = 0;
    return c;
}

struct trp_stage_spec world_stage(const char *name, uint32_t ntasks)
{
    return (struct trp_stage_spec){.name = name, .tasks_known = true, .ntasks = ntasks};
}

trp_profile_id world_profile(struct world *w, const char *name, int64_t cores,
                             const char *custom, int64_t amount, trp_amount task)
{
    struct trp_profile_builder b;
    trp_profile_id id = {0};
    trp_error err;
    int rc = 0;
    trp_profile_builder_init(&b, name);
    if (cores)
        rc = trp_profile_builder_executor(&b, "cores", cores, &err);
    else
        rc = trp_profile_builder_task(&b, "cpus", TRP_ONE, &err);
    if (rc == 0 && custom)
        rc = trp_profile_builder_executor(&b, custom, amount, &err);
    if (rc == 0 && custom)
        rc = trp_profile_builder_task(&b, custom, task, &err);
    if (rc == 0)
        rc = trp_profiles_add(w->profiles, &b, &id, &err);
    if (rc < 0)
        world_break(w, "profiles can be made", "%s: %s", name, err.text);
    return id;
}
