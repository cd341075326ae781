/*
 * A socket pair is the helper's stdin and stdout. What arrives is kept until it is a
 * whole line. Nothing here runs libslurm, so nothing here can hang longer than it says.
 */
#include "cluster/slurm/helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef TROUPE_SLURM_HEADERS
#include <slurm/slurm_version.h>
#endif

#include "os/child.h"
#include "os/clock.h"

#ifdef TROUPE_SLURM_HEADERS
enum { BUILT = SLURM_VERSION_NUMBER }; /* for this one is troupe-slurm, 0xMMmmuu */
#else
enum { BUILT = 0 };
#endif

enum {
    STOP_MS = 1000,
    TELL_MS = 2000,
    GONE_MS = 6000, /* by then it is gone when it has no jobs to end */
    PATIENT_STOP_MS = 60000,
    LOOK_MS = 5,
    TEXT = 32768,
    /* Slurm's ESLURM_INVALID_JOB_ID, SLURM_PROTOCOL_AUTHENTICATION_ERROR,
     * SLURM_PROTOCOL_VERSION_ERROR */
    INVALID_JOB_ID = 2017,
    NOT_AUTHENTICATED = 1007,
    OTHER_PROTOCOL = 1005,
    UNSPECIFIED = -1,
    LOST = 3, /* refusal: slurmctld was not reached */
};

/* A call whose answer is waited for, but not by standing still. */
struct call {
    struct call *next;
    uint32_t number;
    trp_slurm_answer answer;
    trp_slurm_done done;
    void *context;
};

struct trp_slurm_helper {
    struct call *calls;
    pid_t pid;
    int fd;
    uint32_t last; /* number of the last call */
    uint64_t rpcs;
    bool gone;
    bool has_called; /* it may have jobs to end */
    char jobs[256];  /* … these: "7, 8" */
    bool alone;      /* nobody else will */
    char *text; /* of TRP_SLURM_LINE_MAX + 1 bytes: what is there of the next lines */
    size_t used, begin;
};

static int spawn(trp_slurm_helper *h, const char *program, int socket, int log)
{
    char *const argv[] = {strdup(program), NULL};
    const int fds[] = {socket, socket, log >= 0 ? log : STDERR_FILENO};
    int code = argv[0] ? trp_child_start(argv, environ, fds, &h->pid) : ENOMEM;
    free(argv[0]);
    return code;
}

int trp_slurm_helper_start(const char *program, int log, trp_slurm_helper **ret,
                           trp_error *err)
{
    int pair[2] = {-1, -1}, code = ENOMEM;
    trp_slurm_helper *h = calloc(1, sizeof *h);
    if (h && (h->text = malloc(TRP_SLURM_LINE_MAX + 1)))
        code = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ? errno : 0;
    if (code == 0) {
        code = spawn(h, program, pair[1], log);
        close(pair[1]);
    }
    if (code == 0) {
        h->fd = pair[0];
        fcntl(h->fd, F_SETFL, O_NONBLOCK);
        *ret = h;
        return 0;
    }
    if (pair[0] >= 0)
        close(pair[0]);
    if (h)
        free(h->text);
    free(h);
    return trp_error_set(err, TRP_ESYSTEM, "cannot start %s: %s", program,
                         strerror(code));
}

pid_t trp_slurm_helper_pid(const trp_slurm_helper *h)
{
    return h->pid;
}

int trp_slurm_helper_fd(const trp_slurm_helper *h)
{
    return h->fd;
}

uint64_t trp_slurm_helper_rpcs(const trp_slurm_helper *h)
{
    return h->rpcs;
}

int trp_slurm_helper_tell(trp_slurm_helper *h, const char *call)
{
    char text[TEXT];
    int n = snprintf(text, sizeof text, "%u %s\n", h->last + 1, call);
    if (n < 0 || n >= (int)sizeof text)
        return TRP_ELIMIT;
    /* A call is far smaller than the socket's buffer: one that does not fit is one of
     * thousands that a hanging slurmctld has not answered. */
    if (h->gone || send(h->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return TRP_ESYSTEM;
    h->last++;
    return 0;
}

/* The next line that is there whole, or NULL. */
static char *next_line(trp_slurm_helper *h)
{
    char *end = memchr(h->text + h->begin, '\n', h->used - h->begin);
    if (end) {
        char *line = h->text + h->begin;
        *end = '\0';
        h->begin = (size_t)(end + 1 - h->text);
        return line;
    }
    memmove(h->text, h->text + h->begin, h->used - h->begin);
    h->used -= h->begin;
    h->begin = 0;
    return NULL;
}

/* Reads what there is. */
static void fill(trp_slurm_helper *h)
{
    size_t room = TRP_SLURM_LINE_MAX - h->used;
    ssize_t n = room ? recv(h->fd, h->text + h->used, room, MSG_DONTWAIT) : 0;
    if (n > 0)
        h->used += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        h->gone = true;
}

int trp_slurm_helper_call(trp_slurm_helper *h, const char *call,
                          trp_slurm_answer answer, trp_slurm_done done, void *context)
{
    struct call *c = malloc(sizeof *c);
    if (!c)
        return TRP_ENOMEM;
    int code = trp_slurm_helper_tell(h, call);
    if (code < 0) {
        free(c);
        return code;
    }
    *c = (struct call){h->calls, h->last, answer, done, context};
    h->calls = c;
    h->has_called = true;
    return 0;
}

/* True: the line was for a call that somebody waits for. */
static bool pass_on(trp_slurm_helper *h, const struct trp_slurm_line *line)
{
    struct call **at = &h->calls;
    bool failed = strcmp(line->word, "failed") == 0;
    while (*at && (*at)->number != line->number)
        at = &(*at)->next;
    struct call *c = *at;
    if (!c)
        return false;
    if (!failed && strcmp(line->word, "done") != 0) {
        if (c->answer)
            c->answer(c->context, line, NULL);
        return true;
    }
    *at = c->next;
    struct trp_slurm_end end = {.failed = failed,
                                .refusal = (int)trp_slurm_line_number(line, "refusal"),
                                .text = trp_slurm_line_text(line, "text")};
    c->done(c->context, &end);
    free(c);
    return true;
}

/* ---- a libslurm that is not the cluster's ---- */

/* What Slurm's commands are here, "24.11.5"; empty: not known. They print "slurm
 * 24.11.5", or "slurm-wlm 24.11.5". */
static void version_here(char *ret, size_t size)
{
    char text[128] = "";
    FILE *from = popen("exec scontrol --version 2>/dev/null", "re");
    if (from && !fgets(text, sizeof text, from))
        *text = '\0';
    if (from)
        pclose(from);
    text[strcspn(text, "\n")] = '\0';
    const char *space = strrchr(text, ' ');
    snprintf(ret, size, "%s", space ? space + 1 : "");
}

/* That troupe-slurm does not run, or is not understood: because it was built for
 * another Slurm than the one that is here, if so, or else for the reason `text`. */
static int tell_unfit(trp_error *err, const char *text)
{
    char here[64];
    unsigned major = 0, minor = 0;
    version_here(here, sizeof here);
    if (sscanf(here, "%u.%u", &major, &minor) != 2 || !BUILT ||
        (major << 8 | minor) == BUILT >> 8)
        return trp_error_set(err, TRP_ESYSTEM, "%s", text);
    return trp_error_set(err, TRP_ESYSTEM,
                         "troupe-slurm was built for Slurm %u.%02u, and here is Slurm "
                         "%s; build Troupe with the headers of that one",
                         BUILT >> 16, BUILT >> 8 & 0xff, here);
}

/* libslurm has no word for an answer of a slurmctld that is too new for it, or too old.
 */
static int tell_lost(int64_t number, const char *text, trp_error *err)
{
    char why[512];
    if ((number == UNSPECIFIED || number == OTHER_PROTOCOL) && BUILT != 0)
        snprintf(
            why, sizeof why,
            "slurmctld is not understood by libslurm %u.%02u, for which Troupe was "
            "built; build it with the headers of slurmctld's Slurm",
            BUILT >> 16, BUILT >> 8 & 0xff);
    else
        snprintf(why, sizeof why, "slurmctld does not answer: %s; is it running?",
                 text);
    return tell_unfit(err, why);
}

static int tell_gone(const char *call, trp_error *err)
{
    char why[256];
    snprintf(why, sizeof why,
             "troupe-slurm ended before it had answered "
             "\"%s\"; is libslurm installed here?",
             call);
    return tell_unfit(err, why);
}

/* ---- answers ---- */

static int refusal(const struct trp_slurm_line *line, const char *call, trp_error *err)
{
    int64_t number = trp_slurm_line_number(line, "code");
    const char *text = trp_slurm_line_text(line, "text");
    if (number == NOT_AUTHENTICATED)
        return trp_error_set(err, TRP_ESYSTEM,
                             "Slurm cannot be asked: %s; is munged running here, with "
                             "the cluster's key?",
                             text);
    if (trp_slurm_line_number(line, "refusal") == LOST)
        return tell_lost(number, text, err);
    if (number == OTHER_PROTOCOL)
        return tell_lost(number, text, err);
    return trp_error_set(err, number == INVALID_JOB_ID ? TRP_ENOENT : TRP_ESYSTEM,
                         "Slurm refused \"%s\": %s", call, text);
}

/* 1: it was the last line of call number `h->last`. */
static int handle_line(trp_slurm_helper *h, char *text, const char *call,
                       trp_slurm_answer answer, void *context, trp_error *err)
{
    struct trp_slurm_line line;
    int code = trp_slurm_line_parse(text, &line, err);
    if (code < 0)
        return code;
    bool done = strcmp(line.word, "done") == 0;
    bool failed = strcmp(line.word, "failed") == 0;
    if (done || failed)
        h->rpcs = (uint64_t)trp_slurm_line_number(&line, "rpcs");
    if (line.number != h->last) {
        pass_on(h, &line);
        return 0;
    }
    if (failed)
        return refusal(&line, call, err);
    if (done)
        return 1;
    return answer ? answer(context, &line, err) : 0;
}

int trp_slurm_helper_ask(trp_slurm_helper *h, const char *call, trp_slurm_answer answer,
                         void *context, int limit_ms, trp_error *err)
{
    int64_t end = trp_clock_ms() + limit_ms;
    if (trp_slurm_helper_tell(h, call) < 0)
        return tell_gone(call, err);
    for (;;) {
        int code = 0;
        for (char *text; code == 0 && (text = next_line(h));)
            code = handle_line(h, text, call, answer, context, err);
        if (code)
            return code < 0 ? code : 0;
        int64_t left = end - trp_clock_ms();
        if (h->gone)
            return tell_gone(call, err);
        if (left <= 0)
            return trp_error_set(err, TRP_ESYSTEM,
                                 "Slurm has not answered \"%s\" within %d s; is "
                                 "slurmctld running?",
                                 call, limit_ms / 1000);
        struct pollfd p = {.fd = h->fd, .events = POLLIN};
        if (poll(&p, 1, (int)left) > 0)
            fill(h);
    }
}

bool trp_slurm_helper_read(trp_slurm_helper *h)
{
    fill(h);
    for (char *text; (text = next_line(h));) {
        struct trp_slurm_line line;
        trp_error err;
        if (trp_slurm_line_parse(text, &line, &err) < 0)
            continue;
        if (*trp_slurm_line_text(&line, "rpcs"))
            h->rpcs = (uint64_t)trp_slurm_line_number(&line, "rpcs");
        if (!pass_on(h, &line) && strcmp(line.word, "failed") == 0)
            fprintf(stderr, "troupe: Slurm refused a call: %s\n",
                    trp_slurm_line_text(&line, "text"));
    }
    return !h->gone;
}

void trp_slurm_helper_expect(trp_slurm_helper *h, uint32_t job, bool alone)
{
    size_t n = strlen(h->jobs), room = sizeof h->jobs - n;
    h->alone |= alone;
    h->has_called = true;
    if (!job)
        return;
    int k = snprintf(h->jobs + n, room, "%s%u", n ? ", " : "", job);
    if (k < 0 || (size_t)k >= room) /* the first ones will do */
        h->jobs[n] = '\0';
}

static void tell_wait(const trp_slurm_helper *h)
{
    char most[32] = "";
    if (!h->alone)
        snprintf(most, sizeof most, ", %d s at most", PATIENT_STOP_MS / 1000);
    fprintf(stderr, "troupe: waiting for Slurm to end %s%s%s\n",
            *h->jobs ? "job " : "what was asked for", h->jobs, most);
}

/* Reads what it has to say until it is gone. */
static void hear_last(trp_slurm_helper *h, int64_t end)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN};
    int64_t tell = trp_clock_ms() + (*h->jobs || h->alone ? TELL_MS : GONE_MS);
    for (int64_t now; !h->gone && (now = trp_clock_ms()) < end;) {
        if (now >= tell) {
            tell_wait(h);
            tell = INT64_MAX;
        }
        int64_t left = (tell < end ? tell : end) - now;
        if (poll(&p, 1, left < GONE_MS ? (int)left : GONE_MS) > 0)
            trp_slurm_helper_read(h);
    }
}

/* Nobody waits for their answers any more. */
static void drop_calls(trp_slurm_helper *h)
{
    for (struct call *c; (c = h->calls); free(c))
        h->calls = c->next;
}

uint64_t trp_slurm_helper_stop(trp_slurm_helper *h, bool bye)
{
    if (!h)
        return 0;
    int64_t end = trp_clock_ms() + (h->has_called ? PATIENT_STOP_MS : STOP_MS);
    if (h->has_called && h->alone)
        end = INT64_MAX;
    drop_calls(h);
    if (bye && trp_slurm_helper_tell(h, "bye") == 0) {
        shutdown(h->fd, SHUT_WR);
        hear_last(h, end);
    }
    close(h->fd);
    while (waitpid(h->pid, NULL, WNOHANG) == 0) {
        if (trp_clock_ms() > end) {
            if (h->has_called)
                fprintf(stderr,
                        "troupe: Slurm does not answer; %s%s will be ended by "
                        "what runs there\n",
                        *h->jobs ? "job " : "additional jobs", h->jobs);
            kill(h->pid, SIGKILL);
            waitpid(h->pid, NULL, 0);
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    uint64_t rpcs = h->rpcs;
    free(h->text);
    free(h);
    return rpcs;
}
