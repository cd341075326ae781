/*
 * The dispatcher: the one file that knows slurm_spank_* and in which process and order
 * Slurm calls them. Slurm's own picture is in slurm/spank.h; what matters here:
 *
 *   srun, sbatch, salloc   init, option callbacks (environment, then command line),
 *                          cli_filter, init_post_opt, local_user_init (srun), exit
 *   slurmd                 init, slurmd_exit
 *   slurmstepd             init, callbacks with remote = 1, init_post_opt, user_init,
 *                          for each task task_init_privileged, task_init; task_exit,
 * exit slurmd's prolog child  job_prolog, job_epilog; without init
 *
 * With `optional` in plugstack.conf Slurm takes no notice of what these return; only an
 * option callback can refuse a job, so that is where everything is checked.
 */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
#pragma GCC visibility pop
#include <stdio.h>

#include "plugin/plugin.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(troupe, 1)
#pragma GCC visibility pop

enum state { NEW, ON, OFF };
static struct trp_plugin plugin;
static enum state state;

static void complain(const trp_error *err)
{
    slurm_error("spank_troupe: %s", err->text);
}

/* Is there something to do? The first call of a process reads what plugstack.conf says.
 */
static bool is_on(spank_t sp, int argc, char **argv)
{
    trp_error err;
    if (state != NEW)
        return state == ON;
    state = OFF;
    if (trp_plugin_version(sp, &err) < 0) {
        complain(&err);
        return false;
    }
    if (trp_plugin_settings(argc, argv, &plugin, &err) < 0)
        complain(&err);
    state = ON;
    return true;
}

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
    is_on(sp, argc, argv);
    return 0;
}

/* What follows needs only to know whether the plugin is on; `is_on` is called first in
 * each, for prolog and epilog are called without init. */
int slurm_spank_exit(spank_t sp, int argc, char **argv)
{
    (void)sp, (void)argc, (void)argv;
    state = NEW;
    return 0;
}
