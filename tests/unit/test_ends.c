/* Allocations that end: of one executor, of the run itself; what is told of it. */
#include <glib.h>

#include "conf/options.h"
#include "core/engine_state.h"
#include "unit.h"
#include "world/world.h"

static void start(struct world *w, uint32_t max_executors)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.max_executors = max_executors;
    world_init(w, NULL);
    world_start(w, &c);
}

static void submit(struct world *w, const char *name, uint32_t ntasks)
{
    struct trp_stage_spec s = {.name = name, .tasks_known = true, .ntasks = ntasks};
    world_submit(w, &s, 1);
}

static void tell_end(struct world *w, uint32_t executor, int64_t at)
{
    world_tell(w, TRP_EVENT_ENDS, .ends = {.executor = {executor}, .at_ns = at});
}

static void end_first(struct world *w, int64_t duration)
{
    world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, duration);
}

TEST("a run that can begin nothing more is told once")
{
    WORLD w;
    char why[200];
    start(&w, 2);
    submit(&w, "a", 8);
    tell_end(&w, TRP_NONE, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1); /* the other one may go on */
    g_assert_cmpuint(w.out_of_time, ==, 0);
    trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){0}, why, sizeof(why));
    g_assert_cmpstr(why, ==,
                    "its allocation ends in 4 s, and its tasks take 6 s (median)");
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 0);
    g_assert_cmpuint(w.out_of_time, ==, 1);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.out_of_time, ==, 1);
    /* The end is moved: it goes on. */
    tell_end(&w, TRP_NONE, w.now + 20 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
}

TEST("while another stage can run the run is not out of time")
{
    WORLD w;
    start(&w, 1);
    submit(&w, "long", 2);
    submit(&w, "short", 2);
    tell_end(&w, TRP_NONE, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(w.attempts[0].stage.n, ==, 1);
    g_assert_cmpuint(w.out_of_time, ==, 0);
    end_first(&w, SECOND);
    end_first(&w, SECOND);
    g_assert_cmpuint(w.out_of_time, ==, 1);
}

TEST("an executor that ends too soon is replaced")
{
    WORLD w;
    start(&w, 1);
    submit(&w, "a", 3);
    uint32_t first = w.attempts[0].executor;
    tell_end(&w, first, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
    g_assert_cmpuint(w.outlives, ==, 1);
    g_assert_cmpuint(w.outlived.outlived.executor.n, ==, first);
    g_assert_cmpint(w.outlived.outlived.takes_ns, ==, 6 * SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(w.attempts[0].executor, !=, first);
    g_assert_cmpuint(w.out_of_time, ==, 0);
}

TEST("the end of the run is no reason to replace an executor")
{
    WORLD w;
    start(&w, 2);
    submit(&w, "a", 8);
    uint32_t first = w.attempts[0].executor;
    tell_end(&w, first, w.now + 10 * SECOND);
    tell_end(&w, TRP_NONE, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.outlives, ==, 0);
}

/* The executor that runs the only attempt reaches its end; what was told of it. */
static const struct trp_action *reach_end(struct world *w)
{
    uint32_t x = w->attempts[0].executor;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
                           .decommissioned = {.executor = {x}}};
    w->now += 10 * SECOND;
    world_step(w, &ev);
    world_lose(w, x, TRP_LOSS_TIME_LIMIT);
    return &w->verdicts[w->nverdicts - 1];
}

TEST("a task may outlive one allocation but not all")
{
    WORLD w;
    start(&w, 1);
    submit(&w, "a", 1);
    for (uint32_t i = 0; i < 5; i++) {
        g_assert_cmpuint(w.nattempts, ==, 1);
        const struct trp_action *v = reach_end(&w);
        g_assert_cmpint(v->task_end.status, ==, TRP_END_LOST);
        g_assert_cmpint(v->task_end.code, ==, TRP_LOSS_TIME_LIMIT);
        g_assert_cmpint(v->task_end.counted, ==, i > 0);
        g_assert_cmpuint(v->task_end.failures, ==, i);
        g_assert_cmpint(v->task_end.retried, ==, i < 4);
    }
    g_assert_cmpuint(w.nended, ==, 1);
    const struct trp_action *end = &w.ended[0];
    g_assert_cmpint(end->stage_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_cmpstr(w.texts[0], ==, "task 0 failed 4 times");
}

TEST("each task has one end of an allocation free")
{
    WORLD w;
    start(&w, 1);
    submit(&w, "a", 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct trp_action *v = reach_end(&w);
        g_assert_cmpuint(v->task_end.task, ==, i);
        g_assert_false(v->task_end.counted);
    }
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a gang that can never be had ends its stage")
{
    WORLD w;
    struct trp_stage_spec s = {.name = "a",
                               .kind = TRP_STAGE_GANG,
                               .tasks_known = true,
                               .ntasks = 1,
                               .ranks = 4};
    start(&w, 1);
    world_submit(&w, &s, 1);
    world_end(&w, w.attempts[0].id, TRP_END_NEVER, 0, 0);
    g_assert_cmpuint(w.nattempts, ==, 0);
    const struct trp_action *end = &w.ended[0];
    g_assert_cmpint(end->stage_ended.code, ==, TRP_ENEVER);
    g_assert_cmpstr(w.texts[0], ==, "its ranks can never be had");
}

TEST("a gang may outlive one allocation but not all")
{
    WORLD w;
    struct trp_stage_spec s = {.name = "a",
                               .kind = TRP_STAGE_GANG,
                               .tasks_known = true,
                               .ntasks = 1,
                               .ranks = 4};
    start(&w, 1);
    world_submit(&w, &s, 1);
    for (uint32_t i = 0; i < 8; i++) { /* cancelled, and at its time limit */
        enum trp_loss how = i % 2 ? TRP_LOSS_TIME_LIMIT : TRP_LOSS_DECOMMISSIONED;
        world_end(&w, w.attempts[0].id, TRP_END_LOST, (int32_t)how, SECOND);
        const struct trp_action *v = &w.verdicts[w.nverdicts - 1];
        g_assert_cmpint(v->task_end.counted, ==, i > 1 && i % 2);
        g_assert_true(v->task_end.retried);
    }
    world_end(&w, w.attempts[0].id, TRP_END_LOST, TRP_LOSS_TIME_LIMIT, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 0);
    g_assert_cmpstr(w.texts[0], ==, "task 0 failed 4 times");
}

/* A gang of commands: losses of its executor have a count of their own, and its failures
 * are counted without them. */
TEST("losses are counted apart where the stage says so")
{
    struct trp_stage_spec s = {.name = "a",
                               .kind = TRP_STAGE_GANG,
                               .tasks_known = true,
                               .ntasks = 1,
                               .ranks = 4,
                               .max_failures = 2,
                               .max_losses = 4};
    for (int fails = 0; fails < 2; fails++) {
        WORLD w;
        start(&w, 1);
        world_submit(&w, &s, 1);
        for (uint32_t i = 0; i < 3; i++) {
            w.now += 10 * SECOND; /* an event of its own */
            world_end(&w, w.attempts[0].id, TRP_END_LOST, TRP_LOSS_EXITED, SECOND);
        }
        world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
        g_assert_cmpuint(w.nattempts, ==, 1);
        world_end(&w, w.attempts[0].id, fails ? TRP_END_EXIT : TRP_END_LOST,
                  fails ? 1 : TRP_LOSS_EXITED, SECOND);
        g_assert_cmpuint(w.nattempts, ==, 0);
        g_assert_cmpstr(w.texts[0], ==, "task 0 failed 5 times");
    }
}

TEST("an unknown executor is ignored")
{
    WORLD w;
    struct trp_engine_counts counts;
    start(&w, 1);
    tell_end(&w, 77, SECOND);
    trp_engine_counts(w.engine, &counts);
    g_assert_cmpuint(counts.ignored_events, ==, 1);
}

/* More would wait there if the executor lived longer. */
TEST("nothing is sent ahead to an executor that ends before")
{
    struct trp_engine_config c;
    WORLD w;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 1;
    world_begin(&w, &c, 1);
    submit(&w, "a", 100);
    tell_end(&w, 0, w.now + SECOND);
    for (int i = 0; i < 4; i++)
        end_first(&w, SECOND / 1000);
    g_assert_cmpuint(w.nattempts, >, 1);
    w.now += SECOND - SECOND / 2000;
    while (w.nattempts)
        end_first(&w, SECOND / 1000);
    g_assert_cmpuint(w.outlives, ==, 1);
}
