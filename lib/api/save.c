/*
 * A part of trp_save: one line for each record; if it has a key, the key and a tab come
 * first.
 *
 * A part appears whole: it is written under a hidden name and renamed by the one
 * attempt that may (commit.c). Lines are collected in a buffer of the thread and
 * written when it is full. A record that is larger than the buffer is written directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/flow.h"

enum { SAVE_BUFFER = 256 << 10 };

static int write_all(struct trp_flow *f, const uint8_t *p, size_t n)
{
    f->ret->bytes_out += n;
    while (n > 0) {
        ssize_t done = write(f->save.fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return trp_flow_fail(f, TRP_ESYSTEM, "cannot write a part of %s: %s",
                                 f->chain->dir,
                                 done < 0 ? strerror(errno) : "nothing is taken");
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int flush(struct trp_flow *f)
{
    int rc = write_all(f, f->save.lines.data, f->save.lines.size);
    trp_buf_clear(&f->save.lines);
    return rc;
}

/* Bytes and the character behind them. */
static inline int put(struct trp_flow *f, const void *p, size_t n, char end)
{
    struct trp_buf *b = &f->save.lines;
    if (n >= SAVE_BUFFER - b->size) {
        if (flush(f) < 0)
            return -1;
        if (n >= SAVE_BUFFER) {
            if (write_all(f, p, n) < 0)
                return -1;
            n = 0;
        }
    }
    uint8_t *to = b->data + b->size;
    if (n > 0)
        memcpy(to, p, n);
    to[n] = (uint8_t)end;
    b->size += n + 1;
    return 0;
}

/* Bytes alone. */
static int put_raw(struct trp_flow *f, const void *p, size_t n)
{
    struct trp_buf *b = &f->save.lines;
    if (n >= SAVE_BUFFER - b->size && flush(f) < 0)
        return -1;
    if (n >= SAVE_BUFFER)
        return write_all(f, p, n);
    if (n > 0)
        memcpy(b->data + b->size, p, n);
    b->size += n;
    return 0;
}

int trp_flow_save_batch(struct trp_flow *f, const trp_batch *in)
{
    for (size_t i = 0; f->chain->binary && i < in->count; i++) {
        size_t n, nk;
        const void *value = trp_value(in, i, &n), *key = trp_key(in, i, &nk);
        if (put_raw(f, key, nk) < 0 || put_raw(f, value, n) < 0)
            return -1;
    }
    if (f->chain->binary)
        return 0;
    for (size_t i = 0; i < in->count; i++) {
        size_t n, nk;
        const void *value = trp_value(in, i, &n), *key = trp_key(in, i, &nk);
        if ((key && put(f, key, nk, '\t') < 0) || put(f, value, n, '\n') < 0)
            return -1;
    }
    return 0;
}

/* All records into the open file, which is closed. */
static int write_part(struct trp_flow *f, const char *path, const uint8_t *input,
                      size_t size)
{
    trp_buf_clear(&f->save.lines);
    int rc = 0;
    if (!trp_buf_grow(&f->save.lines, SAVE_BUFFER))
        rc = trp_flow_fail(f, TRP_ENOMEM, "out of memory for a part of %s",
                           f->chain->dir);
    if (rc == 0)
        rc = trp_flow_records(f, input, size);
    if (rc == 0)
        rc = flush(f);
    if (close(f->save.fd) < 0 && rc == 0) /* some say only now that they are full */
        rc =
            trp_flow_fail(f, TRP_ESYSTEM, "cannot write %s: %s", path, strerror(errno));
    return rc;
}

int trp_flow_save(struct trp_flow *f, const uint8_t *input, size_t size)
{
    char name[64], hidden[4096], part[4096];
    const char *dir = f->chain->dir;
    snprintf(name, sizeof(name), "part-%05u", f->task.info->task);
    int n = snprintf(hidden, sizeof(hidden), "%s/.%s.%u.tmp", dir, name,
                     trp_attempt_number(f->task.info->attempt));
    if (n < 0 || (size_t)n >= sizeof(hidden))
        return trp_flow_fail(f, TRP_ELIMIT, "the folder's path %.100s… is too long",
                             dir);
    snprintf(part, sizeof(part), "%s/%s", dir, name);
    f->save.fd = open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->save.fd < 0)
        return trp_flow_fail(f, TRP_ESYSTEM, "cannot make %s: %s", hidden,
                             strerror(errno));
    int rc = write_part(f, hidden, input, size);
    if (rc == 0)
        rc = trp_flow_commit(f, hidden);
    if (rc == 0 && rename(hidden, part) != 0)
        rc = trp_flow_fail(f, TRP_ESYSTEM, "cannot rename %s to %s: %s", hidden, part,
                           strerror(errno));
    if (rc < 0)
        unlink(hidden);
    return rc;
}
