/*
 * Of a request its first line and one header count. It has at most TRP_SERVED_REQUEST
 * bytes, so reading it takes a bounded time whatever is in it.
 */
#include "driver/metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "driver/served.h"
#include "os/held.h"
#include "os/whole_file.h"

enum { SECRET = 24, BACKLOG = 16 };

struct trp_metrics_http {
    trp_served *served;
    void (*put)(void *context, struct trp_buf *ret);
    void *context;
    char token[2 * SECRET + 1]; /* "": a Unix socket */
    char *socket;               /* its path; NULL: TCP */
    char *run_dir;
};

/* ---- addresses ---- */

static int refuse(const char *where, trp_error *err)
{
    return trp_error_set(err, TRP_EINVAL,
                         "metrics.listen: %.200s is no address of this host alone: use "
                         "127.0.0.1:PORT, [::1]:PORT or unix:PATH",
                         where);
}

static int unix_address(const char *path, struct sockaddr_storage *ret,
                        socklen_t *ret_size, trp_error *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)ret;
    if (!*path || strlen(path) >= sizeof un->sun_path)
        return trp_error_set(err, TRP_EINVAL,
                             "metrics.listen: a socket's path has from 1 to %zu bytes",
                             sizeof un->sun_path - 1);
    un->sun_family = AF_UNIX;
    strcpy(un->sun_path, path);
    *ret_size = sizeof *un;
    return 0;
}

/* True: a number that is a port. */
static bool read_port(const char *text, in_port_t *ret)
{
    size_t n = strspn(text, "0123456789");
    long port = n && n <= 5 && !text[n] ? strtol(text, NULL, 10) : -1;
    *ret = htons((uint16_t)port);
    return port >= 0 && port <= 65535;
}

int trp_metrics_http_address(const char *where, struct sockaddr_storage *ret,
                             socklen_t *ret_size, trp_error *err)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    char host[64];
    const char *colon = strrchr(where, ':');
    in_port_t port;
    *ret = (struct sockaddr_storage){0};
    if (strncmp(where, "unix:", 5) == 0)
        return unix_address(where + 5, ret, ret_size, err);
    if (!colon || (size_t)(colon - where) >= sizeof host ||
        !read_port(colon + 1, &port))
        return refuse(where, err);
    snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
    if (strcmp(host, "[::1]") == 0) {
        *v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = in6addr_loopback};
        *ret_size = sizeof *v6;
        return 0;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    *ret_size = sizeof *v4;
    if (strcmp(host, "localhost") == 0)
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (inet_pton(AF_INET, host, &v4->sin_addr) != 1 ||
             ntohl(v4->sin_addr.s_addr) >> 24 != 127)
        return refuse(where, err);
    return 0;
}

/* ---- requests ---- */

/* Up to the empty line. */
static size_t whole(const char *text, size_t n)
{
    const char *end = memmem(text, n, "\r\n\r\n", 4);
    return end ? (size_t)(end - text) + 4 : 0;
}

/* Takes as long whatever differs. */
static bool same(const char *a, const char *b, size_t n)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return !differs;
}

/* Whether a line is the header that has the token. */
static bool is_token(const char *line, size_t n, const char *token)
{
    static const char name[] = "authorization:", kind[] = "bearer ";
    size_t size = strlen(token), at = sizeof name - 1;
    if (n < at || strncasecmp(line, name, at) != 0)
        return false;
    while (at < n && line[at] == ' ')
        at++;
    if (n - at < sizeof kind - 1 || strncasecmp(line + at, kind, sizeof kind - 1) != 0)
        return false;
    at += sizeof kind - 1;
    while (n > at && line[n - 1] == ' ')
        n--;
    return n - at == size && same(line + at, token, size);
}

static bool has_token(const char *request, size_t n, const char *token)
{
    for (const char *line = request, *end; n; n -= (size_t)(end - line), line = end) {
        end = memmem(line, n, "\r\n", 2);
        if (!end)
            return false;
        if (is_token(line, (size_t)(end - line), token))
            return true;
        end += 2;
    }
    return false;
}

int trp_metrics_http_judge(const char *request, size_t n, const char *token)
{
    static const char get[] = "GET ", path[] = "/metrics";
    const char *end = memmem(request, n, "\r\n", 2);
    if (!whole(request, n))
        return 431;
    size_t first = (size_t)(end - request), at = sizeof get - 1,
           path_size = sizeof path - 1;
    if (first < 9 || memmem(request, first, " HTTP/1.", 8) == NULL ||
        memchr(request, '\0', first))
        return 400;
    if (*token && !has_token(end + 2, n - first - 2, token))
        return 401;
    if (strncmp(request, get, at) != 0)
        return 405;
    if (first < at + path_size + 1 || strncmp(request + at, path, path_size) != 0 ||
        !strchr(" ?", request[at + path_size]))
        return 404;
    return 200;
}

static const char *words_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized\r\nWWW-Authenticate: Bearer";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed\r\nAllow: GET";
    default:
        return "Request Header Fields Too Large";
    }
}

static void answer(void *context, const char *text, size_t n, struct trp_buf *ret)
{
    const trp_metrics_http *h = context;
    struct trp_buf body = {0};
    char head[320];
    int status = trp_metrics_http_judge(text, n, h->token);
    if (status == 200)
        h->put(h->context, &body);
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %d %s\r\n"
                        "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                        "Content-Length: %zu\r\nCache-Control: no-store\r\n"
                        "Connection: close\r\n\r\n",
                        status, words_of(status), body.size);
    trp_put_raw(ret, head, (size_t)size);
    trp_put_raw(ret, body.data, body.size);
    ret->failed |= body.failed;
    trp_buf_free(&body);
}

/* ---- listening ---- */

static int no_socket(const char *where, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "metrics.listen: %.200s: %m", where);
}

/* A socket that nobody listens on any more is removed; anything else is left. */
static void remove_old(const struct sockaddr_un *a)
{
    struct stat st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && lstat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        st.st_uid == geteuid() &&
        connect(fd, (const struct sockaddr *)a, sizeof *a) < 0 && errno == ECONNREFUSED)
        unlink(a->sun_path);
    if (fd >= 0)
        close(fd);
}

static int listen_at(const char *where, struct sockaddr_storage *a, socklen_t size,
                     int *ret_fd, trp_error *err)
{
    int yes = 1;
    int fd = socket(a->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return no_socket(where, err);
    if (a->ss_family == AF_UNIX) {
        remove_old((struct sockaddr_un *)a);
        fchmod(fd, 0600); /* what it is bound as, before anybody can open it */
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    }
    if (bind(fd, (struct sockaddr *)a, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)a, &size) < 0) {
        int code = no_socket(where, err);
        close(fd);
        return code;
    }
    *ret_fd = fd;
    return 0;
}

static int put_state(const trp_metrics_http *h, const char *name, const char *text,
                     trp_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/state/%s", h->run_dir, name);
    if (trp_held_write(path, text, strlen(text), false) == 0)
        return 0;
    return trp_error_set(err, TRP_ESYSTEM, "metrics.listen: %s cannot be written: %m",
                         path);
}

static int note(trp_metrics_http *h, const struct sockaddr_storage *a, trp_error *err)
{
    char line[300], host[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
    uint8_t secret[SECRET];
    if (a->ss_family == AF_UNIX) {
        h->socket = strdup(((const struct sockaddr_un *)a)->sun_path);
        snprintf(line, sizeof line, "unix:%s\n",
                 ((const struct sockaddr_un *)a)->sun_path);
        return put_state(h, "metrics", line, err);
    }
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return trp_error_set(err, TRP_ESYSTEM, "metrics.listen: no random numbers");
    trp_hex_put(secret, sizeof secret, h->token);
    h->token[sizeof h->token - 1] = '\0';
    if (a->ss_family == AF_INET) {
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(line, sizeof line, "http://%s:%d/metrics\n", host,
                 ntohs(v4->sin_port));
    } else {
        snprintf(line, sizeof line, "http://[::1]:%d/metrics\n", ntohs(v6->sin6_port));
    }
    int code = put_state(h, "metrics.token", h->token, err);
    return code < 0 ? code : put_state(h, "metrics", line, err);
}

static void http_free(trp_metrics_http *h)
{
    char path[4200];
    if (!h)
        return;
    if (h->socket)
        unlink(h->socket);
    snprintf(path, sizeof path, "%s/state/metrics", h->run_dir ? h->run_dir : "");
    trp_held_unlink(path, 0);
    free(h->socket);
    free(h->run_dir);
    free(h);
}

trp_metrics_http *trp_metrics_http_new(uv_loop_t *loop, const char *run_dir,
                                       const char *where,
                                       void (*put)(void *context, struct trp_buf *ret),
                                       void *context, trp_error *err)
{
    static const struct trp_served_how how = {
        .whole = whole, .answer = answer, .same_user = false};
    struct sockaddr_storage a;
    socklen_t size = 0;
    int fd = -1;
    if (trp_metrics_http_address(where, &a, &size, err) < 0)
        return NULL;
    trp_metrics_http *h = calloc(1, sizeof *h);
    if (!h || !(h->run_dir = strdup(run_dir))) {
        free(h);
        trp_error_set(err, TRP_ENOMEM, "out of memory");
        return NULL;
    }
    h->put = put;
    h->context = context;
    int code = listen_at(where, &a, size, &fd, err);
    if (code == 0 && (code = note(h, &a, err)) < 0)
        close(fd);
    if (code == 0 && (h->served = trp_served_new(loop, fd, &how, h, err)))
        return h;
    http_free(h);
    return NULL;
}

void trp_metrics_http_close(trp_metrics_http *take_h)
{
    if (!take_h)
        return;
    trp_served_close(take_h->served);
    http_free(take_h);
}
