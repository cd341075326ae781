/*
 * Progress on stderr. What is to be shown is put together as one text and written with
 * one write(2): carriage return, text, erase to the end of the line; so nothing
 * flickers and lines of other programs tear it at most once. The same text is not drawn
 * twice.
 *
 * It never holds the run up: when the terminal or pipe does not take anything now
 * (Ctrl-S, a pager), what would have been written is left out. Lines of their own are
 * limited as updates are, and how many were left out is told with the next one; all of
 * them are in the event log. Ends of stages and of the run are not limited, and wait
 * for a pipe that takes nothing, up to 64 KiB of them. Of a program, once it had many
 * stages, those that succeeded at once get no line at all: it has thousands of them.
 */
#include "events/progress.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/time.h"
#include "core/base/utf8.h"
#include "core/engine.h"
#include "events/bar.h"
#include "os/colour.h"
#include "os/locale.h"

enum {
    TEXT = 1024,
    BAR_MAX = 30,
    WIDTH_UNKNOWN = 80,
    WIDTH_MAX = 200,
    LEAD = 40,
    LINES_A_SECOND = 10,
    STAGES_TOLD = 20, /* of a program; then only those that took long or failed */
    KEPT_MAX = 65536,
    LAST_WAIT_MS = 1000, /* for what is kept, at the end */
};
static const int64_t BETWEEN = TRP_SECOND / 10, LONG_STAGE = TRP_SECOND / 10;
static const int64_t FIRST_LINE = 5 * TRP_SECOND, LAST_PAUSE = 60 * TRP_SECOND;

struct trp_progress {
    int fd;
    bool terminal, utf8;
    bool drawn;       /* a bar stands in the cursor's line */
    char shown[TEXT]; /* what it says */
    int64_t now;      /* of the last call that told it */
    int64_t next;     /* nothing is drawn, or no line written, before */
    int64_t pause;    /* between lines */
    int64_t begun;    /* the run */
    int64_t wall_offset;
    int64_t line_start; /* the second in which … */
    uint32_t lines;     /* … so many lines were written */
    uint32_t left_out;  /* … and so many not, not yet told */
    uint32_t stages;    /* so many stages were told */
    bool few;           /* all ends of stages are told */
    char *kept;         /* what must be told and could not be written yet */
    size_t nkept;
};

trp_progress *trp_progress_new(int fd, bool terminal, int64_t now_ns,
                               int64_t wall_offset_ns)
{
    struct trp_progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->fd = fd;
    p->terminal = terminal;
    p->utf8 = trp_locale_is_utf8();
    p->now = p->begun = p->line_start = now_ns;
    p->wall_offset = wall_offset_ns;
    p->pause = FIRST_LINE;
    p->next = terminal ? now_ns : now_ns + FIRST_LINE;
    return p;
}

/* What nobody reads any more (POLLERR) would be answered by SIGPIPE: a run does not end
 * because its progress is not looked at. */
static bool takes(const struct trp_progress *p, int wait_ms)
{
    struct pollfd ready = {.fd = p->fd, .events = POLLOUT};
    return poll(&ready, 1, wait_ms) == 1 && ready.revents == POLLOUT;
}

static bool put_all(const struct trp_progress *p, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t w = write(p->fd, s, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        s += w;
        n -= (size_t)w;
    }
    return true;
}

/* False: it is not written, not now. */
static bool put_kept(struct trp_progress *p, int wait_ms)
{
    if (!p->nkept)
        return true;
    if (!takes(p, wait_ms))
        return false;
    bool done = put_all(p, p->kept, p->nkept);
    p->nkept = 0;
    return done;
}

/* False: it could not be written now. */
static bool put(struct trp_progress *p, const char *s, size_t n)
{
    return put_kept(p, 0) && takes(p, 0) && put_all(p, s, n);
}

static bool keep_text(struct trp_progress *p, const char *s, size_t n)
{
    if (p->nkept + n > KEPT_MAX || (!p->kept && !(p->kept = malloc(KEPT_MAX))))
        return false;
    memcpy(p->kept + p->nkept, s, n);
    p->nkept += n;
    return true;
}

/* A name from a pipeline file must not move the cursor. */
static void plain(char *s)
{
    trp_utf8_plain(s, ' ');
}

/* Cuts a text to so many columns, between characters (each taken as one column). */
static void cut(char *s, int columns)
{
    s[trp_utf8_bytes(s, (size_t)columns)] = '\0';
}

/* ---- what is said ---- */

/* What a line begins with: where nobody watches, when; "troupe: ". */
static const char *lead(const struct trp_progress *p, char *buf, size_t size)
{
    time_t at = (time_t)((p->now + p->wall_offset) / TRP_SECOND);
    struct tm tm;
    if (p->terminal || !localtime_r(&at, &tm) ||
        !strftime(buf, size, "%Y-%m-%dT%H:%M:%S troupe: ", &tm))
        snprintf(buf, size, "troupe: ");
    return buf;
}

static void describe(const struct trp_progress_view *v, char *buf, size_t size)
{
    char failures[32] = "", stage[320] = "", waiting[256] = "";
    if (v->failures > 0)
        snprintf(failures, sizeof failures, ", %u failed", v->failures);
    if (v->stage && v->stage[0])
        snprintf(stage, sizeof stage, "; %s", v->stage);
    if (v->running == 0 && v->waiting && v->waiting[0])
        snprintf(
            waiting, sizeof waiting, "; %s%s",
            strncmp(v->waiting, "waiting ", 8) == 0 ? "" : "waiting: ", v->waiting);
    snprintf(buf, size, "%u/%u tasks, %u running%s, %u executor%s; stage %u/%u%s%s",
             v->done, v->tasks, v->running, failures, v->executors,
             v->executors == 1 ? "" : "s", v->stages_done, v->stages, stage, waiting);
    plain(buf);
}

static int columns_of(const struct trp_progress *p)
{
    struct winsize w;
    if (ioctl(p->fd, TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
        return WIDTH_UNKNOWN;
    return w.ws_col > WIDTH_MAX ? WIDTH_MAX : w.ws_col;
}

static void draw(struct trp_progress *p, const struct trp_progress_view *v)
{
    char text[TEXT], what[TEXT / 2];
    int columns = columns_of(p);
    int width = columns / 3 < BAR_MAX ? columns / 3 : BAR_MAX;
    size_t n = 0;
    text[n++] = '[';
    n += trp_bar(p->utf8, v->done, v->tasks, width, text + n);
    text[n++] = ']';
    text[n++] = ' ';
    describe(v, what, sizeof what);
    /* The last column stays free: a full line would wrap on some terminals. */
    cut(what, columns - width - 4 > 0 ? columns - width - 4 : 0);
    snprintf(text + n, sizeof text - n, "%s", what);
    if (p->drawn && strcmp(text, p->shown) == 0)
        return;
    char out[TEXT + 8];
    int len = snprintf(out, sizeof out, "\r%s\033[K", text);
    if (!put(p, out, (size_t)len))
        return;
    memcpy(p->shown, text, sizeof text);
    p->drawn = true;
}

/* ---- calls ---- */

static int left_out_text(const struct trp_progress *p, char *buf, size_t size)
{
    char first[LEAD];
    return snprintf(buf, size, "%s%u line%s left out; see the event log\n",
                    lead(p, first, sizeof first), p->left_out,
                    p->left_out == 1 ? "" : "s");
}

/* One more line in this second? Those that were not are told first. */
static bool may_write(struct trp_progress *p, bool must, char *before, size_t size)
{
    before[0] = '\0';
    if (p->now - p->line_start >= TRP_SECOND) {
        p->line_start = p->now;
        p->lines = 0;
    }
    if (!must && p->lines >= LINES_A_SECOND) {
        p->left_out++;
        return false;
    }
    p->lines++;
    if (p->left_out > 0)
        left_out_text(p, before, size);
    p->left_out = 0;
    return true;
}

void trp_progress_update(trp_progress *p, int64_t now_ns,
                         const struct trp_progress_view *v)
{
    if (!p)
        return;
    p->now = now_ns;
    if (now_ns < p->next)
        return;
    if (p->terminal) {
        p->next = now_ns + BETWEEN;
        draw(p, v);
        return;
    }
    if (p->pause < LAST_PAUSE / 2)
        p->pause *= 2;
    else
        p->pause = LAST_PAUSE;
    p->next = now_ns + p->pause;
    char text[TEXT / 2], out[TEXT], first[LEAD];
    describe(v, text, sizeof text);
    int n = snprintf(out, sizeof out, "%s%s\n", lead(p, first, sizeof first), text);
    put(p, out, (size_t)n);
}

static void put_line(struct trp_progress *p, int64_t now_ns, const char *text,
                     bool must, enum trp_colour colour)
{
    char before[96], first[LEAD], line[TEXT], out[2 * TEXT + 128];
    if (!p)
        return;
    p->now = now_ns;
    if (!may_write(p, must, before, sizeof before))
        return;
    snprintf(line, sizeof line, "%s", text);
    plain(line);
    bool coloured = colour != TRP_COLOUR_NONE;
    int n = snprintf(
        out, sizeof out, "%s%s%s%s%s%s\n%s", p->drawn ? "\r\033[K" : "", before,
        lead(p, first, sizeof first), coloured ? trp_colour(p->fd, colour) : "", line,
        coloured ? trp_colour(p->fd, TRP_COLOUR_NONE) : "", p->drawn ? p->shown : "");
    if (!put(p, out, (size_t)n) && !(must && keep_text(p, out, (size_t)n)))
        p->left_out++;
}

void trp_progress_line(trp_progress *p, int64_t now_ns, const char *text)
{
    put_line(p, now_ns, text, false, TRP_COLOUR_NONE);
}

void trp_progress_end_line(trp_progress *p, int64_t now_ns, const char *text)
{
    put_line(p, now_ns, text, true, TRP_COLOUR_NONE);
}

void trp_progress_few_stages(trp_progress *p)
{
    if (p)
        p->few = true;
}

/* "; 3 given up, 2 skipped: see LOGS" */
static void given_up_text(const struct trp_progress_stage *s, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    if (s->given_up > 0)
        n = (size_t)snprintf(buf, size, "; %u given up", s->given_up);
    if (s->skipped > 0)
        snprintf(buf + n, size - n, "%s %u skipped", n ? "," : ";", s->skipped);
}

static bool succeeded(const struct trp_progress_stage *s)
{
    return strcmp(s->outcome, trp_outcome_name(TRP_OUTCOME_SUCCEEDED)) == 0;
}

static enum trp_colour stage_colour(const struct trp_progress_stage *s)
{
    if (!succeeded(s))
        return TRP_COLOUR_BAD;
    return s->given_up || s->skipped ? TRP_COLOUR_WARN : TRP_COLOUR_GOOD;
}

void trp_progress_stage_ended(trp_progress *p, int64_t now_ns,
                              const struct trp_progress_stage *s)
{
    uint32_t failures = s->failures;
    if (!p)
        return;
    if (!p->few && p->stages > STAGES_TOLD && failures == 0 && !s->skipped &&
        s->wall_ns < LONG_STAGE && succeeded(s))
        return;
    p->stages++;
    char line[TEXT], failed[48] = "", since[64] = "", lost[64];
    if (p->terminal) /* where nothing else tells when */
        snprintf(since, sizeof since, ", %.1f s since the start",
                 (double)(now_ns - p->begun) * 1e-9);
    if (failures > 0)
        snprintf(failed, sizeof failed, ", %u failed attempt%s", failures,
                 failures == 1 ? "" : "s");
    given_up_text(s, lost, sizeof lost);
    snprintf(line, sizeof line, "stage %s %s: %u task%s%s, %.2f s%s%s", s->name,
             s->outcome, s->tasks, s->tasks == 1 ? "" : "s", failed,
             (double)s->wall_ns * 1e-9, since, lost);
    put_line(p, now_ns, line, true, stage_colour(s));
}

void trp_progress_end(trp_progress *p)
{
    if (!p)
        return;
    char out[128] = "";
    int n = 0;
    put_kept(p, LAST_WAIT_MS);
    if (p->drawn)
        n = snprintf(out, sizeof out, "\r\033[K");
    if (p->left_out > 0)
        n += left_out_text(p, out + n, sizeof out - (size_t)n);
    if (n > 0)
        put(p, out, (size_t)n);
    free(p->kept);
    free(p);
}
