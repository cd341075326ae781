/* Slots that are kept for a barrier stage in real rounds (semantics, difference 25).
 * What rounds by hand decide is in tests/scenarios. */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

enum { LONG, GANG, MANY };

/* A long task, a barrier stage of two, many tasks: on two slots. */
static void begin(struct world *w, struct trp_engine_config c)
{
    struct trp_stage_spec v[] = {world_stage("long", 1), world_stage("gang", 2),
                                 world_stage("many", 8)};
    v[GANG].barrier = true;
    world_init(w, NULL);
    world_start(w, &c);
    world_submit(w, v, 3);
}

static guint running(const struct world *w, uint32_t stage)
{
    guint n = 0;
    for (guint i = 0; i < w->nattempts; i++) {
        const struct world_attempt *a = &w->attempts[i];
        n += a->stage.n == stage && !a->queued;
    }
    return n;
}

static void end_one(struct world *w, uint32_t stage, int64_t duration_ns)
{
    for (guint i = 0; i < w->nattempts; i++) {
        struct world_attempt a = w->attempts[i];
        if (a.stage.n != stage || a.queued)
            continue;
        world_end(w, a.id, TRP_END_SUCCESS, 0, duration_ns);
        return;
    }
    g_error("nothing of stage %u runs", stage);
}

static void explain(struct world *w, uint32_t stage, const char *has)
{
    char text[512];
    trp_engine_why_waiting(w->engine, w->now, (trp_stage_id){stage}, text,
                           sizeof(text));
    if (!strstr(text, has))
        g_error("stage %u: %s", stage, text);
}

TEST("a barrier stage does not wait for later stages")
{
    WORLD w;
    begin(&w, world_config(2));
    g_assert_cmpuint(w.nlive, ==, 2);
    g_assert_cmpuint(running(&w, LONG), ==, 1);
    g_assert_cmpuint(running(&w, MANY), ==, 0);
    explain(&w, GANG, "1 of 2 are free; they are kept for it for 30 s more");
    explain(&w, MANY, "barrier stage gang comes first, which needs 2 slots");
    w.now += SECOND;
    end_one(&w, LONG, SECOND);
    g_assert_cmpuint(running(&w, GANG), ==, 2);
    w.now += SECOND;
    end_one(&w, GANG, SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("without the option it does")
{
    struct trp_engine_config c = world_config(2);
    WORLD w;
    c.barrier.reserve_ns = 0;
    begin(&w, c);
    g_assert_cmpuint(running(&w, MANY), ==, 1);
    end_one(&w, LONG, SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 2);
    world_run_out(&w, SECOND);
}

TEST("after its time others get what is free once")
{
    WORLD w;
    begin(&w, world_config(2));
    int64_t since = w.now;
    world_time(&w, since + 29 * SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 0);
    world_time(&w, since + 30 * SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 1);
    w.now += SECOND;
    end_one(&w, MANY, SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 0);
    world_time(&w, since + 59 * SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 0);
    world_time(&w, since + 60 * SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 1);
    /* Nothing is free when the time is over: it begins anew with what is free next. */
    world_time(&w, since + 95 * SECOND);
    end_one(&w, MANY, SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 0);
    world_time(&w, since + 124 * SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 0);
    world_time(&w, since + 125 * SECOND);
    g_assert_cmpuint(running(&w, MANY), ==, 1);
    end_one(&w, LONG, SECOND);
    g_assert_cmpuint(running(&w, GANG), ==, 0);
    end_one(&w, MANY, SECOND);
    g_assert_cmpuint(running(&w, GANG), ==, 2);
    world_run_out(&w, SECOND);
}

TEST("nothing is kept until executors are enough")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec v[] = {world_stage("gang", 2), world_stage("many", 4)};
    WORLD w;
    v[0].barrier = true;
    world_init(&w, NULL);
    w.manual = true;
    world_start(&w, &c);
    world_submit(&w, v, 2);
    g_assert_cmpuint(w.nasked, ==, 2);
    world_come(&w, w.asked[0]);
    g_assert_cmpuint(running(&w, 1), ==, 1);
    world_come(&w, w.asked[0]);
    g_assert_cmpuint(running(&w, 1), ==, 1);
    world_lose(&w, w.live[1], TRP_LOSS_EXITED);
    end_one(&w, 1, SECOND);
    g_assert_cmpuint(running(&w, 1), ==, 1);
    world_come(&w, w.asked[0]);
    end_one(&w, 1, SECOND);
    g_assert_cmpuint(running(&w, 0), ==, 2);
    w.manual = false;
    world_run_out(&w, SECOND);
}

/* Tasks that wait on an executor would take over the slot that is to be kept. */
TEST("later tasks that were sent ahead are recalled")
{
    const int64_t ms = SECOND / 1000;
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec v[] = {world_stage("first", 1), world_stage("gang", 2),
                                 world_stage("many", 4000)};
    struct trp_parent_spec after = {.stage = 0};
    WORLD w;
    v[1].barrier = true;
    v[1].parents = &after;
    v[1].nparents = 1;
    c.queue_ahead_ns = SECOND;
    world_begin(&w, &c, 1);
    world_submit(&w, v, 3);
    for (guint i = 0; i < 30; i++) {
        w.now += ms;
        end_one(&w, 2, ms);
    }
    g_assert_cmpuint(w.nattempts, >, 10);
    w.now += ms;
    end_one(&w, 0, 30 * ms);
    g_assert_cmpuint(running(&w, 1), ==, 0);
    for (guint i = 0; i < w.nattempts;) {
        struct world_attempt a = w.attempts[i++];
        g_assert_true(a.recall == a.queued);
        if (!a.recall)
            continue;
        world_end(&w, a.id, TRP_END_RECALLED, 0, 0);
        i = 0;
    }
    g_assert_cmpuint(w.nattempts, ==, 2);
    end_one(&w, 2, ms);
    g_assert_cmpuint(running(&w, 1), ==, 0);
    end_one(&w, 2, ms);
    g_assert_cmpuint(running(&w, 1), ==, 2);
    w.unchecked = true;
    world_run_out(&w, ms);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

/* A barrier stage that waits leaves a slot free, which is no use to it yet. */
TEST("earlier tasks that were sent ahead are recalled for a free slot")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec v[] = {world_stage("many", 4), world_stage("gang", 2)};
    WORLD w;
    v[1].barrier = true;
    c.queue_ahead_ns = SECOND;
    world_init(&w, NULL);
    w.manual = true;
    world_start(&w, &c);
    world_submit(&w, v, 2);
    uint32_t second = w.asked[1];
    world_come(&w, w.asked[0]);
    while (w.nattempts < 2) /* one runs, one is queued behind it */
        end_one(&w, 0, 1000);
    world_come(&w, second);
    struct world_attempt last = w.attempts[1];
    g_assert_true(last.queued);
    g_assert_true(last.recall);
    world_end(&w, last.id, TRP_END_RECALLED, 0, 0);
    g_assert_cmpuint(running(&w, 0), ==, 2);
    g_assert_cmpuint(world_attempt_at(&w, 1)->executor, ==, second);
    end_one(&w, 0, 1000);
    g_assert_cmpuint(running(&w, 1), ==, 0);
    end_one(&w, 0, 1000);
    g_assert_cmpuint(running(&w, 1), ==, 2);
}
