/*
 * Steps that Slurm lists though their sruns are gone: they are cancelled, others are left
 * alone, and a node is used again once nothing of ours is listed there. The helper is a
 * script, which keeps what it is told.
 */
#include <glib.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/slurm/steps/ghosts.h"
#include "unit.h"

enum { NODES = 3 };

/* The first time steps 3 and 4 of n0 and n1 are listed, and the batch step, then only
 * 4, which is not ours. */
static const char script[] =
    "#!/bin/sh\n"
    "times=0\n"
    "while read -r number verb rest; do\n"
    "    [ \"$verb\" != bye ] || exit 0\n"
    "    echo \"$verb $rest\" >>\"$0.told\"\n"
    "    if [ \"$verb\" = steps ]; then\n"
    "        times=$((times + 1))\n"
    "        [ $times != 1 ] || echo \"$number step job=7 step=3 host=n0\"\n"
    "        echo \"$number step job=7 step=4 host=n1\"\n"
    "    fi\n"
    "    echo \"$number done rpcs=1\"\n"
    "done\n";

struct world {
    uv_loop_t loop;
    struct trp_slurm slurm;
    struct trp_slurm_node nodes[NODES];
    struct trp_slurm_part part;
    char names[NODES][4], nothing[1];
    struct trp_slurm_request r[NODES];
    struct trp_slurm_kind_jobs jobs;
    char dir[64], *program;
};

static void do_nothing(uv_timer_t *timer)
{
    (void)timer;
}

static void set_up(struct world *w)
{
    static const struct trp_slurm_share none = {.node = UINT32_MAX};
    struct trp_slurm *s = &w->slurm;
    memset(w, 0, sizeof *w);
    for (uint32_t i = 0; i < NODES; i++) {
        g_snprintf(w->names[i], sizeof w->names[i], "n%u", i);
        w->nodes[i] = (struct trp_slurm_node){.name = w->names[i],
                                              .host = w->names[i],
                                              .rack = w->nothing,
                                              .features = w->nothing,
                                              .cores = 4,
                                              .threads = 1,
                                              .memory_mib = 4096};
    }
    w->part = (struct trp_slurm_part){.job = 7, .leader = 7};
    s->inventory = (struct trp_slurm_inventory){
        .parts = &w->part, .nparts = 1, .nodes = w->nodes, .nnodes = NODES};
    g_assert_cmpint(trp_slurm_ledger_new(&s->inventory, &none, &s->ledger, NULL), ==,
                    0);
    for (uint32_t i = 0; i < NODES; i++) { /* one fills a node */
        w->r[i].units = 1;
        w->r[i].footprint.cores = 4;
        g_assert_cmpint(trp_slurm_ledger_ask(s->ledger, &w->r[i], NULL), ==, 0);
        g_assert_true(trp_slurm_ledger_next(s->ledger) == &w->r[i]);
        w->r[i].kind->context = &w->jobs;
    }
    g_strlcpy(w->dir, "/tmp/test_slurm_ghosts.XXXXXX", sizeof w->dir);
    g_assert_nonnull(mkdtemp(w->dir));
    w->program = g_strdup_printf("%s/helper", w->dir);
    g_assert_true(g_file_set_contents(w->program, script, -1, NULL));
    g_assert_cmpint(chmod(w->program, 0700), ==, 0);
    g_assert_cmpint(trp_slurm_helper_start(w->program, -1, &s->helper, NULL), ==, 0);
    uv_loop_init(&w->loop);
    s->loop = &w->loop;
    uv_timer_init(&w->loop, &s->pump);
    s->on_pump = do_nothing;
    s->handles = 9; /* nothing is freed */
    trp_slurm_ghosts_open(s);
    s->ghosts.pause_ms = 1;
}

static void tear_down(struct world *w)
{
    g_autofree char *told = g_strdup_printf("%s.told", w->program);
    uv_close((uv_handle_t *)&w->slurm.pump, NULL);
    uv_close((uv_handle_t *)&w->slurm.ghosts.timer, trp_slurm_own_closed);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    g_assert_cmpint(uv_loop_close(&w->loop), ==, 0);
    trp_slurm_helper_stop(w->slurm.helper, true);
    for (uint32_t i = 0; i < NODES; i++)
        trp_slurm_ledger_leave(w->slurm.ledger, &w->r[i]);
    trp_slurm_ledger_free(w->slurm.ledger);
    g_free(w->slurm.ghosts.haunted);
    unlink(told);
    unlink(w->program);
    g_assert_cmpint(rmdir(w->dir), ==, 0);
    g_free(w->program);
}

static enum trp_slurm_standing standing(const struct world *w, uint32_t node)
{
    return trp_slurm_ledger_standing(w->slurm.ledger, node);
}

static bool is_taken(const struct world *w)
{
    return standing(w, 0) == TRP_SLURM_TAKEN || standing(w, 1) == TRP_SLURM_TAKEN;
}

/* Until no node is taken. */
static void settle(struct world *w)
{
    while (is_taken(w)) {
        struct pollfd v = {.fd = trp_slurm_helper_fd(w->slurm.helper),
                           .events = POLLIN};
        uv_run(&w->loop, UV_RUN_NOWAIT);
        if (poll(&v, 1, 1) > 0)
            g_assert_true(trp_slurm_helper_read(w->slurm.helper));
    }
}

static char *told(const struct world *w)
{
    char *text = NULL, *name = g_strdup_printf("%s.told", w->program);
    g_assert_true(g_file_get_contents(name, &text, NULL, NULL));
    g_free(name);
    return text;
}

static void over(struct world *w, uint32_t request, uint32_t step)
{
    struct trp_slurm_executor e = {.slurm = &w->slurm, .request = w->r[request]};
    e.heard.has_step = true;
    e.heard.step = step;
    trp_slurm_ghosts_over(&e);
}

TEST("one is cancelled others are left")
{
    static const char refusal[] =
        "Unable to create step for job 7: Memory required by task is not available";
    struct world w;
    set_up(&w);
    over(&w, 0, 3);
    trp_slurm_ghosts_refused(&w.slurm, &w.r[0], refusal);
    trp_slurm_ghosts_refused(&w.slurm, &w.r[1], refusal);
    g_assert_cmpint(standing(&w, 0), ==, TRP_SLURM_TAKEN);
    g_assert_cmpint(standing(&w, 1), ==, TRP_SLURM_TAKEN);
    g_assert_cmpint(standing(&w, 2), ==, TRP_SLURM_GOOD);
    g_assert_nonnull(strstr(w.jobs.refused, "on n1, where it should fit: Unable"));
    settle(&w);
    /* n0 had the ghost, so it was looked at again; n1 had somebody else's step. */
    g_autofree char *calls = told(&w);
    g_assert_cmpstr(calls, ==, "steps job=7\nend-step job=7 step=3\nsteps job=7\n");
    tear_down(&w);
}

TEST("a node without one is used again")
{
    struct world w;
    set_up(&w);
    over(&w, 0, 5);
    trp_slurm_ghosts_refused(&w.slurm, &w.r[0], "Unable to create step: busy");
    settle(&w);
    g_autofree char *calls = told(&w);
    g_assert_cmpstr(calls, ==, "steps job=7\n");
    tear_down(&w);
}
