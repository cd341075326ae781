/* A small case as an engine whose rounds are made by hand. */
#include <stdlib.h>
#include <string.h>

#include "conf/options.h"
#include "core/engine_state.h"
#include "core/scenario/sched_alone.h"
#include "small_case.h"

#define MS INT64_C(1000000)

static const char *const resource_names[OR_RESOURCES] = {"gpu", "fpga"};
static const char *const host_names[OR_HOSTS] = {"h0", "h1", "h2", "h3"};
static const char *const rack_names[OR_RACKS] = {"r0", "r1"};

/* ---- opening ---- */

static trp_amount amount_of(int units)
{
    return units * (TRP_ONE / OR_UNIT) + units * (TRP_ONE % OR_UNIT) / OR_UNIT;
}

static int make_profiles(const struct or_setup *setup, trp_profiles **ret,
                         trp_error *err)
{
    const struct or_profile *p = setup->profiles;
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    d.kind = setup->fixed ? TRP_MANAGER_STATIC : TRP_MANAGER_ELASTIC;
    d.executor_cores = p[0].cores;
    d.cores_configured = true;
    d.task_cpus = p[0].cpus;
    for (int r = 0; r < OR_RESOURCES; r++) {
        if (!p[0].have[r])
            continue;
        struct trp_default_resource *v = &d.resources[d.nresources++];
        snprintf(v->name, sizeof(v->name), "%s", resource_names[r]);
        v->executor = p[0].have[r];
        v->task = amount_of(p[0].take[r]);
    }
    int rc = trp_profiles_new(&d, NULL, ret, err);
    for (int i = 1; rc == 0 && i < setup->nprofiles; i++) {
        static const char *const names[] = {"p0", "p1", "p2"};
        struct trp_profile_builder b;
        trp_profile_id id;
        trp_profile_builder_init(&b, names[i]);
        if (!p[i].task_only)
            rc = trp_profile_builder_executor(&b, "cores", p[i].cores, err);
        if (rc == 0)
            rc = trp_profile_builder_task(&b, "cpus", p[i].cpus * TRP_ONE, err);
        for (int r = 0; r < OR_RESOURCES; r++) {
            if (rc == 0 && p[i].have[r] && !p[i].task_only)
                rc = trp_profile_builder_executor(&b, resource_names[r], p[i].have[r],
                                                  err);
            if (rc == 0 && p[i].take[r])
                rc = trp_profile_builder_task(&b, resource_names[r],
                                              amount_of(p[i].take[r]), err);
        }
        if (rc == 0)
            rc = trp_profiles_add(*ret, &b, &id, err);
    }
    return rc;
}

static void configure(const struct or_setup *s, struct trp_engine_config *c)
{
    trp_options_engine_config(NULL, c);
    c->fixed = s->fixed;
    c->fair = s->fair;
    c->pack = s->pack;
    c->locality_legacy_reset = s->legacy_reset;
    c->host_files = s->shuffle_service;
    c->max_failures = (uint32_t)s->max_failures;
    c->reuse = TRP_REUSE_NEVER;
    c->barrier.reserve_ns = 0; /* as in Spark, and in the oracle */
    for (int l = 0; l < OR_LEVELS; l++)
        c->locality_wait_ns[l] = s->wait[l] * MS;
    c->exclusion.enabled = s->exclusion.on;
    c->exclusion.task_attempts_per_executor = (uint32_t)s->exclusion.task_per_executor;
    c->exclusion.task_attempts_per_node = (uint32_t)s->exclusion.task_per_host;
    c->exclusion.stage_tasks_per_executor = (uint32_t)s->exclusion.set_per_executor;
    c->exclusion.stage_executors_per_node =
        (uint32_t)s->exclusion.set_executors_per_host;
    c->exclusion.app_tasks_per_executor = (uint32_t)s->exclusion.app_per_executor;
    c->exclusion.app_executors_per_node = (uint32_t)s->exclusion.app_executors_per_host;
    c->exclusion.timeout_ns = s->exclusion.timeout * MS;
    c->exclusion.unschedulable_ns = s->exclusion.unschedulable_timeout * MS;
    c->speculation.enabled = s->speculation.on;
    c->speculation.efficiency = s->speculation.efficiency;
    c->speculation.quantile = s->speculation.quantile;
    c->speculation.multiplier = s->speculation.multiplier;
    c->speculation.min_runtime_ns = s->speculation.min_runtime * MS;
    c->speculation.duration_threshold_ns = s->speculation.threshold * MS;
    c->speculation.rate_multiplier = s->speculation.rate_multiplier;
    c->speculation.long_run_factor = s->speculation.long_factor;
}

static int make_pools(struct small_engine *e, trp_error *err)
{
    static const char *const names[] = {"default", "p1", "p2", "p3"};
    static const char *const numbers[] = {"0", "1", "2", "3"};
    struct trp_pool_spec v[OR_POOLS];
    uint32_t n = 0;
    for (int i = 1; i < e->setup->npools; i++) {
        const struct or_pool_spec *p = &e->setup->pools[i];
        v[n++] = (struct trp_pool_spec){
            .name = names[i],
            .mode = p->fair ? "FAIR" : "FIFO",
            .weight = numbers[p->weight],
            .min_share = numbers[p->min_share],
            .parent = p->parent == OR_NONE ? NULL : names[p->parent]};
    }
    return trp_sched_alone_begin(e->world.engine, n ? v : NULL, n,
                                 e->setup->manual_start, err);
}

/* ---- what it decided ---- */

static int set_of(const struct small_engine *e, uint32_t stage, uint32_t attempt)
{
    for (int i = 0; i < e->setup->nsets; i++)
        if (e->setup->sets[i].stage == (int)stage &&
            e->setup->sets[i].attempt == (int)attempt)
            return i;
    return OR_NONE;
}

static int resource_of(const char *name)
{
    int r = 0;
    while (r < OR_RESOURCES && strcmp(resource_names[r], name) != 0)
        r++;
    return r;
}

static struct or_decision launched(const struct small_engine *e,
                                   const struct trp_action *a)
{
    struct or_decision d = {.kind = OR_LAUNCH,
                            .set =
                                set_of(e, a->launch.stage.n, a->launch.stage_attempt),
                            .task = (int)a->launch.task,
                            .attempt = (int)a->launch.number,
                            .executor = (int)a->launch.executor.n,
                            .level = (enum or_level)a->launch.level,
                            .speculative = a->launch.speculative};
    const trp_ledger *b = trp_engine_ledger(e->world.engine, a->launch.executor);
    for (uint32_t i = 0; i < a->launch.ngrants; i++) {
        const struct trp_grant *g = &a->launch.grants[i];
        int r = resource_of(trp_ledger_resource_name(b, g->resource));
        if (r < OR_RESOURCES)
            d.addresses[r] |= 1u << g->address;
    }
    return d;
}

static void decide(struct small_engine *e, const struct or_decision *d)
{
    if (e->ndecisions < OR_DECISIONS)
        e->decisions[e->ndecisions++] = *d;
}

static struct small_engine *small_of(struct world *w)
{
    return (struct small_engine *)w;
}

static void take_launch(struct world *w, const struct trp_action *a)
{
    struct small_engine *e = small_of(w);
    const struct or_decision d = launched(e, a);
    if (e->nattempts < OR_ATTEMPTS)
        e->attempts[e->nattempts++] = a->launch.attempt;
    decide(e, &d);
}

static void take_killed(struct world *w, struct world_attempt *a)
{
    struct small_engine *e = small_of(w);
    const struct or_decision d = {.kind = OR_KILL,
                                  .set = set_of(e, a->stage.n, a->stage_attempt),
                                  .task = (int)a->task,
                                  .attempt = (int)a->number,
                                  .executor = OR_NONE};
    decide(e, &d);
}

static void decide_task(struct world *w, enum or_decision_kind kind, trp_stage_id stage,
                        uint32_t stage_attempt, uint32_t task)
{
    struct small_engine *e = small_of(w);
    const struct or_decision d = {.kind = kind,
                                  .set = set_of(e, stage.n, stage_attempt),
                                  .task = (int)task,
                                  .attempt = OR_NONE,
                                  .executor = OR_NONE};
    decide(e, &d);
}

static void take_end(struct world *w, const struct trp_action *a,
                     const struct world_attempt *was)
{
    (void)was;
    if (a->task_end.retried)
        decide_task(w, OR_REQUEUED, a->task_end.stage, a->task_end.stage_attempt,
                    a->task_end.task);
}

static void take_resubmitted(struct world *w, const struct trp_action *a)
{
    decide_task(w, OR_REQUEUED, a->task.stage, a->task.stage_attempt, a->task.task);
}

static void take_slow(struct world *w, const struct trp_action *a)
{
    decide_task(w, OR_SPECULATABLE, a->task.stage, a->task.stage_attempt, a->task.task);
}

static void take_set_ended(struct world *w, const struct trp_action *a)
{
    static const enum or_decision_kind ends[] = {OR_FINISHED, OR_ABORTED, OR_ZOMBIE};
    struct small_engine *e = small_of(w);
    const struct or_decision d = {.kind = ends[a->set.how],
                                  .set =
                                      set_of(e, a->set.stage.n, a->set.stage_attempt),
                                  .task = OR_NONE,
                                  .attempt = OR_NONE,
                                  .executor = OR_NONE};
    decide(e, &d);
}

static void take_broken(struct world *w, const char *what, const char *text)
{
    struct small_engine *e = small_of(w);
    snprintf(e->broken, sizeof e->broken, "%s: %s", what, text);
}

static const struct world_hooks hooks = {.broken = take_broken,
                                         .launch = take_launch,
                                         .killed = take_killed,
                                         .task_end = take_end,
                                         .resubmitted = take_resubmitted,
                                         .slow = take_slow,
                                         .set_ended = take_set_ended};

/* ---- beginning and end ---- */

int small_open(struct small_engine *e, const struct or_setup *setup, trp_error *err)
{
    struct trp_engine_config c;
    memset(e, 0, sizeof(*e));
    e->setup = setup;
    configure(setup, &c);
    trp_profiles *profiles;
    int rc = make_profiles(setup, &profiles, err);
    if (rc < 0)
        return rc;
    world_init_with(&e->world, profiles);
    e->world.hooks = &hooks;
    e->world.manual = true;
    e->world.alone = true;
    rc = world_try_start(&e->world, &c);
    if (rc < 0)
        return trp_error_set(err, rc, "the configuration is refused");
    rc = make_pools(e, err);
    for (int h = 0; rc == 0 && h < OR_HOSTS; h++)
        if (setup->rack[h] != OR_NONE) /* racks are known before executors come */
            trp_hosts_intern(&e->world.engine->hosts, host_names[h],
                             rack_names[setup->rack[h]]);
    for (int x = 0; rc == 0 && x < OR_EXECUTORS; x++) {
        trp_profile_id p = {(uint32_t)setup->executors[x].profile};
        if (trp_engine_expect_executor(e->world.engine, p).n != (uint32_t)x)
            rc = trp_error_set(err, TRP_ESTATE, "executors are not numbered from 0");
    }
    return rc;
}

void small_close(struct small_engine *e)
{
    world_free(&e->world);
}

/* ---- steps ---- */

/* What the last steps came to. */
static int result(const struct small_engine *e, trp_error *err)
{
    return e->world.broken ? trp_error_set(err, TRP_ESTATE, "%s", e->broken) : 0;
}

static int step(struct small_engine *e, const struct trp_event *ev, trp_error *err)
{
    world_step(&e->world, ev);
    return result(e, err);
}

int small_time(struct small_engine *e, int64_t now, trp_error *err)
{
    struct trp_event ev = {.kind = TRP_EVENT_TIME};
    e->ndecisions = 0;
    e->world.now = now * MS;
    return step(e, &ev, err);
}

int small_submit(struct small_engine *e, int set, trp_error *err)
{
    static const char *const names[] = {"default", "p1", "p2", "p3"};
    const struct or_set_spec *s = &e->setup->sets[set];
    uint32_t first[OR_TASKS + 1] = {0};
    struct trp_place places[OR_TASKS * OR_PREFERENCES];
    for (int t = 0; t < s->ntasks; t++) {
        first[t + 1] = first[t];
        for (int p = 0; p < s->tasks[t].npreferences; p++) {
            const struct or_preference *at = &s->tasks[t].preferences[p];
            places[first[t + 1]++] = (struct trp_place){
                host_names[at->host],
                at->executor == OR_NONE ? TRP_NONE : (uint32_t)at->executor};
        }
    }
    struct trp_preferences prefer = {.first = first, .places = places};
    struct trp_set_spec spec = {.attempt = (uint32_t)s->attempt,
                                .job = (uint32_t)s->job,
                                .pool = names[s->pool],
                                .map = s->map,
                                .barrier = s->barrier,
                                .ntasks = (uint32_t)s->ntasks,
                                .prefer = first[s->ntasks] ? &prefer : NULL};
    e->sets[set] =
        trp_sched_alone_submit(e->world.engine, (uint32_t)s->stage,
                               (trp_profile_id){(uint32_t)s->profile}, &spec, err);
    world_tell_stage(&e->world, (uint32_t)s->stage,
                     (trp_profile_id){(uint32_t)s->profile});
    world_drain(&e->world);
    return e->sets[set] ? result(e, err) : TRP_ESTATE;
}

int small_add(struct small_engine *e, int executor, trp_error *err)
{
    static const char *const addresses[OR_ADDRESSES] = {"0", "1", "2"};
    struct trp_resource_addresses v[OR_RESOURCES];
    int host = e->setup->executors[executor].host, rack = e->setup->rack[host];
    const struct or_profile *p =
        &e->setup->profiles[e->setup->executors[executor].profile];
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_ADDED};
    for (int r = 0; r < OR_RESOURCES; r++)
        if (p->have[r])
            v[ev.added.nresources++] = (struct trp_resource_addresses){
                resource_names[r], addresses, (uint32_t)p->have[r]};
    ev.added.executor.n = (uint32_t)executor;
    ev.added.host = host_names[host];
    ev.added.rack = rack == OR_NONE ? NULL : rack_names[rack];
    ev.added.resources = v;
    return step(e, &ev, err);
}

int small_decommission(struct small_engine *e, int executor, trp_error *err)
{
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED};
    ev.decommissioned.executor.n = (uint32_t)executor;
    return step(e, &ev, err);
}

int small_lose(struct small_engine *e, int executor, enum or_loss loss, trp_error *err)
{
    static const enum trp_loss reasons[] = {TRP_LOSS_EXITED, TRP_LOSS_EXITED,
                                            TRP_LOSS_RELEASED, TRP_LOSS_DECOMMISSIONED,
                                            TRP_LOSS_HEARTBEAT};
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_LOST};
    ev.lost.executor.n = (uint32_t)executor;
    ev.lost.reason = reasons[loss];
    ev.lost.not_by_app = loss == OR_EXITED_NOT_BY_APP;
    return step(e, &ev, err);
}

int small_end(struct small_engine *e, int attempt, enum or_end status, int64_t ran,
              int64_t records, trp_error *err)
{
    static const enum trp_end_status how[] = {
        TRP_END_SUCCESS, TRP_END_EXIT,  TRP_END_RESULT_LOST, TRP_END_KILLED,
        TRP_END_DENIED,  TRP_END_FETCH, TRP_END_UNWRITABLE,  TRP_END_EXISTS};
    struct trp_event ev = {.kind = TRP_EVENT_TASK_ENDED};
    ev.ended.attempt = e->attempts[attempt];
    ev.ended.status = how[status];
    ev.ended.code = 1;
    ev.ended.duration_ns = ran * MS;
    ev.ended.records = (uint64_t)records;
    ev.ended.from = (struct trp_fetch_source){.map = TRP_NONE, .executor = {TRP_NONE}};
    return step(e, &ev, err);
}

void small_started(struct small_engine *e, int attempt)
{
    uint32_t slot = trp_attempt_find(e->world.engine, e->attempts[attempt]);
    if (slot != TRP_NONE)
        trp_sched_alone_started(e->world.engine, slot);
}

int small_progress(struct small_engine *e, int attempt, int64_t records, trp_error *err)
{
    struct trp_event ev = {.kind = TRP_EVENT_TASK_PROGRESS};
    ev.progress.attempt = e->attempts[attempt];
    ev.progress.records = (uint64_t)records;
    return step(e, &ev, err);
}

void small_speculate(struct small_engine *e)
{
    trp_copies_check(e->world.engine);
    world_drain(&e->world);
}

void small_tick(struct small_engine *e)
{
    trp_exclusion_expire(e->world.engine);
    world_drain(&e->world);
}

int small_round(struct small_engine *e, const int *executors, int n, bool full,
                trp_error *err)
{
    uint32_t v[OR_EXECUTORS];
    for (int i = 0; i < n; i++)
        v[i] = (uint32_t)executors[i];
    int rc = trp_sched_alone_round(e->world.engine, v, (uint32_t)n, full, err);
    world_drain(&e->world);
    return rc < 0 ? rc : result(e, err);
}

/* ---- what it is in ---- */

static bool same_executor(const struct small_engine *e, const struct oracle *o, int x,
                          bool exclusions, char *buf, size_t size)
{
    const struct trp_executor *have =
        trp_executor_find(e->world.engine, (trp_executor_id){(uint32_t)x});
    const struct or_executor *want = &o->executors[x];
    if (want->state != OR_LIVE)
        return true;
    if (!have || have->cores_free != want->cores) {
        snprintf(buf, size, "e%d: free cores %d, engine %lld", x, want->cores,
                 have ? (long long)have->cores_free : -1);
        return false;
    }
    for (uint32_t r = 0; r < trp_ledger_resources(have->ledger); r++) {
        int mine = resource_of(trp_ledger_resource_name(have->ledger, r));
        for (uint32_t i = 0; i < trp_ledger_addresses(have->ledger, r); i++) {
            trp_amount left = trp_ledger_left(have->ledger, r, i);
            trp_amount off = left - amount_of(want->left[mine][i]);
            if (off >= 0 && off < OR_UNIT) /* 1/3 is cut off after twelve digits */
                continue;
            snprintf(buf, size, "e%d: %s %u left %d/60, engine %lld", x,
                     resource_names[mine], i, want->left[mine][i], (long long)left);
            return false;
        }
    }
    bool out = or_app_excluded(o, x);
    if (exclusions && out != have->excluded) {
        snprintf(buf, size, "e%d: excluded %d, engine %d", x, out, have->excluded);
        return false;
    }
    return true;
}

static bool same_levels(const struct trp_task_set *have, const struct or_set *want)
{
    if (want->nlevels != have->nlevels)
        return false;
    for (int i = 0; i < want->nlevels; i++)
        if ((int)want->levels[i] != have->levels[i])
            return false;
    return true;
}

static bool same_set(const struct small_engine *e, const struct oracle *o, int s,
                     char *buf, size_t size)
{
    const struct trp_task_set *have = e->sets[s];
    const struct or_set *want = &o->sets[s];
    if (!want->submitted || want->zombie)
        return true;
    if (have->zombie) {
        snprintf(buf, size, "set %d: a zombie in the engine only", s);
        return false;
    }
    if ((want->abort_at == INT64_MAX) != (have->abort_at == INT64_MAX)) {
        snprintf(buf, size, "set %d: abort timer at %lld, engine %lld", s,
                 (long long)want->abort_at, (long long)(have->abort_at / MS));
        return false;
    }
    for (int x = 0; x < OR_EXECUTORS; x++) {
        const struct trp_executor *ex =
            trp_executor_find(e->world.engine, (trp_executor_id){(uint32_t)x});
        if (o->executors[x].state != OR_LIVE || !ex)
            continue;
        bool out = trp_health_at(have->health, (uint32_t)x, ex->host) == TRP_HEALTH_OUT;
        if (out != or_set_excluded(o, s, x)) {
            snprintf(buf, size, "set %d: e%d excluded %d, engine %d", s, x, !out, out);
            return false;
        }
    }
    if (have->prefer_first && !same_levels(have, want)) {
        snprintf(buf, size, "set %d: %d levels, engine %d", s, want->nlevels,
                 have->nlevels);
        return false;
    }
    if (have->prefer_first &&
        (have->current != want->current || have->locality_clock_ns != want->last * MS ||
         (have->nothing_rejected != want->no_reject && !o->setup->legacy_reset))) {
        snprintf(buf, size,
                 "set %d: clock at level %d since %lld, no reject %d; engine %d, %lld, "
                 "%d",
                 s, want->current, (long long)want->last, want->no_reject,
                 have->current, (long long)(have->locality_clock_ns / MS),
                 have->nothing_rejected);
        return false;
    }
    return true;
}

bool small_same_state(const struct small_engine *e, const struct oracle *o,
                      bool exclusions, char *buf, size_t size)
{
    for (int x = 0; x < OR_EXECUTORS; x++)
        if (!same_executor(e, o, x, exclusions, buf, size))
            return false;
    for (int s = 0; s < e->setup->nsets; s++)
        if (!same_set(e, o, s, buf, size))
            return false;
    return true;
}
