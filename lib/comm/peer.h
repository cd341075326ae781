/*
 * What a channel is made of. Internal to lib/comm.
 *
 *   admission.c  driver: listening, half-open connections, proofs, hellos, and letting
 *                executors into MPI one at a time
 *   refusal.c    driver: who is refused, and what is told of it
 *   call.c       executor: the other side of that
 *   here.h       both: the socket for executors on the driver's host
 *   peer.c       both: one peer's socket and lane, its end
 *   lane.h       both: what carries messages
 *   last_words.c both: what is said of an end
 *   channel.c    both: the loop; sleep, leaving
 *   channel_time.c
 *                both: heartbeats and silence
 *
 * A peer is in `callers` while it has not proved itself and said an accepted hello, in
 * `peers` from then on (in `queue` while it waits to be let into MPI), in `gone` when
 * all is over: it is freed at the end of the
 * progress call, since a handler may drop the very peer whose message it is given.
 */
#ifndef TRP_COMM_PEER_H
#define TRP_COMM_PEER_H

#include "comm/proof.h"
#include "comm/transport.h"
#include "core/base/time.h"

enum {
    TRP_PEERS_MAX = 1 << 20, /* executor ids */
    TRP_CALLERS_MAX = 4096,  /* half-open connections */
    TRP_DEAF_ABOVE = 16,     /* polled peers above which a sleeper is not polled */
    TRP_REFUSALS = 20,       /* lines about strangers in a … */
    TRP_FAILURES_MAX = 3,    /* meetings in a row */
};

#define TRP_SOCKETS_NS INT64_C(50000) /* sockets are looked at so often while busy */
#define TRP_LEAVE_NS (2 * TRP_SECOND)
#define TRP_SILENT_NS (5 * TRP_SECOND)    /* by which a heartbeat may be late */
#define TRP_REFUSALS_NS (60 * TRP_SECOND) /* … window of that length */
#define TRP_MEETING_NS (20 * TRP_SECOND)  /* it takes 4 to 20 ms */

/* Bits, so that a set of them can say where a frame is allowed. */
enum trp_peer_state {
    TRP_PEER_PROVING = 1,    /* D: challenge sent */
    TRP_PEER_GREETING = 2,   /* D: it knows the secret, hello awaited */
    TRP_PEER_GREETED = 4,    /* D: READY awaited; E: ADMIT awaited */
    TRP_PEER_QUEUED = 8,     /* D: ready, others are before it */
    TRP_PEER_MEETING = 16,   /* a meeting is under way */
    TRP_PEER_VERIFYING = 32, /* D: met; the admission nonce is awaited */
    TRP_PEER_UP = 64,
    TRP_PEER_GONE = 128,
};

struct trp_peer {
    struct trp_peer *prev, *next; /* in the list that its state says */
    trp_channel *channel;
    uint32_t id;
    enum trp_peer_state state;
    struct trp_link link;
    bool watched_out; /* epoll tells when the socket takes more */
    struct trp_nonces nonces;
    uint8_t admission[TRP_NONCE_SIZE];
    int64_t opened_ns, heard_ns; /* when it called, and when it was last heard */
    struct trp_hello hello;
    struct trp_last_words last_words;

    struct trp_lane lane;
    uint32_t slot; /* in the channel's polled peers, or TRP_NONE */
    bool sending;  /* in the channel's list of those with unfinished sends */

    uint64_t promised; /* how many messages it has sent, as a RING or BYE told */
    bool told_deaf;    /* we said SLEEP, the peer did not ring since */
    bool is_deaf;      /* it said SLEEP, we did not ring since */
    bool is_silent;    /* D: its heartbeat is late, and the handler was told */
    bool leaving;      /* one of us wants to end the connection in order: */
    bool bye_said, bye_heard;
    bool orderly;     /* GONE: both had said BYE */
    int64_t leave_ns; /* when its socket closed after both goodbyes, or 0 */
};

struct trp_channel {
    bool driver, closing;
    bool unclean; /* a joined peer was lost: no MPI_Finalize */
    struct trp_channel_handler handler;
    struct trp_listen_config config; /* an executor's: its times only */
    uint8_t secret[TRP_SECRET_SIZE];
    char address[300];
    char build[TRP_BUILD_ID_TEXT];
    struct trp_transport transport;
    int epoll_fd, listen_fd, here_fd; /* here_fd: here.h, or -1 */

    struct trp_peer *callers, *queue, *peers, *gone; /* utlist */
    uint32_t ncallers, callers_max, npeers;
    uint32_t nleaving;
    bool listen_paused;      /* no calls are accepted: we are out of descriptors … */
    bool full_told;          /* … and the handler was told */
    struct trp_peer **by_id; /* D */
    uint32_t nby_id;
    struct trp_peer *only; /* E: the driver */

    /* Each has room for peers_max. Polled are peers of lanes that ring. */
    struct trp_peer **polled, **sending;
    uint32_t npolled, nsending, peers_max;
    struct trp_mpi_polls *mpi; /* mpi/lane_mpi.c, or NULL */
    uint32_t ncarrying;        /* peers whose messages come on their sockets */
    bool unread; /* E: frames that came behind its ADMIT have not been looked at */

    /* Letting in. */
    bool meeting;           /* a meeting is under way … */
    struct trp_peer *guest; /* … with this one; NULL: it died meanwhile */
    int64_t meeting_ns;     /* since when */
    int64_t patrol_ns;      /* when late calls and meetings were last looked for */
    uint8_t failures;       /* how many meetings failed in a row */
    bool failed;            /* MPI has, and nobody is let in any more */

    bool slept;       /* it has slept: the next step begins with the sockets */
    bool joining;     /* E: it is not let in yet: the handler is told nothing */
    uint32_t handled; /* messages and frames of this step */
    int64_t now, sockets_due, beat_due, look_due;
    int64_t refusals_until; /* the end of this window, or 0: nobody was refused */
    uint32_t refusals, refusals_hidden;
};

/* ---- channel.c ---- */

/* TRP_ENOMEM, TRP_ESYSTEM. */
int trp_channel_make(bool driver, trp_channel **ret, trp_error *err);
void trp_channel_destroy(trp_channel *c);
int trp_channel_watch(trp_channel *c, int fd, void *what);
void trp_channel_look_at_time(trp_channel *c); /* channel_time.c */

/* ---- peer.c ---- */

/* A new peer of a connected socket, in `callers`. */
struct trp_peer *trp_peer_new(trp_channel *c, int fd);
/* Room in the arrays for one more joined peer. */
int trp_peer_make_room(trp_channel *c);
int trp_peer_put(struct trp_peer *p, enum trp_frame_kind kind, const void *data,
                 size_t n);
void trp_peer_watch_out(struct trp_peer *p); /* after a flush */
void trp_peer_poll(struct trp_peer *p);      /* from now on */
void trp_peer_unpoll(struct trp_peer *p);    /* until it rings or is sent to */
int trp_peer_send(struct trp_peer *p, const void *data, size_t n);
/* For trp_lane_take, with the peer as context. */
bool trp_peer_deliver(void *context, const uint8_t *data, size_t n);
/* Opens its lane and polls it. */
int trp_peer_open(struct trp_peer *p, const struct trp_lane_ops *lane,
                  const struct trp_route *route);
/* Forgets its lane as one of a dead peer. */
void trp_peer_abandon(struct trp_peer *p);
void trp_peer_close_socket(struct trp_peer *p);
/* The end of a peer, with `down` when `tell` and it was let in. */
void trp_peer_end(struct trp_peer *p, bool tell);
void trp_peer_bury(trp_channel *c); /* frees those in `gone` */

/* ---- last_words.c ---- */

enum { TRP_LAST_WORDS_SIZE = 31 + TRP_LAST_WORDS_TEXT }; /* of the body */
int trp_last_words_take(struct trp_peer *p, struct trp_view *v);

/* ---- call.c ---------------------------------------------------------------------- */

int trp_call_admit(struct trp_peer *p, struct trp_view *v);
void trp_call_notice(trp_channel *c);

/* ---- admission.c ---- */

int trp_admission_open(trp_channel *c, trp_error *err);
void trp_admission_accept(trp_channel *c, int fd); /* this one of both is readable */
void trp_admission_notice(trp_channel *c);         /* a meeting may be over */
void trp_admission_time(trp_channel *c);           /* late callers, late guests */
int64_t trp_admission_due(const trp_channel *c);
void trp_admission_forget(struct trp_peer *p); /* it ends: out of queue and meeting */
/* The first message of a peer that is VERIFYING. */
void trp_admission_verify(struct trp_peer *p, const uint8_t *data, size_t n);
/* Frames of a peer that is not joined; negative: not what is expected. */
int trp_admission_answer(struct trp_peer *p, struct trp_view *v);
int trp_admission_hello(struct trp_peer *p, struct trp_view *v);
int trp_admission_ready(struct trp_peer *p, struct trp_view *v);

/* ---- refusal.c ---- */

/* A caller that did not get in: it is told, closed, and told of. */
void trp_admission_refuse(struct trp_peer *p, bool fatal_build, const char *text);
/* A line for the log, within limits when it is about a stranger. */
void trp_admission_tell(trp_channel *c, bool stranger, uint32_t executor,
                        bool fatal_build, const char *text);
/* How many were refused without a line, when there are any: a window is over, or all
 * is. */
void trp_admission_tell_rest(trp_channel *c);

#endif
