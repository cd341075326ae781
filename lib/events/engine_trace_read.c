/*
 * Reading an engine's trace. The file is decompressed as it is read; `text` holds what
 * has been decompressed and not been taken yet, so memory is that of the largest
 * record.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "events/engine_fields.h"
#include "events/engine_trace.h"
#include "events/engine_trace_form.h"
#include "os/held.h"

enum { CHUNK = 128 << 10 };

struct trp_trace_reader {
    char *file;
    FILE *in;
    ZSTD_DStream *zstd;
    uint8_t *raw;
    ZSTD_inBuffer input;
    struct trp_buf text;
    size_t at; /* taken of it */
    bool frame_open, ended;
    uint64_t offset; /* of the file, decompressed, that was taken */
    uint64_t events, actions;
    int64_t now;
    struct trp_engine_config config;
    struct trp_profile_defaults defaults;
    struct trp_fields_memory head; /* of config and defaults: to the end */
    struct trp_fields_memory memory;
};

static int broken(const trp_trace_reader *r, const char *what, trp_error *err)
{
    return trp_error_set(err, TRP_EINVAL, "%s: event %llu, byte %llu: %s", r->file,
                         (unsigned long long)r->events, (unsigned long long)r->offset,
                         what);
}

/* ---- bytes ---- */

/* Decompresses more: 1, 0 at the end of the file, or an error. */
static int more(trp_trace_reader *r, trp_error *err)
{
    if (r->at > 0) {
        memmove(r->text.data, r->text.data + r->at, r->text.size - r->at);
        r->text.size -= r->at;
        r->at = 0;
    }
    for (;;) {
        if (r->input.pos == r->input.size) {
            r->input = (ZSTD_inBuffer){r->raw, fread(r->raw, 1, CHUNK, r->in), 0};
            if (ferror(r->in))
                return broken(r, strerror(errno), err);
            if (!r->input.size)
                return r->frame_open ? broken(r, "the file is cut off", err) : 0;
        }
        size_t before = r->text.size;
        uint8_t *p = trp_buf_reserve(&r->text, CHUNK);
        if (!p)
            return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", r->file);
        ZSTD_outBuffer out = {p, CHUNK, 0};
        size_t left = ZSTD_decompressStream(r->zstd, &out, &r->input);
        r->text.size = before + out.pos;
        if (ZSTD_isError(left))
            return broken(r, ZSTD_getErrorName(left), err);
        r->frame_open = left != 0;
        if (out.pos > 0)
            return 1;
    }
}

/* At least n bytes from `at` on: 1, 0 when the file ends before. */
static int have(trp_trace_reader *r, size_t n, trp_error *err)
{
    int rc = 1;
    while (r->text.size - r->at < n && (rc = more(r, err)) > 0)
        ;
    return rc;
}

static int need(trp_trace_reader *r, size_t n, trp_error *err)
{
    int rc = have(r, n, err);
    return rc == 0 ? broken(r, "the file is cut off", err) : rc;
}

static const uint8_t *take_bytes(trp_trace_reader *r, size_t n)
{
    const uint8_t *p = r->text.data + r->at;
    r->at += n;
    r->offset += n;
    return p;
}

/* A length: 1, or an error. */
static int take_length(trp_trace_reader *r, size_t *ret, trp_error *err)
{
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        int rc = need(r, 1, err);
        if (rc < 0)
            return rc;
        uint8_t byte = *take_bytes(r, 1);
        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (x > TRP_TRACE_RECORD_MAX)
            break;
        *ret = (size_t)x;
        return 1;
    }
    return broken(r, "no length of a record", err);
}

/* ---- the head ---- */

static int read_head(trp_trace_reader *r, trp_error *err)
{
    size_t n = strlen(TRP_TRACE_MAGIC), size = 0;
    trp_error why;
    int rc = have(r, n + 1, &why);
    if (rc < 0 && r->frame_open) /* it began well */
        return trp_error_set(err, rc, "%s", why.text);
    if (rc <= 0 || memcmp(r->text.data, TRP_TRACE_MAGIC, n) != 0)
        return trp_error_set(err, TRP_EINVAL, "%s: not the trace of an engine",
                             r->file);
    take_bytes(r, n);
    uint8_t version = *take_bytes(r, 1);
    if (version != TRP_TRACE_VERSION)
        return trp_error_set(err, TRP_EINVAL,
                             "%s: a trace of version %u; this troupe reads %d", r->file,
                             version, TRP_TRACE_VERSION);
    rc = take_length(r, &size, err);
    if (rc > 0)
        rc = need(r, size, err);
    if (rc < 0)
        return rc;
    struct trp_view v = trp_view_of(take_bytes(r, size), size);
    if (trp_fields_get_defaults(&v, &r->head, &r->defaults) &&
        trp_fields_get_config(&v, &r->head, &r->config) && trp_view_end(&v))
        return 0;
    return broken(r, "options that are none", err);
}

int trp_trace_reader_open(const char *file, trp_trace_reader **ret, trp_error *err)
{
    trp_trace_reader *r = calloc(1, sizeof *r);
    int rc = 0;
    if (r) {
        r->file = strdup(file);
        r->zstd = ZSTD_createDStream();
        r->raw = malloc(CHUNK);
    }
    if (!r || !r->file || !r->zstd || !r->raw)
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for %s", file);
    if (rc == 0 && !(r->in = trp_held_fopen(file, "r")))
        rc = trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %m", file);
    if (rc == 0)
        rc = read_head(r, err);
    if (rc < 0) {
        trp_trace_reader_close(r);
        return rc;
    }
    *ret = r;
    return 0;
}

void trp_trace_reader_close(trp_trace_reader *r)
{
    if (!r)
        return;
    if (r->in)
        fclose(r->in);
    ZSTD_freeDStream(r->zstd);
    trp_fields_memory_free(&r->head);
    trp_fields_memory_free(&r->memory);
    trp_buf_free(&r->text);
    free(r->raw);
    free(r->file);
    free(r);
}

const struct trp_engine_config *trp_trace_reader_config(const trp_trace_reader *r)
{
    return &r->config;
}

const struct trp_profile_defaults *trp_trace_reader_defaults(const trp_trace_reader *r)
{
    return &r->defaults;
}

uint64_t trp_trace_reader_events(const trp_trace_reader *r)
{
    return r->events;
}

/* ---- records ---- */

static bool read_event(trp_trace_reader *r, struct trp_view *v,
                       struct trp_trace_record *ret)
{
    uint64_t since = trp_get_varint(v);
    if (v->bad || since > (uint64_t)(INT64_MAX / 2 - r->now))
        return false;
    r->now += (int64_t)since;
    r->events++;
    ret->now_ns = r->now;
    ret->bytes = v->at;
    ret->size = (size_t)(v->end - v->at);
    return trp_fields_get_event(v, &r->memory, &ret->event);
}

static bool read_record(trp_trace_reader *r, struct trp_view *v,
                        struct trp_trace_record *ret)
{
    switch (ret->kind) {
    case TRP_TRACE_PROFILE:
        return trp_fields_get_builder(v, &r->memory, &ret->builder);
    case TRP_TRACE_EXPECT:
        ret->profile.n = (uint32_t)trp_get_varint(v);
        return trp_view_end(v);
    case TRP_TRACE_EVENT:
        return read_event(r, v, ret);
    case TRP_TRACE_ACTION:
        r->actions++;
        return true;
    case TRP_TRACE_END:
        r->ended = trp_get_varint(v) == r->events;
        return trp_get_varint(v) == r->actions && trp_view_end(v) && r->ended;
    }
    return false;
}

int trp_trace_reader_next(trp_trace_reader *r, struct trp_trace_record *ret,
                          trp_error *err)
{
    size_t size = 0;
    trp_fields_memory_free(&r->memory);
    int rc = have(r, 1, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return r->ended ? 0 : broken(r, "the file is cut off", err);
    if (r->ended)
        return broken(r, "something behind the end", err);
    memset(ret, 0, sizeof *ret);
    ret->kind = (enum trp_trace_kind) * take_bytes(r, 1);
    rc = take_length(r, &size, err);
    if (rc > 0)
        rc = need(r, size, err);
    if (rc < 0)
        return rc;
    ret->bytes = take_bytes(r, size);
    ret->size = size;
    struct trp_view v = trp_view_of(ret->bytes, size);
    return read_record(r, &v, ret) ? 1 : broken(r, "a record that is none", err);
}
