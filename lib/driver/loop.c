/*
 * The loop: take MPI messages and socket events, let the engine decide, send, sleep.
 *
 * One thread at a time is in it, the one that holds the baton: the caller of an action
 * while it waits, else the standby thread. libuv has the sockets, child processes and
 * timers; it is looked into when the channel's descriptors may have something, that is
 * before every sleep and at least every 200 us.
 *
 * Spinning. While function tasks are in flight the loop polls for a while after
 * something happened (os/spin.h). Otherwise it sleeps until a socket, a child or a
 * timer wakes it. Nothing uses CPU while nothing happens.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conf/wording.h"
#include "driver/driver_state.h"
#include "driver/locations.h"
#include "driver/moving.h"
#include "events/run_folder.h"
#include "os/clock.h"

static const int64_t LOOK_NS = 200000;
static const int64_t PROGRESS_NS = 100000000;

/* ---- stopping ---- */

void trp_driver_cancel_jobs(trp_driver *d)
{
    for (uint32_t i = 0; i < d->njobs; i++) {
        struct trp_event ev = {.kind = TRP_EVENT_CANCEL_JOB, .cancel = {.job = {i}}};
        if (d->jobs[i] && !d->jobs[i]->over)
            trp_driver_step(d, &ev);
    }
}

/* What the run's last line will say. */
static void note_stop(trp_driver *d, int why, const char *text)
{
    d->stop = why;
    if (why == TRP_ESYSTEM)
        trp_error_set(&d->stop_error, why, "%s", text);
    else
        trp_error_set(&d->stop_error, why, "%s%s%s%s",
                      why == TRP_ETIME ? "time was up" : "cancelled",
                      d->config.resumes ? "; `troupe run --resume " : "",
                      d->config.resumes ? trp_run_called(d->run_dir) : "",
                      d->config.resumes ? "` goes on" : "");
}

/* `told`: the user knows of it. */
static void stop(trp_driver *d, int why, bool kill, const char *text, bool told)
{
    if (!d->stop) {
        note_stop(d, why, text);
        int64_t now = trp_clock_ns();
        if (!told)
            trp_progress_end_line(d->progress, now, text);
        trp_event_message(d->log, "warning", text, trp_driver_wall(d, now));
        d->kill_at = now + trp_options_time_ns(d->options, "run.grace");
        struct trp_event ev = {.kind = TRP_EVENT_DRAIN};
        trp_driver_step(d, &ev);
    }
    if (kill) {
        d->kill_at = 0;
        d->hurry = true;
    }
}

void trp_driver_stop(trp_driver *d, int why, bool kill, const char *text)
{
    stop(d, why, kill, text, false);
}

void trp_driver_mpi_failed(trp_driver *d, const char *why)
{
    char text[TRP_ERROR_TEXT];
    if (d->config.mode == TRP_DRIVER_STATIC)
        snprintf(text, sizeof text, "%s", why);
    else
        snprintf(text, sizeof text, "%s; " TRP_TRANSPORT_ADVICE "%s%s%s", why,
                 d->config.resumes ? ": `troupe run --resume " : "",
                 d->config.resumes ? trp_run_called(d->run_dir) : "",
                 d->config.resumes ? " --set comm.transport=socket` goes on" : "");
    trp_driver_stop(d, TRP_ESYSTEM, true, text);
}

static void check_stop(trp_driver *d, int64_t now)
{
    trp_error err;
    if (trp_event_log_waits(d->log, &err))
        trp_driver_warn(
            d, "%s; it is tried again for %g s (outputs.wait), make some room",
            err.text, (double)trp_options_time_ns(d->options, "outputs.wait") / 1e9);
    if (!d->stop && trp_event_log_failed(d->log, &err)) /* the last line says it */
        stop(d, TRP_ESYSTEM, true, err.text, true);
    trp_driver_check_time(d, now);
    if (!d->stop || d->killed || now < d->kill_at)
        return;
    d->killed = true;
    d->soft = !d->hurry;
    trp_driver_cancel_jobs(d);
    d->soft = false;
}

/* ---- a program that is elsewhere ---- */

/* For a program to come back to Troupe, and then for what it does about SIGTERM. */
#define COME_BACK_NS (2 * TRP_SECOND)
#define HANDLE_NS (5 * TRP_SECOND)

static void end_program(trp_driver *d, int signal)
{
    trp_driver_end_elsewhere(d);
    kill(getpid(), signal);
    for (int i = 0; i < 5; i++)
        poll(NULL, 0, 1000); /* it may block SIGTERM */
    kill(getpid(), SIGKILL);
}

/* The run was stopped and its grace is over, and the program does something else. What
 * the run has is given back at once. The program gets SIGTERM; one that does nothing
 * about it would die of that without an end of the run, so that comes first. */
static void check_program(trp_driver *d, int64_t now)
{
    struct sigaction has;
    sigset_t term;
    if (!d->config.prints || d->config.mode == TRP_DRIVER_STATIC || !d->killed ||
        d->entered) {
        d->program_due = INT64_MAX;
        return;
    }
    if (d->program_due == INT64_MAX) {
        if (!d->attempts)
            trp_driver_release_all(d);
        /* What it has begun and does not wait for is being killed. */
        d->program_due =
            now + (d->program_asked || d->attempts ? HANDLE_NS : COME_BACK_NS);
    }
    if (now < d->program_due)
        return;
    bool handles = sigaction(SIGTERM, NULL, &has) == 0 && has.sa_handler != SIG_DFL;
    if (d->program_asked || !handles)
        end_program(d, d->program_asked ? SIGKILL : SIGTERM);
    d->program_asked = true;
    d->program_due = now + HANDLE_NS;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL); /* it is for the program's own threads */
    kill(getpid(), SIGTERM);
}

static void on_control(uv_poll_t *poll, int status, int events)
{
    trp_driver *d = poll->data;
    char byte;
    (void)events;
    ssize_t n = status < 0 ? 0 : recv(d->config.control_fd, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        uv_poll_stop(poll);
        d->orphaned = true;
        trp_driver_stop(d, TRP_ECANCELLED, true,
                        "`troupe` is gone: the run is cancelled");
        return;
    }
    if (byte == TRP_CONTROL_KILL || (byte == TRP_CONTROL_STOP && d->drains))
        trp_driver_stop(d, TRP_ECANCELLED, true, "killed");
    else if (byte == TRP_CONTROL_STOP)
        trp_driver_stop(d, TRP_ECANCELLED, false,
                        "stopping: running tasks may finish; once more to kill them");
    else if (byte == TRP_CONTROL_OMPI_SERVER)
        trp_driver_mpi_failed(d,
                              "ompi-server died; see state/ompi-server.err of the run");
    else if (byte == TRP_CONTROL_PING)
        trp_control_answer(d->config.control_fd);
    else if (byte == TRP_CONTROL_TIME)
        trp_driver_stop(d, TRP_ETIME, false,
                        "time is up soon: running tasks may finish");
}

/* ---- one turn ---- */

static void on_channel(uv_poll_t *poll, int status, int events)
{
    (void)poll, (void)status, (void)events; /* trp_channel_progress takes it */
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer;
}

enum { SHOWN_STAGES = 4096, SHOWN_NAMES = 3, NAMES = 16 };

/* What runs, by name; stages whose names differ in the number at their end are one. */
struct running {
    struct {
        char name[80];
        uint32_t live, stages;
        const char *only; /* of one stage */
    } v[NAMES];
    uint32_t n, more; /* names that have no place */
    uint32_t live;    /* attempts */
    uint32_t waits;   /* the last stage of which nothing runs; TRP_NONE */
};

static void add_running(struct running *r, const struct trp_driver_stage *s)
{
    char name[80];
    uint32_t i = 0;
    trp_name_stem(s->name, name, sizeof(name));
    while (i < r->n && strcmp(r->v[i].name, name) != 0)
        i++;
    r->live += s->live;
    r->more += i == NAMES;
    if (i == NAMES)
        return;
    if (i == r->n) {
        strcpy(r->v[i].name, name);
        r->v[r->n++].only = s->name;
    }
    r->v[i].live += s->live;
    r->v[i].stages++;
}

static void find_running(const trp_driver *d, struct running *r)
{
    *r = (struct running){.waits = TRP_NONE};
    for (uint32_t i = d->nstages; i-- > 0 && i + SHOWN_STAGES > d->nstages;) {
        const struct trp_driver_stage *s = d->stages[i];
        if (!s || !s->submitted || s->ended)
            continue;
        if (trp_driver_runs(s))
            add_running(r, s);
        else if (r->waits == TRP_NONE)
            r->waits = i;
    }
}

/* "align", or "align 3, sort-* 12, +2": names with their attempts. */
static void running_text(const struct running *r, char *text, size_t size)
{
    uint32_t shown = r->n < SHOWN_NAMES ? r->n : SHOWN_NAMES;
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < shown && n < size; i++) {
        const char *name = r->v[i].stages > 1 ? r->v[i].name : r->v[i].only;
        n += (size_t)snprintf(text + n, size - n, "%s%.80s", i ? ", " : "", name);
        if (r->n > 1 && n < size)
            n += (size_t)snprintf(text + n, size - n, " %u", r->v[i].live);
    }
    if (r->n + r->more > shown && n < size)
        snprintf(text + n, size - n, ", +%u", r->n + r->more - shown);
}

static void show_progress(trp_driver *d, int64_t now)
{
    char waiting[256] = "", what[300];
    struct running r;
    if (now < d->progress_due || !d->progress)
        return;
    d->progress_due = now + PROGRESS_NS;
    find_running(d, &r);
    running_text(&r, what, sizeof(what));
    struct trp_progress_view v = {.stages = d->stages_known,
                                  .stages_done = d->stages_done,
                                  .stage = what,
                                  .tasks = d->tasks,
                                  .done = d->tasks_done,
                                  .running = r.live,
                                  .failures = d->failures,
                                  .executors = d->up,
                                  .waiting = waiting};
    if (!r.n && r.waits != TRP_NONE) {
        v.stage = d->stages[r.waits]->name;
        trp_driver_why_waiting(d, (trp_stage_id){r.waits}, now, waiting,
                               sizeof(waiting));
    }
    trp_progress_update(d->progress, now, &v);
}

static int64_t next_due(const trp_driver *d, int64_t until)
{
    int64_t due = trp_engine_next_timer(d->engine),
            other = trp_channel_next_timer(d->channel),
            waits = trp_driver_log_waits_due(d);
    due = trp_earlier(due, other);
    due = trp_earlier(due, waits);
    due = trp_earlier(due, d->waiting_due);
    if (d->checking && d->check_due < due)
        due = d->check_due;
    due = trp_earlier(due, d->last_words_due);
    due = trp_earlier(due, d->servers_due);
    due = trp_earlier(due, d->moving_due);
    if (!d->stop && d->time_up < due)
        due = d->time_up;
    if (d->stop && !d->killed && d->kill_at < due)
        due = d->kill_at;
    due = trp_earlier(due, d->program_due);
    if (d->progress && d->attempts && d->progress_due + 9 * PROGRESS_NS < due)
        due = d->progress_due + 9 * PROGRESS_NS;
    return until < due ? until : due;
}

/* The standby thread sleeps without the baton, so that the program, when it comes back,
 * has it at once: two wake-ups less. What the program leaves to it wakes it. */
static void nap(trp_driver *d, int64_t due)
{
    if (due <= trp_clock_ns() || !trp_channel_sleep(d->channel))
        return;
    uint64_t steps = d->steps;
    uv_run(&d->loop, UV_RUN_NOWAIT);
    uv_run(&d->loop, UV_RUN_NOWAIT); /* watches what a timer has added in the first */
    if (d->steps != steps)           /* there may be something to send */
        return;
    int64_t left = next_due(d, due) - trp_clock_ns();
    if (left <= 0)
        return;
    int ms = left > INT64_C(3600000000000) ? 3600000 : (int)((left + 999999) / 1000000);
    int uv_ms = uv_backend_timeout(&d->loop);
    if (uv_ms >= 0 && uv_ms < ms)
        ms = uv_ms;
    struct pollfd p = {.fd = uv_backend_fd(&d->loop), .events = POLLIN};
    d->nap_steps = steps;
    atomic_store(&d->naps, true);
    trp_baton_give(d->baton);
    poll(&p, 1, ms);
    atomic_store(&d->naps, false);
    trp_baton_take(d->baton);
}

static void sleep_until(trp_driver *d, int64_t due)
{
    if (!trp_channel_sleep(d->channel))
        return;
    int64_t now = trp_clock_ns();
    if (due <= now)
        return;
    uv_update_time(&d->loop);
    if (due != INT64_MAX) {
        uint64_t ms = (uint64_t)(due - now + 999999) / 1000000;
        uv_timer_start(&d->timer, on_timer, ms, 0);
    }
    uv_run(&d->loop, UV_RUN_ONCE);
    uv_timer_stop(&d->timer);
}

static void turn(trp_driver *d, int64_t until, void (*rest)(trp_driver *, int64_t))
{
    trp_driver_flush(d); /* launches go out with the stage that they are of */
    int64_t now = d->now = trp_clock_ns();
    int handled = trp_channel_progress(d->channel, now);
    bool look = now - d->looked >= LOOK_NS;
    if (handled) {
        d->active = now;
        trp_spin_came(&d->spin);
    }
    if (look || !handled) {
        if (look) {
            uv_run(&d->loop, UV_RUN_NOWAIT);
            d->looked = now;
            check_stop(d, now);
            check_program(d, now);
            show_progress(d, now);
            trp_driver_tell_waiting(d, now);
            trp_driver_log_waits(d, now);
            trp_driver_check_late(d, now);
            trp_record_give_up_late(d, now);
            trp_driver_tell_readers(d, now);
            trp_driver_moving_late(d, now);
        }
        if (now >= trp_engine_next_timer(d->engine)) {
            struct trp_event ev = {.kind = TRP_EVENT_TIME};
            trp_driver_step(d, &ev);
        }
    }
    if (handled || d->nflush || look) /* what the caller waits for may have happened */
        return;
    if (d->functions && trp_spin_on(&d->spin, now - d->active))
        return;
    rest(d, next_due(d, until));
}

void trp_driver_turn(trp_driver *d, int64_t until)
{
    turn(d, until, sleep_until);
}

/* ---- whose loop it is ---- */

void trp_driver_enter(trp_driver *d)
{
    if (d->entered++)
        return;
    if (!trp_baton_return(d->baton) && !trp_baton_try(d->baton)) {
        atomic_store(&d->wanted, true);
        uv_async_send(&d->wake);
        trp_baton_take(d->baton);
        atomic_store(&d->wanted, false);
    }
    d->now = trp_clock_ns();
}

void trp_driver_leave(trp_driver *d)
{
    if (--d->entered)
        return;
    bool wake = atomic_load(&d->naps) && d->steps != d->nap_steps;
    trp_baton_leave(d->baton);
    if (wake)
        uv_async_send(&d->wake);
}

/* Keeps the run alive while the program is elsewhere. */
static void *standby(void *arg)
{
    trp_driver *d = arg;
    while (!atomic_load(&d->ending)) {
        trp_baton_take(d->baton);
        while (!atomic_load(&d->wanted) && !atomic_load(&d->ending))
            turn(d, INT64_MAX, nap);
        trp_baton_give(d->baton);
    }
    return NULL;
}

int trp_driver_standby_start(trp_driver *d, trp_error *err)
{
    int rc = pthread_create(&d->standby, NULL, standby, d);
    if (rc)
        return trp_error_set(err, TRP_ESYSTEM, "cannot start a thread: %s",
                             strerror(rc));
    d->has_standby = true;
    return 0;
}

/* With the baton held by the caller. */
void trp_driver_standby_stop(trp_driver *d)
{
    if (!d->has_standby || pthread_equal(d->standby, pthread_self()))
        return;
    atomic_store(&d->ending, true);
    uv_async_send(&d->wake);
    trp_baton_give(d->baton);
    pthread_join(d->standby, NULL);
    trp_baton_take(d->baton);
    d->has_standby = false;
}

/* ---- libuv ---- */

int trp_driver_loop_init(trp_driver *d, trp_error *err)
{
    int rc = uv_loop_init(&d->loop);
    if (rc < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot make a loop: %s",
                             uv_strerror(rc));
    d->loop_made = true;
    uv_async_init(&d->loop, &d->wake, NULL);
    uv_timer_init(&d->loop, &d->timer);
    if (d->config.control_fd >= 0) {
        uv_poll_init(&d->loop, &d->control_poll, d->config.control_fd);
        d->control_poll.data = d;
        d->has_control_poll =
            uv_poll_start(&d->control_poll, UV_READABLE, on_control) == 0;
    }
    return 0;
}

int trp_driver_loop_channel(trp_driver *d, trp_error *err)
{
    int rc = uv_poll_init(&d->loop, &d->channel_poll, trp_channel_fd(d->channel));
    if (rc == 0)
        rc = uv_poll_start(&d->channel_poll, UV_READABLE, on_channel);
    if (rc < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot watch the sockets: %s",
                             uv_strerror(rc));
    d->has_channel_poll = true;
    return 0;
}

void trp_driver_loop_close(trp_driver *d)
{
    if (!d->loop_made)
        return;
    if (d->has_channel_poll)
        uv_close((uv_handle_t *)&d->channel_poll, NULL);
    if (d->has_control_poll)
        uv_close((uv_handle_t *)&d->control_poll, NULL);
    uv_close((uv_handle_t *)&d->wake, NULL);
    uv_close((uv_handle_t *)&d->timer, NULL);
    for (int i = 0; i < 100 && uv_run(&d->loop, UV_RUN_NOWAIT); i++)
        ;
    uv_loop_close(&d->loop);
    d->loop_made = false;
}
