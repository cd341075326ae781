/* Processes and shared memory of a job that is over, on this machine's own kernel. */
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/strays.h"

enum { ALICE = 59021, BOB = 59022, JOB = 1999999999 };

static const struct trp_node_job job = {.id = JOB, .uid = ALICE, .gid = ALICE};
static char slurm[128]; /* our own "/slurm_…" of a hierarchy */

static bool needs_root(void)
{
    if (geteuid() != 0)
        g_test_skip("needs root");
    return geteuid() != 0;
}

static void become(uid_t uid)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Nobody writes into it, and only this process could: it is at its end when the test is
 * over, however that came. All processes of the test end with it. */
static int test_runs[2];

static bool is_over(int timeout_ms)
{
    struct pollfd end = {.fd = test_runs[0], .events = POLLIN};
    return poll(&end, 1, timeout_ms) > 0;
}

static void join(const char *group)
{
    char *path = g_strdup_printf("%s/cgroup.procs", group);
    FILE *f = fopen(path, "we");
    if (!f || fprintf(f, "%d", (int)getpid()) < 0 || fclose(f) != 0)
        _exit(1);
    g_free(path);
}

/* A process of a user, in a group of the hierarchy ("": where we are). It is there and
 * the user's when this returns. */
static pid_t start(uid_t uid, const char *group, bool breeds)
{
    int ready[2];
    char byte;
    g_assert_cmpint(pipe(ready), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(test_runs[1]);
        if (*group)
            join(group);
        if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        close(ready[0]);
        close(ready[1]);
        while (breeds) { /* a child takes over, faster than anybody looks */
            pid_t next = fork();
            if (next > 0 || is_over(0))
                _exit(0);
            setsid();
            usleep(200);
        }
        is_over(-1);
        _exit(0);
    }
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
    return pid;
}

static bool lives(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static bool dies(pid_t pid)
{
    while (lives(pid))
        usleep(1000);
    return kill(pid, 0) != 0;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A process that waits for the end of the test and removes the groups then. */
static pid_t start_sweeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        close(test_runs[1]);
        dup2(test_runs[0], STDIN_FILENO);
        execl(
            "/bin/sh", "sh", "-c",
            "cat; for i in $(seq 200); do find \"$0\" -depth -type d -exec rmdir {} + "
            "2>/dev/null && exit 0; sleep 0.1; done; exit 1",
            slurm, NULL);
        _exit(1);
    }
    return pid;
}

/* In whichever hierarchy a group can be made. */
static bool make_groups(void)
{
    static const char *const tops[] = {"/sys/fs/cgroup/freezer",
                                       "/sys/fs/cgroup/memory",
                                       "/sys/fs/cgroup/system.slice"};
    for (size_t i = 0; i < G_N_ELEMENTS(tops); i++) {
        bool v2 = i == G_N_ELEMENTS(tops) - 1;
        snprintf(slurm, sizeof slurm, "%s/%s%d%s", tops[i], v2 ? "t" : "slurm_t",
                 (int)getpid(), v2 ? "_slurmstepd.scope" : "");
        char *below =
            v2 ? g_strdup_printf("%s/job_%u/step_0/task_0", slurm, job.id)
               : g_strdup_printf("%s/uid_%u/job_%u/step_0", slurm, ALICE, job.id);
        bool made =
            access(tops[i], W_OK) == 0 && g_mkdir_with_parents(below, 0755) == 0;
        g_free(below);
        if (made)
            return true;
    }
    return false;
}

static char *group_of(uint32_t id, const char *step)
{
    bool v2 = strstr(slurm, "slurmstepd.scope");
    char *path = v2 ? g_strdup_printf("%s/job_%u/%s", slurm, id, step)
                    : g_strdup_printf("%s/uid_%u/job_%u/%s", slurm, ALICE, id, step);
    g_assert_cmpint(g_mkdir_with_parents(path, 0755), ==, 0);
    return path;
}

static void test_kill(void)
{
    if (needs_root())
        return;
    if (!make_groups()) {
        g_test_skip("no control group can be made");
        return;
    }
    int status;
    g_assert_cmpint(pipe2(test_runs, O_CLOEXEC), ==, 0);
    pid_t sweeper = start_sweeper();
    g_assert_false(trp_strays_any(&job));
    trp_strays_kill(&job);
    /* Its number begins with ours. */
    struct trp_node_job longer = {.id = JOB / 10, .uid = ALICE, .gid = ALICE};
    char *inner = group_of(JOB, "step_0"), *other = group_of(JOB + 1, "step_0");
    char *shorter = group_of(JOB / 10, "step_0");
    pid_t a = start(ALICE, inner, false), b = start(ALICE, other, false);
    pid_t c = start(ALICE, "", false), d = start(BOB, inner, false);
    pid_t e = start(ALICE, shorter, false), g = start(0, inner, false);
    pid_t f = start(ALICE, inner, true);
    g_assert_true(trp_strays_any(&longer));
    waitpid(f, NULL, 0); /* its descendants live on */
    usleep(20000);
    g_assert_true(trp_strays_any(&job));
    trp_strays_kill(&job);
    g_assert_true(dies(a));
    usleep(20000);
    g_assert_true(lives(b)); /* of her other job */
    g_assert_true(lives(c)); /* of no job */
    g_assert_true(lives(d)); /* not hers: how it came there is not ours to know */
    g_assert_true(lives(e));
    g_assert_true(lives(g)); /* root's, as a slurmstepd that is about to end */
    end(d);
    end(g);
    g_assert_false(trp_strays_any(&job)); /* those that bred, too */
    end(b);
    end(c);
    end(e);
    g_free(inner);
    g_free(other);
    g_free(shorter);
    close(test_runs[1]);
    close(test_runs[0]);
    g_assert_cmpint(waitpid(sweeper, &status, 0), ==, sweeper);
    g_assert_cmpint(status, ==, 0);
}

/* ---- shared memory ---- */

static char folder[] = "/dev/shm/test-strays-XXXXXX";

static void put(uid_t uid, const char *name)
{
    char *path = g_strdup_printf("%s/%s", folder, name);
    g_assert_true(g_file_set_contents(path, "segment", -1, NULL));
    g_assert_cmpint(chown(path, uid, uid), ==, 0);
    g_free(path);
}

static bool there(const char *name)
{
    char *path = g_strdup_printf("%s/%s", folder, name);
    bool is = access(path, F_OK) == 0;
    g_free(path);
    return is;
}

/* A process that has a segment mapped, or open. */
static pid_t use(uid_t uid, const char *name, bool mapped)
{
    int pipes[2];
    char byte;
    g_assert_cmpint(pipe(pipes), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        become(uid);
        char *path = g_strdup_printf("%s/%s", folder, name);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 ||
            (mapped && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED))
            _exit(1);
        if (mapped)
            close(fd);
        if (write(pipes[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(pipes[1]);
    g_assert_cmpint(read(pipes[0], &byte, 1), ==, 1);
    close(pipes[0]);
    return pid;
}

static void test_shared_memory(void)
{
    if (needs_root())
        return;
    g_assert_nonnull(mkdtemp(folder));
    g_assert_cmpint(chmod(folder, 01777), ==, 0);
    static const char *const names[] = {"vader_segment.n1.1.abc.0",
                                        "vader_segment.n1.1.abc.1",
                                        "vader_segment.n1.1.abc.2",
                                        "osc_rdma.n1.x",
                                        "dataset.bin",
                                        "sem.mine"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        put(ALICE, names[i]);
    put(BOB, "vader_segment.n1.2.abc.0");
    char *path = g_strdup_printf("%s/vader_segment.link", folder);
    g_assert_cmpint(symlink("dataset.bin", path), ==, 0);
    g_assert_cmpint(lchown(path, ALICE, ALICE), ==, 0);
    pid_t a = use(ALICE, names[0], true), b = use(ALICE, names[1], false);
    g_assert_cmpuint(trp_shared_memory_remove(folder, ALICE, ALICE), ==, 2);
    g_assert_true(there(names[0]));
    g_assert_true(there(names[1]));
    g_assert_false(there(names[2]));
    g_assert_false(there(names[3]));
    g_assert_true(there(names[4]));
    g_assert_true(there(names[5]));
    g_assert_true(there("vader_segment.n1.2.abc.0"));
    g_assert_cmpint(unlink(path), ==, 0);
    end(a);
    end(b);
    g_assert_cmpuint(trp_shared_memory_remove(folder, ALICE, ALICE), ==, 2);
    g_assert_false(there(names[0]));
    char *command = g_strdup_printf("rm -r %s", folder);
    g_assert_cmpint(system(command), ==, 0); /* NOLINT(cert-env33-c) */
    g_free(command);
    g_free(path);
    g_assert_cmpuint(trp_shared_memory_remove(folder, ALICE, ALICE), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/strays/processes of the job and no others", test_kill);
    g_test_add_func("/strays/shared memory that nobody uses", test_shared_memory);
    return g_test_run();
}
