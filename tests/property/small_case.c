/* Setups of small cases from knobs. */
#include "small_case.h"

#include <string.h>

enum knob {
    HOSTS,
    RACKS,
    PLACEMENT, /* seed: executors on hosts, their profiles */
    PROFILES,
    CORES,
    CPUS,
    GPUS, /* addresses, and what tasks take of them: index into `amounts` */
    GPU_AMOUNT,
    FPGAS,
    FPGA_AMOUNT,
    FIXED,
    FAIR,
    POOLS, /* besides the default */
    POOL_SEED,
    PACK,
    LEGACY,
    SERVICE,
    MANUAL_START,
    MAX_FAILURES,
    WAIT_PROCESS,
    WAIT_NODE,
    WAIT_RACK,
    EXCLUSION,
    TASK_PER_EXECUTOR,
    TASK_PER_HOST,
    SET_PER_EXECUTOR,
    SET_HOSTS,
    APP_PER_EXECUTOR,
    APP_HOSTS,
    TIMEOUT,
    UNSCHEDULABLE,
    SPECULATION,
    EFFICIENCY,
    QUANTILE,
    MULTIPLIER,
    THRESHOLD,
    SETS,
    SET_KNOBS, /* from here five for each set */
};
enum { S_SEED, S_TASKS, S_FLAGS, S_PREFERENCES, S_JOB, S_KNOBS };
enum { FLAG_BARRIER = 1, FLAG_MAP = 2, FLAG_AGAIN = 4 }; /* again: of the set before */

#define SET(n)                                                                         \
    "set" #n "_seed", "set" #n "_tasks", "set" #n "_flags", "set" #n "_preferences",   \
        "set" #n "_job"
const char *const small_knobs[] = {"hosts",
                                   "racks",
                                   "placement",
                                   "profiles",
                                   "cores",
                                   "cpus",
                                   "gpus",
                                   "gpu_amount",
                                   "fpgas",
                                   "fpga_amount",
                                   "fixed",
                                   "fair",
                                   "pools",
                                   "pool_seed",
                                   "pack",
                                   "legacy",
                                   "service",
                                   "manual_start",
                                   "max_failures",
                                   "wait_process",
                                   "wait_node",
                                   "wait_rack",
                                   "exclusion",
                                   "task_per_executor",
                                   "task_per_host",
                                   "set_per_executor",
                                   "set_hosts",
                                   "app_per_executor",
                                   "app_hosts",
                                   "timeout",
                                   "unschedulable",
                                   "speculation",
                                   "efficiency",
                                   "quantile",
                                   "multiplier",
                                   "threshold",
                                   "sets",
                                   SET(0),
                                   SET(1),
                                   SET(2),
                                   SET(3),
                                   SET(4),
                                   NULL};
_Static_assert(sizeof(small_knobs) / sizeof(*small_knobs) ==
                   SET_KNOBS + OR_SETS * S_KNOBS + 1,
               "a name for each knob");

void small_make_knobs(uint32_t *k, struct rng *r)
{
    k[HOSTS] = rng_below(r, OR_HOSTS);
    k[RACKS] = rng_one_in(r, 2) ? rng_below(r, OR_RACKS + 1) : 0;
    k[PLACEMENT] = rng_below(r, 1000);
    k[PROFILES] = rng_one_in(r, 3) ? rng_below(r, OR_PROFILES) : 0;
    k[CORES] = rng_below(r, 3);
    k[CPUS] = rng_one_in(r, 5) ? 1 : 0;
    k[GPUS] = rng_one_in(r, 3) ? 1 + rng_below(r, OR_ADDRESSES) : 0;
    k[GPU_AMOUNT] = rng_below(r, 8);
    k[FPGAS] = rng_one_in(r, 6) ? 1 + rng_below(r, OR_ADDRESSES) : 0;
    k[FPGA_AMOUNT] = rng_below(r, 8);
    k[FIXED] = rng_below(r, 2);
    k[FAIR] = rng_one_in(r, 3);
    k[POOLS] = k[FAIR] && rng_one_in(r, 2) ? rng_below(r, OR_POOLS) : 0;
    k[POOL_SEED] = rng_below(r, 1000);
    k[PACK] = rng_one_in(r, 3);
    k[LEGACY] = rng_one_in(r, 8);
    k[SERVICE] = rng_one_in(r, 4);
    k[MANUAL_START] = rng_one_in(r, 5);
    k[MAX_FAILURES] = rng_below(r, 4);
    for (int i = WAIT_PROCESS; i <= WAIT_RACK; i++)
        k[i] = rng_one_in(r, 4) ? 0 : 1 + rng_below(r, 6);
    k[EXCLUSION] = rng_one_in(r, 3);
    for (int i = TASK_PER_EXECUTOR; i <= APP_HOSTS; i++)
        k[i] = rng_one_in(r, 2) ? 0 : rng_below(r, 3);
    k[TIMEOUT] = rng_below(r, 60);
    k[UNSCHEDULABLE] = rng_below(r, 20);
    k[SPECULATION] = rng_one_in(r, 3);
    k[EFFICIENCY] = rng_one_in(r, 3);
    k[QUANTILE] = rng_below(r, 5);
    k[MULTIPLIER] = rng_below(r, 5);
    k[THRESHOLD] = rng_one_in(r, 4) ? 1 + rng_below(r, 5) : 0;
    k[SETS] = rng_below(r, OR_SETS);
    for (int i = 0; i < OR_SETS; i++) {
        uint32_t *s = &k[SET_KNOBS + i * S_KNOBS];
        s[S_SEED] = rng_below(r, 1000);
        s[S_TASKS] = rng_one_in(r, 3) ? rng_below(r, OR_TASKS) : rng_below(r, 4);
        s[S_FLAGS] = rng_one_in(r, 5) ? FLAG_BARRIER : 0;
        s[S_FLAGS] |= rng_one_in(r, 2) ? FLAG_MAP : 0;
        s[S_FLAGS] |= rng_one_in(r, 8) ? FLAG_AGAIN : 0;
        s[S_PREFERENCES] = rng_below(r, 3);
        s[S_JOB] = rng_below(r, 3);
    }
}

/* ---- the setup ---- */

/* In sixtieths; all legal in a full profile. */
static const int amounts[8] = {60, 30, 20, 15, 12, 18, 24, 120};

static int amount_within(uint32_t which, int have)
{
    int a = amounts[which % 8];
    return a > have * OR_UNIT ? OR_UNIT : a;
}

static void setup_profiles(const uint32_t *k, struct or_setup *s)
{
    int cores = 1 + (int)k[CORES] % 4, cpus = 1 + (int)k[CPUS] % 2;
    struct or_profile *p = s->profiles;
    s->nprofiles = 1 + (int)k[PROFILES] % OR_PROFILES;
    p[0] = (struct or_profile){.cores = cores < cpus ? cpus : cores, .cpus = cpus};
    p[0].have[0] = (int)k[GPUS] % (OR_ADDRESSES + 1);
    p[0].have[1] = (int)k[FPGAS] % (OR_ADDRESSES + 1);
    uint32_t which[OR_RESOURCES] = {k[GPU_AMOUNT], k[FPGA_AMOUNT]};
    for (int r = 0; r < OR_RESOURCES; r++)
        if (p[0].have[r])
            p[0].take[r] = amount_within(which[r], p[0].have[r]);
    /* A full one that is the other way round, and a task-only one. */
    p[1] = (struct or_profile){
        .cores = 2, .cpus = 1, .have = {1,  0},
                .take = {20, 0}
    };
    p[2] = (struct or_profile){.task_only = true, .cores = p[0].cores, .cpus = 1};
    if (s->fixed) {
        memcpy(p[2].have, p[0].have, sizeof(p[2].have));
        for (int r = 0; r < OR_RESOURCES; r++)
            p[2].take[r] = p[0].have[r] ? OR_UNIT : 0;
    }
}

static void setup_pools(const uint32_t *k, struct or_setup *s)
{
    struct rng r = {k[POOL_SEED]};
    s->npools = 1 + (s->fair ? (int)k[POOLS] % OR_POOLS : 0);
    /* The default pool's own mode is FAIR only when no pool was configured. */
    s->pools[0] =
        (struct or_pool_spec){.fair = s->npools == 1, .parent = OR_NONE, .weight = 1};
    for (int i = 1; i < s->npools; i++) {
        s->pools[i].fair = rng_below(&r, 2);
        s->pools[i].weight = rng_range(&r, 1, 3);
        s->pools[i].min_share = rng_range(&r, 0, 2);
        s->pools[i].parent =
            i > 1 && s->pools[i - 1].fair && rng_below(&r, 2) ? i - 1 : OR_NONE;
    }
}

static void setup_set(const uint32_t *k, struct or_setup *s, int i)
{
    struct rng r = {k[S_SEED]};
    struct or_set_spec *set = &s->sets[i];
    *set = (struct or_set_spec){.stage = i, .job = (int)k[S_JOB]};
    set->profile = rng_range(&r, 0, s->nprofiles - 1);
    set->pool = rng_range(&r, 0, s->npools - 1);
    set->barrier = k[S_FLAGS] & FLAG_BARRIER;
    set->map = k[S_FLAGS] & FLAG_MAP;
    set->ntasks = 1 + (int)k[S_TASKS] % OR_TASKS;
    for (int t = 0; t < set->ntasks; t++) {
        struct or_task_spec *task = &set->tasks[t];
        task->npreferences = rng_range(&r, 0, (int)k[S_PREFERENCES] % 3);
        for (int p = 0; p < task->npreferences; p++) {
            int x = rng_range(&r, 0, OR_EXECUTORS - 1);
            bool cached = rng_below(&r, 2);
            task->preferences[p].executor = cached ? x : OR_NONE;
            task->preferences[p].host =
                cached ? s->executors[x].host : rng_range(&r, 0, OR_HOSTS - 1);
        }
        /* The same place twice says nothing more. */
        if (task->npreferences == 2 &&
            task->preferences[0].host == task->preferences[1].host)
            task->npreferences = 1;
    }
    if ((k[S_FLAGS] & FLAG_AGAIN) && i > 0) {
        set->stage = s->sets[i - 1].stage;
        set->attempt = s->sets[i - 1].attempt + 1;
        set->job = s->sets[i - 1].job;
        set->profile = s->sets[i - 1].profile;
        set->ntasks = s->sets[i - 1].ntasks;
        memcpy(set->tasks, s->sets[i - 1].tasks, sizeof(set->tasks));
    }
}

static void setup_failures(const uint32_t *k, struct or_setup *s)
{
    static const double quantiles[] = {0.9, 0.5, 0.25, 0.75, 1};
    static const double multipliers[] = {3, 1, 1.5, 2, 0};
    struct or_exclusion *x = &s->exclusion;
    struct or_speculation *p = &s->speculation;
    x->on = k[EXCLUSION];
    s->max_failures = 1 + (int)k[MAX_FAILURES] + (x->on ? 2 : 0);
    x->task_per_executor = 1 + (int)k[TASK_PER_EXECUTOR];
    x->task_per_host = 1 + (int)k[TASK_PER_HOST];
    if (x->task_per_host >= s->max_failures) /* else it is refused */
        x->task_per_host = s->max_failures - 1;
    x->set_per_executor = 1 + (int)k[SET_PER_EXECUTOR];
    x->set_executors_per_host = 1 + (int)k[SET_HOSTS];
    x->app_per_executor = 1 + (int)k[APP_PER_EXECUTOR];
    x->app_executors_per_host = 1 + (int)k[APP_HOSTS];
    x->timeout = 1000 * (1 + (int64_t)k[TIMEOUT]);
    x->unschedulable_timeout = 1000 * (1 + (int64_t)k[UNSCHEDULABLE]);
    p->on = k[SPECULATION];
    p->efficiency = k[EFFICIENCY];
    p->quantile = quantiles[k[QUANTILE] % 5];
    p->multiplier = multipliers[k[MULTIPLIER] % 5];
    p->min_runtime = 100;
    p->threshold = 1000 * (int64_t)k[THRESHOLD];
    p->rate_multiplier = 0.75;
    p->long_factor = 2;
}

void small_setup(const uint32_t *k, struct or_setup *s)
{
    struct rng place = {k[PLACEMENT]};
    int hosts = 1 + (int)k[HOSTS] % OR_HOSTS, racks = (int)k[RACKS] % (OR_RACKS + 1);
    memset(s, 0, sizeof(*s));
    s->fixed = k[FIXED];
    s->fair = k[FAIR];
    s->pack = k[PACK];
    s->legacy_reset = k[LEGACY];
    s->shuffle_service = k[SERVICE];
    s->manual_start = k[MANUAL_START];
    s->wait[OR_PROCESS] = 1000 * (int64_t)k[WAIT_PROCESS];
    s->wait[OR_NODE] = 1000 * (int64_t)k[WAIT_NODE];
    s->wait[OR_RACK] = 1000 * (int64_t)k[WAIT_RACK];
    setup_profiles(k, s);
    setup_pools(k, s);
    setup_failures(k, s);
    for (int h = 0; h < OR_HOSTS; h++)
        s->rack[h] =
            racks && rng_below(&place, 4) ? rng_range(&place, 0, racks - 1) : OR_NONE;
    for (int x = 0; x < OR_EXECUTORS; x++) {
        int p = rng_range(&place, 0, s->nprofiles - 1);
        s->executors[x].host = rng_range(&place, 0, hosts - 1);
        s->executors[x].profile = s->fixed && p == 2 ? 0 : p;
    }
    s->nsets = 1 + (int)k[SETS] % OR_SETS;
    for (int i = 0; i < s->nsets; i++)
        setup_set(&k[SET_KNOBS + i * S_KNOBS], s, i);
}

/* ---- as a scenario ---- */

static void write_profile(const struct or_profile *p, int n, FILE *f)
{
    static const char *const names[] = {"gpu", "fpga"};
    fprintf(f, "  p%d: {", n);
    if (!p->task_only) {
        fprintf(f, "executor: {cores: %d", p->cores);
        for (int r = 0; r < OR_RESOURCES; r++)
            if (p->have[r])
                fprintf(f, ", %s: %d", names[r], p->have[r]);
        fprintf(f, "}, ");
    }
    fprintf(f, "task: {cpus: %d", p->cpus);
    for (int r = 0; r < OR_RESOURCES; r++)
        if (p->take[r])
            fprintf(f, ", %s: %d/60", names[r], p->take[r]);
    fprintf(f, "}}\n");
}

void small_write(const struct or_setup *s, FILE *f)
{
    fprintf(f, "%s, %s, maxFailures %d, waits %lld %lld %lld%s%s%s%s\n",
            s->fixed ? "static" : "elastic", s->fair ? "FAIR" : "FIFO", s->max_failures,
            (long long)s->wait[OR_PROCESS], (long long)s->wait[OR_NODE],
            (long long)s->wait[OR_RACK], s->pack ? ", pack" : "",
            s->legacy_reset ? ", legacy reset" : "",
            s->shuffle_service ? ", shuffle service" : "",
            s->manual_start ? ", manual start" : "");
    if (s->exclusion.on)
        fprintf(f, "exclusion: task %d/%d, set %d/%d, application %d/%d\n",
                s->exclusion.task_per_executor, s->exclusion.task_per_host,
                s->exclusion.set_per_executor, s->exclusion.set_executors_per_host,
                s->exclusion.app_per_executor, s->exclusion.app_executors_per_host);
    if (s->speculation.on)
        fprintf(f, "speculation: quantile %g multiplier %g threshold %lld%s\n",
                s->speculation.quantile, s->speculation.multiplier,
                (long long)s->speculation.threshold,
                s->speculation.efficiency ? ", efficiency" : "");
    for (int p = 0; p < s->nprofiles; p++)
        write_profile(&s->profiles[p], p, f);
    for (int p = 1; p < s->npools; p++)
        fprintf(f, "  pool p%d: %s, weight %d, min_share %d, parent %d\n", p,
                s->pools[p].fair ? "fair" : "fifo", s->pools[p].weight,
                s->pools[p].min_share, s->pools[p].parent);
    for (int x = 0; x < OR_EXECUTORS; x++)
        fprintf(f, "  e%d: host h%d, rack %d, profile p%d\n", x, s->executors[x].host,
                s->rack[s->executors[x].host], s->executors[x].profile);
    for (int i = 0; i < s->nsets; i++) {
        const struct or_set_spec *t = &s->sets[i];
        fprintf(f,
                "  set %d: stage %d.%d, job %d, profile p%d, pool %d%s, %s, tasks:", i,
                t->stage, t->attempt, t->job, t->profile, t->pool,
                t->barrier ? ", barrier" : "", t->map ? "map" : "result");
        for (int k = 0; k < t->ntasks; k++) {
            fprintf(f, " [");
            for (int p = 0; p < t->tasks[k].npreferences; p++)
                if (t->tasks[k].preferences[p].executor == OR_NONE)
                    fprintf(f, "%sh%d", p ? ", " : "", t->tasks[k].preferences[p].host);
                else
                    fprintf(f, "%sh%d/e%d", p ? ", " : "",
                            t->tasks[k].preferences[p].host,
                            t->tasks[k].preferences[p].executor);
            fprintf(f, "]");
        }
        fprintf(f, "\n");
    }
}
