/*
 * Transports: how two processes come to share a communicator. Internal to lib/comm.
 *
 * All else (sockets, frames, sleep) is the same for all; what carries messages then is
 * the transport's lane (lane.h). A *meeting* is one try of the driver and one executor
 * to join; there is at most one at a time on either side. When it is over `notice_fd`
 * is readable.
 */
#ifndef TRP_COMM_TRANSPORT_H
#define TRP_COMM_TRANSPORT_H

#include <mpi.h>
#include <stdatomic.h>

#include "comm/channel.h"
#include "comm/lane.h"

struct trp_transport;

/* How a peer is reached over MPI; filled by a transport. */
struct trp_route {
    MPI_Comm comm;
    int rank;
};

struct trp_transport_ops {
    const char *name;
    /* Driver: begins to meet `executor`, and writes t->where, which is told to it. When
     * its `socket` closes or is shut down the meeting is made to end. */
    int (*admit)(struct trp_transport *t, uint32_t executor, int socket,
                 trp_error *err);
    /* Executor: begins to meet the driver that told `where`. */
    int (*join)(struct trp_transport *t, const char *where, trp_error *err);
    /* 1: met, *ret_route; 0: not yet; negative: it failed. */
    int (*met)(struct trp_transport *t, struct trp_route *ret_route, trp_error *err);
    /* Forgets the route of a peer that left orderly, without a word to it. */
    void (*leave)(struct trp_transport *t, struct trp_route *route);
    /* False: a thread of ours is stuck inside of MPI. */
    bool (*close)(struct trp_transport *t);
};

/* A meeting of the driver's that has not come about by then is given up: its caller
 * shuts the socket. It takes 4 to 20 ms. */
enum { TRP_ACCEPT_MS = 5000 };

extern const struct trp_transport_ops trp_transport_connect, trp_transport_world;

struct trp_meeting; /* transport_connect.c */

struct trp_transport {
    const struct trp_transport_ops *ops;
    int notice_fd; /* eventfd, or -1 */
    char where[MPI_MAX_PORT_NAME];
    /* connect */
    struct trp_meeting *meeting;
    const char *const *unstick_argv; /* borrowed */
    void (*stuck)(const char *text); /* of struct trp_listen_config, or NULL */
    bool abandoned; /* a meeting that never ended was left to its thread */
    bool hopeless;  /* so was the last one that is over: nothing frees the next */
    /* world */
    MPI_Comm world;
    uint32_t met_executor; /* being met, or TRP_NONE */
};

int trp_transport_open(struct trp_transport *t, enum trp_transport_kind kind,
                       const char *const *unstick_argv, trp_error *err);
bool trp_transport_close(struct trp_transport *t);

/* MPI_Init_thread when nobody did; an error when MPI is at a thread level below
 * `least`. `stuck` (may be NULL) is called, from another thread, when it has not
 * returned after `limit_ns`.
 */
int trp_transport_init_mpi(int least, int64_t limit_ns, void (*stuck)(const char *text),
                           trp_error *err);

/* Around the loop's calls into MPI, which may be caught in there: odd while it is
 * inside of one. */
extern atomic_uint trp_mpi_calls;

static inline void trp_mpi_mark(void)
{
    unsigned n = atomic_load_explicit(&trp_mpi_calls, memory_order_relaxed);
    atomic_store_explicit(&trp_mpi_calls, n + 1, memory_order_relaxed);
}

/* A detached thread with all signals blocked: they are the program's own threads'.
 * Returns 0 or an errno. */
int trp_transport_thread(void *(*run)(void *), void *arg);

/* After MPI_Init: a peer's death no longer ends this process. (survive.c) */
void trp_transport_survive(void);

/* The text of an MPI error code, in `buf`. */
const char *trp_mpi_text(int code, char buf[MPI_MAX_ERROR_STRING]);

/* Starts `argv` + `last` in a session of its own, without this process's MPI and Slurm
 * environment and with no streams. Returns its pid or a negative code. (unstick.c) */
pid_t trp_unstick_start(const char *const *argv, const char *last, trp_error *err);
/* Reaps it; with `kill` ends it first, hard when it does not go. True when it is gone.
 */
bool trp_unstick_gone(pid_t pid, bool kill);

#endif
