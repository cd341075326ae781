/*
 * What a throw-away peer is started with: nothing of this process's MPI and Slurm but
 * the folder for Open MPI's files, which goes with the run.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/transport.h"

static void test_environment(void)
{
    GError *error = NULL;
    trp_error err;
    char *text, *folder = g_dir_make_tmp("troupe-test-XXXXXX", &error);
    g_assert_no_error(error);
    char *file = g_build_filename(folder, "env", NULL);
    const char *argv[] = {"sh", "-c", "env >\"$0.new\"; mv \"$0.new\" \"$0\"", NULL};
    g_setenv("OMPI_MCA_orte_tmpdir_base", "/run-folder", TRUE);
    g_setenv("OMPI_COMM_WORLD_RANK", "0", TRUE);
    g_setenv("PMIX_RANK", "0", TRUE);
    g_setenv("SLURM_JOB_ID", "1", TRUE);
    pid_t pid = trp_throw_away_start(argv, file, &err);
    g_assert_cmpint(pid, >, 0);
    for (int ms = 0; ms < 10000 && !trp_throw_away_gone(pid, false); ms += 10)
        g_usleep(10000);
    g_file_get_contents(file, &text, NULL, &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(text, "OMPI_MCA_orte_tmpdir_base=/run-folder\n"));
    g_assert_nonnull(strstr(text, "PATH="));
    g_assert_null(strstr(text, "OMPI_COMM_WORLD_RANK="));
    g_assert_null(strstr(text, "PMIX_RANK="));
    g_assert_null(strstr(text, "SLURM_JOB_ID="));
    g_unlink(file);
    g_rmdir(folder);
    g_free(text);
    g_free(file);
    g_free(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func(
        "/throw-away/a throw-away peer has the run's folder and nothing else "
        "of MPI and Slurm",
        test_environment);
    return g_test_run();
}
