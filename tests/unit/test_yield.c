/* Who makes room for whom when a limit over all profiles, or the cluster, is short:
 * nobody waits for ever (docs/decisions/0014). */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

static struct trp_engine_config limited(uint32_t executors)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.alloc_max_executors = executors;
    return c;
}

static trp_profile_id start(struct world *w, const struct trp_engine_config *c)
{
    world_init(w, NULL);
    world_start(w, c);
    return world_profile(w, "other", 2, NULL, 0, 0);
}

static void submit(struct world *w, trp_profile_id profile, uint32_t ntasks,
                   bool barrier)
{
    struct trp_stage_spec s = world_stage("s", ntasks);
    s.profile = profile;
    s.barrier = barrier;
    world_submit(w, &s, 1);
}

static uint32_t running_of(const struct world *w, uint32_t stage)
{
    uint32_t n = 0;
    for (guint i = 0; i < w->nattempts; i++)
        n += world_attempt_at(w, i)->stage.n == stage;
    return n;
}

static void end_one_of(struct world *w, uint32_t stage)
{
    guint i = 0;
    while (world_attempt_at(w, i)->stage.n != stage)
        i++;
    world_end(w, world_attempt_at(w, i)->id, TRP_END_SUCCESS, 0, SECOND);
}

TEST("what a minimum keeps makes room")
{
    struct trp_engine_config c = limited(3);
    WORLD w;
    c.min_executors = 3;
    trp_profile_id other = start(&w, &c);
    submit(&w, (trp_profile_id){0}, 1, false);
    g_assert_cmpuint(w.nlive, ==, 3);
    submit(&w, other, 5, false); /* two on an executor */
    g_assert_cmpuint(running_of(&w, 1), ==, 4);
    /* When there is room again the minimum is kept again. */
    for (int i = 0; i < 5; i++)
        end_one_of(&w, 1);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(w.nlive, ==, 3);
    g_assert_cmpuint(running_of(&w, 0), ==, 1);
}

/* The same for alloc.grow=ramp, where a minimum holds without any work. */
TEST("a minimum without work makes room")
{
    struct trp_engine_config c = limited(2);
    WORLD w;
    c.grow_ramp = true;
    c.min_executors = 2;
    trp_profile_id other = start(&w, &c);
    submit(&w, (trp_profile_id){0}, 1, false);
    world_run_out(&w, SECOND);
    world_time(&w, 1000 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 2);
    g_assert_cmpuint(w.job_ends, ==, 1);
    submit(&w, other, 8, false);
    world_time(&w, w.now + 10 * SECOND);
    g_assert_cmpuint(running_of(&w, 1), ==, 4);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 2);
}

TEST("a limit of one serves profile after profile")
{
    for (int ramp = 0; ramp < 2; ramp++) {
        struct trp_engine_config c = limited(1);
        WORLD w;
        c.grow_ramp = ramp;
        c.min_executors = c.initial_executors = 1;
        trp_profile_id other = start(&w, &c);
        for (uint32_t i = 0; i < 6; i++)
            submit(&w, i % 2 ? other : (trp_profile_id){0}, 3, false);
        while (w.job_ends < 6) {
            g_assert_cmpint(w.now, <, 1000 * SECOND);
            world_run_out(&w, SECOND);
            world_time(&w, w.now + SECOND);
        }
        /* Each profile runs what it has before the other one gets the room. */
        g_assert_cmpuint(w.releases, <=, 6);
    }
}

/* Two executors run a later job's tasks when an earlier one's become known. */
static void start_behind(struct world *w, uint32_t later)
{
    struct trp_engine_config c = limited(2);
    struct trp_stage_spec s = {.name = "first"};
    s.profile = start(w, &c);
    world_submit(w, &s, 1);
    submit(w, (trp_profile_id){0}, later, false);
    g_assert_cmpuint(running_of(w, 1), ==, 2);
}

static void tell_tasks(struct world *w, uint32_t ntasks)
{
    world_tasks(w, 0, ntasks, NULL, NULL);
}

TEST("busy executors yield to an earlier stage")
{
    char why[256];
    WORLD w;
    start_behind(&w, 10);
    tell_tasks(&w, 1);
    g_assert_cmpuint(running_of(&w, 0), ==, 0);
    end_one_of(&w, 1); /* the older one takes the next task */
    g_assert_cmpuint(running_of(&w, 1), ==, 2);
    g_assert_cmpuint(running_of(&w, 0), ==, 0);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(running_of(&w, 1), ==, 1);
    g_assert_cmpuint(running_of(&w, 0), ==, 1);
    g_assert_cmpuint(w.releases, ==, 1);
    /* An earlier stage does not yield to a later one. */
    end_one_of(&w, 0);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(running_of(&w, 1), ==, 2);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 2);
    g_assert_cmpstr(
        trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){1}, why, sizeof why), ==,
        "");
}

TEST("those that yield go on when nobody waits")
{
    struct trp_event cancel = {.kind = TRP_EVENT_CANCEL_JOB};
    char why[256];
    WORLD w;
    start_behind(&w, 10);
    tell_tasks(&w, 5);
    trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){1}, why, sizeof why);
    g_assert_cmpstr(
        why, ==,
        "executors of profile default make room for earlier stages under the "
        "limits over all profiles (alloc.max_*)");
    world_step(&w, &cancel);
    g_assert_cmpuint(w.releases, ==, 0);
    end_one_of(&w, 1);
    g_assert_cmpuint(running_of(&w, 1), ==, 2);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 2);
}

TEST("a stream of later jobs does not keep an earlier one waiting")
{
    WORLD w;
    start_behind(&w, 2);
    tell_tasks(&w, 3);
    for (int i = 0; i < 20 && running_of(&w, 0) == 0; i++) {
        submit(&w, (trp_profile_id){0}, 2, false);
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    }
    g_assert_cmpuint(running_of(&w, 0), >, 0);
    world_run_out(&w, SECOND);
}

TEST("two gangs do not wait for each other")
{
    for (int ramp = 0; ramp < 2; ramp++) {
        struct trp_engine_config c = limited(4);
        WORLD w;
        c.grow_ramp = ramp;
        trp_profile_id other = start(&w, &c);
        /* A task of its own holds an executor while both gangs come. */
        submit(&w, (trp_profile_id){0}, 2, false);
        world_time(&w, w.now + 5 * SECOND);
        submit(&w, other, 6, true); /* two slots an executor */
        submit(&w, (trp_profile_id){0}, 4, true);
        world_time(&w, w.now + 5 * SECOND);
        g_assert_cmpuint(w.job_ends, ==, 0);
        while (running_of(&w, 0))
            end_one_of(&w, 0);
        world_time(&w, w.now + 5 * SECOND);
        g_assert_cmpuint(running_of(&w, 1), ==, 6);
        g_assert_cmpuint(running_of(&w, 2), ==, 0);
        while (running_of(&w, 1))
            end_one_of(&w, 1);
        world_time(&w, w.now + 5 * SECOND);
        g_assert_cmpuint(running_of(&w, 2), ==, 4);
        world_run_out(&w, SECOND);
        g_assert_cmpuint(w.job_ends, ==, 3);
    }
}

TEST("a gang has all its slots whatever the ratio")
{
    struct trp_engine_config c = limited(UINT32_MAX);
    WORLD w;
    c.grow_ramp = true;
    c.allocation_ratio = TRP_ONE / 4;
    start(&w, &c);
    submit(&w, (trp_profile_id){0}, 5, true);
    world_time(&w, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 5);
}

TEST("a gang beyond any limit fails at once")
{
    struct trp_event fit = {
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {.profile = {0}, .executors = 2},
    };
    struct trp_engine_config c = limited(UINT32_MAX);
    WORLD w;
    c.caps.cores = 6;
    trp_profile_id other = start(&w, &c);
    submit(&w, other, 7, true);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
    g_assert_cmpstr(w.texts[0], ==,
                    "a barrier stage of 7 tasks needs as many slots at once; at most 6 "
                    "of profile other can be had");
    /* … and when it turns out that the cluster has too few. */
    w.manual = true;
    submit(&w, (trp_profile_id){0}, 3, true);
    g_assert_cmpuint(w.job_ends, ==, 1);
    world_step(&w, &fit);
    g_assert_cmpuint(w.job_ends, ==, 2);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
    /* … or when it may not run so many. */
    struct trp_stage_spec s = world_stage("s", 2);
    s.barrier = true;
    s.max_running = 1;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.job_ends, ==, 3);
}

/* The cluster has room for one executor; nothing in the engine says so. */
TEST("a minimum expires where another waits for the cluster")
{
    struct trp_engine_config c = limited(UINT32_MAX);
    WORLD w;
    c.grow_ramp = true;
    c.min_executors = 1;
    c.idle_timeout_ns = 10 * SECOND;
    trp_profile_id other = start(&w, &c);
    submit(&w, (trp_profile_id){0}, 1, false);
    world_run_out(&w, SECOND);
    world_time(&w, 500 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 1);
    w.manual = true;
    submit(&w, other, 1, false);
    world_time(&w, 502 * SECOND);
    /* One for `other` is asked for, the one that is kept has expired long ago. */
    g_assert_cmpuint(w.nasked, ==, 2);
    g_assert_cmpuint(w.releases, ==, 1);
    world_lose(&w, w.live[0], TRP_LOSS_RELEASED);
    world_time(&w, 600 * SECOND);
    g_assert_cmpuint(w.nasked, ==, 2);
    world_come(&w, 1);
    g_assert_cmpuint(running_of(&w, 1), ==, 1);
    /* It has what it needs: the minimum of the first is asked for again. */
    world_time(&w, 601 * SECOND);
    g_assert_cmpuint(w.nasked, ==, 2);
}

TEST("a refused request leaves its room to others")
{
    struct trp_event refused = {.kind = TRP_EVENT_EXECUTOR_REFUSED,
                                .refused = {.text = "no room"}};
    struct trp_engine_config c = limited(1);
    WORLD w;
    trp_profile_id other = start(&w, &c);
    w.manual = true;
    submit(&w, (trp_profile_id){0}, 1, false);
    submit(&w, other, 1, false);
    g_assert_cmpuint(w.nasked, ==, 1);
    w.nasked = 0;
    world_step(&w, &refused);
    g_assert_cmpuint(w.nasked, ==, 1);
    w.manual = false;
    world_drain(&w);
    g_assert_cmpuint(running_of(&w, 1), ==, 1);
    /* Its turn comes again after a while. */
    world_run_out(&w, 2 * SECOND);
    g_assert_cmpuint(w.job_ends, ==, 2);
}

TEST("a decommissioned executor makes room when it is idle")
{
    struct trp_event decommissioned = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED};
    struct trp_engine_config c = limited(1);
    WORLD w;
    start(&w, &c);
    submit(&w, (trp_profile_id){0}, 2, false);
    world_step(&w, &decommissioned);
    g_assert_cmpuint(w.releases, ==, 0);
    end_one_of(&w, 0);
    g_assert_cmpuint(w.releases, ==, 1);
    g_assert_cmpuint(running_of(&w, 0), ==, 1);
}

TEST("an excluded executor makes room")
{
    struct trp_engine_config c = limited(1);
    WORLD w;
    c.exclusion.enabled = true;
    c.exclusion.app_tasks_per_executor = c.exclusion.stage_tasks_per_executor = 1;
    c.exclusion.task_attempts_per_executor = 2;
    c.release_idle = true;
    trp_profile_id other = start(&w, &c);
    submit(&w, (trp_profile_id){0}, 1, false);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
    submit(&w, other, 1, false);
    g_assert_cmpuint(running_of(&w, 1), ==, 1);
}

/* excludeOnFailure.killExcludedExecutors.decommission: nobody else sends it away. */
TEST("an excluded executor that has drained goes")
{
    struct trp_engine_config c = limited(UINT32_MAX);
    WORLD w;
    c.exclusion.enabled = c.exclusion.kill = c.exclusion.kill_decommission = true;
    c.exclusion.app_tasks_per_executor = c.exclusion.stage_tasks_per_executor = 1;
    c.exclusion.task_attempts_per_executor = 2;
    trp_profile_id other = start(&w, &c);
    submit(&w, other, 1, false);
    submit(&w, other, 1, false);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    while (running_of(&w, 0))
        end_one_of(&w, 0);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(running_of(&w, 1), ==, 1);
    g_assert_cmpuint(w.releases, ==, 0);
    uint32_t first = world_attempt_at(&w, 0)->executor;
    end_one_of(&w, 1);
    g_assert_cmpuint(w.releases, >, 0);
    for (guint i = 0; i < w.nlive; i++)
        g_assert_cmpuint(w.live[i], !=, first);
}

/* One made for a larger profile serves another (alloc.reuse=fit), and takes more of the
 * limits than that one asks for. */
TEST("an oversized executor does not keep a gang waiting")
{
    struct trp_profile_defaults d;
    struct trp_engine_config c = limited(UINT32_MAX);
    struct trp_alloc_caps caps = {.ncustom = 1, .custom = {{"disk", 4}}};
    WORLD w;
    trp_options_profile_defaults(NULL, &d);
    c.reuse = TRP_REUSE_FIT;
    c.caps = caps;
    world_init(&w, &d);
    world_start(&w, &c);
    trp_profile_id large = world_profile(&w, "large", 1, "disk", 4, TRP_ONE);
    trp_profile_id small = world_profile(&w, "small", 1, "disk", 1, TRP_ONE);
    static const char *const addresses[] = {"0", "1", "2", "3"};
    static const struct trp_resource_addresses disks = {"disk", addresses, 4};
    w.resources = &disks;
    w.nresources = 1;
    submit(&w, large, 1, false);
    end_one_of(&w, 0);
    g_assert_cmpuint(w.nlive, ==, 1);
    submit(&w, small, 4, true);
    g_assert_cmpuint(w.relabels, ==, 1);
    g_assert_cmpuint(running_of(&w, 1), ==, 4);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 2);
}
