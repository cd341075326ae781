/*
 * The spawner process: one thread, one poll, no timer while nothing runs.
 *
 * Everything it waits for is a descriptor (its parent's socket, a signalfd for SIGCHLD)
 * or the next of its timers. Deaths are taken before frames, so that an end leaves
 * before the next start makes the process wait for an exec. Nothing here blocks: what
 * cannot be sent stays in a buffer.
 *
 * All signals are blocked and default: whoever stops the parent decides, and commands
 * inherit nothing. It leaves the parent's session, because mpirun kills its children's
 * process groups and the spawner has to outlive that by some milliseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "executor/spawner_internal.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "os/title.h"

enum { READ_SIZE = 64 * 1024, HOLD_NS = 5000000, KEPT = 34 };

/* ---- becoming the spawner -------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* All but stdio, these two and the run's folder. */
static void close_others(int a, int b)
{
    int kept[KEPT] = {a, b};
    size_t n = 2 + trp_held_descriptors(kept + 2, KEPT - 2);
    unsigned from = 3;
    qsort(kept, n, sizeof *kept, by_number);
    for (size_t i = 0; i < n; i++) {
        if (kept[i] < (int)from)
            continue;
        if (kept[i] > (int)from)
            close_range(from, (unsigned)kept[i] - 1, 0);
        from = (unsigned)kept[i] + 1;
    }
    close_range(from, ~0U, 0);
}

static bool take_descriptors(struct trp_keeper *k)
{
    close_others(k->socket, k->last_words.fd);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return false;
    for (int fd = 0; fd < 3; fd++)
        if (null != fd && dup2(null, fd) < 0)
            return false;
    if (null > 2)
        close(null);
    else
        fcntl(null, F_SETFD, 0);
    if (k->last_words.fd >= 0)
        fcntl(k->last_words.fd, F_SETFD, FD_CLOEXEC);
    return true;
}

static bool take_signals(struct trp_keeper *k)
{
    sigset_t set;
    sigfillset(&set);
    if (sigprocmask(SIG_SETMASK, &set, NULL) != 0)
        return false;
    for (int sig = 1; sig < NSIG; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            signal(sig, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    k->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return k->signals >= 0;
}

/* The scratch root: a new folder of our own below what the site or the run gives. Where
 * executor and spawner are killed at one blow, a later run removes it. */
static void make_scratch(struct trp_keeper *k)
{
    int made = k->config.scratch[0] ? trp_folder_make(k->config.scratch, NULL) : -1;
    char *path = k->shared->scratch;
    atomic_store(&k->shared->made_scratch_parent, made > 0);
    if (made < 0)
        return;
    k->scratch = trp_private_folder_in(k->config.scratch, k->config.run_dir, path,
                                       TRP_SCRATCH_PATH);
    if (k->scratch >= 0 && trp_held_folder(path, NULL, NULL) < 0) {
        close(k->scratch);
        k->scratch = -1;
    }
    if (k->scratch >= 0)
        k->scratch_path = path;
}

void trp_scratch_remove(struct trp_spawner_shared *shared, const char *root,
                        size_t budget)
{
    const char *name = strrchr(shared->scratch, '/');
    int at = name ? trp_held_open(root, O_RDONLY | O_DIRECTORY, 0) : -1;
    if (at >= 0) {
        trp_private_folder_remove_at(at, name + 1, &budget);
        close(at);
    }
    if (atomic_load(&shared->made_scratch_parent))
        trp_held_unlink(root, AT_REMOVEDIR);
}

static void open_oom_score(struct trp_keeper *k)
{
    k->oom_score = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t n = k->oom_score < 0
                    ? 0
                    : read(k->oom_score, k->own_oom_score, sizeof k->own_oom_score - 1);
    if (n > 0 || k->oom_score < 0)
        return;
    close(k->oom_score);
    k->oom_score = -1;
}

/* What only commands need. */
static void prepare_commands(struct trp_keeper *k)
{
    char path[64];
    if (k->prepared)
        return;
    k->prepared = true;
    open_oom_score(k);
    k->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)k->self);
    k->children = open(path, O_RDONLY | O_CLOEXEC);
    make_scratch(k);
}

static bool set_up(struct trp_keeper *k)
{
    k->self = getpid();
    k->oom_score = k->loadavg = k->children = k->scratch = -1;
    setsid();
    trp_process_title("troupe: spawner %s", k->config.name);
    if (!take_descriptors(k) || !take_signals(k))
        return false;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    /* Stopped while the parent dies, it goes on and ends what it has started. */
    prctl(PR_SET_PDEATHSIG, SIGCONT);
    trp_memory_open(k);
    if (!k->config.for_functions)
        prepare_commands(k);
    return true;
}

/* ---- frames ---------------------------------------------------------------------- */

static bool take_start(struct trp_keeper *k, struct trp_view v)
{
    struct trp_gang_call gang = {.ranks = trp_get_u32(&v)};
    gang.by_srun = trp_get_u8(&v);
    gang.start_limit_ns = trp_get_s64(&v);
    uint32_t count;
    char *program = trp_get_text(&v), *launcher[TRP_LAUNCHER_WORDS];
    uint32_t nlauncher = trp_get_count(&v, 4), n = 0;
    struct trp_launch launch;
    struct trp_view launches;
    while (n < nlauncher && n < TRP_LAUNCHER_WORDS && (launcher[n] = trp_get_text(&v)))
        n++;
    gang.program = program;
    gang.launcher = launcher;
    gang.nlauncher = n;
    bool good = !v.bad && program && n == nlauncher &&
                trp_launch_open(v.at, (size_t)(v.end - v.at), &launches, &count) == 0 &&
                trp_launch_next(&launches, &launch) == 1;
    if (good)
        trp_keeper_start(k, &launch, &gang);
    while (n > 0)
        free(launcher[--n]);
    free(program);
    return good;
}

/* Takes an attempt out of the queue it is in; false: it is in none. */
static bool unqueue(struct trp_keeper *k, uint64_t attempt, enum trp_end_status status)
{
    struct trp_command_stage *s, *next;
    struct trp_task_entry t;
    HASH_ITER(hh, k->stages, s, next) {
        if (!trp_task_ring_take(&s->places.queued, (trp_attempt_id){attempt}, &t))
            continue;
        struct trp_end end = {.attempt = t.attempt, .status = (uint8_t)status};
        trp_keeper_report(k, &end);
        trp_task_entry_free(&t);
        return true;
    }
    return false;
}

static void take_kill(struct trp_keeper *k, uint64_t attempt, bool soft)
{
    if (unqueue(k, attempt, TRP_END_KILLED))
        return;
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state != TRP_RUN_FREE && k->running[i].attempt.n == attempt)
            trp_running_kill(&k->running[i], TRP_END_KILLED, soft);
}

static bool take_frame(struct trp_keeper *k, const uint8_t *p, size_t n)
{
    struct trp_view v = trp_view_of(p, n);
    struct trp_command_stage *stage;
    uint64_t attempt;
    switch (trp_get_u8(&v)) {
    case TRP_FRAME_STAGE:
        prepare_commands(k);
        /* A stage that cannot be kept refuses its attempts, with a text. */
        return trp_command_stage_add(k, v.at, (size_t)(v.end - v.at)) != TRP_EPROTO;
    case TRP_FRAME_FORGET:
        stage = trp_command_stage_find(k, trp_get_u32(&v));
        if (stage)
            trp_command_stage_forget(k, stage);
        return trp_view_end(&v);
    case TRP_FRAME_START:
        return take_start(k, v);
    case TRP_FRAME_KILL:
        attempt = trp_get_u64(&v);
        take_kill(k, attempt, trp_get_u8(&v) != 0);
        return trp_view_end(&v);
    case TRP_FRAME_RECALL:
        unqueue(k, trp_get_u64(&v), TRP_END_RECALLED);
        return trp_view_end(&v);
    case TRP_FRAME_WATCH:
        trp_memory_begin(k, NULL);
        return true;
    case TRP_FRAME_PING:
        atomic_fetch_add(&k->shared->answered, 1);
        return true;
    case TRP_FRAME_CLOSE:
        trp_keeper_end(k, false);
    default:
        return false;
    }
}

/* Takes the whole frames that are there. A broken one is like the parent's death. */
static void take_frames(struct trp_keeper *k)
{
    for (;;) {
        size_t left = k->in.size - k->in_taken;
        const uint8_t *at = k->in.data + k->in_taken;
        if (left < TRP_FRAME_HEAD)
            break;
        size_t size =
            at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
        if (left - TRP_FRAME_HEAD < size)
            break;
        k->in_taken += TRP_FRAME_HEAD + size;
        if (!take_frame(k, at + TRP_FRAME_HEAD, size))
            trp_keeper_end(k, true);
    }
    size_t left = k->in.size - k->in_taken;
    if (left && k->in_taken)
        memmove(k->in.data, k->in.data + k->in_taken, left);
    k->in.size = left;
    k->in_taken = 0;
    if (left == 0 && k->in.capacity > (size_t)16 * READ_SIZE)
        trp_buf_free(&k->in); /* a large environment went through: stay small */
}

static void receive(struct trp_keeper *k)
{
    uint8_t *to = trp_buf_reserve(&k->in, READ_SIZE);
    if (!to)
        trp_keeper_end(k, true);
    ssize_t n = recv(k->socket, to, READ_SIZE, MSG_DONTWAIT);
    k->in.size -= READ_SIZE - (size_t)(n > 0 ? n : 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        trp_keeper_end(k, true);
    if (n > 0)
        take_frames(k);
}

/* Ends of commands that went well may wait a little while others are queued behind
 * them: parent and driver are then woken once for several. Not when they wait for the
 * driver: no more are held than are queued, and none for longer than HOLD_NS. */
static bool may_hold(struct trp_keeper *k)
{
    uint32_t queued = 0;
    struct trp_command_stage *s, *next;
    if (k->urgent)
        return false;
    HASH_ITER(hh, k->stages, s, next)
        queued += s->places.queued.count;
    return k->held < queued && trp_clock_ns() - k->held_since < HOLD_NS;
}

/* Makes one frame of the ends of this turn and sends what the socket takes. */
static void send_ends(struct trp_keeper *k)
{
    if (k->ends.size && !may_hold(k)) {
        size_t size;
        trp_batch_finish(&k->ends);
        size = k->ends.size + 1;
        trp_put_u32(&k->out, (uint32_t)size);
        trp_put_u8(&k->out, TRP_FRAME_ENDS);
        trp_put_raw(&k->out, k->ends.data, k->ends.size);
        if (k->ends.failed || k->out.failed)
            trp_keeper_end(k, true); /* an end that is never told would hang the run */
        trp_buf_clear(&k->ends);
        k->held = 0;
        k->urgent = false;
    }
    while (k->out_sent < k->out.size) {
        ssize_t n = send(k->socket, k->out.data + k->out_sent,
                         k->out.size - k->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* full, or gone: the next read will tell */
        k->out_sent += (size_t)n;
    }
    trp_buf_clear(&k->out);
    k->out_sent = 0;
}

static int wait_until(int64_t next)
{
    if (next == INT64_MAX)
        return -1;
    int64_t left = next - trp_clock_ns();
    return left <= 0                       ? 0
           : left > INT64_C(3600000000000) ? 3600000
                                           : (int)(left / 1000000) + 1;
}

_Noreturn void trp_keeper_main(struct trp_keeper *k)
{
    if (!set_up(k))
        _exit(1);
    for (;;) {
        send_ends(k);
        struct pollfd p[] = {
            {.fd = k->socket,  .events = POLLIN},
            {.fd = k->signals, .events = POLLIN},
        };
        if (k->out.size)
            p[0].events |= POLLOUT;
        int64_t next = trp_keeper_next_timer(k);
        if (k->ends.size && k->held_since + HOLD_NS < next)
            next = k->held_since + HOLD_NS;
        poll(p, 2, wait_until(next));
        if (p[1].revents) {
            struct signalfd_siginfo info;
            ssize_t n = read(k->signals, &info, sizeof info);
            (void)n; /* only empties it */
            trp_keeper_reap(k);
            send_ends(k);
        }
        if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
            receive(k);
        if (next != INT64_MAX)
            trp_keeper_timers(k, trp_clock_ns());
    }
}
