/*
 * The control channel between the driver and its executors.
 *
 * Words. A *peer* is the other side of one connection; on the driver peers are numbered
 * by executor id, an executor has the one peer TRP_DRIVER_PEER. The *admission socket*
 * is a TCP connection that stays open for the peer's life: its closing is the sign of
 * death, a RING frame on it wakes a sleeper. A *transport* is how two processes come to
 * carry messages to each other:
 *
 *   connect  each executor is an MPI universe of its own, joined by MPI_Comm_accept and
 *            MPI_Comm_connect, one at a time, the accept in a thread of its own;
 *   world    all are ranks of one MPI_COMM_WORLD, rank 0 drives;
 *   socket   messages travel on the admission socket itself, without MPI.
 *
 * All use the same socket, the same frames and the same code but for the joining
 * (comm/transport.h) and what carries messages then (comm/lane.h).
 *
 * Messages have any length up to TRP_MESSAGE_MAX, arrive whole, in order, once, and are
 * cut into fragments of at most 32 KiB underneath.
 *
 * Sleep. Before a side sleeps on trp_channel_fd it says so on the socket, with the
 * number of messages it has taken (SLEEP n). A side that has sent more, or sends more
 * later, rings (RING n): the sleeper wakes and polls MPI until it has message n. Nobody
 * sleeps with unfinished sends (trp_channel_sleep refuses). Over sockets nothing of
 * this is said: what arrives wakes the sleeper.
 *
 * An executor's life: trp_channel_call (socket, proof of the secret) → fork its
 * spawner → trp_channel_join (told when to connect) → messages →
 * trp_channel_close.
 *
 * Threads: one at a time per channel (whoever holds the caller's baton); the accept
 * thread is the channel's own. MPI must be at MPI_THREAD_MULTIPLE on the driver.
 */
#ifndef TRP_COMM_CHANNEL_H
#define TRP_COMM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"
#include "core/engine.h"

typedef struct trp_channel trp_channel;

enum trp_transport_kind {
    TRP_TRANSPORT_CONNECT,
    TRP_TRANSPORT_WORLD,
    TRP_TRANSPORT_SOCKET
};

#define TRP_DRIVER_PEER UINT32_MAX
#define TRP_MESSAGE_MAX (UINT32_C(1) << 30)

enum { TRP_SECRET_SIZE = 32, TRP_BUILD_ID_TEXT = 96, TRP_LAST_WORDS_TEXT = 128 };

/* What an executor says of itself. */
struct trp_hello {
    uint32_t executor; /* its id, from its environment (world: its rank - 1) */
    char host[256];
    int32_t pid, spawner_pid;      /* spawner_pid arrives with READY */
    char build[TRP_BUILD_ID_TEXT]; /* trp_build_id of its binary */
};

/* Why a peer is gone, as far as it could be said. The spawner of an executor sends them
 * on the executor's behalf when it died. */
struct trp_last_words {
    bool said; /* false: the socket just closed, or silence, or `garbled` */
    /* A frame was damaged: one that we got, or (with `said`) one that the peer got. */
    bool garbled;
    enum trp_loss reason;
    bool has_culprit;
    trp_attempt_id culprit;         /* the function task that caused it */
    int32_t signal;                 /* CRASHED: SIGSEGV, …; CALLED_EXIT: the status */
    int64_t limit_mib, peak_mib;    /* MEMORY */
    char text[TRP_LAST_WORDS_TEXT]; /* CRASHED: what the C library says of it; or "" */
};

struct trp_channel_handler {
    void *context;
    /* Driver: an executor is joined and can be sent to. `hello` is borrowed. */
    void (*up)(void *context, uint32_t peer, const struct trp_hello *hello);
    /* A whole message; borrowed until the return. */
    void (*message)(void *context, uint32_t peer, const uint8_t *data, size_t size);
    /* All messages of a step of the channel were delivered, and what was sent meanwhile
     * goes out behind this call. NULL: there is nothing to add. */
    void (*delivered)(void *context);
    /* The peer is gone for good: once for each executor that was let in at the socket,
     * whether it came `up` or not; never for one that was trp_channel_drop'ed. Words of
     * TRP_LOSS_RELEASED that were `said`: it left orderly (trp_channel_close there) and
     * all its messages have arrived. */
    void (*down)(void *context, uint32_t peer, const struct trp_last_words *last_words);
    /* Driver: nothing was heard of the peer for a heartbeat and 5 s more, or it is
     * again. NULL: nobody wants to know. */
    void (*silent)(void *context, uint32_t peer, bool silent);
    /* Driver: something was refused (bad proof, other build, garbage, unknown
     * executor): a line for the log. `executor` is TRP_NONE when not known. With
     * `fatal_build` an executor of ours has another build: it will never come up. */
    void (*refused)(void *context, uint32_t executor, bool fatal_build,
                    const char *text);
    /* Driver: it is out of descriptors, and who comes waits until there are some. A
     * line for the user. Once. */
    void (*full)(void *context, const char *text);
    /* Driver: MPI has failed, and nobody is let in any more. `text` says how. Once. */
    void (*mpi_failed)(void *context, const char *text);
};

struct trp_listen_config {
    enum trp_transport_kind transport;
    bool here_only;               /* all executors are on this machine */
    const uint8_t *secret;        /* TRP_SECRET_SIZE bytes, copied */
    bool munge;                   /* both sides prove their user by MUNGE as well */
    bool mac;                     /* every frame has a tag (comm/frame.h) */
    int64_t network_timeout_ns;   /* silence after which a peer is lost (120 s) */
    int64_t heartbeat_ns;         /* executors' heartbeats (10 s) */
    int64_t handshake_timeout_ns; /* a half-open connection is closed after it (10 s) */
    /* connect: called by a thread of the channel when a call of MPI, MPI_Init too, hangs
     * in this process for 20 s: says so and ends the process. NULL: nobody looks. */
    void (*stuck)(const char *text);
    bool (*expected)(void *context, uint32_t executor); /* is this executor wanted? */
    /* The first id of a guard: guards say hello, hold the socket and never join. 0:
     * there are none. */
    uint32_t first_guard;
};

/* Driver. Opens the admission socket, on all interfaces or, `here_only`, for this
 * machine, and the MPI side. */
int trp_channel_listen(const struct trp_listen_config *config,
                       const struct trp_channel_handler *handler,
                       trp_channel **ret_channel, trp_error *err);

/* "HOST:PORT" for executors; valid as long as the channel. */
const char *trp_channel_address(const trp_channel *c);

struct trp_call_config {
    enum trp_transport_kind transport;
    const char *address; /* HOST:PORT of the driver */
    const uint8_t *secret;
    bool munge, mac; /* as the driver that started us has them */
    uint32_t executor;
    int64_t network_timeout_ns, heartbeat_ns;
    const char *build; /* NULL: trp_build_id() */
};

/* Executor, before MPI_Init and before the spawner is forked: connects the socket,
 * proves both sides (HMAC-SHA256 of the run's secret over both nonces, sealed by MUNGE
 * when `munge`), says hello.
 * Blocks at most network_timeout_ns. TRP_ESTATE with both versions when refused as
 * another build; TRP_ENOENT when the driver's host name is not known here, at present.
 */
int trp_channel_call(const struct trp_call_config *config, trp_channel **ret_channel,
                     trp_error *err);

/* Executor, after the spawner is forked: MPI_Init_thread when nobody did (THREAD
 * MULTIPLE; not for sockets), waits until admitted and joins. Blocks. When it fails the
 * process can only _exit (after trp_channel_close). */
int trp_channel_join(trp_channel *c, const struct trp_channel_handler *handler,
                     pid_t spawner_pid, trp_error *err);

/* World transport: every rank calls this instead of listen / call + join, after
 * MPI_Init. Rank 0 gets a listening channel at once (executors come up as usual); the
 * others return when joined. Of `config` rank 0 uses all; the others take the secret
 * from rank 0, and their times from `config`. */
int trp_channel_world(const struct trp_listen_config *config,
                      const struct trp_channel_handler *handler,
                      trp_channel **ret_channel, trp_error *err);

/* World transport: this rank cannot go on and calls nothing of the above; where it is
 * rank 0, the calls of the others fail with `why`. Does nothing after
 * trp_channel_world. */
void trp_channel_world_cancel(const trp_error *why);

/* The socket of an executor's channel, or -1. */
int trp_channel_socket(const trp_channel *c);

/* What an executor's spawner, which inherits the socket by fork, says last words with
 * when the executor has died. */
struct trp_last_words_way {
    int fd; /* -1: nobody is told */
    uint8_t key[32];
};
void trp_channel_last_words_way(const trp_channel *c, struct trp_last_words_way *ret);
/* Waits at most a second for the socket to take them. */
void trp_last_words_say(const struct trp_last_words_way *w,
                        const struct trp_last_words *last_words);
/* What is written there, with one write(2): its size, 0 when `buf` is too small. */
size_t trp_last_words_frame(const struct trp_last_words_way *w,
                            const struct trp_last_words *last_words, uint8_t *buf,
                            size_t cap);
/* Executor: says its own last words, and hangs up, although others hold the socket. The
 * process can only _exit afterwards. */
void trp_channel_last_words(trp_channel *c, const struct trp_last_words *last_words);

/* Queues a message (copied). TRP_ENOENT: no such peer; TRP_ELIMIT: too large. */
int trp_channel_send(trp_channel *c, uint32_t peer, const void *data, size_t size);

/* Takes and sends what there is, calls the handler, never blocks. `now_ns` is
 * CLOCK_MONOTONIC. Returns how many messages and frames were handled (0: nothing). */
int trp_channel_progress(trp_channel *c, int64_t now_ns);

/* An epoll descriptor that is readable when a socket wants attention. */
int trp_channel_fd(const trp_channel *c);

/* Says to all peers that this side sleeps. False: do not sleep (sends unfinished,
 * frames waiting, messages promised by a RING); call trp_channel_progress instead.
 * After the sleep call trp_channel_progress as usual, which counts as being awake. */
bool trp_channel_sleep(trp_channel *c);

/* When progress is to be called at the latest although nothing arrives (heartbeats,
 * half-open connections): CLOCK_MONOTONIC ns. */
int64_t trp_channel_next_timer(const trp_channel *c);

/* Gives a peer up: closes its socket, forgets what was queued; no `down` follows. May
 * be called from the handler. One that is asked to end by a message leaves by itself:
 * wait for its `down`. */
void trp_channel_drop(trp_channel *c, uint32_t peer);

/* Says goodbye to all peers, waits at most 2 s for their last messages (which are
 * thrown away: the handler is not called) and goodbyes, never for one that is dead, and
 * closes everything. MPI_Finalize may be called afterwards only when it returns true
 * (every peer that ever joined left orderly); else end by _exit. NULL: true. */
bool trp_channel_close(trp_channel *c);

/* MPI_Finalize, where MPI has begun and not ended. Only after trp_channel_close has
 * returned true. */
void trp_channel_finalize(void);

/* Version and build of the running program and libtroupe: "1.0.0 1a2b3c…", the same in
 * two processes exactly when they run the same binaries (GNU build ids). */
const char *trp_build_id(void);

#endif
