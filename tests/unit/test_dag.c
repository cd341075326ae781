/* Stages that can lose what they made, on task sets: shuffles told as stages and as
 * datasets, graphs of any depth, and random streams of failures. The rules one by one
 * are scenarios of layer dag. */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "core/engine_state.h"
#include "unit.h"
#include "world/world.h"

static void start(struct world *w, uint32_t executors, bool host_files)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.fixed = true;
    c.host_files = host_files;
    world_init(w, NULL);
    world_start(w, &c);
    for (uint32_t i = 0; i < executors; i++)
        world_come(w, trp_engine_expect_executor(w->engine, (trp_profile_id){0}).n);
}

static uint32_t add_dataset(struct world *w, const struct trp_dataset_spec *spec)
{
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {spec}};
    world_step(w, &ev);
    return w->engine->dag.graph.n - 1;
}

static void submit_dataset(struct world *w, uint32_t dataset)
{
    struct trp_job_spec spec = {.is_dataset = true, .dataset = dataset};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {&spec}};
    world_step(w, &ev);
}

/* The i-th attempt ends as one that could not read that output. */
static void fetch_fails(struct world *w, guint i, uint32_t stage, uint32_t map,
                        uint32_t executor)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = world_attempt_at(w, i)->id,
                  .status = TRP_END_FETCH,
                  .from = {{stage}, map, {executor}, NULL, NULL, 0}},
    };
    world_step(w, &ev);
}

/* ---- told as stages ---- */

static const struct trp_parent_spec reads = {.stage = 0, .shuffle = true};

static void submit_shuffle(struct world *w, uint32_t maps, uint32_t reducers)
{
    struct trp_stage_spec v[] = {world_stage("maps", maps),
                                 world_stage("reducers", reducers)};
    v[0].map = true;
    v[1].parents = &reads;
    v[1].nparents = 1;
    world_submit(w, v, 2);
}

TEST("reducers run when all outputs are there")
{
    WORLD w;
    trp_executor_id x;
    const char *host;
    start(&w, 2, true);
    submit_shuffle(&w, 2, 1);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(trp_engine_output(w.engine, (trp_stage_id){0}, 0, &x, &host), ==,
                    0);
    g_assert_cmpuint(x.n, ==, TRP_NONE); /* the host has it, not the executor */
    g_assert_cmpint(trp_engine_output(w.engine, (trp_stage_id){0}, 1, &x, &host), ==,
                    TRP_ENOENT);
    g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 0);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a fetch failure runs what is missing again")
{
    WORLD w;
    start(&w, 2, false);
    submit_shuffle(&w, 2, 2);
    uint32_t place = world_attempt_at(&w, 0)->executor;
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    fetch_fails(&w, 0, 0, 0, place);
    g_assert_cmpuint(w.nattempts, ==, 1); /* the other reducer runs on */
    world_time(&w, w.now + SECOND / 10);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_time(&w, w.now + SECOND / 10);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(world_attempt_at(&w, 1)->stage.n, ==, 0);
    g_assert_cmpuint(world_attempt_at(&w, 1)->task, ==, 0);
    /* A late success of the old attempt counts: one reducer is left to run. */
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    struct trp_stage_view view;
    g_assert_cmpint(trp_engine_stage(w.engine, (trp_stage_id){1}, &view), ==, 0);
    g_assert_cmpuint(view.attempts, ==, 2);
    g_assert_cmpuint(view.succeeded, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

/* Map stages that are to run again, of a job that is over before they do. */
TEST("the end of a map stage is told once")
{
    struct trp_event cancel = {.kind = TRP_EVENT_CANCEL_JOB};
    WORLD w;
    start(&w, 2, false);
    struct trp_stage_spec v[] = {world_stage("first", 1), world_stage("maps", 1),
                                 world_stage("reducers", 1)};
    const struct trp_parent_spec reads_maps = {.stage = 1, .shuffle = true};
    v[0].map = v[1].map = true;
    v[1].parents = &reads;
    v[2].parents = &reads_maps;
    v[1].nparents = v[2].nparents = 1;
    world_submit(&w, v, 3);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    uint32_t place = world_attempt_at(&w, 0)->executor;
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nended, ==, 2);
    fetch_fails(&w, 0, 1, 0, place);
    world_step(&w, &cancel);
    g_assert_cmpuint(w.job_ends, ==, 1);
    /* The reducers' end was still to be told. */
    g_assert_cmpuint(w.nended, ==, 3);
    g_assert_cmpuint(w.ended[2].stage_ended.stage.n, ==, 2);
}

TEST("a lost executor takes its outputs along")
{
    WORLD w;
    start(&w, 3, false);
    submit_shuffle(&w, 3, 1);
    uint32_t lost = world_attempt_at(&w, 0)->executor;
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_lose(&w, lost, TRP_LOSS_EXITED);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_run_out(&w, SECOND); /* map 0 again, in the same attempt */
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_cmpuint(w.nverdicts, ==, 5);
}

TEST("a moved output needs no second run")
{
    WORLD w;
    start(&w, 2, false);
    submit_shuffle(&w, 2, 1);
    trp_attempt_id first = world_attempt_at(&w, 0)->id;
    uint32_t from = world_attempt_at(&w, 0)->executor,
             to = world_attempt_at(&w, 1)->executor;
    world_end(&w, first, TRP_END_SUCCESS, 0, SECOND);
    struct trp_event ev = {
        .kind = TRP_EVENT_OUTPUT_MOVED, .moved = {{0}, 0, first, {to}}
    };
    world_step(&w, &ev);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_lose(&w, from, TRP_LOSS_RELEASED);
    trp_executor_id x;
    const char *host;
    g_assert_cmpint(trp_engine_output(w.engine, (trp_stage_id){0}, 0, &x, &host), ==,
                    0);
    g_assert_cmpuint(x.n, ==, to);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 3);
}

/* It is where all hosts see it: there until a reader misses it. */
TEST("an output that all see outlives its host")
{
    WORLD w;
    trp_executor_id x;
    const char *host;
    start(&w, 2, true);
    submit_shuffle(&w, 2, 1);
    trp_attempt_id first = world_attempt_at(&w, 0)->id;
    uint32_t from = world_attempt_at(&w, 0)->executor;
    world_end(&w, first, TRP_END_SUCCESS, 0, SECOND);
    struct trp_event ev = {
        .kind = TRP_EVENT_OUTPUT_MOVED, .moved = {{0}, 0, first, {TRP_NONE}}
    };
    world_step(&w, &ev);
    world_lose(&w, from, TRP_LOSS_HOST);
    g_assert_cmpint(trp_engine_output(w.engine, (trp_stage_id){0}, 0, &x, &host), ==,
                    0);
    g_assert_cmpuint(x.n, ==, TRP_NONE);
    g_assert_cmpstr(host, ==, "");
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 1);
    fetch_fails(&w, 0, 0, 0, TRP_NONE);
    g_assert_cmpint(trp_engine_output(w.engine, (trp_stage_id){0}, 0, &x, &host), ==,
                    TRP_ENOENT);
    world_time(&w, w.now + SECOND / 5);
    g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 0);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("impossible shuffles are refused")
{
    WORLD w;
    trp_error err;
    start(&w, 1, true);
    struct trp_stage_spec v[] = {world_stage("a", 2), world_stage("b", 2)};
    struct trp_parent_spec each = {.each = true};
    struct trp_job_spec spec = {.stages = v, .nstages = 2};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {&spec}};
    v[1].nparents = 1;
    v[1].parents = &reads;
    g_assert_cmpint(trp_engine_step(w.engine, 0, &ev, &err), ==, TRP_EINVAL);
    v[0].map = true;
    v[1].parents = &each;
    g_assert_cmpint(trp_engine_step(w.engine, 0, &ev, &err), ==, TRP_EINVAL);
    v[1].parents = &reads;
    v[0].tolerate = 1;
    g_assert_cmpint(trp_engine_step(w.engine, 0, &ev, &err), ==, TRP_EINVAL);
    spec = (struct trp_job_spec){.is_dataset = true, .dataset = 7};
    g_assert_cmpint(trp_engine_step(w.engine, 0, &ev, &err), ==, TRP_EINVAL);
    g_assert_cmpuint(trp_engine_stages(w.engine), ==, 0);
}

TEST("a barrier stage without slots is given up")
{
    WORLD w;
    start(&w, 1, true);
    struct trp_stage_spec s = world_stage("together", 2);
    s.barrier = true;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 0);
    world_time(&w, 599 * SECOND);
    g_assert_cmpuint(w.job_ends, ==, 0);
    world_time(&w, 600 * SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_nonnull(strstr(w.texts[0], "slots"));
}

/* Its slots went while its first attempt ran. */
TEST("a barrier stage that loses its slots is given up")
{
    WORLD w;
    start(&w, 2, true);
    struct trp_stage_spec s = world_stage("together", 2);
    s.barrier = true;
    world_submit(&w, &s, 1);
    world_lose(&w, world_attempt_at(&w, 0)->executor, TRP_LOSS_EXITED);
    world_time(&w, w.now + SECOND); /* the other task still runs */
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_KILLED, 0, SECOND);
    world_time(&w, w.now + 599 * SECOND);
    g_assert_cmpuint(w.job_ends, ==, 0);
    world_time(&w, w.now + 20 * SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
}

/* A barrier stage runs as a whole: what one task did is of no use to the next attempt.
 */
TEST("a barrier stage runs all its tasks again")
{
    WORLD w;
    start(&w, 2, true);
    struct trp_stage_spec s = world_stage("together", 2);
    s.barrier = true;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    /* It was to be killed, and succeeds before that. */
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

/* What a task of it did may be undone: a child's task does not begin on it. */
TEST("a child waits for the whole barrier stage")
{
    static const struct trp_parent_spec each = {.stage = 0, .each = true};
    struct trp_stage_spec s[] = {world_stage("together", 2), world_stage("own", 2)};
    WORLD w;
    start(&w, 3, true);
    s[0].barrier = true;
    s[1].parents = &each;
    s[1].nparents = 1;
    world_submit(&w, s, 2);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    world_time(&w, w.now + SECOND);
    g_assert_cmpuint(w.nattempts, ==, 2);
    for (uint32_t i = 0; i < 2; i++) {
        g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 0);
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    }
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a barrier stage skips all its tasks or none")
{
    static const uint8_t one[] = {1, 0}, both[] = {1, 1};
    for (uint32_t i = 0; i < 2; i++) {
        struct trp_event ev = {
            .kind = TRP_EVENT_STAGE_TASKS,
            .tasks = {.stage = {0}, .ntasks = 2, .done = i ? both : one}
        };
        struct trp_stage_spec s = {.name = "together", .barrier = true};
        WORLD w;
        start(&w, 2, true);
        world_submit(&w, &s, 1);
        world_step(&w, &ev);
        g_assert_cmpuint(w.nattempts, ==, i ? 0 : 2);
        world_run_out(&w, SECOND);
        g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    }
}

TEST("an executor with data in use is not released")
{
    WORLD w;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.queue_ahead_ns = 0;
    c.host_files = false;
    c.shuffle_tracking = true;
    c.shuffle_timeout_ns = INT64_MAX;
    world_begin(&w, &c, 1);
    submit_shuffle(&w, 3, 1);
    g_assert_cmpuint(w.nlive, ==, 3);
    while (w.nattempts > 1 || world_attempt_at(&w, 0)->stage.n == 0)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_time(&w, 1000 * SECOND); /* one reducer runs, two executors idle */
    g_assert_cmpuint(w.nlive, ==, 3);
    world_run_out(&w, SECOND);
    world_time(&w, 2000 * SECOND); /* the job is over, its files are forgotten */
    g_assert_cmpuint(w.nlive, ==, 0);
    submit_shuffle(&w, 3, 1); /* and an engine may end in the middle */
}

/* ---- told as datasets ---- */

TEST("a second job runs on the first ones outputs")
{
    WORLD w;
    start(&w, 2, true);
    struct trp_dataset_spec a = {.name = "a", .partitions = 2};
    struct trp_dataset_parent from_a = {.dataset = add_dataset(&w, &a),
                                        .shuffle = true};
    struct trp_dataset_spec b = {
        .name = "b", .partitions = 1, .parents = &from_a, .nparents = 1};
    uint32_t id = add_dataset(&w, &b);
    submit_dataset(&w, id);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 3);
    submit_dataset(&w, id);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 4);
    g_assert_cmpuint(w.job_ends, ==, 2);
    struct trp_event ev = {.kind = TRP_EVENT_DATASET_RELEASED,
                           .released = {from_a.dataset}};
    world_step(&w, &ev);
    submit_dataset(&w, id);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 7);
}

TEST("outputs are awaited until they were read")
{
    WORLD w;
    start(&w, 2, true);
    struct trp_dataset_spec a = {.name = "a", .partitions = 2};
    struct trp_dataset_parent from_a = {.dataset = add_dataset(&w, &a),
                                        .shuffle = true};
    struct trp_dataset_spec b = {
        .name = "b", .partitions = 2, .parents = &from_a, .nparents = 1};
    struct trp_dataset_parent from_b = {.dataset = add_dataset(&w, &b),
                                        .shuffle = true};
    struct trp_dataset_spec c = {
        .name = "c", .partitions = 1, .parents = &from_b, .nparents = 1};
    uint32_t id = add_dataset(&w, &c);
    g_assert_false(trp_engine_awaits(w.engine, from_a.dataset));
    submit_dataset(&w, id);
    g_assert_true(trp_engine_awaits(w.engine, from_a.dataset));
    g_assert_true(trp_engine_awaits(w.engine, from_b.dataset));
    g_assert_false(trp_engine_awaits(w.engine, id));
    g_assert_false(trp_engine_awaits(w.engine, 99));
    for (int i = 0; i < 4; i++) /* a, then b */
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_false(trp_engine_awaits(w.engine, from_a.dataset));
    g_assert_true(trp_engine_awaits(w.engine, from_b.dataset));
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_false(trp_engine_awaits(w.engine, from_b.dataset));
}

enum { DEEP = 100000 };

static uint32_t deep_chain(struct world *w, bool shuffle)
{
    struct trp_dataset_parent parent = {.shuffle = shuffle};
    struct trp_dataset_spec spec = {.name = "d", .partitions = 1};
    for (uint32_t i = 0; i < DEEP; i++) {
        parent.dataset = add_dataset(w, &spec);
        spec.parents = &parent;
        spec.nparents = 1;
    }
    return parent.dataset;
}

TEST("a narrow chain of any depth is one stage")
{
    WORLD w;
    start(&w, 1, true);
    w.unchecked = true;
    submit_dataset(&w, deep_chain(&w, false));
    g_assert_cmpuint(trp_engine_stages(w.engine), ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a chain of shuffles of any depth runs")
{
    WORLD w;
    start(&w, 1, true);
    w.unchecked = true;
    submit_dataset(&w, deep_chain(&w, true));
    g_assert_cmpuint(trp_engine_stages(w.engine), ==, DEEP);
    world_run_out(&w, 1000);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_cmpuint(w.nverdicts, ==, DEEP);
}

/* Preferred places of a task of the last stage: "executor executor …". */
static void assert_places(struct world *w, uint32_t task, const char *want)
{
    struct trp_preferences p;
    const struct trp_stage *s = w->engine->stages[w->engine->nstages - 1];
    g_autoptr(GString) got = g_string_new(NULL);
    if (trp_dag_prefer(w->engine, s, NULL, &p))
        for (uint32_t i = p.first[task]; i < p.first[task + 1]; i++)
            g_string_append_printf(got, "%u ", p.places[i].executor);
    g_assert_cmpstr(got->str, ==, want);
}

static void keep(struct world *w, uint32_t dataset, uint32_t partition, uint32_t x)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_CACHED, .cached = {dataset, partition, {x}, false}
    };
    world_step(w, &ev);
}

/* Two kept datasets beside each other, of which what the first reads is not computed
 * when all of it is there, and the same with three partitions taken together. */
TEST("tasks go where most of their partitions are")
{
    static const uint32_t left[] = {0, 3, 4}, right[] = {0, 2};
    WORLD w;
    start(&w, 3, true);
    struct trp_dataset_spec a = {.name = "a", .partitions = 2};
    struct trp_dataset_parent from_a = {.dataset = add_dataset(&w, &a),
                                        .shuffle = true};
    struct trp_dataset_spec kept = {.name = "kept",
                                    .partitions = 4,
                                    .parents = &from_a,
                                    .nparents = 1,
                                    .cached = true};
    struct trp_dataset_spec other = {.name = "other", .partitions = 2, .cached = true};
    struct trp_dataset_parent both[] = {
        {.dataset = add_dataset(&w, &kept)    },
        { .dataset = add_dataset(&w,                  &other), .begin = 4}
    };
    struct trp_dataset_spec beside = {
        .name = "beside", .partitions = 6, .parents = both, .nparents = 2};
    uint32_t of_runs = add_dataset(&w, &beside);
    for (uint32_t i = 0; i < 4; i++)
        keep(&w, both[0].dataset, i, i == 1);
    keep(&w, both[1].dataset, 0, 1);
    keep(&w, both[1].dataset, 1, 2);
    submit_dataset(&w, of_runs);
    for (uint32_t i = 0; i < 6; i++)
        assert_places(&w, i, i == 1 || i == 4 ? "1 " : i == 5 ? "2 " : "0 ");
    for (guint i = 0; i < w.nattempts; i++) /* none of a's */
        g_assert_cmpuint(world_attempt_at(&w, i)->stage.n, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 6);

    both[0].first = left;
    both[0].nfirst = 3;
    both[1].begin = 1;
    both[1].first = right;
    both[1].nfirst = 2;
    beside.partitions = 2;
    submit_dataset(&w, add_dataset(&w, &beside));
    assert_places(&w, 0, "0 ");     /* 0 1 0 */
    assert_places(&w, 1, "0 1 2 "); /* 0 and 1 2 */
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);

    both[1].begin = 2;
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {&beside}};
    trp_error err;
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &ev, &err), ==, TRP_EINVAL);
}

TEST("many parents cost a look each")
{
    enum { N = 20000 };
    WORLD w;
    start(&w, 1, true);
    w.unchecked = true;
    struct trp_dataset_spec spec = {.name = "d", .partitions = 1};
    struct trp_dataset_parent *parents = g_new0(struct trp_dataset_parent, N);
    for (uint32_t i = 0; i < N; i++)
        parents[i] = (struct trp_dataset_parent){.dataset = add_dataset(&w, &spec),
                                                 .shuffle = true};
    spec.parents = parents;
    spec.nparents = N;
    submit_dataset(&w, add_dataset(&w, &spec));
    world_run_out(&w, 1000);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_free(parents);
}

/* ---- random streams ---- */

enum { DATASETS = 12 };

/* Narrow ones: one to one, from some partition on, or in runs. */
static struct trp_dataset_parent random_parent(struct world *w, GRand *r, uint32_t i,
                                               const struct trp_dataset_spec *child)
{
    static uint32_t all[3][6];
    const uint32_t partitions = child->partitions;
    uint32_t *first = all[child->nparents];
    struct trp_dataset_parent p = {.dataset = (uint32_t)g_rand_int_range(r, 0, (int)i),
                                   .shuffle = g_rand_int_range(r, 0, 3) > 0};
    const uint32_t n = w->engine->dag.graph.v[p.dataset].partitions;
    const int how = p.shuffle ? 0 : g_rand_int_range(r, 0, 3);
    if (how > 0)
        p.begin = (uint32_t)g_rand_int_range(r, 0, (int)partitions + 1);
    if (how > 1) {
        p.first = first;
        p.nfirst =
            1 + (uint32_t)g_rand_int_range(r, 0, (int)(partitions - p.begin) + 1);
        for (uint32_t k = 0; k < p.nfirst; k++)
            first[k] = n * k / p.nfirst;
    }
    return p;
}

static void random_datasets(struct world *w, GRand *r)
{
    for (uint32_t i = 0; i < DATASETS; i++) {
        struct trp_dataset_parent parents[3];
        struct trp_dataset_place place = {0, "h1"};
        struct trp_dataset_spec spec = {
            .name = "d",
            .partitions = (uint32_t)g_rand_int_range(r, 0, 5),
            .parents = parents,
            .cached = g_rand_int_range(r, 0, 4) == 0,
            .barrier = g_rand_int_range(r, 0, 10) == 0,
            .indeterminate = g_rand_int_range(r, 0, 6) == 0,
            .prefer = &place,
        };
        spec.nprefer = spec.partitions && g_rand_boolean(r);
        for (uint32_t k = 0; i && k < 3 && g_rand_boolean(r); k++) {
            parents[k] = random_parent(w, r, i, &spec);
            spec.nparents++;
        }
        add_dataset(w, &spec);
    }
}

static void random_job(struct world *w, GRand *r)
{
    uint32_t dataset = (uint32_t)g_rand_int_range(r, 0, DATASETS);
    uint32_t n = w->engine->dag.graph.v[dataset].partitions, one = n ? n - 1 : 0;
    struct trp_job_spec spec = {
        .is_dataset = true,
        .dataset = dataset,
        .map_only = g_rand_int_range(r, 0, 4) == 0,
        .some = n && g_rand_boolean(r),
        .partitions = &one,
        .npartitions = 1,
    };
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {&spec}};
    world_step(w, &ev);
}

/* Some output that the attempt's stage reads, or none. */
static bool random_source(const struct world *w, GRand *r, trp_stage_id id,
                          struct trp_fetch_source *ret)
{
    const struct trp_stage *s = trp_stage_find(w->engine, id);
    trp_executor_id x = {TRP_NONE};
    const char *host;
    if (!s || !s->nparents)
        return false;
    const struct trp_stage *p =
        s->parents[g_rand_int_range(r, 0, (int)s->nparents)].parent;
    if (!p || !p->ntasks)
        return false;
    ret->stage = p->id;
    ret->map = (uint32_t)g_rand_int_range(r, 0, (int)p->ntasks);
    if (trp_engine_output(w->engine, p->id, ret->map, &x, &host) < 0)
        ret->map = TRP_NONE;
    ret->executor = x;
    return true;
}

static void random_end(struct world *w, GRand *r, bool kindly)
{
    guint i = (guint)g_rand_int_range(r, 0, (gint32)w->nattempts);
    struct world_attempt a = *world_attempt_at(w, i);
    uint64_t sizes[] = {1, 0, 4711};
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = a.id,
                  .status = a.kill ? TRP_END_KILLED : TRP_END_SUCCESS,
                  .duration_ns = SECOND,
                  .sizes = sizes,
                  .nsizes = (uint32_t)g_rand_int_range(r, 0, 4)},
    };
    if (!a.kill && !kindly && g_rand_int_range(r, 0, 5) == 0 &&
        random_source(w, r, a.stage, &ev.ended.from))
        ev.ended.status = TRP_END_FETCH;
    else if (!a.kill && !kindly && g_rand_int_range(r, 0, 20) == 0)
        ev.ended.status = TRP_END_EXIT;
    world_step(w, &ev);
}

static void random_cluster_event(struct world *w, GRand *r)
{
    struct trp_event ev = {.kind = TRP_EVENT_CACHED};
    uint32_t n = w->nlive;
    uint32_t x = n ? w->live[g_rand_int_range(r, 0, (int)n)] : 0;
    switch (g_rand_int_range(r, 0, 5)) {
    case 0:
        if (n)
            world_lose(w, x, g_rand_boolean(r) ? TRP_LOSS_EXITED : TRP_LOSS_HOST);
        break;
    case 1:
        if (n < 8)
            world_come(w, trp_engine_expect_executor(w->engine, (trp_profile_id){0}).n);
        break;
    case 2:
        ev.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED;
        ev.decommissioned.executor.n = x;
        ev.decommissioned.whole_host = g_rand_boolean(r);
        world_step(w, &ev);
        break;
    case 3:
        ev.kind = TRP_EVENT_CANCEL_STAGE;
        ev.cancel_stage.stage.n =
            (uint32_t)g_rand_int_range(r, 0, (int)trp_engine_stages(w->engine) + 1);
        if (g_rand_int_range(r, 0, 4) == 0)
            world_step(w, &ev);
        break;
    default:
        ev.cached.dataset = (uint32_t)g_rand_int_range(r, 0, DATASETS + 1);
        ev.cached.partition = (uint32_t)g_rand_int_range(r, 0, 5);
        ev.cached.gone = g_rand_int_range(r, 0, 4) == 0;
        ev.cached.executor.n = x;
        world_step(w, &ev);
    }
}

/* What is written down of stages agrees with what is there. */
static void check_stages(const struct world *w)
{
    const struct trp_engine *e = w->engine;
    for (uint32_t i = 0; i < e->nstages; i++) {
        const struct trp_stage *s = e->stages[i];
        uint32_t blockers = 0, bits = 0;
        if (!s || s->state == TRP_STAGE_ENDED)
            continue;
        g_assert_nonnull(s->uses);
        for (uint32_t p = 0; p < s->nparents; p++) {
            g_assert_cmpuint(s->parents[p].parent->id.n, <, s->id.n);
            blockers += s->parents[p].waits;
        }
        g_assert_cmpuint(blockers, ==, s->blockers);
        g_assert_cmpint(blockers > 0, ==, s->state == TRP_STAGE_WAITING);
        for (uint32_t t = 0; s->bits && t < s->ntasks; t++)
            bits += trp_bit(s->bits, t);
        g_assert_cmpuint(
            bits, ==, s->is_map ? s->awaited : s->succeeded + s->given_up + s->unasked);
        g_assert_false(s->queued);
        if (s->state == TRP_STAGE_RUNNING)
            g_assert_nonnull(s->set);
    }
}

static void random_stream(uint32_t seed)
{
    GRand *r = g_rand_new_with_seed(seed);
    WORLD w;
    uint32_t jobs = 0;
    start(&w, 3, g_rand_boolean(r));
    random_datasets(&w, r);
    for (int i = 0; i < 300; i++) {
        w.now += g_rand_int_range(r, 0, 100000000);
        int what = g_rand_int_range(r, 0, 12);
        if (what == 0 && jobs < 8) {
            random_job(&w, r);
            jobs++;
        } else if (what == 1) {
            random_cluster_event(&w, r);
        } else if (what == 2) {
            world_time(&w, w.now + SECOND / 4);
        } else if (w.nattempts) {
            random_end(&w, r, false);
        }
        check_stages(&w);
    }
    for (int i = 0; i < 6; i++) /* enough for any gang, whoever is left */
        world_come(&w, trp_engine_expect_executor(w.engine, (trp_profile_id){0}).n);
    for (int i = 0; i < 20000 && w.job_ends < jobs; i++) {
        if (w.nattempts)
            random_end(&w, r, true);
        else
            world_time(&w, w.now + SECOND);
        check_stages(&w);
    }
    for (uint32_t i = 0; w.job_ends != jobs && i < trp_engine_stages(w.engine); i++) {
        char why[256];
        g_test_message(
            "stage %u: %s", i,
            trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){i}, why, 256));
    }
    if (w.job_ends != jobs)
        g_error("seed %u: %u of %u jobs ended", seed, w.job_ends, jobs);
    while (w.nattempts)
        random_end(&w, r, true);
    world_step(&w, &(struct trp_event){.kind = TRP_EVENT_TIME}); /* frees the last */
    for (uint32_t i = 0; i < w.engine->nstages; i++)
        g_assert_null(w.engine->stages[i]); /* nothing is left of them */
    g_rand_free(r);
}

TEST("random streams end every job")
{
    uint32_t first = (uint32_t)g_test_rand_int();
    for (uint32_t i = 0; i < 300; i++) {
        g_test_message("seed %u", first + i);
        random_stream(first + i);
    }
}
