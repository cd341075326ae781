#include "os/quick_hwloc.h"

#include <stdlib.h>
#include <string.h>

const char *const trp_quick_hwloc[TRP_QUICK_HWLOC][2] = {
    {"HWLOC_COMPONENTS",   "-linuxio"    },
    {"HWLOC_PLUGINS_PATH", "/nonexistent"},
};

void trp_quick_hwloc_forget(void)
{
    for (int i = 0; i < TRP_QUICK_HWLOC && getenv(TRP_QUICK_HWLOC_MARK); i++) {
        const char *value = getenv(trp_quick_hwloc[i][0]);
        if (value && strcmp(value, trp_quick_hwloc[i][1]) == 0)
            unsetenv(trp_quick_hwloc[i][0]);
    }
    unsetenv(TRP_QUICK_HWLOC_MARK);
}

void trp_quick_hwloc_begin(bool ours[TRP_QUICK_HWLOC])
{
    for (int i = 0; i < TRP_QUICK_HWLOC; i++)
        ours[i] = !getenv(trp_quick_hwloc[i][0]) &&
                  setenv(trp_quick_hwloc[i][0], trp_quick_hwloc[i][1], 1) == 0;
}

void trp_quick_hwloc_end(const bool ours[TRP_QUICK_HWLOC])
{
    for (int i = 0; i < TRP_QUICK_HWLOC; i++)
        if (ours[i])
            unsetenv(trp_quick_hwloc[i][0]);
}
