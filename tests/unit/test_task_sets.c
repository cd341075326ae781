/* Task sets in real rounds: gangs of executors, copies of slow tasks, exclusion on
 * failure, executors that are about to go. What rounds by hand decide is in
 * tests/scenarios. */
#include <glib.h>

#include "conf/options.h"
#include "core/topo/hosts.h"
#include "unit.h"
#include "world/world.h"

TEST("a barrier stage starts when all its slots are there")
{
    struct trp_engine_config c = world_config(4);
    struct trp_stage_spec s = world_stage("a", 3);
    WORLD w;
    s.barrier = true;
    world_init(&w, NULL);
    w.manual = true;
    world_start(&w, &c);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nasked, ==, 3);
    for (guint i = 0; i < 3; i++) {
        g_assert_cmpuint(w.nattempts, ==, 0);
        uint32_t x = w.asked[0];
        world_come(&w, x);
    }
    g_assert_cmpuint(w.nattempts, ==, 3);
    for (guint i = 0; i < 3; i++)
        g_assert_cmpuint(world_attempt_at(&w, i)->task, ==, i);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a barrier stage beyond the limits fails at once")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 3);
    WORLD w;
    s.barrier = true;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 0);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
}

TEST("a slow task gets a copy and the first to finish wins")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 4);
    WORLD w;
    c.speculation.enabled = true;
    c.speculation.quantile = 0.5;
    c.speculation.multiplier = 2;
    c.speculation.efficiency = false;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    trp_attempt_id slow = world_attempt_at(&w, 0)->id;
    for (guint i = 0; i < 3; i++) {
        w.now += SECOND;
        world_end(&w, world_attempt_at(&w, 1)->id, TRP_END_SUCCESS, 0, SECOND);
    }
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(world_attempt_at(&w, 1)->task, ==, 0);
    g_assert_cmpuint(world_attempt_at(&w, 1)->executor, !=,
                     world_attempt_at(&w, 0)->executor);
    world_end(&w, world_attempt_at(&w, 1)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_true(world_find(&w, slow)->kill);
    world_end(&w, slow, TRP_END_KILLED, 0, 5 * SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a task leaves the executor it failed on")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 1);
    WORLD w;
    c.exclusion.enabled = true;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t was = world_attempt_at(&w, 0)->executor;
        w.now += SECOND;
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
        g_assert_cmpuint(w.nattempts, ==, 1);
        g_assert_cmpuint(world_attempt_at(&w, 0)->executor, !=, was);
    }
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

/* Ends what runs on one executor until four or more tasks wait there. */
static void fill_queue(struct world *w, uint32_t executor, trp_stage_id stage)
{
    guint waiting = 0;
    while (waiting < 4) {
        trp_attempt_id runs = {0};
        waiting = 0;
        for (guint i = 0; i < w->nattempts; i++) {
            const struct world_attempt *a = world_attempt_at(w, i);
            if (a->executor == executor && a->stage.n == stage.n && !a->queued)
                runs = a->id;
            waiting += a->executor == executor && a->queued;
        }
        if (waiting < 4)
            world_end(w, runs, TRP_END_SUCCESS, 0, 1000);
    }
}

/* Are all that wait there to come back? */
static bool are_recalled(const struct world *w, uint32_t executor)
{
    bool all = true;
    for (guint i = 0; i < w->nattempts; i++) {
        const struct world_attempt *a = world_attempt_at(w, i);
        all &= a->executor != executor || !a->queued || a->recall;
    }
    return all;
}

TEST("what waits on an excluded executor goes elsewhere")
{
    struct trp_engine_config c;
    struct trp_stage_spec s = world_stage("a", 30);
    WORLD w;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 1;
    c.exclusion.enabled = true;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    fill_queue(&w, 0, (trp_stage_id){0});
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, 1000);
    g_assert_false(are_recalled(&w, 0));
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, 1000);
    g_assert_true(are_recalled(&w, 0));
}

TEST("what waits on an executor that the application excludes goes elsewhere")
{
    struct trp_engine_config c;
    struct trp_stage_spec v[] = {world_stage("a", 1), world_stage("b", 40)};
    WORLD w;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 2;
    c.exclusion.enabled = true;
    c.exclusion.app_tasks_per_executor = 1;
    world_begin(&w, &c, 1);
    world_submit(&w, v, 2);
    const struct world_attempt *a = world_attempt_at(&w, 0);
    uint32_t bad = a->executor;
    g_assert_cmpuint(a->stage.n, ==, 0);
    world_end(&w, a->id, TRP_END_EXIT, 1, 1000);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    fill_queue(&w, bad, (trp_stage_id){1});
    for (guint i = 0; i < w.nattempts; i++)
        if (world_attempt_at(&w, i)->stage.n == 0) {
            g_assert_cmpuint(world_attempt_at(&w, i)->executor, !=, bad);
            world_end(&w, world_attempt_at(&w, i)->id, TRP_END_SUCCESS, 0, 1000);
            break;
        }
    g_assert_true(are_recalled(&w, bad));
}

/* Of a fixed set, with tasks of one core or four. */
static void begin_fixed(struct world *w, struct trp_engine_config *c, int64_t cores,
                        uint32_t executors, trp_profile_id *ret_wide)
{
    struct trp_profile_defaults d;
    struct trp_profile_builder b;
    trp_error err;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = cores;
    d.cores_configured = true;
    d.kind = TRP_MANAGER_STATIC;
    c->fixed = true;
    world_init(w, &d);
    trp_profile_builder_init(&b, "wide");
    g_assert_cmpint(trp_profile_builder_task(&b, "cpus", cores * TRP_ONE, &err), ==, 0);
    g_assert_cmpint(trp_profiles_add(w->profiles, &b, ret_wide, &err), ==, 0);
    world_start(w, c);
    for (uint32_t i = 0; i < executors; i++)
        world_come(w, trp_engine_expect_executor(w->engine, (trp_profile_id){0}).n);
}

/* A stage whose tasks prefer h0. */
static void submit_at_h0(struct world *w, struct trp_stage_spec s, uint32_t stage,
                         uint32_t ntasks)
{
    static const uint32_t first[] = {0, 1, 2};
    static const struct trp_place at[] = {
        {"h0", TRP_NONE},
        {"h0", TRP_NONE}
    };
    s.tasks_known = false;
    world_submit(w, &s, 1);
    world_tasks(w, stage, ntasks, first, at);
}

/* Only a launch gives a stage that can run nowhere more time. */
TEST("offers without a launch leave the time of the excluded")
{
    struct trp_engine_config c = world_config(3);
    struct trp_stage_spec a = world_stage("a", 1);
    WORLD w;
    trp_profile_id wide;
    c.exclusion.enabled = true;
    c.max_failures = 5;
    c.locality_wait_ns[TRP_NODE_LOCAL] = 3600 * SECOND;
    begin_fixed(&w, &c, 4, 3, &wide);
    world_submit(&w, &a, 1);
    for (guint i = 0; i < 3; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 0);
    submit_at_h0(&w, world_stage("b", 0), 1, 2); /* it begins: a has time anew */
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_time(&w, w.now + 2 * SECOND);
    struct trp_stage_spec c4 = world_stage("c", 0);
    c4.profile = wide;
    submit_at_h0(&w, c4, 2, 1);
    world_time(&w, w.now + 60 * SECOND);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1); /* c waits for h0 */
    world_time(&w, w.now + 60 * SECOND);
    g_assert_cmpuint(w.nended, ==, 1);
    g_assert_cmpuint(w.ended[0].stage_ended.stage.n, ==, 0);
}

TEST("a decommissioned executor gets nothing and its loss counts nothing")
{
    struct trp_engine_config c = world_config(1);
    struct trp_stage_spec s = world_stage("a", 2);
    WORLD w;
    s.max_failures = 1;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    uint32_t was = world_attempt_at(&w, 0)->executor;
    world_tell(&w, TRP_EVENT_EXECUTOR_DECOMMISSIONED,
               .decommissioned = {.executor = {was}});
    world_lose(&w, was, TRP_LOSS_EXITED);
    g_assert_cmpuint(world_attempt_at(&w, 0)->executor, !=, was);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

static const char *on_h2_then_h3(uint32_t executor)
{
    return executor ? "h3" : "h2";
}

/* No executor was ever on h1, whose rack is that of h2. */
TEST("the rack of a host without executors counts")
{
    static const struct trp_host_rack racks[] = {
        {"h1", "r1"},
        {"h2", "r1"},
        {"h1", "r9"}, /* said twice: the first word counts */
        {"h3", "r2"},
    };
    const uint32_t first[] = {0, 1};
    const struct trp_place h1 = {"h1", TRP_NONE};
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = {.name = "a", .min_executors = 2};
    WORLD w;
    c.racks = racks;
    c.nracks = G_N_ELEMENTS(racks);
    world_init(&w, NULL);
    w.manual = true;
    w.host_of = on_h2_then_h3;
    world_start(&w, &c);
    world_submit(&w, &s, 1);
    world_tasks(&w, 0, 1, first, &h1);
    g_assert_cmpuint(w.nasked, ==, 2);
    world_come(&w, 0);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpint(world_attempt_at(&w, 0)->level, ==, TRP_RACK_LOCAL);
    world_come(&w, 1);
    world_run_out(&w, SECOND);
}
