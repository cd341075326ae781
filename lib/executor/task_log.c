/*
 * The logs of tasks: TASK[.sN].ATTEMPT.{out,err}, of a gang's ranks with RANK behind.
 *
 * Both are made when an attempt starts, since the command writes to them itself, and
 * removed at its end when they are empty: most commands say nothing on one of them.
 * Rejected: pipes, or files without a name that get one later; what a task has printed
 * would be lost with its spawner, and nobody could follow it.
 *
 * Ranks write on other nodes. A file is opened before it is judged, since only that
 * asks a server of NFS how large it is now.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/spawner_internal.h"
#include "os/held.h"

bool trp_log_prefix(char *buf, size_t size, const struct trp_command *c,
                    uint32_t stage_attempt, uint32_t task, uint32_t number)
{
    int n = stage_attempt ? snprintf(buf, size, "%s/%u.s%u.%u", c->log_dir, task,
                                     stage_attempt, number)
                          : snprintf(buf, size, "%s/%u.%u", c->log_dir, task, number);
    return n > 0 && (size_t)n < size;
}

int trp_log_open(const char *path)
{
    struct stat st;
    int fd = trp_held_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_mode & 0777) != 0600)
        fchmod(fd, 0600);
    return fd;
}

static void drop_empty(const char *prefix, const char *suffix)
{
    char path[4400];
    struct stat st;
    snprintf(path, sizeof path, "%s.%s", prefix, suffix);
    int fd = trp_held_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        trp_held_unlink(path, 0);
    close(fd);
}

void trp_logs_drop_empty(const struct trp_running *r)
{
    char prefix[4352], rank[4370];
    if (!r->stage ||
        !trp_log_prefix(prefix, sizeof prefix, &r->stage->command,
                        r->stage->message.stage_attempt, r->task, r->number))
        return;
    drop_empty(prefix, "out");
    drop_empty(prefix, "err");
    for (uint32_t i = 0; i < r->ranks; i++) {
        snprintf(rank, sizeof rank, "%s.%u", prefix, i);
        drop_empty(rank, "out");
        drop_empty(rank, "err");
    }
}
