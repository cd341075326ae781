/* Discovery scripts that are run: what they say, and each way in which they fail. */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/discover.h"

static char *dir, *script;

static void write_script(const char *text, int mode)
{
    g_assert_true(g_file_set_contents(script, text, -1, NULL));
    g_assert_cmpint(g_chmod(script, (mode_t)mode), ==, 0);
}

static int run(const char *text, int limit_ms, const int *stop, char **ret,
               trp_error *err)
{
    struct trp_discovery q = {.resource = "gpu",
                              .script = script,
                              .amount = 2,
                              .limit_ms = limit_ms,
                              .stop = stop};
    write_script(text, 0755);
    *err = (trp_error){0};
    *ret = NULL;
    return trp_discover(&q, ret, err);
}

static void fails(const char *text, int limit_ms, int code, const char *how)
{
    char *list;
    trp_error err;
    char *whole = g_strdup_printf("discovery script %s of gpu on %s: it %s", script,
                                  g_get_host_name(), how);
    int rc = run(text, limit_ms, NULL, &list, &err);
    if (rc != code || !g_str_has_prefix(err.text, whole))
        g_error("wanted %d, %s; got %d, %s", code, whole, rc, err.text);
    g_free(whole);
}

#define GOOD "echo '{\"name\":\"gpu\",\"addresses\":[\"1\",\"0\"]}'\n"

static void test_run(void)
{
    char *list;
    trp_error err;
    g_assert_cmpint(run("#!/bin/sh\n" GOOD, 0, NULL, &list, &err), ==, 0);
    g_assert_cmpstr(list, ==, "0,1");
    free(list);
    /* Nothing to read, no signal held back, and what it leaves does not hold us up. */
    g_assert_cmpint(
        run("#!/bin/sh\nread x && exit 1\nsleep 1000 &\n" GOOD, 0, NULL, &list, &err),
        ==, 0);
    free(list);
}

static void test_fail(void)
{
    fails("#!/bin/sh\necho no card >&2\necho at all >&2\nexit 3\n", 0, TRP_ESYSTEM,
          "ended with exit status 3: at all");
    fails("#!/bin/sh\nexit 4\n", 0, TRP_ESYSTEM, "ended with exit status 4");
    fails("#!/bin/sh\nkill -SEGV $$\n", 0, TRP_ESYSTEM, "was killed by SIGSEGV");
    fails("#!/bin/sh\necho hello\n", 0, TRP_ESYSTEM, "did not print JSON");
    fails("#!/bin/sh\necho '{\"name\":\"nic\",\"addresses\":[\"1\",\"0\"]}'\n", 0,
          TRP_ESYSTEM, "says addresses of \"nic\", not of gpu");
    fails("#!/bin/sh\necho '{\"name\":\"gpu\",\"addresses\":[\"0\"]}'\n", 0, TRP_ENEVER,
          "says 1 address, an executor needs 2");
    fails("#!/bin/sh\nyes\n", 0, TRP_ESYSTEM, "printed more than 64 KiB");
    fails("#!/no/such/shell\n", 0, TRP_ESYSTEM, "cannot be run: No such file");
}

static void test_not_executable(void)
{
    char *list;
    trp_error err;
    struct trp_discovery q = {.resource = "gpu", .script = script};
    write_script("#!/bin/sh\n" GOOD, 0644);
    g_assert_cmpint(trp_discover(&q, &list, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "it cannot be run: Permission denied"));
    g_unlink(script);
    g_assert_cmpint(trp_discover(&q, &list, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "it cannot be run: No such file"));
}

/* Of what it started in its group nothing is left. */
static void test_late(void)
{
    char *pid = NULL, *file = g_build_filename(dir, "pid", NULL);
    char *text = g_strdup_printf(
        "#!/bin/sh\nsleep 1000 &\necho $! >%s.new\nmv %s.new %s\nwait\n", file, file,
        file);
    fails(text, 1500, TRP_ESYSTEM, "did not end within 1.5 s");
    if (g_file_get_contents(file, &pid, NULL, NULL)) {
        char *path = g_strdup_printf("/proc/%d/cmdline", atoi(pid)), *line = NULL;
        for (int i = 0; i < 2000 && g_file_get_contents(path, &line, NULL, NULL) &&
                        strcmp(line, "sleep") == 0;
             i++) {
            g_free(line);
            line = NULL;
            g_usleep(10000);
        }
        g_assert_cmpstr(line ? line : "", !=, "sleep");
        g_free(line);
        g_free(path);
        g_free(pid);
        g_unlink(file);
    }
    g_free(text);
    g_free(file);
}

static void test_stop(void)
{
    int fds[2];
    char *list;
    trp_error err;
    g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
    close(fds[1]);
    g_assert_cmpint(run("#!/bin/sh\nsleep 1000\n", 0, &fds[0], &list, &err), ==,
                    TRP_ECANCELLED);
    close(fds[0]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    dir = g_dir_make_tmp("discovery-XXXXXX", NULL);
    script = g_build_filename(dir, "find", NULL);
    g_test_add_func("/discovery/a script is run and says addresses", test_run);
    g_test_add_func("/discovery/each failure says what was wrong", test_fail);
    g_test_add_func("/discovery/one that cannot be run", test_not_executable);
    g_test_add_func("/discovery/one that takes too long is killed with its children",
                    test_late);
    g_test_add_func("/discovery/one may be stopped", test_stop);
    int status = g_test_run();
    g_unlink(script);
    g_rmdir(dir);
    return status;
}
