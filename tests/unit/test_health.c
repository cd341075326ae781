/*
 * Exclusion on failure: the record of a task set, the application's tracker, beyond what
 * the scenarios of layer health say.
 * A slow oracle, written from section 12 with lists of all failures, agrees on random
 * streams.
 */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "core/base/ids.h"
#include "core/sched/health.h"
#include "unit.h"

#define MS INT64_C(1000000)

static struct trp_health_config make_config(void)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.exclusion.enabled = true;
    c.exclusion.timeout_ns = 10000 * MS;
    return c.exclusion;
}

static void fail_at(const struct trp_health_config *c, struct trp_health **r,
                    int64_t now, uint32_t task, uint32_t executor, uint32_t node)
{
    g_assert_cmpint(trp_health_failed(c, r, now, task, executor, node, "exit 1"), ==,
                    0);
}

static const char *numbers(const uint32_t *v, uint32_t n)
{
    static char buf[2][256];
    static int turn;
    char *s = buf[turn ^= 1];
    s[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        char one[16];
        g_snprintf(one, sizeof one, "%s%u", i ? " " : "", v[i]);
        g_strlcat(s, one, sizeof buf[0]);
    }
    return s;
}

static void assert_news(const struct trp_health_news *news, const char *executors,
                        const char *nodes)
{
    g_assert_cmpstr(numbers(news->executors, news->nexecutors), ==, executors);
    g_assert_cmpstr(numbers(news->nodes, news->nnodes), ==, nodes);
}

static void assert_excluded(const trp_health_tracker *t, const char *executors,
                            const char *nodes)
{
    uint32_t v[64], n = 0;
    for (const void *c = NULL; trp_health_each_executor(t, &c, &v[n]); n++)
        g_assert_true(trp_health_executor_excluded(t, v[n]));
    g_assert_cmpstr(numbers(v, n), ==, executors);
    n = 0;
    for (const void *c = NULL; trp_health_each_node(t, &c, &v[n]); n++)
        g_assert_true(trp_health_node_excluded(t, v[n]));
    g_assert_cmpstr(numbers(v, n), ==, nodes);
}

/* A set of which the given tasks failed on one executor and that succeeded then. */
static struct trp_health_news succeed(trp_health_tracker *t,
                                      const struct trp_health_config *c, int64_t now,
                                      uint32_t ntasks, uint32_t executor, uint32_t node)
{
    struct trp_health *r = NULL;
    struct trp_health_news news;
    for (uint32_t i = 0; i < ntasks; i++)
        fail_at(c, &r, now, i, executor, node);
    g_assert_cmpint(trp_health_succeeded(t, now, r, &news), ==, 0);
    trp_health_free(r);
    return news;
}

TEST("the latest reason is told")
{
    struct trp_health_config c = make_config();
    struct trp_health *r = NULL;
    trp_health_failed(&c, &r, 0, 0, 1, 1, "exit 1");
    trp_health_failed(&c, &r, 0, 0, 2, 2, "killed by signal 9");
    g_assert_cmpstr(trp_health_latest(r), ==, "killed by signal 9");
    char buf[1024];
    trp_health_nowhere(r, 0, 3, 1, buf, sizeof buf);
    g_assert_nonnull(strstr(buf, "TaskSet 3.1 because task 0 cannot run anywhere"));
    g_assert_nonnull(strstr(buf, "Most recent failure: killed by signal 9."));
    trp_health_failed(&c, &r, 0, 0, 2, 2, NULL);
    g_assert_cmpstr(trp_health_latest(r), ==, "");
    g_autofree char *endless = g_strnfill(100000, 'x');
    trp_health_failed(&c, &r, 0, 0, 2, 2, endless);
    g_assert_cmpuint(strlen(trp_health_latest(r)), <, 1024);
    trp_health_free(r);
    trp_health_nowhere(NULL, 0, 0, 0, buf, sizeof buf);
    g_assert_nonnull(strstr(buf, "not known"));
}

TEST("dead executors count for their node")
{
    struct trp_health_config c = make_config();
    trp_health_tracker *t = trp_health_tracker_new(&c);
    struct trp_health_news news = succeed(t, &c, 0, 2, 1, 1);
    trp_health_executor_gone(t, 1); /* dead, and counts all the same */
    assert_news(&news, "1", "");
    news = succeed(t, &c, 5 * MS, 2, 7, 2);
    assert_news(&news, "7", "");
    news = succeed(t, &c, 9 * MS, 2, 2, 1);
    assert_news(&news, "2", "1");
    news = succeed(t, &c, 10 * MS, 2, 3, 1);
    assert_news(&news, "3", ""); /* the node is out already, until 9 + timeout */
    assert_excluded(t, "1 7 2 3", "1");
    trp_health_expire(t, 10004 * MS, &news);
    assert_news(&news, "1", "");
    trp_health_expire(t, 10009 * MS + 1, &news);
    assert_news(&news, "7 2", "1");
    assert_excluded(t, "3", "");
    /* One of the node is still excluded, so one more is enough. */
    news = succeed(t, &c, 10010 * MS, 2, 4, 1);
    assert_news(&news, "4", "1");
    trp_health_tracker_free(t);
}

TEST("failures of the application are forgotten")
{
    struct trp_health_config c = make_config();
    trp_health_tracker *t = trp_health_tracker_new(&c);
    struct trp_health_news news = succeed(t, &c, 0, 1, 1, 1);
    news = succeed(t, &c, 10000 * MS + 1, 1, 1, 1);
    assert_news(&news, "", "");
    news = succeed(t, &c, 20000 * MS + 1, 1, 1, 1); /* just within */
    assert_news(&news, "1", "");
    /* A gone executor's number is not seen again, but a failure may come late. */
    succeed(t, &c, 20000 * MS + 1, 1, 2, 2);
    trp_health_executor_gone(t, 2);
    trp_health_executor_gone(t, 99);
    news = succeed(t, &c, 20000 * MS + 2, 1, 2, 2);
    assert_news(&news, "", "");
    trp_health_tracker_free(t);
}

TEST("failures while excluded count later")
{
    struct trp_health_config c = make_config();
    trp_health_tracker *t = trp_health_tracker_new(&c);
    struct trp_health_news news = succeed(t, &c, 0, 2, 1, 1);
    succeed(t, &c, 9999 * MS, 1, 1, 1); /* of tasks that were running there */
    trp_health_expire(t, 10001 * MS, NULL);
    assert_excluded(t, "", "");
    news = succeed(t, &c, 10002 * MS, 1, 1, 1);
    assert_news(&news, "1", "");
    trp_health_tracker_free(t);
}

TEST("fetch failures exclude when told to")
{
    struct trp_health_config c = make_config();
    struct trp_health_news news;
    trp_health_tracker *t = trp_health_tracker_new(&c);
    g_assert_cmpint(trp_health_fetch_failed(t, 0, 1, 1, false, &news), ==, 0);
    assert_news(&news, "", "");
    trp_health_tracker_free(t);

    c.fetch_failure = true;
    t = trp_health_tracker_new(&c);
    trp_health_fetch_failed(t, 0, 1, 1, false, &news);
    assert_news(&news, "1", "");
    trp_health_fetch_failed(t, 1, 1, 1, false, &news);
    assert_news(&news, "", "");
    trp_health_fetch_failed(t, 2, 2, 1, false, &news);
    assert_news(&news, "2", ""); /* counts, but is no reason to look at the node */
    news = succeed(t, &c, 3, 2, 3, 1);
    assert_news(&news, "3", "1");
    trp_health_fetch_failed(t, 4, 9, 5, true, &news);
    assert_news(&news, "", "5");
    trp_health_fetch_failed(t, 4, 9, 5, true, &news);
    assert_news(&news, "", "");
    trp_health_fetch_failed(t, 4, TRP_NONE, TRP_NONE, true, &news);
    trp_health_fetch_failed(t, 4, TRP_NONE, TRP_NONE, false, &news);
    assert_news(&news, "", "");
    assert_excluded(t, "1 2 3", "1 5");
    trp_health_tracker_free(t);
}

TEST("exclusions come from outside too")
{
    struct trp_health_config c = make_config();
    c.enabled = false;
    trp_health_tracker *t = trp_health_tracker_new(&c);
    g_assert_cmpint(trp_health_exclude_node(t, 0, 1), ==, 0);
    g_assert_cmpint(trp_health_exclude_executor(t, 0, 0, 0), ==, 0);
    g_assert_cmpint(trp_health_exclude_executor(t, 1, 0, 0), ==, 0);
    g_assert_cmpint(trp_health_exclude_executor(t, 1, TRP_NONE - 1, 0), ==, 0);
    assert_excluded(t, "0 4294967294", "1");
    trp_health_expire(t, c.timeout_ns + 1, NULL);
    assert_excluded(t, "4294967294", "");
    trp_health_exclude_node(t, INT64_MAX - 1, 3);
    trp_health_expire(t, INT64_MAX, NULL);
    assert_excluded(t, "", "3"); /* beyond the end of time is never */
    g_assert_cmpint(trp_health_next_expiry(t), ==, INT64_MAX);
    trp_health_tracker_free(t);
    g_assert_false(trp_health_executor_excluded(NULL, 0));
    g_assert_false(trp_health_node_excluded(NULL, 0));
    trp_health_tracker_free(NULL);
}

TEST("people are told the first reason")
{
    struct trp_health_config c = make_config();
    struct trp_health *r = NULL;
    trp_health_tracker *t = trp_health_tracker_new(&c);
    char buf[512];
#define WHY(task, x, n)                                                                \
    trp_health_why(&c, t, r, task, x, n, "e" #x, "h" #n, buf, sizeof buf)
    g_assert_cmpstr(WHY(0, 1, 1), ==, "");
    fail_at(&c, &r, 0, 0, 1, 1);
    g_assert_true(
        g_str_has_prefix(WHY(0, 1, 1), "task 0 is excluded from executor e1"));
    g_assert_nonnull(strstr(buf, "maxTaskAttemptsPerExecutor"));
    g_assert_cmpstr(WHY(1, 1, 1), ==, "");
    fail_at(&c, &r, 0, 0, 2, 1);
    g_assert_true(g_str_has_prefix(WHY(0, 1, 1), "task 0 is excluded from node h1"));
    fail_at(&c, &r, 0, 1, 1, 1);
    g_assert_true(g_str_has_prefix(WHY(5, 1, 1), "executor e1 is excluded for the st"));
    fail_at(&c, &r, 0, 1, 2, 1);
    g_assert_true(g_str_has_prefix(WHY(5, 3, 1), "node h1 is excluded for the stage"));
    trp_health_exclude_executor(t, 0, 3, 1);
    g_assert_true(
        g_str_has_prefix(WHY(5, 3, 1), "executor e3 is excluded for the app"));
    trp_health_exclude_node(t, 0, 1);
    g_assert_true(g_str_has_prefix(WHY(5, 3, 1), "node h1 is excluded for the appli"));
#undef WHY
    trp_health_free(r);
    trp_health_tracker_free(t);
}

/* ---- the oracle ---- */

enum { TASKS = 6, EXECUTORS = 8, NODES = 3, FAILURES = 60 };

struct failure {
    uint32_t task, executor;
};

static uint32_t node_of(uint32_t executor)
{
    return executor % NODES;
}

/* Failures of `task` (TRP_NONE: distinct tasks) on `executor` among the first n. */
static uint32_t count(const struct failure *f, int n, uint32_t task, uint32_t executor)
{
    uint32_t found = 0;
    for (uint32_t t = 0; t < TASKS; t++) {
        uint32_t of_task = 0;
        for (int i = 0; i < n; i++)
            of_task += f[i].task == t && f[i].executor == executor;
        found += task == t ? of_task : task == TRP_NONE ? of_task > 0 : 0;
    }
    return found;
}

static void check_record(const struct trp_health_config *c, const struct trp_health *r,
                         const struct failure *f, int n)
{
    for (uint32_t x = 0; x < EXECUTORS; x++) {
        bool some = false;
        uint32_t out_there = 0;
        for (uint32_t y = 0; y < EXECUTORS; y++)
            out_there += node_of(y) == node_of(x) &&
                         count(f, n, TRP_NONE, y) >= c->stage_tasks_per_executor;
        bool out = count(f, n, TRP_NONE, x) >= c->stage_tasks_per_executor ||
                   out_there >= c->stage_executors_per_node;
        for (uint32_t t = 0; t < TASKS; t++) {
            uint32_t on_node = 0;
            for (uint32_t y = 0; y < EXECUTORS; y++)
                on_node += node_of(y) == node_of(x) ? count(f, n, t, y) : 0;
            bool task_out = count(f, n, t, x) >= c->task_attempts_per_executor ||
                            on_node >= c->task_attempts_per_node;
            g_assert_cmpint(trp_health_task_out(r, t, x, node_of(x)), ==, task_out);
            some = some || task_out;
        }
        enum trp_health_verdict want = out    ? TRP_HEALTH_OUT
                                       : some ? TRP_HEALTH_SOME
                                              : TRP_HEALTH_IN;
        g_assert_cmpint(trp_health_at(r, x, node_of(x)), ==, want);
    }
}

TEST("random sets agree with an oracle")
{
    for (uint32_t seed = 1; seed <= 60; seed++) {
        GRand *rand = g_rand_new_with_seed(seed);
        struct trp_health_config c = make_config();
        c.task_attempts_per_executor = g_rand_int_range(rand, 1, 4);
        c.task_attempts_per_node = g_rand_int_range(rand, 1, 5);
        c.stage_tasks_per_executor = g_rand_int_range(rand, 1, 4);
        c.stage_executors_per_node = g_rand_int_range(rand, 1, 4);
        struct trp_health *r = NULL;
        struct failure f[FAILURES];
        for (int i = 0; i < FAILURES; i++) {
            f[i].task = g_rand_int_range(rand, 0, TASKS);
            f[i].executor = g_rand_int_range(rand, 0, EXECUTORS);
            fail_at(&c, &r, i, f[i].task, f[i].executor, node_of(f[i].executor));
            check_record(&c, r, f, i + 1);
        }
        trp_health_free(r);
        g_rand_free(rand);
    }
}
