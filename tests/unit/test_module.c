#include "os/module.h"

#include <glib.h>
#include <string.h>

#include "cluster/local/machine.h"
#include "unit.h"

TEST("a module is found and stays")
{
    const void *once = NULL, *again = NULL;
    trp_error err;
    g_assert_cmpint(trp_module_get("hwloc", &once, &err), ==, 0);
    g_assert_cmpint(trp_module_get("hwloc", &again, &err), ==, 0);
    g_assert_true(once && once == again);
}

TEST("its functions work")
{
    struct trp_machine m;
    trp_error err;
    g_assert_cmpint(trp_machine_look(&m, &err), ==, 0);
    g_assert_cmpuint(m.cores, >, 0);
    trp_machine_free(&m);
}

TEST("one that is not there is named")
{
    const void *table = NULL;
    char path[16] = "";
    trp_error err;
    g_assert_cmpint(trp_module_get("no-such", &table, &err), ==, TRP_ENEVER);
    g_assert_nonnull(strstr(err.text, "no lib/troupe/no-such.so"));
    g_assert_null(table);
    /* Nor is one whose path does not fit. */
    g_assert_false(trp_module_find("hwloc", path, sizeof path));
}

TEST("what is no module of ours is refused")
{
    const void *table = NULL;
    trp_error err;
    g_assert_cmpint(trp_module_load("/nonexistent/x.so", false, &table, &err), ==,
                    TRP_ENEVER);
    g_assert_nonnull(strstr(err.text, "cannot load /nonexistent/x.so"));
    g_assert_cmpint(trp_module_load("libm.so.6", false, &table, &err), ==, TRP_ENEVER);
    g_assert_cmpstr(err.text, ==, "libm.so.6 is of another build of Troupe");
    g_assert_null(table);
}
