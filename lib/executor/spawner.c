/*
 * The parent's handle of its spawner: frames over a stream socket pair, and a block of
 * shared memory.
 *
 * Sends block: the spawner always reads and never blocks on its own sends, so a send
 * waits only while it is starting a command, or for as long as one that hangs is given
 * (spawner_watch.c). Ends are read without blocking; a short
 * read means that the socket is empty, which spares the second call.
 *
 * What runs on the parent's threads is told through the shared block, not the socket:
 * it costs a few stores a task, and what a dying parent says there is still readable
 * when the spawner sees the socket close. Only when the spawner was not sampling is it
 * woken by a frame.
 *
 * Teardown: CLOSE, then end of file within 2 s, else it is buried; then the process is
 * waited for.
 */
#include "executor/spawner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "executor/spawner_internal.h"
#include "os/clock.h"

enum {
    READ_SIZE = 64 * 1024,
    HOLD_SIZE = 64 * 1024,
    FRAME_MAX = 1 << 30,
    SEND_MS = 200
};

/* The child keeps its own copies: the parent's may lie on its stack. */
static bool keep_config(struct trp_keeper *k, const struct trp_spawner_config *config)
{
    k->config = *config;
    k->config.name = strdup(config->name ? config->name : "");
    k->config.run_name = strdup(config->run_name ? config->run_name : "");
    k->config.run_dir = strdup(config->run_dir ? config->run_dir : "");
    k->config.scratch = strdup(config->scratch ? config->scratch : "");
    k->config.cgroup = strdup(config->cgroup ? config->cgroup : "");
    return k->config.name && k->config.run_name && k->config.run_dir &&
           k->config.scratch && k->config.cgroup;
}

static bool make_token(char *token)
{
    unsigned char random[8];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return false;
    trp_hex_put(random, sizeof random, token + sprintf(token, "TROUPE_TOKEN="));
    return true;
}

static _Noreturn void be_child(const struct trp_spawner_config *config, int fd,
                               struct trp_spawner_shared *shared, const char *token,
                               pid_t parent)
{
    struct trp_keeper *k = calloc(1, sizeof *k);
    if (!k || !keep_config(k, config))
        _exit(1);
    k->socket = fd;
    k->shared = shared;
    k->parent = parent;
    k->last_words = config->last_words;
    memcpy(k->token, token, TRP_TOKEN_SIZE);
    trp_keeper_main(k);
}

int trp_spawner_fork(const struct trp_spawner_config *config, trp_spawner **ret_spawner,
                     trp_error *err)
{
    int pair[2] = {-1, -1};
    trp_spawner *s = calloc(1, sizeof *s);
    if (!s)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    struct trp_spawner_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0);
    pid_t parent = getpid(), pid = -1;
    if (shared != MAP_FAILED && make_token(s->token) &&
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0)
        pid = fork();
    if (pid == 0)
        be_child(config, pair[1], shared, s->token, parent);
    if (pid < 0) {
        int error = errno;
        if (shared != MAP_FAILED)
            munmap(shared, sizeof *shared);
        if (pair[0] >= 0) {
            close(pair[0]);
            close(pair[1]);
        }
        free(s);
        return trp_error_set(err, TRP_ESYSTEM, "cannot start a spawner: %s",
                             strerror(error));
    }
    close(pair[1]);
    s->socket = pair[0];
    s->pid = pid;
    s->shared = shared;
    s->enforces = config->memory_mib > 0 || (config->cgroup && config->cgroup[0]);
    snprintf(s->scratch, sizeof s->scratch, "%s",
             config->scratch ? config->scratch : "");
    *ret_spawner = s;
    return TRP_OK;
}

pid_t trp_spawner_pid(const trp_spawner *s)
{
    return s->pid;
}

int trp_spawner_fd(const trp_spawner *s)
{
    return s->socket;
}

static void begin_frame(trp_spawner *s, enum trp_spawner_frame kind)
{
    s->frame = s->out.size;
    trp_put_u32(&s->out, 0);
    trp_put_u8(&s->out, (uint8_t)kind);
}

static int send_all(trp_spawner *s)
{
    if (s->gone)
        return TRP_ESYSTEM;
    size_t done = 0;
    for (int64_t waited = 0; done < s->out.size;) {
        struct pollfd p = {.fd = s->socket, .events = POLLOUT};
        ssize_t n = send(s->socket, s->out.data + done, s->out.size - done,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            done += (size_t)n;
            waited = 0;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return TRP_ESYSTEM;
        } else if (poll(&p, 1, SEND_MS) == 0) {
            waited += SEND_MS * INT64_C(1000000);
            if (trp_spawner_is_lost(s, waited))
                return TRP_ESYSTEM;
        }
    }
    return TRP_OK;
}

static int send_frames(trp_spawner *s)
{
    int r = s->out.size ? send_all(s) : TRP_OK;
    trp_buf_clear(&s->out);
    return r;
}

/* Sends the frame, or keeps it for those that come with it. */
static int end_frame(trp_spawner *s)
{
    size_t size = s->out.size - s->frame - TRP_FRAME_HEAD;
    if (s->out.failed || size > FRAME_MAX) {
        int r = s->out.failed ? TRP_ENOMEM : TRP_ELIMIT;
        s->out.size = s->frame;
        s->out.failed = false;
        return r;
    }
    for (int i = 0; i < TRP_FRAME_HEAD; i++)
        s->out.data[s->frame + (size_t)i] = (uint8_t)(size >> (8 * i));
    return s->holds && s->out.size < HOLD_SIZE ? TRP_OK : send_frames(s);
}

void trp_spawner_hold(trp_spawner *s)
{
    s->holds = true;
}

int trp_spawner_release(trp_spawner *s)
{
    s->holds = false;
    return send_frames(s);
}

int trp_spawner_stage(trp_spawner *s, const void *message, size_t size)
{
    begin_frame(s, TRP_FRAME_STAGE);
    trp_put_raw(&s->out, message, size);
    return end_frame(s);
}

int trp_spawner_forget(trp_spawner *s, trp_stage_id stage)
{
    begin_frame(s, TRP_FRAME_FORGET);
    trp_put_u32(&s->out, stage.n);
    return end_frame(s);
}

int trp_spawner_start(trp_spawner *s, const struct trp_spawn *spawn)
{
    struct trp_buf one = {0};
    trp_launch_begin(&one);
    trp_launch_put(&one, spawn->launch);
    trp_batch_finish(&one);
    begin_frame(s, TRP_FRAME_START);
    trp_put_u32(&s->out, spawn->ranks);
    trp_put_u8(&s->out, spawn->by_srun);
    trp_put_s64(&s->out, spawn->start_limit_ns);
    trp_put_text(&s->out, spawn->gang_program);
    uint32_t nlauncher = 0;
    while (spawn->launcher && spawn->launcher[nlauncher])
        nlauncher++;
    trp_put_u32(&s->out, nlauncher);
    for (uint32_t i = 0; i < nlauncher; i++)
        trp_put_text(&s->out, spawn->launcher[i]);
    trp_put_raw(&s->out, one.data, one.size);
    int r = one.failed ? TRP_ENOMEM : end_frame(s);
    trp_buf_free(&one);
    return r;
}

int trp_spawner_kill(trp_spawner *s, trp_attempt_id attempt, bool soft)
{
    begin_frame(s, TRP_FRAME_KILL);
    trp_put_u64(&s->out, attempt.n);
    trp_put_u8(&s->out, soft);
    return end_frame(s);
}

int trp_spawner_recall(trp_spawner *s, trp_attempt_id attempt)
{
    begin_frame(s, TRP_FRAME_RECALL);
    trp_put_u64(&s->out, attempt.n);
    return end_frame(s);
}

/* The entry of a thread: found, or a new one. NULL: none is free. */
static struct trp_watched_thread *thread_entry(struct trp_spawner_shared *shared,
                                               pid_t thread)
{
    uint32_t n = atomic_load(&shared->nthreads);
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&shared->thread[i].thread) == thread)
            return &shared->thread[i];
    n = atomic_fetch_add(&shared->nthreads, 1);
    if (n >= TRP_WATCHED_THREADS) {
        atomic_store(&shared->nthreads, TRP_WATCHED_THREADS);
        return NULL;
    }
    atomic_store(&shared->thread[n].thread, thread);
    return &shared->thread[n];
}

int trp_spawner_function(trp_spawner *s, trp_attempt_id attempt, pid_t thread,
                         bool begins)
{
    struct trp_watched_thread *t = thread_entry(s->shared, thread);
    if (!t)
        return TRP_ELIMIT;
    if (!begins) {
        atomic_store(&t->busy, 0);
        return TRP_OK;
    }
    uint64_t faults = UINT64_MAX;
    struct rusage usage;
    if (thread == gettid() && getrusage(RUSAGE_THREAD, &usage) == 0)
        faults = (uint64_t)usage.ru_minflt;
    atomic_store(&t->attempt, attempt.n);
    atomic_store(&t->faults, faults);
    atomic_store(&t->busy, 1);
    if (!s->enforces || atomic_exchange(&s->shared->sampling, 1))
        return TRP_OK;
    /* One frame, one small send: threads need no lock for it. */
    static const uint8_t frame[] = {1, 0, 0, 0, TRP_FRAME_WATCH};
    ssize_t n = send(s->socket, frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n == (ssize_t)sizeof frame ? TRP_OK : TRP_EWAIT;
}

void trp_shared_last_words(struct trp_spawner_shared *s,
                           const struct trp_last_words *last_words)
{
    uint32_t none = TRP_LAST_WORDS_NONE;
    if (!atomic_compare_exchange_strong(&s->last_words, &none, 1))
        return;
    s->last = *last_words;
    s->last.said = true;
    atomic_store(&s->last_words, TRP_LAST_WORDS_SAID);
}

void trp_spawner_last_words(trp_spawner *s, const struct trp_last_words *last_words)
{
    trp_shared_last_words(s->shared, last_words);
}

/* Reads what is there; false when nothing came. */
static bool read_more(trp_spawner *s)
{
    if (s->taken == s->in.size) {
        trp_buf_clear(&s->in);
        s->taken = 0;
    }
    uint8_t *to = trp_buf_reserve(&s->in, READ_SIZE);
    if (!to) {
        s->gone = true;
        return false;
    }
    ssize_t n = recv(s->socket, to, READ_SIZE, MSG_DONTWAIT);
    s->in.size -= READ_SIZE - (size_t)(n > 0 ? n : 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        s->gone = true;
    return n > 0;
}

/* Makes `ends` the view of the next whole frame; false when there is none yet. */
static bool next_frame(trp_spawner *s)
{
    size_t left = s->in.size - s->taken;
    if (left < TRP_FRAME_HEAD)
        return false;
    const uint8_t *at = s->in.data + s->taken;
    size_t size =
        at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
    if (left - TRP_FRAME_HEAD < size)
        return false;
    uint32_t count;
    s->taken += TRP_FRAME_HEAD + size;
    if (size < 1 || at[TRP_FRAME_HEAD] != TRP_FRAME_ENDS ||
        trp_ends_open(at + TRP_FRAME_HEAD + 1, size - 1, &s->ends, &count) < 0) {
        s->gone = true;
        return false;
    }
    return true;
}

int trp_spawner_next(trp_spawner *s, struct trp_end *ret_end)
{
    for (;;) {
        int r = s->ends.at ? trp_ends_next(&s->ends, ret_end) : 0;
        if (r > 0)
            return 1;
        s->ends = (struct trp_view){0};
        if (r < 0)
            s->gone = true;
        if (s->gone)
            return TRP_ESYSTEM;
        if (!next_frame(s) && (s->gone || !read_more(s) || !next_frame(s)))
            return s->gone ? TRP_ESYSTEM : 0;
    }
}

/* Waits until the spawner has closed its end, at most until `deadline`. */
static void wait_for_close(trp_spawner *s, int64_t deadline)
{
    uint8_t rest[4096];
    for (;;) {
        int64_t left = deadline - trp_clock_ns();
        struct pollfd p = {.fd = s->socket, .events = POLLIN};
        if (left <= 0 || (poll(&p, 1, (int)(left / 1000000) + 1) < 0 && errno != EINTR))
            return;
        ssize_t n = p.revents ? recv(s->socket, rest, sizeof rest, MSG_DONTWAIT) : 1;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return;
    }
}

void trp_spawner_close(trp_spawner *s)
{
    if (!s)
        return;
    s->holds = false;
    begin_frame(s, TRP_FRAME_CLOSE);
    if (!s->reaped && end_frame(s) == TRP_OK)
        wait_for_close(s, trp_clock_ns() + INT64_C(2000000000));
    /* Its socket closes a moment before it ends, or never. */
    for (int i = 0; i < 50 && !s->reaped; i++) {
        s->reaped = waitpid(s->pid, NULL, WNOHANG) != 0;
        if (!s->reaped)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (!s->reaped)
        trp_spawner_bury(s, false, NULL);
    close(s->socket);
    munmap(s->shared, sizeof *s->shared);
    trp_buf_free(&s->in);
    trp_buf_free(&s->out);
    free(s);
}
