/* What was made of an indeterminate stage that runs again. */
#include <glib.h>

#include "conf/options.h"
#include "unit.h"
#include "world/world.h"

static uint32_t dataset(struct world *w, uint32_t id, bool indeterminate,
                        const struct trp_dataset_parent *parent)
{
    struct trp_dataset_spec spec = {.name = "d",
                                    .partitions = 2,
                                    .parents = parent,
                                    .nparents = parent != NULL,
                                    .indeterminate = indeterminate};
    world_tell(w, TRP_EVENT_DATASET, .dataset = {.spec = &spec});
    return id;
}

static void job(struct world *w, uint32_t d)
{
    struct trp_job_spec spec = {.is_dataset = true, .redo = true, .dataset = d};
    world_tell(w, TRP_EVENT_JOB, .job = {.spec = &spec});
}

/* Live attempts of a task of a stage, in order of launch. */
static struct world_attempt *live(struct world *w, uint32_t stage, uint32_t task)
{
    for (guint i = 0; i < w->nattempts; i++) {
        struct world_attempt *a = &w->attempts[i];
        if (a->stage.n == stage && a->task == task)
            return a;
    }
    return NULL;
}

static void end(struct world *w, uint32_t stage, uint32_t task)
{
    g_assert_nonnull(live(w, stage, task));
    world_end(w, live(w, stage, task)->id, TRP_END_SUCCESS, 0, SECOND);
}

/* It could not read the output of map 0 of stage 0, which was on this executor. */
static void fail_to_read(struct world *w, struct world_attempt reader,
                         uint32_t executor)
{
    world_tell(w, TRP_EVENT_TASK_ENDED,
               .ended = {
                   .attempt = reader.id,
                   .status = TRP_END_FETCH,
                   .from = {.stage = {0}, .map = 0, .executor = {executor}}
    });
}

static guint successes(const struct world *w, uint32_t stage, uint32_t task)
{
    guint n = 0;
    for (guint i = 0; i < w->nverdicts; i++) {
        const struct trp_action *v = &w->verdicts[i];
        n += v->task_end.stage.n == stage && v->task_end.task == task &&
             v->task_end.status == TRP_END_SUCCESS;
    }
    return n;
}

/* Kills take effect, time passes, all succeeds. */
static void run_out(struct world *w)
{
    for (guint i = 0; i < w->nattempts;) {
        struct world_attempt a = w->attempts[i];
        if (a.kill)
            world_end(w, a.id, TRP_END_KILLED, 0, SECOND);
        else
            i++;
    }
    world_time(w, w->now + SECOND);
    world_run_out(w, SECOND);
}

/* Dataset 0, which is indeterminate, is computed, and read by two results, 1 and 2, of
 * two tasks each. Returns the executor that has the output of its task 0. */
static uint32_t start(struct world *w, bool second)
{
    struct trp_engine_config c;
    const struct trp_dataset_parent parent = {.dataset = 0, .shuffle = true};
    trp_options_engine_config(NULL, &c);
    c.max_executors = 4;
    c.reduce_locality = false;
    c.queue_ahead_ns = 0;
    world_init(w, NULL);
    world_start(w, &c);
    dataset(w, 0, true, NULL);
    dataset(w, 1, false, &parent);
    dataset(w, 2, false, &parent);
    job(w, 1);
    g_assert_nonnull(live(w, 0, 0));
    uint32_t executor = live(w, 0, 0)->executor;
    end(w, 0, 0);
    end(w, 0, 1);
    if (second)
        job(w, 2);
    return executor;
}

TEST("a result given in part is given again")
{
    WORLD w;
    uint32_t executor = start(&w, false);
    end(&w, 1, 0);
    fail_to_read(&w, *live(&w, 1, 1), executor);
    run_out(&w);
    g_assert_cmpint(w.job_end.job_ended.outcome, ==, TRP_OUTCOME_SUCCEEDED);
    g_assert_cmpuint(successes(&w, 0, 1), ==, 2);
    g_assert_cmpuint(successes(&w, 1, 0), ==, 2);
    g_assert_cmpuint(successes(&w, 1, 1), ==, 1);
}

TEST("a reader that runs begins anew too")
{
    WORLD w;
    uint32_t executor = start(&w, true);
    struct world_attempt other = *live(&w, 2, 1);
    fail_to_read(&w, *live(&w, 1, 1), executor);
    g_assert_nonnull(world_find(&w, other.id));
    g_assert_true(world_find(&w, other.id)->kill);
    run_out(&w);
    g_assert_cmpuint(w.job_ends, ==, 2);
    g_assert_cmpuint(successes(&w, 2, 1), ==, 1);
}

TEST("it is so whoever has the stage run again")
{
    WORLD w;
    uint32_t executor = start(&w, false);
    end(&w, 1, 0);
    if (live(&w, 1, 1)->executor == executor) /* it is not to go with it */
        g_error("both on one host");
    world_lose(&w, executor, TRP_LOSS_HOST);
    g_assert_false(live(&w, 1, 1)->kill);
    job(&w, 2); /* this one has it run */
    g_assert_true(live(&w, 1, 1)->kill);
    run_out(&w);
    g_assert_cmpuint(w.job_ends, ==, 2);
    g_assert_cmpuint(successes(&w, 1, 0), ==, 2);
}
