/*
 * `troupe top`: a run, live on the terminal. Documents come from a process of their own
 * (top_source.h), are drawn (top_draw.h), and what changed is written (top_screen.h).
 *
 * Signals are taken from a descriptor, so that the terminal is always given back from one
 * place, and nothing is interrupted in the middle. With --json there is no terminal to
 * give back: there a handler ends the process that asks.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "args.h"
#include "asking.h"
#include "commands.h"
#include "conf/options.h"
#include "core/base/time.h"
#include "events/json_print.h"
#include "os/clock.h"
#include "os/locale.h"
#include "stage_rows.h"
#include "top_draw.h"
#include "top_screen.h"
#include "top_source.h"

enum {
    LOG_SHARE = 10, /* reading a log takes at most so much of the time: 1/10 */
};
static const int64_t LATE = 3 * TRP_SECOND; /* an answer that has to be waited for */
static const int64_t SHORTEST = TRP_SECOND / 10, LONGEST = 3600 * TRP_SECOND;

static struct {
    const char *run, *runs, *interval;
    bool json, all;
    int64_t interval_ns;
} call;

struct top {
    struct trp_top_source source;
    struct trp_screen screen;
    struct trp_top_view view;
    int signals;   /* a descriptor */
    json_t *shown; /* the last document; NULL: none yet */
    int64_t next;  /* when to ask again, mono … */
    int64_t asked; /* … and when that was done last */
    bool over;     /* to be left, by … */
    int by_signal; /* … this one, or 0 */
    int code;      /* an error before anything was seen: */
    trp_error err;
    char news[TRP_ERROR_TEXT];
};

static bool has_ended(const json_t *d)
{
    const char *status = trp_asking_text(d, "status");
    return strcmp(status, "running") != 0 && strcmp(status, "stopping") != 0;
}

/* When to ask for the next. A log that takes long to be read is read less often. */
static int64_t next_time(const struct trp_top_source *s, const json_t *d)
{
    int64_t pause = call.interval_ns;
    if (!has_ended(d) && s->log_ns * LOG_SHARE > pause)
        pause = s->log_ns * LOG_SHARE;
    return trp_clock_ns() + pause;
}

/* ---- the terminal ---- */

/* In place of the keys, while nothing better is known; NULL: nothing is to be said. */
static const char *waiting(const struct top *t, char *buf, size_t size)
{
    int64_t waits = t->source.asked ? trp_clock_ns() - t->asked : 0;
    int s = (int)(waits / TRP_SECOND);
    if (waits >= LATE && t->shown)
        snprintf(buf, size, "no answer for %d s: what is shown is as old; q quits", s);
    else if (waits >= LATE)
        snprintf(buf, size, "asking the run for %d s; q quits", s);
    else
        snprintf(buf, size, "asking the run; q quits");
    return waits >= LATE || !t->shown ? buf : NULL;
}

static void draw(struct top *t)
{
    char text[80];
    struct trp_top_frame f;
    t->view.rows = t->screen.rows;
    t->view.columns = t->screen.columns;
    if (*t->news)
        t->view.news = t->news;
    else if (t->shown && has_ended(t->shown))
        t->view.news = "The run does not go on: q quits";
    else
        t->view.news = waiting(t, text, sizeof text);
    trp_top_draw(t->shown, &t->view, &f);
    trp_screen_show(&t->screen, f.lines, f.n);
    trp_top_frame_free(&f);
}

static void take_document(struct top *t)
{
    json_t *d = NULL;
    trp_error err;
    int code = trp_top_source_take(&t->source, &d, &err);
    if (code == TRP_EWAIT)
        return;
    if (code == 0) {
        json_decref(t->shown);
        t->shown = d;
        t->next = next_time(&t->source, d);
        *t->news = '\0';
    } else if (!t->shown || code == TRP_ENOENT) {
        t->over = true;
        t->code = code;
        t->err = err;
    } else {
        snprintf(t->news, sizeof t->news, "%s", err.text);
        t->next = trp_clock_ns() + call.interval_ns;
    }
    draw(t);
}

static void take_keys(struct top *t)
{
    unsigned char bytes[64];
    ssize_t n = read(t->screen.in, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    t->over = n <= 0; /* the connection is gone */
    for (ssize_t i = 0; i < n && !t->over; i++) {
        int key = trp_screen_key(&t->screen, bytes[i]);
        if (key == 'q' || key == 'Q')
            t->over = true;
        else if (key == 'r')
            t->next = 0;
        else if (key == '\f')
            trp_screen_resized(&t->screen);
        else if (key)
            trp_top_choose(&t->view, key);
    }
    if (!t->over)
        draw(t);
}

/* Stops as a process does that knows nothing of this, with the terminal as it was. */
static void stop(struct top *t)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    trp_screen_off(&t->screen);
    raise(SIGTSTP); /* it is blocked, and comes when that ends */
    sigprocmask(SIG_UNBLOCK, &stops, NULL);
    sigprocmask(SIG_BLOCK, &stops, NULL);
    trp_screen_on(&t->screen);
    draw(t);
}

static void take_signal(struct top *t)
{
    struct signalfd_siginfo it;
    if (read(t->signals, &it, sizeof it) != sizeof it)
        return;
    switch (it.ssi_signo) {
    case SIGWINCH:
        trp_screen_resized(&t->screen);
        draw(t);
        break;
    case SIGCONT: /* after SIGSTOP, when nobody has given the terminal back */
        trp_screen_again(&t->screen);
        draw(t);
        break;
    case SIGTSTP:
        stop(t);
        break;
    default:
        t->over = true;
        t->by_signal = (int)it.ssi_signo;
    }
}

static void turn(struct top *t)
{
    enum { KEYS, SIGNALS, DOCUMENT, OUT };
    struct pollfd p[] = {
        [KEYS] = {.fd = t->screen.in,                                     .events = POLLIN},
        [SIGNALS] = {.fd = t->signals,                                       .events = POLLIN},
        [DOCUMENT] = {.fd = t->source.from,                                   .events = POLLIN},
        [OUT] = {.fd = trp_screen_busy(&t->screen) ? t->screen.out : -1,
                  .events = POLLOUT                                                       },
    };
    int64_t left = t->next - trp_clock_ns();
    if (!t->source.asked && left <= 0) {
        trp_top_source_ask(&t->source);
        t->asked = trp_clock_ns();
    }
    int wait = t->source.asked ? 1000 : (int)(left > 0 ? left / 1000000 + 1 : 0);
    if (poll(p, 4, wait) <= 0) {
        if (t->source.asked)
            draw(t);
        return;
    }
    if (p[OUT].revents) {
        trp_screen_flush(&t->screen);
        draw(t); /* what was left out meanwhile */
    }
    if (p[SIGNALS].revents)
        take_signal(t);
    if (!t->over && p[KEYS].revents)
        take_keys(t);
    if (!t->over && p[DOCUMENT].revents)
        take_document(t);
}

static int open_signals(trp_error *err)
{
    static const int all[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                              SIGTSTP, SIGCONT, SIGWINCH};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sigaddset(&set, all[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd
                   : trp_error_set(err, TRP_ESYSTEM, "signalfd: %s", strerror(errno));
}

/* As one that was never caught. */
static void end_by(int signal_number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Until it is over; then the terminal is as it was. */
static void show(struct top *t)
{
    signal(SIGPIPE, SIG_IGN);
    trp_screen_on(&t->screen);
    draw(t);
    while (!t->over)
        turn(t);
    trp_screen_off(&t->screen);
}

static int watch(struct trp_asking *a, trp_error *err)
{
    struct top t = {
        .view = {.utf8 = trp_locale_is_utf8(), .each = call.all}
    };
    char line[1024];
    int code = trp_screen_open(&t.screen, err);
    if (code < 0)
        return code;
    code = trp_top_source_start(a, &t.source, err);
    if (code == 0)
        code = t.signals = open_signals(err);
    if (code >= 0) {
        show(&t);
        close(t.signals);
        code = t.code;
        *err = t.err;
    }
    trp_top_source_stop(&t.source);
    trp_screen_close(&t.screen);
    if (code == 0 && t.shown && !t.by_signal) /* a terminal may take nothing then */
        puts(trp_run_line(t.shown, line, sizeof line));
    json_decref(t.shown);
    if (t.by_signal) {
        fflush(stdout);
        end_by(t.by_signal);
    }
    return code;
}

/* ---- a stream ---- */

static struct trp_top_source stream;

static void on_end(int signal_number)
{
    trp_top_source_kill(&stream);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void catch_ends(void)
{
    static const int all[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction how = {.sa_handler = on_end};
    sigemptyset(&how.sa_mask);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sigaction(all[i], &how, NULL);
}

/* 1: it was the last; TRP_EWAIT: it was not all. */
static int print_document(int64_t *ret_next, trp_error *err)
{
    json_t *d = NULL;
    int code = trp_top_source_take(&stream, &d, err);
    if (code < 0)
        return code;
    trp_json_print(d, 0, stdout);
    code = fflush(stdout) != 0 || has_ended(d) ? 1 : 0;
    *ret_next = next_time(&stream, d);
    json_decref(d);
    return code;
}

static int print_stream(struct trp_asking *a, trp_error *err)
{
    int64_t next = 0;
    int code = trp_top_source_start(a, &stream, err);
    if (code < 0)
        return code;
    catch_ends();
    do {
        struct pollfd p = {.fd = stream.from, .events = POLLIN};
        int64_t left = next - trp_clock_ns();
        if (!stream.asked && left > 0) {
            poll(NULL, 0, (int)(left / 1000000 + 1));
            continue;
        }
        trp_top_source_ask(&stream);
        poll(&p, 1, -1);
        code = print_document(&next, err);
    } while (code == 0 || code == TRP_EWAIT);
    trp_top_source_stop(&stream);
    return code < 0 ? code : 0;
}

/* ---- the call ---- */

static int read_interval(trp_error *err)
{
    trp_error why;
    call.interval_ns = TRP_SECOND;
    if (!call.interval)
        return 0;
    if (trp_time_parse(call.interval, TRP_SECOND, &call.interval_ns, &why) < 0)
        return trp_error_set(err, TRP_EINVAL, "top: --interval: %s", why.text);
    if (call.interval_ns < SHORTEST || call.interval_ns > LONGEST)
        return trp_error_set(err, TRP_EINVAL,
                             "top: --interval %s: from 100ms to 1h, please",
                             call.interval);
    return 0;
}

const struct trp_line trp_line_top = {
    "top",
    "usage: troupe top [options] [RUN]\n\n"
    "Shows where a run is, live on the terminal: its stages with what is left of\n"
    "them, its executors, its Slurm jobs, and what stages wait for. RUN is a name\n"
    "that troupe ls shows or a path of a run's folder; without it, it is the newest\n"
    "run of this folder.\n"
    "q quits, ? shows the other keys. troupe status shows the same once.\n\n",
    "",
    .table = TRP_ARGS(
        TRP_ARGS_FLAG("all", &call.all, "each stage in a line of its own (key g)"),
        TRP_ARGS_TEXT("interval", &call.interval, "TIME",
                      "from one look to the next: 1s (default), 500ms, 5"),
        TRP_ARGS_FLAG("json", &call.json,
                      "a JSON document a line at each look, to the run's end"),
        TRP_ARGS_RUNS(&call.runs)),
    .words = {&call.run},
    .please = "one RUN, please"};

int trp_launcher_top(void)
{
    struct trp_asking a;
    trp_error err;
    int code = read_interval(&err);
    if (code == 0)
        code = trp_asking_find(call.runs, call.run, &a, &err);
    if (code < 0)
        return trp_launcher_fail(&err);
    code = call.json ? print_stream(&a, &err) : watch(&a, &err);
    trp_asking_free(&a);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
