/*
 * --stage-profile=NAME in a user's srun, sbatch or salloc. The plugin refuses, the
 * cli_filter gives the job its shape: Slurm lets a SPANK plugin change no request, and
 * what a cli_filter says of a wrong name comes late. Both read the same file.
 *
 * Slurm hands the option on to all that runs in the job, by a variable that srun,
 * sbatch and salloc read before the command line. A step of the job is of its profile,
 * but not of its shape unless it says so itself: an srun in a job takes what it is told
 * to, as without the plugin. An additional job has nothing to do with it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/slurm/helper/libslurm.h"
#include "conf/wording.h"
#include "plugin/plugin.h"
#include "plugin/shapes.h"

#define INHERITED "SLURM_SPANK__SLURM_SPANK_OPTION_troupe_stage_profile"
#define INHERITED_PIPELINE "SLURM_SPANK__SLURM_SPANK_OPTION_troupe_stage_pipeline"
#define RESOURCE "TROUPE_RESOURCE_"

/* Whether slurm.conf has a cli_filter in Lua. Every program of Slurm has that file in
 * this variable; a plugin is only loaded into the Slurm that it has the headers of. */
static bool has_filter(void)
{
    void *found = dlsym(RTLD_DEFAULT, "slurm_conf");
    const slurm_conf_t *conf = found;
    return !conf ||
           (conf->cli_filter_plugins && strstr(conf->cli_filter_plugins, "lua"));
}

static int check_name(const char *name, trp_error *err)
{
    if (name && trp_is_name(name))
        return 0;
    return trp_error_set(err, TRP_EINVAL, "\"%s\" is no name of a profile",
                         trp_show(name ? name : "").text);
}

int trp_plugin_profile(struct trp_plugin *p, const char *name, trp_error *err)
{
    struct trp_shape shape = {.never = ""};
    int code = check_name(name, err);
    if (code == 0)
        code = trp_shapes_find(p->shapes, name, &shape, err);
    if (code < 0)
        return code;
    if (*shape.never)
        return trp_error_set(err, TRP_ENEVER, "profile %s: %s", name, shape.never);
    if (!has_filter())
        return trp_error_set(err, TRP_ESTATE,
                             "nothing gives the job its shape; the administrator puts "
                             "CliFilterPlugins=lua into slurm.conf and Troupe's "
                             "cli_filter.lua beside it");
    strcpy(p->profile, name);
    setenv(TRP_PLUGIN_SHAPES, p->shapes,
           1); /* the cli_filter reads what was read here */
    return 0;
}

int trp_plugin_profile_inherited(struct trp_plugin *p, const char *name, trp_error *err)
{
    int code = check_name(name, err);
    if (code == 0)
        strcpy(p->profile, name);
    return code;
}

bool trp_plugin_inherits(void)
{
    return getenv(INHERITED) != NULL;
}

void trp_plugin_disinherit(void)
{
    unsetenv(INHERITED_PIPELINE);
    if (!trp_plugin_inherits())
        return;
    unsetenv(INHERITED);
    unsetenv("TROUPE_PROFILE");
    /* unsetenv moves the others up. */
    for (size_t i = 0; environ[i];) {
        char name[256];
        size_t n = strcspn(environ[i], "=");
        if (strncmp(environ[i], RESOURCE, strlen(RESOURCE)) == 0 && n < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)n, environ[i]);
            unsetenv(name);
        } else {
            i++;
        }
    }
}
