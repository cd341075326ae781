/* Stages that can lose what they made, on task sets: shuffles told as stages and as
 * datasets, graphs of any depth. The rules one by one are scenarios of layer dag, random
 * streams of failures are tests/property. */
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
    world_tell(w, TRP_EVENT_DATASET, .dataset = {spec});
    return w->engine->dag.graph.n - 1;
}

static void submit_dataset(struct world *w, uint32_t dataset)
{
    struct trp_job_spec spec = {.is_dataset = true, .dataset = dataset};
    world_tell(w, TRP_EVENT_JOB, .job = {&spec});
}

/* The i-th attempt ends as one that could not read that output. */
static void fetch_fails(struct world *w, guint i, uint32_t stage, uint32_t map,
                        uint32_t executor)
{
    world_tell(w, TRP_EVENT_TASK_ENDED,
               .ended = {
                   .attempt = world_attempt_at(w, i)->id,
                   .status = TRP_END_FETCH,
                   .from = {{stage}, map, {executor}, NULL, NULL, 0}
    });
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

TEST("a moved output needs no second run")
{
    WORLD w;
    start(&w, 2, false);
    submit_shuffle(&w, 2, 1);
    trp_attempt_id first = world_attempt_at(&w, 0)->id;
    uint32_t from = world_attempt_at(&w, 0)->executor,
             to = world_attempt_at(&w, 1)->executor;
    world_end(&w, first, TRP_END_SUCCESS, 0, SECOND);
    world_tell(&w, TRP_EVENT_OUTPUT_MOVED, .moved = {{0}, 0, first, {to}});
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
    world_tell(&w, TRP_EVENT_OUTPUT_MOVED, .moved = {{0}, 0, first, {TRP_NONE}});
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
    world_tell(&w, TRP_EVENT_DATASET_RELEASED, .released = {from_a.dataset});
    submit_dataset(&w, id);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 7);
}

TEST("a dataset that was freed is there no more, and takes its outputs along")
{
    WORLD w;
    start(&w, 2, true);
    struct trp_dataset_spec a = {.name = "a", .partitions = 2};
    struct trp_dataset_parent from_a = {.dataset = add_dataset(&w, &a),
                                        .shuffle = true};
    struct trp_dataset_spec b = {
        .name = "b", .partitions = 1, .parents = &from_a, .nparents = 1};
    uint32_t id = add_dataset(&w, &b);
    struct trp_event free_a = {.kind = TRP_EVENT_DATASET_FREED,
                               .freed = {from_a.dataset}},
                     free_b = {.kind = TRP_EVENT_DATASET_FREED, .freed = {id}};
    struct trp_job_spec job = {.is_dataset = true, .dataset = id};
    struct trp_event submit = {.kind = TRP_EVENT_JOB, .job = {&job}};
    trp_error err;
    submit_dataset(&w, id);
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &free_b, &err), ==, TRP_EWAIT);
    g_assert_cmpstr(err.text, ==, "dataset b is in use");
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(trp_engine_inputs(w.engine, from_a.dataset), ==, 2);
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &free_a, &err), ==, TRP_EWAIT);
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &free_b, &err), ==, 0);
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &free_a, &err), ==, 0);
    g_assert_cmpuint(trp_engine_inputs(w.engine, from_a.dataset), ==, 0);
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &free_a, &err), ==, TRP_EINVAL);
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &submit, &err), ==, TRP_EINVAL);
    struct trp_dataset_spec c = {
        .name = "c", .partitions = 1, .parents = &from_a, .nparents = 1};
    struct trp_event add = {.kind = TRP_EVENT_DATASET, .dataset = {&c}};
    g_assert_cmpint(trp_engine_step(w.engine, w.now, &add, &err), ==, TRP_EINVAL);
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
    world_tell(w, TRP_EVENT_CACHED, .cached = {dataset, partition, {x}, false});
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
