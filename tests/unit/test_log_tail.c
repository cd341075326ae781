/* The last line of an executor's log, among what mpirun writes. */
#include "driver_files.h"
#include "os/log_tail.h"
#include "unit.h"

#define DASHES                                                                         \
    "--------------------------------------------------------------------------\n"

/* `wanted` NULL: none. */
static void check(const char *log, const char *wanted)
{
    char *dir = files_new(), *path = g_build_filename(dir, "0.log", NULL), line[32];
    files_put(dir, "0.log", log);
    bool said = trp_log_last_line(path, line, sizeof line);
    g_assert_cmpstr(said ? line : NULL, ==, wanted);
    g_free(path);
    files_free(dir);
}

static void left(const char *log, const char *wanted)
{
    char *dir = files_new(), *path = g_build_filename(dir, "0.log", NULL), *got;
    files_put(dir, "0.log", log);
    trp_log_drop_banners(path);
    g_assert_true(g_file_get_contents(path, &got, NULL, NULL));
    g_assert_cmpstr(got, ==, wanted);
    g_free(got);
    g_free(path);
    files_free(dir);
}

#define ABORTED                                                                        \
    DASHES                                                                             \
    "Primary job  terminated normally, but 1 process returned\n"                       \
    "a non-zero exit code. Per user-direction, the job has been aborted.\n" DASHES
#define NOTICED                                                                        \
    DASHES "mpirun noticed that process rank 0 with PID 0 on node vm exited on "       \
           "signal 9 (Killed).\n" DASHES

TEST("banners at the end are cut off")
{
    left("", "");
    left("hi\n", "hi\n");
    left(ABORTED NOTICED, "");
    left("hi\n" ABORTED NOTICED, "hi\n");
    left("hi\n" NOTICED "\n", "hi\n");
    left(NOTICED "hi\n", NOTICED "hi\n"); /* it is not at the end */
    left("hi\n" DASHES "of the program's own\n" DASHES NOTICED,
         "hi\n" DASHES "of the program's own\n" DASHES);
    trp_log_drop_banners("/nowhere/0.log");
}

TEST("banners of a large log are cut off")
{
    GString *log = g_string_new(NULL);
    for (int i = 0; i < 2000; i++)
        g_string_append_printf(log, "line %d\n", i);
    g_autofree char *wanted = g_strdup(log->str);
    g_string_append(log, ABORTED NOTICED);
    left(log->str, wanted);
    g_string_free(log, TRUE);
}

TEST("the last line with something in it")
{
    check("", NULL);
    check("\n \n", NULL);
    check("one\ntwo\n", "two");
    check("one\n  two", "two");
    check("one\n\n\n", "one");
    check("one\ntwo \033[1m\xc3\xa9\n", "two  [1m\xc3\xa9");
    check("1234567890123456789012345678901\n", "1234567890123456789012345678901");
    check("12345678901234567890123456789012\n", NULL);
}

TEST("what mpirun says is passed over")
{
    check("no licence\n" DASHES "Primary job terminated\n" DASHES DASHES
          "mpirun detected\n\n  Exit code: 3\n" DASHES,
          "no licence");
    check(DASHES "mpirun noticed\n" DASHES, NULL);
    check("-- a list\n", "-- a list");
}

TEST("only the end of a large log is read")
{
    GString *log = g_string_new(NULL);
    for (int i = 0; i < 100000; i++)
        g_string_append_printf(log, "line %d\n", i);
    check(log->str, "line 99999");
    g_string_assign(log, "x\n");
    for (int i = 0; i < 100000; i++)
        g_string_append_c(log, 'y');
    check(log->str, NULL);
    g_string_free(log, TRUE);
}

TEST("a log that cannot be read says nothing")
{
    char line[8];
    g_assert_false(trp_log_last_line("/nowhere/0.log", line, sizeof line));
    g_assert_false(trp_log_last_line("/", line, sizeof line));
}
