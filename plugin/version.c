/*
 * Slurm's loader refuses a plugin of another version by itself, with a line that names
 * neither what to do nor, in some programs, anything at all. This is the second lock,
 * for a plugin that was loaded all the same: between versions structs differ.
 */
#include <slurm/slurm_version.h>
#include <stdlib.h>

#include "plugin/plugin.h"

int trp_plugin_version(spank_t sp, trp_error *err)
{
    const int major = SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER);
    const int minor = SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER);
    char *here_major = NULL, *here_minor = NULL;
    if (spank_get_item(sp, S_SLURM_VERSION_MAJOR, &here_major) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_SLURM_VERSION_MINOR, &here_minor) != ESPANK_SUCCESS ||
        !here_major || !here_minor)
        return trp_error_set(err, TRP_ESTATE,
                             "this Slurm does not tell its version; nothing is done");
    if (atoi(here_major) == major && atoi(here_minor) == minor)
        return 0;
    return trp_error_set(err, TRP_ESTATE,
                         "built for Slurm %d.%02d, this is %s.%s: nothing is done; "
                         "build Troupe with the headers of this Slurm",
                         major, minor, here_major, here_minor);
}
