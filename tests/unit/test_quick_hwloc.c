/* What has hwloc leave devices alone is there for as long as it is wanted. */
#include "os/quick_hwloc.h"

#include <glib.h>

static void clear(void)
{
    g_unsetenv("HWLOC_COMPONENTS");
    g_unsetenv("HWLOC_PLUGINS_PATH");
    g_unsetenv(TRP_QUICK_HWLOC_MARK);
}

static void for_a_while(void)
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

static void forgotten(void)
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/quick-hwloc/is there for a while", for_a_while);
    g_test_add_func("/quick-hwloc/is forgotten where it was put", forgotten);
    return g_test_run();
}
