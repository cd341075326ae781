/*
 * The socket's path is reached through a descriptor of its folder (/proc/self/fd/N), so
 * it can be neither too long for a socket's address nor led elsewhere by a link.
 *
 * Of a request only two words count. It is read by jansson, whose depth and time are
 * bounded by the request's size.
 */
#include "driver/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "events/json_text.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/same_user.h"

#define NAME "asked"

enum { BACKLOG = 32 };

/* ---- requests ---- */

static int read_words(const json_t *j, struct trp_ask *ret, trp_error *err)
{
    const json_t *ask = json_object_get(j, "ask"), *stage = json_object_get(j, "stage");
    const char *word = json_string_value(ask);
    if (!json_is_object(j) || !word)
        return trp_error_set(err, TRP_EINVAL,
                             "a request is {\"ask\": \"status\"} or \"explain\"");
    if (strcmp(word, "status") == 0)
        ret->what = TRP_ASK_STATUS;
    else if (strcmp(word, "explain") == 0)
        ret->what = TRP_ASK_EXPLAIN;
    else
        return trp_error_set(err, TRP_EINVAL, "nothing is known of \"%.60s\"", word);
    if (stage && (!json_is_string(stage) || json_string_length(stage) > TRP_ASK_STAGE))
        return trp_error_set(err, TRP_EINVAL, "stage: no name of one");
    if (stage)
        strcpy(ret->stage, json_string_value(stage));
    return 0;
}

int trp_ask_read(const char *text, size_t size, struct trp_ask *ret, trp_error *err)
{
    json_error_t why;
    *ret = (struct trp_ask){0};
    if (size > TRP_ASK_MAX)
        return trp_error_set(err, TRP_EINVAL, "a request has at most %d bytes",
                             TRP_ASK_MAX);
    json_t *j = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!j)
        return trp_error_set(err, TRP_EINVAL, "a request is JSON: %.100s", why.text);
    int rc = read_words(j, ret, err);
    json_decref(j);
    return rc;
}

void trp_ask_put(struct trp_buf *b, const struct trp_ask *q)
{
    static const char *const words[] = {
        [TRP_ASK_STATUS] = "status", [TRP_ASK_EXPLAIN] = "explain"};
    TRP_JSON(b, "{\"ask\":");
    trp_json_text(b, words[q->what]);
    if (*q->stage)
        TRP_JSON_TEXT(b, "stage", q->stage);
    TRP_JSON(b, "}\n");
}

/* ---- the socket ---- */

/* *ret_folder is to be closed when the address is not needed any more. */
static bool make_address(const char *run_dir, struct sockaddr_un *ret, int *ret_folder)
{
    char state[PATH_MAX];
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    snprintf(state, sizeof state, "%s/state", run_dir);
    *ret_folder = trp_held_open(state, O_RDONLY | O_DIRECTORY, 0);
    if (*ret_folder < 0)
        return false;
    snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/" NAME,
             *ret_folder);
    return true;
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int trp_ask_listen(const char *run_dir)
{
    struct sockaddr_un address;
    int folder;
    if (!make_address(run_dir, &address, &folder))
        return -1;
    unlinkat(folder, NAME, 0); /* of a start that died: this one has the run's lock */
    int fd = open_socket();
    if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
                    listen(fd, BACKLOG) < 0)) {
        close(fd);
        fd = -1;
    }
    int why = errno;
    close(folder);
    errno = why;
    return fd;
}

void trp_ask_unlink(const char *run_dir)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/state/" NAME, run_dir) < PATH_MAX)
        trp_held_unlink(path, 0);
}

/* ---- asking ---- */

static bool wait_for(int fd, short events, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left = (until - trp_clock_ns()) / 1000000;
    return left > 0 && poll(&p, 1, (int)left) == 1;
}

/* A connection; -1: nobody is there, or too many are asking. */
static int dial(const char *run_dir, int64_t until)
{
    struct sockaddr_un address;
    int folder, fd = -1;
    if (!make_address(run_dir, &address, &folder))
        return -1;
    fd = open_socket();
    while (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (errno == EAGAIN && trp_clock_ns() < until) {
            poll(NULL, 0, 20);
            continue;
        }
        close(fd);
        fd = -1;
    }
    close(folder);
    return fd;
}

static int send_all(int fd, const struct trp_buf *b, int64_t until)
{
    for (size_t done = 0; done < b->size;) {
        ssize_t n = send(fd, b->data + done, b->size - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN && wait_for(fd, POLLOUT, until))
            continue;
        if (n < 0)
            return errno == EAGAIN ? TRP_EWAIT : TRP_ESYSTEM;
        done += (size_t)n;
    }
    return 0;
}

/* Up to the end of the connection. */
static int receive_all(int fd, struct trp_buf *b, int64_t until)
{
    static char piece[1 << 16];
    for (;;) {
        ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n == 0)
            return b->failed ? TRP_ENOMEM : 0;
        if (n < 0 && errno == EAGAIN && wait_for(fd, POLLIN, until))
            continue;
        if (n < 0)
            return errno == EAGAIN ? TRP_EWAIT : TRP_ESYSTEM;
        if (b->size + (size_t)n > TRP_ASK_ANSWER_MAX)
            return TRP_ELIMIT;
        trp_put_raw(b, piece, (size_t)n);
    }
}

static int ask(int fd, const struct trp_ask *q, struct trp_buf *answer)
{
    struct trp_buf request = {0};
    int64_t until = trp_clock_ns() + TRP_ASK_WAIT_MS * INT64_C(1000000);
    trp_ask_put(&request, q);
    int rc = request.failed ? TRP_ENOMEM : send_all(fd, &request, until);
    trp_buf_free(&request);
    if (rc == 0)
        rc = receive_all(fd, answer, until);
    if (rc == 0 && (!answer->size || answer->data[answer->size - 1] != '\n'))
        rc = TRP_ESYSTEM;
    return rc;
}

int trp_ask_call(const char *run_dir, const struct trp_ask *q, char **ret_answer,
                 trp_error *err)
{
    struct trp_buf answer = {0};
    int fd = dial(run_dir, trp_clock_ns() + TRP_ASK_WAIT_MS * INT64_C(1000000));
    if (fd < 0)
        return trp_error_set(err, TRP_ENOENT, "its driver does not answer here");
    int rc = trp_same_user(fd) ? ask(fd, q, &answer) : TRP_ESYSTEM;
    close(fd);
    *ret_answer = rc == 0 ? strndup((const char *)answer.data, answer.size - 1) : NULL;
    trp_buf_free(&answer);
    if (rc == 0 && !*ret_answer)
        rc = TRP_ENOMEM;
    if (rc == TRP_EWAIT)
        return trp_error_set(err, rc, "its driver has not answered for %d s",
                             TRP_ASK_WAIT_MS / 1000);
    return rc < 0 ? trp_error_set(err, rc, "its driver gives no whole answer") : 0;
}

/* ---- for who is on another node ---- */

static void hand_on(const char *run_dir, const char *line, size_t size)
{
    struct trp_ask q;
    struct trp_buf b = {0};
    trp_error err;
    char *answer = NULL;
    int code = trp_ask_read(line, size, &q, &err);
    bool asked = code == 0;
    if (asked)
        code = trp_ask_call(run_dir, &q, &answer, &err);
    if (code == 0) {
        puts(answer);
    } else {
        trp_put_raw(&b, asked ? "{\"nobody\":" : "{\"error\":", asked ? 10 : 9);
        trp_json_text(&b, err.text);
        TRP_JSON(&b, "}\n");
        fwrite(b.data, 1, b.failed ? 0 : b.size, stdout);
    }
    fflush(stdout);
    trp_buf_free(&b);
    free(answer);
}

int trp_ask_main(const char *run_dir)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    trp_error err;
    if (trp_held_folder(run_dir, NULL, &err) < 0) {
        fprintf(stderr, "troupe-rank: %s\n", err.text);
        return trp_error_exit_status(err.code);
    }
    while ((n = getline(&line, &room, stdin)) > 0)
        hand_on(run_dir, line, (size_t)n);
    free(line);
    return 0;
}
