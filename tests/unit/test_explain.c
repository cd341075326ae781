/* Why a stage waits: every reason that the engine tells, in the situation it is for. */

#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "core/sched/pools.h"
#include "unit.h"
#include "world/world.h"

static const char *why(const struct world *w, uint32_t stage)
{
    static char text[512];
    return trp_engine_why_waiting(w->engine, w->now, (trp_stage_id){stage}, text,
                                  sizeof text);
}

#define IS(w, stage, what)                                                             \
    g_assert_cmpstr(                                                                   \
        trp_wait_name(trp_engine_waits_for((w)->engine, (trp_stage_id){stage})), ==,   \
        what)

static void submit_in_pool(struct world *w, const struct trp_stage_spec *s,
                           const char *pool)
{
    struct trp_job_spec spec = {.stages = s, .nstages = 1, .pool = pool};
    world_tell(w, TRP_EVENT_JOB, .job = {.spec = &spec});
}

static void fail_first(struct world *w)
{
    world_end(w, w->attempts[0].id, TRP_END_EXIT, 1, SECOND);
}

static const char *on_one_host(uint32_t executor)
{
    (void)executor;
    return "h";
}

/* An idle one of the excluded is let go for another, which does not come. */
static void start_excluding(struct world *w, struct trp_engine_config *c,
                            const struct trp_stage_spec *s)
{
    c->exclusion.enabled = true;
    world_begin(w, c, 1);
    w->manual = true;
    world_submit(w, s, 1);
    for (uint32_t i = 0; i < c->max_executors; i++)
        world_come(w, i);
}

TEST("a static run waits for its ranks")
{
    for (int late = 0; late < 2; late++) {
        struct trp_engine_config c = world_config(UINT32_MAX);
        struct trp_stage_spec s = world_stage("a", 3);
        WORLD w;
        c.fixed = true;
        c.registered_ratio = 0.5;
        world_begin(&w, &c, 1);
        for (uint32_t i = 0; i < 4; i++)
            g_assert_cmpuint(
                trp_engine_expect_executor(w.engine, (trp_profile_id){0}).n, ==, i);
        world_come(&w, 0);
        world_submit(&w, &s, 1);
        g_assert_cmpuint(w.nattempts, ==, 0);
        g_assert_cmpstr(why(&w, 0), ==,
                        "1 of 4 executors have come; waiting for more for at most 30 s "
                        "(scheduler.minRegisteredResourcesRatio)");
        IS(&w, 0, "start");
        g_assert_cmpint(trp_engine_next_timer(w.engine), ==, 30 * SECOND);
        if (late)
            world_time(&w, 30 * SECOND);
        else
            world_come(&w, 1);
        g_assert_cmpuint(w.nattempts, ==, late ? 1 : 2);
    }
}

TEST("executors excluded for the stage are named")
{
    struct trp_engine_config c = world_config(3);
    struct trp_stage_spec s = world_stage("a", 3);
    WORLD w;
    c.exclusion.stage_tasks_per_executor = 1;
    start_excluding(&w, &c, &s);
    for (int i = 0; i < 3; i++)
        fail_first(&w);
    g_assert_cmpuint(w.nattempts, ==, 0);
    g_assert_cmpstr(why(&w, 0), ==,
                    "executor 1 is excluded for the stage: 1 task failed there "
                    "(excludeOnFailure.stage.maxFailedTasksPerExecutor), and so is the "
                    "other; another executor is asked for");
    IS(&w, 0, "excluded");
}

TEST("a task excluded from all executors is named")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 1);
    WORLD w;
    s.min_executors = 2;
    start_excluding(&w, &c, &s);
    fail_first(&w);
    fail_first(&w);
    g_assert_cmpuint(w.nattempts, ==, 0);
    g_test_message("%s", why(&w, 0));
    g_assert_true(g_str_has_prefix(
        why(&w, 0), "task 0 is excluded from executor 1: it failed there 1 times "
                    "(excludeOnFailure.task.maxTaskAttemptsPerExecutor)"));
}

TEST("hosts excluded for the application are named")
{
    struct trp_engine_config c = world_config(3);
    struct trp_stage_spec s = world_stage("a", 6);
    WORLD w;
    c.exclusion.enabled = true;
    c.exclusion.app_tasks_per_executor = c.exclusion.app_executors_per_node = 1;
    c.exclusion.stage_tasks_per_executor = c.exclusion.stage_executors_per_node = 9;
    world_begin(&w, &c, 1);
    w.host_of = on_one_host;
    world_submit(&w, &s, 1);
    fail_first(&w);
    world_run_out(&w, SECOND); /* it succeeded: its failure counts from now on */
    w.manual = true;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 0);
    g_assert_cmpstr(why(&w, 1), ==,
                    "node h is excluded for the application: 1 of its executors, or a "
                    "fetch of an output, failed (excludeOnFailure.application."
                    "maxFailedExecutorsPerNode), and so is the other; another executor "
                    "is asked for");
}

TEST("the turn of an earlier job is told")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec a = world_stage("first", 6), b = world_stage("second", 1);
    WORLD w;
    world_begin(&w, &c, 1);
    world_submit(&w, &a, 1);
    world_submit(&w, &b, 1);
    g_assert_cmpstr(why(&w, 1), ==,
                    "stage first comes first and takes the slots of profile default "
                    "(2 of its tasks run, 4 are pending)");
    IS(&w, 0, "limits");
    IS(&w, 1, "turn");
    while (w.nattempts && w.nverdicts < 4)
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    /* Nobody is before it any more; the slots are taken all the same. */
    g_assert_cmpstr(
        why(&w, 1), ==,
        "short of cores: a task takes 1, and no executor of profile default "
        "has that free (2 there)");
    IS(&w, 1, "limits");
}

TEST("the share of another pool is told")
{
    static const struct trp_pool_spec pools[] = {
        {.name = "etl", .weight = "2", .min_share = "4"},
        {.name = "adhoc",             .weight = "1"           },
    };
    struct trp_engine_config c = world_config(3);
    struct trp_stage_spec a = world_stage("load", 9), b = world_stage("ask", 9);
    struct world w;
    c.fair = true;
    c.pools = pools;
    c.npools = G_N_ELEMENTS(pools);
    world_begin(&w, &c, 1);
    submit_in_pool(&w, &a, "etl");
    submit_in_pool(&w, &b, "adhoc");
    g_assert_cmpstr(
        why(&w, 1), ==,
        "stage load comes first and takes the slots of profile default (3 "
        "of its tasks run, 6 are pending): of pool etl 3 run, minimum share "
        "4, weight 2; of its own, adhoc, 0 run, minimum share 0, weight 1");
    world_free(&w);
    /* With its share reached, the pool is not first any more. */
    c.max_executors = 4;
    world_begin(&w, &c, 1);
    submit_in_pool(&w, &a, "etl");
    submit_in_pool(&w, &b, "adhoc");
    g_assert_true(g_str_has_prefix(why(&w, 1), "short of cores"));
    world_free(&w);
}

TEST("the resource that is short is named")
{
    const char *gpus[] = {"0"};
    struct trp_resource_addresses r = {"gpu", gpus, 1};
    struct trp_engine_config c = world_config(1);
    struct trp_stage_spec a = world_stage("a", 1), b = world_stage("b", 1);
    WORLD w;
    world_begin(&w, &c, 1);
    w.resources = &r;
    w.nresources = 1;
    a.profile = b.profile = world_profile(&w, "train", 4, "gpu", 1, TRP_ONE);
    world_submit(&w, &a, 1);
    world_submit(&w, &b, 1);
    g_assert_cmpstr(
        why(&w, 1), ==,
        "short of gpu: a task takes 1, and no executor of profile train has "
        "that free (1 there)");
    IS(&w, 1, "limits");
}

TEST("a barrier counts the slots there are")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec a = world_stage("a", 1), b = world_stage("b", 4);
    WORLD w;
    world_begin(&w, &c, 2);
    b.barrier = true;
    world_submit(&w, &a, 1);
    world_submit(&w, &b, 1);
    g_assert_cmpstr(
        why(&w, 1), ==,
        "a barrier stage needs 4 slots at once, 3 of 4 are free; they are kept "
        "for it for 30 s more (barrier.reserve)");
    IS(&w, 0, "nothing");
    IS(&w, 1, "barrier");
}

TEST("the end of a wait for locality is told")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = {.name = "a"}, blocker = world_stage("b", 1);
    uint32_t first[] = {0, 1};
    struct trp_place place = {.host = "h0", .executor = TRP_NONE};
    WORLD w;
    world_begin(&w, &c, 1);
    blocker.min_executors = 2;
    world_submit(&w, &blocker, 1);
    world_submit(&w, &s, 1);
    world_tasks(&w, 1, 1, first, &place);
    world_time(&w, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpstr(why(&w, 1), ==,
                    "waiting 2.0 s more for a slot at level NODE_LOCAL");
    IS(&w, 1, "locality");
}

TEST("fixed executors that are gone are told")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 2);
    WORLD w;
    c.fixed = true;
    world_begin(&w, &c, 1);
    world_come(&w, trp_engine_expect_executor(w.engine, (trp_profile_id){0}).n);
    world_submit(&w, &s, 1);
    world_lose(&w, 0, TRP_LOSS_EXITED);
    g_assert_cmpstr(why(&w, 0), ==,
                    "no executor of profile default is left, and the executors of this "
                    "run are fixed");
    IS(&w, 0, "executor");
}

TEST("a run that drains says so")
{
    struct trp_engine_config c = world_config(1);
    struct trp_stage_spec s = world_stage("a", 3);
    struct trp_event drain = {.kind = TRP_EVENT_DRAIN};
    WORLD w;
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    world_step(&w, &drain);
    g_assert_cmpstr(why(&w, 0), ==, "the run is being ended: nothing new is started");
    IS(&w, 0, "end");
}

TEST("a request is told with what it needs")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 3);
    WORLD w;
    world_begin(&w, &c, 2);
    w.manual = true;
    world_submit(&w, &s, 1);
    world_time(&w, 12 * SECOND);
    g_test_message("%s", why(&w, 0));
    g_assert_true(g_str_has_prefix(
        why(&w, 0), "waiting for an executor of profile default (2 cores, "));
    g_assert_true(g_str_has_suffix(why(&w, 0), "): 2 asked for, the first 12 s ago"));
}

TEST("a start that fails is told")
{
    struct trp_engine_config c = world_config(1);
    struct trp_stage_spec s = world_stage("a", 1);
    struct trp_event refused = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {
                    .executor = {0}, .how = TRP_REFUSED_FAILED, .text = "no such file"}
    };
    WORLD w;
    world_begin(&w, &c, 1);
    w.manual = true;
    world_submit(&w, &s, 1);
    world_step(&w, &refused);
    g_test_message("%s", why(&w, 0));
    g_assert_nonnull(strstr(why(&w, 0), "the last request failed (no such file)"));
    world_time(&w, 60 * SECOND); /* it was asked for again */
    g_test_message("%s", why(&w, 0));
    g_assert_true(
        g_str_has_suffix(why(&w, 0), "s ago; the last start failed: no such file"));
}

TEST("slots that no limit keeps scarce are just taken")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 3), few = world_stage("few", 3);
    WORLD w;
    struct trp_event fit = {
        .kind = TRP_EVENT_PROFILE_FIT, .fit = {.profile = {0}, .executors = 2}
    };
    world_begin(&w, &c, 1);
    world_step(&w, &fit);
    few.max_running = 1;
    world_submit(&w, &s, 1);
    IS(&w, 0, "slots");
    world_run_out(&w, SECOND);
    world_submit(&w, &few, 1);
    IS(&w, 1, "max_running");
}

/* It is asked ten times a second: it does not go through tasks that have run, with which
 * this test would not end in its time. */
TEST("what has run is not looked through")
{
    enum { RAN = 200000, CALLS = 1000000 };
    struct trp_engine_config c = world_config(1);
    struct trp_stage_spec s = world_stage("a", 2 * RAN);
    WORLD w;
    world_begin(&w, &c, 1);
    w.unchecked = true;
    world_submit(&w, &s, 1);
    for (uint32_t i = 0; i < RAN; i++)
        world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    for (int i = 0; i < CALLS; i++)
        IS(&w, 0, "limits");
}

TEST("tasks of parents are waited for")
{
    struct trp_engine_config c = world_config(2);
    struct trp_parent_spec each = {.each = true};
    struct trp_stage_spec v[] = {world_stage("a", 4), world_stage("b", 4)};
    WORLD w;
    world_begin(&w, &c, 1);
    v[1].parents = &each;
    v[1].nparents = 1;
    world_submit(&w, v, 2);
    IS(&w, 0, "limits");
    IS(&w, 1, "parents");
    g_assert_cmpstr(why(&w, 1), ==, "waiting for tasks of stage a");
    world_run_out(&w, SECOND);
    IS(&w, 1, "nothing");
}

TEST("all stages that are waited for are named")
{
    struct trp_engine_config c = world_config(1);
    struct trp_parent_spec parents[10] = {0};
    struct trp_stage_spec v[11];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f",
                                        "g", "h", "i", "j", "k"};
    WORLD w;
    world_begin(&w, &c, 1);
    for (uint32_t i = 0; i < 11; i++) {
        v[i] = world_stage(names[i], 1);
        v[i].parents = parents;
        v[i].nparents = i == 2 || i == 10 ? i : 0;
        if (i < 10)
            parents[i].stage = i;
    }
    world_submit(&w, v, 11);
    g_assert_cmpstr(why(&w, 2), ==, "waiting for stages a and b");
    g_assert_cmpstr(why(&w, 10), ==,
                    "waiting for stages a, b, c, d, e, f, g, h and 2 more");
    world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpstr(why(&w, 2), ==, "waiting for stage b");
}

TEST("the room of a gang is told")
{
    struct trp_engine_config c = world_config(1);
    struct trp_stage_spec s = world_stage("a", 1);
    WORLD w;
    world_begin(&w, &c, 2);
    s.kind = TRP_STAGE_GANG;
    s.ranks = 8;
    world_submit(&w, &s, 1);
    g_test_message("%s", why(&w, 0));
    g_assert_true(g_str_has_prefix(
        why(&w, 0),
        "waiting for room for 8 ranks of profile default at once (8 cores, "));
}
