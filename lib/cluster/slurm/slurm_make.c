/*
 * The making of a cluster of Slurm jobs: from what was answered (job_answer.h) to
 * ledger and racks; then, for a run, the helper that watches over its steps. Who only
 * looks stops before that; outside of a job there is no ledger, and only what additional
 * jobs could have.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/executor_entry.h"
#include "cluster/mpirun.h"
#include "cluster/slurm/helper/inventory_lines.h"
#include "cluster/slurm/helper/job_answer.h"
#include "cluster/slurm/shared/driver_share.h"
#include "cluster/slurm/slurm_parts.h"
#include "events/run_folder.h"
#include "os/held.h"

enum { JOBS_MOST = 256 };

static void free_all(struct trp_slurm *s)
{
    trp_slurm_helper_stop(s->helper, true);
    trp_slurm_view_free(s);
    trp_slurm_additional_free(s);
    trp_slurm_shrink_free(s);
    trp_slurm_ledger_free(s->ledger);
    trp_slurm_inventory_free(&s->inventory);
    trp_site_free(s->own_site);
    trp_argv_free(s->texts);
    free(s->rank_program);
    free(s->helper_program);
    free(s->job_answer);
    free(s->uri);
    free(s->watch.seen);
    free(s->ghosts.haunted);
    free(s->driver_address);
    free(s);
}

static int no_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* Steps of this run are ended by the helper when this process dies. */
static void guard_steps(const struct trp_slurm *s)
{
    for (uint32_t i = 0; i < s->inventory.nparts; i++) {
        char call[512];
        snprintf(call, sizeof call, "guard job=%u name=%s:", s->inventory.parts[i].job,
                 s->command.run_name);
        trp_slurm_helper_tell(s->helper, call);
    }
}

static void on_helper(uv_poll_t *poll, int status, int events)
{
    struct trp_slurm *s = poll->data;
    (void)events;
    if (status < 0 || !trp_slurm_helper_read(s->helper)) {
        /* Executors go on. Only srun is left to end their steps. */
        uv_poll_stop(poll);
        trp_slurm_additional_lost(s);
    }
}

static int make_runnable(struct trp_slurm *s, uv_loop_t *loop,
                         const struct trp_slurm_config *config,
                         const struct trp_executor_command *command,
                         const struct trp_cluster_handler *handler, trp_error *err)
{
    int code = trp_slurm_helper_start(config->helper, config->log, &s->helper, err);
    if (code < 0)
        return code;
    s->texts = trp_executor_command_copy(command, &s->command);
    s->rank_program = strdup(config->rank_program);
    if (!s->texts || !s->rank_program)
        return no_memory(err);
    char path[4200];
    snprintf(path, sizeof path, "%s/state/executors", command->run_dir);
    if (trp_held_mkdir(path, 0700) < 0 && errno != EEXIST)
        return trp_error_set(err, TRP_ESYSTEM, "cannot make %s: %m", path);
    s->loop = loop;
    s->handler = *handler;
    if (config->rpcs_per_minute || !s->inventory.calls)
        trp_slurm_budget_open(&s->budget, config->rpcs_per_minute);
    else
        trp_slurm_budget_share(&s->budget, s->inventory.calls, s->inventory.call_ms);
    trp_slurm_budget_take(&s->budget, (int64_t)uv_hrtime(), s->answer_rpcs);
    code = trp_slurm_gangs_open(s, err);
    if (code < 0)
        return code;
    guard_steps(s);
    trp_run_folder_pid(command->run_dir, trp_slurm_helper_pid(s->helper),
                       "troupe-slurm");
    s->pump.data = s->wake.data = s->helper_poll.data = s;
    uv_timer_init(loop, &s->pump);
    uv_timer_init(loop, &s->wake);
    if (uv_poll_init(loop, &s->helper_poll, trp_slurm_helper_fd(s->helper)) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot watch troupe-slurm");
    uv_poll_start(&s->helper_poll, UV_READABLE, on_helper);
    s->handles += 3;
    s->runs_things = true;
    trp_slurm_ghosts_open(s);
    if (trp_slurm_watch_open(s, config->poll_ms) < 0 ||
        trp_slurm_shrink_open(s, config) < 0)
        return no_memory(err);
    return 0;
}

static void allow_additional(struct trp_slurm *s, const struct trp_slurm_config *config)
{
    struct trp_slurm_additional *f = &s->additional;
    f->poll_ns = (int64_t)config->poll_ms * 1000000;
    f->patience_ns = config->patience_ns;
    f->allowed = config->placement != TRP_PLACEMENT_INSIDE && !s->site->limits.no_jobs;
    f->most = f->allowed && s->site->limits.jobs ? s->site->limits.jobs : JOBS_MOST;
    f->time_ns = s->site->limits.time_ns;
    for (uint32_t i = 0; config->placement == TRP_PLACEMENT_JOBS && f->allowed &&
                         i < s->inventory.nparts;
         i++)
        trp_slurm_ledger_close_part(s->ledger, i);
}

static int read_grant(struct trp_slurm *s, const struct trp_slurm_config *config,
                      trp_error *err)
{
    int code =
        trp_slurm_answer_read(config->job_answer, &s->inventory, &s->answer_rpcs, err);
    if (code < 0)
        return code;
    s->job_answer = strdup(config->job_answer);
    s->helper_program = strdup(config->helper);
    if (!s->job_answer || !s->helper_program)
        return no_memory(err);
    code = trp_slurm_set_racks(s, &s->inventory, err);
    if (code < 0)
        return code;
    if (!s->inventory.live || s->inventory.uid != getuid())
        return trp_error_set(err, TRP_ENOENT, "Slurm job %u is %s%s", config->job,
                             s->inventory.state,
                             s->inventory.uid != getuid() ? " and another user's" : "");
    struct trp_slurm_share driver = {.node = trp_slurm_inventory_here(&s->inventory),
                                     .cores = config->driver_cores,
                                     .memory_mib = config->driver_memory_mib,
                                     .srun_mib = TRP_SLURM_SRUN_MIB};
    code = trp_slurm_ledger_new(&s->inventory, &driver, &s->ledger, err);
    if (code == 0)
        allow_additional(s, config);
    return code < 0 ? code : trp_slurm_view_make(s, err);
}

/* Of no job. */
static int read_offers(struct trp_slurm *s, const struct trp_slurm_config *config,
                       trp_error *err)
{
    const char *partition = config->partition           ? config->partition
                            : s->site->driver.partition ? s->site->driver.partition
                                                        : "";
    snprintf(s->inventory.place.partition, TRP_SLURM_NAME, "%s", partition);
    s->additional.allowed = true;
    return trp_slurm_answer_offers(config->job_answer, &s->additional.offers, err);
}

/* Without a site file there is one that says nothing. */
static int adopt_site(struct trp_slurm *s, const trp_site *site, trp_error *err)
{
    static const char nothing[] = "site: 1\n";
    s->site = site;
    if (site)
        return 0;
    int code = trp_site_parse("", nothing, sizeof nothing - 1, &s->own_site, err);
    s->site = s->own_site;
    return code;
}

int trp_cluster_slurm_new(uv_loop_t *loop, const struct trp_slurm_config *config,
                          const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err)
{
    struct trp_slurm *s = calloc(1, sizeof *s);
    if (!s)
        return no_memory(err);
    s->base.ops = &trp_slurm_ops;
    s->users = &trp_slurm_step_users;
    s->on_pump = trp_slurm_on_pump;
    s->free = free_all;
    int code = adopt_site(s, config->site, err);
    if (code == 0)
        code = config->job ? read_grant(s, config, err) : read_offers(s, config, err);
    if (code == 0 && command)
        code = make_runnable(s, loop, config, command, handler, err);
    if (code < 0) {
        free_all(s);
        return code;
    }
    *ret_cluster = &s->base;
    return 0;
}
