/* Allocations that end: of one executor, of the run itself; what is told of it. */
#include "core/engine_state.h"
#include "engine_world.h"

static void start(struct world *w, uint32_t max_executors)
{
    struct trp_engine_config c;
    trp_engine_config_init(&c);
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
    struct trp_event ev = {
        .kind = TRP_EVENT_ENDS, .ends = {.executor = {executor}, .at_ns = at}
    };
    world_step(w, &ev);
}

static void end_first(struct world *w, int64_t duration)
{
    world_end(w, g_array_index(w->attempts, struct world_attempt, 0).id,
              TRP_END_SUCCESS, 0, duration);
}

static void a_run_that_can_begin_nothing_more_is_told_once(void)
{
    struct world w;
    char why[200];
    start(&w, 2);
    submit(&w, "a", 8);
    tell_end(&w, TRP_NONE, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.attempts->len, ==, 1); /* the other one may go on */
    g_assert_cmpuint(w.out_of_time, ==, 0);
    trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){0}, why, sizeof(why));
    g_assert_cmpstr(why, ==,
                    "its allocation ends in 4 s, and its tasks take 6 s (median)");
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.attempts->len, ==, 0);
    g_assert_cmpuint(w.out_of_time, ==, 1);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.out_of_time, ==, 1);
    /* The end is moved: it goes on. */
    tell_end(&w, TRP_NONE, w.now + 20 * SECOND);
    g_assert_cmpuint(w.attempts->len, ==, 2);
    world_free(&w);
}

static void while_another_stage_can_run_the_run_is_not_out_of_time(void)
{
    struct world w;
    start(&w, 1);
    submit(&w, "long", 2);
    submit(&w, "short", 2);
    tell_end(&w, TRP_NONE, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.attempts->len, ==, 1);
    g_assert_cmpuint(g_array_index(w.attempts, struct world_attempt, 0).stage.n, ==, 1);
    g_assert_cmpuint(w.out_of_time, ==, 0);
    end_first(&w, SECOND);
    end_first(&w, SECOND);
    g_assert_cmpuint(w.out_of_time, ==, 1);
    world_free(&w);
}

static void an_executor_that_ends_too_soon_is_replaced(void)
{
    struct world w;
    start(&w, 1);
    submit(&w, "a", 3);
    uint32_t first = g_array_index(w.attempts, struct world_attempt, 0).executor;
    tell_end(&w, first, w.now + 10 * SECOND);
    w.now += 6 * SECOND;
    end_first(&w, 6 * SECOND);
    g_assert_cmpuint(w.releases, ==, 1);
    g_assert_cmpuint(w.attempts->len, ==, 1);
    g_assert_cmpuint(g_array_index(w.attempts, struct world_attempt, 0).executor, !=,
                     first);
    g_assert_cmpuint(w.out_of_time, ==, 0);
    world_free(&w);
}

static void an_unknown_executor_is_ignored(void)
{
    struct world w;
    struct trp_engine_counts counts;
    start(&w, 1);
    tell_end(&w, 77, SECOND);
    trp_engine_counts(w.engine, &counts);
    g_assert_cmpuint(counts.ignored_events, ==, 1);
    world_free(&w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(f) g_test_add_func("/ends/" #f, f)
    ADD(a_run_that_can_begin_nothing_more_is_told_once);
    ADD(while_another_stage_can_run_the_run_is_not_out_of_time);
    ADD(an_executor_that_ends_too_soon_is_replaced);
    ADD(an_unknown_executor_is_ignored);
    return g_test_run();
}
