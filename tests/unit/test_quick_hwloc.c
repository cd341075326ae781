/* What has hwloc leave devices alone is there for as long as it is wanted. */
#include "os/quick_hwloc.h"
#include "unit.h"

#include <glib.h>

static void clear(void)
{
    g_unsetenv("HWLOC_COMPONENTS");
    g_unsetenv("HWLOC_PLUGINS_PATH");
    g_unsetenv(TRP_QUICK_HWLOC_MARK);
}

TEST("is there for a while")
{
    bool ours[TRP_QUICK_HWLOC];
    clear();
    g_setenv("HWLOC_PLUGINS_PATH", "/mine", TRUE);
    trp_quick_hwloc_begin(ours);
    g_assert_cmpstr(getenv("HWLOC_COMPONENTS"), ==, "-linuxio");
    g_assert_cmpstr(getenv("HWLOC_PLUGINS_PATH"), ==, "/mine");
    trp_quick_hwloc_end(ours);
    g_assert_null(getenv("HWLOC_COMPONENTS"));
    g_assert_cmpstr(getenv("HWLOC_PLUGINS_PATH"), ==, "/mine");
}

TEST("is forgotten where it was put")
{
    clear();
    g_setenv("HWLOC_COMPONENTS", "-linuxio", TRUE); /* the user's own: no mark */
    trp_quick_hwloc_forget();
    g_assert_cmpstr(getenv("HWLOC_COMPONENTS"), ==, "-linuxio");
    g_setenv("HWLOC_PLUGINS_PATH", "/mine", TRUE);
    g_setenv(TRP_QUICK_HWLOC_MARK, "1", TRUE);
    trp_quick_hwloc_forget();
    g_assert_null(getenv("HWLOC_COMPONENTS"));
    g_assert_null(getenv(TRP_QUICK_HWLOC_MARK));
    g_assert_cmpstr(getenv("HWLOC_PLUGINS_PATH"), ==, "/mine");
}
