/*
 * Reading the lines of a part of a file.
 *
 * Rule: a range owns the lines that begin in it. A reader whose range begins at b > 0
 * starts at b - 1 and skips through the first LF it finds, so a line that begins at b
 * is its own exactly when byte b - 1 ends the one before; it reads on past its end to
 * finish a line that began inside. Each line is then read once, however a file is cut,
 * without anybody looking at the file when the cuts are made.
 *
 * One buffer, refilled behind what is left of an unfinished line, and grown (to
 * TRP_LINE_MAX) only for a line longer than it. Compressed files are streams through
 * zlib or libzstd, several members or frames in a row included; one that ends in the
 * middle is an error, never a short file. The buffer belongs to the thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "api/chain.h"
#include "api/gz.h"
#include "os/whole_file.h"

enum { BUFFER_SIZE = 256 << 10 };

struct source {
    const char *path;
    trp_error *err;
    int fd;
    const struct trp_gz_calls *gz_calls;
    void *gz;
    ZSTD_DStream *zstd;
    ZSTD_inBuffer in;
    uint8_t *packed; /* zstd: bytes as read */
    size_t frame;    /* zstd: what it said last; 0 when a frame is complete */
};

struct buffer {
    char *data;
    size_t capacity;
};

static _Thread_local struct buffer *thread_buffer;
static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

static void buffer_free(void *p)
{
    struct buffer *b = p;
    free(b->data);
    free(b);
}

static void buffer_key_make(void)
{
    if (pthread_key_create(&buffer_key, buffer_free) != 0)
        abort(); /* only at the very first file, with no keys left in the process */
}

static struct buffer *buffer_of_thread(void)
{
    pthread_once(&buffer_once, buffer_key_make);
    if (!thread_buffer) {
        struct buffer *b = calloc(1, sizeof(*b));
        if (!b || pthread_setspecific(buffer_key, b) != 0) {
            free(b);
            return NULL;
        }
        thread_buffer = b;
    }
    if (!thread_buffer->data) {
        thread_buffer->data = malloc(BUFFER_SIZE);
        thread_buffer->capacity = thread_buffer->data ? BUFFER_SIZE : 0;
    }
    return thread_buffer->data ? thread_buffer : NULL;
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && memcmp(path + n - m, suffix, m) == 0;
}

bool trp_text_compressed(const char *path)
{
    return ends_in(path, ".gz") || ends_in(path, ".zst");
}

/* ---- bytes ---- */

static ssize_t read_fd(const struct source *s, void *p, size_t n)
{
    ssize_t got;
    do
        got = read(s->fd, p, n);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return trp_error_set(s->err, TRP_ESYSTEM, "cannot read %s: %s", s->path,
                             strerror(errno));
    return got;
}

static ssize_t read_gz(struct source *s, void *p, size_t n)
{
    const char *why;
    ssize_t got = s->gz_calls->read(s->gz, p, n, &why);
    return got >= 0
               ? got
               : trp_error_set(s->err, TRP_ESYSTEM, "cannot read %s: %s", s->path, why);
}

static ssize_t read_zstd(struct source *s, void *p, size_t n)
{
    ZSTD_outBuffer out = {p, n, 0};
    while (out.pos == 0) {
        if (s->in.pos == s->in.size) {
            ssize_t got = read_fd(s, s->packed, ZSTD_DStreamInSize());
            if (got < 0)
                return got;
            if (got == 0 && s->frame != 0)
                return trp_error_set(s->err, TRP_ESYSTEM,
                                     "cannot read %s: it ends in the middle", s->path);
            if (got == 0)
                return 0;
            s->in = (ZSTD_inBuffer){s->packed, (size_t)got, 0};
        }
        s->frame = ZSTD_decompressStream(s->zstd, &out, &s->in);
        if (ZSTD_isError(s->frame))
            return trp_error_set(s->err, TRP_ESYSTEM, "cannot read %s: %s", s->path,
                                 ZSTD_getErrorName(s->frame));
    }
    return (ssize_t)out.pos;
}

static ssize_t source_read(struct source *s, void *p, size_t n)
{
    if (s->gz)
        return read_gz(s, p, n);
    return s->zstd ? read_zstd(s, p, n) : read_fd(s, p, n);
}

static void source_close(struct source *s)
{
    if (s->gz)
        s->gz_calls->close(s->gz); /* closes fd */
    else if (s->fd >= 0)
        close(s->fd);
    ZSTD_freeDStream(s->zstd);
    free(s->packed);
}

static int source_open(struct source *s, uint64_t at)
{
    s->fd = trp_file_open_regular(s->path);
    if (s->fd < 0)
        return trp_error_set(s->err, TRP_ESYSTEM, "cannot open %s: %s", s->path,
                             strerror(errno));
    if (ends_in(s->path, ".gz")) {
        int rc = trp_module_get("gz", (const void **)&s->gz_calls, s->err);
        if (rc < 0)
            return rc;
        s->gz = s->gz_calls->open(s->fd);
        if (!s->gz)
            return trp_error_set(s->err, TRP_ENOMEM, "out of memory for %s", s->path);
        return 0;
    }
    if (ends_in(s->path, ".zst")) {
        s->zstd = ZSTD_createDStream();
        s->packed = malloc(ZSTD_DStreamInSize());
        if (!s->zstd || !s->packed)
            return trp_error_set(s->err, TRP_ENOMEM, "out of memory for %s", s->path);
        return 0;
    }
    if (at > 0 && lseek(s->fd, (off_t)at, SEEK_SET) < 0)
        return trp_error_set(s->err, TRP_ESYSTEM, "cannot read %s: %s", s->path,
                             strerror(errno));
    return 0;
}

/* ---- lines ---- */

struct lines {
    struct source *source;
    struct buffer *buffer;
    struct trp_line_sink *sink;
    size_t begin, end, scanned; /* unfinished line; how far it has no LF */
    uint64_t at;                /* place in the file of buffer->data[begin] */
    uint64_t limit;             /* lines that begin here belong to others */
    bool skip;                  /* up to the first LF */
};

/* More bytes behind what is there: 1, 0 at the end of the file, or an error. */
static int lines_fill(struct lines *l)
{
    struct buffer *b = l->buffer;
    if (l->begin > 0) {
        memmove(b->data, b->data + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->scanned -= l->begin;
        l->begin = 0;
    }
    if (l->end == b->capacity) {
        if (b->capacity >= TRP_LINE_MAX)
            return trp_error_set(l->source->err, TRP_ELIMIT,
                                 "%s has a line above %u MiB", l->source->path,
                                 TRP_LINE_MAX >> 20);
        size_t more = b->capacity < BUFFER_SIZE ? BUFFER_SIZE : 2 * b->capacity;
        char *p = realloc(b->data, more);
        if (!p)
            return trp_error_set(l->source->err, TRP_ENOMEM,
                                 "out of memory for a line of %s", l->source->path);
        b->data = p;
        b->capacity = more;
    }
    ssize_t got = source_read(l->source, b->data + l->end, b->capacity - l->end);
    if (got <= 0)
        return (int)got;
    l->end += (size_t)got;
    l->sink->bytes += (uint64_t)got;
    return 1;
}

/* The line at `begin`, of `size` bytes, is complete; `next` bytes further is the next
 * one. */
static int lines_take(struct lines *l, size_t size, size_t next)
{
    int rc = 0;
    if (l->skip)
        l->skip = false;
    else
        rc = l->sink->line(l->sink->context, l->buffer->data + l->begin, size);
    l->begin += next;
    l->scanned = l->begin;
    l->at += next;
    return rc;
}

static int lines_read(struct lines *l)
{
    while (l->skip || l->at < l->limit) {
        const char *line = l->buffer->data + l->begin;
        const char *lf =
            memchr(l->buffer->data + l->scanned, '\n', l->end - l->scanned);
        if (lf) {
            int rc = lines_take(l, (size_t)(lf - line), (size_t)(lf - line) + 1);
            if (rc < 0)
                return rc;
            continue;
        }
        if (l->skip) { /* not ours: need not be kept */
            l->at += l->end - l->begin;
            l->begin = l->end;
        }
        l->scanned = l->end;
        int rc = lines_fill(l);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            size_t left = l->end - l->begin;
            return left && !l->skip ? lines_take(l, left, left) : 0;
        }
    }
    return 0;
}

int trp_text_read(const char *path, uint64_t begin, uint64_t end,
                  struct trp_line_sink *sink, trp_error *err)
{
    struct buffer *b = buffer_of_thread();
    if (!b)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %s", path);
    struct source s = {.path = path, .err = err, .fd = -1};
    struct lines l = {.source = &s, .buffer = b, .sink = sink, .limit = end};
    if (trp_text_compressed(path)) {
        l.limit = UINT64_MAX;
    } else if (begin > 0) {
        l.at = begin - 1;
        l.skip = true;
    }
    int rc = source_open(&s, l.at);
    if (rc == 0)
        rc = lines_read(&l);
    source_close(&s);
    if (b->capacity > TRP_KEEP_BYTES) {
        free(b->data);
        *b = (struct buffer){0};
    }
    return rc;
}
