/*
 * Targets: growth, falling, what counts; against a plain recount in random streams.
 */
#include <glib.h>

#include "core/alloc/targets.h"
#include "unit.h"

#define SECOND INT64_C(1000000000)

static trp_targets *targets_of(struct trp_targets_config c)
{
    trp_targets *t;
    if (!c.max)
        c.max = UINT32_MAX;
    if (!c.ratio)
        c.ratio = TRP_ONE;
    c.backlog_ns = c.backlog_ns ? c.backlog_ns : SECOND;
    c.sustained_ns = c.sustained_ns ? c.sustained_ns : SECOND;
    g_assert_cmpint(trp_targets_new(&c, &t), ==, 0);
    return t;
}

static void profile(trp_targets *t, uint32_t n, uint32_t slots)
{
    g_assert_cmpint(trp_targets_profile(t, n, slots, false), ==, 0);
}

static uint32_t stage(trp_targets *t, uint32_t p, uint32_t ntasks, int64_t now)
{
    uint32_t handle;
    g_assert_cmpint(trp_targets_stage(t, p, ntasks, false, now, &handle), ==, 0);
    return handle;
}

static void start(trp_targets *t, uint32_t s, uint32_t task, bool copy)
{
    g_assert_cmpint(trp_targets_started(t, s, task, copy), ==, 0);
}

static bool tick(trp_targets *t, int64_t now)
{
    bool any = trp_targets_tick(t, now);
    trp_targets_answer(t, true, now);
    return any;
}

TEST("each profile has its own deadline")
{
    trp_targets *t = targets_of((struct trp_targets_config){0});
    profile(t, 0, 1);
    profile(t, 1, 1);
    stage(t, 0, 100, 0);
    stage(t, 1, 100, SECOND / 2);
    tick(t, SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 1);
    g_assert_cmpuint(trp_targets_of(t, 1), ==, 0);
    g_assert_cmpint(trp_targets_due(t), ==, SECOND * 3 / 2);
    g_assert_false(tick(t, SECOND * 5 / 4)); /* nothing has changed */
    g_assert_true(tick(t, SECOND * 3 / 2));
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 1);
    g_assert_cmpuint(trp_targets_of(t, 1), ==, 1);
    trp_targets_free(t);
}

TEST("what was refused is as before and tried again")
{
    trp_targets *t = targets_of((struct trp_targets_config){0});
    profile(t, 0, 1);
    uint32_t s = stage(t, 0, 100, 0);
    tick(t, SECOND);
    g_assert_true(trp_targets_tick(t, 2 * SECOND));
    trp_targets_answer(t, false, 2 * SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 1);
    g_assert_cmpuint(trp_targets_to_add(t, 0), ==, 2);
    /* Tried again at the next tick. */
    g_assert_cmpint(trp_targets_due(t), ==, 2 * SECOND + TRP_TARGETS_TICK_NS);
    tick(t, 2 * SECOND + TRP_TARGETS_TICK_NS);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 3);
    trp_targets_stage_done(t, s);
    trp_targets_tick(t, 3 * SECOND);
    trp_targets_answer(t, false, 3 * SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 3);
    tick(t, 4 * SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 0);
    trp_targets_free(t);
}

/* Tasks of a stage that is over still run and need their executors. */
TEST("tasks of a stage that is over still count")
{
    trp_targets *t = targets_of((struct trp_targets_config){0});
    profile(t, 0, 2);
    uint32_t s = stage(t, 0, 4, 0);
    for (uint32_t i = 0; i < 4; i++)
        start(t, s, i, false);
    trp_targets_stage_done(t, s);
    g_assert_cmpuint(trp_targets_demand(t, 0), ==, 2);
    trp_targets_ended(t, s, 0, false, TRP_TARGETS_FAILED, 0);
    trp_targets_ended(t, s, 1, false, TRP_TARGETS_KILLED, 0);
    g_assert_cmpuint(trp_targets_demand(t, 0), ==, 1);
    g_assert_cmpint(trp_targets_due(t), <, INT64_MAX);
    g_assert_false(trp_targets_ended(t, s, 2, false, TRP_TARGETS_SUCCESS, 0));
    g_assert_true(trp_targets_ended(t, s, 3, false, TRP_TARGETS_SUCCESS, 0));
    g_assert_cmpuint(trp_targets_demand(t, 0), ==, 0);
    /* The handle is used again. */
    g_assert_cmpuint(stage(t, 0, 1, 0), ==, s);
    trp_targets_free(t);
}

TEST("a lost output makes its task pending again")
{
    trp_targets *t = targets_of((struct trp_targets_config){0});
    profile(t, 0, 1);
    uint32_t s = stage(t, 0, 1, 0);
    start(t, s, 0, false);
    trp_targets_ended(t, s, 0, false, TRP_TARGETS_SUCCESS, 0);
    g_assert_cmpuint(trp_targets_demand(t, 0), ==, 0);
    trp_targets_again(t, s, 0, SECOND);
    g_assert_cmpuint(trp_targets_demand(t, 0), ==, 1);
    trp_targets_tasks(t, s, 3, SECOND);
    g_assert_cmpuint(trp_targets_demand(t, 0), ==, 4);
    tick(t, 2 * SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 1);
    trp_targets_free(t);
}

TEST("the ratio is exact for any count")
{
    static const struct {
        const char *ratio;
        uint32_t tasks, slots, need;
    } rows[] = {
        {"1",         4000000000U, 1,       4000000000U},
        {"1",         4000000000U, 3,       1333333334 },
        {"0.5",       7,           1,       4          },
        {"0.385",     20,          2,       4          },
        {"1/1000000", 4000000000U, 1,       4000       },
        {"1/1000000", 4000000001U, 1,       4001       },
        {"1/1000000", 1,           1048576, 1          },
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct trp_targets_config c = {0};
        g_assert_cmpint(trp_amount_parse(rows[i].ratio, &c.ratio, NULL), ==, 0);
        trp_targets *t = targets_of(c);
        profile(t, 0, rows[i].slots);
        stage(t, 0, rows[i].tasks, 0);
        g_test_message("row %u", i);
        g_assert_cmpuint(trp_targets_demand(t, 0), ==, rows[i].need);
        trp_targets_free(t);
    }
}

TEST("a gang waits for no deadline")
{
    trp_targets *t = targets_of((struct trp_targets_config){.max = 10});
    uint32_t gang;
    profile(t, 0, 2);
    stage(t, 0, 100, 0);
    g_assert_cmpint(trp_targets_stage(t, 0, 7, true, 0, &gang), ==, 0);
    tick(t, 0);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 4);
    g_assert_cmpuint(trp_targets_to_add(t, 0), ==, 1);
    tick(t, SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 5);
    trp_targets_free(t);
}

TEST("a copy gets an executor on another host")
{
    trp_targets *t = targets_of((struct trp_targets_config){0});
    profile(t, 0, 4);
    uint32_t s = stage(t, 0, 5, 0);
    for (uint32_t i = 0; i < 5; i++)
        start(t, s, i, false);
    trp_targets_registered(t, 0, 2);
    trp_targets_one_host(t, 0, true);
    tick(t, SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 0);
    g_assert_cmpint(trp_targets_copy(t, s, 4, SECOND), ==, 0);
    tick(t, 2 * SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 3);
    start(t, s, 4, true);
    tick(t, 3 * SECOND);
    g_assert_cmpuint(trp_targets_of(t, 0), ==, 2);
    trp_targets_free(t);
}

/* ---- random streams against a recount ---- */

enum { STAGES = 6, TASKS = 8, PROFILES = 3 };

struct plain {
    uint32_t handle, profile;
    bool there, done, started[TASKS], copy[TASKS];
    uint32_t running[TASKS][2];
};

static uint32_t plain_running(const struct plain *s)
{
    uint32_t n = 0;
    for (int i = 0; i < TASKS; i++)
        n += s->running[i][0] + s->running[i][1];
    return n;
}

static uint32_t plain_need(const struct plain *v, uint32_t p, uint32_t slots)
{
    uint32_t n = 0, copies = 0;
    for (int s = 0; s < STAGES; s++) {
        if (!v[s].there || v[s].profile != p)
            continue;
        n += plain_running(&v[s]);
        for (int i = 0; i < TASKS && !v[s].done; i++) {
            n += !v[s].started[i];
            copies += v[s].copy[i];
        }
    }
    uint32_t need = (n + copies + slots - 1) / slots;
    return slots > 1 && need == 1 && copies ? 2 : need;
}

static void random_event(trp_targets *t, struct plain *s, GRand *r, int64_t now)
{
    uint32_t task = (uint32_t)g_rand_int_range(r, 0, TASKS);
    bool copy = g_rand_int_range(r, 0, 3) == 0;
    if (!s->there) {
        *s = (struct plain){.profile = (uint32_t)g_rand_int_range(r, 0, PROFILES),
                            .there = true};
        s->handle = stage(t, s->profile, TASKS, now);
    } else if (s->running[task][copy]) {
        enum trp_targets_end how = g_rand_int_range(r, 0, 3);
        trp_targets_ended(t, s->handle, task, copy, how, now);
        s->running[task][copy]--;
        if (how == TRP_TARGETS_SUCCESS)
            s->copy[task] = false;
        if (how == TRP_TARGETS_FAILED && !copy)
            s->started[task] = false;
    } else if (!s->done && g_rand_int_range(r, 0, 12) == 0) {
        trp_targets_stage_done(t, s->handle);
        s->done = true;
    } else if (!s->done && copy && !s->copy[task] && g_rand_boolean(r)) {
        g_assert_cmpint(trp_targets_copy(t, s->handle, task, now), ==, 0);
        s->copy[task] = true;
    } else if (!s->done) {
        start(t, s->handle, task, copy);
        s->running[task][copy]++;
        *(copy ? &s->copy[task] : &s->started[task]) = !copy;
    }
    if (s->done && !plain_running(s))
        s->there = false;
}

TEST("needs equal a recount in random streams")
{
    for (uint32_t seed = 0; seed < 200; seed++) {
        GRand *r = g_rand_new_with_seed(seed);
        struct plain v[STAGES] = {0};
        uint32_t min = (uint32_t)g_rand_int_range(r, 0, 3);
        struct trp_targets_config c = {.min = min, .max = min + 4, .initial = 1};
        trp_targets *t = targets_of(c);
        for (uint32_t p = 0; p < PROFILES; p++)
            profile(t, p, p + 1);
        for (int64_t now = 0; now < 300; now++) {
            random_event(t, &v[g_rand_int_range(r, 0, STAGES)], r, now * SECOND / 9);
            for (uint32_t p = 0; p < PROFILES; p++) {
                g_test_message("seed %u, time %d", seed, (int)now);
                g_assert_cmpuint(trp_targets_demand(t, p), ==, plain_need(v, p, p + 1));
            }
            if (trp_targets_due(t) > now * SECOND / 9)
                continue;
            tick(t, now * SECOND / 9);
            for (uint32_t p = 0; p < PROFILES; p++) {
                uint32_t target = trp_targets_of(t, p), need = plain_need(v, p, p + 1);
                g_assert_cmpuint(target, <=, MAX(need, min));
                g_assert_cmpuint(target, <=, min + 4);
            }
        }
        trp_targets_free(t);
        g_rand_free(r);
    }
}
