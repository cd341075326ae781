/*
 * The numbers of the closing summary: whose seconds are held, what is used, medians;
 * and how they are printed.
 */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/durations.h"
#include "events/event_log.h"
#include "events/statistics.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define T0 (INT64_C(1800000000) * S)

static const struct trp_resource_profile plain = {
    .id = {0}, .name = "default", .cores = 4, .task_cpus = 1, .slots = 4};
static const struct trp_resource_profile train = {
    .id = {1},
    .name = "train",
    .cores = 2,
    .task_cpus = 2,
    .slots = 1,
    .ncustom = 1,
    .custom = {{.name = "gpu", .executor = 2, .task = TRP_ONE / 2}}};

static void assert_near(double got, double wanted, double error)
{
    if (fabs(got - wanted) > error)
        g_error("wanted %g, got %g", wanted, got);
}

static const struct trp_stage_statistics *stage(struct trp_statistics *s, uint32_t n)
{
    return trp_statistics_stage(s, (trp_stage_id){n});
}

static void task(struct trp_statistics *s, uint32_t n, uint32_t executor, double from,
                 double to, const struct trp_resource_profile *p,
                 enum trp_end_status status)
{
    struct trp_action v = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.stage = {n},
                     .executor = {executor},
                     .status = status,
                     .counted = status == TRP_END_EXIT}
    };
    struct trp_end e = {.duration_ns = (int64_t)((to - from) * 1e9)};
    struct trp_event_task t = {.verdict = &v,
                               .end = status == TRP_END_LOST ? NULL : &e,
                               .launched = T0 + (int64_t)(from * 1e9),
                               .ended = T0 + (int64_t)(to * 1e9),
                               .profile = p};
    trp_statistics_task_started(s, (trp_stage_id){n}, (trp_executor_id){executor},
                                t.launched);
    trp_statistics_at(s, t.ended);
    g_assert_cmpint(
        trp_statistics_task_ended(s, trp_statistics_stage(s, (trp_stage_id){n}), &t),
        ==, 0);
}

TEST("held seconds belong to the stage whose task ran last")
{
    struct trp_statistics s = {0};
    trp_executor_id e = {0}, idle = {1};
    trp_statistics_at(&s, T0);
    trp_statistics_executor_added(&s, e, &train, "h", T0);
    trp_statistics_executor_added(&s, idle, &plain, "h", T0);
    task(&s, 0, 0, 2, 3, &train, TRP_END_SUCCESS); /* 0 to 5: stage 0 */
    task(&s, 1, 0, 5, 6, &train, TRP_END_SUCCESS); /* 5 to 7: stage 1 */
    trp_statistics_executor_relabelled(&s, e, T0 + 7 * S);
    task(&s, 2, 0, 8, 9, &train, TRP_END_SUCCESS); /* 7 to 10: stage 2 */
    trp_statistics_executor_removed(&s, e, T0 + 10 * S);
    trp_statistics_at(&s, T0 + 20 * S);
    trp_statistics_settle(&s);
    assert_near(stage(&s, 0)->held->cores, 2 * 5, 1e-6);
    assert_near(stage(&s, 1)->held->cores, 2 * 2, 1e-6);
    assert_near(stage(&s, 2)->held->cores, 2 * 3, 1e-6);
    assert_near(stage(&s, 0)->held->devices[0], 2 * 5, 1e-6);
    assert_near(s.idle.cores, 4 * 20, 1e-6); /* never ran anything */
    assert_near(stage(&s, 0)->used->cores, 2 * 1, 1e-6);
    assert_near(stage(&s, 0)->used->devices[0], 0.5, 1e-6);
    trp_statistics_settle(&s); /* twice is as once */
    assert_near(s.idle.cores, 4 * 20, 1e-6);
    trp_statistics_free(&s);
}

/* Told as it was: both began before either ended. */
static void end_of(struct trp_statistics *s, uint32_t n, double from, double to)
{
    const struct trp_action v = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.stage = {n}, .executor = {0}, .status = TRP_END_SUCCESS}
    };
    const struct trp_end end = {.duration_ns = (int64_t)((to - from) * S)};
    const struct trp_event_task t = {.verdict = &v,
                                     .end = &end,
                                     .launched = T0 + (int64_t)(from * S),
                                     .ended = T0 + (int64_t)(to * S),
                                     .profile = &plain};
    trp_statistics_at(s, t.ended);
    g_assert_cmpint(
        trp_statistics_task_ended(s, trp_statistics_stage(s, (trp_stage_id){n}), &t),
        ==, 0);
}

TEST("what several stages hold is divided by use")
{
    struct trp_statistics s = {0};
    trp_executor_id e = {0};
    trp_statistics_at(&s, T0);
    trp_statistics_executor_added(&s, e, &plain, "h", T0);
    for (uint32_t n = 0; n < 3; n++) /* one of stage 0, two of stage 1 */
        trp_statistics_task_started(&s, (trp_stage_id){n > 0}, e, T0);
    g_assert_cmpuint(stage(&s, 1)->open, ==, 2);
    end_of(&s, 0, 0, 6);
    end_of(&s, 1, 0, 8);
    end_of(&s, 1, 0, 10);
    g_assert_cmpuint(stage(&s, 1)->open, ==, 0);
    task(&s, 2, 0, 12, 13, &plain, TRP_END_SUCCESS); /* 12 to 20 is its own */
    trp_statistics_executor_removed(&s, e, T0 + 20 * S);
    assert_near(stage(&s, 0)->used->cores, 6, 1e-6);
    assert_near(stage(&s, 1)->used->cores, 18, 1e-6);
    assert_near(stage(&s, 0)->held->cores, 4 * 12 * 6.0 / 24, 1e-6);
    assert_near(stage(&s, 1)->held->cores, 4 * 12 * 18.0 / 24, 1e-6);
    assert_near(stage(&s, 2)->held->cores, 4 * 8, 1e-6);
    trp_statistics_free(&s);
}

TEST("nodes belong to the stages that run")
{
    struct trp_statistics s = {0};
    struct trp_stage_statistics *a, *b;
    trp_statistics_at(&s, T0);
    a = trp_statistics_stage(&s, (trp_stage_id){0});
    b = trp_statistics_stage(&s, (trp_stage_id){1});
    trp_statistics_stage_runs(&s, a, true, T0); /* nobody holds any yet */
    trp_statistics_stage_runs(&s, a, false, T0 + 1 * S);
    trp_statistics_nodes(&s, 4, T0 + 10 * S);
    trp_statistics_stage_runs(&s, a, true, T0 + 12 * S); /* 12 to 20, */
    trp_statistics_stage_runs(&s, b, true, T0 + 16 * S); /* 16 to 30: 4 s together */
    trp_statistics_stage_runs(&s, b, true, T0 + 17 * S); /* said twice */
    trp_statistics_stage_runs(&s, a, false, T0 + 20 * S);
    trp_statistics_nodes(&s, 1, T0 + 25 * S);
    assert_near(trp_statistics_node_seconds(&s, b), 4 * 4 / 2.0 + 4 * 5, 1e-6);
    trp_statistics_stage_runs(&s, b, false, T0 + 30 * S);
    trp_statistics_at(&s, T0 + 32 * S);
    trp_statistics_settle(&s);
    trp_statistics_settle(&s);
    assert_near(trp_statistics_node_seconds(&s, a), 4 * 4 + 4 * 4 / 2.0, 1e-6);
    assert_near(trp_statistics_node_seconds(&s, b), 4 * 4 / 2.0 + 4 * 5 + 5, 1e-6);
    assert_near(s.idle_nodes, 4 * 2 + 2, 1e-6);
    trp_statistics_free(&s);
}

TEST("attempts are counted by how they ended")
{
    struct trp_statistics s = {0};
    trp_statistics_executor_added(&s, (trp_executor_id){0}, &plain, "h", T0);
    task(&s, 0, 0, 0, 1, &plain, TRP_END_SUCCESS);
    task(&s, 0, 0, 0, 9, &plain, TRP_END_EXIT);
    task(&s, 0, 0, 0, 9, &plain, TRP_END_LOST);
    task(&s, 0, 0, 0, 2, &plain, TRP_END_KILLED);
    task(&s, 0, 0, 0, 2, &plain, TRP_END_RECALLED);
    const struct trp_stage_statistics *st = stage(&s, 0);
    g_assert_cmpuint(st->attempts, ==, 4); /* the recalled one never began */
    g_assert_cmpuint(st->failures, ==, 1); /* its executor's end was not its fault */
    g_assert_cmpuint(st->durations.count, ==, 1);
    assert_near(st->used->cores, 1 + 9 + 2, 1e-6);
    trp_statistics_free(&s);
}

TEST("a gang holds the slots of its ranks")
{
    struct trp_statistics s = {0};
    struct trp_action v = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.executor = {TRP_NONE}, .status = TRP_END_SUCCESS}
    };
    struct trp_end e = {.duration_ns = 3 * S, .cpu_ns = 20 * S};
    struct trp_event_task t = {.verdict = &v,
                               .end = &e,
                               .launched = T0,
                               .ended = T0 + 4 * S,
                               .profile = &train,
                               .ranks = 8};
    trp_statistics_task_started(&s, (trp_stage_id){0}, (trp_executor_id){TRP_NONE}, T0);
    trp_statistics_task_ended(&s, trp_statistics_stage(&s, (trp_stage_id){0}), &t);
    assert_near(stage(&s, 0)->held->cores, 8 * 2 * 4, 1e-6);
    assert_near(stage(&s, 0)->used->cores, 8 * 2 * 3, 1e-6);
    assert_near(stage(&s, 0)->used->devices[0], 8 * 0.5 * 3, 1e-6);
    assert_near(stage(&s, 0)->cpu, 20, 1e-6);
    trp_statistics_free(&s);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

TEST("quantiles are exact for few and within 1 % for many")
{
    enum { MOST = 5000 };
    static const uint32_t sizes[] = {1, 2, 3, 8, 9, 127, 128, 129, 130, MOST};
    static const uint32_t permilles[] = {0, 50, 250, 500, 750, 950, 990, 1000};
    static int64_t v[MOST];
    for (size_t k = 0; k < G_N_ELEMENTS(sizes); k++) {
        struct trp_durations d = {0};
        uint32_t n = sizes[k];
        for (uint32_t i = 0; i < n; i++) {
            /* from 1 ns to hours, evenly over the orders of magnitude */
            uint64_t any =
                (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
            v[i] = (int64_t)(any >> g_test_rand_int_range(20, 64));
            g_assert_cmpint(trp_durations_add(&d, v[i]), ==, 0);
        }
        qsort(v, n, sizeof *v, compare);
        for (size_t q = 0; q < G_N_ELEMENTS(permilles); q++) {
            uint32_t p = permilles[q];
            uint64_t rank = p == 0 ? 1 : ((uint64_t)n * p + 999) / 1000;
            double wanted = (double)v[rank - 1];
            const size_t half = n / 2;
            if (p == 500 && n % 2 == 0)
                wanted = (double)(v[half - 1] + v[half]) / 2;
            double error = n <= TRP_DURATIONS_EXACT ? 1 : wanted * 0.01 + 1;
            assert_near((double)trp_durations_quantile(&d, p), wanted, error);
        }
        g_assert_cmpint(d.greatest, ==, v[n - 1]);
        g_assert_cmpint(d.least, ==, v[0]);
        trp_durations_free(&d);
    }
}

TEST("the longest duration has a place in the histogram")
{
    struct trp_durations d = {0};
    for (int i = 0; i < 200; i++)
        g_assert_cmpint(trp_durations_add(&d, i % 2 ? INT64_MAX : -5), ==, 0);
    g_assert_cmpint(trp_durations_quantile(&d, 0), ==, 0);
    g_assert_cmpint(trp_durations_quantile(&d, 1000), ==, INT64_MAX);
    trp_durations_free(&d);
}

/* ---- text ---- */

static trp_event_log *new_log(void)
{
    trp_event_log *l = NULL;
    struct trp_event_log_config c = {
        .file = "/dev/null", .app_id = "app-1", .app_name = "x", .user = "u"};
    g_assert_cmpint(trp_event_log_new(&c, &l, NULL), ==, 0);
    trp_event_application_start(l, T0);
    trp_event_profile(l, &plain);
    trp_event_profile(l, &train);
    return l;
}

static void tell(trp_event_log *l, uint32_t n, uint32_t number, double from, double to,
                 const struct trp_resource_profile *p, enum trp_end_status status)
{
    trp_attempt_id id = {(uint64_t)number << 32};
    struct trp_action a = {
        .kind = TRP_ACTION_LAUNCH, .launch = {.attempt = id, .executor = {n}}
    };
    struct trp_action v = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.attempt = id,
                     .stage = {n},
                     .executor = {n},
                     .status = status,
                     .counted = status == TRP_END_EXIT}
    };
    struct trp_end e = {.duration_ns = (int64_t)((to - from) * 1e9),
                        .cpu_ns = (int64_t)((to - from) * 5e8)};
    struct trp_event_task t = {.verdict = &v,
                               .end = &e,
                               .launched = T0 + (int64_t)(from * 1e9),
                               .ended = T0 + (int64_t)(to * 1e9),
                               .host = "h",
                               .profile = p,
                               .reason = status == TRP_END_EXIT ? "exit status 1" : ""};
    trp_event_task_started(l, (trp_stage_id){n}, &a, "h", t.launched);
    trp_event_task_ended(l, &t);
}

static void run_stage(trp_event_log *l, const struct trp_event_stage *s,
                      const struct trp_resource_profile *p, bool fails)
{
    trp_executor_id e = {s->stage.n};
    int64_t from = T0 + 10 * S * s->stage.n;
    double at = 10.0 * s->stage.n;
    trp_event_stage_submitted(l, s, from);
    trp_event_executor_added(l, e, "h", p, NULL, 0, from, from);
    tell(l, s->stage.n, 10 * s->stage.n, at + 1, at + 2, p, TRP_END_SUCCESS);
    tell(l, s->stage.n, 10 * s->stage.n + 1, at + 1, at + 4, p,
         fails ? TRP_END_EXIT : TRP_END_SUCCESS);
    trp_event_stage_ended(l, s->stage,
                          fails ? TRP_OUTCOME_FAILED : TRP_OUTCOME_SUCCEEDED, "",
                          from + 5 * S);
    trp_event_executor_removed(l, e, "released", from + 5 * S);
}

static char *summary_of(trp_event_log *l)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    trp_event_summary_print(l, f, "troupe-runs/RUN", true);
    fclose(f);
    return text;
}

TEST("the table is aligned")
{
    trp_event_log *l = new_log();
    struct trp_event_stage s = {.stage = {0}, .name = "split", .ntasks = 2};
    trp_event_job_start(l, &(struct trp_event_job){.job = {0}}, T0, &s, 1);
    run_stage(l, &s, &plain, false);
    g_assert_cmpint(trp_event_log_end(l, T0 + 5 * S, 0, NULL), ==, 0);
    char *text = summary_of(l);
    g_assert_cmpstr(
        text, ==,
        "                                                    task time  core-seconds\n"
        "stage  profile  tasks  attempts  failed   wall  median    max    held  used\n"
        "split  default      2         2       0  5.00s   2.00s  3.00s   20.00  4.00\n"
        "total               2         2       0  5.00s                  20.00  4.00\n"
        "\n"
        "core-seconds: 20.00 held, 4.00 used (20 %), 2.00 CPU time\n"
        "logs: troupe-runs/RUN/logs\nevents: troupe-runs/RUN/events.jsonl\n");
    free(text);
    trp_event_log_free(l);
}

TEST("devices, failures and idle executors show")
{
    trp_event_log *l = new_log();
    struct trp_event_stage s[] = {
        {.stage = {0}, .name = "split", .ntasks = 2},
        {.stage = {1}, .name = "train", .ntasks = 2, .profile = {1}},
        {.stage = {2},            .name = "never",                .ntasks = 7}
    };
    trp_event_job_start(l, &(struct trp_event_job){.job = {0}}, T0, s, 3);
    run_stage(l, &s[0], &plain, false);
    run_stage(l, &s[1], &train, true);
    trp_event_stage_ended(l, s[2].stage, TRP_OUTCOME_SKIPPED, "", T0 + 15 * S);
    trp_event_executor_added(l, (trp_executor_id){9}, "h", &plain, NULL, 0, T0, T0);
    trp_event_executor_removed(l, (trp_executor_id){9}, "released", T0 + 2 * S);
    g_assert_cmpint(trp_event_log_end(l, T0 + 16 * S, 1, NULL), ==, 0);
    char *text = summary_of(l);
    static const char *const wanted[] = {
        "\ntrain       train        2         2       1  5.00s   1.00s  1.00s  "
        "failed\n",
        "\nnever       default      7         0       0                        "
        "skipped\n"
        "total                   11         4       1  16.0s\n\n",
        "            core-seconds  gpu-seconds\n"
        "stage        held   used   held  used\n"
        "split       20.00   4.00\n"
        "train       10.00   8.00  10.00  2.00\n"
        "never        0.00   0.00\n"
        "(no stage)   8.00   0.00\n"
        "total       38.00  12.00  10.00  2.00\n\n",
        "gpu-seconds: 10.00 held, 2.00 used (20 %)\n"};
    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++)
        if (!strstr(text, wanted[i]))
            g_error("wanted\n%s in\n%s", wanted[i], text);
    free(text);
    trp_event_log_free(l);
}

/* A stage of one task of `seconds` on an executor of its own. */
static void loop_stage(trp_event_log *l, uint32_t n, const char *name, double seconds,
                       bool fails)
{
    struct trp_event_stage s = {.stage = {n}, .name = name, .ntasks = 1};
    trp_executor_id e = {n};
    double at = 10.0 * n;
    int64_t from = T0 + 10 * S * n, to = from + (int64_t)(seconds * 1e9);
    trp_event_job_start(l, &(struct trp_event_job){.job = {n}}, from, &s, 1);
    trp_event_stage_submitted(l, &s, from);
    trp_event_executor_added(l, e, "h", &plain, NULL, 0, from, from);
    tell(l, n, n, at, at + seconds, &plain, fails ? TRP_END_EXIT : TRP_END_SUCCESS);
    trp_event_stage_ended(l, s.stage,
                          fails ? TRP_OUTCOME_FAILED : TRP_OUTCOME_SUCCEEDED, "", to);
    trp_event_executor_removed(l, e, "released", to);
}

static void check_summary(trp_event_log *l, uint32_t nlines, const char *const *wanted)
{
    uint32_t lines = 0;
    g_assert_cmpint(trp_event_log_end(l, T0 + 100000 * S, 0, NULL), ==, 0);
    char *text = summary_of(l);
    for (const char *p = text, *end; (end = strchr(p, '\n')); p = end + 1) {
        lines++;
        g_assert_cmpint(g_utf8_strlen(p, end - p), <=, 80);
    }
    if (lines != nlines)
        g_error("wanted %u lines in\n%s", nlines, text);
    for (; *wanted; wanted++)
        if (!strstr(text, *wanted))
            g_error("wanted\n%s in\n%s", *wanted, text);
    free(text);
    trp_event_log_free(l);
}

TEST("forty stages are forty rows")
{
    trp_event_log *l = new_log();
    for (uint32_t i = 0; i < 40; i++)
        loop_stage(l, i, "same", 1, false);
    check_summary(l, 2 + 40 + 5, (const char *const[]){"\nsame   default", NULL});
}

TEST("stages of one name are one row when there are more")
{
    trp_event_log *l = new_log();
    for (uint32_t i = 0; i < 3000; i++) {
        if (i % 3 == 0) /* 1000 × 4 s × 4 cores */
            loop_stage(l, i, "foreach trp_range \342\206\222 noop", 4, false);
        else
            loop_stage(l, i, "sum", i % 3, i == 2999);
    }
    check_summary(
        l, 2 + 4 + 1 + 2 + 3 + 4,
        (const char *const[]){
            "\nforeach trp_range \342\206\222 noop \303\2271000\n"
            "                 default   1000      1000       0   1h06m   4.00s  4.00s\n"
            "sum \303\2272000        default   2000      2000       1  50m00s   1.00s  "
            "2.00s  failed\n"
            "total                      3000      3000       1  27h46m\n",
            "\nforeach trp_range \342\206\222 noop \303\2271000  16000.0  4000.0\n"
            "sum \303\2272000                       12000.0  3000.0\n"
            "total                           28000.0  7000.0\n",
            NULL});
}

TEST("names that differ in a number are one row")
{
    char name[32];
    trp_event_log *l = new_log();
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, i < 60 ? "align-%u" : "sort", i);
        loop_stage(l, i, name, 1, false);
    }
    check_summary(l, 2 + 3 + 1 + 2 + 3 + 4,
                  (const char *const[]){"\nalign-* \303\22760  default",
                                        "\nsort \303\22740 ", NULL});
}

TEST("many stages of one name are counted together, and the summary is the same")
{
    enum { MANY = 1000, SORT = 400 };
    char *text[2];
    for (int folded = 0; folded < 2; folded++) {
        trp_event_log *l = new_log();
        for (uint32_t i = 0; i < MANY; i++) {
            char name[32];
            snprintf(name, sizeof name, i < MANY - SORT ? "align-%u" : "sort", i);
            loop_stage(l, i, name, 1 + i % 7, false);
            if (folded)
                trp_event_stage_forgotten(l, (trp_stage_id){i});
        }
        const struct trp_statistics *s = trp_event_log_statistics(l);
        g_assert_cmpuint(s->nkept, ==, folded ? TRP_STATISTICS_STAGES + 2 : MANY);
        g_assert_cmpint(trp_event_log_end(l, T0 + 100000 * S, 0, NULL), ==, 0);
        text[folded] = summary_of(l);
        trp_event_log_free(l);
    }
    g_assert_cmpstr(text[0], ==, text[1]);
    free(text[0]);
    free(text[1]);
}

/* 60 that are there at once, from second 0 to 5 and to 7, and one from 20 to 21. */
TEST("what is there at once takes its time once")
{
    char name[32];
    trp_event_log *l = new_log();
    for (uint32_t i = 0; i < 61; i++) {
        int64_t from = i < 60 ? T0 : T0 + 20 * S;
        int64_t to = from + (i == 60 ? 1 : i % 2 ? 5 : 7) * S;
        snprintf(name, sizeof name, "align-%u", i);
        struct trp_event_stage s = {.stage = {i}, .name = name, .ntasks = 1};
        trp_event_job_start(l, &(struct trp_event_job){.job = {i}}, from, &s, 1);
        trp_event_stage_submitted(l, &s, from);
        trp_event_stage_ended(l, s.stage, TRP_OUTCOME_SUCCEEDED, "", to);
    }
    check_summary(
        l, 2 + 2 + 4,
        (const char *const[]){"\nalign-* \303\22761  default     61         0  "
                              "     0   8.00s",
                              NULL});
}

TEST("the smallest rows are one when names are many")
{
    char name[32];
    trp_event_log *l = new_log();
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "s%u_", i);
        loop_stage(l, i, name, i < 70 ? 1 : 2, false);
    }
    check_summary(l, 2 + 30 + 2 + 5,
                  (const char *const[]){"\ns70_", "\ns99_",
                                        "\nand 70 more stages\n"
                                        "           default     70        70       0   "
                                        "70.0s   1.00s  1.00s  280.0  "
                                        "70.00\n"
                                        "total                 100       100       0  "
                                        "27h46m                 520.0  "
                                        "130.0\n",
                                        NULL});
}

/* One that is not cut stands in a line of its own. */
TEST("long names are cut between characters")
{
    char name[300] = "";
    trp_event_log *l = new_log();
    for (int i = 0; i < 80; i++)
        strcat(name, "\342\206\222");
    g_autofree char *cut = g_strdup_printf("\n%.*s~\n  ", 63 * 3, name);
    g_autofree char *whole = g_strdup_printf("\n%s\n  ", name + (size_t)16 * 3);
    loop_stage(l, 0, name, 1, false);
    loop_stage(l, 1, name + (size_t)16 * 3, 1, false); /* 64: just fits */
    check_summary(l, 2 + 2 * 2 + 5, (const char *const[]){cut, whole, NULL});
}

TEST("merged durations are as if they were counted together")
{
    static const uint32_t sizes[][2] = {
        {0,   5  },
        {5,   0  },
        {100, 28 },
        {100, 29 },
        {3,   500},
        {500, 3  },
        {300, 300}
    };
    for (size_t k = 0; k < G_N_ELEMENTS(sizes); k++) {
        struct trp_durations d[2] = {0}, all = {0};
        for (uint32_t i = 0; i < sizes[k][0] + sizes[k][1]; i++) {
            int64_t v = g_test_rand_int_range(0, 1000000000);
            trp_durations_add(&d[i >= sizes[k][0]], v);
            trp_durations_add(&all, v);
        }
        g_assert_cmpint(trp_durations_merge(&d[0], &d[1]), ==, 0);
        g_assert_cmpuint(d[0].count, ==, all.count);
        g_assert_cmpint(d[0].least, ==, all.least);
        g_assert_cmpint(d[0].greatest, ==, all.greatest);
        for (uint32_t p = 0; p <= 1000; p += 50)
            g_assert_cmpint(trp_durations_quantile(&d[0], p), ==,
                            trp_durations_quantile(&all, p));
        trp_durations_free(&d[0]);
        trp_durations_free(&d[1]);
        trp_durations_free(&all);
    }
}
