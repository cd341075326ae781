/* Who may commit the output of a task. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

/* Two tasks on two hosts. */
static void start(struct world *w, const struct trp_stage_spec *s)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 3;
    c.queue_ahead_ns = 0;
    c.speculation.enabled = true;
    c.speculation.efficiency = false;
    c.speculation.quantile = 0.5;
    world_init(w, NULL);
    world_start(w, &c);
    world_submit(w, s, 1);
    g_assert_cmpuint(w->nattempts, ==, 2);
}

static struct trp_stage_spec stage(bool barrier)
{
    return (struct trp_stage_spec){
        .name = "a", .tasks_known = true, .ntasks = 2, .barrier = barrier};
}

static struct world_attempt attempt(const struct world *w, guint i)
{
    g_assert_cmpuint(i, <, w->nattempts);
    return w->attempts[i];
}

/* What it is answered. */
static int ask(struct world *w, trp_attempt_id id)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_SYNC,
        .sync = {.attempt = id, .epoch = 3, .kind = TRP_SYNC_COMMIT}
    };
    uint32_t before = w->syncs;
    world_step(w, &ev);
    g_assert_cmpuint(w->syncs, ==, before + 1);
    g_assert_cmpuint(w->synced.synced.attempt.n, ==, id.n);
    g_assert_cmpuint(w->synced.synced.epoch, ==, 3);
    g_assert_cmpuint(w->synced.synced.nmessages, ==, 0);
    return w->synced.synced.code;
}

/* Task 0 has two attempts, on two hosts; the other task has ended. */
static void copy(struct world *w, struct world_attempt *ret_first,
                 struct world_attempt *ret_copy)
{
    *ret_first = attempt(w, 0);
    world_end(w, attempt(w, 1).id, TRP_END_SUCCESS, 0, SECOND);
    world_time(w, 60 * SECOND);
    g_assert_cmpuint(w->nattempts, ==, 2);
    *ret_copy = attempt(w, 1);
    g_assert_cmpuint(ret_copy->task, ==, 0);
    g_assert_cmpuint(ret_copy->executor, !=, ret_first->executor);
}

TEST("of two attempts the first that asks may")
{
    WORLD w;
    struct trp_stage_spec s = stage(false);
    struct world_attempt first, second;
    start(&w, &s);
    copy(&w, &first, &second);
    g_assert_cmpint(ask(&w, second.id), ==, TRP_COMMIT_FIRST);
    g_assert_cmpint(ask(&w, first.id), ==, TRP_EEXIST);
    world_end(&w, first.id, TRP_END_DENIED, 0, SECOND);
    const struct trp_action *v = &w.verdicts[w.nverdicts - 1];
    g_assert_false(v->task_end.counted);
    g_assert_cmpuint(w.nattempts, ==, 1); /* not again, while the other one writes */
    world_end(&w, second.id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("when that one fails the other may and knows")
{
    WORLD w;
    struct trp_stage_spec s = stage(false);
    struct world_attempt first, second;
    start(&w, &s);
    copy(&w, &first, &second);
    g_assert_cmpint(ask(&w, second.id), ==, TRP_COMMIT_FIRST);
    world_end(&w, second.id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpint(ask(&w, first.id), ==, TRP_COMMIT_AGAIN);
    world_end(&w, first.id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("when its executor is lost the next attempt may")
{
    WORLD w;
    struct trp_stage_spec s = stage(false);
    start(&w, &s);
    struct world_attempt first = attempt(&w, 0);
    g_assert_cmpint(ask(&w, first.id), ==, TRP_COMMIT_FIRST);
    world_lose(&w, first.executor, TRP_LOSS_HEARTBEAT);
    g_assert_cmpuint(w.nattempts, ==, 2);
    struct world_attempt next = attempt(&w, 1);
    g_assert_cmpuint(next.task, ==, 0);
    g_assert_cmpint(ask(&w, next.id), ==, TRP_COMMIT_AGAIN);
    g_assert_cmpint(ask(&w, attempt(&w, 0).id), ==, TRP_COMMIT_FIRST);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("after success no other may")
{
    WORLD w;
    struct trp_stage_spec s = stage(false);
    struct world_attempt first, second;
    start(&w, &s);
    copy(&w, &first, &second);
    g_assert_cmpint(ask(&w, second.id), ==, TRP_COMMIT_FIRST);
    world_end(&w, second.id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(ask(&w, first.id), ==, TRP_EEXIST);
    world_end(&w, first.id, TRP_END_DENIED, 0, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a barrier stage that runs again writes all again")
{
    WORLD w;
    struct trp_stage_spec s = stage(true);
    start(&w, &s);
    struct world_attempt first = attempt(&w, 0), second = attempt(&w, 1);
    g_assert_cmpint(ask(&w, first.id), ==, TRP_COMMIT_FIRST);
    world_end(&w, first.id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, second.id, TRP_END_EXIT, 1, SECOND);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpint(ask(&w, attempt(&w, 0).id), ==, TRP_COMMIT_AGAIN);
    g_assert_cmpint(ask(&w, attempt(&w, 1).id), ==, TRP_COMMIT_FIRST);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("who is being killed may not")
{
    WORLD w;
    struct trp_stage_spec s = stage(true);
    start(&w, &s);
    struct world_attempt first = attempt(&w, 0), second = attempt(&w, 1);
    world_end(&w, second.id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpint(ask(&w, first.id), ==, TRP_EEXIST);
}
