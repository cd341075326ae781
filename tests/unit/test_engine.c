/* The engine against a pretended cluster: what is launched where, what follows from
 * ends, failures and losses. Random streams of events: tests/property. */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

static void start(struct world *w, uint32_t max_executors)
{
    struct trp_engine_config c = world_config(max_executors);
    world_init(w, NULL);
    world_start(w, &c);
}

TEST("all tasks run lowest first")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec s = world_stage("a", 5);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 2); /* one core each */
    g_assert_cmpuint(world_attempt_at(&w, 0)->task, ==, 0);
    g_assert_cmpuint(world_attempt_at(&w, 1)->task, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 5);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("an empty stage succeeds and a long chain of them too")
{
    enum { N = 10000 };
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec *v = g_new0(struct trp_stage_spec, N);
    struct trp_parent_spec *p = g_new0(struct trp_parent_spec, N);
    for (uint32_t i = 0; i < N; i++) {
        v[i] = world_stage("s", 0);
        p[i].stage = i - 1;
        v[i].parents = &p[i];
        v[i].nparents = i > 0;
    }
    w.unchecked = true;
    world_submit(&w, v, N);
    g_assert_cmpuint(w.nended, ==, N);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_free(v);
    g_free(p);
}

TEST("a failed task is next and gives up at the limit")
{
    WORLD w;
    start(&w, 1);
    struct trp_stage_spec s = world_stage("a", 3);
    world_submit(&w, &s, 1);
    for (uint32_t i = 0; i < 4; i++) {
        g_assert_cmpuint(world_attempt_at(&w, 0)->task, ==, 0);
        g_assert_cmpuint(world_attempt_at(&w, 0)->number, ==, i);
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 37, SECOND);
    }
    const struct trp_action *last = &w.verdicts[3];
    g_assert_true(last->task_end.counted);
    g_assert_false(last->task_end.retried);
    g_assert_cmpuint(last->task_end.failures, ==, 4);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_EFAILED);
    g_assert_cmpstr(w.texts[0], ==, "task 0 failed 4 times");
    g_assert_cmpuint(w.nattempts, ==, 0);
}

static void end_with_result(struct world *w, uint64_t bytes)
{
    world_tell(w, TRP_EVENT_TASK_ENDED,
               .ended = {.attempt = world_attempt_at(w, 0)->id, .result_bytes = bytes});
}

TEST("results above the limit fail their job")
{
    for (uint32_t ntasks = 2; ntasks <= 3; ntasks++) { /* also by the last task */
        WORLD w;
        struct trp_engine_config c = world_config(1);
        c.max_result_bytes = 1 << 20;
        world_begin(&w, &c, 1);
        struct trp_stage_spec s = world_stage("a", ntasks);
        world_submit(&w, &s, 1);
        end_with_result(&w, 1 << 20);
        g_assert_cmpuint(w.job_ends, ==, 0);
        end_with_result(&w, 1);
        g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
        g_assert_cmpstr(w.texts[0], ==,
                        "the results of 2 tasks are 1.0 MiB, above "
                        "driver.maxResultSize (1.0 MiB)");
    }
}

TEST("a success after failures is a success")
{
    WORLD w;
    start(&w, 1);
    struct trp_stage_spec s = world_stage("a", 1);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 3; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SIGNAL, 9, SECOND);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("statuses in not on are not retried")
{
    WORLD w;
    start(&w, 1);
    struct trp_stage_spec s = world_stage("a", 1);
    int32_t not_on[] = {2, 3};
    s.not_on = not_on;
    s.nnot_on = 2;
    world_submit(&w, &s, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 3, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_cmpstr(w.texts[0], ==, "task 0 failed once");
}

TEST("so many tasks may fail as are tolerated")
{
    WORLD w;
    start(&w, 1);
    struct trp_stage_spec s = world_stage("a", 4);
    s.max_failures = 1;
    s.tolerate = 1;
    world_submit(&w, &s, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 0);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
}

TEST("max running bounds what runs at once")
{
    WORLD w;
    start(&w, 8);
    struct trp_stage_spec s = world_stage("a", 20);
    s.max_running = 3;
    world_submit(&w, &s, 1);
    while (w.nattempts) {
        g_assert_cmpuint(w.nattempts, <=, 3);
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    }
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_cmpuint(w.nverdicts, ==, 20);
}

TEST("a stage waits for all its parents")
{
    WORLD w;
    start(&w, 4);
    struct trp_stage_spec v[] = {world_stage("a", 1), world_stage("b", 1),
                                 world_stage("c", 1)};
    struct trp_parent_spec p[] = {{.stage = 0}, {.stage = 1}};
    v[2].parents = p;
    v[2].nparents = 2;
    world_submit(&w, v, 3);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 2);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("after each waits for the same task only")
{
    WORLD w;
    start(&w, 1);
    struct trp_stage_spec v[] = {world_stage("a", 3), world_stage("b", 3)};
    struct trp_parent_spec p = {.stage = 0, .each = true};
    v[1].parents = &p;
    v[1].nparents = 1;
    world_submit(&w, v, 2);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0,
              SECOND); /* a's task 0 */
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0,
              SECOND); /* a's task 1 */
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0,
              SECOND); /* a's task 2 */
    uint32_t ran = 0;
    while (w.nattempts) {
        g_assert_cmpuint(world_attempt_at(&w, 0)->stage.n, ==, 1);
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
        ran++;
    }
    g_assert_cmpuint(ran, ==, 3);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("the first failed stage ends the job or only what depends on it")
{
    for (int keep_going = 0; keep_going < 2; keep_going++) {
        WORLD w;
        struct trp_engine_config c = world_config(4);
        c.keep_going = keep_going;
        world_begin(&w, &c, 1);
        struct trp_stage_spec v[] = {world_stage("a", 1), world_stage("b", 2),
                                     world_stage("c", 1)};
        struct trp_parent_spec p = {.stage = 0};
        v[0].max_failures = 1;
        v[2].parents = &p;
        v[2].nparents = 1;
        world_submit(&w, v, 3);
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
        if (!keep_going) {
            g_assert_true(world_attempt_at(&w, 0)->kill &&
                          world_attempt_at(&w, 1)->kill);
            g_assert_cmpuint(w.job_ends, ==, 1);
            world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_KILLED, 0, SECOND);
            world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_KILLED, 0, SECOND);
        } else {
            g_assert_cmpuint(w.job_ends, ==, 0);
            world_run_out(&w, SECOND);
        }
        g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
        g_assert_cmpuint(w.nended, ==, 3);
    }
}

/* Loses the executor that runs the only task. */
static void lose_under_it(struct world *w)
{
    g_assert_cmpuint(w->nattempts, ==, 1);
    world_lose(w, w->attempts[0].executor, TRP_LOSS_EXITED);
}

TEST("executors that die together fail a task once")
{
    struct trp_engine_config c;
    struct trp_stage_spec s = {.name = "s", .tasks_known = true, .ntasks = 1};
    WORLD w;
    trp_options_engine_config(NULL, &c);
    world_begin(&w, &c, 1);
    world_submit(&w, &s, 1);
    for (int event = 0; event < 4; event++) {
        g_assert_cmpuint(w.job_ends, ==, 0);
        for (int i = 0; i < 6 && w.job_ends == 0; i++) {
            lose_under_it(&w);
            w.now += SECOND / 100;
        }
        w.now += 2 * SECOND;
    }
    g_assert_cmpuint(w.job_ends, ==, 1); /* the fourth failure */
    g_assert_cmpuint(w.nverdicts, ==, 3 * 6 + 1);
}

TEST("a lost executor is replaced and its tasks run again")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec s = world_stage("a", 4);
    world_submit(&w, &s, 1);
    uint32_t first = world_attempt_at(&w, 0)->executor;
    world_lose(&w, first, TRP_LOSS_EXITED);
    g_assert_cmpuint(w.nlive, ==, 2);
    g_assert_cmpuint(w.nattempts, ==, 2);
    const struct trp_action *v = &w.verdicts[0];
    g_assert_cmpint(v->task_end.status, ==, TRP_END_LOST);
    g_assert_true(v->task_end.counted && v->task_end.retried);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("an executor that dies of one task counts against it only")
{
    static const struct {
        enum trp_loss reason;
        enum trp_end_status end; /* of the one that is to blame */
    } ways[] = {
        {TRP_LOSS_CRASHED, TRP_END_SIGNAL },
        {TRP_LOSS_MEMORY,  TRP_END_MEMORY },
        {TRP_LOSS_TIMEOUT, TRP_END_TIMEOUT},
    };
    for (size_t way = 0; way < G_N_ELEMENTS(ways); way++) {
        WORLD w;
        struct trp_profile_defaults d;
        struct trp_engine_config c = world_config(1);
        trp_options_profile_defaults(NULL, &d);
        d.executor_cores = 2;
        world_init(&w, &d);
        world_start(&w, &c);
        struct trp_stage_spec s = world_stage("a", 2);
        world_submit(&w, &s, 1);
        g_assert_cmpuint(w.nattempts, ==, 2);
        trp_attempt_id guilty = world_attempt_at(&w, 1)->id;
        world_lose_with(&w, world_attempt_at(&w, 1)->executor, ways[way].reason, true,
                        guilty);
        for (guint i = 0; i < 2; i++) {
            const struct trp_action *v = &w.verdicts[i];
            bool is_guilty = v->task_end.attempt.n == guilty.n;
            g_assert_cmpint(v->task_end.counted, ==, is_guilty);
            g_assert_cmpint(v->task_end.status, ==,
                            is_guilty ? ways[way].end : TRP_END_LOST);
        }
        world_run_out(&w, SECOND);
        g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    }
}

TEST("who waits for others in a barrier does so for a time")
{
    WORLD w;
    struct trp_engine_config c = world_config(2);
    c.barrier.sync_timeout_ns = 5 * SECOND;
    world_begin(&w, &c, 1);
    struct trp_stage_spec s = world_stage("a", 2);
    s.barrier = true;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 2);
    struct trp_event ev = {.kind = TRP_EVENT_SYNC,
                           .sync = {.attempt = world_attempt_at(&w, 1)->id}};
    world_step(&w, &ev);
    world_time(&w, 5 * SECOND - 1);
    g_assert_cmpuint(w.syncs, ==, 0);
    world_time(&w, 5 * SECOND);
    g_assert_cmpuint(w.syncs, ==, 1);
    g_assert_cmpuint(w.synced.synced.attempt.n, ==, ev.sync.attempt.n);
    g_assert_cmpint(w.synced.synced.code, ==, TRP_ETIME);
}

TEST("executors of another shape make room between stages")
{
    WORLD w;
    start(&w, 2);
    trp_profile_id fat = world_profile(&w, "fat", 4, NULL, 0, 0);
    struct trp_stage_spec v[] = {world_stage("a", 4), world_stage("b", 2)};
    struct trp_parent_spec p = {.stage = 0};
    v[1].parents = &p;
    v[1].nparents = 1;
    v[1].profile = fat;
    world_submit(&w, v, 2);
    g_assert_cmpuint(w.nlive, ==, 2);
    for (int i = 0; i < 4; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.releases, ==, 2);
    g_assert_cmpuint(w.nlive, ==, 1); /* two tasks fit on one executor of 4 cores */
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a narrower stage of the same shape keeps what it needs")
{
    WORLD w;
    start(&w, 4);
    struct trp_stage_spec v[] = {world_stage("a", 4), world_stage("b", 1),
                                 world_stage("c", 4)};
    struct trp_parent_spec of_b = {.stage = 0}, of_c = {.stage = 1};
    v[1].parents = &of_b;
    v[2].parents = &of_c;
    v[1].nparents = v[2].nparents = 1;
    world_submit(&w, v, 3);
    for (int i = 0; i < 3; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.releases, ==, 0); /* the stage has not ended */
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.releases, ==, 3);
    g_assert_cmpuint(w.nlive, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nlive, ==, 4);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("executors of the same shape are taken over")
{
    WORLD w;
    start(&w, 2);
    trp_profile_id twin = world_profile(&w, "twin", 1, NULL, 0, 0);
    struct trp_stage_spec v[] = {world_stage("a", 4), world_stage("b", 2)};
    struct trp_parent_spec p = {.stage = 0};
    v[1].parents = &p;
    v[1].nparents = 1;
    v[1].profile = twin;
    world_submit(&w, v, 2);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.relabels, ==, 2);
    g_assert_cmpuint(w.releases, ==, 0);
}

TEST("executors stay between jobs until they were idle for long")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec s = world_stage("a", 4);
    world_submit(&w, &s, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 2);
    world_run_out(&w, SECOND);
    world_time(&w, w.now + 58 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 2);
    world_time(&w, w.now + 3 * SECOND);
    g_assert_cmpuint(w.nlive, ==, 0);
}

TEST("a profile that never fits fails its stage at once")
{
    WORLD w;
    start(&w, 2);
    world_tell(&w, TRP_EVENT_PROFILE_FIT,
               .fit = {.profile = {0}, .text = "gpu: wanted 2, available 0"});
    struct trp_stage_spec s = world_stage("a", 4);
    world_submit(&w, &s, 1);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
    g_assert_cmpstr(w.texts[0], ==, "gpu: wanted 2, available 0");
}

TEST("refused requests are spaced and given up at last")
{
    WORLD w;
    start(&w, 1);
    w.manual = true;
    struct trp_stage_spec s = world_stage("a", 1);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 5; i++) {
        g_assert_cmpuint(w.nasked, ==, 1);
        uint32_t n = w.asked[0];
        w.nasked = 0;
        world_tell(&w, TRP_EVENT_EXECUTOR_REFUSED,
                   .refused = {.executor = {n}, .text = "no luck"});
        g_assert_cmpuint(w.nasked, ==, 0);
        world_time(&w, w.now + (SECOND << i));
    }
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ESYSTEM);
    g_assert_cmpstr(w.texts[0], ==, "no luck");
}

static void refuse_first(struct world *w, struct trp_event ev)
{
    ev.kind = TRP_EVENT_EXECUTOR_REFUSED;
    ev.refused.executor.n = w->asked[0];
    world_unask(w, 0);
    world_step(w, &ev);
}

/* All that were asked for are refused so, now; true: the job has ended. */
static bool refuse_all(struct world *w, const struct trp_event *ev)
{
    while (w->nasked && !w->job_ends)
        refuse_first(w, *ev);
    return w->job_ends;
}

TEST("what one event took counts once")
{
    const struct trp_event died = {.refused = {.text = "it was killed"}};
    WORLD w;
    start(&w, 5);
    w.manual = true;
    struct trp_stage_spec s = world_stage("a", 5);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 4; i++) {
        g_assert_cmpuint(w.nasked, ==, 5);
        g_assert_false(refuse_all(&w, &died));
        world_time(&w, w.now + (SECOND << i)); /* nor does it make the wait longer */
    }
    g_assert_true(refuse_all(&w, &died));
}

TEST("not now never counts")
{
    const struct trp_event busy = {
        .refused = {.how = TRP_REFUSED_LATER, .text = "no memory"}
    };
    char why[200];
    WORLD w;
    start(&w, 1);
    w.manual = true;
    struct trp_stage_spec s = world_stage("a", 1);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 50; i++) {
        g_assert_false(refuse_all(&w, &busy));
        trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){0}, why, sizeof(why));
        g_assert_nonnull(strstr(why, "no memory"));
        world_time(&w, w.now + 60 * SECOND);
    }
}

TEST("given up after a while and when all was tried")
{
    struct trp_event died = {
        .refused = {.text = "executor 1 was killed", .cause = "was killed"}
    };
    struct trp_event other = {
        .refused = {.text = "executor 2 was lost", .cause = "was lost"}
    };
    struct trp_engine_config c = world_config(1);
    WORLD w;
    c.start_patience_ns = 60 * SECOND;
    world_begin(&w, &c, 1);
    w.manual = true;
    struct trp_stage_spec s = world_stage("a", 1);
    world_submit(&w, &s, 1);
    g_assert_false(refuse_all(&w, &other));
    int64_t began = w.now;
    for (int i = 0; i < 5; i++) {
        world_time(&w, w.now + (SECOND << i));
        died.refused.text = i % 2 ? "executor 3 was killed" : "executor 4 was killed";
        g_assert_false(refuse_all(&w, &died));
    }
    world_time(&w, began + 63 * SECOND);
    died.refused.untried = true;
    g_assert_false(refuse_all(&w, &died));
    world_time(&w, w.now + 60 * SECOND);
    died.refused.untried = false;
    g_assert_true(refuse_all(&w, &died));
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ESYSTEM);
    g_assert_cmpstr(w.texts[0], ==, "executor 2 was lost; also: executor 4 was killed");
}

static const char *two_hosts(uint32_t executor)
{
    return executor % 2 ? "right" : "left";
}

TEST("tasks wait for their host and then go anywhere")
{
    WORLD w;
    start(&w, 2);
    w.host_of = two_hosts;
    struct trp_stage_spec s = {.name = "a"};
    struct trp_stage_spec warm = world_stage("warm", 2);
    world_submit(&w, &warm, 1);
    world_run_out(&w, SECOND);
    world_submit(&w, &s, 1);
    uint32_t first[] = {0, 1, 2};
    struct trp_place places[] = {
        {"left", TRP_NONE},
        {"left", TRP_NONE}
    };
    world_tasks(&w, 1, 2, first, places);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_cmpuint(world_attempt_at(&w, 0)->executor % 2, ==, 0);
    g_assert_cmpint(world_attempt_at(&w, 0)->level, ==, TRP_NODE_LOCAL);
    world_time(&w, w.now + 3 * SECOND - 1);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_time(&w, w.now + 2);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpint(world_attempt_at(&w, 1)->level, ==, TRP_ANY);
    world_run_out(&w, SECOND);
}

/* Tasks that wait for tasks of a parent, and prefer a host, wait for it from when they
 * are pending, though no executor comes or goes. */
TEST("tasks that were held wait for their host")
{
    WORLD w;
    start(&w, 2);
    w.host_of = two_hosts;
    struct trp_parent_spec each = {.stage = 0, .each = true};
    struct trp_stage_spec v[] = {world_stage("a", 3), {.name = "b"}};
    v[1].parents = &each;
    v[1].nparents = 1;
    world_submit(&w, v, 2);
    uint32_t first[] = {0, 1, 2, 3};
    struct trp_place places[] = {
        {"left", TRP_NONE},
        {"left", TRP_NONE},
        {"left", TRP_NONE}
    };
    world_tasks(&w, 1, 3, first, places);
    g_assert_cmpuint(w.nattempts, ==, 2);
    w.now += 10 * SECOND;
    uint32_t right = world_attempt_at(&w, 1)->executor % 2 ? 1 : 0;
    g_assert_cmpuint(right, ==, 1);
    world_end(&w, world_attempt_at(&w, 1)->id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, world_attempt_at(&w, 1)->id, TRP_END_SUCCESS, 0, SECOND);
    /* The slot that is free is on the other host. */
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_time(&w, w.now + 3 * SECOND - 1);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(world_attempt_at(&w, 0)->executor % 2, ==, 0);
    g_assert_cmpint(world_attempt_at(&w, 0)->level, ==, TRP_NODE_LOCAL);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a task cached on an executor goes there")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec warm = world_stage("warm", 2), s = {.name = "a"};
    world_submit(&w, &warm, 1);
    world_run_out(&w, SECOND);
    world_submit(&w, &s, 1);
    uint32_t first[] = {0, 1};
    struct trp_place place = {"h1", 1};
    world_tasks(&w, 1, 1, first, &place);
    g_assert_cmpuint(world_attempt_at(&w, 0)->executor, ==, 1);
    g_assert_cmpint(world_attempt_at(&w, 0)->level, ==, TRP_PROCESS_LOCAL);
    world_run_out(&w, SECOND);
}

TEST("addresses are given to one task at a time")
{
    WORLD w;
    struct trp_engine_config c = world_config(1);
    const char *addresses[] = {"0", "1"};
    struct trp_resource_addresses gpu = {"gpu", addresses, 2};
    world_init(&w, NULL);
    trp_profile_id p = world_profile(&w, "gpu", 8, "gpu", 2, TRP_ONE / 2);
    world_start(&w, &c);
    w.resources = &gpu;
    w.nresources = 1;
    struct trp_stage_spec s = world_stage("a", 9);
    s.profile = p;
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 4);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("a gang runs apart and is retried whole")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec v[] = {world_stage("a", 2), world_stage("g", 1)};
    struct trp_parent_spec p = {.stage = 0};
    v[1].kind = TRP_STAGE_GANG;
    v[1].ranks = 8;
    v[1].parents = &p;
    v[1].nparents = 1;
    world_submit(&w, v, 2);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.nlive, ==, 0); /* their room is the gang's */
    g_assert_true(world_attempt_at(&w, 0)->gang);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(world_attempt_at(&w, 0)->number, ==, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("short tasks are queued ahead and long ones are not")
{
    WORLD w;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 1;
    world_begin(&w, &c, 1);
    struct trp_stage_spec s = world_stage("a", 1000);
    world_submit(&w, &s, 1);
    g_assert_cmpuint(w.nattempts, ==, 1);
    for (int i = 0; i < 3; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    g_assert_cmpuint(w.nattempts, >, 100);
    world_run_out(&w, 1000);
    g_assert_cmpuint(w.nverdicts, ==, 1000);
    world_submit(&w, &s, 1);
    for (int i = 0; i < 50; i++) {
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, SECOND);
        g_assert_cmpuint(w.nattempts, ==, 1);
    }
}

TEST("what is queued is recalled when another could start it")
{
    WORLD w;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 2;
    world_begin(&w, &c, 1);
    struct trp_stage_spec s = world_stage("a", 400);
    world_submit(&w, &s, 1);
    uint32_t slow = world_attempt_at(&w, 0)->executor;
    /* Both look quick; then one stands still with its queue. */
    for (int i = 0; i < 6; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    bool recalled = false;
    for (guint i = 0; i < w.nattempts && !recalled;) {
        const struct world_attempt *a = world_attempt_at(&w, i);
        if (a->executor == slow || a->queued) {
            i++;
            continue;
        }
        world_end(&w, a->id, TRP_END_SUCCESS, 0, 1000);
        for (guint k = 0; k < w.nattempts; k++)
            recalled |= world_attempt_at(&w, k)->recall;
        i = 0;
    }
    g_assert_true(recalled);
    for (guint k = 0; k < w.nattempts; k++)
        if (world_attempt_at(&w, k)->recall) {
            uint32_t task = world_attempt_at(&w, k)->task;
            world_end(&w, world_attempt_at(&w, k)->id, TRP_END_RECALLED, 0, 0);
            const struct world_attempt *again = world_attempt_at(&w, w.nattempts - 1);
            g_assert_cmpuint(again->task, ==, task);
            g_assert_cmpuint(again->executor, !=, slow);
            g_assert_cmpuint(again->number, ==, 0); /* it had never begun */
            break;
        }
    world_run_out(&w, 1000);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("the last that is recalled is not queued there again")
{
    WORLD w;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 2;
    world_init(&w, NULL);
    w.manual = true;
    world_start(&w, &c);
    struct trp_stage_spec s = world_stage("a", 4);
    world_submit(&w, &s, 1);
    uint32_t first = w.asked[0];
    uint32_t second = w.asked[1];
    world_come(&w, first);
    while (w.nattempts < 2) /* one runs, one is queued behind it */
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    g_assert_true(world_attempt_at(&w, 1)->queued);
    world_come(&w, second);
    g_assert_true(world_attempt_at(&w, 1)->recall);
    world_end(&w, world_attempt_at(&w, 1)->id, TRP_END_RECALLED, 0, 0);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(world_attempt_at(&w, 1)->executor, ==, second);
    g_assert_false(world_attempt_at(&w, 1)->queued);
}

/* The recalled attempt begins before the recall comes to its executor: from then on it
 * is one like others, which can be killed. */
TEST("what began before its recall can be killed")
{
    WORLD w;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 2;
    world_init(&w, NULL);
    w.manual = true;
    world_start(&w, &c);
    struct trp_stage_spec s = world_stage("a", 4);
    world_submit(&w, &s, 1);
    uint32_t second = w.asked[1];
    world_come(&w, w.asked[0]);
    while (w.nattempts < 2)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    world_come(&w, second);
    g_assert_true(world_attempt_at(&w, 1)->recall);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    g_assert_cmpuint(w.nattempts, ==, 1);
    g_assert_false(world_attempt_at(&w, 0)->kill);
    world_tell(&w, TRP_EVENT_CANCEL_JOB);
    g_assert_true(world_attempt_at(&w, 0)->kill);
}

/* Ends what runs on an executor in front of the attempt `i`, which is queued there. */
static void end_in_front_of(struct world *w, guint i)
{
    for (guint k = 0; k < i; k++)
        if (world_attempt_at(w, k)->executor == world_attempt_at(w, i)->executor) {
            world_end(w, world_attempt_at(w, k)->id, TRP_END_SUCCESS, 0, 1000);
            return;
        }
    g_assert_not_reached();
}

static guint recalled(struct world *w, uint32_t executor)
{
    for (guint i = 0; i < w->nattempts; i++)
        if (world_attempt_at(w, i)->recall &&
            world_attempt_at(w, i)->executor == executor)
            return i;
    return UINT_MAX;
}

/* Two executors have queues, a third is free: it gets what is queued, even though the
 * first recall comes too late. */
TEST("a recall that comes too late is followed by another")
{
    WORLD w;
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 3;
    world_init(&w, NULL);
    w.manual = true;
    world_start(&w, &c);
    struct trp_stage_spec s = world_stage("a", 8);
    world_submit(&w, &s, 1);
    uint32_t x[3];
    memcpy(x, w.asked, sizeof x);
    world_come(&w, x[0]);
    for (int i = 0; i < 2; i++)
        world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_SUCCESS, 0, 1000);
    world_come(&w, x[1]);
    g_assert_cmpuint(w.nattempts, ==, 6); /* two run, three and one are queued */
    world_come(&w, x[2]);
    guint i = recalled(&w, x[0]);
    if (i != UINT_MAX) { /* that one is given back, and ends: the other's turn */
        world_end(&w, world_attempt_at(&w, i)->id, TRP_END_RECALLED, 0, 0);
        g_assert_cmpuint(world_attempt_at(&w, w.nattempts - 1)->executor, ==, x[2]);
        world_end(&w, world_attempt_at(&w, w.nattempts - 1)->id, TRP_END_SUCCESS, 0,
                  1000);
    }
    i = recalled(&w, x[1]);
    g_assert_cmpuint(i, <, UINT_MAX);
    g_assert_cmpuint(recalled(&w, x[0]), ==, UINT_MAX);
    end_in_front_of(&w, i);
    i = recalled(&w, x[0]);
    g_assert_cmpuint(i, <, UINT_MAX);
    world_end(&w, world_attempt_at(&w, i)->id, TRP_END_RECALLED, 0, 0);
    g_assert_cmpuint(world_attempt_at(&w, w.nattempts - 1)->executor, ==, x[2]);
}

TEST("a task killed for memory runs again with more")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec s = world_stage("a", 3);
    s.memory_factor_ppm = 1500000;
    world_submit(&w, &s, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_MEMORY, 9, SECOND);
    const struct trp_resource_profile *p =
        trp_profiles_by_name(w.profiles, "default.memory1");
    g_assert_nonnull(p);
    g_assert_cmpint(p->memory_mib, ==, 1536);
    g_assert_cmpuint(p->slots, ==, 1);
    trp_stage_id a = {trp_engine_stages(w.engine) - 1};
    g_assert_cmpuint(trp_engine_task_profile(w.engine, a, 0).n, ==, p->id.n);
    g_assert_cmpuint(trp_engine_task_profile(w.engine, a, 1).n, ==, 0);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_cmpuint(w.nverdicts, ==, 4);
    /* Twice, and then no machine has so much. */
    world_submit(&w, &s, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_MEMORY, 9, SECOND);
    trp_profile_id last = {trp_profiles_count(w.profiles) - 1};
    world_tell(&w, TRP_EVENT_PROFILE_FIT,
               .fit = {.profile = last, .text = "memory: wanted too much"});
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_ENEVER);
    world_run_out(&w, SECOND);
}

TEST("what a profile says of further memory stays")
{
    struct trp_engine_config c = world_config(2);
    struct trp_stage_spec s = world_stage("a", 1);
    struct trp_profile_builder b;
    WORLD w;
    trp_error err;
    world_init(&w, NULL);
    trp_profile_builder_init(&b, "p");
    g_assert_cmpint(trp_profile_builder_executor(&b, "memory", 1000, &err), ==, 0);
    g_assert_cmpint(trp_profile_builder_executor(&b, "memoryOverhead", 100, &err), ==,
                    0);
    g_assert_cmpint(trp_profile_builder_executor(&b, "offHeap", 10, &err), ==, 0);
    g_assert_cmpint(trp_profile_builder_executor(&b, "pyspark.memory", 4000, &err), ==,
                    0);
    g_assert_cmpint(trp_profiles_add(w.profiles, &b, &s.profile, &err), ==, 0);
    world_start(&w, &c);
    s.memory_factor_ppm = 2000000;
    world_submit(&w, &s, 1);
    world_end(&w, world_attempt_at(&w, 0)->id, TRP_END_MEMORY, 9, SECOND);
    g_assert_cmpint(trp_profiles_by_name(w.profiles, "p.memory1")->total_mib, ==,
                    2000 + 200 + 10 + 4000);
    world_run_out(&w, SECOND);
}

TEST("draining lets running tasks finish")
{
    WORLD w;
    start(&w, 2);
    struct trp_stage_spec s = world_stage("a", 8);
    world_submit(&w, &s, 1);
    world_tell(&w, TRP_EVENT_DRAIN);
    g_assert_cmpuint(w.job_ends, ==, 0);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 2);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_CANCELLED);
}

TEST("draining withdraws what was asked for")
{
    WORLD w;
    start(&w, 3);
    w.manual = true;
    struct trp_stage_spec s = world_stage("a", 3);
    world_submit(&w, &s, 1);
    world_come(&w, w.asked[0]);
    world_tell(&w, TRP_EVENT_DRAIN);
    g_assert_cmpuint(w.releases, ==, 2);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_run_out(&w, SECOND);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_CANCELLED);
}

TEST("stale events are ignored")
{
    WORLD w;
    start(&w, 1);
    struct trp_stage_spec s = world_stage("a", 2);
    world_submit(&w, &s, 1);
    trp_attempt_id id = world_attempt_at(&w, 0)->id;
    world_end(&w, id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, id, TRP_END_SUCCESS, 0, SECOND);
    world_end(&w, (trp_attempt_id){UINT64_MAX}, TRP_END_SUCCESS, 0, SECOND);
    world_tell(&w, TRP_EVENT_EXECUTOR_LOST, .lost = {.executor = {77}});
    struct trp_engine_counts counts;
    trp_engine_counts(w.engine, &counts);
    g_assert_cmpuint(counts.ignored_events, ==, 3);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, 2);
}

TEST("a task costs at most 128 bytes")
{
    enum { N = 100000 };
    WORLD w;
    start(&w, 4);
    w.unchecked = true;
    struct trp_stage_spec s = {.name = "a"};
    world_submit(&w, &s, 1);
    g_autofree uint32_t *first = g_new(uint32_t, N + 1);
    struct trp_place *places = g_new(struct trp_place, N);
    for (uint32_t i = 0; i < N; i++) {
        first[i] = i;
        char host[16];
        g_snprintf(host, sizeof host, "h%u", i % 100);
        places[i] = (struct trp_place){g_intern_string(host), TRP_NONE};
    }
    first[N] = N;
    world_tasks(&w, 0, N, first, places);
    struct trp_engine_counts counts;
    trp_engine_counts(w.engine, &counts);
    g_assert_cmpuint(counts.bytes_per_task, <=, 128);
    g_free(places);
}

/* ---- what a step costs ---- */

static struct {
    uint64_t visits, actions, most;
} step_costs;

/* Beyond a few, a step visits what it does something about. */
static void note_cost(struct world *w)
{
    struct trp_engine_counts n;
    trp_engine_counts(w->engine, &n);
    uint64_t visits = n.visits - step_costs.visits,
             actions = w->actions - step_costs.actions;
    visits = visits > 4 * actions ? visits - 4 * actions : 0;
    step_costs.most = visits > step_costs.most ? visits : step_costs.most;
    step_costs.visits = n.visits;
    step_costs.actions = w->actions;
}

static void serve_one(struct world *w)
{
    uint32_t n = w->asked[0];
    world_unask(w, 0);
    if (n & WORLD_GOES)
        world_lose(w, n & ~WORLD_GOES, TRP_LOSS_RELEASED);
    else
        world_come(w, n);
}

/* Executors come and go one by one, so that some are idle while others of their profile
 * work, and requests wait: half of them for a room that is elsewhere. */
TEST("a step visits few of many executors, sets and stages")
{
    enum { TASKS = 1200, EXECUTORS = 400, SINGLE = 600, STAGES = 2 * SINGLE + 3 };
    static const struct world_hooks hooks = {.stepped = note_cost};
    struct trp_engine_config c = world_config(EXECUTORS);
    struct trp_parent_spec each = {.stage = 0, .each = true}, after = {.stage = 1};
    struct trp_stage_spec *v = g_new0(struct trp_stage_spec, STAGES);
    WORLD w;
    world_init(&w, NULL);
    trp_profile_id wide = world_profile(&w, "wide", 2, NULL, 0, 0),
                   wider = world_profile(&w, "wider", 3, NULL, 0, 0);
    world_start(&w, &c);
    for (uint32_t i = 0; i < 3; i++)
        world_tell(&w, TRP_EVENT_PROFILE_FIT,
                   .fit = {.profile = {i == 0   ? 0
                                       : i == 1 ? wide.n
                                                : wider.n},
                           .executors = EXECUTORS,
                           .additional = EXECUTORS / 2,
                           .more = true});
    v[0] = world_stage("a", TASKS);
    v[1] = world_stage("b", TASKS);
    v[2] = world_stage("c", EXECUTORS);
    v[1].profile = wide;
    v[1].parents = &each;
    v[1].nparents = 1;
    v[2].profile = wider;
    v[2].parents = &after;
    v[2].nparents = 1;
    struct trp_parent_spec *before = g_new0(struct trp_parent_spec, STAGES);
    for (uint32_t i = 3; i < STAGES; i++) {
        v[i] = world_stage("s", 1);
        before[i].stage = i - SINGLE;
        v[i].parents = &before[i];
        v[i].nparents = i >= SINGLE + 3;
    }
    w.unchecked = true;
    w.manual = true;
    world_submit(&w, v, STAGES);
    note_cost(&w);
    step_costs.most = 0;
    w.hooks = &hooks;
    for (uint32_t n = 0; !w.job_ends; n++) {
        world_time(&w, w.now + 5 * MS);
        if (w.nasked && (n % 4 == 0 || !w.nattempts))
            serve_one(&w);
        if (w.nattempts > EXECUTORS / 4 || !w.nasked)
            world_end(&w, w.attempts[n % 7 % w.nattempts].id, TRP_END_SUCCESS, 0,
                      2 * SECOND);
    }
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_assert_cmpuint(step_costs.most, <=, 64);
    g_free(before);
    g_free(v);
}

/* ---- chains of tasks ---- */

enum { DL = 6 }; /* the first executor of the profile dl */

/* Stage a has room for one executor of the six that it wants; s takes its tasks one by
 * one, on executors that have to come from elsewhere. u is of the profile of s. */
static void begin_chain(struct world *w, bool with_u)
{
    struct trp_engine_config c = world_config(UINT32_MAX);
    struct trp_parent_spec each = {.stage = 0, .each = true};
    world_init(w, NULL);
    struct trp_stage_spec v[] = {world_stage("a", 6), world_stage("s", 6),
                                 world_stage("u", 1)};
    v[1].profile = v[2].profile = world_profile(w, "dl", 2, NULL, 0, 0);
    v[1].parents = &each;
    v[1].nparents = 1;
    world_start(w, &c);
    w->manual = true;
    world_submit(w, v, with_u ? 3 : 2);
    world_time(w, 300 * MS);
    world_come(w, 0);
}

/* The first task of a ends, and the one of s that waited for it runs elsewhere. */
static void end_link(struct world *w)
{
    world_time(w, 1300 * MS);
    world_end(w, w->attempts[0].id, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w->nasked, ==, 7);
    world_time(w, 1600 * MS);
    world_come(w, DL);
    world_time(w, 1700 * MS);
    world_end(w, world_attempt_at(w, 1)->id, TRP_END_SUCCESS, 0, 100 * MS);
}

TEST("an executor of a chain stays while a task before it is about to end")
{
    struct world w;
    begin_chain(&w, false);
    end_link(&w); /* the next one ends in 600 ms, another executor comes in 300 */
    g_assert_cmpint(w.executors[DL].state, ==, WORLD_RELEASED);
    world_free(&w);
    begin_chain(&w, false);
    world_tell(&w, TRP_EVENT_QUEUE_WAIT,
               .queue_wait = {.profile = {1}, .wait_ns = SECOND});
    end_link(&w);
    world_time(&w, 2200 * MS);
    g_assert_cmpint(w.executors[DL].state, ==, WORLD_LIVE);
    world_time(&w, 10 * SECOND); /* later than usual: it may end at any time … */
    g_assert_cmpint(w.executors[DL].state, ==, WORLD_LIVE);
    world_time(&w, 100 * SECOND); /* … but nobody waits for ever */
    g_assert_cmpint(w.executors[DL].state, ==, WORLD_RELEASED);
    world_free(&w);
}

TEST("an executor of a chain stays while nothing is known of the task before it")
{
    WORLD w;
    begin_chain(&w, true);
    world_come(&w, DL);
    world_end(&w, world_attempt_at(&w, 1)->id, TRP_END_SUCCESS, 0, 100 * MS);
    world_time(&w, 59 * SECOND);
    g_assert_cmpint(w.executors[DL].state, ==, WORLD_LIVE);
    world_time(&w, 61 * SECOND);
    g_assert_cmpint(w.executors[DL].state, ==, WORLD_RELEASED);
}
