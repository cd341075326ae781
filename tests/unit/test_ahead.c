/* When executors of a stage that is not ready yet are asked for, and what becomes of
 * them. Stage a runs on two executors that are held; b, of its own profile, needs more
 * than what is held has room for. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

enum { A, B };

static struct trp_engine_config plain(void)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.idle_timeout_ns = 60 * SECOND;
    return c;
}

static trp_profile_id other_profile(struct world *w)
{
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_error err;
    trp_profile_builder_init(&b, "other");
    g_assert_cmpint(trp_profile_builder_executor(&b, "cores", 2, &err), ==, 0);
    g_assert_cmpint(trp_profile_builder_task(&b, "cpus", TRP_ONE, &err), ==, 0);
    g_assert_cmpint(trp_profiles_add(w->profiles, &b, &id, &err), ==, 0);
    return id;
}

static void fit(struct world *w, uint32_t profile, uint32_t executors,
                uint32_t additional)
{
    struct trp_event ev = {.kind = TRP_EVENT_PROFILE_FIT};
    ev.fit.profile.n = profile;
    ev.fit.executors = executors;
    ev.fit.additional = additional;
    world_step(w, &ev);
}

static void waits(struct world *w, uint32_t profile, int64_t wait_ns)
{
    struct trp_event ev = {.kind = TRP_EVENT_QUEUE_WAIT};
    ev.queue_wait.profile.n = profile;
    ev.queue_wait.wait_ns = wait_ns;
    world_step(w, &ev);
}

/* a: tasks on two executors of one slot; b: 6 tasks on executors of two slots, of which
 * one is held. */
static void begin(struct world *w, const struct trp_engine_config *c, uint32_t atasks,
                  struct trp_stage_spec *b)
{
    static const struct trp_parent_spec after = {.stage = A};
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    world_init(w, &d);
    struct trp_stage_spec s[2] = {world_stage("a", atasks), world_stage("b", 6)};
    s[A].max_executors = 2;
    s[B].profile = other_profile(w);
    s[B].parents = &after;
    s[B].nparents = 1;
    if (b) {
        s[B].look_ahead = b->look_ahead;
        s[B].look_ahead_ns = b->look_ahead_ns;
        s[B].max_executors = b->max_executors;
    }
    world_start(w, c);
    fit(w, A, 8, 6);
    fit(w, B, 8, 7);
    world_submit(w, s, 2);
    g_assert_cmpuint(w->nlive, ==, 2);
    w->manual = true;
}

static void end_first(struct world *w, int64_t took)
{
    world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, took);
}

/* Both running tasks of a end at `at`. */
static void end_wave(struct world *w, int64_t at)
{
    world_time(w, at);
    end_first(w, 10 * SECOND);
    end_first(w, 10 * SECOND);
}

/* The executors that were asked for come, those that were released go. */
static void all_come(struct world *w)
{
    w->manual = false;
    world_drain(w);
    w->manual = true;
}

static uint32_t requested(const struct world *w)
{
    struct trp_engine_counts n;
    trp_engine_counts(w->engine, &n);
    return n.executors_requested;
}

TEST("they are asked for when what is left is no more than the wait")
{
    struct trp_engine_config c = plain();
    WORLD w;
    begin(&w, &c, 8, NULL);
    world_time(&w, 10 * SECOND);
    g_assert_cmpuint(w.waits_asked, ==, 0); /* nothing is known yet */
    end_wave(&w, 10 * SECOND);              /* 30 s are left */
    g_assert_cmpuint(w.waits_asked, ==, 1);
    waits(&w, B, 15 * SECOND);
    world_time(&w, 24 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 0);
    end_wave(&w, 24 * SECOND); /* later than was thought: 20 s are left */
    world_time(&w, 28 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 0);
    world_time(&w, 30 * SECOND); /* 14 s */
    g_assert_cmpuint(w.ahead, ==, 2);
    g_assert_cmpuint(w.waits_asked, ==, 1);
    all_come(&w);
    end_wave(&w, 34 * SECOND);
    end_wave(&w, 44 * SECOND);
    /* b begins: two executors are there, one is asked for. */
    g_assert_cmpuint(w.nattempts, ==, 4);
    g_assert_cmpuint(requested(&w), ==, 1);
    g_assert_cmpuint(w.ahead, ==, 2);
}

TEST("those that wait are needed when the stage begins")
{
    struct trp_engine_config c = plain();
    WORLD w;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 2);
    g_assert_cmpuint(w.needed, ==, 0);
    end_wave(&w, 20 * SECOND);
    g_assert_cmpuint(w.needed, ==, 2);
    g_assert_cmpuint(requested(&w), ==, 3);
    all_come(&w);
    g_assert_cmpuint(w.nattempts, ==, 6);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
}

TEST("they go when the stage will not come")
{
    struct trp_engine_config c = plain();
    WORLD w;
    c.max_failures = 1;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 2);
    g_assert_cmpuint(requested(&w), ==, 2);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(requested(&w), ==, 0);
    g_assert_cmpuint(w.releases, >=, 2);
}

TEST("draining withdraws them")
{
    struct trp_engine_config c = plain();
    struct trp_event drain = {.kind = TRP_EVENT_DRAIN};
    WORLD w;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(requested(&w), ==, 2);
    world_step(&w, &drain);
    g_assert_cmpuint(requested(&w), ==, 0);
}

TEST("off never asks and a time is a fixed lead")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec b = {.look_ahead = TRP_LOOK_AHEAD_TIME,
                               .look_ahead_ns = 5 * SECOND};
    struct world w;
    c.look_ahead = TRP_LOOK_AHEAD_OFF;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    world_time(&w, 20 * SECOND);
    g_assert_cmpuint(w.ahead + w.waits_asked, ==, 0);
    world_free(&w);
    begin(&w, &c, 4, &b); /* the stage's own word is above the option */
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    world_time(&w, 14 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 0);
    world_time(&w, 16 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 2);
    g_assert_cmpuint(w.waits_asked, ==, 0); /* it would not matter */
    world_free(&w);
}

TEST("what is held is not asked for")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec b = {.max_executors = 1};
    WORLD w;
    begin(&w, &c, 4, &b);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    world_time(&w, 15 * SECOND);
    g_assert_cmpuint(w.ahead + w.waits_asked, ==, 0);
    g_assert_cmpint(trp_engine_next_timer(w.engine), >=, 75 * SECOND);
    fit(&w, B, 8, 8); /* the one that was held is gone */
    g_assert_cmpuint(w.ahead, ==, 1);
}

TEST("limits are for what runs first")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec other = world_stage("c", 1);
    WORLD w;
    c.alloc_max_executors = 3;
    begin(&w, &c, 6, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 1);
    world_submit(&w, &other, 1);
    g_assert_cmpuint(w.releases, ==, 1);
    all_come(&w);
    g_assert_cmpuint(w.nlive, ==, 3);
    g_assert_cmpuint(w.nattempts, ==, 3);
}

TEST("nothing is asked ahead while others lack executors")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec other = world_stage("c", 3);
    WORLD w;
    begin(&w, &c, 4, NULL);
    world_submit(&w, &other, 1);
    g_assert_cmpuint(requested(&w), ==, 3);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 0);
    all_come(&w);
    world_time(&w, 11 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 2);
}

TEST("those that came early are kept for a while")
{
    struct trp_engine_config c = plain();
    WORLD w;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    waits(&w, B, 0);
    all_come(&w);
    g_assert_cmpuint(w.nlive, ==, 4);
    /* a should have ended at 20 s, and any moment since: twice the lead of 100 s and an
     * idle timeout. */
    world_time(&w, 269 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, 271 * SECOND);
    g_assert_cmpuint(w.releases, ==, 2);
    all_come(&w);
    world_time(&w, 600 * SECOND); /* and not asked for again */
    g_assert_cmpuint(w.ahead, ==, 2);
    end_first(&w, 590 * SECOND);
    end_first(&w, 590 * SECOND);
    all_come(&w);
    g_assert_cmpuint(w.nattempts, ==, 6);
}

TEST("those that came go when much more is left than was thought")
{
    struct trp_engine_config c = plain();
    WORLD w;
    begin(&w, &c, 40, NULL);
    waits(&w, B, 200 * SECOND);
    end_wave(&w, 10 * SECOND); /* 190 s are left, it seems */
    g_assert_cmpuint(w.ahead, ==, 2);
    waits(&w, B, 20 * SECOND);
    all_come(&w);
    for (int64_t i = 1; i < 4; i++) {
        world_time(&w, (10 + 60 * i) * SECOND);
        end_first(&w, 60 * SECOND);
        end_first(&w, 60 * SECOND);
    }
    world_time(&w, 240 * SECOND);
    g_assert_cmpuint(w.releases, ==, 0);
    world_time(&w, 261 * SECOND); /* late by an idle timeout, and hundreds are left */
    g_assert_cmpuint(w.releases, ==, 2);
}

TEST("the first that end do not tell how long the others take")
{
    struct trp_engine_config c = plain();
    struct trp_stage_spec s[2] = {world_stage("a", 8), world_stage("b", 6)};
    struct trp_parent_spec after = {.stage = A};
    struct trp_profile_defaults d;
    WORLD w;
    trp_options_profile_defaults(NULL, &d);
    world_init(&w, &d);
    s[B].profile = other_profile(&w);
    s[B].parents = &after;
    s[B].nparents = 1;
    world_start(&w, &c);
    fit(&w, A, 8, 0);
    fit(&w, B, 8, 8);
    waits(&w, B, 15 * SECOND);
    world_submit(&w, s, 2);
    w.manual = true;
    world_time(&w, SECOND);
    end_first(&w, SECOND); /* the other seven may take an hour */
    world_time(&w, 30 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 0);
    for (int i = 0; i < 3; i++)
        end_first(&w, 30 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 3); /* half have ended */
}

TEST("a request that waits is never too early")
{
    struct trp_engine_config c = plain();
    WORLD w;
    begin(&w, &c, 40, NULL);
    waits(&w, B, 1000 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 2);
    waits(&w, B, SECOND);
    world_time(&w, 1000 * SECOND);
    g_assert_cmpuint(requested(&w), ==, 2);
    g_assert_cmpuint(w.releases, ==, 0);
}

TEST("a lost one is asked for again")
{
    struct trp_engine_config c = plain();
    WORLD w;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    all_come(&w);
    g_assert_cmpuint(w.nlive, ==, 4);
    world_lose(&w, w.live[3], TRP_LOSS_EXITED);
    g_assert_cmpuint(w.ahead, ==, 3);
}

/* One of a's is lost, while none is asked for ahead, since others lack executors. */
TEST("what replaces a lost one is needed at once")
{
    static const struct trp_parent_spec after = {.stage = A};
    struct trp_engine_config c = plain();
    struct trp_stage_spec s[2] = {world_stage("a", 4), world_stage("b", 6)};
    struct trp_stage_spec other = world_stage("c", 3);
    WORLD w;
    world_init(&w, NULL);
    s[A].max_executors = 2;
    s[B].parents = &after;
    s[B].nparents = 1;
    s[B].look_ahead = TRP_LOOK_AHEAD_TIME;
    s[B].look_ahead_ns = 100 * SECOND;
    other.profile = other_profile(&w);
    world_start(&w, &c);
    fit(&w, A, 8, 6);
    world_submit(&w, s, 2);
    w.manual = true;
    world_submit(&w, &other, 1);
    g_assert_cmpuint(requested(&w), ==, 2);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(requested(&w), ==, 2);
    world_lose(&w, w.live[0], TRP_LOSS_EXITED);
    g_assert_cmpuint(requested(&w), ==, 3);
    g_assert_cmpuint(w.ahead, ==, 0);
}

TEST("one that is refused is nobodys failure")
{
    struct trp_engine_config c = plain();
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_REFUSED};
    WORLD w;
    begin(&w, &c, 4, NULL);
    waits(&w, B, 100 * SECOND);
    end_wave(&w, 10 * SECOND);
    g_assert_cmpuint(w.nasked, ==, 2);
    ev.refused.executor.n = w.asked[0];
    ev.refused.how = TRP_REFUSED_NEVER;
    ev.refused.text = "a limit";
    world_step(&w, &ev);
    g_assert_cmpuint(requested(&w), ==, 0); /* the other one went too */
    world_time(&w, 15 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 2);
    end_wave(&w, 20 * SECOND);
    g_assert_cmpuint(w.job_ends, ==, 0);
    g_assert_cmpuint(requested(&w), ==, 3);
}

TEST("a stage waits for its slowest parent")
{
    struct trp_parent_spec after[2] = {0};
    struct trp_engine_config c = plain();
    struct trp_profile_defaults d;
    WORLD w;
    after[1].stage = 1;
    trp_options_profile_defaults(NULL, &d);
    world_init(&w, &d);
    struct trp_stage_spec s[3] = {world_stage("short", 2), world_stage("long", 20),
                                  world_stage("b", 6)};
    s[0].max_executors = s[1].max_executors = 1;
    s[2].profile = other_profile(&w);
    s[2].parents = after;
    s[2].nparents = 2;
    world_start(&w, &c);
    fit(&w, B, 8, 8);
    waits(&w, B, 15 * SECOND);
    world_submit(&w, s, 3);
    w.manual = true;
    /* short: task 0 ends at 10 s, long: at 10 s as well, and 19 are to come. */
    end_wave(&w, 10 * SECOND);
    end_first(&w, 10 * SECOND);
    world_time(&w, 12 * SECOND);
    g_assert_cmpuint(w.ahead, ==, 0);
}
