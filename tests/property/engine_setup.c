/* The knobs of engine streams, and the engine and profiles that they make. */
#include "conf/options.h"
#include "engine_streams.h"

const char *const engine_knobs[] = {"cores",        "max_per_profile",
                                    "max_in_all",   "min_per_profile",
                                    "reuse",        "keep_going",
                                    "fixed",        "pack",
                                    "queue_ahead",  "wait",
                                    "release_idle", "manual",
                                    "max_failures", "fair",
                                    "seed",         "speculation",
                                    "exclusion",    "twice",
                                    "look_ahead",   NULL};

void engine_make_knobs(struct stream *s, struct rng *r)
{
    uint32_t *k = s->knob;
    k[CORES] = rng_below(r, 4);
    k[MAX_PER_PROFILE] = rng_one_in(r, 4) ? 0 : 1 + rng_below(r, 6);
    k[MAX_IN_ALL] = rng_one_in(r, 4) ? 0 : 1 + rng_below(r, 9);
    k[MIN_PER_PROFILE] = rng_one_in(r, 2) ? 0 : rng_below(r, 3);
    k[REUSE] = rng_below(r, 3);
    k[KEEP_GOING] = rng_below(r, 3); /* 2: jobs drain */
    k[FIXED] = rng_one_in(r, 6);
    k[PACK] = rng_one_in(r, 3);
    k[QUEUE_AHEAD] = rng_one_in(r, 2) ? rng_below(r, 100) : 0;
    k[WAIT] = rng_one_in(r, 3) ? rng_below(r, 5000) : 0;
    k[RELEASE_IDLE] = rng_one_in(r, 3);
    k[MANUAL] = rng_below(r, 2);
    k[MAX_FAILURES] = rng_below(r, 4);
    k[FAIR] = rng_one_in(r, 4);
    k[SEED] = rng_one_in(r, 4) ? rng_below(r, 1000) : 0;
    k[SPECULATION] = rng_one_in(r, 4);
    k[EXCLUSION] = rng_one_in(r, 4) ? 1 + rng_below(r, 2) : 0;
    if (k[EXCLUSION]) /* those that are excluded count as long as they live */
        k[MAX_PER_PROFILE] = 20;
    k[TWICE] = rng_one_in(r, 8);
    k[LOOK_AHEAD] = rng_one_in(r, 3) ? 1 + rng_below(r, 100) : 0;
}

static trp_profile_id add_profile(trp_profiles *p, const char *name, int64_t cores,
                                  int64_t gpus, trp_amount gpu, int64_t fpgas,
                                  trp_amount fpga, struct verdict *v)
{
    struct trp_profile_builder b;
    trp_profile_id id = {0};
    trp_error err;
    int rc = 0;
    trp_profile_builder_init(&b, name);
    if (cores)
        rc = trp_profile_builder_executor(&b, "cores", cores, &err);
    if (rc == 0 && gpus)
        rc = trp_profile_builder_executor(&b, "gpu", gpus, &err);
    if (rc == 0 && gpu)
        rc = trp_profile_builder_task(&b, "gpu", gpu, &err);
    if (rc == 0 && fpgas)
        rc = trp_profile_builder_executor(&b, "fpga", fpgas, &err);
    if (rc == 0 && fpga)
        rc = trp_profile_builder_task(&b, "fpga", fpga, &err);
    if (rc == 0 && !cores)
        rc = trp_profile_builder_task(&b, "cpus", TRP_ONE, &err);
    if (rc == 0)
        rc = trp_profiles_add(p, &b, &id, &err);
    if (rc < 0)
        verdict_break(v, "profiles can be made", "%s", err.text);
    return id;
}

static trp_profiles *make_profiles(const struct stream *s, struct verdict *v)
{
    struct trp_profile_defaults d;
    trp_profiles *p;
    trp_error err;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 1 + s->knob[CORES];
    d.cores_configured = true;
    d.kind = s->knob[FIXED] ? TRP_MANAGER_STATIC : TRP_MANAGER_ELASTIC;
    if (trp_profiles_new(&d, NULL, &p, &err) < 0) {
        verdict_break(v, "profiles can be made", "%s", err.text);
        return NULL;
    }
    add_profile(p, "third", 3, 1, TRP_ONE / 3, 0, 0, v);
    add_profile(p, "same", 1 + s->knob[CORES], 0, 0, 0, 0, v);
    add_profile(p, "both", 4, 2, TRP_ONE, 2, TRP_ONE * 3 / 10, v);
    add_profile(p, "light", 0, 0, 0, 0, 0, v);
    return p;
}

static uint32_t or_max(uint32_t n)
{
    return n ? n : UINT32_MAX;
}

static void configure_failures(struct trp_engine_config *c, const struct stream *s)
{
    c->speculation.enabled = s->knob[SPECULATION];
    c->speculation.interval_ns = SECOND;
    c->speculation.quantile = 0.5;
    c->speculation.multiplier = 1.5;
    c->speculation.efficiency = s->knob[SPECULATION] > 1;
    c->exclusion.enabled = s->knob[EXCLUSION];
    if (!c->exclusion.enabled)
        return;
    c->max_failures += 2; /* a task must be able to leave a host before */
    if (s->knob[EXCLUSION] > 1)
        c->exclusion.app_tasks_per_executor = c->exclusion.stage_tasks_per_executor = 1;
    c->exclusion.timeout_ns = 600 * SECOND;
}

/* A cluster that holds a few executors of each profile; for others a job has to wait.
 * In half of the streams it is only had when it may be. */
static void tell_further(struct cluster *c, uint32_t wait_s)
{
    struct world *w = &c->play.world;
    c->patient = wait_s % 2;
    struct trp_event fit = {.kind = TRP_EVENT_PROFILE_FIT};
    struct trp_event wait = {.kind = TRP_EVENT_QUEUE_WAIT};
    for (uint32_t p = 0; wait_s && p < NPROFILES; p++) {
        fit.fit.profile.n = wait.queue_wait.profile.n = p;
        fit.fit.executors = UINT32_MAX;
        c->inside[p] = (wait_s + p) % 4;
        fit.fit.additional = UINT32_MAX - c->inside[p];
        fit.fit.more = c->patient;
        wait.queue_wait.wait_ns = wait_s * SECOND;
        world_step(w, &fit);
        world_step(w, &wait);
    }
}

void engine_open(struct cluster *c, const struct stream *s, struct verdict *v,
                 FILE *explain)
{
    struct trp_engine_config config;
    trp_options_engine_config(NULL, &config);
    config.max_executors = or_max(s->knob[MAX_PER_PROFILE]);
    config.alloc_max_executors = or_max(s->knob[MAX_IN_ALL]);
    config.min_executors = s->knob[MIN_PER_PROFILE];
    if (config.min_executors > config.max_executors)
        config.min_executors = config.max_executors;
    config.reuse = (enum trp_reuse)(s->knob[REUSE] % 3);
    config.keep_going = s->knob[KEEP_GOING] == 1;
    config.fixed = s->knob[FIXED];
    config.pack = s->knob[PACK];
    config.queue_ahead_ns = s->knob[QUEUE_AHEAD] * MS;
    config.release_idle = s->knob[RELEASE_IDLE];
    config.max_failures = 1 + s->knob[MAX_FAILURES];
    config.fair = s->knob[FAIR];
    config.seed = s->knob[SEED];
    configure_failures(&config, s);
    for (int l = 0; l < TRP_LEVELS; l++)
        config.locality_wait_ns[l] =
            l == TRP_NO_PREF || l == TRP_ANY ? 0 : s->knob[WAIT] * MS;
    *c = (struct cluster){0};
    play_open(&c->play, &config, make_profiles(s, v), &engine_hooks, v, explain);
    c->play.world.repeats = 0;
    c->play.world.job_drains = s->knob[KEEP_GOING] == 2;
    tell_further(c, s->knob[LOOK_AHEAD]);
}
