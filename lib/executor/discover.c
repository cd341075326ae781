/*
 * One poll loop over the script's stdout, its stderr, its end (a pidfd) and what stops
 * us. It is over when the script itself has ended, not when its pipes are closed: what
 * it left in its process group is killed then, and may have held them.
 */
#include "executor/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/profile/ledger.h"
#include "os/child.h"
#include "os/clock.h"

extern char **environ;

enum { LAST = 1024, SHOWN = 200, ADDRESS_MAX = 256 };

/* ---- what it printed ---- */

static bool is_address(const json_t *v)
{
    const char *s = json_string_value(v);
    return s && *s && strlen(s) <= ADDRESS_MAX && !strpbrk(s, ", \t\r\n");
}

/* Joins `v`, sorted, each once. */
static int join(const char **v, size_t n, uint32_t amount, char **ret, trp_error *err)
{
    char *text = NULL;
    size_t size, kept = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    qsort(v, n, sizeof *v, trp_natural_order);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(v[i - 1], v[i]) != 0)
            fprintf(out, "%s%s", kept++ ? "," : "", v[i]);
    bool failed = ferror(out);
    if (fclose(out) != 0 || failed || !text) {
        free(text);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    if (kept >= amount) {
        *ret = text;
        return 0;
    }
    free(text);
    return trp_error_set(err, TRP_ENEVER, "says %zu address%s, an executor needs %u",
                         kept, kept == 1 ? "" : "es", amount);
}

static int read_addresses(const json_t *list, uint32_t amount, char **ret,
                          trp_error *err)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return trp_error_set(err, TRP_ESYSTEM,
                             "says no \"addresses\": a list of texts");
    if (n > TRP_DISCOVER_ADDRESSES)
        return trp_error_set(err, TRP_ELIMIT, "says %zu addresses, more than %d", n,
                             TRP_DISCOVER_ADDRESSES);
    const char **v = calloc(n + 1, sizeof *v);
    int rc = v ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (size_t i = 0; i < n && rc == 0; i++) {
        const json_t *a = json_array_get(list, i);
        v[i] = json_string_value(a);
        if (!is_address(a))
            rc = trp_error_set(err, TRP_ESYSTEM,
                               "says an address that is not one word of text without "
                               "a comma: number %zu",
                               i + 1);
    }
    if (rc == 0)
        rc = join(v, n, amount, ret, err);
    free(v);
    return rc;
}

int trp_discovered_read(const char *text, size_t size, const char *resource,
                        uint32_t amount, char **ret_list, trp_error *err)
{
    static const char form[] = "{\"name\": \"%s\", \"addresses\": [\"0\"]}";
    char wanted[sizeof form + TRP_RESOURCE_NAME_MAX];
    json_error_t why;
    json_t *j = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    const char *name = json_string_value(json_object_get(j, "name"));
    snprintf(wanted, sizeof wanted, form, resource);
    int rc;
    if (!j)
        rc = trp_error_set(err, TRP_ESYSTEM,
                           "did not print JSON (%s); it has to print %s",
                           size ? why.text : "nothing was printed", wanted);
    else if (!name)
        rc = trp_error_set(err, TRP_ESYSTEM, "says no \"name\"; it has to print %s",
                           wanted);
    else if (strcmp(name, resource) != 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "says addresses of \"%.64s\", not of %s",
                           name, resource);
    else
        rc = read_addresses(json_object_get(j, "addresses"), amount, ret_list, err);
    json_decref(j);
    return rc;
}

/* ---- running it ---- */

struct script {
    pid_t pid;
    int end; /* pidfd */
    int out, errors;
    char *text; /* TRP_DISCOVER_OUTPUT + 1 bytes */
    size_t size;
    bool too_much;
    char last[LAST + 1]; /* the end of stderr */
    size_t nlast;
};

static void close_if(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* 0, or an errno. */
static int start(const struct trp_discovery *q, struct script *s)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    char *argv[] = {(char *)(uintptr_t)q->script, NULL};
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0 ||
        fcntl(out[0], F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(errors[0], F_SETFL, O_NONBLOCK) < 0) {
        int error = errno;
        close_if(&out[0]);
        close_if(&out[1]);
        close_if(&errors[0]);
        close_if(&errors[1]);
        return error;
    }
    int rc = trp_child_start(argv, q->env ? q->env : environ,
                             (int[]){-1, out[1], errors[1]}, &s->pid);
    close(out[1]);
    close(errors[1]);
    s->out = out[0];
    s->errors = errors[0];
    if (rc)
        return rc;
    s->end = (int)syscall(SYS_pidfd_open, s->pid, 0);
    return s->end < 0 ? errno : 0;
}

/* Reads what there is; false: there will be no more. */
static bool read_output(struct script *s)
{
    for (;;) {
        ssize_t n = read(s->out, s->text + s->size, TRP_DISCOVER_OUTPUT + 1 - s->size);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        s->size += (size_t)n;
        s->too_much = s->size > TRP_DISCOVER_OUTPUT;
        if (s->too_much)
            return false;
    }
}

static bool read_errors(struct script *s)
{
    for (;;) {
        if (s->nlast == LAST) {
            s->nlast = LAST / 2;
            memmove(s->last, s->last + LAST - s->nlast, s->nlast);
        }
        ssize_t n = read(s->errors, s->last + s->nlast, LAST - s->nlast);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        s->nlast += (size_t)n;
    }
}

enum outcome { ENDED, STOPPED, TOO_LATE };

static enum outcome follow(const struct trp_discovery *q, struct script *s)
{
    int64_t until = trp_clock_ms() + (q->limit_ms ? q->limit_ms : TRP_DISCOVER_MS);
    for (;;) {
        struct pollfd v[] = {
            {.fd = s->end,                  .events = POLLIN},
            {.fd = s->out,                  .events = POLLIN},
            {.fd = s->errors,               .events = POLLIN},
            {.fd = q->stop ? *q->stop : -1, .events = POLLIN},
        };
        int64_t left = until - trp_clock_ms();
        if (left <= 0)
            return TOO_LATE;
        if (poll(v, 4, (int)left) <= 0)
            continue;
        if (v[1].revents && !read_output(s))
            close_if(&s->out);
        if (v[2].revents && !read_errors(s))
            close_if(&s->errors);
        if (v[0].revents || s->too_much)
            return ENDED;
        if (v[3].revents)
            return STOPPED;
    }
}

/* Ends all of it; its status. */
static int finish_script(struct script *s)
{
    int status = 0;
    if (s->pid > 0) {
        kill(-s->pid, SIGKILL); /* a dead one holds the number until waited for */
        while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (s->out >= 0)
        read_output(s);
    if (s->errors >= 0)
        read_errors(s);
    close_if(&s->out);
    close_if(&s->errors);
    close_if(&s->end);
    return status;
}

/* The last line of stderr, what is not printable left to trp_error_set. */
static const char *last_line(struct script *s)
{
    while (s->nlast && (s->last[s->nlast - 1] == '\n' || s->last[s->nlast - 1] == ' '))
        s->nlast--;
    s->last[s->nlast] = '\0';
    const char *line = memrchr(s->last, '\n', s->nlast);
    return line ? line + 1 : s->last;
}

static int tell_end(struct script *s, int status, trp_error *err)
{
    const char *line = last_line(s), *name = NULL;
    if (WIFSIGNALED(status))
        name = sigabbrev_np(WTERMSIG(status));
    if (WIFSIGNALED(status))
        return trp_error_set(err, TRP_ESYSTEM, "was killed by SIG%s%s%.*s",
                             name ? name : "?", *line ? ": " : "", SHOWN, line);
    return trp_error_set(err, TRP_ESYSTEM, "ended with exit status %d%s%.*s",
                         WEXITSTATUS(status), *line ? ": " : "", SHOWN, line);
}

/* What became of it; errors without script and host. */
static int run(const struct trp_discovery *q, struct script *s, char **ret_list,
               trp_error *err)
{
    int error = start(q, s);
    if (error) {
        finish_script(s);
        return trp_error_set(err, TRP_ESYSTEM, "cannot be run: %s", strerror(error));
    }
    enum outcome outcome = follow(q, s);
    int limit = q->limit_ms ? q->limit_ms : TRP_DISCOVER_MS;
    int status = finish_script(s);
    if (outcome == STOPPED)
        return trp_error_set(err, TRP_ECANCELLED, "was stopped");
    if (outcome == TOO_LATE)
        return trp_error_set(err, TRP_ESYSTEM, "did not end within %g s",
                             limit / 1000.0);
    if (s->too_much)
        return trp_error_set(err, TRP_ESYSTEM, "printed more than %d KiB",
                             TRP_DISCOVER_OUTPUT >> 10);
    if (status != 0)
        return tell_end(s, status, err);
    return trp_discovered_read(s->text, s->size, q->resource, q->amount, ret_list, err);
}

int trp_discover(const struct trp_discovery *q, char **ret_list, trp_error *err)
{
    struct script s = {.end = -1, .out = -1, .errors = -1};
    char host[256] = "";
    trp_error why;
    s.text = malloc(TRP_DISCOVER_OUTPUT + 1);
    if (!s.text)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int rc = run(q, &s, ret_list, &why);
    free(s.text);
    gethostname(host, sizeof host - 1);
    return rc < 0 ? trp_error_set(err, rc, "discovery script %s of %s on %s: it %s",
                                  q->script, q->resource, host, why.text)
                  : 0;
}
