/*
 * Which MPI a file says it is linked with; this test is linked with Open MPI.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <mpi.h>
#include <string.h>

#include "os/linked_mpi.h"

static void test_programs(void)
{
    int begun;
    MPI_Initialized(&begun); /* so that the linker keeps it */
    g_assert_cmpint(trp_linked_mpi("/proc/self/exe"), ==, TRP_LINKED_OPENMPI);
    g_assert_cmpint(trp_linked_mpi("/bin/true"), ==, TRP_LINKED_NONE);
    g_assert_cmpint(trp_linked_mpi("/etc/passwd"), ==, TRP_LINKED_NONE);
    g_assert_cmpint(trp_linked_mpi("/no/such/file"), ==, TRP_LINKED_NONE);
    g_assert_cmpint(trp_linked_mpi("/"), ==, TRP_LINKED_NONE);
}

/* Cut anywhere and with bytes changed, a file is read to its end and no further. */
static void test_broken(void)
{
    char *bytes, *folder = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    char *path = g_build_filename(folder, "broken", NULL);
    gsize size;
    g_assert_true(g_file_get_contents("/proc/self/exe", &bytes, &size, NULL));
    for (gsize n = 0; n < size; n += 1 + n / 16) {
        g_assert_true(g_file_set_contents(path, bytes, (gssize)n, NULL));
        g_assert_cmpint(trp_linked_mpi(path), <=, TRP_LINKED_MPICH);
    }
    for (int i = 0; i < 300; i++) {
        gsize at = (gsize)g_test_rand_int_range(0, 1024);
        char was = bytes[at];
        bytes[at] = (char)g_test_rand_int_range(0, 256);
        g_assert_true(g_file_set_contents(path, bytes, (gssize)size, NULL));
        g_assert_cmpint(trp_linked_mpi(path), <=, TRP_LINKED_MPICH);
        bytes[at] = was;
    }
    g_unlink(path);
    g_rmdir(folder);
    g_free(path);
    g_free(folder);
    g_free(bytes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/linked-mpi/a program's file says which MPI it is linked with",
                    test_programs);
    g_test_add_func("/linked-mpi/a broken file is none of any", test_broken);
    return g_test_run();
}
