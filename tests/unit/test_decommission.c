/* Executors that are to go in good order: by an announcement, when they are idle or
 * excluded, and by force when they take too long. */
#include <glib.h>

#include "conf/options.h"
#include "core/engine_state.h"
#include "unit.h"
#include "world/world.h"

static void start(struct world *w, const struct trp_engine_config *c)
{
    world_init(w, NULL);
    world_start(w, c);
    w->manual = true;
}

static void submit(struct world *w, uint32_t ntasks)
{
    struct trp_stage_spec s = {.name = "a", .tasks_known = true, .ntasks = ntasks};
    world_submit(w, &s, 1);
    while (w->nasked)
        world_come(w, w->asked[0]);
}

static void decommission(struct world *w, uint32_t executor)
{
    world_tell(w, TRP_EVENT_EXECUTOR_DECOMMISSIONED,
               .decommissioned = {.executor = {executor}});
}

static trp_attempt_id on_executor(const struct world *w, uint32_t executor)
{
    for (guint i = 0; i < w->nattempts; i++) {
        const struct world_attempt *a = &w->attempts[i];
        if (a->executor == executor)
            return a->id;
    }
    g_error("nothing runs on executor %u", executor);
}

static const struct trp_action *verdict(const struct world *w, guint i)
{
    g_assert_cmpuint(i, <, w->nverdicts);
    return &w->verdicts[i];
}

TEST("it is released when its last task ends")
{
    struct trp_engine_config c = world_config(2);
    WORLD w;
    start(&w, &c);
    submit(&w, 4);
    decommission(&w, 0);
    g_assert_cmpuint(w.releases, ==, 0);
    world_end(&w, on_executor(&w, 0), TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
    g_assert_cmpuint(w.nattempts, ==, 1); /* nothing new there */
    decommission(&w, 1);
    world_lose(&w, 0, TRP_LOSS_RELEASED);
    world_lose(&w, 1, TRP_LOSS_EXITED);
    g_assert_cmpint(verdict(&w, 1)->task_end.status, ==, TRP_END_LOST);
    g_assert_false(verdict(&w, 1)->task_end.counted);
}

TEST("an idle one is released at once and a fixed one stays")
{
    struct trp_engine_config c = world_config(1);
    struct world w;
    for (int fixed = 0; fixed < 2; fixed++) {
        c.fixed = fixed;
        c.decommission.force_kill_ns = SECOND;
        start(&w, &c);
        world_come(&w, trp_engine_expect_executor(w.engine, (trp_profile_id){0}).n);
        decommission(&w, 0);
        decommission(&w, 0); /* said twice */
        g_assert_cmpuint(w.releases, ==, !fixed);
        world_time(&w, 2 * SECOND);
        g_assert_cmpuint(w.releases, ==, !fixed);
        world_lose(&w, 0, TRP_LOSS_RELEASED);
        world_free(&w);
    }
}

TEST("it is forced to go and nothing counts")
{
    struct trp_engine_config c = world_config(3);
    WORLD w;
    c.max_failures = 1;
    c.decommission.force_kill_ns = 5 * SECOND;
    start(&w, &c);
    submit(&w, 3);
    decommission(&w, 2);
    w.now = SECOND;
    decommission(&w, 0);
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, 5 * SECOND);
    world_time(&w, 5 * SECOND - 1);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, 5 * SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
    g_assert_cmpuint(w.nattempts, ==, 3); /* until it has gone */
    world_lose(&w, 2, TRP_LOSS_RELEASED);
    g_assert_cmpint(verdict(&w, 0)->task_end.status, ==, TRP_END_LOST);
    g_assert_false(verdict(&w, 0)->task_end.counted);
    g_assert_true(verdict(&w, 0)->task_end.retried);
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, 6 * SECOND);
    world_end(&w, on_executor(&w, 0), TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.releases, ==, 2);
    /* It goes by itself: nothing is forced any more. */
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, INT64_MAX);
    world_lose(&w, 0, TRP_LOSS_RELEASED);
}

TEST("a time that never comes forces nothing")
{
    struct trp_engine_config c = world_config(1);
    WORLD w;
    c.decommission.force_kill_ns = INT64_MAX;
    start(&w, &c);
    submit(&w, 1);
    w.now = SECOND;
    decommission(&w, 0);
    g_assert_cmpint(trp_engine_next_timer(w.engine), ==, INT64_MAX);
}

TEST("idle executors are decommissioned when that is on")
{
    struct trp_engine_config c = world_config(2);
    struct world w;
    for (int on = 0; on < 2; on++) {
        c.decommission.enabled = on;
        c.release_idle = true;
        c.idle_timeout_ns = 10 * SECOND;
        start(&w, &c);
        submit(&w, 2);
        world_run_out(&w, SECOND);
        world_time(&w, 20 * SECOND);
        g_assert_cmpuint(w.releases, ==, 2);
        g_assert_cmpuint(w.nasked, ==, 2);
        for (uint32_t i = 0; i < 2; i++)
            g_assert_true((w.engine->executors[i]->decommissioned_ns != INT64_MAX) ==
                          on);
        world_lose(&w, 0, TRP_LOSS_RELEASED);
        world_lose(&w, 1, TRP_LOSS_RELEASED);
        submit(&w, 1); /* as if they had never been */
        world_run_out(&w, SECOND);
        g_assert_cmpuint(w.job_ends, ==, 2);
        world_free(&w);
    }
}

TEST("an excluded one goes when its tasks have ended")
{
    struct trp_engine_config c = world_config(1);
    struct trp_profile_defaults d;
    struct trp_stage_spec first = {.name = "a", .tasks_known = true, .ntasks = 2};
    WORLD w;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 2;
    c.exclusion.enabled = c.exclusion.kill = c.exclusion.kill_decommission = true;
    c.exclusion.app_tasks_per_executor = 1;
    c.exclusion.task_attempts_per_executor = c.exclusion.task_attempts_per_node = 3;
    c.exclusion.stage_tasks_per_executor = 9;
    world_init(&w, &d);
    world_start(&w, &c);
    w.manual = true;
    world_submit(&w, &first, 1);
    world_come(&w, 0);
    world_end(&w, on_executor(&w, 0), TRP_END_EXIT, 1, SECOND);
    world_end(&w, on_executor(&w, 0), TRP_END_SUCCESS, 0, SECOND);
    submit(&w, 1); /* runs there beside the last one of the first stage */
    world_end(&w, w.attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    /* The first stage has succeeded: now its failure counts for the application. */
    g_assert_cmpuint(w.releases, ==, 0);
    world_end(&w, on_executor(&w, 0), TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
}
