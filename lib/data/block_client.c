/*
 * The block client's thread, and what readers see of it.
 *
 * A fetch goes from a reader to the thread in a list under a lock, from there to a
 * connection, and, when it failed, waits until it is tried again. It is told to be done
 * at the end of a round of the loop, with all others of the round.
 *
 * Which endpoint of a host is asked first differs between clients, so that the servers
 * of a host share the work, and is the same for all fetches of one: a client has one
 * connection to a host.
 */
#include "data/block_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "comm/channel.h"
#include "core/base/array.h"
#include "core/base/time.h"
#include "data/block_call.h"
#include "os/clock.h"
#include "os/thread.h"

enum { TICK_MS = 20, LOOK_MS = 100, IDLE_TICK_MS = 10000 };

struct trp_block_client {
    struct trp_block_calls calls;
    uint32_t first_endpoint;
    int wake_fd;
    struct trp_fetch *waiting; /* to be tried again */
    struct trp_fetch *over;    /* in this round */
    bool learnt;               /* of servers, before it */
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows, and of `done` of fetches */
    pthread_cond_t changed;
    struct trp_fetch *begun; /* since the last round, by `next` */
    struct trp_fetch *ended; /* that nobody wants any more, by `next_ended` */
    struct trp_block_client_counts counts;
    struct servers { /* of a location */
        char **endpoints;
        uint32_t n;
    } * servers;
    uint32_t nservers, servers_capacity; /* locations that have servers, or had */
    bool news;                           /* of these, since the last round */
    bool stop;
};

/* ---- the thread ------------------------------------------------------------------ */

/* It is done at the end of the round. */
static void fetch_over(void *context, struct trp_fetch *f, int result, const char *why)
{
    trp_block_client *c = (trp_block_client *)context;
    f->result = result;
    f->where = TRP_FETCH_OVER;
    snprintf(f->why, sizeof f->why, "%.*s", TRP_BLOCK_WHY, why);
    LL_PREPEND(c->over, f);
}

static void fetch_again(void *context, struct trp_fetch *f, const char *why)
{
    trp_block_client *c = (trp_block_client *)context;
    uint32_t shift = f->tries < 6 ? f->tries : 6;
    if (++f->tries >= c->calls.config.tries) {
        fetch_over(c, f, TRP_ENOENT, why);
        return;
    }
    c->calls.counts.retries++;
    f->where = TRP_FETCH_WAITS;
    f->due_ns = c->calls.now + (c->calls.config.retry_ns << shift);
    f->unknown = false;
    DL_APPEND(c->waiting, f);
}

static uint32_t which(const trp_block_client *c, const struct trp_fetch *f, uint32_t n)
{
    return (c->first_endpoint + f->tries) % n;
}

/* One that may be asked, malloc'ed; NULL: none is known, or out of memory. */
static char *learnt_endpoint(trp_block_client *c, const struct trp_fetch *f)
{
    char *found = NULL;
    pthread_mutex_lock(&c->lock);
    const struct servers *s =
        f->host->location < c->nservers ? &c->servers[f->host->location] : NULL;
    if (s && s->n > 0)
        found = strdup(s->endpoints[which(c, f, s->n)]);
    pthread_mutex_unlock(&c->lock);
    return found;
}

static void wait_for_server(trp_block_client *c, struct trp_fetch *f, const char *why)
{
    fetch_again(c, f, why);
    f->unknown = f->where == TRP_FETCH_WAITS;
}

/* What it wants is being moved: no try is lost by that. */
static void wait_for_move(trp_block_client *c, struct trp_fetch *f)
{
    f->where = TRP_FETCH_WAITS;
    f->due_ns = c->calls.now + c->calls.config.retry_ns;
    f->unknown = true;
    DL_APPEND(c->waiting, f);
}

static void fetch_start(trp_block_client *c, struct trp_fetch *f)
{
    static const char unknown[] = "no block server of this host is known";
    const struct trp_data_host *host = f->host;
    char *learnt = host->endpoints ? NULL : learnt_endpoint(c, f);
    if (!host->endpoints && !learnt)
        wait_for_server(c, f, unknown);
    else if (learnt && !*learnt)
        wait_for_move(c, f);
    else if (!learnt && host->nendpoints == 0)
        fetch_over(c, f, TRP_ENOENT, unknown);
    else if (trp_block_call_want(
                 &c->calls,
                 learnt ? learnt : host->endpoints[which(c, f, host->nendpoints)],
                 f) < 0)
        fetch_over(c, f, TRP_ENOENT, "out of memory");
    free(learnt);
}

/* What readers have begun and ended since. False: the client stops. */
static bool take_orders(trp_block_client *c)
{
    struct trp_fetch *f, *next;
    pthread_mutex_lock(&c->lock);
    struct trp_fetch *begun = c->begun, *ended = c->ended;
    bool stop = c->stop;
    c->begun = c->ended = NULL;
    c->learnt = c->news;
    c->news = false;
    LL_FOREACH2(ended, f, next_ended) {
        f->ending = false;
    }
    pthread_mutex_unlock(&c->lock);
    DL_FOREACH_SAFE(begun, f, next) {
        fetch_start(c, f);
    }
    for (f = ended; f; f = next) {
        next = f->next_ended;
        if (f->where == TRP_FETCH_OVER)
            continue;
        if (f->where == TRP_FETCH_WAITS)
            DL_DELETE(c->waiting, f);
        else
            trp_block_call_drop(f);
        fetch_over(c, f, TRP_ECANCELLED, "");
    }
    return !stop;
}

static void start_those_due(trp_block_client *c)
{
    struct trp_fetch *f, *next;
    DL_FOREACH_SAFE(c->waiting, f, next) {
        char *learnt = f->unknown && c->learnt ? learnt_endpoint(c, f) : NULL;
        bool due = learnt || f->due_ns <= c->calls.now;
        free(learnt);
        if (!due)
            continue;
        DL_DELETE(c->waiting, f);
        fetch_start(c, f);
    }
}

static void tell_over(trp_block_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->counts = c->calls.counts;
    if (c->over)
        pthread_cond_broadcast(&c->changed);
    while (c->over) {
        struct trp_fetch *f = c->over;
        c->over = f->next;
        if (f->ending)
            LL_DELETE2(c->ended, f, next_ended);
        f->done = true; /* from here on it is its reader's */
    }
    pthread_mutex_unlock(&c->lock);
}

static void *run(void *arg)
{
    trp_block_client *c = (trp_block_client *)arg;
    int wait = IDLE_TICK_MS;
    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(c->calls.epoll_fd, events, 64, wait);
        c->calls.now = trp_clock_ns();
        for (int i = 0; i < n; i++) {
            eventfd_t count;
            if (events[i].data.ptr == &c->wake_fd)
                eventfd_read(c->wake_fd, &count);
            else
                trp_block_call_move((struct trp_block_call *)events[i].data.ptr,
                                    events[i].events);
        }
        if (!take_orders(c))
            return NULL;
        start_those_due(c);
        bool busy = trp_block_calls_progress(&c->calls);
        wait = c->waiting ? TICK_MS : busy ? LOOK_MS : IDLE_TICK_MS;
        tell_over(c);
    }
}

/* ---- readers --------------------------------------------------------------------- */

void trp_fetch_begin(trp_block_client *c, struct trp_fetch *f)
{
    f->done = f->ending = f->answered = false;
    f->begun = true;
    f->where = TRP_FETCH_WAITS;
    f->tries = 0;
    pthread_mutex_lock(&c->lock);
    bool first = !c->begun;
    DL_APPEND(c->begun, f);
    pthread_mutex_unlock(&c->lock);
    if (first)
        eventfd_write(c->wake_fd, 1);
}

int trp_fetch_wait(trp_block_client *c, struct trp_fetch *f, const volatile int *killed)
{
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    while (!f->done && rc == 0) {
        struct timespec until = trp_clock_after(LOOK_MS * TRP_MS);
        pthread_cond_timedwait(&c->changed, &c->lock, &until);
        rc = !f->done && trp_is_killed(killed) ? TRP_ECANCELLED : 0;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void trp_fetch_end(trp_block_client *c, struct trp_fetch *f)
{
    if (!f->begun)
        return;
    pthread_mutex_lock(&c->lock);
    if (!f->done) {
        f->ending = true;
        LL_PREPEND2(c->ended, f, next_ended);
        eventfd_write(c->wake_fd, 1);
    }
    while (!f->done)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    f->begun = false;
}

/* ---- block servers --------------------------------------------------------------- */

static void free_servers(struct servers *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        free(s->endpoints[i]);
    free(s->endpoints);
}

int trp_block_client_learn(trp_block_client *c, uint32_t location,
                           const char *const *endpoints, uint32_t n)
{
    struct servers fresh = {(char **)calloc((size_t)n + 1, sizeof(char *)), n}, old;
    bool good = fresh.endpoints != NULL;
    for (uint32_t i = 0; good && i < n; i++)
        good = (fresh.endpoints[i] = strdup(endpoints[i])) != NULL;
    pthread_mutex_lock(&c->lock);
    good = good && TRP_ARRAY_RESERVE_ZEROED(c->servers, c->servers_capacity,
                                            (uint64_t)location + 1);
    if (good && location >= c->nservers)
        c->nservers = location + 1;
    old = fresh;
    if (good) {
        old = c->servers[location];
        c->servers[location] = fresh;
        c->news = true;
    }
    pthread_mutex_unlock(&c->lock);
    if (old.endpoints)
        free_servers(&old);
    eventfd_write(c->wake_fd, 1);
    return good ? 0 : TRP_ENOMEM;
}

/* ---- starting and stopping ------------------------------------------------------- */

static void free_client(trp_block_client *c)
{
    trp_block_calls_close(&c->calls);
    if (c->calls.epoll_fd >= 0)
        close(c->calls.epoll_fd);
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    for (uint32_t i = 0; i < c->nservers; i++)
        free_servers(&c->servers[i]);
    free(c->servers);
    explicit_bzero(c->calls.secret, sizeof c->calls.secret);
    free(c);
}

static void configure(trp_block_client *c, const struct trp_block_client_config *config)
{
    struct trp_block_client_config *mine = &c->calls.config;
    *mine = *config;
    if (mine->timeout_ns == 0)
        mine->timeout_ns = 30000 * TRP_MS;
    if (mine->retry_ns == 0)
        mine->retry_ns = 500 * TRP_MS;
    if (mine->idle_ns == 0)
        mine->idle_ns = 30000 * TRP_MS;
    if (mine->tries == 0)
        mine->tries = 4;
    memcpy(c->calls.secret, config->secret, TRP_SECRET_SIZE);
    c->calls.context = c;
    c->calls.over = fetch_over;
    c->calls.again = fetch_again;
    c->calls.now = trp_clock_ns();
    c->first_endpoint = (uint32_t)getpid();
}

int trp_block_client_start(const struct trp_block_client_config *config,
                           trp_block_client **ret, trp_error *err)
{
    trp_block_client *c = (trp_block_client *)calloc(1, sizeof *c);
    pthread_condattr_t attr;
    if (!c)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    configure(c, config);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    c->calls.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &c->wake_fd};
    int rc = 0;
    if (c->calls.epoll_fd < 0 || c->wake_fd < 0 ||
        epoll_ctl(c->calls.epoll_fd, EPOLL_CTL_ADD, c->wake_fd, &event) < 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "block client: %m");
    int error = rc == 0 ? trp_thread_start(&c->thread, run, c) : 0;
    if (error != 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "block client: %s", strerror(error));
    if (rc < 0)
        free_client(c);
    else
        *ret = c;
    return rc;
}

void trp_block_client_counts(trp_block_client *c, struct trp_block_client_counts *ret)
{
    pthread_mutex_lock(&c->lock);
    *ret = c->counts;
    pthread_mutex_unlock(&c->lock);
}

void trp_block_client_stop(trp_block_client *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_mutex_unlock(&c->lock);
    eventfd_write(c->wake_fd, 1);
    pthread_join(c->thread, NULL);
    free_client(c);
}
