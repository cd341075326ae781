#include "os/module.h"

#include <glib.h>
#include <string.h>

#include "cluster/local/machine.h"

static void test_a_module_is_found_and_stays(void)
{
    const void *once = NULL, *again = NULL;
    trp_error err;
    g_assert_cmpint(trp_module_get("hwloc", &once, &err), ==, 0);
    g_assert_cmpint(trp_module_get("hwloc", &again, &err), ==, 0);
    g_assert_true(once && once == again);
}

static void test_its_functions_work(void)
{
    struct trp_machine m;
    trp_error err;
    g_assert_cmpint(trp_machine_look(&m, &err), ==, 0);
    g_assert_cmpuint(m.cores, >, 0);
    trp_machine_free(&m);
}

static void test_one_that_is_not_there_is_named(void)
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

static void test_what_is_no_module_of_ours_is_refused(void)
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/a module is found and stays", test_a_module_is_found_and_stays);
    g_test_add_func("/its functions work", test_its_functions_work);
    g_test_add_func("/one that is not there is named",
                    test_one_that_is_not_there_is_named);
    g_test_add_func("/what is no module of ours is refused",
                    test_what_is_no_module_of_ours_is_refused);
    return g_test_run();
}
