/*
 * Two runs side by side: which stages belong together, what starts add up to, what is
 * told first.
 */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/comparison.h"
#include "events/summary_rows.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define T0 (INT64_C(1800000000) * S)

static const struct trp_resource_profile plain = {
    .id = {0}, .name = "default", .cores = 4, .task_cpus = 1, .slots = 4};
static const struct trp_resource_profile train = {
    .id = {1},
    .name = "train",
    .cores = 2,
    .task_cpus = 1,
    .slots = 2,
    .ncustom = 1,
    .custom = {{.name = "gpu", .executor = 2, .task = TRP_ONE}}};
/* A run whose first device is another one. */
static const struct trp_resource_profile lab = {
    .id = {1                                              },
    .name = "lab",
    .cores = 2,
    .task_cpus = 1,
    .slots = 2,
    .ncustom = 2,
    .custom = { {.name = "fpga", .executor = 1, .task = TRP_ONE},
           {.name = "gpu", .executor = 1, .task = TRP_ONE}}
};

static struct trp_run_record *new_start(struct trp_run_records *r)
{
    struct trp_run_record *now = g_new0(struct trp_run_record, 1);
    r->v = g_renew(struct trp_run_record *, r->v, r->n + 1);
    r->v[r->n++] = now;
    now->complete = true;
    now->app_name = strdup("weather");
    trp_statistics_at(&now->statistics, T0);
    return now;
}

static void free_runs(struct trp_run_records *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        trp_statistics_free(&r->v[i]->statistics);
        free(r->v[i]->app_name);
        g_free(r->v[i]);
    }
    g_free(r->v);
}

/* One after the other; each task on an executor of its own, for `seconds`. */
static struct trp_stage_statistics *stage(struct trp_run_record *r, const char *name,
                                          const struct trp_resource_profile *p,
                                          uint32_t ntasks, double seconds,
                                          enum trp_outcome outcome)
{
    struct trp_statistics *s = &r->statistics;
    uint32_t n = s->nstages ? s->nstages : 0;
    while (n > 0 && !s->stages[n - 1])
        n--;
    struct trp_event_stage info = {
        .stage = {n}, .name = name, .ntasks = ntasks, .profile = p->id};
    int64_t from = s->last, to = from + (int64_t)(seconds * 1e9);
    trp_statistics_shape(s, p);
    trp_statistics_describe(s, &info);
    struct trp_stage_statistics *st = trp_statistics_stage(s, info.stage);
    trp_statistics_stage_submitted(s, st, from);
    for (uint32_t i = 0; i < ntasks; i++) {
        trp_executor_id e = {n * 100 + i};
        struct trp_action v = {
            .kind = TRP_ACTION_TASK_END,
            .task_end = {.stage = {n}, .executor = e, .status = TRP_END_SUCCESS}
        };
        struct trp_end end = {
            .duration_ns = to - from,
            .cpu_ns = to - from,
            .has_data = true,
            .data = {.local_bytes = 10, .written_bytes = 20}
        };
        struct trp_event_task t = {
            .verdict = &v, .end = &end, .launched = from, .ended = to, .profile = p};
        trp_statistics_executor_added(s, e, p, "h", from);
        trp_statistics_task_started(s, st->stage, e, from);
        trp_statistics_at(s, to);
        g_assert_cmpint(trp_statistics_task_ended(s, st, &t), ==, 0);
        trp_statistics_executor_removed(s, e, to);
    }
    trp_statistics_at(s, to);
    trp_statistics_stage_ended(s, st, outcome, to);
    return st;
}

static const struct trp_comparison_row *row(const struct trp_comparison *c,
                                            const char *name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (strcmp(c->rows[i]->name, name) == 0)
            return c->rows[i];
    g_error("no row %s", name);
}

static void assert_near(double got, double wanted)
{
    if (fabs(got - wanted) > 1e-6)
        g_error("wanted %g, got %g", wanted, got);
}

static struct trp_comparison compare(struct trp_run_records *a,
                                     struct trp_run_records *b, bool all)
{
    struct trp_comparison c;
    g_assert_cmpint(trp_comparison_make(a, b, all, &c), ==, 0);
    return c;
}

TEST("stages belong together by name")
{
    struct trp_run_records a = {0}, b = {0};
    struct trp_run_record *x = new_start(&a), *y = new_start(&b);
    stage(x, "split", &plain, 2, 1, TRP_OUTCOME_SUCCEEDED);
    stage(x, "join", &plain, 1, 3, TRP_OUTCOME_SUCCEEDED);
    stage(x, "old", &plain, 1, 1, TRP_OUTCOME_SUCCEEDED);
    stage(y, "join", &plain, 1, 5, TRP_OUTCOME_FAILED);
    stage(y, "split", &plain, 3, 1, TRP_OUTCOME_SUCCEEDED);
    stage(y, "new", &plain, 1, 0.5, TRP_OUTCOME_SUCCEEDED);
    struct trp_comparison c = compare(&a, &b, false);
    g_assert_cmpuint(c.n, ==, 4);
    g_assert_cmpuint(c.in_both, ==, 2);
    const struct trp_compared *join = row(&c, "join")->of;
    g_assert_cmpint(join[0].wall_ns, ==, 3 * S);
    g_assert_cmpint(join[1].wall_ns, ==, 5 * S);
    g_assert_cmpint(join[1].outcome, ==, TRP_OUTCOME_FAILED);
    assert_near(join[0].held.cores, 12);
    assert_near(join[1].held.cores, 20);
    g_assert_cmpint(trp_durations_quantile(&join[1].durations, 500), ==, 5 * S);
    g_assert_cmpuint(row(&c, "split")->of[0].tasks, ==, 2);
    g_assert_cmpuint(row(&c, "split")->of[1].tasks, ==, 3);
    g_assert_cmpuint(row(&c, "split")->of[1].flow[TRP_FLOW_WRITTEN], ==, 60);
    g_assert_cmpuint(row(&c, "old")->of[1].nstages, ==, 0);
    g_assert_cmpuint(row(&c, "new")->of[0].nstages, ==, 0);
    g_assert_cmpint(c.total.of[0].wall_ns, ==, 5 * S);
    g_assert_cmpint(c.total.of[1].wall_ns, ==, (int64_t)(6.5 * (double)S));
    assert_near(c.total.of[0].held.cores, 8 + 12 + 4);
    trp_comparison_free(&c);
    free_runs(&a);
    free_runs(&b);
}

TEST("what changed most comes first")
{
    struct trp_run_records a = {0}, b = {0};
    struct trp_run_record *x = new_start(&a), *y = new_start(&b);
    stage(x, "same", &plain, 1, 8, TRP_OUTCOME_SUCCEEDED);
    stage(x, "tiny", &plain, 1, 0.001, TRP_OUTCOME_SUCCEEDED);
    stage(x, "slower", &plain, 1, 4, TRP_OUTCOME_SUCCEEDED);
    stage(y, "same", &plain, 1, 8, TRP_OUTCOME_SUCCEEDED);
    stage(y, "tiny", &plain, 1, 0.01, TRP_OUTCOME_SUCCEEDED); /* ten times */
    stage(y, "slower", &plain, 1, 5, TRP_OUTCOME_SUCCEEDED);
    struct trp_comparison c = compare(&a, &b, false);
    g_assert_cmpstr(c.rows[0]->name, ==, "slower");
    g_assert_cmpstr(c.rows[1]->name, ==, "tiny");
    g_assert_cmpstr(c.rows[2]->name, ==, "same");
    assert_near(c.rows[2]->weight, 0);
    trp_comparison_free(&c);
    /* With itself nothing changes, and rows are as they ran. */
    c = compare(&a, &a, false);
    g_assert_cmpstr(c.rows[0]->name, ==, "same");
    g_assert_cmpstr(c.rows[2]->name, ==, "slower");
    trp_comparison_free(&c);
    free_runs(&a);
    free_runs(&b);
}

TEST("starts of a run add up")
{
    struct trp_run_records a = {0}, b = {0};
    struct trp_run_record *first = new_start(&a);
    struct trp_stage_statistics *st =
        stage(first, "solve", &plain, 4, 2, TRP_OUTCOME_FAILED);
    st->failures = 1;
    st->given_up = 1;
    st->skipped = 2;
    struct trp_run_record *second = new_start(&a);
    stage(second, "solve", &plain, 4, 1, TRP_OUTCOME_SUCCEEDED);
    stage(new_start(&b), "solve", &plain, 4, 3, TRP_OUTCOME_SUCCEEDED);
    struct trp_comparison c = compare(&a, &b, false);
    const struct trp_compared *of = row(&c, "solve")->of;
    g_assert_cmpuint(of[0].tasks, ==, 4); /* the same ones */
    g_assert_cmpuint(of[0].attempts, ==, 8);
    g_assert_cmpuint(of[0].failures, ==, 1);
    g_assert_cmpuint(of[0].given_up, ==, 0); /* the last start has done them */
    g_assert_cmpuint(of[0].skipped, ==, 0);
    g_assert_cmpint(of[0].outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_cmpint(of[0].wall_ns, ==, 3 * S);
    g_assert_cmpint(c.total.of[0].wall_ns, ==, 3 * S); /* not what was between them */
    assert_near(of[0].held.cores, of[1].held.cores);
    trp_comparison_free(&c);
    free_runs(&a);
    free_runs(&b);
}

TEST("devices have places of their own")
{
    struct trp_run_records a = {0}, b = {0};
    stage(new_start(&a), "s", &train, 1, 2, TRP_OUTCOME_SUCCEEDED);
    stage(new_start(&b), "s", &lab, 1, 3, TRP_OUTCOME_SUCCEEDED);
    struct trp_comparison c = compare(&a, &b, false);
    const struct trp_compared *of = row(&c, "s")->of;
    uint32_t gpu = strcmp(c.device[0], "gpu") == 0 ? 0 : 1;
    g_assert_cmpuint(c.ndevices, ==, 2);
    g_assert_cmpstr(c.device[gpu], ==, "gpu");
    assert_near(of[0].held.devices[gpu], 4);
    assert_near(of[1].held.devices[gpu], 3);
    assert_near(of[0].held.devices[!gpu], 0);
    assert_near(of[1].held.devices[!gpu], 3);
    g_assert_cmpstr(of[0].profile, ==, "train");
    g_assert_cmpstr(of[1].profile, ==, "lab");
    trp_comparison_free(&c);
    free_runs(&a);
    free_runs(&b);
}

/* Rounds of a loop are one row, whatever their number; --all has each. */
TEST("many stages are few rows")
{
    struct trp_run_records a = {0}, b = {0};
    struct trp_run_record *x = new_start(&a), *y = new_start(&b);
    char name[32];
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "round-%d", i);
        stage(x, name, &plain, 1, 1, TRP_OUTCOME_SUCCEEDED);
        if (i < 50)
            stage(y, name, &plain, 1, 2, TRP_OUTCOME_SUCCEEDED);
        snprintf(name, sizeof name, "%c%c", 'a' + i % 26, 'a' + i / 26);
        stage(x, name, &plain, 1, 0.001 * (60 - i), TRP_OUTCOME_SUCCEEDED);
    }
    struct trp_comparison c = compare(&a, &b, false);
    g_assert_cmpuint(c.n, ==, TRP_SUMMARY_ROWS_KEPT);
    g_assert_cmpuint(c.more, ==, 61 - TRP_SUMMARY_ROWS_KEPT);
    g_assert_cmpuint(c.rest.of[0].nstages, ==, c.more);
    g_assert_cmpuint(c.rest.of[1].nstages, ==, 0);
    g_assert_cmpuint(c.rows[0]->of[0].nstages, ==, 60);
    g_assert_cmpuint(c.rows[0]->of[1].nstages, ==, 50);
    g_assert_cmpint(c.rows[0]->of[1].wall_ns, ==, 100 * S);
    g_assert_cmpuint(c.total.of[0].nstages, ==, 120);
    trp_comparison_free(&c);
    c = compare(&a, &b, true);
    g_assert_cmpuint(c.n, ==, 120);
    g_assert_cmpuint(c.more, ==, 0);
    g_assert_cmpint(row(&c, "round-49")->of[1].wall_ns, ==, 2 * S);
    trp_comparison_free(&c);
    free_runs(&a);
    free_runs(&b);
}

/* A stage that never was to run says nothing of those that did. */
TEST("what never ran is not how it ended")
{
    struct trp_run_records a = {0}, b = {0};
    struct trp_run_record *x = new_start(&a);
    struct trp_event_stage never = {.stage = {7}, .name = "map", .ntasks = 8};
    stage(x, "map", &plain, 1, 1, TRP_OUTCOME_SUCCEEDED);
    trp_statistics_describe(&x->statistics, &never);
    never.stage.n = 0;
    never.name = "alone";
    trp_statistics_describe(&new_start(&b)->statistics, &never);
    struct trp_comparison c = compare(&a, &b, false);
    g_assert_cmpint(row(&c, "map")->of[0].outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_false(row(&c, "map")->of[0].waited);
    g_assert_true(row(&c, "alone")->of[1].waited);
    trp_comparison_free(&c);
    free_runs(&a);
    free_runs(&b);
}
