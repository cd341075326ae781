/* How many executors the engine asks for, and which it gives back: growth by steps,
 * limits over all profiles, copies and exclusions that need one more, idle timeouts. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

static void end_all(struct world *w, int64_t duration)
{
    for (guint n = w->nattempts; n > 0; n--)
        world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, duration);
}

TEST("executors are asked for by steps")
{
    static const uint32_t wanted[] = {0, 1, 3, 7, 10, 10};
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 100);
    WORLD w;
    c.grow_ramp = true;
    c.max_executors = 10;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
        world_time(&w, i * SECOND);
        g_assert_cmpuint(w.nlive, ==, wanted[i]);
    }
    /* At the maximum nothing wakes the driver. */
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, INT64_MAX);
    world_run_out(&w, SECOND / 100);
    g_assert_cmpuint(w.job_ends, ==, 1);
}

TEST("the initial number is asked for when a profile is first used")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 100);
    WORLD w;
    c.grow_ramp = true;
    c.initial_executors = 4;
    world_begin(&w, &c, 1);
    world_time(&w, SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nlive, ==, 4);
    world_time(&w, 2 * SECOND + SECOND / 2);
    g_assert_cmpuint(w.nlive, ==, 5);
}

TEST("targets fall when tasks end")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 6), t = world_stage("b", 1);
    WORLD w;
    c.grow_ramp = c.release_idle = true;
    c.idle_timeout_ns = 20 * SECOND;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    world_submit(&w, &t, 1);
    world_time(&w, 4 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 7);
    while (w.nattempts > 1)
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    world_time(&w, 23 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 7);
    world_time(&w, 25 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    g_assert_cmpuint(w.releases, ==, 6);
}

/* Its executor had begun it when the engine still took it for queued. */
TEST("a queued task that has ended is not waited for")
{
    static const enum trp_end_status how[] = {TRP_END_SUCCESS, TRP_END_EXIT,
                                              TRP_END_MEMORY};
    for (guint k = 0; k < G_N_ELEMENTS(how); k++) {
        struct trp_engine_config c = world_config(UINT32_MAX);
        struct trp_stage_spec s = world_stage("a", 20);
        WORLD w;
        guint i = 0;
        c.grow_ramp = true;
        c.max_executors = 1;
        c.queue_ahead_ns = 10 * SECOND;
        s.memory_factor_ppm = 2000000;
        world_begin(&w, &c, 1);
        world_submit(&w, &s, 1);
        world_time(&w, SECOND);
        while (!w.attempts[i].queued)
            if (++i == w.nattempts) {
                i = 0;
                world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND / 10);
            }
        /* The targets' counts are checked. */
        world_end(&w, w.attempts[i].id, how[k], 0, SECOND / 10);
        world_run_out(&w, SECOND / 10);
        world_time(&w, w.now + 2 * SECOND); /* an executor with more memory */
        world_run_out(&w, SECOND / 10);
        g_assert_cmpuint(w.job_ends, ==, 1);
    }
}

TEST("limits hold over all profiles")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec v[] = {world_stage("a", 10), world_stage("b", 10)};
    char why[256];
    WORLD w;
    c.caps.cores = 9;
    world_begin(&w, &c, 2);
    v[1].profile = world_profile(&w, "wide", 5, NULL, 0, 0);
    world_submit(&w, v, 2);
    /* Four of two cores leave one; the stage of five waits. */
    g_assert_cmpuint(w.nlive, ==, 4);
    trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){1}, why, sizeof(why));
    g_assert_cmpstr(why, ==,
                    "no executor of profile wide: alloc.max_cores (9) are in use");
    end_all(&w, SECOND);
    end_all(&w, SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a profile beyond a limit fails at once")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 1);
    WORLD w;
    c.caps.ncustom = 1;
    strcpy(c.caps.custom[0].name, "gpu");
    c.caps.custom[0].most = 1;
    world_begin(&w, &c, 1);
    s.profile = world_profile(&w, "train", 2, "gpu", 2, TRP_ONE);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
    g_assert_cmpstr(
        w.texts[0], ==,
        "an executor takes gpu 2, and alloc.max_gpu is 1; raise it or ask for "
        "less");
}

TEST("what expired goes as far as nobody needs it")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 5);
    WORLD w;
    c.release_idle = true;
    c.idle_timeout_ns = 10 * SECOND;
    c.min_executors = 3;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    world_time(&w, SECOND);
    for (uint32_t i = 0; i < 4; i++) /* the last one runs on */
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, 11 * SECOND);
    world_time(&w, 11 * SECOND);
    /* The stage keeps its minimum of three; the lowest went. */
    g_assert_cmpuint(w.nlive, ==, 3);
    g_assert_cmpuint(w.live[0], ==, 2);
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, INT64_MAX);
    /* When the job is over the others go, which had expired before. */
    end_all(&w, SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_time(&w, 21 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
}

static const char *on_one_host(uint32_t executor)
{
    return executor < 2 ? "h0" : "h1";
}

TEST("a copy gets an executor on another host")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 4);
    WORLD w;
    c.speculation.enabled = true;
    c.speculation.quantile = 0.5;
    c.speculation.efficiency = false;
    world_begin(&w, &c, 2);
    w.host_of = on_one_host;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_time(&w, SECOND);
    for (uint32_t i = 0; i < 3; i++)
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_time(&w, 4 * SECOND);
    /* There was room, but not beside the task. */
    g_assert_cmpuint(w.nlive, ==, 3);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(w.attempts[1].executor, ==, 2);
    world_end(&w, w.attempts[1].id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
}

/* Two executors on one host, of which one runs a slow task whose copy waits. The
 * cluster has so many hosts (0: not known). */
static void a_copy_waits_with(struct world *w, uint32_t hosts, bool ramp)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    c.grow_ramp = ramp;
    struct trp_stage_spec s = world_stage("a", 4);
    int64_t begun = (ramp ? 3 : 1) * SECOND; /* both executors are there */
    c.speculation.enabled = true;
    c.speculation.quantile = 0.5;
    c.speculation.efficiency = false;
    world_begin(w, &c, 2);
    world_tell(w, TRP_EVENT_PROFILE_FIT,
               .fit = {.profile = {0}, .executors = 8, .hosts = hosts});
    w->host_of = on_one_host;
    world_submit(w, &s, 1);
    world_time(w, begun);
    for (uint32_t i = 0; i < 3; i++)
        world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    w->manual = true; /* nothing comes or goes from now on */
    world_time(w, begun + 3 * SECOND);
    g_assert_cmpuint(w->nattempts, ==, 1);
}

static void a_copy_waits(struct world *w, uint32_t hosts)
{
    a_copy_waits_with(w, hosts, false);
}

static void another_stage(struct world *w)
{
    struct trp_stage_spec s = world_stage("b", 1);
    s.profile = world_profile(w, "b", 4, NULL, 0, 0);
    world_submit(w, &s, 1);
}

static uint32_t asked_for(const struct world *w)
{
    uint32_t n = 0;
    for (guint i = 0; i < w->nasked; i++)
        n += !(w->asked[i] & WORLD_GOES);
    return n;
}

TEST("a copy that can run nowhere needs no executor")
{
    WORLD w;
    a_copy_waits(&w, 1);
    g_assert_cmpuint(asked_for(&w), ==, 0);
    g_assert_cmpuint(w.releases, ==, 0);
    another_stage(&w);
    /* What only the copy could use goes for it. */
    g_assert_cmpuint(asked_for(&w), ==, 1);
    g_assert_cmpuint(w.releases, ==, 1);
}

TEST("a copy asks for one executor at most")
{
    WORLD w;
    a_copy_waits(&w, 2);
    g_assert_cmpuint(asked_for(&w), ==, 1);
    g_assert_cmpstr(w.not_on, ==, "h0"); /* where the task runs */
    another_stage(&w);
    g_assert_cmpstr(w.not_on, ==, "");
    /* That one stays asked for; one on the task's host is of no use to the copy. */
    g_assert_cmpuint(asked_for(&w), ==, 2);
    g_assert_cmpuint(w.releases, ==, 1);
    world_time(&w, 10 * SECOND);
    world_time(&w, 60 * SECOND);
    g_assert_cmpuint(asked_for(&w), ==, 2);
    g_assert_cmpuint(w.releases, ==, 1);
}

/* With alloc.grow=ramp, too. */
TEST("a copy in vain holds nothing while targets grow")
{
    for (uint32_t hosts = 1; hosts <= 2; hosts++) {
        WORLD w;
        a_copy_waits_with(&w, hosts, true);
        g_assert_cmpuint(asked_for(&w), ==, hosts - 1);
        g_assert_cmpstr(w.not_on, ==, hosts > 1 ? "h0" : "");
        another_stage(&w);
        world_time(&w, w.now + 3 * SECOND);
        g_assert_cmpuint(asked_for(&w), ==, hosts);
        g_assert_cmpuint(w.releases, ==, 1);
    }
}

TEST("a barrier stage keeps its executors when it runs again")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("together", 2);
    WORLD w;
    s.barrier = true;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    for (uint32_t i = 0; i < 3; i++) {
        g_assert_cmpuint(w.nattempts, ==, 2);
        world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
        world_end(&w, w.attempts[0].id, TRP_END_KILLED, 0, SECOND);
        g_assert_cmpuint(w.nlive, ==, 2);
        world_time(&w, w.now + SECOND);
    }
    g_assert_cmpuint(w.releases, ==, 0);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

/* A map stage of one profile and its reader, of another or the same; the reader misses
 * an output when it has begun. Live executors of the second profile are returned. */
static uint32_t an_output_is_missed(struct world *w, bool same)
{
    static const struct trp_parent_spec reads = {.stage = 0, .shuffle = true};
    struct trp_stage_spec v[] = {world_stage("maps", 3), world_stage("reducers", 3)};
    struct trp_engine_config c = world_config(UINT32_MAX);
    world_begin(w, &c, 1);
    v[0].map = true;
    v[1].parents = &reads;
    v[1].nparents = 1;
    if (!same)
        v[1].profile = world_profile(w, "other", 2, NULL, 0, 0);
    world_submit(w, v, 2);
    end_all(w, SECOND);
    g_assert_cmpuint(w->nattempts, ==, 3);
    g_assert_cmpuint(w->attempts[0].stage.n, ==, 1);
    world_tell(w, TRP_EVENT_TASK_ENDED,
               .ended = {
                   .attempt = w->attempts[0].id,
                   .status = TRP_END_FETCH,
                   .from = {{0}, 1, {1}, NULL, NULL, 0}
    });
    end_all(w, SECOND); /* late, and good */
    return w->nlive;
}

TEST("a stage that missed its input keeps its executors")
{
    WORLD w;
    g_assert_cmpuint(an_output_is_missed(&w, true), >=, 1);
    g_assert_cmpuint(w.releases, <=,
                     2); /* one reducer is to run again, and a map task */
    uint32_t releases = w.releases;
    world_time(&w, w.now + SECOND / 5);
    g_assert_cmpuint(w.nattempts, ==, 1); /* the map task, without a new executor */
    g_assert_cmpuint(w.releases, ==, releases);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

/* Its own would only be in the way; those of the stage before come meanwhile. */
TEST("what is made again has its executors before that")
{
    WORLD w;
    an_output_is_missed(&w, false);
    g_assert_cmpuint(w.nlive, ==, 1);
    g_assert_cmpuint(w.nattempts, ==, 0);
    uint32_t came = w.live[0];
    world_time(&w, w.now + SECOND / 5);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(w.attempts[0].executor, ==, came);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a stage excluded everywhere gets another executor")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 2);
    WORLD w;
    c.exclusion.enabled = true;
    world_begin(&w, &c, 2);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    /* The other task holds the first executor. */
    g_assert_cmpuint(w.nlive, ==, 2);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(w.attempts[1].executor, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
}

/* It may have to wait for a launch there, since its host is none that is preferred. */
TEST("a stage excluded everywhere gets one executor more")
{
    static const uint32_t first[] = {0, 1, 2};
    static const struct trp_place at_h0[] = {
        {"h0", TRP_NONE},
        {"h0", TRP_NONE}
    };
    struct trp_engine_config c = world_config(20);
    struct trp_stage_spec s = {.name = "a"};
    WORLD w;
    c.exclusion.enabled = true;
    world_begin(&w, &c, 2);
    world_submit(&w, &s, 1);
    world_tasks(&w, 0, 2, first, at_h0);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_time(&w, w.now + 4 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_run_out(&w, SECOND);
}

static void dataset(struct world *w, const char *name,
                    const struct trp_dataset_parent *parent)
{
    const struct trp_dataset_spec spec = {.name = name,
                                          .partitions = 2,
                                          .parents = parent,
                                          .nparents = parent ? 1 : 0,
                                          .cached = true};
    world_tell(w, TRP_EVENT_DATASET, .dataset = {&spec});
}

static void run_dataset(struct world *w, uint32_t n)
{
    const struct trp_job_spec spec = {.is_dataset = true, .dataset = n};
    world_tell(w, TRP_EVENT_JOB, .job = {.spec = &spec});
    world_run_out(w, SECOND);
}

TEST("what an executor holds keeps it")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    const struct trp_dataset_parent shuffled = {.dataset = 0, .shuffle = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED};
    WORLD w;
    c.release_idle = true;
    c.host_files = false;
    c.idle_timeout_ns = 10 * SECOND;
    c.shuffle_timeout_ns = 50 * SECOND;
    world_begin(&w, &c, 2);
    dataset(&w, "a", NULL);
    dataset(&w, "b", &shuffled);
    run_dataset(&w, 1);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, w.now + 50 * SECOND);
    /* A partition of b is cached as well, for good. */
    world_tell(&w, TRP_EVENT_CACHED, .cached = {1, 0, {0}, false});
    world_time(&w, w.now + 1000 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    /* Released, it has been idle for longer than it may hold shuffle data. */
    ev.released.dataset = 1;
    world_step(&w, &ev);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
}

/* One that holds something is idle, and another shape, of which four fit, wants one:
 * additional jobs may be had for that with `more`. */
static void hold(struct world *w, bool more)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("later", 1);
    struct trp_event fit = {.kind = TRP_EVENT_PROFILE_FIT};
    c.backlog_timeout_ns = 3 * SECOND;
    world_begin(w, &c, 2);
    dataset(w, "kept", NULL);
    s.profile = world_profile(w, "other", 4, NULL, 0, 0);
    fit.fit.profile = s.profile;
    fit.fit.executors = 4;
    fit.fit.more = more;
    world_step(w, &fit);
    run_dataset(w, 0);
    g_assert_cmpuint(w->nlive, ==, 1);
    world_tell(w, TRP_EVENT_CACHED, .cached = {0, 1, {0}, false});
    w->manual = true;
    world_submit(w, &s, 1);
    g_assert_cmpuint(w->nlive, ==, 1);
}

/* At the end of a stage the others go; those that hold something when a request of
 * another shape finds no room. */
TEST("cached partitions keep an executor until others lack room")
{
    WORLD w;
    hold(&w, false);
    world_time(&w, w.now + SECOND / 100);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, w.now + SECOND / 10);
    g_assert_cmpuint(w.releases, ==, 1);
}

TEST("they stay longer where more may be had")
{
    WORLD w;
    hold(&w, true);
    world_time(&w, w.now + 2 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, w.now + 2 * SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
}

TEST("they stay while others are coming")
{
    WORLD w;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_GRANTED, .granted = {{1}}};
    hold(&w, false);
    world_step(&w, &ev);
    world_time(&w, w.now + 100 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
}

static const char *same_host(uint32_t executor)
{
    (void)executor;
    return "h";
}

enum { HALF = 12 };

/* One runs dry while the other has many of its own. */
TEST("queue ahead leaves cached partitions where they are")
{
    struct trp_engine_config c;
    WORLD w;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 2;
    world_begin(&w, &c, 1);
    w.host_of = same_host;
    const struct trp_dataset_spec spec = {
        .name = "kept", .partitions = 2 * HALF, .cached = true};
    world_tell(&w, TRP_EVENT_DATASET, .dataset = {&spec});
    run_dataset(&w, 0);
    g_assert_cmpuint(w.nlive, ==, 2);
    for (uint32_t i = 0; i < 2 * HALF; i++) {
        world_tell(&w, TRP_EVENT_CACHED, .cached = {0, i, {i / HALF}, false});
    }
    const struct trp_job_spec job = {.is_dataset = true};
    world_tell(&w, TRP_EVENT_JOB, .job = {.spec = &job});
    for (guint i = 0; w.nattempts > 0; i = 0) {
        for (guint k = 0; k < w.nattempts; k++) {
            const struct world_attempt *a = &w.attempts[k];
            g_assert_cmpuint(a->executor, ==, a->task / HALF);
        }
        while (i + 1 < w.nattempts && w.attempts[i].executor != 0)
            i++;
        if (w.attempts[i].executor != 0)
            i = 0;
        world_end(&w, w.attempts[i].id, TRP_END_SUCCESS, 0, 10000);
    }
    g_assert_cmpuint(w.job_ends, ==, 2);
}

TEST("what is cleaned up keeps nothing")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    const struct trp_dataset_parent shuffled = {.dataset = 0, .shuffle = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED};
    WORLD w;
    c.release_idle = true;
    c.host_files = false;
    c.idle_timeout_ns = 10 * SECOND;
    world_begin(&w, &c, 2);
    dataset(&w, "a", NULL);
    dataset(&w, "b", &shuffled);
    run_dataset(&w, 1);
    world_time(&w, w.now + 1000 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_step(&w, &ev);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
}

TEST("the oldest stay for a narrower stage")
{
    for (uint32_t later = 1; later <= 2; later++) {
        const struct trp_parent_spec after[] = {{.stage = 0}, {.stage = 1}};
        struct trp_engine_config c = world_config(UINT32_MAX);
        struct trp_stage_spec s[] = {world_stage("wide", 4), world_stage("thin", 1),
                                     world_stage("last", later)};
        WORLD w;
        s[1].parents = &after[0];
        s[2].parents = &after[1];
        s[1].nparents = s[2].nparents = 1;
        world_begin(&w, &c, 1);
        world_submit(&w, s, 3);
        g_assert_cmpuint(w.nlive, ==, 4);
        while (w.nattempts > 1) /* idle ones stay while their stage runs */
            world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
        g_assert_cmpuint(w.nlive, ==, 4);
        end_all(&w, SECOND);
        /* The next stage has begun on one of those that stages to come may use. */
        g_assert_cmpuint(w.nattempts, ==, 1);
        g_assert_cmpuint(w.attempts[0].executor, <, later);
        g_assert_cmpuint(w.nlive, ==, 1);
    }
}

TEST("of idle ones of another profile the oldest serve")
{
    const struct trp_parent_spec after = {.stage = 0};
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s[] = {world_stage("wide", 4), world_stage("thin", 2)};
    WORLD w;
    s[1].parents = &after;
    s[1].nparents = 1;
    world_begin(&w, &c, 1);
    s[1].profile = world_profile(&w, "thin", 1, NULL, 0, 0);
    world_submit(&w, s, 2);
    g_assert_cmpuint(w.nlive, ==, 4);
    end_all(&w, SECOND);
    g_assert_cmpuint(w.relabels, ==, 2);
    g_assert_cmpuint(w.nlive, ==, 2);
    for (guint k = 0; k < w.nlive; k++)
        g_assert_cmpuint(w.live[k], <, 2);
}
