/*
 * A process is of a job when it is in a control group that Slurm made for the job: only
 * root can put a process elsewhere. It is killed by a descriptor (pidfd) that was
 * opened before its group was read, so that a number that was given anew is nobody's
 * death. Groups that are found by the path alone could be made by a user with a
 * delegated subtree, for processes of that user alone; and it is these that are killed.
 *
 * Not looked for: processes outside of the groups (of logins, cron, other jobs).
 */
#include "plugin/strays.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "plugin/as_user.h"

enum { LEVELS = 6, KILL_S = 5, LOOK_NS = 5000000 };

typedef bool pid_fn(pid_t pid, const struct trp_node_job *job);

/* Calls f for the processes of one group; the number of those it says true of. */
static unsigned each_in_group(int group, const struct trp_node_job *job, pid_fn *f)
{
    unsigned n = 0;
    int fd = openat(group, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    for (long pid; file && fscanf(file, "%ld", &pid) == 1;) /* NOLINT(cert-err34-c) */
        n += f((pid_t)pid, job);
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    return n;
}

/* The same for the groups below it, too. */
static unsigned each_below(int at, const char *name, int levels,
                           const struct trp_node_job *job, pid_fn *f)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    unsigned n = 0;
    if (d)
        n = each_in_group(fd, job, f);
    else if (fd >= 0)
        close(fd);
    for (struct dirent *e; d && levels > 0 && (e = readdir(d));) {
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            n += each_below(fd, e->d_name, levels - 1, job, f);
    }
    if (d)
        closedir(d);
    return n;
}

/* Where Slurm makes them: with version 1 all of a job is in freezer (proctrack/cgroup)
 * or memory (task/cgroup); other hierarchies are not worth the time. With version 2
 * they have the job's unique name from 26.05 on. */
static unsigned each_process(const struct trp_node_job *job, pid_fn *f)
{
    char pattern[96];
    unsigned n = 0;
    glob_t found = {0};
    const unsigned uid = job->uid, id = job->id;
    snprintf(pattern, sizeof pattern, "/sys/fs/cgroup/freezer/slurm*/uid_%u/job_%u",
             uid, id);
    glob(pattern, GLOB_NOSORT, NULL, &found);
    snprintf(pattern, sizeof pattern, "/sys/fs/cgroup/memory/slurm*/uid_%u/job_%u", uid,
             id);
    glob(pattern, GLOB_NOSORT | GLOB_APPEND, NULL, &found);
    snprintf(pattern, sizeof pattern,
             "/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_%u", id);
    glob(pattern, GLOB_NOSORT | GLOB_APPEND, NULL, &found);
    snprintf(pattern, sizeof pattern,
             "/sys/fs/cgroup/system.slice/*slurmstepd.scope/%s", job->sluid);
    if (*job->sluid)
        glob(pattern, GLOB_NOSORT | GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        n += each_below(AT_FDCWD, found.gl_pathv[i], LEVELS, job, f);
    globfree(&found);
    return n;
}

static bool count(pid_t pid, const struct trp_node_job *job)
{
    (void)pid, (void)job;
    return true;
}

bool trp_strays_any(const struct trp_node_job *job)
{
    return each_process(job, count) > 0;
}

/* Does a line of /proc/PID/cgroup end in this group or below it? */
static bool is_below(const char *line, const char *group)
{
    const char *at = strstr(line, group), *end = at ? at + strlen(group) : NULL;
    return end && (*end == '/' || *end == '\n' || *end == '\0');
}

static bool names_job(const char *line, const struct trp_node_job *job)
{
    char group[64];
    snprintf(group, sizeof group, "/uid_%u/job_%u", (unsigned)job->uid, job->id);
    if (is_below(line, group))
        return true;
    snprintf(group, sizeof group, "slurmstepd.scope/job_%u", job->id);
    if (is_below(line, group))
        return true;
    snprintf(group, sizeof group, "slurmstepd.scope/%s", job->sluid);
    return *job->sluid && is_below(line, group);
}

enum membership { HIDDEN /* it is gone, or not shown to this user */, OTHER, OF_JOB };

/* One that ends is in no group. */
static enum membership membership_of(pid_t pid, const struct trp_node_job *job)
{
    char path[40], line[4096];
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    FILE *f = fopen(path, "re");
    enum membership is = f ? OTHER : HIDDEN;
    while (is == OTHER && fgets(line, sizeof line, f))
        is = names_job(line, job) ? OF_JOB : OTHER;
    if (f)
        fclose(f);
    return is;
}

bool trp_process_users(int process, uid_t ret[4])
{
    char line[256];
    bool found = false;
    int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (f && !found && fgets(line, sizeof line, f))
        /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers */
        found =
            sscanf(line, "Uid: %u %u %u %u", &ret[0], &ret[1], &ret[2], &ret[3]) == 4;
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return found;
}

/* slurmstepd, which ends in the job's group, is root's and only acts as the user. */
static bool is_users(pid_t pid, uid_t uid)
{
    char path[40];
    uid_t users[4];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    int process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is = process >= 0 && trp_process_users(process, users) && users[0] == uid;
    if (process >= 0)
        close(process);
    return is;
}

/* True: look again. It is killed, or ends by itself, and may have left a child that nobody
 * has seen yet. */
static bool kill_one(pid_t pid, const struct trp_node_job *job)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    int error = fd < 0 ? errno : 0;
    bool old = error == ENOSYS; /* before Linux 5.3 */
    struct pollfd end = {.fd = fd, .events = POLLIN};
    enum membership is = membership_of(pid, job);
    bool again = is == OTHER;
    if ((fd >= 0 || old) && is == OF_JOB && is_users(pid, job->uid))
        again = (old ? kill(pid, SIGKILL)
                     : (int)syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0)) == 0;
    if (error == ESRCH || poll(&end, 1, 0) > 0) /* it is gone */
        again = true;
    if (fd >= 0)
        close(fd);
    return again;
}

static int kill_all(void *context)
{
    const struct trp_node_job *job = context;
    const int64_t until = trp_clock_ms() + INT64_C(1000) * KILL_S;
    while (each_process(job, kill_one) > 0 && trp_clock_ms() < until)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    return 0;
}

void trp_strays_kill(const struct trp_node_job *job)
{
    struct trp_node_job copy = *job;
    if (trp_strays_any(job))
        trp_as_user(job->uid, job->gid, 0, kill_all, &copy);
}
