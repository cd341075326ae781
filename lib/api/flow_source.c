/*
 * Where the records of a task come from.
 *
 * A range is computed from the partition's number, an array's values are used where
 * they lie in the launch's bytes (copied only when they lie badly for their readers),
 * records and lines are gathered into batches by a writer. Sources look whether the
 * attempt was killed once a batch.
 */
#include "api/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int trp_flow_source_batch(struct trp_flow *f, const trp_batch *b)
{
    if (!f->made_here) {
        f->ret->records_in += b->count;
        trp_flow_read(f, b->count);
    }
    if (trp_flow_killed(f))
        return trp_flow_fail(f, TRP_ECANCELLED, "the attempt was killed");
    return trp_flow_push(f, 0, b);
}

int trp_flow_source_flush(trp_writer *w, void *context)
{
    trp_batch b = trp_writer_batch(w);
    return trp_flow_source_batch(context, &b);
}

static int run_range(struct trp_flow *f, const struct trp_chain_node *n)
{
    int64_t next;
    uint64_t left;
    trp_range_part(n->begin, n->end, n->partitions, f->partition, &next, &left);
    while (left > 0) {
        size_t count = left < TRP_BATCH_RECORDS ? left : TRP_BATCH_RECORDS;
        for (size_t i = 0; i < count; i++)
            f->numbers[i] = next + (int64_t)i;
        trp_batch b = {.count = count,
                       .values = (const uint8_t *)f->numbers,
                       .value_width = sizeof(int64_t)};
        if (trp_flow_source_batch(f, &b) < 0)
            return -1;
        left -= count;
        if (left > 0)
            next += (int64_t)count;
    }
    return 0;
}

/* Batches point into the input where it lies well for any type; else they are copied.
 */
static int run_array(struct trp_flow *f, const struct trp_chain_node *n,
                     const uint8_t *input, size_t size)
{
    if (size % n->width)
        return trp_flow_fail(f, TRP_EPROTO, "an array's input of %zu bytes", size);
    size_t left = size / n->width, most = TRP_BATCH_BYTES / n->width;
    if (most > TRP_BATCH_RECORDS)
        most = TRP_BATCH_RECORDS;
    if (most == 0)
        most = 1;
    while (left > 0) {
        size_t count = left < most ? left : most;
        trp_batch b = {.count = count, .values = input, .value_width = n->width};
        if ((uintptr_t)input % 16) {
            trp_writer_clear(&f->source);
            if (trp_writer_add_batch(&f->source, &b) < 0)
                return trp_flow_fail(f, TRP_ENOMEM,
                                     "out of memory for an array's values");
            b = trp_writer_batch(&f->source);
        }
        if (trp_flow_source_batch(f, &b) < 0)
            return -1;
        input += count * n->width;
        left -= count;
    }
    return 0;
}

/* A batch of one record, as a writer would have it. */
static trp_batch batch_of_one(const void *key, size_t nk, const uint64_t nks[2],
                              const void *value, size_t n, const uint64_t ns[2])
{
    trp_batch b = {.count = 1, .values = value, .keys = key};
    if (n > 0 && n <= UINT32_MAX)
        b.value_width = (uint32_t)n;
    else
        b.value_offsets = ns;
    if (key && nk > 0 && nk <= UINT32_MAX)
        b.key_width = (uint32_t)nk;
    else if (key)
        b.key_offsets = nks;
    return b;
}

/* A large record goes on alone, from where it lies. */
static int emit_large(struct trp_flow *f, const void *key, size_t nk, const void *value,
                      size_t n)
{
    const uint64_t nks[2] = {0, nk}, ns[2] = {0, n};
    const trp_batch b = batch_of_one(key, nk, nks, value, n, ns);
    int rc = trp_flow_source_end(f); /* what came before it */
    return rc < 0 ? rc : trp_flow_source_batch(f, &b);
}

int trp_flow_source_emit(struct trp_flow *f, const void *key, size_t nk,
                         const void *value, size_t n)
{
    if (n >= TRP_BATCH_BYTES && (uintptr_t)value % 16 == 0)
        return emit_large(f, key, nk, value, n);
    if (trp_emit(&f->source, key, nk, value, n) == 0)
        return 0;
    return trp_flow_fail(f, trp_flow_killed(f) ? TRP_ECANCELLED : TRP_ENOMEM, "%s",
                         f->source.failed);
}

int trp_flow_source_end(struct trp_flow *f)
{
    int rc = f->source.count ? trp_flow_source_flush(&f->source, f) : 0;
    trp_writer_clear(&f->source);
    return rc;
}

static int run_records(struct trp_flow *f, const struct trp_chain_node *node,
                       const uint8_t *input, size_t size)
{
    struct trp_view v = trp_view_of(input, size);
    while (v.at < v.end) {
        size_t n, nk = 0;
        const uint8_t *key = node->keyed ? trp_get_bytes(&v, &nk) : NULL;
        const uint8_t *value = trp_get_bytes(&v, &n);
        if (v.bad)
            return trp_flow_fail(f, TRP_EPROTO, "records that cannot be read");
        if (trp_flow_source_emit(f, key, nk, value, n) < 0)
            return -1;
    }
    return trp_flow_source_end(f);
}

struct text_part {
    struct trp_flow *flow;
    const char *path; /* the key */
    size_t path_size;
};

static int text_line(void *context, const char *line, size_t size)
{
    struct text_part *t = context;
    return trp_flow_source_emit(t->flow, t->path, t->path_size, line, size);
}

/* Those that begin in [begin, end). */
static int run_values(struct trp_flow *f, uint32_t width, const char *path,
                      const struct text_part *t, uint64_t begin, uint64_t end)
{
    int rc = -1;
    FILE *file = fopen(path, "re");
    uint8_t *value = malloc(width);
    begin = (begin + width - 1) / width * width;
    if (!value)
        rc = trp_flow_fail(f, TRP_ENOMEM, "out of memory for a value");
    else if (!file || fseeko(file, (off_t)begin, SEEK_SET) < 0)
        rc = trp_flow_fail(f, TRP_ESYSTEM, "cannot read %s: %s", path, strerror(errno));
    else
        rc = 0;
    for (; rc == 0 && begin < end; begin += width) {
        if (fread(value, width, 1, file) != 1)
            rc = trp_flow_fail(f, TRP_ESYSTEM, "cannot read %s: %s", path,
                               ferror(file) ? strerror(errno)
                                            : "it is shorter than it was");
        else
            rc = trp_flow_source_emit(f, t->path, t->path_size, value, width);
        f->ret->bytes_in += rc == 0 ? width : 0;
    }
    free(value);
    if (file)
        fclose(file);
    return rc;
}

static int run_text_part(struct trp_flow *f, const struct trp_chain_node *n,
                         struct text_part *t, uint64_t begin, uint64_t end)
{
    char full[8192];
    int size = snprintf(full, sizeof(full), "%s%s%s", t->path[0] == '/' ? "" : n->base,
                        t->path[0] == '/' ? "" : "/", t->path);
    if (size < 0 || (size_t)size >= sizeof(full))
        return trp_flow_fail(f, TRP_ELIMIT, "the path %.100s… is too long", t->path);
    if (n->width)
        return run_values(f, n->width, full, t, begin, end);
    trp_error err;
    struct trp_line_sink sink = {.context = t, .line = text_line};
    int rc = trp_text_read(full, begin, end, &sink, &err);
    f->ret->bytes_in += sink.bytes;
    return rc < 0 && !f->failed ? trp_flow_fail(f, rc, "%s", err.text) : rc;
}

/* As much of a part as a sample needs. */
static int run_windows(struct trp_flow *f, const struct trp_chain_node *n,
                       struct text_part *t, uint64_t begin, uint64_t end)
{
    struct trp_sample *s = &f->sample;
    const uint64_t stride = trp_sample_stride(s, end - begin);
    if (stride == TRP_SAMPLE_WINDOW || (!n->width && trp_text_compressed(t->path)))
        return run_text_part(f, n, t, begin, end);
    s->windows = true;
    s->weight = stride / TRP_SAMPLE_WINDOW;
    int rc = 0;
    for (uint64_t at = begin; at < end && rc == 0; at += stride) {
        uint64_t from = at + trp_sample_random(s, stride - TRP_SAMPLE_WINDOW);
        uint64_t to = from + TRP_SAMPLE_WINDOW;
        if (from < end)
            rc = run_text_part(f, n, t, from, to < end ? to : end);
    }
    if (rc == 0)
        rc = trp_flow_source_end(f);
    s->weight = 1;
    return rc;
}

/* The input: path, begin, end for each part of a file (text_input.c). */
static int run_text(struct trp_flow *f, const struct trp_chain_node *n,
                    const uint8_t *input, size_t size)
{
    struct trp_view v = trp_view_of(input, size);
    while (v.at < v.end) {
        char *path = trp_get_text(&v);
        uint64_t begin = trp_get_u64(&v), end = trp_get_u64(&v);
        int rc = v.bad || !path ? trp_flow_fail(f, TRP_EPROTO,
                                                "parts of files that cannot be read")
                                : 0;
        struct text_part t = {f, path, path ? strlen(path) : 0};
        if (rc == 0)
            rc = f->chain->kind == TRP_DO_SAMPLE ? run_windows(f, n, &t, begin, end)
                                                 : run_text_part(f, n, &t, begin, end);
        free(path);
        if (rc < 0)
            return -1;
    }
    return trp_flow_source_end(f);
}

int trp_flow_source(struct trp_flow *f, const struct trp_chain_node *n,
                    const uint8_t *input, size_t size)
{
    switch (n->kind) {
    case TRP_NODE_RANGE:
        return run_range(f, n);
    case TRP_NODE_ARRAY:
        return run_array(f, n, input, size);
    case TRP_NODE_RECORDS:
        return run_records(f, n, input, size);
    case TRP_NODE_TEXT:
        return run_text(f, n, input, size);
    case TRP_NODE_CHECKPOINT:
        return trp_flow_checkpoint_source(f, n);
    case TRP_NODE_WIDE:
        return trp_flow_wide(f, n);
    default:
        return trp_flow_fail(f, TRP_EPROTO, "a chain without a source");
    }
}
