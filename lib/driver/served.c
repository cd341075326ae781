/*
 * A connection reads its request, waits for its turn, is answered, and is closed when all
 * was taken. Connections are in a list in the order in which they came: the first that
 * has a whole request has its turn, and the first that has asked nothing goes when there
 * are too many.
 * One whose side does not go on is closed after TRP_SERVED_WAIT_MS.
 */
#include "driver/served.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "os/clock.h"
#include "os/same_user.h"

enum { LOOK_MS = 1000 }; /* for connections that do not go on */

struct client {
    uv_poll_t poll;
    trp_served *served;
    struct client *next;
    int fd;
    int64_t until; /* mono */
    char text[TRP_SERVED_REQUEST];
    size_t ntext;
    bool whole;         /* the request is there, and waits for its turn */
    struct trp_buf out; /* the answer … */
    size_t sent;        /* … of which so much was taken */
};

struct trp_served {
    uv_loop_t *loop;
    uv_poll_t poll;
    uv_timer_t timer;
    uint32_t handles; /* of libuv's that are not closed yet */
    int fd;
    struct trp_served_how how;
    void *context;
    struct client *first; /* the one that came first */
    uint32_t n;
    int64_t free_at; /* the next answer may be made then, mono */
    bool
        fresh; /* a descriptor was added, which libuv only watches from its next turn on */
    bool closing;
};

/* ---- ends ---- */

static void released(trp_served *a)
{
    if (--a->handles || !a->closing)
        return;
    free(a);
}

static void on_client_closed(uv_handle_t *h)
{
    struct client *c = h->data;
    trp_served *a = c->served;
    close(c->fd);
    trp_buf_free(&c->out);
    free(c);
    released(a);
}

static void drop(struct client *c)
{
    trp_served *a = c->served;
    LL_DELETE(a->first, c);
    a->n--;
    uv_close((uv_handle_t *)&c->poll, on_client_closed);
}

static void on_closed(uv_handle_t *h)
{
    released(h->data);
}

/* ---- answers ---- */

static void on_client(uv_poll_t *poll, int status, int events);
static void on_timer(uv_timer_t *timer);

static void send_more(struct client *c)
{
    ssize_t n = send(c->fd, c->out.data + c->sent, c->out.size - c->sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    c->sent += n > 0 ? (size_t)n : 0;
    if (n <= 0 || c->sent == c->out.size)
        drop(c);
    else /* it goes on */
        c->until = trp_clock_ns() + TRP_SERVED_WAIT_MS * INT64_C(1000000);
}

static void answer_one(struct client *c)
{
    trp_served *a = c->served;
    int64_t began = trp_clock_ns();
    a->how.answer(a->context, c->text, c->ntext, &c->out);
    int64_t now = trp_clock_ns(), pause = (now - began) * TRP_SERVED_PAUSE;
    if (pause > TRP_SERVED_PAUSE_MAX_MS * INT64_C(1000000))
        pause = TRP_SERVED_PAUSE_MAX_MS * INT64_C(1000000);
    a->free_at = now + pause;
    c->whole = false;
    c->until = now + TRP_SERVED_WAIT_MS * INT64_C(1000000);
    a->fresh = true;
    if (c->out.failed || uv_poll_start(&c->poll, UV_WRITABLE, on_client) < 0)
        drop(c);
    else
        send_more(c);
}

/* Answers the one whose turn it is, when it is time. */
static void serve(trp_served *a)
{
    struct client *c = a->first;
    while (c && !c->whole)
        c = c->next;
    int64_t left = a->free_at - trp_clock_ns();
    if (c && left <= 0) {
        answer_one(c);
        left = a->free_at - trp_clock_ns();
        for (c = a->first; c && !c->whole;)
            c = c->next;
    }
    int64_t ms = LOOK_MS;
    if (c && left < LOOK_MS * INT64_C(1000000))
        ms = left / 1000000 + 1;
    if (a->fresh)
        ms = 1;
    a->fresh = false;
    uv_update_time(a->loop);
    if (a->n)
        uv_timer_start(&a->timer, on_timer, (uint64_t)(ms > 0 ? ms : 1), 0);
    else
        uv_timer_stop(&a->timer);
}

static void on_timer(uv_timer_t *timer)
{
    trp_served *a = timer->data;
    int64_t now = trp_clock_ns();
    struct client *c, *next;
    LL_FOREACH_SAFE(a->first, c, next) {
        if (!c->whole && now > c->until)
            drop(c);
    }
    serve(a);
}

/* ---- requests ---- */

static void receive(struct client *c)
{
    const trp_served *a = c->served;
    char *at = c->text + c->ntext;
    ssize_t n = recv(c->fd, at, sizeof c->text - c->ntext, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop(c);
        return;
    }
    c->ntext += (size_t)n;
    size_t whole = a->how.whole(c->text, c->ntext);
    if (whole)
        c->ntext = whole;
    c->whole = whole || c->ntext == sizeof c->text;
    if (c->whole)
        uv_poll_stop(&c->poll);
}

static void on_client(uv_poll_t *poll, int status, int events)
{
    struct client *c = poll->data;
    trp_served *a = c->served;
    (void)events;
    if (status < 0)
        drop(c);
    else if (c->out.size)
        send_more(c);
    else
        receive(c);
    serve(a);
}

/* Who makes room: the oldest that has asked nothing yet; else the oldest. */
static struct client *least(const trp_served *a)
{
    struct client *c = a->first;
    while (c && (c->whole || c->out.size))
        c = c->next;
    return c ? c : a->first;
}

static void add_client(trp_served *a, int fd)
{
    struct client *c =
        !a->how.same_user || trp_same_user(fd) ? calloc(1, sizeof *c) : NULL;
    if (!c || uv_poll_init(a->loop, &c->poll, fd) < 0) {
        free(c);
        close(fd);
        return;
    }
    if (a->n == TRP_SERVED_CLIENTS)
        drop(least(a));
    c->poll.data = c;
    c->served = a;
    c->fd = fd;
    c->until = trp_clock_ns() + TRP_SERVED_WAIT_MS * INT64_C(1000000);
    LL_APPEND(a->first, c);
    a->n++;
    a->handles++;
    a->fresh = true;
    if (uv_poll_start(&c->poll, UV_READABLE, on_client) < 0)
        drop(c);
    else
        receive(c);
}

static void on_call(uv_poll_t *poll, int status, int events)
{
    trp_served *a = poll->data;
    (void)status, (void)events;
    int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        add_client(a, fd);
    serve(a);
}

/* ---- life ---- */

static int watch(trp_served *a, uv_loop_t *loop)
{
    int rc = uv_poll_init(loop, &a->poll, a->fd);
    if (rc < 0)
        return rc;
    uv_timer_init(loop, &a->timer);
    a->poll.data = a->timer.data = a;
    a->handles = 2;
    rc = uv_poll_start(&a->poll, UV_READABLE, on_call);
    if (rc < 0)
        trp_served_close(a);
    return rc;
}

trp_served *trp_served_new(uv_loop_t *loop, int take_fd,
                           const struct trp_served_how *how, void *context,
                           trp_error *err)
{
    trp_served *a = calloc(1, sizeof *a);
    if (!a) {
        close(take_fd);
        trp_error_set(err, TRP_ENOMEM, "out of memory");
        return NULL;
    }
    *a = (trp_served){.loop = loop, .fd = take_fd, .how = *how, .context = context};
    int rc = watch(a, loop);
    if (rc == 0)
        return a;
    trp_error_set(err, TRP_ESYSTEM, "%s", uv_strerror(rc));
    if (!a->handles) {
        close(take_fd);
        free(a);
    }
    return NULL;
}

void trp_served_close(trp_served *take_s)
{
    trp_served *a = take_s;
    if (!a)
        return;
    a->closing = true;
    while (a->first)
        drop(a->first);
    uv_close((uv_handle_t *)&a->timer, on_closed);
    uv_close((uv_handle_t *)&a->poll, on_closed);
    close(a->fd);
}
