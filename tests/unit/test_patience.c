/* When a request may be had from an additional job. Stage a has 40 tasks on executors
 * of one slot; what is held has room for two. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

#define MS INT64_C(1000000)

static void fit(struct world *w, uint32_t executors, uint32_t additional, bool more)
{
    world_tell(w, TRP_EVENT_PROFILE_FIT,
               .fit = {.executors = executors, .additional = additional, .more = more});
}

static void waits(struct world *w, int64_t wait_ns)
{
    struct trp_event ev = {.kind = TRP_EVENT_QUEUE_WAIT};
    ev.queue_wait.wait_ns = wait_ns;
    world_step(w, &ev);
}

/* Room for `inside` of ten. Executors come when the test says so. */
static void open_world(struct world *w, const struct trp_engine_config *c,
                       uint32_t inside)
{
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    world_init(w, &d);
    world_start(w, c);
    w->manual = true;
    fit(w, 10, 10 - inside, true);
}

/* Two come, after 500 ms, and the others wait. */
static void begin(struct world *w, const struct trp_engine_config *c, uint32_t ntasks)
{
    struct trp_stage_spec s = world_stage("a", ntasks);
    open_world(w, c, 2);
    world_submit(w, &s, 1);
    world_time(w, 500 * MS);
    world_come(w, 0);
    world_come(w, 1);
    g_assert_cmpuint(w->may_add, ==, 0);
}

/* Both running tasks end, each after `took`. */
static void wave(struct world *w, int64_t took)
{
    world_time(w, w->now + took);
    for (int i = 0; i < 2; i++)
        world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, took);
}

TEST("what has no room inside is asked for at once")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 6);
    struct world w;
    open_world(&w, &c, 0);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nasked, ==, 6);
    g_assert_cmpuint(w.may_add, ==, 6);
    world_free(&w);
    /* Where nothing more can be had nothing is said. */
    open_world(&w, &c, 0);
    fit(&w, 10, 10, false);
    world_submit(&w, &s, 1);
    world_time(&w, 100 * SECOND);
    g_assert_cmpuint(w.may_add, ==, 0);
    world_free(&w);
}

TEST("tasks of unknown length are long when one has run for a second")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    WORLD w;
    begin(&w, &c, 40);
    world_time(&w, 1400 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    world_time(&w, 1500 * MS);
    g_assert_cmpuint(w.may_add, ==, 8);
    world_time(&w, 100 * SECOND);
    g_assert_cmpuint(w.may_add, ==, 8); /* told once */
}

TEST("what soon is over is not worth it")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    WORLD w;
    begin(&w, &c, 12);
    for (int i = 0; i < 6; i++)
        wave(&w, 300 * MS);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(w.may_add, ==, 0);
}

/* The second is the backlog timeout; starts take half a second. */
TEST("so many as have work for as long as they cost")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct world w;
    begin(&w, &c, 40);
    wave(&w, 300 * MS); /* 800 ms: known, and too early */
    g_assert_cmpuint(w.may_add, ==, 0);
    world_time(&w, 1000 * MS);
    /* 36 pending and two that run need 11.0 s; until 1.5 s two slots do one of it. What
     * is left are 0.8 s each for 12 slots: more than can be had. */
    g_assert_cmpuint(w.may_add, ==, 8);
    world_free(&w);
    begin(&w, &c, 20);
    wave(&w, 300 * MS);
    world_time(&w, 1000 * MS); /* 5.0 s, 4.0 s after the start: for five slots */
    g_assert_cmpuint(w.may_add, ==, 3);
    world_free(&w);
}

TEST("the wait in the queue counts")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    WORLD w;
    begin(&w, &c, 20);
    waits(&w, 4 * SECOND); /* all is over then */
    wave(&w, 300 * MS);
    world_time(&w, 1050 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    waits(&w, 0);
    wave(&w, 300 * MS); /* four have ended: it is looked at again */
    g_assert_cmpuint(w.may_add, >, 0);
}

/* Tasks as long as what is left: another executor would end none earlier. */
TEST("the last wave waits")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    WORLD w;
    begin(&w, &c, 4);
    wave(&w, 900 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    world_time(&w, 2200 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    wave(&w, 100 * MS);
    g_assert_cmpuint(w.job_ends, ==, 1);
}

TEST("what was lost is replaced at once")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 2);
    WORLD w;
    open_world(&w, &c, 2);
    world_submit(&w, &s, 1);
    world_time(&w, 500 * MS);
    world_come(&w, 0);
    world_come(&w, 1);
    world_time(&w, 10 * SECOND);
    world_lose(&w, 1, TRP_LOSS_EXITED);
    g_assert_cmpuint(w.nasked, ==, 1);
    g_assert_cmpuint(w.may_add, ==, 1);
}

/* Another place has to be tried before a stage is given up. */
TEST("a start that failed is tried elsewhere at once")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 1);
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.how = TRP_REFUSED_FAILED, .untried = true, .text = "it ended"}
    };
    WORLD w;
    open_world(&w, &c, 1);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.may_add, ==, 0);
    ev.refused.executor.n = w.asked[0];
    world_step(&w, &ev);
    world_time(&w, 2 * SECOND); /* it is asked for again */
    g_assert_cmpuint(w.may_add, ==, 1);
}

TEST("minima and gangs of executors do not wait")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 40);
    struct world w;
    open_world(&w, &c, 2);
    s.min_executors = 4;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.may_add, ==, 4);
    world_free(&w);
    open_world(&w, &c, 2);
    s = world_stage("b", 5);
    s.barrier = true;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.may_add, ==, 5);
    world_free(&w);
}

/* Others have the room inside: who has none looks when executors should have come. */
TEST("who gets nothing does not wait for ever")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s = world_stage("a", 40);
    WORLD w;
    open_world(&w, &c, 2);
    world_submit(&w, &s, 1);
    world_time(&w, 9900 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    world_time(&w, 10 * SECOND);
    g_assert_cmpuint(w.may_add, ==, 10);
}

TEST("stages of a profile are looked at together")
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s[2] = {world_stage("a", 10), world_stage("b", 10)};
    WORLD w;
    open_world(&w, &c, 2);
    world_submit(&w, s, 2);
    world_time(&w, 500 * MS);
    world_come(&w, 0);
    world_come(&w, 1);
    wave(&w, 300 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    world_time(&w, 1000 * MS); /* of b nothing is known */
    g_assert_cmpuint(w.may_add, ==, 0);
    for (int i = 0; i < 4; i++)
        wave(&w, 300 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
    wave(&w, 300 * MS); /* four are pending, and two have begun */
    world_time(&w, w.now + 250 * MS);
    g_assert_cmpuint(w.may_add, ==, 0);
}

/* A stage with some room is not looked ahead to when a job can be had at once. */
TEST("nothing is asked for ahead where there is no queue")
{
    static const struct trp_parent_spec after = {.stage = 0};
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_stage_spec s[2] = {world_stage("a", 8), world_stage("b", 8)};
    for (int queue = 0; queue < 2; queue++) {
        WORLD w;
        s[0].max_executors = 2;
        s[1].parents = &after;
        s[1].nparents = 1;
        open_world(&w, &c, 2);
        world_submit(&w, s, 2);
        world_come(&w, 0);
        world_come(&w, 1);
        waits(&w, queue ? 100 * SECOND : SECOND);
        wave(&w, 10 * SECOND);
        wave(&w, 10 * SECOND);
        wave(&w, 10 * SECOND);
        world_time(&w, w.now + 9900 * MS);
        g_assert_cmpuint(w.ahead, ==, queue ? 6 : 0);
        g_assert_cmpuint(w.may_add, ==, queue ? 6 : 0);
    }
}
