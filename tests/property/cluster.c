/* Gives the engine its events, and what it answers to actions.c. */
#include "cluster.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define BREAK(c, broken, ...) verdict_break((c)->verdict, broken, __VA_ARGS__)

void cluster_say(struct cluster *c, const char *fmt, ...)
{
    if (!c->explain)
        return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(c->explain, fmt, ap);
    va_end(ap);
}

const char *cluster_host(uint32_t host)
{
    static const char *const names[MAX_HOSTS] = {"h0", "h1", "h2", "h3", "h4"};
    return names[host % MAX_HOSTS];
}

const char *cluster_rack(uint32_t host)
{
    static const char *const names[MAX_HOSTS] = {"r0", "r0", "r1", "r1", NULL};
    return names[host % MAX_HOSTS];
}

void cluster_open(struct cluster *c, const struct trp_engine_config *config,
                  trp_profiles *profiles, struct verdict *verdict, FILE *explain)
{
    trp_error err;
    memset(c, 0, sizeof(*c));
    c->verdict = verdict;
    c->explain = explain;
    c->profiles = profiles;
    c->config = *config;
    c->memory_before = memory_held();
    c->hash = UINT64_C(14695981039346656037);
    if (trp_engine_new(config, profiles, &c->engine, &err) < 0)
        BREAK(c, "an engine can be made", "%s", err.text);
}

void cluster_close(struct cluster *c)
{
    trp_engine_free(c->engine);
    trp_profiles_free(c->profiles);
}

/* ---- events ---- */

static void perform(struct cluster *c)
{
    const struct trp_action *a;
    uint32_t n = 0;
    while (!c->verdict->broken[0] && (a = trp_engine_next(c->engine))) {
        cluster_take(c, a);
        n++;
    }
    c->actions += n;
    if (n > c->most_actions)
        c->most_actions = n;
}

static int step(struct cluster *c, const struct trp_event *ev, trp_error *err)
{
    err->text[0] = '\0';
    int rc = trp_engine_step(c->engine, c->now, ev, err);
    perform(c);
    if (!c->verdict->broken[0])
        check_everything(c);
    return rc;
}

void cluster_step(struct cluster *c, const struct trp_event *ev)
{
    trp_error err;
    if (c->verdict->broken[0])
        return;
    if (step(c, ev, &err) < 0)
        BREAK(c, "a good event is taken", "event %d: %s", (int)ev->kind, err.text);
    else if (ev->kind == TRP_EVENT_TIME && trp_engine_next_timer(c->engine) <= c->now)
        BREAK(c, "a timer that has fired is due later", "due %lld, now %lld",
              (long long)trp_engine_next_timer(c->engine), (long long)c->now);
    /* Derived profiles: the cluster has room for a few of their executors. */
    while (c->nnew_profiles && !c->verdict->broken[0]) {
        struct trp_event fit = {.kind = TRP_EVENT_PROFILE_FIT};
        fit.fit.profile.n = c->new_profiles[--c->nnew_profiles % MAX_PROFILES];
        fit.fit.executors = 4;
        fit.fit.additional = 2;
        cluster_step(c, &fit);
    }
}

void cluster_step_ignored(struct cluster *c, const struct trp_event *ev)
{
    struct trp_engine_counts counts;
    trp_error err;
    uint64_t actions = c->actions;
    if (c->verdict->broken[0])
        return;
    trp_engine_counts(c->engine, &counts);
    uint64_t before = counts.ignored_events;
    int rc = step(c, ev, &err);
    trp_engine_counts(c->engine, &counts);
    if (rc < 0 || c->actions != actions || counts.ignored_events != before + 1)
        BREAK(c, "an event about nobody is ignored and counted",
              "event %d: %llu actions, ignored %llu after %llu, %s", (int)ev->kind,
              (unsigned long long)(c->actions - actions),
              (unsigned long long)counts.ignored_events, (unsigned long long)before,
              err.text);
}

void cluster_time(struct cluster *c, int64_t to)
{
    struct trp_event ev = {.kind = TRP_EVENT_TIME};
    while (!c->verdict->broken[0] && trp_engine_next_timer(c->engine) <= to) {
        int64_t due = trp_engine_next_timer(c->engine);
        c->now = due > c->now ? due : c->now;
        cluster_step(c, &ev);
    }
    c->now = to > c->now ? to : c->now;
}

void cluster_submit(struct cluster *c, const struct trp_stage_spec *v, uint32_t n)
{
    struct trp_job_spec spec = {.stages = v, .nstages = n};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &spec}};
    if (c->njobs == MAX_JOBS)
        return;
    c->jobs[c->njobs] = (struct cl_job){.first = c->nstages, .nstages = n};
    if (trp_engine_stages(c->engine) != c->nstages)
        BREAK(c, "stages are numbered one by one", "next is %u",
              trp_engine_stages(c->engine));
    for (uint32_t i = 0; i < n; i++) {
        struct cl_stage *s = &c->stages[c->nstages + i];
        *s = (struct cl_stage){.spec = v[i], .job = c->njobs};
        s->ntasks = v[i].tasks_known ? v[i].ntasks : 0;
        for (uint32_t k = 0; k < v[i].nparents; k++) {
            s->parents[k] = v[i].parents[k];
            s->parents[k].stage += c->nstages;
        }
        s->spec.parents = s->parents;
    }
    c->nstages += n;
    c->njobs++;
    cluster_step(c, &ev);
}

void cluster_answer(struct cluster *c, uint32_t stage, uint32_t ntasks,
                    const struct cl_task *t)
{
    uint32_t first[MAX_TASKS + 1] = {0};
    struct trp_place places[MAX_TASKS * MAX_PREFERENCES];
    uint8_t done[MAX_TASKS + 1] = {0};
    struct cl_stage *s = &c->stages[stage];
    s->ntasks = ntasks;
    for (uint32_t i = 0; i < ntasks; i++) {
        s->tasks[i] = t[i];
        s->ndone += t[i].done;
        done[i] = t[i].done;
        first[i + 1] = first[i] + t[i].nplaces;
        for (uint32_t k = 0; k < t[i].nplaces; k++) {
            places[first[i] + k] = t[i].places[k];
            s->prefers = true;
            s->prefers_executors |= t[i].places[k].executor != TRP_NONE;
        }
    }
    struct trp_event ev = {.kind = TRP_EVENT_STAGE_TASKS};
    ev.tasks.stage.n = stage;
    ev.tasks.ntasks = ntasks;
    ev.tasks.done = done;
    if (s->prefers) {
        ev.tasks.prefer.first = first;
        ev.tasks.prefer.places = places;
    }
    cluster_step(c, &ev);
    s->ready = false;
}

void cluster_come(struct cluster *c, uint32_t executor, uint32_t host, uint32_t more)
{
    static const char *const names[] = {"gpu", "fpga"};
    static const char *const addresses[MAX_ADDRESSES] = {"0", "1", "2", "10"};
    struct trp_resource_addresses v[MAX_RESOURCES];
    struct cl_executor *x = &c->executors[executor];
    const struct trp_resource_profile *p =
        trp_profiles_get(c->profiles, (trp_profile_id){x->shape});
    uint32_t n = 0;
    x->state = CL_LIVE;
    x->host = host % MAX_HOSTS;
    x->cores = p->cores;
    c->quiet_since = c->now;
    /* Resources stand in order of name in the ledger: fpga is 0, gpu is 1. */
    for (uint32_t r = MAX_RESOURCES; r-- > 0;) {
        const struct trp_custom *custom = trp_profile_custom(p, names[r]);
        uint32_t has = custom ? (uint32_t)custom->executor : 0;
        has += has && more ? 1 : 0;
        has = has < MAX_ADDRESSES ? has : MAX_ADDRESSES;
        if (!has)
            continue;
        x->naddresses[n] = has;
        v[n++] = (struct trp_resource_addresses){names[r], addresses, has};
    }
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_ADDED};
    ev.added.executor.n = executor;
    ev.added.host = cluster_host(host);
    ev.added.rack = cluster_rack(host);
    ev.added.resources = v;
    ev.added.nresources = n;
    cluster_step(c, &ev);
}

void cluster_refuse(struct cluster *c, uint32_t executor, bool never)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_REFUSED};
    ev.refused.executor.n = executor;
    ev.refused.how = never ? TRP_REFUSED_NEVER : TRP_REFUSED_FAILED;
    ev.refused.text = "the cluster says no";
    c->executors[executor].state = CL_GONE;
    cluster_step(c, &ev);
}

void cluster_lose(struct cluster *c, uint32_t executor, enum trp_loss reason,
                  const trp_attempt_id *culprit)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_LOST};
    ev.lost.executor.n = executor;
    ev.lost.reason = reason;
    ev.lost.has_culprit = culprit != NULL;
    ev.lost.culprit = culprit ? *culprit : (trp_attempt_id){0};
    ev.lost.code = 11;
    c->executors[executor].state = CL_GONE;
    cluster_step(c, &ev);
}

void cluster_end(struct cluster *c, uint32_t attempt, enum trp_end_status status,
                 int32_t code, int64_t duration_ns)
{
    struct trp_event ev = {.kind = TRP_EVENT_TASK_ENDED};
    ev.ended.attempt = c->attempts[attempt].id;
    ev.ended.status = status;
    ev.ended.code = code;
    ev.ended.duration_ns = duration_ns;
    cluster_step(c, &ev);
}

void cluster_decommission(struct cluster *c, uint32_t executor)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED};
    ev.decommissioned.executor.n = executor;
    c->executors[executor].decommissioned = true;
    cluster_step(c, &ev);
}
