/*
 * The process in front of an executor on its node, without Slurm: what it makes of the
 * driver's word.
 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/slurm/shared/step_folder.h"
#include "cluster/slurm/steps/step.h"
#include "executor/executor.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "os/tree.h"

#define SECOND_NS INT64_C(1000000000)

static char *folder;
static int driver_fd = -1; /* of a driver that listens: not the step's */

static void make_run(void)
{
    GError *error = NULL;
    folder = g_dir_make_tmp("troupe-test-XXXXXX", &error);
    g_assert_no_error(error);
    char *executors = g_build_filename(folder, "state", "executors", NULL);
    g_assert_cmpint(g_mkdir_with_parents(executors, 0700), ==, 0);
    g_free(executors);
}

static void remove_run(void)
{
    size_t all = SIZE_MAX;
    trp_tree_remove(AT_FDCWD, folder, &all);
    g_free(folder);
}

/* In the child: its program makes the file RUN/ran, and does `then`. */
static _Noreturn void be_step(char *job, const char *driver, const char *then, int in,
                              int out)
{
    char dashes[] = "--", shell[] = "/bin/sh", c[] = "-c";
    char *script = g_strdup_printf("touch '%s/ran'; %s", folder, then);
    char *argv[] = {job, dashes, shell, c, script, NULL};
    struct trp_executor_shape shape = {.cores = 1,
                                       .slots = 1,
                                       .sockets = 1,
                                       .network_timeout_ns = 120 * SECOND_NS,
                                       .heartbeat_ns = SECOND_NS};
    g_strlcpy(shape.driver, driver, sizeof shape.driver);
    g_strlcpy(shape.run_name, "r", sizeof shape.run_name);
    g_strlcpy(shape.run_dir, folder, sizeof shape.run_dir);
    g_strlcpy(shape.run_id, trp_held_id(folder), sizeof shape.run_id);
    g_strlcpy(shape.scratch, folder, sizeof shape.scratch);
    char *text = trp_shape_put(&shape);
    g_setenv("TROUPE_EXECUTOR", text, TRUE);
    dup2(in, 0);
    dup2(out, 1);
    close(in);
    close(out);
    _exit(trp_slurm_step_main(5, argv));
}

/* Starts a step that hears `word` and then, when `ret_in` is closed, the end of it. */
static pid_t start_open(char *job, const char *driver, const char *word,
                        const char *then, int *ret_in, int *ret_out)
{
    int in[2], out[2];
    g_assert_cmpint(pipe(in) | pipe(out), ==, 0);
    pid_t pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        close(in[1]);
        close(out[0]);
        close(driver_fd);
        be_step(job, driver, then, in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    g_assert_cmpint(write(in[1], word, strlen(word)), ==, (ssize_t)strlen(word));
    *ret_in = in[1];
    *ret_out = out[0];
    return pid;
}

/* The end comes at once. */
static pid_t start(char *job, const char *driver, const char *word, int *ret_out)
{
    int in;
    pid_t pid = start_open(job, driver, word, "exit 1", &in, ret_out);
    close(in);
    return pid;
}

/* What a step says that hears `word`; g_free. */
static char *say(const char *word)
{
    int out, status;
    GString *said = g_string_new(NULL);
    char bytes[512], job[] = "own";
    ssize_t n;
    pid_t pid = start(job, "127.0.0.1:1", word, &out);
    while ((n = read(out, bytes, sizeof bytes)) > 0)
        g_string_append_len(said, bytes, n);
    close(out);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    return g_string_free(said, FALSE);
}

static void test_go(void)
{
    make_run();
    char *said = say("go\n");
    g_assert_nonnull(strstr(said, "0 started "));
    g_assert_nonnull(strstr(said, "0 ended "));
    g_free(said);
    remove_run();
}

/* It makes no folder and starts nothing: nobody would know of either. */
static void test_end(void)
{
    make_run();
    char *ran = g_build_filename(folder, "ran", NULL);
    char *said = say("end\n");
    g_assert_nonnull(strstr(said, "0 started "));
    g_assert_null(strstr(said, "0 ending"));
    g_assert_null(strstr(said, "0 ended"));
    g_assert_false(g_file_test(ran, G_FILE_TEST_EXISTS));
    g_free(said);
    g_free(ran);
    remove_run();
}

/* There is no such host (RFC 6761): it waits for the driver, unless it is told to end.
 */
static void test_cut_off(void)
{
    char job[] = "additional";
    int out, status;
    make_run();
    pid_t pid = start(job, "driver.invalid:1", "go\n", &out);
    g_autofree char *said = g_malloc0(4096);
    for (ssize_t n = 0, all = 0; !strstr(said, "0 ended "); all += n) {
        n = read(out, said + all, (size_t)(4095 - all));
        g_assert_cmpint(n, >, 0);
    }
    g_usleep(500000);
    g_assert_cmpint(waitpid(pid, &status, WNOHANG), ==, 0);
    kill(pid, SIGTERM);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    close(out);
    remove_run();
}

/* A file of the run in the folder that its executors on a host share. */
static char *make_run_files(void)
{
    static const uint8_t key[TRP_RUN_FILES_KEY] = {0};
    struct trp_run_files files;
    char owner[TRP_PRIVATE_OWNER];
    trp_error err;
    trp_slurm_step_owner(trp_held_id(folder), TRP_NONE, owner);
    g_assert_cmpint(trp_run_files_enter(folder, key, owner, folder, &files, &err), ==,
                    0);
    char *path = g_strdup(files.path);
    trp_run_files_leave(&files, false);
    return path;
}

static bool has_begun(void)
{
    char *ran = g_build_filename(folder, "ran", NULL);
    bool has = g_file_test(ran, G_FILE_TEST_EXISTS);
    g_free(ran);
    return has;
}

/* The kernel closes what a killed driver had open in any order. */
static void test_dying_driver(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    char job[] = "own", driver[32];
    int in, out, status;
    driver_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(driver_fd, (struct sockaddr *)&at, n), ==, 0);
    g_assert_cmpint(listen(driver_fd, 100), ==, 0);
    g_assert_cmpint(getsockname(driver_fd, (struct sockaddr *)&at, &n), ==, 0);
    g_snprintf(driver, sizeof driver, "127.0.0.1:%u", ntohs(at.sin_port));
    make_run();
    char *files = make_run_files();
    pid_t pid = start_open(job, driver, "go\n", "exec sleep 60", &in, &out);
    while (!has_begun())
        g_usleep(10000);
    close(in);
    g_usleep(300000);
    close(driver_fd);
    driver_fd = -1;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_false(g_file_test(files, G_FILE_TEST_EXISTS));
    close(out);
    g_free(files);
    remove_run();
}

static void test_killed_with_driver(void)
{
    char job[] = "own", kill_it[] = "kill -9 $$";
    int in, out, status;
    make_run();
    char *files = make_run_files();
    pid_t pid = start_open(job, "127.0.0.1:1", "go\n", kill_it, &in, &out);
    while (!has_begun())
        g_usleep(1000);
    g_usleep(30000);
    close(in);
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_false(g_file_test(files, G_FILE_TEST_EXISTS));
    close(out);
    g_free(files);
    remove_run();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/step/it starts its program when the driver says so", test_go);
    g_test_add_func("/step/told to end before that it starts nothing", test_end);
    g_test_add_func("/step/cut off, it ends when Slurm says so", test_cut_off);
    g_test_add_func("/step/the run's files go with a driver that takes a while to die",
                    test_dying_driver);
    g_test_add_func(
        "/step/the run's files go when executor and driver are killed at once",
        test_killed_with_driver);
    return g_test_run();
}
