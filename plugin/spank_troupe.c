/*
 * The dispatcher: the one file that knows slurm_spank_* and in which process and order
 * Slurm calls them. Slurm's own picture is in slurm/spank.h; what matters here:
 *
 *   srun, sbatch, salloc    init; callbacks of options, first those in the
 *                           environment, then the command line's; the cli_filter;
 *                           init_post_opt; in srun local_user_init; exit
 *   slurmd                  init, slurmd_exit
 *   slurmd's prolog child   job_prolog or job_epilog, without init
 *   slurmstepd              init; callbacks with remote = 1; init_post_opt; user_init;
 *                           in each task's process task_init_privileged and task_init,
 *                           the latter as the user; task_exit; exit
 *
 * With `optional` in plugstack.conf Slurm takes no notice of what these return; only
 * the callback of an option can refuse a job, so that is where everything is checked.
 */
#include <stdlib.h>

#pragma GCC visibility push(default)
#include <slurm/spank.h>

SPANK_PLUGIN(troupe, 1)
#pragma GCC visibility pop

#include "plugin/plugin.h"

enum option { PROFILE, PIPELINE };
enum state { NEW, ON, OFF };
static struct trp_plugin plugin;
static enum state state;
static bool may_inherit; /* the next profile is the job's, not the user's */

static void complain(const char *what, const trp_error *err)
{
    slurm_error("spank_troupe: %s%s", what, err->text);
}

/* Is there something to do? The first call of a process looks what plugstack.conf says.
 */
static bool is_on(spank_t sp, int argc, char **argv)
{
    trp_error err;
    if (state != NEW)
        return state == ON;
    state = OFF;
    if (trp_plugin_version(sp, &err) < 0) {
        complain("", &err);
        return false;
    }
    if (trp_plugin_settings(argc, argv, &plugin, &err) < 0)
        complain("", &err);
    state = ON;
    return true;
}

/* ---- options ---- */

static int take_profile(const char *name, bool remote, trp_error *err)
{
    bool inherited = remote || may_inherit;
    may_inherit = false;
    if (inherited)
        return trp_plugin_profile_inherited(&plugin, name, err);
    trp_plugin_disinherit(); /* tells cli_filter.lua that this one is the user's */
    return trp_plugin_profile(&plugin, name, err);
}

/* Whatever is not 0 ends srun, sbatch and salloc; slurmstepd logs it. */
static int on_option(int what, const char *value, int remote)
{
    trp_error err;
    int code = what == PROFILE ? take_profile(value, remote, &err)
                               : trp_plugin_pipeline(&plugin, value, &err);
    if (code < 0)
        complain(what == PROFILE ? "--stage-profile: " : "--stage-pipeline: ", &err);
    return code;
}

static void add_option(spank_t sp, char *name, char *argument, char *usage,
                       enum option what)
{
    struct spank_option option = {.name = name,
                                  .arginfo = argument,
                                  .usage = usage,
                                  .has_arg = 1,
                                  .val = (int)what,
                                  .cb = on_option};
    spank_err_t rc = spank_option_register(sp, &option);
    if (rc != ESPANK_SUCCESS)
        slurm_error("spank_troupe: no option --%s: %s", name, spank_strerror(rc));
}

static void add_options(spank_t sp, spank_context_t context)
{
    static char profile[] = "stage-profile", name[] = "name";
    static char pipeline[] = "stage-pipeline", file[] = "file";
    static char shape[] =
        "[Troupe] the job takes the shape of this profile of the site";
    static char check[] = "[Troupe] a pipeline to be checked before the job is queued";
    add_option(sp, profile, name, shape, PROFILE);
    if (context == S_CTX_ALLOCATOR)
        add_option(sp, pipeline, file, check, PIPELINE);
}

/* ---- what Slurm calls ---- */

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
    spank_context_t context = spank_context();
    if (!is_on(sp, argc, argv))
        return 0;
    if (context == S_CTX_ALLOCATOR)
        trp_plugin_disinherit();
    may_inherit = context == S_CTX_LOCAL && trp_plugin_inherits();
    if (context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR || context == S_CTX_REMOTE)
        add_options(sp, context);
    return 0;
}

int slurm_spank_job_prolog(spank_t sp, int argc, char **argv)
{
    trp_error err;
    if (is_on(sp, argc, argv) && trp_plugin_prolog(sp, &plugin, &err) < 0)
        complain("", &err);
    return 0;
}

int slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
    trp_error err;
    if (is_on(sp, argc, argv) && trp_plugin_epilog(sp, &err) < 0)
        complain("", &err);
    return 0;
}

int slurm_spank_user_init(spank_t sp, int argc, char **argv)
{
    trp_error err;
    if (is_on(sp, argc, argv) && trp_plugin_scratch(sp, &err) < 0)
        complain("", &err);
    return 0;
}

int slurm_spank_task_init(spank_t sp, int argc, char **argv)
{
    trp_error err;
    if (is_on(sp, argc, argv) && *plugin.profile &&
        trp_plugin_step(sp, &plugin, &err) < 0)
        complain("", &err);
    return 0;
}
