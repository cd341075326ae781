/* Tasks that are given up, and what comes after them: tolerate, keep_going, after … each and by;
 * stages that are checked, and such that may run nowhere.
 */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

static void start(struct world *w, bool keep_going)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 1;
    c.queue_ahead_ns = 0;
    c.max_failures = 1;
    c.keep_going = keep_going;
    world_init(w, NULL);
    world_start(w, &c);
}

static struct trp_stage_spec stage(const char *name, uint32_t ntasks,
                                   const struct trp_parent_spec *parents, uint32_t n)
{
    return (struct trp_stage_spec){.name = name,
                                   .tasks_known = true,
                                   .ntasks = ntasks,
                                   .parents = parents,
                                   .nparents = n};
}

static bool is_of(const struct world_attempt *a, uint32_t stage, uint32_t task)
{
    return a->stage.n == stage && a->task == task;
}

/* Runs everything; task `task` of stage `bad` fails. Which tasks succeeded, a bit each,
 * by stage. */
static void run_out(struct world *w, uint32_t bad, uint32_t task, uint32_t succeeded[8])
{
    memset(succeeded, 0, 8 * sizeof(*succeeded));
    while (w->nattempts) {
        struct world_attempt a = w->attempts[0];
        bool fails = is_of(&a, bad, task);
        w->now += SECOND;
        if (a.kill)
            world_end(w, a.id, TRP_END_KILLED, 0, SECOND);
        else
            world_end(w, a.id, fails ? TRP_END_EXIT : TRP_END_SUCCESS, fails, SECOND);
        if (!fails && !a.kill)
            succeeded[a.stage.n] |= 1u << a.task;
    }
}

static void is_given_up(const struct world *w, guint i, uint32_t stage, uint32_t task,
                        uint32_t parent)
{
    g_assert_cmpuint(i, <, w->ngiven_up);
    const struct trp_action *a = &w->given_up[i];
    g_assert_cmpuint(a->given_up.stage.n, ==, stage);
    g_assert_cmpuint(a->given_up.task, ==, task);
    g_assert_cmpuint(a->given_up.parent.n, ==, parent);
}

/* The end of a stage; its text must begin so. */
static void ended(const struct world *w, uint32_t stage, enum trp_outcome outcome,
                  const char *text)
{
    for (guint i = 0; i < w->nended; i++) {
        const struct trp_action *a = &w->ended[i];
        if (a->stage_ended.stage.n != stage)
            continue;
        g_assert_cmpint(a->stage_ended.outcome, ==, outcome);
        if (!g_str_has_prefix(w->texts[i], text))
            g_error("stage %u: %s", stage, (char *)w->texts[i]);
        return;
    }
    g_error("stage %u has not ended", stage);
}

static const struct trp_parent_spec each_of_0 = {.stage = 0, .each = true},
                                    each_of_1 = {.stage = 1, .each = true},
                                    all_of_0 = {.stage = 0}, all_of_2 = {.stage = 2};

TEST("a bad task costs its own chain only")
{
    WORLD w;
    uint32_t ran[8];
    start(&w, true);
    struct trp_stage_spec v[] = {
        stage("a", 4, NULL, 0),       stage("b", 4, &each_of_0, 1),
        stage("c", 4, &each_of_1, 1), stage("d", 1, &all_of_2, 1),
        stage("e", 1, &all_of_0, 1),
    };
    world_submit(&w, v, 5);
    run_out(&w, 0, 1, ran);
    g_assert_cmpuint(ran[0], ==, 0xd);
    g_assert_cmpuint(ran[1], ==, 0xd);
    g_assert_cmpuint(ran[2], ==, 0xd);
    g_assert_cmpuint(ran[3] | ran[4], ==, 0);
    g_assert_cmpuint(w.ngiven_up, ==, 3);
    is_given_up(&w, 0, 0, 1, TRP_NONE);
    is_given_up(&w, 1, 1, 1, 0);
    is_given_up(&w, 2, 2, 1, 1);
    ended(&w, 0, TRP_OUTCOME_FAILED, "task 1 failed once");
    ended(&w, 1, TRP_OUTCOME_FAILED, "1 of its 4 tasks was skipped");
    ended(&w, 2, TRP_OUTCOME_FAILED, "1 of its 4 tasks was skipped");
    ended(&w, 3, TRP_OUTCOME_SKIPPED, "stage c did not succeed");
    ended(&w, 4, TRP_OUTCOME_SKIPPED, "stage a did not succeed");
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_cmpint(w.job_end.job_ended.code, ==, TRP_EFAILED);
}

/* `tolerate` stands once in a chain: what is skipped below uses up nothing of its own
 * stage's. With one more than its root tolerates the skips count. */
TEST("what is skipped is tolerated where the chain began")
{
    for (int how = 0; how < 4; how++) {
        WORLD w;
        uint32_t ran[8];
        bool keep_going = how & 1, too_many = how & 2;
        start(&w, keep_going);
        struct trp_stage_spec v[] = {
            stage("a", 4, NULL, 0), stage("b", 4, &each_of_0, 1),
            stage("c", 4, &each_of_1, 1), stage("d", 1, &all_of_2, 1)};
        v[0].tolerate = 1;
        world_submit(&w, v, 4);
        if (too_many)
            world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
        run_out(&w, 0, 1, ran);
        if (!too_many) {
            g_assert_cmpuint(w.ngiven_up, ==, 3);
            g_assert_cmpuint(ran[2], ==, 0xd);
            g_assert_cmpuint(ran[3], ==, 1);
            g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
            continue;
        }
        ended(&w, 0, TRP_OUTCOME_FAILED,
              keep_going ? "2 of its 4 tasks were given up" : "task 1 failed once");
        g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
        g_assert_cmpuint(ran[3], ==, 0);
        if (keep_going)
            ended(&w, 2, TRP_OUTCOME_FAILED, "2 of its 4 tasks were skipped: what");
    }
}

/* Failures of its own are counted without them. */
TEST("a stage's own failures are counted without what is skipped")
{
    WORLD w;
    uint32_t ran[8];
    start(&w, false);
    struct trp_stage_spec v[] = {stage("a", 4, NULL, 0), stage("b", 4, &each_of_0, 1)};
    v[0].tolerate = v[1].tolerate = 1;
    world_submit(&w, v, 2);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    run_out(&w, 1, 2, ran);
    g_assert_cmpuint(ran[1], ==, 0xa);
    ended(&w, 1, TRP_OUTCOME_SUCCEEDED, "");
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
}

TEST("with keep going a stage fails when its other tasks are over")
{
    WORLD w;
    uint32_t ran[8];
    start(&w, true);
    struct trp_stage_spec v[] = {stage("a", 4, NULL, 0), stage("b", 4, &each_of_0, 1)};
    v[0].tolerate = v[1].tolerate = 1;
    world_submit(&w, v, 2);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    run_out(&w, 0, 3, ran);
    g_assert_cmpuint(ran[0], ==, 6);
    g_assert_cmpuint(ran[1], ==, 6);
    ended(&w, 0, TRP_OUTCOME_FAILED, "2 of its 4 tasks were given up");
    ended(&w, 1, TRP_OUTCOME_FAILED, "2 of its 4 tasks were skipped");
}

/* It has to wait for another stage as well; its tasks are asked for when that is over. */
TEST("a child that begins later hears of what was given up")
{
    static const struct trp_parent_spec both[] = {
        {.stage = 0, .each = true},
        {.stage = 1         },
    };
    WORLD w;
    uint32_t ran[8];
    start(&w, true);
    struct trp_stage_spec v[] = {stage("a", 3, NULL, 0), stage("x", 1, NULL, 0),
                                 stage("b", 3, both, 2)};
    v[2].tasks_known = false;
    world_submit(&w, v, 3);
    run_out(&w, 0, 2, ran);
    ended(&w, 0, TRP_OUTCOME_FAILED, "task 2 failed once");
    g_assert_cmpuint(w.nready, ==, 1);
    g_assert_cmpuint(w.ngiven_up, ==, 1);
    world_tasks(&w, 2, 3, NULL, NULL);
    g_assert_cmpuint(w.ngiven_up, ==, 2);
    is_given_up(&w, 1, 2, 2, 0);
    run_out(&w, TRP_NONE, 0, ran);
    g_assert_cmpuint(ran[2], ==, 3);
    ended(&w, 2, TRP_OUTCOME_FAILED, "1 of its 3 tasks was skipped");
    g_assert_cmpuint(w.job_ends, ==, 1);
}

/* Of a gang, nothing of which has run, nothing is left for the child. */
TEST("all is skipped after a gang that failed")
{
    WORLD w;
    uint32_t ran[8];
    start(&w, true);
    struct trp_stage_spec v[] = {stage("a", 1, NULL, 0), stage("b", 1, &each_of_0, 1)};
    v[0].kind = TRP_STAGE_GANG;
    v[0].ranks = 2;
    world_submit(&w, v, 2);
    run_out(&w, 0, 0, ran);
    is_given_up(&w, 1, 1, 0, 0);
    g_assert_cmpuint(w.job_ends, ==, 1);
}

/* Barrier stages need all their tasks. */
TEST("a barrier stage does not run with less")
{
    WORLD w;
    uint32_t ran[8];
    start(&w, true);
    struct trp_stage_spec v[] = {stage("a", 2, NULL, 0), stage("b", 2, &each_of_0, 1)};
    v[1].barrier = true;
    world_submit(&w, v, 2);
    run_out(&w, 0, 0, ran);
    g_assert_cmpuint(ran[0], ==, 2);
    g_assert_cmpuint(ran[1], ==, 0);
    ended(&w, 1, TRP_OUTCOME_FAILED, "");
    g_assert_cmpuint(w.job_ends, ==, 1);
}

TEST("a long chain is skipped without recursion")
{
    enum { N = 10000 };
    WORLD w;
    start(&w, true);
    w.unchecked = true;
    struct trp_stage_spec *v = g_new0(struct trp_stage_spec, N);
    struct trp_parent_spec *p = g_new0(struct trp_parent_spec, N);
    for (uint32_t i = 0; i < N; i++) {
        p[i] = (struct trp_parent_spec){.stage = i - 1, .each = true};
        v[i] = stage("s", 2, &p[i], i > 0);
    }
    world_submit(&w, v, N);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.ngiven_up, ==, N);
    is_given_up(&w, N - 1, N - 1, 0, N - 2);
    world_run_out(&w, SECOND);
    g_assert_cmpuint(w.nverdicts, ==, N + 1);
    g_assert_cmpuint(w.job_ends, ==, 1);
    g_free(v);
    g_free(p);
}

/* What was done in an earlier run is not skipped. */
TEST("what is done is not skipped")
{
    static const uint8_t done[] = {1, 0};
    WORLD w;
    uint32_t ran[8];
    start(&w, true);
    struct trp_stage_spec v[] = {stage("a", 2, NULL, 0), stage("b", 2, &each_of_0, 1)};
    v[1].tasks_known = false;
    world_submit(&w, v, 2);
    world_tell(&w, TRP_EVENT_STAGE_TASKS,
               .tasks = {.stage = {1}, .ntasks = 2, .done = done});
    run_out(&w, 0, 0, ran);
    g_assert_cmpuint(w.ngiven_up, ==, 1);
    ended(&w, 1, TRP_OUTCOME_SUCCEEDED, "");
}

/* ---- by a value ---- */

/* Four lanes, of samples 0, 1, 0, and of both; a fifth that nobody needs. */
static const struct trp_by_task lanes[] = {
    {0, 0},
    {1, 1},
    {2, 0},
    {3, 0},
    {3, 1}
};
static const struct trp_parent_spec by_of_0 = {.stage = 0, .each = true, .by = true},
                                    by_of_1 = {.stage = 1, .each = true, .by = true};

static void tell_tasks(struct world *w, uint32_t stage, const struct trp_by *by)
{
    world_tell(w, TRP_EVENT_STAGE_TASKS,
               .tasks = {.stage = {stage}, .ntasks = by->ntasks, .by = by, .nby = 1});
}

/* Lanes, samples (the second twice), and a cohort of all of them. */
static void start_lanes(struct world *w, bool keep_going)
{
    static const uint32_t samples[] = {0, 1, 1}, cohort[] = {0};
    static const struct trp_by_task all[] = {
        {0, 0},
        {1, 0},
        {2, 0}
    };
    start(w, keep_going);
    struct trp_stage_spec v[] = {stage("lane", 5, NULL, 0),
                                 stage("sample", 3, &by_of_0, 1),
                                 stage("cohort", 1, &by_of_1, 1)};
    v[1].tasks_known = v[2].tasks_known = false;
    v[0].tolerate = 1;
    world_submit(w, v, 3);
    tell_tasks(w, 1, &(struct trp_by){2, samples, 3, lanes, 5});
    tell_tasks(w, 2, &(struct trp_by){1, cohort, 1, all, 3});
}

static void finish(struct world *w, uint32_t stage, uint32_t task, bool fails)
{
    for (uint32_t i = 0; i < w->nattempts; i++)
        if (is_of(&w->attempts[i], stage, task)) {
            world_end(w, w->attempts[i].id, fails ? TRP_END_EXIT : TRP_END_SUCCESS,
                      fails, SECOND);
            return;
        }
    g_error("task %u of stage %u does not run", task, stage);
}

TEST("a task by a value begins when all that have it are done")
{
    WORLD w;
    start_lanes(&w, false);
    for (uint32_t lane = 0; lane < 4; lane++) {
        g_assert_cmpuint(w.nattempts, ==, 1); /* one core: the next lane */
        finish(&w, 0, lane, false);
    }
    g_assert_true(is_of(&w.attempts[0], 0, 4) || is_of(&w.attempts[0], 1, 0));
    uint32_t ran[8];
    run_out(&w, 9, 0, ran);
    g_assert_cmpuint(ran[1], ==, 7);
    g_assert_cmpuint(ran[2], ==, 1);
    ended(&w, 2, TRP_OUTCOME_SUCCEEDED, "");
}

TEST("one that was given up skips whom it has a value in common with, once")
{
    WORLD w;
    uint32_t ran[8];
    start_lanes(&w, false);
    run_out(&w, 0, 1, ran);
    g_assert_cmpuint(ran[0], ==, 0x1d);
    g_assert_cmpuint(ran[1], ==, 1); /* of sample 0; both of sample 1 are skipped */
    g_assert_cmpuint(ran[2], ==, 0);
    g_assert_cmpuint(w.ngiven_up, ==, 4);
    is_given_up(&w, 1, 1, 1, 0);
    is_given_up(&w, 2, 1, 2, 0);
    is_given_up(&w, 3, 2, 0, 1);
    g_assert_cmpuint(w.given_up[2].given_up.parent_task, ==, 1);
    g_assert_cmpuint(w.given_up[3].given_up.parent_task, ==, 1);
    ended(&w, 1, TRP_OUTCOME_SUCCEEDED, ""); /* tolerated where it began */
    ended(&w, 2, TRP_OUTCOME_SUCCEEDED, "");
}

TEST("two that were given up skip a task once, and count where they began")
{
    WORLD w;
    uint32_t ran[8];
    start_lanes(&w, true);
    finish(&w, 0, 0, true);
    run_out(&w, 0, 3, ran);
    g_assert_cmpuint(ran[1] | ran[2], ==, 0);
    g_assert_cmpuint(w.ngiven_up, ==, 6);
    ended(&w, 0, TRP_OUTCOME_FAILED, "2 of its 5 tasks were given up");
    ended(&w, 1, TRP_OUTCOME_FAILED, "3 of its 3 tasks were skipped");
    ended(&w, 2, TRP_OUTCOME_FAILED, "1 of its 1 tasks was skipped");
}

TEST("what is told wrongly of values fails the stage")
{
    static const uint32_t samples[] = {0, 2, 1};
    static const struct trp_by_task none[] = {
        {5, 0}
    };
    static const struct trp_by wrong[] = {
        {2, samples, 3, lanes, 5},
        {3, samples, 3, none,  1},
        {3, samples, 2, lanes, 5}
    };
    for (size_t i = 0; i < 4; i++) {
        WORLD w;
        start(&w, true);
        struct trp_stage_spec v[] = {stage("lane", 5, NULL, 0),
                                     stage("sample", 3, &by_of_0, 1)};
        v[1].tasks_known = false;
        world_submit(&w, v, 2);
        world_tell(&w, TRP_EVENT_STAGE_TASKS,
                   .tasks = {.stage = {1},
                             .ntasks = 3,
                             .by = i < 3 ? &wrong[i] : NULL,
                             .nby = i < 3});
        ended(&w, 1, TRP_OUTCOME_FAILED, "it is ");
    }
}

static void checked(struct world *w, uint32_t stage, const char *text)
{
    world_tell(w, TRP_EVENT_STAGE_CHECKED, .checked = {.stage = {stage}, .text = text});
}

/* Its `each` child has begun by then; what waits for all of it has not. */
TEST("a stage that is checked ends when it was")
{
    for (int good = 0; good < 2; good++) {
        WORLD w;
        uint32_t ran[8];
        start(&w, true);
        struct trp_stage_spec v[] = {
            stage("a", 2, NULL, 0), stage("b", 2, &each_of_0, 1),
            stage("c", 1, &all_of_0, 1), stage("e", 0, NULL, 0)};
        v[0].checked = v[3].checked = true;
        world_submit(&w, v, 4);
        checked(&w, 0, "too early"); /* it was not asked */
        run_out(&w, 9, 0, ran);
        ended(&w, 3, TRP_OUTCOME_SUCCEEDED, ""); /* an empty one */
        g_assert_cmpuint(w.checks_asked, ==, 1);
        g_assert_cmpuint(ran[1], ==, 3);
        g_assert_cmpuint(ran[2], ==, 0);
        char why[100];
        trp_engine_why_waiting(w.engine, w.now, (trp_stage_id){0}, why, sizeof(why));
        g_assert_nonnull(strstr(why, "its outputs are looked for"));
        checked(&w, 0, good ? NULL : "output x was not made");
        checked(&w, 0, NULL);
        run_out(&w, 9, 0, ran);
        ended(&w, 0, good ? TRP_OUTCOME_SUCCEEDED : TRP_OUTCOME_FAILED,
              good ? "" : "output x was not made");
        ended(&w, 1, TRP_OUTCOME_SUCCEEDED, "");
        ended(&w, 2, good ? TRP_OUTCOME_SUCCEEDED : TRP_OUTCOME_SKIPPED, "");
        g_assert_cmpint(w.job_end.job_ended.outcome, ==,
                        good ? TRP_OUTCOME_SUCCEEDED : TRP_OUTCOME_FAILED);
    }
}

TEST("a run that ends does not wait for a check")
{
    WORLD w;
    uint32_t ran[8];
    start(&w, false);
    struct trp_stage_spec v[] = {stage("a", 2, NULL, 0)};
    v[0].checked = true;
    world_submit(&w, v, 1);
    run_out(&w, 9, 0, ran);
    world_step(&w, &(struct trp_event){.kind = TRP_EVENT_DRAIN});
    ended(&w, 0, TRP_OUTCOME_CANCELLED, "");
    checked(&w, 0, NULL);
}

/* Two executors of one core: tasks 0 and 1 of stage a run, then one of them and b's. */
static void start_draining(struct world *w)
{
    struct trp_engine_config c;
    trp_options_engine_config(NULL, &c);
    c.max_executors = 3;
    c.max_failures = 2;
    world_init(w, NULL);
    world_start(w, &c);
    w->job_drains = true;
}

static trp_attempt_id attempt_of(const struct world *w, uint32_t stage, uint32_t task)
{
    for (guint i = 0; i < w->nattempts; i++)
        if (is_of(&w->attempts[i], stage, task))
            return w->attempts[i].id;
    g_error("task %u of stage %u does not run", task, stage);
}

static uint32_t kills(const struct world *w)
{
    uint32_t n = 0;
    for (guint i = 0; i < w->nattempts; i++)
        n += w->attempts[i].kill;
    return n;
}

/* Nothing new is started, nothing that runs is killed: not of another stage either. */
TEST("in a job that drains what runs goes on when a stage gives up")
{
    WORLD w;
    uint32_t ran[8];
    start_draining(&w);
    struct trp_stage_spec v[] = {stage("a", 4, NULL, 0), stage("b", 1, NULL, 0),
                                 stage("c", 4, &each_of_0, 1),
                                 stage("d", 1, &all_of_0, 1)};
    v[0].max_failures = 1;
    v[0].max_running = 2;
    world_submit(&w, v, 4);
    trp_attempt_id last = attempt_of(&w, 1, 0);
    world_end(&w, attempt_of(&w, 0, 0), TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.drains, ==, 1);
    g_assert_cmpuint(w.nattempts, ==, 2);
    g_assert_cmpuint(w.releases, ==, 1); /* its executor is given back at once */
    g_assert_cmpuint(w.nended, ==, 0);
    world_end(&w, attempt_of(&w, 0, 1), TRP_END_SUCCESS, 0, SECOND);
    ended(&w, 0, TRP_OUTCOME_FAILED, "task 0 failed once");
    g_assert_cmpuint(w.job_ends, ==, 0);
    /* One that may fail twice is not tried again now. */
    world_end(&w, last, TRP_END_EXIT, 1, SECOND);
    g_assert_false(w.verdicts[w.nverdicts - 1].task_end.retried);
    ended(&w, 1, TRP_OUTCOME_CANCELLED, "");
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    g_assert_cmpuint(w.job_end.job_ended.stage.n, ==, 0);
    run_out(&w, 9, 0, ran);
    g_assert_cmpuint(ran[2] | ran[3], ==, 0);
}

TEST("a draining job counts what else is given up, and waits for outputs that it asked "
     "for")
{
    WORLD w;
    start_draining(&w);
    struct trp_stage_spec v[] = {stage("a", 3, NULL, 0), stage("b", 1, NULL, 0)};
    v[0].max_failures = 1;
    v[0].max_running = 2;
    v[1].checked = true;
    world_submit(&w, v, 2);
    trp_attempt_id other = attempt_of(&w, 0, 1), checks = attempt_of(&w, 1, 0);
    world_end(&w, attempt_of(&w, 0, 0), TRP_END_EXIT, 1, SECOND);
    world_end(&w, other, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w.ngiven_up, ==, 2);
    ended(&w, 0, TRP_OUTCOME_FAILED, "2 of its 3 tasks were given up");
    world_end(&w, checks, TRP_END_SUCCESS, 0, SECOND);
    g_assert_cmpuint(w.job_ends, ==, 0);
    checked(&w, 1, NULL);
    ended(&w, 1, TRP_OUTCOME_SUCCEEDED, "");
    g_assert_cmpuint(w.job_ends, ==, 1);
}

TEST("a draining job kills what is left of a barrier set, and all when it is cancelled")
{
    WORLD w;
    uint32_t ran[8];
    start_draining(&w);
    struct trp_stage_spec v[] = {stage("a", 1, NULL, 0), stage("b", 2, NULL, 0)};
    v[0].max_failures = 1;
    v[1].barrier = true;
    world_submit(&w, v, 2);
    world_end(&w, attempt_of(&w, 0, 0), TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(kills(&w), ==, 0);
    world_end(&w, attempt_of(&w, 1, 0), TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(kills(&w), ==, 1);
    ended(&w, 1, TRP_OUTCOME_FAILED, "task 0 of barrier stage b");
    run_out(&w, 9, 0, ran);
    g_assert_cmpuint(w.job_ends, ==, 1);

    WORLD x;
    start_draining(&x);
    v[1].barrier = false;
    world_submit(&x, v, 2);
    world_end(&x, attempt_of(&x, 0, 0), TRP_END_EXIT, 1, SECOND);
    world_tell(&x, TRP_EVENT_CANCEL_JOB, .cancel = {.job = {0}});
    g_assert_cmpuint(kills(&x), ==, 2);
    g_assert_cmpint(x.job_end.job_ended.outcome, ==, TRP_OUTCOME_FAILED);
    run_out(&x, 9, 0, ran);
}

static const char *on_one_host(uint32_t executor)
{
    (void)executor;
    return "h";
}

/* Its only executor is excluded for its task, and let go for another. */
static void start_excluded(struct world *w)
{
    struct trp_engine_config c;
    struct trp_stage_spec s = stage("a", 1, NULL, 0);
    trp_options_engine_config(NULL, &c);
    c.max_executors = 1;
    c.queue_ahead_ns = 0;
    c.exclusion.enabled = true;
    world_init(w, NULL);
    world_start(w, &c);
    w->manual = true;
    w->host_of = on_one_host;
    world_submit(w, &s, 1);
    world_come(w, 0);
    world_end(w, w->attempts[0].id, TRP_END_EXIT, 1, SECOND);
    g_assert_cmpuint(w->nattempts, ==, 0);
    g_assert_cmpuint(w->releases, ==, 1);
    world_lose(w, 0, TRP_LOSS_RELEASED);
}

TEST("what is excluded everywhere waits for room elsewhere")
{
    WORLD w;
    start_excluded(&w);
    for (int i = 0; i < 5; i++)
        world_time(&w, w.now + 120 * SECOND);
    g_assert_cmpuint(w.nended, ==, 0);
    w.host_of = NULL;
    world_come(&w, 1);
    g_assert_cmpuint(w.nattempts, ==, 1);
    world_run_out(&w, SECOND);
    ended(&w, 0, TRP_OUTCOME_SUCCEEDED, "");
}

TEST("and is given up when another has come in vain")
{
    WORLD w;
    start_excluded(&w);
    world_time(&w, w.now + 200 * SECOND);
    world_come(&w, 1);
    world_end(&w, w.attempts[0].id, TRP_END_EXIT, 1,
              SECOND); /* two attempts on a host exclude it */
    world_lose(&w, 1, TRP_LOSS_RELEASED);
    world_come(&w, 2);
    g_assert_cmpuint(w.nattempts, ==, 0);
    world_time(&w, w.now + 119 * SECOND);
    g_assert_cmpuint(w.nended, ==, 0);
    world_time(&w, w.now + SECOND);
    ended(&w, 0, TRP_OUTCOME_FAILED, "Aborting TaskSet 0.0 because task 0 cannot run");
}
