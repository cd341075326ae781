/* How many executors the engine asks for, and which it gives back: growth by steps,
 * limits over all profiles, copies and exclusions that need one more, idle timeouts. */
#include <glib.h>

#include "conf/options.h"
#include "world/world.h"

static void end_all(struct world *w, int64_t duration)
{
    for (guint n = w->nattempts; n > 0; n--)
        world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, duration);
}

static void executors_are_asked_for_by_steps(void)
{
    static const uint32_t wanted[] = {0, 1, 3, 7, 10, 10};
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 100);
    struct world w;
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
    world_free(&w);
}

static void the_initial_number_is_asked_for_when_a_profile_is_first_used(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 100);
    struct world w;
    c.grow_ramp = true;
    c.initial_executors = 4;
    world_begin(&w, &c, 1);
    world_time(&w, SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nlive, ==, 4);
    world_time(&w, 2 * SECOND + SECOND / 2);
    g_assert_cmpuint(w.nlive, ==, 5);
    world_free(&w);
}

static void targets_fall_when_tasks_end(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 6), t = world_stage("b", 1);
    struct world w;
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
    world_free(&w);
}

/* Its executor had begun it when the engine still took it for queued. */
static void a_queued_task_that_has_ended_is_not_waited_for(void)
{
    static const enum trp_end_status how[] = {TRP_END_SUCCESS, TRP_END_EXIT,
                                              TRP_END_MEMORY};
    for (guint k = 0; k < G_N_ELEMENTS(how); k++) {
        struct trp_engine_config c = world_config(UINT32_MAX);
        struct trp_stage_spec s = world_stage("a", 20);
        struct world w;
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
        world_free(&w);
    }
}

static void limits_hold_over_all_profiles(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec v[] = {world_stage("a", 10), world_stage("b", 10)};
    char why[256];
    struct world w;
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
    world_free(&w);
}

static void a_profile_beyond_a_limit_fails_at_once(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 1);
    struct world w;
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
    world_free(&w);
}

static void what_expired_goes_as_far_as_nobody_needs_it(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 5);
    struct world w;
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
    world_free(&w);
}

static const char *on_one_host(uint32_t executor)
{
    return executor < 2 ? "h0" : "h1";
}

static void a_copy_gets_an_executor_on_another_host(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 4);
    struct world w;
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
    world_free(&w);
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
    struct trp_event ev = {
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {.profile = {0}, .executors = 8, .hosts = hosts}
    };
    world_step(w, &ev);
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

static void a_copy_that_can_run_nowhere_needs_no_executor(void)
{
    struct world w;
    a_copy_waits(&w, 1);
    g_assert_cmpuint(asked_for(&w), ==, 0);
    g_assert_cmpuint(w.releases, ==, 0);
    another_stage(&w);
    /* What only the copy could use goes for it. */
    g_assert_cmpuint(asked_for(&w), ==, 1);
    g_assert_cmpuint(w.releases, ==, 1);
    world_free(&w);
}

static void a_copy_asks_for_one_executor_at_most(void)
{
    struct world w;
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
    world_free(&w);
}

/* With alloc.grow=ramp, too. */
static void a_copy_in_vain_holds_nothing_while_targets_grow(void)
{
    for (uint32_t hosts = 1; hosts <= 2; hosts++) {
        struct world w;
        a_copy_waits_with(&w, hosts, true);
        g_assert_cmpuint(asked_for(&w), ==, hosts - 1);
        g_assert_cmpstr(w.not_on, ==, hosts > 1 ? "h0" : "");
        another_stage(&w);
        world_time(&w, w.now + 3 * SECOND);
        g_assert_cmpuint(asked_for(&w), ==, hosts);
        g_assert_cmpuint(w.releases, ==, 1);
        world_free(&w);
    }
}

static void a_barrier_stage_keeps_its_executors_when_it_runs_again(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("together", 2);
    struct world w;
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
    world_free(&w);
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
    const struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = w->attempts[0].id,
                  .status = TRP_END_FETCH,
                  .from = {{0}, 1, {1}, NULL, NULL, 0}}
    };
    world_step(w, &ev);
    end_all(w, SECOND); /* late, and good */
    return w->nlive;
}

static void a_stage_that_missed_its_input_keeps_its_executors(void)
{
    struct world w;
    g_assert_cmpuint(an_output_is_missed(&w, true), >=, 1);
    g_assert_cmpuint(w.releases, <=,
                     2); /* one reducer is to run again, and a map task */
    uint32_t releases = w.releases;
    world_time(&w, w.now + SECOND / 5);
    g_assert_cmpuint(w.nattempts, ==, 1); /* the map task, without a new executor */
    g_assert_cmpuint(w.releases, ==, releases);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    world_free(&w);
}

/* Its own would only be in the way; those of the stage before come meanwhile. */
static void what_is_made_again_has_its_executors_before_that(void)
{
    struct world w;
    an_output_is_missed(&w, false);
    g_assert_cmpuint(w.nlive, ==, 1);
    g_assert_cmpuint(w.nattempts, ==, 0);
    uint32_t came = w.live[0];
    world_time(&w, w.now + SECOND / 5);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(w.attempts[0].executor, ==, came);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    world_free(&w);
}

static void a_stage_excluded_everywhere_gets_another_executor(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 2);
    struct world w;
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
    world_free(&w);
}

/* It may have to wait for a launch there, since its host is none that is preferred. */
static void a_stage_excluded_everywhere_gets_one_executor_more(void)
{
    static const uint32_t first[] = {0, 1, 2};
    static const struct trp_place at_h0[] = {
        {"h0", TRP_NONE},
        {"h0", TRP_NONE}
    };
    struct trp_engine_config c = world_config(20);
    struct trp_stage_spec s = {.name = "a"};
    struct world w;
    c.exclusion.enabled = true;
    world_begin(&w, &c, 2);
    world_submit(&w, &s, 1);
    struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_TASKS,
        .tasks = {.ntasks = 2, .prefer = {.first = first, .places = at_h0}}
    };
    world_step(&w, &ev);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_time(&w, w.now + 4 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_run_out(&w, SECOND);
    world_free(&w);
}

static void dataset(struct world *w, const char *name,
                    const struct trp_dataset_parent *parent)
{
    const struct trp_dataset_spec spec = {.name = name,
                                          .partitions = 2,
                                          .parents = parent,
                                          .nparents = parent ? 1 : 0,
                                          .cached = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&spec}};
    world_step(w, &ev);
}

static void run_dataset(struct world *w, uint32_t n)
{
    const struct trp_job_spec spec = {.is_dataset = true, .dataset = n};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &spec}};
    world_step(w, &ev);
    world_run_out(w, SECOND);
}

static void what_an_executor_holds_keeps_it(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    const struct trp_dataset_parent shuffled = {.dataset = 0, .shuffle = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED};
    struct world w;
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
    struct trp_event cached = {
        .kind = TRP_EVENT_CACHED, .cached = {1, 0, {0}, false}
    };
    world_step(&w, &cached);
    world_time(&w, w.now + 1000 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    /* Released, it has been idle for longer than it may hold shuffle data. */
    ev.released.dataset = 1;
    world_step(&w, &ev);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
    world_free(&w);
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
    struct trp_event cached = {
        .kind = TRP_EVENT_CACHED, .cached = {0, 1, {0}, false}
    };
    world_step(w, &cached);
    w->manual = true;
    world_submit(w, &s, 1);
    g_assert_cmpuint(w->nlive, ==, 1);
}

/* At the end of a stage the others go; those that hold something when a request of
 * another shape finds no room. */
static void cached_partitions_keep_an_executor_until_others_lack_room(void)
{
    struct world w;
    hold(&w, false);
    world_time(&w, w.now + SECOND / 100);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, w.now + SECOND / 10);
    g_assert_cmpuint(w.releases, ==, 1);
    world_free(&w);
}

static void they_stay_longer_where_more_may_be_had(void)
{
    struct world w;
    hold(&w, true);
    world_time(&w, w.now + 2 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, w.now + 2 * SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
    world_free(&w);
}

static void they_stay_while_others_are_coming(void)
{
    struct world w;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_GRANTED, .granted = {{1}}};
    hold(&w, false);
    world_step(&w, &ev);
    world_time(&w, w.now + 100 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
    world_free(&w);
}

static const char *same_host(uint32_t executor)
{
    (void)executor;
    return "h";
}

enum { HALF = 12 };

/* One runs dry while the other has many of its own. */
static void queue_ahead_leaves_cached_partitions_where_they_are(void)
{
    struct trp_engine_config c;
    struct world w;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 2;
    world_begin(&w, &c, 1);
    w.host_of = same_host;
    const struct trp_dataset_spec spec = {
        .name = "kept", .partitions = 2 * HALF, .cached = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&spec}};
    world_step(&w, &ev);
    run_dataset(&w, 0);
    g_assert_cmpuint(w.nlive, ==, 2);
    for (uint32_t i = 0; i < 2 * HALF; i++) {
        struct trp_event cached = {
            .kind = TRP_EVENT_CACHED, .cached = {0, i, {i / HALF}, false}
        };
        world_step(&w, &cached);
    }
    const struct trp_job_spec job = {.is_dataset = true};
    struct trp_event again = {.kind = TRP_EVENT_JOB, .job = {.spec = &job}};
    world_step(&w, &again);
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
    world_free(&w);
}

static void what_is_cleaned_up_keeps_nothing(void)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    const struct trp_dataset_parent shuffled = {.dataset = 0, .shuffle = true};
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED};
    struct world w;
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
    world_free(&w);
}

static void the_oldest_stay_for_a_narrower_stage(void)
{
    for (uint32_t later = 1; later <= 2; later++) {
        const struct trp_parent_spec after[] = {{.stage = 0}, {.stage = 1}};
        struct trp_engine_config c = world_config(UINT32_MAX);
        struct trp_stage_spec s[] = {world_stage("wide", 4), world_stage("thin", 1),
                                     world_stage("last", later)};
        struct world w;
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
        world_free(&w);
    }
}

static void of_idle_ones_of_another_profile_the_oldest_serve(void)
{
    const struct trp_parent_spec after = {.stage = 0};
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s[] = {world_stage("wide", 4), world_stage("thin", 2)};
    struct world w;
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
    world_free(&w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(f) g_test_add_func("/wanted/" #f, f)
    ADD(executors_are_asked_for_by_steps);
    ADD(the_initial_number_is_asked_for_when_a_profile_is_first_used);
    ADD(targets_fall_when_tasks_end);
    ADD(a_queued_task_that_has_ended_is_not_waited_for);
    ADD(limits_hold_over_all_profiles);
    ADD(a_profile_beyond_a_limit_fails_at_once);
    ADD(what_expired_goes_as_far_as_nobody_needs_it);
    ADD(a_copy_gets_an_executor_on_another_host);
    ADD(a_copy_that_can_run_nowhere_needs_no_executor);
    ADD(a_copy_in_vain_holds_nothing_while_targets_grow);
    ADD(a_copy_asks_for_one_executor_at_most);
    ADD(a_barrier_stage_keeps_its_executors_when_it_runs_again);
    ADD(a_stage_that_missed_its_input_keeps_its_executors);
    ADD(what_is_made_again_has_its_executors_before_that);
    ADD(what_an_executor_holds_keeps_it);
    ADD(cached_partitions_keep_an_executor_until_others_lack_room);
    ADD(they_stay_longer_where_more_may_be_had);
    ADD(they_stay_while_others_are_coming);
    ADD(queue_ahead_leaves_cached_partitions_where_they_are);
    ADD(what_is_cleaned_up_keeps_nothing);
    ADD(a_stage_excluded_everywhere_gets_another_executor);
    ADD(a_stage_excluded_everywhere_gets_one_executor_more);
    ADD(of_idle_ones_of_another_profile_the_oldest_serve);
    ADD(the_oldest_stay_for_a_narrower_stage);
    return g_test_run();
}
