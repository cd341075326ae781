/*
 * What has hwloc leave devices alone, in the environment of who only wants to know cores
 * and memory. Else each process of Open MPI 4.1 looks at PCI, disks and, with hwloc's
 * plugins, X11 and OpenCL: 30 of the 40 ms that it takes to look at a machine.
 *
 * What a user has set is left as it is.
 */
#ifndef TRP_OS_QUICK_HWLOC_H
#define TRP_OS_QUICK_HWLOC_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TRP_QUICK_HWLOC = 2 };

static const char *const trp_quick_hwloc[TRP_QUICK_HWLOC][2] = {
    {"HWLOC_COMPONENTS",   "-linuxio"    },
    {"HWLOC_PLUGINS_PATH", "/nonexistent"},
};

/* Is there beside them in an environment that they were put into, for who starts in it
 * and is to forget them. */
#define TRP_QUICK_HWLOC_MARK "TROUPE_QUICK_HWLOC"

static inline void trp_quick_hwloc_forget(void)
{
    for (int i = 0; i < TRP_QUICK_HWLOC && getenv(TRP_QUICK_HWLOC_MARK); i++) {
        const char *value = getenv(trp_quick_hwloc[i][0]);
        if (value && strcmp(value, trp_quick_hwloc[i][1]) == 0)
            unsetenv(trp_quick_hwloc[i][0]);
    }
    unsetenv(TRP_QUICK_HWLOC_MARK);
}

/* For this process, until trp_quick_hwloc_end with the same marks. */
static inline void trp_quick_hwloc_begin(bool ours[TRP_QUICK_HWLOC])
{
    for (int i = 0; i < TRP_QUICK_HWLOC; i++)
        ours[i] = !getenv(trp_quick_hwloc[i][0]) &&
                  setenv(trp_quick_hwloc[i][0], trp_quick_hwloc[i][1], 1) == 0;
}
static inline void trp_quick_hwloc_end(const bool ours[TRP_QUICK_HWLOC])
{
    for (int i = 0; i < TRP_QUICK_HWLOC; i++)
        if (ours[i])
            unsetenv(trp_quick_hwloc[i][0]);
}

#endif
