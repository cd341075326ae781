/*
 * A request is a byte, an answer a line: how many ns the log took, a blank, and the
 * document, or {"code","error"} where there is none. The process ends when nobody can
 * ask any more. It leads a group of its own, in which a step's srun is as well: one
 * signal ends both, whatever they are waiting for.
 */
#include "top_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "events/json_print.h"
#include "events/pace.h"
#include "piped.h"

enum {
    RUN_LINE = UINT32_MAX, /* the whole run's number for its pace */
    LATE_US = 300000, /* a run that ends stops answering before its state says so */
};

/* ---- rates ---- */

static void set_rate(json_t *to, double rate, int64_t left)
{
    json_object_set_new(to, "rate", rate < 0 ? json_null() : json_real(rate));
    json_object_set_new(to, "left", left < 0 ? json_null() : json_integer(left));
}

/* ms; -1: not known. */
static int64_t rate_stage(json_t *s, trp_pace *pace, int64_t now)
{
    uint32_t id = (uint32_t)trp_asking_int(s, "id");
    int64_t began = trp_asking_int(s, "began");
    int64_t todo = trp_asking_int(s, "tasks") - trp_asking_int(s, "done") -
                   trp_asking_int(s, "given_up") - trp_asking_int(s, "skipped");
    double rate = -1;
    int64_t left = -1;
    if (began)
        rate = trp_pace_rate(pace, id, now, began, (uint64_t)trp_asking_int(s, "ran"));
    if (began && trp_asking_int(s, "running"))
        left = trp_pace_left(rate, todo > 0 ? (uint64_t)todo : 0);
    set_rate(s, rate, left);
    return left;
}

static void add_rates(json_t *document, trp_pace *pace)
{
    json_t *s;
    size_t i;
    int64_t now = trp_asking_int(document, "now"), left, least = 0;
    uint64_t ran = 0;
    bool known = true;
    bool live = strcmp(trp_asking_text(document, "status"), "running") == 0;
    json_array_foreach(json_object_get(document, "stages"), i, s) {
        ran += (uint64_t)trp_asking_int(s, "ran");
        if (!live || trp_asking_int(s, "ended")) {
            trp_pace_forget(pace, (uint32_t)trp_asking_int(s, "id"));
            continue;
        }
        left = rate_stage(s, pace, now);
        known = known && left >= 0;
        least = left > least ? left : least;
    }
    double rate = -1;
    if (live)
        rate = trp_pace_rate(pace, RUN_LINE, now, trp_asking_int(document, "started"),
                             ran);
    set_rate(document, rate, live && known ? least : -1);
    json_object_set_new(document, "left_least", json_integer(least));
}

/* ---- the process ---- */

struct served {
    struct trp_asking *asking;
    trp_pace *pace;
    json_t *ended; /* the document of a run that does not go on */
};

/* A run that has ended is told once. */
static bool is_told(const struct served *v)
{
    return v->ended &&
           strcmp(v->asking->view.status, trp_asking_text(v->ended, "status")) == 0 &&
           v->asking->view.ended_ms == trp_asking_int(v->ended, "ended");
}

static int look(struct served *v, json_t **ret, trp_error *err)
{
    struct trp_asking *a = v->asking;
    int code = trp_asking_again(a, err);
    if (code == 0 && is_told(v)) {
        *ret = json_incref(v->ended);
        return 0;
    }
    if (code == 0)
        code = trp_asking_status(a, ret, err);
    if (code < 0)
        return code;
    json_decref(v->ended);
    v->ended = NULL;
    if (strcmp(a->view.status, "running") != 0)
        v->ended = json_incref(*ret);
    return 0;
}

static int make_document(struct served *v, json_t **ret, trp_error *err)
{
    json_t *document = NULL;
    int code = look(v, &document, err);
    if (code == 0 && *v->asking->note) {
        json_decref(document);
        document = NULL;
        usleep(LATE_US);
        code = look(v, &document, err);
    }
    if (code < 0)
        return code;
    if (document != v->ended || !json_object_get(document, "left_least"))
        add_rates(document, v->pace);
    json_object_set_new(document, "note", json_string(v->asking->note));
    *ret = document;
    return 0;
}

static void serve(struct trp_asking *a, int in, int out)
{
    struct served v = {.asking = a, .pace = trp_pace_new()};
    FILE *to = fdopen(out, "w");
    char request;
    while (to && v.pace && read(in, &request, 1) == 1) {
        json_t *document = NULL;
        trp_error err;
        int code = make_document(&v, &document, &err);
        if (code < 0)
            document = json_pack("{s:i, s:s}", "code", code, "error", err.text);
        if (!document || fprintf(to, "%" PRId64 " ", a->log_ns) < 0 ||
            trp_json_print(document, 0, to) < 0 || fflush(to) != 0)
            break;
        json_decref(document);
    }
    json_decref(v.ended);
    trp_pace_free(v.pace);
    trp_asking_free(a);
}

static void be_process(struct trp_asking *a, int in, int out)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    setpgid(0, 0);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i <= 2 && nothing >= 0; i++)
        dup2(nothing, i);
    serve(a, in, out);
    _exit(0);
}

/* ---- its other side ---- */

int trp_top_source_start(struct trp_asking *a, struct trp_top_source *ret,
                         trp_error *err)
{
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    *ret = (struct trp_top_source){.to = -1, .from = -1};
    if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0 ||
        (ret->pid = fork()) < 0) {
        int why = errno;
        for (int i = 0; i < 2; i++) {
            trp_piped_close(&to[i]);
            trp_piped_close(&from[i]);
        }
        ret->pid = 0;
        return trp_error_set(err, TRP_ESYSTEM, "cannot start a process: %s",
                             strerror(why));
    }
    if (ret->pid == 0) {
        close(to[1]);
        close(from[0]);
        be_process(a, to[0], from[1]);
    }
    setpgid(ret->pid, ret->pid); /* whoever comes first */
    close(to[0]);
    close(from[1]);
    ret->to = to[1];
    ret->from = from[0];
    fcntl(ret->from, F_SETFL, O_NONBLOCK);
    return 0;
}

void trp_top_source_ask(struct trp_top_source *s)
{
    if (s->asked)
        return;
    s->asked = write(s->to, "?", 1) == 1;
}

static int read_document(struct trp_top_source *s, json_t **ret, trp_error *err)
{
    json_t *j = NULL;
    char *at = (char *)s->text.data;
    if (!s->text.failed) {
        s->log_ns = strtoll(at, &at, 10);
        j = json_loadb(at, s->text.size - (size_t)(at - (char *)s->text.data), 0, NULL);
    }
    const char *error = json_string_value(json_object_get(j, "error"));
    int code = 0;
    trp_buf_clear(&s->text);
    if (!json_is_object(j))
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (error)
        code = trp_error_set(err, (int)trp_asking_int(j, "code"), "%s", error);
    if (code < 0)
        json_decref(j);
    else
        *ret = j;
    return code;
}

int trp_top_source_take(struct trp_top_source *s, json_t **ret, trp_error *err)
{
    static char piece[1 << 16];
    for (;;) {
        ssize_t n = read(s->from, piece, sizeof piece);
        if (n < 0 && errno == EAGAIN)
            return TRP_EWAIT;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return trp_error_set(err, TRP_ENOENT, "the process that asks is gone");
        trp_put_raw(&s->text, piece, (size_t)n);
        if (piece[n - 1] != '\n')
            continue;
        s->asked = false;
        return read_document(s, ret, err);
    }
}

void trp_top_source_kill(const struct trp_top_source *s)
{
    if (s->pid > 0)
        kill(-s->pid, SIGTERM);
}

void trp_top_source_stop(struct trp_top_source *s)
{
    trp_piped_close(&s->to);
    trp_piped_close(&s->from);
    trp_top_source_kill(s);
    if (s->pid > 0)
        trp_piped_wait(s->pid);
    trp_buf_free(&s->text);
    s->pid = 0;
}
