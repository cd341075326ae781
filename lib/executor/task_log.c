/*
 * The logs of tasks: TASK[.sN].ATTEMPT.{out,err}, of a gang's ranks with RANK behind.
 *
 * Both are made when an attempt starts, since the command writes to them itself, and
 * removed at its end when they are empty: most commands say nothing on one of them.
 * Rejected: pipes, or files without a name that get one later; what a task has printed
 * would be lost with its spawner, and nobody could follow it.
 *
 * With `task_logs: stage` what an attempt printed is then put behind the stage's stream
 * as a frame of its own, and its line into the index behind that (events/task_logs.h);
 * what is larger than FRAME_MAX stays a file, as does what cannot be written. An executor
 * has a stream of its own: nothing else appends to it, on whatever file system. A gang's
 * ranks keep their files.
 *
 * The stage's folder stays open while attempts of it run, and of some stages longer: to
 * go there by its path for each call took 20 calls a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "executor/spawner_internal.h"
#include "os/held.h"
#include "os/whole_file.h"

enum { FRAME_MAX = 8 << 20, LEVEL = 1, FOLDERS_KEPT = 16 };

bool trp_log_prefix(char *buf, size_t size, const struct trp_command *c,
                    uint32_t stage_attempt, uint32_t task, uint32_t number)
{
    int n = stage_attempt ? snprintf(buf, size, "%s/%u.s%u.%u", c->log_dir, task,
                                     stage_attempt, number)
                          : snprintf(buf, size, "%s/%u.%u", c->log_dir, task, number);
    return n > 0 && (size_t)n < size;
}

enum { NEW_LOG = O_WRONLY | O_CREAT | O_TRUNC };

/* For its owner alone whatever the umask says. */
static int own_log(int fd)
{
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_mode & 0777) != 0600)
        fchmod(fd, 0600);
    return fd;
}

int trp_log_open(const char *path)
{
    return own_log(trp_held_open(path, NEW_LOG, 0600));
}

/* ---- the folder of a stage ------------------------------------------------------- */

/* Most often the driver has made it. */
static int open_folder(struct trp_keeper *k, struct trp_command_stage *s)
{
    const char *path = s->command.log_dir;
    if (s->logs >= 0)
        return s->logs;
    s->logs = trp_held_open(path, O_PATH | O_DIRECTORY, 0);
    if (s->logs < 0 && errno == ENOENT && trp_held_mkdir(path, 0700) == 0)
        s->logs = trp_held_open(path, O_PATH | O_DIRECTORY, 0);
    k->log_folders += s->logs >= 0;
    return s->logs;
}

void trp_logs_close(struct trp_keeper *k, struct trp_command_stage *s)
{
    if (s->logs < 0)
        return;
    close(s->logs);
    s->logs = -1;
    k->log_folders--;
}

void trp_logs_rest(struct trp_keeper *k, struct trp_command_stage *s)
{
    if (s->attempts == 0 && k->log_folders > FOLDERS_KEPT)
        trp_logs_close(k, s);
}

static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

int trp_stage_log_open(struct trp_keeper *k, struct trp_command_stage *s,
                       const char *path)
{
    int fd = -1;
    for (int i = 0; i < 2 && fd < 0; i++) {
        if (open_folder(k, s) < 0)
            return -1;
        fd = openat(s->logs, name_of(path), NEW_LOG | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != ENOENT)
            break;
        if (fd < 0) /* somebody has removed it, and perhaps made another */
            trp_logs_close(k, s);
    }
    return own_log(fd);
}

/* ---- the stream of a stage -------------------------------------------------------- */

static int open_part(const struct trp_keeper *k, const struct trp_command *c,
                     const char *ending)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/stream.%u.%s", c->log_dir, k->config.executor,
             ending);
    return trp_held_open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
}

/* Opens what is not open yet. A line that a crash has cut off gets its end. */
static bool open_stream(const struct trp_keeper *k, struct trp_command_stage *s)
{
    struct stat st;
    char last = '\n';
    if (s->stream >= 0)
        return true;
    s->stream = open_part(k, &s->command, "zst");
    s->index = open_part(k, &s->command, "index");
    bool good = s->stream >= 0 && s->index >= 0 && fstat(s->stream, &st) == 0;
    if (good)
        s->stream_size = (uint64_t)st.st_size;
    if (good && fstat(s->index, &st) == 0 && st.st_size > 0)
        good = pread(s->index, &last, 1, st.st_size - 1) == 1 &&
               (last == '\n' || write(s->index, "\n", 1) == 1);
    if (!good)
        trp_stage_stream_close(s);
    return good;
}

void trp_stage_stream_close(struct trp_command_stage *s)
{
    if (s->stream >= 0)
        close(s->stream);
    if (s->index >= 0)
        close(s->index);
    s->stream = s->index = -1;
}

/* Puts the file behind the stream; false: it stays. */
static bool put_frame(struct trp_keeper *k, struct trp_command_stage *s, int fd,
                      size_t size, const char *name)
{
    char line[128];
    size_t capacity = ZSTD_compressBound(size);
    char *text = malloc(size + capacity), *frame = text + size;
    if (!k->zstd)
        k->zstd = ZSTD_createCCtx();
    if (!text || !k->zstd || !open_stream(k, s) ||
        pread(fd, text, size, 0) != (ssize_t)size) {
        free(text);
        return false;
    }
    size_t n = ZSTD_compressCCtx(k->zstd, frame, capacity, text, size, LEVEL);
    bool good = !ZSTD_isError(n) && trp_file_write(s->stream, frame, n) == 0;
    int length = snprintf(line, sizeof line, "%s %" PRIu64 " %zu %zu\n", name,
                          s->stream_size, n, size);
    free(text);
    if (good && trp_file_write(s->index, line, (size_t)length) == 0) {
        s->stream_size += n;
        return true;
    }
    trp_stage_stream_close(s); /* the next one looks how long it is now */
    return false;
}

/* ---- the end of an attempt -------------------------------------------------------- */

/* `framed`: the file may be put behind the stream. */
static void settle_log(struct trp_keeper *k, struct trp_command_stage *s,
                       const char *prefix, const char *suffix, bool framed)
{
    char path[4400];
    struct stat st;
    snprintf(path, sizeof path, "%s.%s", prefix, suffix);
    const char *name = name_of(path);
    if (open_folder(k, s) < 0 || fstatat(s->logs, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(st.st_mode))
        return;
    bool goes = st.st_size == 0;
    if (!goes && framed && st.st_size <= FRAME_MAX) {
        int fd = openat(s->logs, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        goes = fd >= 0 && put_frame(k, s, fd, (size_t)st.st_size, name);
        if (fd >= 0)
            close(fd);
    }
    if (goes)
        unlinkat(s->logs, name, 0);
}

/* Of a rank on another node: only a file that is opened is one of which a server of NFS
 * is asked how large it is now. */
static void settle_rank_log(const char *prefix, uint32_t rank, const char *suffix)
{
    char path[4400];
    struct stat st;
    snprintf(path, sizeof path, "%s.%u.%s", prefix, rank, suffix);
    int fd = trp_held_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        trp_held_unlink(path, 0);
    close(fd);
}

void trp_logs_settle(struct trp_keeper *k, const struct trp_running *r)
{
    char prefix[4352];
    struct trp_command_stage *s = r->stage;
    if (!s || !trp_log_prefix(prefix, sizeof prefix, &s->command,
                              trp_stage_attempt_of(&s->message, r->number), r->task,
                              r->number))
        return;
    bool framed = s->command.one_log && !r->gang;
    settle_log(k, s, prefix, "out", framed);
    settle_log(k, s, prefix, "err", framed);
    for (uint32_t i = 0; i < r->ranks; i++) {
        settle_rank_log(prefix, i, "out");
        settle_rank_log(prefix, i, "err");
    }
}
