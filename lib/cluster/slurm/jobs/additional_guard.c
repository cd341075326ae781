/*
 * The guard of a job that was had at once: a step that shares what others have (srun
 * --overlap), so that it takes no room. It runs where an executor does: a node on which
 * nothing else is left can be given back, once another guard has called from elsewhere.
 * When its srun has ended, it is started again.
 *
 * It comes GUARD_AFTER_NS after the job. Until then executors guard it: many a job is
 * given back before, and the first ones come sooner.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <utlist.h>

#include "cluster/executor_entry.h"
#include "cluster/mpirun.h"
#include "cluster/slurm/jobs/additional_parts.h"
#include "events/run_folder.h"
#include "executor/executor.h"

#define GUARD_AFTER_NS INT64_C(1000000000)
#define GUARD_PAUSE_MOST_NS (60 * INT64_C(1000000000))

struct trp_slurm_guard {
    struct trp_slurm_guard *next;
    struct trp_slurm *slurm;
    struct trp_slurm_job *job; /* NULL: given back; srun ends with it */
    uint32_t number;           /* Slurm's, of that */
    uint32_t node;
    bool called;
    uv_process_t srun;
};

static void on_closed(uv_handle_t *handle)
{
    struct trp_slurm_guard *g = handle->data;
    struct trp_slurm *s = g->slurm;
    LL_DELETE(s->additional.guards, g);
    free(g);
    trp_slurm_handle_closed(s);
}

static void tell_guarded(const struct trp_slurm_guard *g, bool yes)
{
    char call[64];
    snprintf(call, sizeof call, "guarded job=%u yes=%d", g->number, yes);
    if (g->slurm->helper && !g->slurm->additional.helper_gone)
        trp_slurm_helper_tell(g->slurm->helper, call);
}

static void on_srun_exit(uv_process_t *process, int64_t status, int signal)
{
    struct trp_slurm_guard *g = process->data;
    struct trp_slurm_job *j = g->job;
    (void)status;
    (void)signal;
    if (j && j->last_step == g) {
        j->last_step = NULL;
    } else if (j) {
        tell_guarded(g, false);
        j->step = NULL;
        j->guard_at = trp_additional_now() + j->guard_pause;
        if (j->guard_pause < GUARD_PAUSE_MOST_NS)
            j->guard_pause *= 2;
        trp_slurm_pump_soon(g->slurm);
    }
    uv_close((uv_handle_t *)process, on_closed);
}

static int spawn(struct trp_slurm_guard *g, char **argv, char **env)
{
    uv_stdio_container_t stdio[3] = {{0}}; /* /dev/null */
    uv_process_options_t options = {.exit_cb = on_srun_exit,
                                    .file = argv[0],
                                    .args = argv,
                                    .env = env,
                                    .flags = UV_PROCESS_DETACHED, /* setsid */
                                    .stdio_count = 3,
                                    .stdio = stdio};
    g->srun.data = g;
    return uv_spawn(g->slurm->loop, &g->srun, &options);
}

static char **make_environment(struct trp_slurm *s, uint32_t id)
{
    struct trp_executor_shape shape = {.id = id, .cores = 1, .slots = 1};
    trp_error err;
    char *entry = trp_executor_entry(&s->command, s->driver_address, &shape, &err);
    const char *more[] = {entry, NULL};
    char **env = entry ? trp_mpirun_environ(environ, NULL, more) : NULL;
    free(entry);
    return env;
}

static void start_guard(struct trp_slurm_job *j, uint32_t node)
{
    struct trp_slurm *s = j->slurm;
    char what[64];
    j->guard = trp_additional_guard_id(s);
    char **env = make_environment(s, j->guard);
    char **argv = trp_slurm_guard_argv(s, node);
    struct trp_slurm_guard *g = env && argv ? calloc(1, sizeof *g) : NULL;
    if (!g) {
        j->guard_at = trp_additional_now() + GUARD_PAUSE_MOST_NS;
    } else {
        *g = (struct trp_slurm_guard){.next = s->additional.guards,
                                      .slurm = s,
                                      .job = j,
                                      .number = j->job,
                                      .node = node};
        s->additional.guards = j->step = g;
        s->handles++;
        trp_slurm_srun_started(s);
        if (spawn(g, argv, env) < 0)
            on_srun_exit(&g->srun, 0, 0);
        snprintf(what, sizeof what, "srun of the guard of job %u", j->job);
        if (j->step)
            trp_run_folder_pid(s->command.run_dir, g->srun.pid, what);
    }
    trp_argv_free(argv);
    trp_argv_free(env);
}

/* A node of the job: one where something runs, if there is one. */
static uint32_t choose_node(const struct trp_slurm_job *j)
{
    const struct trp_slurm *s = j->slurm;
    uint32_t node = UINT32_MAX;
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        if (!s->inventory.nodes[i].name || s->inventory.nodes[i].part != j->part)
            continue;
        if (trp_slurm_ledger_placed_on(s->ledger, i) > 0)
            return i;
        node = node == UINT32_MAX ? i : node;
    }
    return node;
}

static bool is_in_the_way(const struct trp_slurm_guard *g)
{
    const struct trp_slurm *s = g->slurm;
    return s->leaving == 0 && trp_slurm_ledger_placed(s->ledger, g->job->part) > 0 &&
           trp_slurm_ledger_placed_on(s->ledger, g->node) == 0;
}

int64_t trp_additional_guard(struct trp_slurm *s)
{
    int64_t due = INT64_MAX;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->state != TRP_SLURM_JOB_RUNS || j->queued)
            continue;
        if (j->step && j->step->called && !j->last_step && is_in_the_way(j->step)) {
            j->last_step = j->step;
            j->step = NULL;
            j->guard_pause = GUARD_AFTER_NS;
            j->guard_at = 0;
        }
        uint32_t node = j->step ? UINT32_MAX : choose_node(j);
        if (node == UINT32_MAX)
            continue;
        if (!j->guard_pause) {
            j->guard_pause = GUARD_AFTER_NS;
            j->guard_at = trp_additional_now() + GUARD_AFTER_NS;
        }
        if (j->guard_at <= trp_additional_now())
            start_guard(j, node);
        else if (j->guard_at < due)
            due = j->guard_at;
    }
    return due;
}

void trp_additional_guard_called(struct trp_slurm_job *j)
{
    if (j->step && !j->step->called)
        tell_guarded(j->step, true);
    if (j->step)
        j->step->called = true;
    if (j->last_step)
        uv_process_kill(&j->last_step->srun, SIGTERM); /* it ends the step */
}

bool trp_additional_has_guard(const struct trp_slurm *s, uint32_t job)
{
    for (const struct trp_slurm_guard *g = s->additional.guards; g; g = g->next) {
        if (g->number == job && g->called &&
            !uv_is_closing((const uv_handle_t *)&g->srun))
            return true;
    }
    return false;
}

void trp_additional_guard_leave(struct trp_slurm_job *j)
{
    if (j->last_step)
        j->last_step->job = NULL;
    j->last_step = NULL;
    if (j->step)
        j->step->job = NULL;
    j->step = NULL;
}

/* Leaves the steps alone: a guard whose job Slurm has not ended yet is the last that can
 * end it. So srun is killed together with the child that would end the step for it. */
void trp_slurm_additional_close_guards(struct trp_slurm *s)
{
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next)
        trp_additional_guard_leave(j);
    for (struct trp_slurm_guard *g = s->additional.guards; g; g = g->next) {
        if (uv_is_closing((uv_handle_t *)&g->srun))
            continue;
        kill(-g->srun.pid, SIGKILL);
        while (waitpid(g->srun.pid, NULL, 0) < 0 && errno == EINTR)
            ;
        uv_close((uv_handle_t *)&g->srun, on_closed);
    }
}
