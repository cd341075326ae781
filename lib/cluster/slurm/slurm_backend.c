/*
 * What options and the site file say of a cluster, for Slurm's.
 */
#include "cluster/slurm/slurm_backend.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/slurm/helper/job_answer.h"
#include "cluster/slurm/slurm_parts.h"
#include "os/held.h"

/* What libslurm says goes to the run, when there is one; errors are told by us. */
static int open_log(const struct trp_executor_command *command)
{
    char path[4200];
    if (!command)
        return open("/dev/null", O_WRONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/state/slurm.log", command->run_dir);
    return trp_held_open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
}

static enum trp_placement placement_of(const char *text)
{
    if (strcmp(text, "inside") == 0)
        return TRP_PLACEMENT_INSIDE;
    return strcmp(text, "jobs") == 0 ? TRP_PLACEMENT_JOBS : TRP_PLACEMENT_INSIDE_FIRST;
}

static int make_cluster(uv_loop_t *loop, const struct trp_cluster_where *where,
                        const trp_options *options, const trp_site *site,
                        const struct trp_executor_command *command,
                        const struct trp_cluster_handler *handler,
                        trp_cluster **ret_cluster, trp_error *err)
{
    struct trp_slurm_config c = {
        .job = where->job,
        .helper = where->helper,
        .rank_program = where->rank_program,
        .job_answer = where->answer,
        .partition = where->partition,
        .site = site,
        .driver_cores = (uint32_t)trp_options_int(options, "driver.cores"),
        .driver_memory_mib = trp_options_memory_mib(options, "driver.memory"),
        .placement = placement_of(trp_options_text(options, "alloc.placement")),
        .shrink = trp_options_bool(options, "alloc.shrink"),
        .poll_ms = (uint64_t)(trp_options_time_ns(options, "slurm.poll") / 1000000),
        .patience_ns =
            trp_options_time_ns(options, "dynamicAllocation.schedulerBacklogTimeout"),
        .rpcs_per_minute = trp_options_is_set(options, "slurm.max_rpcs_per_minute")
                               ? trp_options_int(options, "slurm.max_rpcs_per_minute")
                               : 0,
        .log = open_log(command)};
    int code = trp_cluster_slurm_new(loop, &c, command, handler, ret_cluster, err);
    if (c.log >= 0)
        close(c.log);
    return code;
}

/* libslurm without a slurm.conf may wait for a minute. */
static bool is_here(void)
{
    static const char *const usual[] = {"/etc/slurm/slurm.conf",
                                        "/etc/slurm-llnl/slurm.conf",
                                        "/run/slurm/conf/slurm.conf"};
    const char *conf = getenv("SLURM_CONF");
    bool here = getenv("SLURM_CONF_SERVER") || (conf && access(conf, R_OK) == 0);
    for (size_t i = 0; !conf && i < sizeof usual / sizeof *usual; i++)
        here = here || access(usual[i], R_OK) == 0;
    return here;
}

static int ask_slurm(const struct trp_cluster_where *where, char **ret_answer,
                     trp_error *err)
{
    trp_slurm_helper *h;
    int log = open_log(NULL);
    int code = trp_slurm_helper_start(where->helper, log, &h, err);
    if (log >= 0)
        close(log);
    if (code < 0)
        return code;
    code = where->job
               ? trp_slurm_answer_ask(h, where->job, where->gangs, ret_answer, err)
               : trp_slurm_answer_ask_offers(h, ret_answer, err);
    trp_slurm_helper_stop(h, true);
    return code;
}

/* Slurm's numbers above are batch scripts and salloc's shell, which leave all to steps.
 */
const struct trp_backend trp_slurm_backend = {
    .name = "Slurm",
    .job_variable = "SLURM_JOB_ID",
    .step_variable = "SLURM_STEP_ID",
    .step_tasks_variable = "SLURM_STEP_NUM_TASKS",
    .steps = UINT32_C(0xfffffff0),
    .helper = "troupe-slurm",
    .built = "where libslurm-dev is installed",
    .is_here = is_here,
    .ask = ask_slurm,
    .make = make_cluster,
};
