/*
 * Writing a map output.
 *
 * Records are gathered in memory (sorter.h). When they reach the budget they are sorted
 * and written as a spill. At the end, without spills, what is in memory is sorted and
 * written straight into the output; else spills and memory are merged into it. Of the
 * budget a quarter is for merging, three are for records.
 *
 * Values that are to be combined are, as they come, by a table of the keys in memory;
 * so each key is there once. Where that saves next to nothing, or keys are compared by
 * the user, they are combined when they are merged instead.
 *
 * A record that is larger than that is gathered by itself: spilled as soon as it is
 * there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/array.h"
#include "data/combiner.h"
#include "data/key_order.h"
#include "data/spill.h"
#include "os/clock.h"
#include "os/held.h"

struct trp_shuffle_writer {
    struct trp_shuffle_spec spec;
    struct trp_output_id id;
    uint64_t seed;
    size_t gather; /* bytes of memory for records, with what sorting takes */
    int folder;
    char hidden[TRP_BLOCK_NAME + 32]; /* "": there is no file of that name */
    struct trp_sorter sorter;
    bool combining; /* keys are looked for in … */
    struct trp_combiner combiner;
    uint64_t combined; /* records that went into others, since the last spill */
    struct trp_spill_file file;
    struct trp_spill *spills; /* in it */
    uint32_t nspills, spills_cap;
    struct trp_unpacker unpacker;
    struct trp_shuffle_counts counts;
};

static int no_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory");
}

static int check_spec(const struct trp_shuffle_spec *s, trp_error *err)
{
    if (s->partitions < 1 || s->partitions > TRP_SHUFFLE_PARTITIONS_MAX)
        return trp_error_set(err, TRP_EINVAL,
                             "a shuffle has 1 to %d partitions, not %u",
                             TRP_SHUFFLE_PARTITIONS_MAX, s->partitions);
    if (s->order.unordered && (s->order.compare || s->order.combine))
        return trp_error_set(err, TRP_EINVAL,
                             "what is unordered cannot be compared or combined");
    return 0;
}

int trp_shuffle_writer_open(const struct trp_shuffle_spec *spec,
                            trp_shuffle_writer **ret, trp_error *err)
{
    int rc = check_spec(spec, err);
    if (rc < 0)
        return rc;
    int folder = trp_held_open(spec->folder, O_RDONLY | O_DIRECTORY, 0);
    if (folder < 0)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %m", spec->folder);
    trp_shuffle_writer *w = (trp_shuffle_writer *)calloc(1, sizeof *w);
    if (!w) {
        close(folder);
        return no_memory(err);
    }
    size_t memory =
        spec->memory < TRP_SHUFFLE_MEMORY_MIN ? TRP_SHUFFLE_MEMORY_MIN : spec->memory;
    w->spec = *spec;
    w->spec.memory = memory < TRP_SORTER_BYTES_MAX ? memory : TRP_SORTER_BYTES_MAX;
    w->gather = w->spec.memory / 4 * 3 - TRP_PARTS_BUFFER;
    w->id = (struct trp_output_id){spec->shuffle, spec->map, spec->attempt};
    w->seed = trp_parts_seed(spec->shuffle, spec->map, spec->attempt);
    w->folder = folder;
    w->file = (struct trp_spill_file){.folder = folder,
                                      .path = spec->folder,
                                      .seed = w->seed,
                                      .compress = spec->compress,
                                      .fd = -1};
    trp_sorter_init(&w->sorter, &w->spec.order);
    w->combining = spec->order.combine && !spec->order.compare &&
                   spec->order.keys == TRP_KEYS_BYTES;
    *ret = w;
    return 0;
}

void trp_shuffle_writer_free(trp_shuffle_writer *w)
{
    if (!w)
        return;
    if (w->hidden[0])
        unlinkat(w->folder, w->hidden, 0);
    trp_spill_file_close(&w->file);
    free(w->spills);
    trp_sorter_free(&w->sorter);
    trp_combiner_free(&w->combiner);
    ZSTD_freeDCtx(w->unpacker.zstd);
    close(w->folder);
    free(w);
}

static bool is_killed(const trp_shuffle_writer *w)
{
    return trp_is_killed(w->spec.killed);
}

int trp_shuffle_compare_keys(const struct trp_shuffle_order *order, const void *a,
                             size_t na, const void *b, size_t nb)
{
    return trp_key_compare(order, (const uint8_t *)a, na, (const uint8_t *)b, nb, 0);
}

uint64_t trp_shuffle_prefix(const struct trp_shuffle_order *order, const void *key,
                            size_t nk)
{
    return trp_key_prefix(order, (const uint8_t *)key, nk);
}

/* ---- merging --------------------------------------------------------------------- */

/* Streams of the spills `from` … and, `memory`, of what is sorted. */
static int open_merge(trp_shuffle_writer *w, uint32_t from, uint32_t count, bool memory,
                      struct trp_merge *ret, trp_error *err)
{
    uint32_t n = 0;
    struct trp_stream **streams =
        (struct trp_stream **)calloc((size_t)count + 1, sizeof(struct trp_stream *));
    bool good = streams != NULL;
    for (; good && n < count; n++) {
        streams[n] = trp_spill_stream(&w->file, &w->spills[from + n], &w->unpacker);
        good = streams[n] != NULL;
    }
    if (good && memory) {
        streams[n] = trp_stream_of_memory(&w->sorter);
        good = streams[n++] != NULL;
    }
    if (!streams)
        return no_memory(err);
    int rc = trp_merge_open(ret, streams, n, &w->spec.order, err);
    if (rc == 0 && !good)
        rc = no_memory(err);
    if (rc < 0)
        trp_merge_close(ret);
    return rc;
}

/* What a spill says is damaged was written by us just now. */
static int spill_failed(const trp_shuffle_writer *w, int rc, trp_error *err)
{
    if (rc != TRP_EPROTO)
        return rc;
    return trp_error_set(err, TRP_ESYSTEM, "%s: a spill that was just written: %s",
                         w->spec.folder, err ? err->text : "damaged");
}

static int keep_spill(trp_shuffle_writer *w, struct trp_merge *m, struct trp_spill *ret,
                      trp_error *err)
{
    int rc = trp_spill_merge(&w->file, m, w->spec.killed, ret, err);
    trp_merge_close(m);
    if (rc < 0)
        return spill_failed(w, rc, err);
    w->counts.spills++;
    w->counts.spilled_bytes += ret->bytes;
    return 0;
}

/* Neighbouring spills become one until no more than `most` are left. */
static int reduce_spills(trp_shuffle_writer *w, uint32_t most, trp_error *err)
{
    while (w->nspills > most) {
        uint32_t done = 0;
        uint32_t width = trp_merge_width(w->spec.memory / 4);
        for (uint32_t from = 0; from < w->nspills; from += width) {
            uint32_t n = w->nspills - from < width ? w->nspills - from : width;
            struct trp_spill merged;
            struct trp_merge m;
            int rc = open_merge(w, from, n, false, &m, err);
            if (rc == 0)
                rc = keep_spill(w, &m, &merged, err);
            if (rc < 0)
                return rc;
            for (uint32_t i = from; i < from + n; i++)
                trp_spill_drop(&w->file, &w->spills[i]);
            w->spills[done++] = merged;
        }
        w->nspills = done;
    }
    return 0;
}

static size_t held(const trp_shuffle_writer *w)
{
    return trp_sorter_memory(&w->sorter) + trp_combiner_memory(&w->combiner);
}

static int sort_memory(trp_shuffle_writer *w, trp_error *err)
{
    size_t memory = held(w);
    if (memory > w->counts.peak_memory)
        w->counts.peak_memory = memory;
    return trp_sorter_sort(&w->sorter, err);
}

static int spill_now(trp_shuffle_writer *w, trp_error *err)
{
    struct trp_merge m;
    int rc = sort_memory(w, err);
    if (rc == 0 && !TRP_ARRAY_GROW(w->spills, w->nspills, w->spills_cap))
        rc = no_memory(err);
    if (rc == 0)
        rc = open_merge(w, 0, 0, true, &m, err);
    if (rc == 0)
        rc = keep_spill(w, &m, &w->spills[w->nspills], err);
    if (rc < 0)
        return rc;
    w->nspills++;
    if (w->combined < w->sorter.n / 8)
        w->combining = false;
    w->combined = 0;
    if (w->combining)
        trp_combiner_clear(&w->combiner);
    else
        trp_combiner_free(&w->combiner);
    if (trp_sorter_memory(&w->sorter) > w->gather)
        trp_sorter_unmap(&w->sorter); /* one large record */
    else
        trp_sorter_clear(&w->sorter);
    return 0;
}

/* ---- adding ---------------------------------------------------------------------- */

static int spill(trp_shuffle_writer *w, trp_error *err)
{
    int64_t begin = trp_clock_ns();
    int rc = spill_now(w, err);
    w->counts.write_ns += trp_clock_ns() - begin;
    return rc;
}

static int check_partition(const trp_shuffle_writer *w, uint32_t partition,
                           trp_error *err)
{
    if (partition >= w->spec.partitions)
        return trp_error_set(err, TRP_EINVAL,
                             "partition %u of a shuffle that has %u: they are numbered "
                             "from 0",
                             partition, w->spec.partitions);
    return 0;
}

static int check_size(const struct trp_shuffle_record *r, trp_error *err)
{
    if (r->nk > TRP_SHUFFLE_RECORD_MAX || r->nv > TRP_SHUFFLE_RECORD_MAX - r->nk)
        return trp_error_set(err, TRP_ELIMIT,
                             "a record of %zu bytes (its key has %zu) is larger than "
                             "the %u that one may have",
                             r->nk + r->nv, r->nk, TRP_SHUFFLE_RECORD_MAX);
    return 0;
}

/* Makes room for a record of `n` bytes. 1: by a spill; 0: there is. */
static int make_room(trp_shuffle_writer *w, size_t n, trp_error *err)
{
    size_t needs = trp_sorter_needs(TRP_RECORD_HEAD_MAX + n);
    if (w->combining)
        needs += trp_combiner_needs(&w->combiner, &w->sorter);
    if (w->sorter.n == 0 || held(w) + needs <= w->gather)
        return 0;
    if (w->sorter.garbage > w->sorter.used / 2)
        return trp_sorter_compact(&w->sorter) < 0 ? no_memory(err) : 0;
    int rc = spill(w, err);
    return rc < 0 ? rc : 1;
}

/* Puts a value into that of an entry of the same key. 1: it is in; 0: the entry was
 * spilled, and the record is a new one. */
static int combine(trp_shuffle_writer *w, struct trp_entry *e, const void *value,
                   size_t nv, trp_error *err)
{
    const struct trp_shuffle_order *order = &w->spec.order;
    struct trp_record r = trp_sorter_get(&w->sorter, e);
    const void *made = NULL;
    size_t size = 0;
    int rc = order->combine(order->context, trp_record_value(&r), r.nv, value, nv,
                            &made, &size);
    if (rc < 0)
        return trp_error_set(err, rc, "values could not be combined");
    if (size == r.nv) {
        uint8_t *to = (uint8_t *)w->sorter.bytes.p +
                      (trp_record_value(&r) - (uint8_t *)w->sorter.bytes.p);
        if (size > 0)
            memcpy(to, made, size);
        return 1;
    }
    if (size > TRP_SHUFFLE_RECORD_MAX - r.nk)
        return trp_error_set(err, TRP_ELIMIT,
                             "a combined value of %zu bytes is larger than records may "
                             "be",
                             size);
    rc = make_room(w, r.nk + size, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = trp_sorter_replace(&w->sorter, e, (uint32_t)size, made);
    return rc < 0 ? no_memory(err) : 1;
}

static int add_record(trp_shuffle_writer *w, uint32_t partition,
                      const struct trp_shuffle_record *r, uint64_t hash, trp_error *err)
{
    struct trp_entry *e = NULL;
    if (w->combining)
        e = trp_combiner_find(&w->combiner, &w->sorter, partition, r, hash);
    if (e) {
        int in = combine(w, e, r->value, r->nv, err);
        w->combined += in > 0;
        if (in != 0)
            return in < 0 ? in : 0;
    }
    int rc = make_room(w, r->nk + r->nv, err);
    if (rc >= 0 && trp_sorter_add(&w->sorter, partition, r->key, (uint32_t)r->nk,
                                  r->value, (uint32_t)r->nv) < 0)
        rc = no_memory(err);
    if (rc >= 0 && w->combining && trp_combiner_put(&w->combiner, &w->sorter, hash) < 0)
        rc = no_memory(err);
    return rc < 0 ? rc : 0;
}

enum { TOGETHER = 32 }; /* records whose keys are looked for at once */

/* The same for n <= TOGETHER of them. */
static int add_some(trp_shuffle_writer *w, const uint32_t *partitions,
                    const struct trp_shuffle_record *records, size_t n, trp_error *err)
{
    uint64_t hashes[TOGETHER] = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = check_size(&records[i], err);
        if (rc == 0 && (w->combining || !partitions))
            hashes[i] = XXH3_64bits(records[i].key, records[i].nk);
    }
    if (rc == 0 && w->combining)
        trp_combiner_fetch(&w->combiner, &w->sorter, hashes, n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        uint32_t partition =
            partitions ? partitions[i] : (uint32_t)(hashes[i] % w->spec.partitions);
        rc = check_partition(w, partition, err);
        if (rc == 0)
            rc = add_record(w, partition, &records[i], hashes[i], err);
        if (rc < 0)
            break;
        w->counts.records++;
        /* one that is larger than the budget by itself */
        if (trp_sorter_memory(&w->sorter) > w->gather)
            rc = spill(w, err);
    }
    return rc;
}

int trp_shuffle_add_all(trp_shuffle_writer *w, const uint32_t *partitions,
                        const struct trp_shuffle_record *records, size_t n,
                        trp_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i += TOGETHER) {
        if (is_killed(w))
            return trp_error_set(err, TRP_ECANCELLED, "given up");
        rc = add_some(w, partitions ? partitions + i : NULL, records + i,
                      n - i < TOGETHER ? n - i : TOGETHER, err);
    }
    return rc;
}

int trp_shuffle_add(trp_shuffle_writer *w, uint32_t partition, const void *key,
                    size_t nk, const void *value, size_t nv, trp_error *err)
{
    const struct trp_shuffle_record r = {key, value, nk, nv};
    return trp_shuffle_add_all(w, &partition, &r, 1, err);
}

/* ---- the output ------------------------------------------------------------------ */

static int write_sorted(trp_shuffle_writer *w, struct trp_parts_writer *p,
                        trp_error *err)
{
    const struct trp_sorter *s = &w->sorter;
    enum { AHEAD = 32 };
    for (size_t i = 0; i < s->n; i++) {
        size_t size;
        if (i + AHEAD < s->n) { /* records are all over the memory */
            const uint8_t *next = (const uint8_t *)s->bytes.p +
                                  (size_t)s->entries[i + AHEAD].at * TRP_SORTER_UNIT;
            __builtin_prefetch(next);
            __builtin_prefetch(next + 64);
            __builtin_prefetch(next + 128);
        }
        if (i % 4096 == 0 && is_killed(w))
            return trp_error_set(err, TRP_ECANCELLED, "given up");
        const uint8_t *record = trp_sorter_record(s, &s->entries[i], &size);
        int rc = trp_parts_put(p, s->entries[i].partition, record, size, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int write_merged(trp_shuffle_writer *w, struct trp_parts_writer *p,
                        trp_error *err)
{
    struct trp_merge m;
    struct trp_shuffle_record r;
    uint32_t width = trp_merge_width(w->spec.memory / 4);
    int rc = reduce_spills(w, width - 1, err);
    if (rc == 0)
        rc = open_merge(w, 0, w->nspills, w->sorter.n > 0, &m, err);
    if (rc < 0)
        return rc;
    for (uint64_t n = 0; (rc = trp_merge_next(&m, &r, err)) > 0; n++) {
        if (n % 4096 == 0 && is_killed(w))
            rc = trp_error_set(err, TRP_ECANCELLED, "given up");
        else
            rc = trp_parts_put_record(p, m.partition, &r, err);
        if (rc < 0)
            break;
    }
    trp_merge_close(&m);
    return spill_failed(w, rc, err);
}

/* All blocks, index and footer, into the open file. */
static int write_output(trp_shuffle_writer *w, int fd, uint64_t *sizes, trp_error *err)
{
    struct trp_parts_writer p;
    int rc =
        trp_parts_writer_open(&p, fd, w->spec.folder, w->seed, w->spec.compress, err);
    if (rc < 0)
        return rc;
    p.sizes = sizes;
    rc = sort_memory(w, err);
    if (rc == 0 && w->nspills == 0 && (!w->spec.order.combine || w->combining))
        rc = write_sorted(w, &p, err);
    else if (rc == 0)
        rc = write_merged(w, &p, err);
    if (rc == 0)
        rc = trp_block_file_finish(&p, &w->id, sizes, w->spec.partitions, err);
    w->counts.written = p.records;
    w->counts.bytes = p.bytes;
    trp_parts_writer_close(&p);
    return rc;
}

static int write_failed(const trp_shuffle_writer *w, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "%s: shuffle data cannot be written: %m",
                         w->spec.folder);
}

/* Writes the file and gives it its name. */
static int make_output(trp_shuffle_writer *w, uint64_t *sizes, trp_error *err)
{
    char name[TRP_BLOCK_NAME];
    trp_block_file_name(&w->id, name);
    snprintf(w->hidden, sizeof w->hidden, ".%s.%d", name, (int)getpid());
    int fd =
        openat(w->folder, w->hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        w->hidden[0] = 0;
        return write_failed(w, err);
    }
    int rc = write_output(w, fd, sizes, err);
    if (close(fd) < 0 &&
        rc == 0) /* some file systems say only now that they are full */
        rc = write_failed(w, err);
    if (rc == 0 && renameat(w->folder, w->hidden, w->folder, name) < 0)
        rc = write_failed(w, err);
    if (rc < 0)
        return rc;
    w->hidden[0] = 0;
    return 0;
}

int trp_shuffle_commit(trp_shuffle_writer *w, uint64_t *ret_sizes,
                       struct trp_shuffle_counts *ret_counts, trp_error *err)
{
    if (is_killed(w))
        return trp_error_set(err, TRP_ECANCELLED, "given up");
    uint64_t *sizes = (uint64_t *)calloc(w->spec.partitions, sizeof *sizes);
    int64_t begin = trp_clock_ns();
    int rc = sizes ? make_output(w, sizes, err) : no_memory(err);
    w->counts.write_ns += trp_clock_ns() - begin;
    if (rc == 0 && ret_sizes)
        memcpy(ret_sizes, sizes, w->spec.partitions * sizeof *sizes);
    if (rc == 0 && ret_counts)
        *ret_counts = w->counts;
    free(sizes);
    return rc;
}
