/*
 * The control channel, held to one list on each transport, as real processes.
 *
 *     conformance                 the GTest program: starts the others, judges them
 *     conformance drive CASE      a driver, under `mpirun -np 1` or not (socket)
 *     conformance world CASE      a rank (world), under `mpirun -np N`
 *     conformance execute ADDRESS ID HOW     an executor, under `mpirun -np 1` or not
 *     conformance half ADDRESS ID            an executor that dies at ADMIT; no MPI
 *     conformance stay ADDRESS ID            never connects after ADMIT; no MPI
 *     conformance stranger ADDRESS WHAT      somebody who does not belong here; no MPI
 *
 * A case runs in the driver, which starts its executors by itself; it prints what went
 * wrong, or what it measured, and exits 0 or 1. Everything started is in a session that
 * the parent knows and ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <mpi.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpirun.h"
#include "comm/channel.h"
#include "comm/here.h"
#include "comm/peer.h"
#include "comm/proof.h"
#include "comm/transport.h"
#include "os/child.h"
#include "os/clock.h"
#include "wire/message.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

enum { EXECUTORS = 40, CASE_SECONDS = 150, BIG = 20 * 1024 * 1024 };

static const uint8_t secret[TRP_SECRET_SIZE] = "a secret of thirty-two bytes, o";
static const uint8_t wrong_secret[TRP_SECRET_SIZE] = "another one of thirty-two bytes";
static char self[4096];        /* this program */
static char server_file[4096]; /* ompi-server's URI */
/* What is tried: CONFORMANCE_OVER. */
static bool over_sockets, by_tcp, with_tags;
static int64_t gives_up_ns; /* when a case no longer waits for what does not come */

static void pause_ms(int64_t ms)
{
    const struct timespec t = {ms / 1000, (ms % 1000) * MS};
    nanosleep(&t, NULL);
}

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void end_children(void);
static void fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    end_children();
    _exit(1);
}
#define CHECK(what, ...)                                                               \
    do {                                                                               \
        if (!(what)) {                                                                 \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #what);                          \
            fail(__VA_ARGS__);                                                         \
        }                                                                              \
    } while (0)

/* ---- what the executors do ---- */

/* The first byte of a message is an order. */
enum {
    ECHO_BACK = 'e', /* send it back */
    QUIT = 'q',      /* leave orderly */
    DIE = 'd',       /* SIGKILL oneself */
    BURST = 'b',     /* u32 n: send n numbered messages */
    LATER = 'l',     /* u32 ms: send something back after so long, asleep meanwhile */
    WORDS = 'w',  /* die; u32 ms later a child that holds the socket says last words */
    CUT = 'c',    /* the same, in the middle of a frame */
    GARBLE = 'g', /* write a frame that is none of the channel's to its socket */
};

struct executor {
    trp_channel *channel;
    bool quit, lost;
    int64_t later_ns;
};

static void say_last_words(struct executor *x, uint32_t ms)
{
    const struct trp_last_words last_words = {
        .said = true,
        .reason = TRP_LOSS_MEMORY,
        .has_culprit = true,
        .culprit = {77},
        .signal = 9,
        .limit_mib = 512,
        .peak_mib = 600,
    };
    struct trp_last_words_way way;
    int alive[2];
    trp_channel_last_words_way(x->channel, &way);
    if (pipe2(alive, O_CLOEXEC) < 0)
        _exit(9);
    if (fork() == 0) {
        char c;
        close(alive[1]);
        while (read(alive[0], &c, 1) > 0) /* until the parent is dead */
            ;
        pause_ms(ms);
        trp_last_words_say(&way, &last_words);
        _exit(0);
    }
    kill(getpid(), SIGKILL);
}

/* Past the channel: a frame of data that says it has `size` bytes. */
static void write_frame(struct executor *x, uint16_t size, const char *p, size_t n)
{
    uint8_t bytes[64] = {(uint8_t)size, (uint8_t)(size >> 8), TRP_FRAME_DATA,
                         TRP_FRAME_MARK};
    memcpy(bytes + TRP_FRAME_HEAD, p, n);
    if (write(trp_channel_socket(x->channel), bytes, TRP_FRAME_HEAD + n) < 0)
        _exit(9);
}

static void executor_message(void *context, uint32_t peer, const uint8_t *p, size_t n)
{
    struct executor *x = (struct executor *)context;
    uint32_t count = 0;
    if (n >= 5)
        memcpy(&count, p + 1, sizeof count);
    switch (n > 0 ? p[0] : ECHO_BACK) {
    case QUIT:
        x->quit = true;
        break;
    case DIE:
        kill(getpid(), SIGKILL);
        break;
    case BURST:
        for (uint32_t i = 0; i < count; i++)
            trp_channel_send(x->channel, peer, &i, sizeof i);
        break;
    case LATER:
        x->later_ns = trp_clock_ns() + count * MS;
        break;
    case CUT:
        write_frame(x, 1000, "half of it", 10);
        say_last_words(x, count);
        break;
    case GARBLE:
        write_frame(x, 3, "BAD", 3);
        break;
    case WORDS:
        say_last_words(x, count);
        break;
    default:
        trp_channel_send(x->channel, peer, p, n);
    }
}

static void executor_down(void *context, uint32_t peer,
                          const struct trp_last_words *last_words)
{
    struct executor *x = (struct executor *)context;
    (void)peer;
    x->quit = true;
    x->lost = !(last_words->said && last_words->reason == TRP_LOSS_RELEASED);
}

static void wait_on(trp_channel *c, int64_t until)
{
    struct epoll_event event;
    int64_t due = trp_channel_next_timer(c);
    if (due > until)
        due = until;
    int64_t ms = due == INT64_MAX ? 60000 : (due - trp_clock_ns()) / MS + 1;
    epoll_wait(trp_channel_fd(c), &event, 1,
               (int)(ms < 0       ? 0
                     : ms > 60000 ? 60000
                                  : ms));
}

static int work(struct executor *x)
{
    for (int idle = 0; !x->quit;) {
        idle = trp_channel_progress(x->channel, trp_clock_ns()) > 0 ? 0 : idle + 1;
        if (x->later_ns > 0 && trp_clock_ns() >= x->later_ns) {
            x->later_ns = 0;
            trp_channel_send(x->channel, TRP_DRIVER_PEER, "later", 5);
            idle = 0;
        }
        if (idle > 50 && !x->quit && trp_channel_sleep(x->channel))
            wait_on(x->channel, x->later_ns > 0 ? x->later_ns : INT64_MAX);
    }
    bool clean = trp_channel_close(x->channel);
    if (!clean)
        _exit(x->lost ? 3 : 4);
    trp_channel_finalize();
    return 0;
}

static struct trp_channel_handler executor_handler(struct executor *x)
{
    return (struct trp_channel_handler){
        .context = x, .message = executor_message, .down = executor_down};
}

static void *kill_soon(void *arg)
{
    unsigned us = *(unsigned *)arg;
    usleep(us);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* The driver's, as one that it does not name itself by: nobody finds the socket for its
 * own host (comm/here.h). */
static const char *tcp_address(const char *address)
{
    static char text[300];
    const char *colon = strrchr(address, ':');
    snprintf(text, sizeof text, "%.*s:0%s", (int)(colon - address), address, colon + 1);
    return text;
}

static int execute(const char *address, const char *id, const char *how)
{
    static unsigned us;
    struct executor x = {0};
    trp_error err = {0};
    const struct trp_channel_handler handler = executor_handler(&x);
    const bool silent = strcmp(how, "silent") == 0;
    const struct trp_call_config config = {
        .transport = over_sockets ? TRP_TRANSPORT_SOCKET : TRP_TRANSPORT_CONNECT,
        .mac = with_tags,
        .address = by_tcp ? tcp_address(address) : address,
        .secret = strcmp(how, "wrong") == 0 ? wrong_secret : secret,
        .executor = (uint32_t)atoi(id),
        .network_timeout_ns = silent ? 1000 * SECOND : 20 * SECOND,
        .heartbeat_ns = silent ? 1000 * SECOND : SECOND,
        .build = strcmp(how, "other") == 0 ? "0.0.1 beef" : NULL,
    };
    int rc = trp_channel_call(&config, &x.channel, &err);
    if (rc < 0) {
        fprintf(stderr, "executor %s: %s\n", id, err.text);
        _exit(rc == TRP_ESTATE ? 5 : 6);
    }
    if (strncmp(how, "die-", 4) == 0) {
        pthread_t thread;
        int level;
        us = (unsigned)atoi(how + 4);
        if (!over_sockets)
            MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        pthread_create(&thread, NULL, kill_soon, &us);
    }
    rc = trp_channel_join(x.channel, &handler, getppid(), &err);
    if (rc < 0) {
        fprintf(stderr, "executor %s: %s\n", id, err.text);
        _exit(7);
    }
    return work(&x);
}

/* Says hello, and no more. */
static trp_channel *call(const char *address, const char *id)
{
    trp_channel *c;
    trp_error err = {0};
    const struct trp_call_config config = {
        .mac = with_tags,
        .address = address,
        .secret = secret,
        .executor = (uint32_t)atoi(id),
        .network_timeout_ns = 20 * SECOND,
        .heartbeat_ns = SECOND,
    };
    if (trp_channel_call(&config, &c, &err) < 0)
        _exit(6);
    return c;
}

/* Says it is ready, and dies when it is told to connect, or never does. */
static int get_admitted(const char *address, const char *id, bool dies)
{
    trp_channel *c = call(address, id);
    const uint32_t pid = 0;
    struct pollfd p = {.fd = trp_channel_socket(c), .events = POLLIN};
    if (trp_peer_put(c->only, TRP_FRAME_READY, &pid, sizeof pid) < 0 ||
        poll(&p, 1, 20000) != 1)
        _exit(8);
    if (dies)
        kill(getpid(), SIGKILL);
    pause(); /* until the driver ends it */
    return 0;
}

/* ---- strangers ---- */

static int dial(const char *address)
{
    char host[300];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    snprintf(host, sizeof host, "%s", address);
    char *colon = strrchr(host, ':');
    *colon = 0;
    if (getaddrinfo(host, colon + 1, &hints, &list) != 0)
        return -1;
    int fd = -1;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(list);
    return fd;
}

static void spit(const char *address, const void *bytes, size_t n)
{
    char answer[256];
    int fd = dial(address);
    if (fd < 0)
        return;
    if (send(fd, bytes, n, MSG_NOSIGNAL) < 0)
        fprintf(stderr, "send: %m\n");
    while (recv(fd, answer, sizeof answer, 0) > 0) /* until it is closed */
        ;
    close(fd);
}

static int babble(const char *address)
{
    uint8_t bytes[8192];
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const uint8_t oversize[] = {0xff, 0xff, TRP_FRAME_ANSWER, TRP_FRAME_MARK, 1, 2, 3};
    const uint8_t early[] = {0, 0, TRP_FRAME_BEAT, TRP_FRAME_MARK};
    const uint8_t shortened[] = {3, 0, TRP_FRAME_ANSWER, TRP_FRAME_MARK, 1, 2, 3};
    spit(address, http, sizeof http - 1);
    spit(address, oversize, sizeof oversize);
    spit(address, early, sizeof early);
    spit(address, shortened, sizeof shortened);
    srand(7);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)rand();
        spit(address, bytes, sizeof bytes);
    }
    for (int i = 0; i < 200; i++) /* a port scanner */
        close(dial(address));
    return 0;
}

static int hold_open(const char *address)
{
    int open = 0;
    for (int i = 0; i < 2000; i++)
        open += dial(address) >= 0;
    printf("%d connections are held open\n", open);
    fflush(stdout);
    pause(); /* until the driver ends it */
    return 0;
}

static bool get(int fd, void *p, size_t n)
{
    return recv(fd, p, n, MSG_WAITALL) == (ssize_t)n;
}

/* Proves itself once by the book, and then sends the same bytes again. */
static int replay(const char *address)
{
    uint8_t challenge[TRP_FRAME_HEAD + TRP_NONCE_SIZE], head[TRP_FRAME_HEAD];
    uint8_t answer[TRP_FRAME_HEAD + TRP_NONCE_SIZE + TRP_PROOF_SIZE + 4] = {
        TRP_NONCE_SIZE + TRP_PROOF_SIZE + 4, 0, TRP_FRAME_ANSWER, TRP_FRAME_MARK};
    struct trp_nonces nonces;
    int kinds[2];
    for (int round = 0; round < 2; round++) {
        int fd = dial(address);
        if (fd < 0 || !get(fd, challenge, sizeof challenge))
            return 1;
        if (round == 0) {
            memcpy(nonces.driver, challenge + TRP_FRAME_HEAD, TRP_NONCE_SIZE);
            memset(nonces.executor, 'x', TRP_NONCE_SIZE);
            memcpy(answer + TRP_FRAME_HEAD, nonces.executor, TRP_NONCE_SIZE);
            trp_proof_make(secret, TRP_PROVER_EXECUTOR, &nonces,
                           answer + TRP_FRAME_HEAD + TRP_NONCE_SIZE);
        }
        if (send(fd, answer, sizeof answer, MSG_NOSIGNAL) < 0 ||
            !get(fd, head, sizeof head))
            return 1;
        kinds[round] = head[2];
        close(fd);
    }
    return kinds[0] == TRP_FRAME_PROOF && kinds[1] == TRP_FRAME_REFUSED ? 0 : 2;
}

/* Another user's, which knows the secret. */
static int intrude(const char *address)
{
    char c;
    int fd = setuid(65534) == 0 ? trp_here_dial(secret, address) : -1;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&p, 1, 5000) == 1 && read(fd, &c, 1) == 0
               ? 0 /* closed without a word */
               : 1;
}

static int be_stranger(const char *address, const char *what)
{
    if (strcmp(what, "intrude") == 0)
        return intrude(address);
    if (strcmp(what, "babble") == 0)
        return babble(address);
    return strcmp(what, "replay") == 0 ? replay(address) : hold_open(address);
}

/* ---- the driver of a case ---- */

struct seen {
    int hellos, ups, downs, silent, heard, refused, fatal, failed;
    int up_of[EXECUTORS], down_of[EXECUTORS];
    int32_t pid_of[EXECUTORS], parent_of[EXECUTORS];
    struct trp_last_words last_words;
    char text[1024];
    uint64_t messages;
    uint64_t of[EXECUTORS];
    struct trp_buf last; /* the last message */
    uint32_t next;       /* numbered messages: the next number */
    bool disorder;
};
static struct seen seen;
static bool may_fail; /* MPI, in this case */
static trp_channel *channel;
static pid_t children[64];
static int nchildren;
static uint32_t nexecutors; /* world: they are simply there */

static void saw_up(void *context, uint32_t peer, const struct trp_hello *hello)
{
    (void)context;
    seen.ups++;
    seen.up_of[peer]++;
    seen.pid_of[peer] = hello->pid;
    seen.parent_of[peer] = hello->spawner_pid;
}

static void saw_message(void *context, uint32_t peer, const uint8_t *p, size_t n)
{
    (void)context;
    seen.messages++;
    seen.of[peer]++;
    trp_buf_clear(&seen.last);
    trp_put_raw(&seen.last, p, n);
    if (n == sizeof seen.next) {
        seen.disorder |= memcmp(p, &seen.next, n) != 0;
        seen.next++;
    }
}

static void saw_down(void *context, uint32_t peer,
                     const struct trp_last_words *last_words)
{
    (void)context;
    seen.downs++;
    seen.down_of[peer]++;
    seen.last_words = *last_words;
}

static void saw_silent(void *context, uint32_t peer, bool silent)
{
    (void)context;
    (void)peer;
    *(silent ? &seen.silent : &seen.heard) += 1;
}

static void saw_refused(void *context, uint32_t executor, bool fatal_build,
                        const char *text)
{
    (void)context;
    (void)executor;
    seen.refused++;
    seen.fatal += fatal_build;
    snprintf(seen.text, sizeof seen.text, "%s", text);
}

static void saw_mpi_failed(void *context, const char *text)
{
    (void)context;
    seen.failed++;
    snprintf(seen.text, sizeof seen.text, "%s", text);
}

static bool is_expected(void *context, uint32_t executor)
{
    (void)context;
    seen.hellos++;
    return executor < EXECUTORS;
}

static struct trp_listen_config listen_config(void)
{
    return (struct trp_listen_config){
        .transport = over_sockets ? TRP_TRANSPORT_SOCKET : TRP_TRANSPORT_CONNECT,
        .mac = with_tags,
        .secret = secret,
        .network_timeout_ns = 20 * SECOND,
        .heartbeat_ns = SECOND,
        .handshake_timeout_ns = 3 * SECOND,
        .expected = is_expected,
    };
}

static const struct trp_channel_handler driver_handler = {
    .up = saw_up,
    .message = saw_message,
    .down = saw_down,
    .silent = saw_silent,
    .refused = saw_refused,
    .mpi_failed = saw_mpi_failed,
};

static char server_option[4200];

static size_t put_mpirun(const char **argv)
{
    static const char *const words[] = {
        "mpirun", "-np", "1",      "--bind-to", "none", "--oversubscribe",
        "--mca",  "ras", "^slurm", "--mca",     "plm",  "^slurm,rsh"};
    const char *const joined[] = {"--mca", "pmix_server_max_wait", "3", "--ompi-server",
                                  server_option};
    size_t n = sizeof words / sizeof *words;
    memcpy(argv, words, sizeof words);
    if (*server_file) {
        snprintf(server_option, sizeof server_option, "file:%s", server_file);
        memcpy(argv + n, joined, sizeof joined);
        n += sizeof joined / sizeof *joined;
    }
    argv[n++] = self;
    return n;
}

static pid_t start(bool mpirun, const char *a, const char *b, const char *c,
                   const char *d)
{
    const char *argv[32];
    char *const none[] = {NULL},
                **env = trp_mpirun_environ(environ, NULL, (const char *const *)none);
    size_t n = 0;
    pid_t pid = 0;
    if (mpirun)
        n = put_mpirun(argv);
    else
        argv[n++] = self;
    const char *const args[] = {a, b, c, d};
    for (int i = 0; i < 4 && args[i]; i++)
        argv[n++] = args[i];
    argv[n] = NULL;
    CHECK(env, "out of memory");
    int rc =
        trp_child_start((char *const *)(uintptr_t)argv, env, (int[]){-1, -1, -1}, &pid);
    trp_argv_free(env);
    CHECK(rc == 0, "%s", strerror(rc));
    CHECK(nchildren < 64, "too many children");
    children[nchildren++] = pid;
    return pid;
}

static void start_executor(uint32_t id, const char *how)
{
    char text[16];
    snprintf(text, sizeof text, "%u", id);
    if (nexecutors == 0)
        start(!over_sockets, "execute", trp_channel_address(channel), text, how);
}

/* mpirun passes a SIGTERM on and waits; SIGKILL would leave what it started. */
static void end_children(void)
{
    for (int i = 0; i < nchildren; i++)
        if (children[i] > 0)
            kill(children[i], SIGTERM);
    for (int ms = 0, left = nchildren; left > 0 && ms < 3000; ms += 10) {
        left = 0;
        for (int i = 0; i < nchildren; i++)
            if (children[i] > 0 && waitpid(children[i], NULL, WNOHANG) != 0)
                children[i] = 0;
            else
                left += children[i] > 0;
        if (left > 0)
            pause_ms(10);
    }
    for (int i = 0; i < nchildren; i++)
        if (children[i] > 0)
            kill(-children[i], SIGKILL);
    nchildren = 0;
}

/* One turn of the loop, sleeping as a driver does until something happens, or `end`. */
static void turn(int *idle, int64_t end)
{
    *idle = trp_channel_progress(channel, trp_clock_ns()) > 0 ? 0 : *idle + 1;
    if (*idle > 50 && trp_channel_sleep(channel))
        wait_on(channel, end);
}

/* Runs the loop until *what reaches `least`. Whatever does not come is told shortly before
 * the case's own time is up; nothing else here is said of how long something takes. */
static bool run_until_u64(const uint64_t *what, uint64_t least)
{
    for (int idle = 0; *what < least && trp_clock_ns() < gives_up_ns;)
        turn(&idle, gives_up_ns);
    return *what >= least;
}

static bool run_until(const int *what, int least)
{
    for (int idle = 0; *what < least && trp_clock_ns() < gives_up_ns;)
        turn(&idle, gives_up_ns);
    return *what >= least;
}

static void run_for(int64_t ms)
{
    int64_t end = trp_clock_ns() + ms * MS;
    for (int idle = 0; trp_clock_ns() < end;)
        turn(&idle, end);
}

static void order(uint32_t peer, uint8_t what, uint32_t n)
{
    uint8_t bytes[5] = {what};
    memcpy(bytes + 1, &n, sizeof n);
    int rc = trp_channel_send(channel, peer, bytes, sizeof bytes);
    CHECK(rc == 0, "send to %u: error %d", peer, rc);
}

static void bring_up_as(const char *how, uint32_t n)
{
    if (nexecutors > 0)
        n = nexecutors;
    for (uint32_t i = 0; i < n; i++)
        start_executor(i, how);
    CHECK(run_until(&seen.ups, (int)n), "%d of %u executors came up; %s", seen.ups, n,
          seen.text);
}

static void bring_up(uint32_t n)
{
    bring_up_as("plain", n);
}

/* A channel on which nobody speaks but when told to: no heartbeat wakes who was not woken. */
static void bring_up_silent(uint32_t n)
{
    trp_error err;
    struct trp_listen_config config = listen_config();
    config.network_timeout_ns = config.heartbeat_ns = 1000 * SECOND;
    if (nexecutors == 0) {
        trp_channel_close(channel);
        CHECK(trp_channel_listen(&config, &driver_handler, &channel, &err) == 0, "%s",
              err.text);
    }
    bring_up_as("silent", n);
}

static void check_echo(uint32_t peer, const uint8_t *p, size_t n)
{
    uint64_t before = seen.messages;
    CHECK(trp_channel_send(channel, peer, p, n) == 0, "send");
    CHECK(run_until_u64(&seen.messages, before + 1), "%zu bytes did not come back", n);
    CHECK(seen.last.size == n, "sent %zu bytes, got %zu", n, seen.last.size);
    CHECK(n == 0 || memcmp(seen.last.data, p, n) == 0, "%zu bytes came back changed",
          n);
}

static void check_alive(uint32_t peer)
{
    check_echo(peer, (const uint8_t *)"echo", 4 + 1);
}

/* ---- cases ---- */

static void messages_of_all_sizes(void)
{
    static const size_t sizes[] = {0,
                                   1,
                                   4,
                                   28,
                                   32 * 1024 - 9,
                                   32 * 1024 - 5,
                                   32 * 1024 - 4,
                                   32 * 1024 - 3,
                                   32 * 1024 - 1,
                                   32 * 1024,
                                   32 * 1024 + 1,
                                   65536,
                                   1 << 20,
                                   BIG};
    uint8_t *bytes = g_malloc(BIG);
    for (size_t i = 0; i < BIG; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    bytes[0] = ECHO_BACK;
    bring_up(1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_echo(0, bytes, sizes[i]);
    CHECK(trp_channel_send(channel, 0, bytes, (size_t)TRP_MESSAGE_MAX + 1) ==
              TRP_ELIMIT,
          "too large a message was taken");
    CHECK(trp_channel_send(channel, 9, bytes, 1) == TRP_ENOENT, "to nobody");
    g_free(bytes);
}

static void many_small_messages_in_order(void)
{
    enum { N = 200000 };
    bring_up(1);
    order(0, BURST, N);
    CHECK(run_until_u64(&seen.messages, N), "%" PRIu64 " of %d", seen.messages, N);
    CHECK(!seen.disorder, "out of order");
    check_alive(0);
}

static void sizes_mixed_keep_their_order(void)
{
    enum { N = 3000 };
    static uint8_t bytes[70000];
    uint64_t total = 0;
    bring_up(2);
    for (uint32_t i = 0; i < N; i++) {
        size_t n = i % 100 == 0 ? 70000 : i * 37 % 3000 + 5;
        bytes[0] = ECHO_BACK;
        memcpy(bytes + 1, &i, 4);
        CHECK(trp_channel_send(channel, i % 2, bytes, n) == 0, "send");
        total += n;
        if (i % 50 == 49)
            CHECK(run_until_u64(&seen.messages, i + 1), "stuck at %u", i);
        if (i % 50 == 49) {
            uint32_t got;
            memcpy(&got, seen.last.data + 1, 4);
            CHECK(got == i || got + 1 == i, "the last of %u is %u", i, got);
        }
    }
    CHECK(seen.of[0] == N / 2 && seen.of[1] == N / 2, "not everybody's");
    printf("%.1f MB there and back\n", (double)total / 1e6);
}

static double cpu_ms(int pid)
{
    char path[64], text[1024];
    unsigned long user = 0, sys = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')');
    if (at)
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &sys);
    return (double)(user + sys) * 1000.0 / (double)sysconf(_SC_CLK_TCK);
}

static void both_sides_sleep_and_wake(void)
{
    bring_up(1);
    check_alive(0);
    run_for(300);
    double driver = cpu_ms(getpid()), executor = cpu_ms(seen.pid_of[0]);
    run_for(2000);
    driver = cpu_ms(getpid()) - driver;
    executor = cpu_ms(seen.pid_of[0]) - executor;
    printf("CPU in 2 s of silence: driver %.0f ms, executor %.0f ms\n", driver,
           executor);
    CHECK(driver < 500 && executor < 500, "somebody does not sleep");
    int64_t begin = trp_clock_ns();
    check_alive(0);
    printf("a ping after silence took %.0f us\n",
           (double)(trp_clock_ns() - begin) / 1e3);
}

static void no_wake_up_is_ever_lost(void)
{
    bring_up_silent(2);
    srand(11);
    for (int i = 0; i < 2000; i++) {
        check_alive((uint32_t)(i % 2));
        if (i % 4 == 0)
            usleep((unsigned)(rand() % 400));
        else if (i % 4 == 1 && trp_channel_sleep(channel))
            usleep((unsigned)(rand() % 100));
    }
}

static void a_sleeper_speaks_up_by_itself(void)
{
    bring_up_silent(1);
    for (int i = 0; i < 5; i++) {
        uint64_t before = seen.messages;
        order(0, LATER, 200);
        CHECK(run_until_u64(&seen.messages, before + 1), "it did not");
    }
}

static void many_sleepers_wake_each(void)
{
    uint32_t n = nexecutors > 0 ? nexecutors : 3;
    bring_up_silent(n);
    for (int round = 0; round < 50; round++) {
        uint64_t before = seen.messages;
        for (uint32_t i = 0; i < n; i++)
            order(i, LATER, (uint32_t)(1 + (round + (int)i) % 7));
        CHECK(run_until_u64(&seen.messages, before + n), "round %d: %" PRIu64 " of %u",
              round, seen.messages - before, n);
    }
}

static void an_executor_leaves_orderly(void)
{
    bring_up(2);
    order(0, BURST, 1000);
    order(0, QUIT, 0);
    CHECK(run_until(&seen.downs, 1), "it did not leave");
    CHECK(seen.messages == 1000, "%" PRIu64 " messages of 1000 came before",
          seen.messages);
    CHECK(seen.last_words.said && seen.last_words.reason == TRP_LOSS_RELEASED,
          "not orderly");
    CHECK(trp_channel_send(channel, 0, "x", 1) == TRP_ENOENT, "it is still there");
    check_alive(1);
}

/* The sockets that MPI and the channel listen on; accepted ones come later. */
static void no_listening_socket_is_inherited(void)
{
    bring_up(1);
    int found = 0;
    for (int fd = 3; fd < 256; fd++) {
        int listens = 0;
        socklen_t n = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || !listens)
            continue;
        found++;
        CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC, "descriptor %d is inherited", fd);
    }
    CHECK(found >= (over_sockets ? 2 : 3), "%d sockets are listened on", found);
    check_alive(0);
}

static void killed_idle(void)
{
    bring_up(3);
    run_for(200);
    kill(seen.pid_of[1], SIGKILL);
    int64_t begin = trp_clock_ns();
    CHECK(run_until(&seen.downs, 1), "its death was not seen");
    printf("seen after %.1f ms\n", (double)(trp_clock_ns() - begin) / 1e6);
    CHECK(!seen.last_words.said && seen.last_words.reason == TRP_LOSS_EXITED,
          "last words of nobody");
    check_alive(0);
    check_alive(2);
    run_for(200);
    CHECK(seen.downs == 1 && seen.down_of[1] == 1, "%d downs", seen.downs);
}

static void killed_while_messages_are_under_way(void)
{
    static uint8_t bytes[100000] = {ECHO_BACK};
    bring_up(3);
    for (int i = 0; i < 200; i++)
        trp_channel_send(channel, 1, bytes, sizeof bytes);
    for (int i = 0; i < 50; i++)
        trp_channel_send(channel, 2, bytes, sizeof bytes);
    uint64_t before = seen.of[1];
    run_until_u64(&seen.of[1], before + 20);
    kill(seen.pid_of[1], SIGKILL);
    CHECK(run_until(&seen.downs, 1), "its death was not seen");
    CHECK(run_until_u64(&seen.of[2], 50), "another one's messages stopped");
    check_alive(0);
    CHECK(seen.downs == 1 && seen.down_of[1] == 1, "%d downs", seen.downs);
}

static void all_are_killed_and_others_come(void)
{
    bring_up(3);
    for (uint32_t i = 0; i < 3; i++)
        kill(seen.pid_of[i], SIGKILL);
    CHECK(run_until(&seen.downs, 3), "%d downs", seen.downs);
    start_executor(3, "plain");
    CHECK(run_until(&seen.ups, 4), "nobody came; %s", seen.text);
    check_alive(3);
}

static void last_words_are_heard(void)
{
    bring_up(2);
    order(0, BURST, 500);
    order(0, WORDS, 0);
    CHECK(run_until(&seen.downs, 1), "its death was not seen");
    const struct trp_last_words *w = &seen.last_words;
    CHECK(w->said && w->reason == TRP_LOSS_MEMORY && w->has_culprit &&
              w->culprit.n == 77 && w->signal == 9 && w->limit_mib == 512 &&
              w->peak_mib == 600,
          "said %d, reason %d", w->said, (int)w->reason);
    check_alive(1);
}

static void messages_to_the_dead_do_no_harm(void)
{
    static uint8_t bytes[5000] = {ECHO_BACK};
    bring_up(2);
    check_alive(0);
    order(0, WORDS, 1000);
    for (int i = 0; i < 200 && seen.downs == 0; i++) {
        trp_channel_send(channel, 0, bytes, (size_t)(i % 2 ? 5 : sizeof bytes));
        run_for(i < 100 ? 1 : 10);
        check_alive(1);
    }
    CHECK(run_until(&seen.downs, 1), "its death was not seen");
    CHECK(seen.last_words.said, "no last words");
    check_alive(1);
}

static void silence_is_told(void)
{
    bring_up(2);
    kill(seen.pid_of[1], SIGSTOP);
    bool told = run_until(&seen.silent, 1);
    kill(seen.pid_of[1], SIGCONT);
    CHECK(told, "it was not told that one is silent");
    CHECK(run_until(&seen.heard, 1), "it was not told that it is heard again");
    check_alive(0);
    check_alive(1);
    CHECK(seen.silent == 1 && seen.heard == 1 && seen.downs == 0,
          "%d silent, %d heard, %d down", seen.silent, seen.heard, seen.downs);
}

static void silence_is_death(void)
{
    trp_channel_close(channel);
    trp_error err;
    struct trp_listen_config config = listen_config();
    config.network_timeout_ns = 3 * SECOND;
    CHECK(trp_channel_listen(&config, &driver_handler, &channel, &err) == 0, "%s",
          err.text);
    bring_up(2);
    kill(seen.pid_of[1], SIGSTOP);
    int64_t begin = trp_clock_ns();
    bool down = run_until(&seen.downs, 1);
    kill(seen.pid_of[1], SIGKILL);
    CHECK(down, "a stopped executor was never given up");
    CHECK(trp_clock_ns() - begin > 1900 * MS, "after %.1f s",
          (double)(trp_clock_ns() - begin) / 1e9);
    CHECK(seen.down_of[1] == 1 && seen.last_words.reason == TRP_LOSS_HEARTBEAT,
          "wrong one");
    check_alive(0);
}

static void a_dropped_one_is_not_told_down(void)
{
    bring_up(2);
    trp_channel_drop(channel, 0);
    run_for(500);
    CHECK(seen.downs == 0, "down was told");
    CHECK(trp_channel_send(channel, 0, "x", 1) == TRP_ENOENT, "it is still there");
    check_alive(1);
}

static void killed_while_connecting(void)
{
    bring_up(1);
    start(false, "half", trp_channel_address(channel), "1", NULL);
    int64_t begin = trp_clock_ns();
    CHECK(run_until(&seen.downs, 1), "its death was not seen; %s", seen.text);
    check_alive(0);
    start_executor(2, "plain");
    CHECK(run_until(&seen.ups, 2), "the next one cannot come; %s", seen.text);
    printf("the next one was up %.2f s after\n",
           (double)(trp_clock_ns() - begin) / 1e9);
    check_alive(2);
    check_alive(0);
    CHECK(seen.downs == 1 && seen.down_of[1] == 1, "%d downs", seen.downs);
}

/* Executors from *next on, until one is up. Over MPI an accept whose executor has died may
 * take the next one along, or never return: false, it is told that MPI has failed. */
static bool one_comes(uint32_t *next)
{
    int before = seen.ups;
    for (int lost = 0; seen.ups == before; lost++) {
        CHECK(lost < (over_sockets ? 1 : 3), "nobody comes any more; %s", seen.text);
        int ends = seen.downs + seen.ups + 1;
        start_executor((*next)++, "plain");
        while (seen.downs + seen.ups < ends && !seen.failed &&
               trp_clock_ns() < gives_up_ns)
            run_for(10);
        if (seen.failed)
            return false;
    }
    check_alive(*next - 1);
    return true;
}

static void killed_at_any_moment_of_connecting(void)
{
    char how[32];
    uint32_t next = 1;
    bring_up(1);
    for (unsigned i = 0; i < 5; i++) {
        int downs = seen.downs;
        snprintf(how, sizeof how, "die-%u", i * 2000);
        start_executor(next++, how);
        for (int64_t end = trp_clock_ns() + SECOND; i % 2 && trp_clock_ns() < end;)
            check_alive(0); /* busy meanwhile, every other time */
        CHECK(run_until(&seen.downs, downs + 1), "%s: its death was not seen; %s", how,
              seen.text);
        check_alive(0);
        may_fail = !over_sockets;
        if (!one_comes(&next))
            break;
    }
    printf("after %u executors: %s\n", next, seen.text);
    check_alive(0);
}

static void many_come_at_once(void)
{
    bring_up(6);
    for (uint32_t i = 0; i < 6; i++)
        check_alive(i);
    CHECK(seen.refused == 0 && seen.downs == 0, "%s", seen.text);
}

static void a_wrong_secret(void)
{
    start_executor(0, "wrong");
    CHECK(run_until(&seen.refused, 1), "it was not refused");
    CHECK(strstr(seen.text, "secret"), "the text is: %s", seen.text);
    start_executor(0, "plain");
    CHECK(run_until(&seen.ups, 1), "the right one cannot come");
    check_alive(0);
    CHECK(seen.fatal == 0 && seen.downs == 0, "more happened");
}

static void another_build(void)
{
    start_executor(0, "other");
    CHECK(run_until(&seen.refused, 1), "it was not refused");
    CHECK(seen.fatal == 1, "not as fatal");
    CHECK(strstr(seen.text, "0.0.1 beef") && strstr(seen.text, trp_build_id()),
          "the text is: %s", seen.text);
    start_executor(1, "plain");
    CHECK(run_until(&seen.ups, 1), "the right one cannot come");
    check_alive(1);
}

static void strangers_by_number(void)
{
    bring_up(1);
    start_executor(EXECUTORS, "plain"); /* not expected */
    CHECK(run_until(&seen.refused, 1), "an unknown one was not refused");
    start_executor(0, "plain"); /* here already */
    CHECK(run_until(&seen.refused, 2), "a second one was not refused");
    check_alive(0);
    CHECK(seen.ups == 1 && seen.downs == 0, "%d ups", seen.ups);
}

static int wait_child(pid_t pid)
{
    int status = -1;
    while (trp_clock_ns() < gives_up_ns) {
        run_for(5);
        if (waitpid(pid, &status, WNOHANG) == pid) {
            for (int i = 0; i < nchildren; i++)
                children[i] = children[i] == pid ? 0 : children[i];
            return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
        }
    }
    return -3;
}

static void garbage_is_refused(void)
{
    bring_up(1);
    pid_t pid = start(false, "stranger", trp_channel_address(channel), "babble", NULL);
    int status = wait_child(pid);
    CHECK(status == 0, "the stranger ended with %d", status);
    CHECK(seen.refused == 20, "%d refusals were told", seen.refused);
    check_alive(0);
    CHECK(seen.downs == 0 && seen.ups == 1, "more happened");
}

static void half_open_connections_do_not_keep_others_out(void)
{
    bring_up(1);
    start(false, "stranger", trp_channel_address(channel), "hold", NULL);
    run_for(1000);
    start_executor(1, "plain");
    CHECK(run_until(&seen.ups, 2), "the next one cannot come; %s", seen.text);
    check_alive(0);
    check_alive(1);
    run_for(3500);
    printf("%d refusals were told, the last: %s\n", seen.refused, seen.text);
    CHECK(seen.refused > 0, "they are still open");
}

static void a_recorded_handshake_is_refused(void)
{
    pid_t pid = start(false, "stranger", trp_channel_address(channel), "replay", NULL);
    int status = wait_child(pid);
    CHECK(status == 0, "the stranger ended with %d", status);
    bring_up(1);
    check_alive(0);
}

static void words_behind_a_frame_that_was_cut_off(void)
{
    bring_up(2);
    check_alive(0);
    order(0, CUT, 0);
    CHECK(run_until(&seen.downs, 1), "its death was not seen");
    CHECK(seen.last_words.said && seen.last_words.peak_mib == 600, "said %d",
          seen.last_words.said);
    check_alive(1);
}

static void garbled_bytes_are_refused(void)
{
    bring_up(2);
    check_alive(0);
    order(0, GARBLE, 0);
    CHECK(run_until(&seen.downs, 1), "nothing was seen");
    CHECK(seen.down_of[0] == 1 && !seen.last_words.said, "another one, or last words");
    CHECK(strstr(seen.text, "is not what it sent"), "the text is: %s", seen.text);
    check_alive(1);
}

static void a_slow_reader_holds_up_nobody(void)
{
    static uint8_t bytes[1000000] = {ECHO_BACK};
    bring_up(2);
    check_alive(0);
    kill(seen.pid_of[0], SIGSTOP);
    for (int i = 0; i < 50; i++)
        CHECK(trp_channel_send(channel, 0, bytes, sizeof bytes) == 0, "send %d", i);
    for (int i = 0; i < 100; i++)
        check_alive(1);
    CHECK(seen.of[0] == 1, "it answered");
    kill(seen.pid_of[0], SIGCONT);
    CHECK(run_until_u64(&seen.of[0], 51), "%" PRIu64 " of 51 came", seen.of[0]);
    check_alive(0);
}

static void executors_of_this_host_use_its_socket(void)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    bring_up(1);
    check_alive(0);
    CHECK(getsockname(channel->by_id[0]->link.fd, (struct sockaddr *)&at, &n) == 0 &&
              at.ss_family == AF_UNIX,
          "it came by family %d", at.ss_family);
    start_executor(EXECUTORS, "plain"); /* not expected */
    CHECK(run_until(&seen.refused, seen.refused + 1), "it was not refused");
    CHECK(strstr(seen.text, "is not expected (from this host)"), "the text is: %s",
          seen.text);
}

static void another_users_process_is_told_nothing(void)
{
    if (geteuid() != 0) /* who could be another one */
        return;
    pid_t pid = start(false, "stranger", trp_channel_address(channel), "intrude", NULL);
    int status = wait_child(pid);
    CHECK(status == 0, "it ended with %d", status);
    CHECK(seen.refused == 1 && strstr(seen.text, "another user's process"), "said: %s",
          seen.text);
    executors_of_this_host_use_its_socket();
}

/* On a busy machine MPI's own accept fails now and then: the next one is tried. */
static void another_ones_nonce(void)
{
    uint32_t id = 0;
    bring_up(1);
    do {
        int before = seen.downs;
        start_executor(++id, "plain");
        while (!channel->by_id[id] || channel->by_id[id]->state != TRP_PEER_MEETING) {
            CHECK(trp_clock_ns() < gives_up_ns, "it did not come");
            trp_channel_progress(channel, trp_clock_ns());
        }
        channel->by_id[id]->admission[0] ^= 1; /* it was told the other one */
        CHECK(run_until(&seen.downs, before + 1), "it was let in");
    } while (strstr(seen.text, "MPI_Comm_accept: MPI_ERR_INTERN"));
    CHECK(strstr(seen.text, "another process"), "the text is: %s", seen.text);
    start_executor(++id, "plain");
    CHECK(run_until(&seen.ups, 2), "the next one cannot come; %s", seen.text);
    check_alive(0);
    check_alive(id);
}

static void an_accept_that_does_not_return(void)
{
    may_fail = true;
    bring_up(1);
    start(false, "stay", trp_channel_address(channel), "1", NULL);
    CHECK(run_until(&seen.failed, 1), "nothing is told");
    CHECK(strstr(seen.text,
                 "MPI lets no executor in: MPI_Comm_accept of executor 1 did "
                 "not return in 20 s"),
          "the text is: %s", seen.text);
    check_alive(0);
    start_executor(2, "plain");
    CHECK(run_until(&seen.hellos, 3), "the next one does not come");
    run_for(1000);
    CHECK(seen.failed == 1 && seen.ups == 1, "%d times, %d ups", seen.failed, seen.ups);
}

/* The one that comes then is given up, and the next one comes in. */
static void a_meeting_without_descriptors(void)
{
    enum { FEW = 256 };
    struct rlimit before, few;
    int taken[FEW], n = 0;
    start_executor(0, "plain");
    CHECK(run_until(&seen.hellos, 1), "it did not come");
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = FEW;
    setrlimit(RLIMIT_NOFILE, &few);
    while ((taken[n] = dup(0)) >= 0)
        n++;
    CHECK(run_until(&seen.refused, 1), "it was not given up");
    CHECK(strstr(seen.text, "Too many open files"), "said: %s", seen.text);
    while (n > 0)
        close(taken[--n]);
    setrlimit(RLIMIT_NOFILE, &before);
    start_executor(1, "plain");
    CHECK(run_until(&seen.ups, 1), "nobody is let in any more: %s", seen.text);
    check_alive(1);
}

enum {
    CONNECT = 1,
    WORLD = 2,
    SOCKET = 4,
    UNTAGGED = 8,
    HERE = 16,
    ELASTIC = 21,
    ALL = 31
};

static const struct {
    const char *name;
    int where;
    bool clean; /* all leave orderly: the driver must be able to MPI_Finalize */
    void (*run)(void);
} cases[] = {
    {"messages of all sizes arrive whole",                      ALL,                      true,  messages_of_all_sizes                },
    {"many small messages arrive in order",                     ALL,                      true,  many_small_messages_in_order         },
    {"sizes mixed keep their order",                            ALL,                      true,  sizes_mixed_keep_their_order         },
    {"both sides sleep and wake",                               ALL,                      true,  both_sides_sleep_and_wake            },
    {"no wake-up is ever lost",                                 ALL,                      true,  no_wake_up_is_ever_lost              },
    {"a sleeper speaks up by itself",                           ALL,                      true,  a_sleeper_speaks_up_by_itself        },
    {"many sleepers wake each",                                 ALL,                      true,  many_sleepers_wake_each              },
    {"an executor leaves orderly",                              ALL,                      true,  an_executor_leaves_orderly           },
    {"a recorded handshake is refused",                         ELASTIC,                  true,  a_recorded_handshake_is_refused      },
    {"no socket that is listened on is inherited",              ELASTIC,                  true,
     no_listening_socket_is_inherited                                                                                                 },
    {"several come at once",                                    ELASTIC,                  true,  many_come_at_once                    },
    {"a wrong secret is refused",                               ELASTIC,                  true,  a_wrong_secret                       },
    {"another build is refused with both named",                ELASTIC,                  true,  another_build                        },
    {"an unknown or second executor is refused",                ELASTIC,                  true,  strangers_by_number                  },
    {"garbage and port scanners are refused",                   ELASTIC,                  true,  garbage_is_refused                   },
    {"2,000 half-open connections keep nobody out",             ELASTIC,                  true,
     half_open_connections_do_not_keep_others_out                                                                                     },
    {"killed while idle harms nobody else",                     ELASTIC,                  false, killed_idle                          },
    {"killed while messages are under way harms nobody else",   ELASTIC,                  false,
     killed_while_messages_are_under_way                                                                                              },
    {"all are killed and others come",                          ELASTIC,                  false, all_are_killed_and_others_come       },
    {"last words are heard",                                    ELASTIC,                  false, last_words_are_heard                 },
    {"messages to the dead do no harm",                         ELASTIC,                  false,
     messages_to_the_dead_do_no_harm                                                                                                  },
    {"silence is told before it is death",                      ELASTIC,                  true,  silence_is_told                      },
    {"silence is death",                                        ELASTIC,                  false, silence_is_death                     },
    {"a dropped one is not told down",                          ELASTIC,                  false, a_dropped_one_is_not_told_down       },
    {"killed while connecting leaves its accept to the next",   CONNECT,                  false,
     killed_while_connecting                                                                                                          },
    {"who connects in an executor's place is refused",          CONNECT,                  false,
     another_ones_nonce                                                                                                               },
    {"MPI has failed when an accept does not return in 20 s",   CONNECT,                  false,
     an_accept_that_does_not_return                                                                                                   },
    {"without files one is given up, and others come",          CONNECT,                  false,
     a_meeting_without_descriptors                                                                                                    },
    {"killed while connecting: others come, or MPI has failed", ELASTIC,                  false,
     killed_at_any_moment_of_connecting                                                                                               },
    {"last words are heard behind a frame that was cut off",    SOCKET | UNTAGGED | HERE,
     false,                                                                                      words_behind_a_frame_that_was_cut_off},
    {"garbled bytes are refused",                               SOCKET | HERE,            false, garbled_bytes_are_refused            },
    {"a slow reader holds up nobody",                           SOCKET | HERE,            true,
     a_slow_reader_holds_up_nobody                                                                                                    },
    {"executors of this host use its socket",                   HERE,                     true,
     executors_of_this_host_use_its_socket                                                                                            },
    {"another user's process at that socket is told nothing",   HERE,                     true,
     another_users_process_is_told_nothing                                                                                            },
};

static size_t find_case(const char *name)
{
    size_t i = 0;
    while (i < sizeof cases / sizeof *cases && strcmp(cases[i].name, name) != 0)
        i++;
    CHECK(i < sizeof cases / sizeof *cases, "no case '%s'", name);
    return i;
}

static int run_case(const char *name)
{
    size_t i = find_case(name);
    gives_up_ns = trp_clock_ns() + (CASE_SECONDS - 20) * SECOND;
    cases[i].run();
    CHECK(!seen.failed || may_fail, "nobody is let in any more: %s", seen.text);
    bool clean = trp_channel_close(channel);
    CHECK(clean || !cases[i].clean, "all left orderly, but close says otherwise");
    CHECK(!clean || cases[i].clean || over_sockets,
          "somebody was lost, but close says otherwise");
    trp_buf_free(&seen.last);
    if (clean)
        trp_channel_finalize();
    end_children();
    printf("passed\n");
    fflush(stdout);
    if (!clean)
        _exit(0);
    return 0;
}

static int drive(const char *name)
{
    trp_error err;
    const struct trp_listen_config config = listen_config();
    CHECK(trp_channel_listen(&config, &driver_handler, &channel, &err) == 0, "%s",
          err.text);
    return run_case(name);
}

static int be_rank(const char *name)
{
    int rank, size, level;
    trp_error err = {0};
    struct executor x = {0};
    const struct trp_channel_handler mine = executor_handler(&x);
    const struct trp_listen_config config = listen_config();
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    nexecutors = (uint32_t)size - 1;
    int rc =
        trp_channel_world(&config, rank == 0 ? &driver_handler : &mine, &channel, &err);
    CHECK(rc == 0, "rank %d: %s", rank, err.text);
    if (rank == 0)
        return run_case(name);
    x.channel = channel;
    return work(&x);
}

/* ---- the GTest program ---- */

static char *folder;
static GPid server;

static void leave_session(gpointer data)
{
    (void)data;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Where Open MPI has none (5 and later), no two programs can be joined. */
static void start_server(void)
{
    char *argv[] = {(char *)(uintptr_t) "ompi-server",
                    (char *)(uintptr_t) "--no-daemonize", (char *)(uintptr_t) "-r",
                    server_file, NULL};
    GError *error = NULL;
    folder = g_dir_make_tmp("troupe-conformance-XXXXXX", &error);
    g_assert_no_error(error);
    snprintf(server_file, sizeof server_file, "%s/server", folder);
    g_spawn_async(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                  leave_session, NULL, &server, &error);
    if (g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT)) {
        g_clear_error(&error);
        *server_file = '\0';
        return;
    }
    g_assert_no_error(error);
    for (int ms = 0; ms < 10000 && !g_file_test(server_file, G_FILE_TEST_EXISTS);
         ms += 10)
        pause_ms(10);
    g_assert_true(g_file_test(server_file, G_FILE_TEST_EXISTS));
    pause_ms(50);
}

static void no_server(void)
{
    g_test_skip("Open MPI has no ompi-server here");
}

static void stop_server(void)
{
    if (server)
        kill(server, SIGTERM);
    for (int ms = 0; server && ms < 5000 && waitpid(server, NULL, WNOHANG) == 0;
         ms += 10)
        pause_ms(10);
    unlink(server_file);
    rmdir(folder);
    g_free(folder);
}

/* Is there something within `ms`? */
static bool read_some(int fd, GString *out, int ms)
{
    char bytes[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = poll(&p, 1, ms) > 0 ? read(fd, bytes, sizeof bytes) : 0;
    if (n > 0)
        g_string_append_len(out, bytes, n);
    return n > 0;
}

/* Reads what the child prints until it ends, which may be right after its last word, or
 * its time is up. */
static int follow_child(pid_t pid, int fd, GString *out)
{
    int status;
    int64_t end = trp_clock_ns() + CASE_SECONDS * SECOND;
    bool told = false;
    for (;;) {
        read_some(fd, out, 20);
        if (waitpid(pid, &status, WNOHANG) == pid) {
            while (read_some(fd, out, 0))
                ;
            return status;
        }
        if (trp_clock_ns() < end)
            continue;
        g_string_append(out, told ? "" : "\nits time was up\n");
        kill(told ? -pid : pid, told ? SIGKILL : SIGTERM);
        told = true;
        end = trp_clock_ns() + 5 * SECOND;
    }
}

/* `np`: NULL for a process without mpirun. */
static void run_on(const char *role, const char *np, const char *name)
{
    const char *argv[32] = {self};
    size_t n = np ? put_mpirun(argv) : 1;
    if (np)
        argv[2] = np;
    argv[n++] = role;
    argv[n++] = name;
    argv[n] = NULL;
    GError *error = NULL;
    GPid pid;
    int fd;
    g_spawn_async_with_pipes(NULL, (char **)(uintptr_t)argv, NULL,
                             G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                             leave_session, NULL, &pid, NULL, &fd, NULL, &error);
    g_assert_no_error(error);
    GString *out = g_string_new(NULL);
    int status = follow_child(pid, fd, out);
    close(fd);
    /* mpirun makes an own status of that of a process that ends without MPI_Finalize.
     */
    bool passed = g_str_has_suffix(g_strchomp(out->str), "passed");
    char **lines = g_strsplit(out->str, "\n", -1);
    for (char **line = lines; *line; line++)
        if (**line && strcmp(*line, "passed") != 0)
            g_test_message("%s", *line);
    g_strfreev(lines);
    g_string_free(out, TRUE);
    if (!passed) {
        g_test_message("ended with status 0x%x", (unsigned)status);
        g_test_fail();
    }
}

static void run_connect(gconstpointer name)
{
    run_on("drive", "1", (const char *)name);
}

static void run_world(gconstpointer name)
{
    run_on("world", "4", (const char *)name);
}

static void run_socket(gconstpointer name)
{
    g_setenv("CONFORMANCE_OVER", "socket", TRUE);
    run_on("drive", NULL, (const char *)name);
    g_unsetenv("CONFORMANCE_OVER");
}

static void run_here(gconstpointer name)
{
    g_setenv("CONFORMANCE_OVER", "here", TRUE);
    run_on("drive", NULL, (const char *)name);
    g_unsetenv("CONFORMANCE_OVER");
}

static void run_untagged(gconstpointer name)
{
    g_setenv("CONFORMANCE_OVER", "untagged", TRUE);
    run_on("drive", NULL, (const char *)name);
    g_unsetenv("CONFORMANCE_OVER");
}

/* On which transports. */
static const struct {
    int where;
    const char *name;
    GTestDataFunc run;
} transports[] = {
    {CONNECT,  "connect",  run_connect },
    {WORLD,    "world",    run_world   },
    {SOCKET,   "socket",   run_socket  },
    {UNTAGGED, "untagged", run_untagged},
    {HERE,     "here",     run_here    },
};

static int judge(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", TRUE);
    g_setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", TRUE);
    start_server();
    g_setenv("CONFORMANCE_SERVER", server_file, TRUE);
    if (!server)
        g_test_add_func("/connect", no_server);
    for (size_t t = 0; t < G_N_ELEMENTS(transports); t++)
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
            char *path = g_strdup_printf("/%s/%s", transports[t].name, cases[i].name);
            if ((cases[i].where & transports[t].where) &&
                (server || transports[t].where != CONNECT))
                g_test_add_data_func(path, cases[i].name, transports[t].run);
            g_free(path);
        }
    int rc = g_test_run();
    stop_server();
    return rc;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const char *server_env = getenv("CONFORMANCE_SERVER");
    const char *over = getenv("CONFORMANCE_OVER");
    over_sockets = over != NULL;
    by_tcp = over && strcmp(over, "here") != 0;
    with_tags = !over || strcmp(over, "untagged") != 0;
    snprintf(server_file, sizeof server_file, "%s", server_env ? server_env : "");
    if (strcmp(role, "drive") == 0 && argc == 3)
        return drive(argv[2]);
    if (strcmp(role, "world") == 0 && argc == 3)
        return be_rank(argv[2]);
    if (strcmp(role, "execute") == 0 && argc == 5)
        return execute(argv[2], argv[3], argv[4]);
    if (strcmp(role, "half") == 0 && argc == 4)
        return get_admitted(argv[2], argv[3], true);
    if (strcmp(role, "stay") == 0 && argc == 4)
        return get_admitted(argv[2], argv[3], false);
    if (strcmp(role, "stranger") == 0 && argc == 4)
        return be_stranger(argv[2], argv[3]);
    return judge(argc, argv);
}
