/*
 * Block server.
 *
 * One thread, one epoll. A connection is a queue of wanted pieces: the first is looked
 * up, its frame is written, then its bytes, by sendfile, or together with the frame
 * where they are few; then the next, while the socket takes it. So a reader that is
 * slow holds up nobody else, and a server holds no block in memory.
 *
 * Files that were asked for lately stay open with what their footers say: a reduce
 * stage comes to each file as often as it has tasks.
 *
 * Strangers cost a nonce and an HMAC each, are TRP_STRANGERS at most (the oldest goes
 * first) and have ten seconds. Without descriptors for more the oldest stranger goes;
 * when there is none, who comes waits in the backlog until others have gone.
 */
#include "data/block_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "comm/channel.h"
#include "comm/handshake.h"
#include "comm/listen.h"
#include "core/base/time.h"
#include "data/block_wire.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/thread.h"

enum {
    STRANGERS = 128,
    ACCEPTS_A_STEP = 64,
    FILES = 256,
    WAYS = 4,               /* places of a file among these, unless all are in use */
    TOGETHER = 64 << 10,    /* frames that are written at a time */
    FEW_BYTES = 8 << 10,    /* go with their frame */
    AT_ONCE = 1 << 20,      /* of one connection, then others have their turn */
    CHECK_MOST = 256 << 20, /* of a file that is looked through … */
    CHECK_HOLDS = 10,       /* … and that is not done again for so many seconds */
    TICK_MS = 500,
};

struct open_file {
    struct trp_output_id id;
    struct trp_block_file file;
    bool is;
    unsigned users;     /* connections that send from it */
    uint64_t used;      /* when, by number */
    int64_t checked_ns; /* when it was looked through … */
    int checked;        /* … and what came of it */
};

struct caller {
    struct trp_link link;
    struct trp_nonces nonces;
    bool proved, watches_out;
    int64_t opened_ns, moved_ns; /* when something of its answers was taken last */
    struct trp_wanted *wanted;   /* a ring of TRP_WANTED_PENDING */
    uint32_t first, nwanted, answered;
    struct open_file *from; /* what is being sent; NULL: nothing */
    uint64_t at, left;
    struct caller *prev, *next;
};

struct trp_block_server {
    struct trp_block_server_config config;
    uint8_t secret[TRP_SECRET_SIZE];
    char endpoint[TRP_ADDRESS_TEXT];
    int folder, epoll_fd, listen_fd, stop_fd;
    bool listening;
    struct caller *strangers, *callers;
    unsigned nstrangers;
    struct open_file files[FILES];
    uint32_t nfiles; /* of which so many may be open */
    uint64_t use;
    int64_t now;
    _Atomic uint64_t ncallers, nrefused, nanswers, nbytes;
    pthread_t thread;
};

/* ---- files ----------------------------------------------------------------------- */

static void close_file(struct open_file *f)
{
    if (f->is)
        trp_block_file_close(&f->file);
    f->is = false;
}

static bool is_file_of(const struct open_file *f, const struct trp_output_id *id)
{
    return f->is && f->id.shuffle == id->shuffle && f->id.map == id->map &&
           f->id.attempt == id->attempt;
}

/* A place for another one, of those from … on; NULL: all are in use. */
static struct open_file *free_place(struct open_file *from, uint32_t n)
{
    struct open_file *best = NULL;
    for (struct open_file *f = from; f < from + n; f++)
        if (f->users == 0 && (!best || (best->is && (!f->is || f->used < best->used))))
            best = f;
    return best;
}

/* In the folder of this host, else where those of hosts that are gone lie. */
static int open_output(const trp_block_server *s, const struct trp_output_id *id,
                       struct trp_block_file *ret, trp_error *err)
{
    trp_error none;
    int rc = trp_block_file_open(s->folder, id, ret, err);
    int shared = rc == TRP_ENOENT && s->config.shared
                     ? trp_held_open(s->config.shared, O_RDONLY | O_DIRECTORY, 0)
                     : -1;
    if (shared < 0)
        return rc;
    rc = trp_block_file_open(shared, id, ret, &none);
    close(shared);
    if (rc < 0 && rc != TRP_ENOENT)
        *err = none;
    return rc;
}

/* The open file of a map output. As trp_block_file_open; TRP_EWAIT: all are in use. */
static int find_file(trp_block_server *s, const struct trp_output_id *id,
                     struct open_file **ret, trp_error *err)
{
    uint64_t hash = trp_parts_seed(id->shuffle, id->map, id->attempt);
    struct open_file *set = s->files + hash % (s->nfiles / WAYS) * WAYS;
    for (struct open_file *f = set; f < set + WAYS; f++) {
        if (is_file_of(f, id)) {
            f->used = s->use++;
            *ret = f;
            return 0;
        }
    }
    struct open_file *place = free_place(set, WAYS);
    place = place ? place : free_place(s->files, s->nfiles);
    if (!place)
        return trp_error_set(err, TRP_EWAIT, "the server has too many files open");
    close_file(place);
    int rc = open_output(s, id, &place->file, err);
    if (rc < 0)
        return rc;
    place->id = *id;
    place->is = true;
    place->checked_ns = INT64_MIN;
    place->used = s->use++;
    *ret = place;
    return 0;
}

/* What is not used goes, so that what was removed does not take up the disk. */
static void close_old_files(trp_block_server *s)
{
    for (struct open_file *f = s->files; f < s->files + FILES; f++)
        if (f->is && f->users == 0)
            close_file(f);
}

/* ---- callers --------------------------------------------------------------------- */

static void hang_up(trp_block_server *s, struct caller *c)
{
    if (c->proved) {
        DL_DELETE(s->callers, c);
    } else {
        DL_DELETE(s->strangers, c);
        s->nstrangers--;
        s->nrefused++;
    }
    if (c->from)
        c->from->users--;
    trp_link_close(&c->link);
    free(c->wanted);
    free(c);
}

static struct trp_handshake handshake_of(const trp_block_server *s, struct caller *c)
{
    return (struct trp_handshake){.secret = s->secret,
                                  .munge = s->config.munge,
                                  .mac = s->config.mac,
                                  .listener = TRP_PROVER_BLOCK_SERVER,
                                  .caller = TRP_PROVER_BLOCK_CLIENT,
                                  .listener_name = "the block server",
                                  .nonces = &c->nonces};
}

static void take_stranger(trp_block_server *s, int fd)
{
    struct caller *c = (struct caller *)calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return;
    }
    trp_link_open(&c->link, fd, TRP_FRAME_CALLER_MAX);
    c->opened_ns = c->moved_ns = s->now;
    DL_APPEND(s->strangers, c);
    s->nstrangers++;
    s->ncallers++;
    const struct trp_handshake h = handshake_of(s, c);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (trp_handshake_challenge(&h, &c->link) < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        hang_up(s, c);
    else if (s->nstrangers > STRANGERS)
        hang_up(s, s->strangers);
}

static void listen_again(trp_block_server *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->listen_fd};
    s->listening = epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &event) == 0;
}

static void accept_some(trp_block_server *s)
{
    for (int i = 0; i < ACCEPTS_A_STEP; i++) {
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            take_stranger(s, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        if (s->strangers) {
            hang_up(s, s->strangers);
            continue;
        }
        epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->listen_fd, NULL);
        s->listening = false; /* until the next tick */
        return;
    }
}

/* ---- answers --------------------------------------------------------------------- */

static uint8_t status_of(int rc)
{
    return rc == 0            ? TRP_BLOCK_HERE
           : rc == TRP_ENOENT ? TRP_BLOCK_GONE
           : rc == TRP_EPROTO ? TRP_BLOCK_DAMAGED
                              : TRP_BLOCK_LATER;
}

/* All readers of a stage ask at once. */
static int check_file(const trp_block_server *s, struct open_file *f, trp_error *err)
{
    struct stat st;
    if (fstat(f->file.fd, &st) == 0 && st.st_nlink == 0)
        return trp_error_set(err, TRP_ENOENT, "it was removed");
    if (f->file.blocks > CHECK_MOST)
        return 0;
    if (f->checked_ns < s->now - CHECK_HOLDS * TRP_SECOND) {
        f->checked = trp_block_file_check(&f->file, &f->id, err);
        f->checked_ns = s->now;
    } else if (f->checked < 0) {
        trp_error_set(err, f->checked, "it is damaged");
    }
    return f->checked;
}

/* Finds a wanted piece: its head, and where its bytes are. */
static void look_up(trp_block_server *s, const struct trp_wanted *w,
                    struct trp_block_head *ret, struct open_file **ret_file,
                    uint64_t *ret_at)
{
    struct trp_block_place place = {0};
    trp_error why = {0};
    int rc = find_file(s, &w->id, ret_file, &why);
    if (rc == 0 && (*ret_file)->file.partitions != w->partitions)
        rc = trp_error_set(&why, TRP_EPROTO, "it has %u partitions, not %u",
                           (*ret_file)->file.partitions, w->partitions);
    if (rc == 0 && w->offset == TRP_WANTED_CHECK) {
        rc = check_file(s, *ret_file, &why);
        place.size = (*ret_file)->file.blocks;
    } else if (rc == 0) {
        rc = trp_block_file_find(&(*ret_file)->file, w->partition, &place, &why);
    }
    uint64_t left = place.size > w->offset ? place.size - w->offset : 0;
    ret->status = status_of(rc);
    ret->size = place.size;
    ret->bytes = (uint32_t)(left < w->size ? left : w->size);
    snprintf(ret->why, sizeof ret->why, "%.*s", TRP_BLOCK_WHY, why.text);
    *ret_at = place.begin + w->offset;
}

/* Reads `n` bytes behind the frame, instead of sendfile. */
static int put_few(struct caller *c, const struct open_file *f, uint64_t at, uint32_t n)
{
    uint8_t bytes[FEW_BYTES];
    for (uint32_t done = 0; done < n;) {
        ssize_t got = pread(f->file.fd, bytes + done, n - done, (off_t)(at + done));
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return TRP_ESYSTEM;
        done += got > 0 ? (uint32_t)got : 0;
    }
    return trp_link_put_raw(&c->link, bytes, n);
}

/* The frame of the next wanted piece, and its bytes or where they are. 1: it was looked
 * through, which takes a while. */
static int begin_answer(trp_block_server *s, struct caller *c)
{
    const struct trp_wanted w = c->wanted[c->first];
    struct trp_block_head h = {.number = c->answered++};
    struct open_file *f = NULL;
    struct trp_buf b = {0};
    uint64_t at;
    c->first = (c->first + 1) % TRP_WANTED_PENDING;
    c->nwanted--;
    look_up(s, &w, &h, &f, &at);
    trp_block_head_put(&b, &h);
    int rc = b.failed ? TRP_ENOMEM
                      : trp_link_queue(&c->link, TRP_FRAME_BLOCK, b.data, b.size);
    trp_buf_free(&b);
    s->nanswers++;
    s->nbytes += h.bytes;
    if (rc == 0 && w.offset == TRP_WANTED_CHECK)
        return 1;
    if (rc < 0 || h.bytes == 0)
        return rc;
    if (h.bytes <= FEW_BYTES)
        return put_few(c, f, at, h.bytes);
    c->from = f;
    c->at = at;
    c->left = h.bytes;
    f->users++;
    return 0;
}

/* Sends what is left of a piece. 1: it is done; 0: the socket takes no more. */
static int send_rest(trp_block_server *s, struct caller *c)
{
    while (c->left > 0) {
        off_t at = (off_t)c->at;
        ssize_t n = sendfile(c->link.fd, c->from->file.fd, &at, c->left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0)
            return TRP_ESYSTEM; /* a file that was cut meanwhile, too */
        c->moved_ns = s->now;
        c->at += (uint64_t)n;
        c->left -= (uint64_t)n;
    }
    c->from->users--;
    c->from = NULL;
    return 1;
}

static void cork(struct caller *c, int on)
{
    setsockopt(c->link.fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

/* Writes the frames that are pending. 1: all of them; 0: the socket takes no more. */
static int write_frames(trp_block_server *s, struct caller *c)
{
    size_t pending = c->link.out.size - c->link.out_at;
    int rc = trp_link_flush(&c->link);
    if (c->link.out.size - c->link.out_at < pending)
        c->moved_ns = s->now;
    return rc < 0 ? rc : !trp_link_pending(&c->link);
}

/* Answers while the socket takes it, for a while. 1: all is answered; 0: later. */
static int answer_some(trp_block_server *s, struct caller *c)
{
    const uint64_t enough = s->nbytes + AT_ONCE;
    for (;;) {
        int rc;
        if (!c->from && c->nwanted > 0 && s->nbytes <= enough &&
            c->link.out.size - c->link.out_at < TOGETHER) {
            rc = begin_answer(s, c);
            if (rc > 0) /* others have their turn */
                rc = write_frames(s, c) < 0 ? TRP_ESYSTEM : 0;
            else if (rc == 0)
                continue;
            return rc;
        }
        rc = write_frames(s, c);
        if (rc > 0 && c->from)
            rc = send_rest(s, c);
        else if (rc > 0 && c->nwanted == 0)
            return 1;
        if (rc <= 0 || s->nbytes > enough)
            return rc < 0 ? rc : 0;
    }
}

static void answer(trp_block_server *s, struct caller *c)
{
    cork(c, 1);
    int rc = answer_some(s, c);
    cork(c, 0);
    bool wait = rc == 0;
    if (rc >= 0 && wait != c->watches_out) {
        struct epoll_event event = {.events = wait ? EPOLLOUT : EPOLLIN, .data.ptr = c};
        c->watches_out = wait;
        rc = epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->link.fd, &event);
    }
    if (rc < 0)
        hang_up(s, c);
}

/* ---- questions ------------------------------------------------------------------- */

static int take_proof(trp_block_server *s, struct caller *c, struct trp_view *v)
{
    const struct trp_handshake h = handshake_of(s, c);
    trp_error why;
    int rc = trp_handshake_check(&h, &c->link, v, &why);
    if (rc < 0)
        return rc;
    c->wanted = (struct trp_wanted *)calloc(TRP_WANTED_PENDING, sizeof *c->wanted);
    if (!c->wanted)
        return TRP_ENOMEM;
    DL_DELETE(s->strangers, c);
    s->nstrangers--;
    c->proved = true;
    c->moved_ns = s->now;
    c->link.limit = TRP_FRAME_MAX;
    c->link.carries = true;
    DL_APPEND(s->callers, c);
    return 0;
}

static int take_wanted(trp_block_server *s, struct caller *c, struct trp_view *v)
{
    int n = trp_wanted_count(v);
    if (n < 0 || (uint32_t)n > TRP_WANTED_PENDING - c->nwanted)
        return TRP_EPROTO;
    if (c->nwanted == 0 && !c->from)
        c->moved_ns = s->now;
    for (int i = 0; i < n; i++) {
        uint32_t at = (c->first + c->nwanted) % TRP_WANTED_PENDING;
        if (trp_wanted_get(v, &c->wanted[at]) < 0)
            return TRP_EPROTO;
        c->nwanted++;
    }
    return 0;
}

static void hear(trp_block_server *s, struct caller *c)
{
    uint8_t kind;
    struct trp_view v;
    int filled = trp_link_fill(&c->link), rc;
    while ((rc = trp_link_next(&c->link, &kind, &v)) > 0) {
        if (!c->proved && kind == TRP_FRAME_ANSWER)
            rc = take_proof(s, c, &v);
        else if (c->proved && kind == TRP_FRAME_WANTED)
            rc = take_wanted(s, c, &v);
        else
            rc = TRP_EPROTO;
        if (rc < 0)
            break;
    }
    if (rc < 0 || filled < 0)
        hang_up(s, c);
    else if (c->proved)
        answer(s, c);
}

/* ---- the thread ------------------------------------------------------------------ */

static void tick(trp_block_server *s)
{
    struct caller *c, *next;
    DL_FOREACH_SAFE(s->strangers, c, next) {
        if (s->now - c->opened_ns > s->config.handshake_timeout_ns)
            hang_up(s, c);
    }
    DL_FOREACH_SAFE(s->callers, c, next) {
        if (s->now - c->moved_ns > s->config.timeout_ns)
            hang_up(s, c);
    }
    if (!s->listening)
        listen_again(s);
}

static void *serve(void *arg)
{
    trp_block_server *s = (trp_block_server *)arg;
    int64_t ticked = trp_clock_ns();
    for (;;) {
        struct epoll_event events[64];
        bool quiet = !s->strangers && !s->callers && s->listening, came = false;
        int n = epoll_wait(s->epoll_fd, events, 64, quiet ? 20 * TICK_MS : TICK_MS);
        s->now = trp_clock_ns();
        if (n == 0)
            close_old_files(s);
        for (int i = 0; i < n; i++) {
            struct caller *c = (struct caller *)events[i].data.ptr;
            if (events[i].data.ptr == &s->stop_fd)
                return NULL;
            if (events[i].data.ptr == &s->listen_fd)
                came = true;
            else if (c->watches_out && !(events[i].events & (EPOLLERR | EPOLLHUP)))
                answer(s, c);
            else
                hear(s, c);
        }
        if (came) /* last: it may hang up on others */
            accept_some(s);
        if (s->now - ticked >= TICK_MS * (TRP_SECOND / 1000)) {
            ticked = s->now;
            tick(s);
        }
    }
}

static void free_server(trp_block_server *s)
{
    struct caller *c, *next;
    DL_FOREACH_SAFE(s->strangers, c, next) {
        hang_up(s, c);
    }
    DL_FOREACH_SAFE(s->callers, c, next) {
        hang_up(s, c);
    }
    close_old_files(s);
    for (int *fd = (int[]){s->folder, s->epoll_fd, s->listen_fd, s->stop_fd, -2};
         *fd != -2; fd++)
        if (*fd >= 0)
            close(*fd);
    explicit_bzero(s->secret, sizeof s->secret);
    free(s);
}

static int open_server(trp_block_server *s, trp_error *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->stop_fd};
    struct rlimit files;
    bool many =
        getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= (rlim_t)8 * FILES;
    s->nfiles = many ? FILES : FILES / 8;
    s->folder = trp_held_open(s->config.folder, O_RDONLY | O_DIRECTORY, 0);
    if (s->folder < 0)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %m", s->config.folder);
    s->listen_fd = trp_listen(s->config.here_only, s->endpoint, err);
    if (s->listen_fd < 0)
        return s->listen_fd;
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->epoll_fd < 0 || s->stop_fd < 0 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->stop_fd, &event) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "block server: %m");
    listen_again(s);
    s->now = trp_clock_ns();
    int rc = trp_thread_start(&s->thread, serve, s);
    return rc == 0 ? 0
                   : trp_error_set(err, TRP_ESYSTEM, "block server: %s", strerror(rc));
}

int trp_block_server_start(const struct trp_block_server_config *config,
                           trp_block_server **ret, trp_error *err)
{
    trp_block_server *s = (trp_block_server *)calloc(1, sizeof *s);
    if (!s)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    s->config = *config;
    if (s->config.handshake_timeout_ns == 0)
        s->config.handshake_timeout_ns = 10 * TRP_SECOND;
    if (s->config.timeout_ns == 0)
        s->config.timeout_ns = 120 * TRP_SECOND;
    memcpy(s->secret, config->secret, sizeof s->secret);
    s->folder = s->epoll_fd = s->listen_fd = s->stop_fd = -1;
    int rc = open_server(s, err);
    if (rc < 0)
        free_server(s);
    else
        *ret = s;
    return rc;
}

const char *trp_block_server_endpoint(const trp_block_server *s)
{
    return s->endpoint;
}

void trp_block_server_counts(trp_block_server *s, struct trp_block_server_counts *ret)
{
    *ret = (struct trp_block_server_counts){s->ncallers, s->nrefused, s->nanswers,
                                            s->nbytes};
}

void trp_block_server_stop(trp_block_server *s)
{
    if (!s)
        return;
    eventfd_write(s->stop_fd, 1);
    pthread_join(s->thread, NULL);
    free_server(s);
}
