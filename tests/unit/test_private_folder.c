/* Private folders of processes: in the job's folder where there is one, else as before.
 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/private_folder.h"

static char job[] = "/tmp/private-XXXXXX";

/* Whether one that is made now is in the job's folder; removes it again. */
static bool is_in_job(void)
{
    char path[TRP_PRIVATE_FOLDER];
    trp_error err;
    struct stat st;
    g_assert_cmpint(trp_private_folder(path, &err), ==, 0);
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode, ==, S_IFDIR | 0700);
    char *mark = g_build_filename(path, ".made-by-troupe", NULL);
    g_assert_cmpint(unlink(mark), ==, 0);
    g_free(mark);
    g_assert_cmpint(rmdir(path), ==, 0);
    bool in = g_str_has_prefix(path, job) && path[strlen(job)] == '/';
    g_assert_true(in || g_str_has_prefix(path, "/tmp/troupe-"));
    return in;
}

static bool accepts(const char *path)
{
    g_setenv("TROUPE_SCRATCH", path, TRUE);
    const char *folder = trp_job_folder();
    g_assert_true(!folder || strcmp(folder, path) == 0);
    g_assert_cmpint(folder != NULL, ==, is_in_job());
    return folder != NULL;
}

static void test_job_folder(void)
{
    g_assert_null(trp_job_folder());
    g_assert_false(is_in_job());
    g_assert_true(accepts(job));
    g_assert_false(accepts(""));
    g_assert_false(accepts(job + 1)); /* not absolute */
    g_assert_false(accepts("/tmp/of/another/node"));
    g_assert_false(accepts("/tmp")); /* others' too */
    g_assert_cmpint(g_chmod(job, 0755), ==, 0);
    g_assert_false(accepts(job));
    g_assert_cmpint(g_chmod(job, 0700), ==, 0);
    char *link = g_strdup_printf("%s/link", job);
    g_assert_cmpint(symlink(job, link), ==, 0);
    g_assert_false(accepts(link));
    g_assert_cmpint(unlink(link), ==, 0);
    g_free(link);
    if (geteuid() == 0) {
        g_assert_cmpint(chown(job, 59031, 59031), ==, 0);
        g_assert_false(accepts(job));
        g_assert_cmpint(chown(job, 0, 0), ==, 0);
    }
}

/* Open MPI's sockets have to fit behind it. */
static void test_long_path(void)
{
    char *below = g_strdup_printf("%s/%032d", job, 0);
    g_assert_cmpint(g_mkdir(below, 0700), ==, 0);
    g_setenv("TROUPE_SCRATCH", below, TRUE);
    g_assert_cmpstr(trp_job_folder(), ==, below);
    g_assert_false(is_in_job());
    g_assert_cmpint(rmdir(below), ==, 0);
    g_free(below);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_unsetenv("TROUPE_SCRATCH");
    g_unsetenv("TMPDIR");
    if (!mkdtemp(job))
        return 1;
    g_test_add_func("/private folder/job's folder", test_job_folder);
    g_test_add_func("/private folder/a path that is too long", test_long_path);
    int r = g_test_run();
    g_assert_cmpint(rmdir(job), ==, 0);
    return r;
}
