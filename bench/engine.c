/*
 * engine EXECUTORS TASKS hosts|none|fair: TASKS tasks through the engine alone, on
 * EXECUTORS pretended executors of 4 cores each, one a host; in one stage, or with
 * `fair` in 100 jobs that are there at once, each in a FAIR pool of its own, of weights
 * 1 to 4.
 *
 * With `hosts` and `fair` every task prefers three hosts, as a block with three
 * replicas does: one host anywhere and two in another rack, among 10,000 hosts in 500
 * racks over which the executors are spread evenly. So with 10,000 executors nearly
 * every task runs at home; with 100 most tasks never can, and the engine has to find
 * out at no cost.
 *
 * Executors may be had elsewhere, and a second stage waits for the last task: as in a
 * run, the engine looks ahead, and judges whether requests that wait are worth a job.
 *
 * Attempts end in the order of their launch, each 100 ms (pretended) after it. One
 * queue of them is all that the cluster costs; it stands outside of what is measured:
 * bench/run counts the instructions under engine_step and engine_next only (valgrind
 * --tool=callgrind --toggle-collect), what the engine does to take the stage in
 * included. Printed are the bytes a task takes in the engine, at their most, and what
 * the process takes. With `fair` failures are looked for places to exclude, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "conf/options.h"
#include "core/engine.h"
#include "core/sched/pools.h"

enum {
    HOSTS = 10000,
    RACKS = 500,
    REPLICAS = 3,
    CORES = 4,
    POOLS = 100,
    SAMPLES = 16, /* how often memory is looked at */
};

static const int64_t DURATION_NS = 100000000;

struct running {
    trp_attempt_id id;
    int64_t ends_ns;
};

struct cluster {
    trp_engine *engine;
    int64_t now;
    struct running *queue; /* a ring */
    uint32_t size, head, n;
    char (*host_names)[16];
    struct trp_place *places;
    uint32_t *first;
    uint32_t ntasks, done; /* of all jobs */
    uint32_t njobs, over;
    bool prefers;
    trp_profile_id last; /* of the stages that wait */
    size_t bytes_per_task;
};

static void fail(const char *what, const trp_error *err)
{
    fprintf(stderr, "engine: %s: %s\n", what, err->text);
    exit(4);
}

#if __has_attribute(noipa)
#define MEASURED __attribute__((noipa))
#else /* clang */
#define MEASURED __attribute__((noinline))
#endif

/* What is measured, and nothing else. */
MEASURED static int engine_step(struct cluster *c, const struct trp_event *ev,
                                trp_error *err)
{
    return trp_engine_step(c->engine, c->now, ev, err);
}

MEASURED static const struct trp_action *engine_next(struct cluster *c)
{
    return trp_engine_next(c->engine);
}

static void step(struct cluster *c, const struct trp_event *ev)
{
    trp_error err;
    if (engine_step(c, ev, &err) < 0)
        fail("step", &err);
}

static void launched(struct cluster *c, trp_attempt_id id)
{
    if (c->n == c->size) {
        fprintf(stderr, "engine: more attempts at once than there are slots\n");
        exit(4);
    }
    uint32_t at = c->head + c->n++;
    c->queue[at < c->size ? at : at - c->size] =
        (struct running){.id = id, .ends_ns = c->now + DURATION_NS};
}

/* Of a job the first stage has the tasks, and the second one has one. */
static void give_tasks(struct cluster *c, trp_stage_id stage)
{
    bool waits = stage.n % 2;
    struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_TASKS,
        .tasks = {.stage = stage, .ntasks = waits ? 1 : c->ntasks / c->njobs}
    };
    if (c->prefers && !waits) {
        ev.tasks.prefer.first = c->first + stage.n / 2 * ev.tasks.ntasks;
        ev.tasks.prefer.places = c->places;
    }
    step(c, &ev);
}

static void come(struct cluster *c, trp_executor_id executor)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {.executor = executor, .host = c->host_names[0]}
    };
    step(c, &ev);
}

static void perform(struct cluster *c)
{
    const struct trp_action *a;
    while ((a = engine_next(c))) {
        switch (a->kind) {
        case TRP_ACTION_LAUNCH:
            launched(c, a->launch.attempt);
            break;
        case TRP_ACTION_TASK_END:
            c->done += a->task_end.status == TRP_END_SUCCESS;
            break;
        case TRP_ACTION_STAGE_READY:
            give_tasks(c, a->stage);
            break;
        case TRP_ACTION_START_EXECUTOR: /* another of the first profile never comes */
            if (a->executor.profile.n == c->last.n)
                come(c, a->executor.executor);
            break;
        case TRP_ACTION_JOB_ENDED:
            c->over++;
            break;
        default:
            break;
        }
    }
}

static void end_first(struct cluster *c)
{
    struct running r = c->queue[c->head];
    c->head = c->head + 1 < c->size ? c->head + 1 : 0;
    c->n--;
    c->now = r.ends_ns;
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {
                  .attempt = r.id, .status = TRP_END_SUCCESS, .duration_ns = DURATION_NS}
    };
    step(c, &ev);
}

static void look_at_memory(struct cluster *c)
{
    struct trp_engine_counts counts;
    trp_engine_counts(c->engine, &counts);
    if (counts.bytes_per_task > c->bytes_per_task)
        c->bytes_per_task = counts.bytes_per_task;
}

static void run_out(struct cluster *c)
{
    uint32_t every = c->ntasks / SAMPLES + 1, next_look = 1;
    while (c->over < c->njobs) {
        int64_t due = trp_engine_next_timer(c->engine);
        if (c->n && c->queue[c->head].ends_ns <= due) {
            end_first(c);
        } else if (due != INT64_MAX) {
            struct trp_event ev = {.kind = TRP_EVENT_TIME};
            c->now = due > c->now ? due : c->now;
            step(c, &ev);
        } else {
            fprintf(stderr, "engine: stuck after %" PRIu32 " tasks\n", c->done);
            exit(1);
        }
        perform(c);
        if (c->done >= next_look) {
            look_at_memory(c);
            next_look += every;
        }
    }
}

/* ---- the pretended cluster ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 32);
}

/* Hosts rack, rack + RACKS, … stand in one rack. */
static void make_preferences(struct cluster *c)
{
    c->host_names = trp_bench_alloc(HOSTS, sizeof *c->host_names);
    for (uint32_t h = 0; h < HOSTS; h++)
        snprintf(c->host_names[h], sizeof *c->host_names, "node%05" PRIu32, h);
    if (!c->prefers)
        return;
    c->first = trp_bench_alloc((size_t)c->ntasks + 1, sizeof *c->first);
    c->places = trp_bench_alloc((size_t)c->ntasks * REPLICAS, sizeof *c->places);
    for (uint32_t t = 0; t < c->ntasks; t++) {
        uint64_t r = mix(t + 1);
        uint32_t one = (uint32_t)(r % HOSTS);
        uint32_t two = (uint32_t)((r >> 20) % HOSTS);
        uint32_t hosts[REPLICAS] = {one, two, (two + RACKS) % HOSTS};
        c->first[t] = t * REPLICAS;
        for (uint32_t i = 0; i < REPLICAS; i++)
            c->places[t * REPLICAS + i] = (struct trp_place){
                .host = c->host_names[hosts[i]], .executor = TRP_NONE};
    }
    c->first[c->ntasks] = c->ntasks * REPLICAS;
}

static void add_executors(struct cluster *c, trp_profile_id profile, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t host = (uint32_t)((uint64_t)i * HOSTS / n);
        char rack[16];
        snprintf(rack, sizeof rack, "rack%03" PRIu32, host % RACKS);
        struct trp_event ev = {
            .kind = TRP_EVENT_EXECUTOR_ADDED,
            .added = {.executor = trp_engine_expect_executor(c->engine, profile),
                      .host = c->host_names[host],
                      .rack = rack}
        };
        step(c, &ev);
        perform(c);
    }
}

static void submit(struct cluster *c, trp_profile_id profile,
                   const struct trp_pool_spec *pools)
{
    struct trp_parent_spec after = {.stage = 0};
    struct trp_stage_spec stages[] = {
        {.name = "stage",    .profile = profile},
        { .name = "last", .profile = c->last,      .parents = &after, .nparents = 1},
    };
    for (uint32_t i = 0; i < c->njobs; i++) {
        struct trp_job_spec job = {
            .stages = stages, .nstages = 2, .pool = pools ? pools[i].name : NULL};
        struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &job}};
        step(c, &ev);
        perform(c);
    }
}

/* There is room for one executor more of each profile, elsewhere. */
static void tell_fit(struct cluster *c, trp_profile_id profile, uint32_t executors)
{
    struct trp_event ev = {.kind = TRP_EVENT_PROFILE_FIT};
    ev.fit.profile = profile;
    ev.fit.executors = executors + 1;
    ev.fit.additional = 1;
    ev.fit.more = true;
    step(c, &ev);
    perform(c);
}

static void make_last_profile(struct cluster *c, trp_profiles *profiles)
{
    struct trp_profile_builder b;
    trp_error err;
    trp_profile_builder_init(&b, "last");
    if (trp_profile_builder_executor(&b, "cores", 1, &err) < 0 ||
        trp_profiles_add(profiles, &b, &c->last, &err) < 0)
        fail("profile", &err);
}

static void make_pools(struct trp_pool_spec *pools, char (*names)[16])
{
    static const char *const weights[] = {"1", "2", "3", "4"};
    for (uint32_t i = 0; i < POOLS; i++) {
        snprintf(names[i], sizeof names[i], "pool%02" PRIu32, i);
        pools[i] = (struct trp_pool_spec){.name = names[i], .weight = weights[i % 4]};
    }
}

int main(int argc, char **argv)
{
    struct cluster c = {0};
    trp_error err;
    struct trp_pool_spec pools[POOLS];
    char names[POOLS][16];
    if (argc != 4 || (strcmp(argv[3], "hosts") && strcmp(argv[3], "none") &&
                      strcmp(argv[3], "fair"))) {
        fprintf(stderr, "usage: engine EXECUTORS TASKS hosts|none|fair\n");
        return 2;
    }
    bool fair = strcmp(argv[3], "fair") == 0;
    uint32_t executors = trp_bench_number("EXECUTORS", argv[1], HOSTS);
    c.ntasks = trp_bench_number("TASKS", argv[2], 100000000);
    c.prefers = strcmp(argv[3], "none") != 0;
    c.njobs = fair ? POOLS : 1;
    c.ntasks -= c.ntasks % c.njobs;
    c.size = executors * CORES + c.njobs;
    c.queue = trp_bench_alloc(c.size, sizeof *c.queue);
    make_preferences(&c);

    struct trp_profile_defaults defaults;
    struct trp_engine_config config;
    trp_profiles *profiles = NULL;
    trp_options_profile_defaults(NULL, &defaults);
    defaults.executor_cores = CORES;
    trp_options_engine_config(NULL, &config);
    if (fair) {
        make_pools(pools, names);
        config.fair = config.exclusion.enabled = true;
        config.pools = pools;
        config.npools = POOLS;
    }
    if (trp_profiles_new(&defaults, NULL, &profiles, &err) < 0 ||
        trp_engine_new(&config, profiles, &c.engine, &err) < 0)
        fail("start", &err);
    make_last_profile(&c, profiles);
    uint64_t before_kib = trp_bench_peak_kib();
    tell_fit(&c, (trp_profile_id){0}, executors);
    tell_fit(&c, c.last, c.njobs - 1);
    add_executors(&c, (trp_profile_id){0}, executors);
    submit(&c, (trp_profile_id){0}, fair ? pools : NULL);
    run_out(&c);
    if (c.done != c.ntasks + c.njobs) {
        fprintf(stderr, "engine: %" PRIu32 " of %" PRIu32 " tasks ended\n", c.done,
                c.ntasks + c.njobs);
        return 1;
    }
    trp_bench_print("bytes_per_task", (double)c.bytes_per_task);
    trp_bench_print("engine_kib", (double)(trp_bench_peak_kib() - before_kib));
    trp_engine_free(c.engine);
    trp_profiles_free(profiles);
    free(c.queue);
    free(c.host_names);
    free(c.first);
    free(c.places);
    return 0;
}
