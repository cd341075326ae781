/*
 * The life of an executor's step: who ends it when several do, what the end of its srun
 * means then, and events that do not belong.
 */
#include <glib.h>
#include <string.h>

#include "cluster/slurm/steps/executor_state.h"
#include "unit.h"

enum {
    STARTING = TRP_SLURM_EXECUTOR_STARTING,
    GRANTED = TRP_SLURM_EXECUTOR_GRANTED,
    ADMITTED = TRP_SLURM_EXECUTOR_ADMITTED,

    LEAVING = TRP_SLURM_ON_LEAVING,
    LACK = TRP_SLURM_ON_LACK,
    DISMISS = TRP_SLURM_ON_DISMISS,
    RELEASE = TRP_SLURM_ON_RELEASE,
    KILL = TRP_SLURM_ON_KILL,

    AS_TOLD = TRP_SLURM_END_AS_TOLD,
};

struct world {
    uv_loop_t loop;
    struct trp_slurm slurm;
    struct trp_slurm_executor e;
};

static void do_nothing(uv_timer_t *timer)
{
    (void)timer;
}

/* Its srun is one that has gone, so that no process is killed. */
static void set_up(struct world *w, int state)
{
    memset(w, 0, sizeof *w);
    uv_loop_init(&w->loop);
    uv_timer_init(&w->loop, &w->slurm.pump);
    uv_timer_init(&w->loop, &w->e.timer);
    uv_pipe_init(&w->loop, &w->e.in, 0);
    w->e.timer.data = w->e.in.data = &w->e;
    w->e.slurm = &w->slurm;
    w->slurm.on_pump = do_nothing;
    w->slurm.handles = w->e.handles = 9; /* nothing is freed */
    w->e.state = (enum trp_slurm_executor_state)state;
    w->e.ender = TRP_SLURM_BY_NOBODY;
    w->e.heard.ended = true; /* its node is not doubted */
    w->e.heard.status = 1;
}

static void tear_down(struct world *w)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&w->slurm.pump, (uv_handle_t *)&w->e.timer,
                              (uv_handle_t *)&w->e.in};
    for (size_t i = 0; i < G_N_ELEMENTS(handles); i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    g_assert_cmpint(uv_loop_close(&w->loop), ==, 0);
}

TEST("who ends it")
{
    static const struct {
        int state, first, then, ender, verdict;
    } cases[] = {
        {STARTING, KILL,    KILL,    TRP_SLURM_BY_KILL,    AS_TOLD             },
        {STARTING, LACK,    KILL,    TRP_SLURM_BY_LACK,    TRP_SLURM_END_ENDED },
        {STARTING, LACK,    LEAVING, TRP_SLURM_BY_LACK,    TRP_SLURM_END_ENDED },
        {STARTING, LACK,    RELEASE, TRP_SLURM_BY_RELEASE, AS_TOLD             },
        {GRANTED,  KILL,    LEAVING, TRP_SLURM_BY_KILL,    TRP_SLURM_END_FAILED},
        {GRANTED,  KILL,    RELEASE, TRP_SLURM_BY_RELEASE, AS_TOLD             },
        {ADMITTED, KILL,    LEAVING, TRP_SLURM_BY_KILL,    AS_TOLD             },
        {ADMITTED, DISMISS, LEAVING, TRP_SLURM_BY_RELEASE, AS_TOLD             },
        {ADMITTED, DISMISS, KILL,    TRP_SLURM_BY_RELEASE, AS_TOLD             },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct world w;
        set_up(&w, cases[i].state);
        trp_slurm_executor_happen(&w.e, (enum trp_slurm_event)cases[i].first, NULL);
        trp_slurm_executor_happen(&w.e, (enum trp_slurm_event)cases[i].then, NULL);
        g_test_message("case %zu", i);
        g_assert_cmpint(w.e.state, ==, cases[i].state);
        g_assert_cmpint(w.e.ender, ==, cases[i].ender);
        g_assert_cmpint(trp_slurm_executor_verdict(&w.e, NULL), ==, cases[i].verdict);
        g_assert_cmpuint(w.slurm.leaving, ==, 1); /* once, by whomever */
        g_assert_cmpuint(w.slurm.misplaced, ==, 0);
        tear_down(&w);
    }
}

/* When Slurm has begun to end it, that the driver kills it then says nothing. */
TEST("slurm begins to end it")
{
    struct trp_slurm_job gone = {.gone = true};
    struct world w;
    set_up(&w, ADMITTED);
    w.e.ender = TRP_SLURM_BY_SLURM;
    trp_slurm_executor_happen(&w.e, TRP_SLURM_ON_KILL, NULL);
    g_assert_cmpint(w.e.ender, ==, TRP_SLURM_BY_SLURM_KILLED);
    g_assert_cmpint(trp_slurm_executor_verdict(&w.e, &gone), ==,
                    TRP_SLURM_END_JOB_OVER);
    g_assert_cmpint(trp_slurm_executor_verdict(&w.e, NULL), ==, TRP_SLURM_END_DIED);
    w.e.state = TRP_SLURM_EXECUTOR_GRANTED;
    g_assert_cmpint(trp_slurm_executor_verdict(&w.e, NULL), ==, TRP_SLURM_END_ENDED);
    tear_down(&w);
}

static void count_unanswered(void *context, trp_executor_id executor)
{
    (void)executor;
    ++*(int *)context;
}

/* The room is free only when its srun has ended, its tasks can run elsewhere before. */
TEST("one whose step does not answer its kill is told lost at once")
{
    int told = 0;
    struct world w;
    set_up(&w, ADMITTED);
    w.slurm.handler.context = &told;
    w.slurm.handler.batch.unanswered = count_unanswered;
    trp_slurm_executor_happen(&w.e, TRP_SLURM_ON_KILL, NULL);
    w.e.heard.ended = false;
    while (!told)
        uv_run(&w.loop, UV_RUN_ONCE);
    g_assert_true(uv_is_active((uv_handle_t *)&w.e.timer)); /* it may answer yet */
    g_assert_cmpint(w.e.state, ==, ADMITTED);
    tear_down(&w);
}

TEST("what does not belong is told")
{
    struct world w;
    set_up(&w, STARTING);
    trp_slurm_executor_happen(&w.e, TRP_SLURM_ON_CAME, NULL);
    trp_slurm_executor_happen(&w.e, TRP_SLURM_ON_ROOM, NULL);
    g_assert_cmpint(w.e.state, ==, STARTING);
    g_assert_cmpint(w.e.ender, ==, TRP_SLURM_BY_NOBODY);
    g_assert_cmpuint(w.slurm.misplaced, ==, 2);
    g_assert_nonnull(strstr(w.slurm.misplaced_text, "executor 0 got an admission"));
    g_assert_true(uv_is_active((uv_handle_t *)&w.slurm.pump)); /* it is told soon */
    tear_down(&w);
}
