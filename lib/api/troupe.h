/*
 * troupe.h — datasets on executors shaped by resource profiles, for C programs.
 *
 * One program is driver and executor: it is started by `troupe run -- APP`, or
 * statically by `mpirun -n N APP` or `srun --mpi=pmix -n N APP`, or, to be debugged, in
 * one process without executors by `TROUPE_INLINE=1 APP`. trp_init returns on the driver
 * and runs the executor elsewhere (it never returns there). A *dataset* is a recipe:
 * partitions of records, made when an *action* (count, collect, reduce, foreach, save)
 * needs them. The chain of datasets behind an action is one stage; its tasks, one a
 * partition, run in the profile that trp_with_resources attached anywhere in the chain,
 * else in the default one. A wide operation (sums by key, sort, join) parts a chain in
 * two stages.
 *
 * Functions return 0 or a negative code of TRP_E…; those that make a dataset return a
 * new handle, or NULL with the error kept in the context (NULL in, NULL out: check a
 * chain once, at its end). trp_error_text says what happened. Inputs never change.
 * trp_finalize frees all; trp_dataset_free what is to go before. One thread at a time per
 * context.
 *
 * Who frees what (trp_finalize frees all that is left but for what `free` stands beside):
 *
 *     datasets                            trp_dataset_free
 *     profiles, the context               trp_finalize
 *     rows of trp_collect, _take, _top    trp_rows_free
 *     the value of trp_reduce             free
 *     a job, with its result              trp_job_free
 *     a broadcast                         trp_broadcast_free
 *     a state of trp_partitions           the program's `end`
 *     values, arguments, names, folders   who gave them, at once: they are copied
 *     the text of trp_error_text          nobody: it is good until the next call
 *     in a function all that it is given  nobody: it is good until the function returns
 *
 * Functions run on executors. An executor is one process, with a thread for each task that it
 * runs at a time: what tasks share there (static variables, a library that is not safe
 * for threads) is the program's to protect. Functions of one task run one at a time.
 *
 *     #include <stdio.h>
 *     #include <troupe.h>
 *
 *     TRP_FUNCTION(shout);                    // runs on executors
 *     int shout(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
 *     {
 *         for (size_t i = 0, n; i < in->count; i++) {
 *             const char *line = trp_value(in, i, &n);
 *             if (n > 0 && line[n - 1] == '!' && trp_emit(out, NULL, 0, line, n) < 0)
 *                 return -1;
 *         }
 *         return 0;
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         trp_context *ctx;
 *         uint64_t n;
 *         if (trp_init(&argc, &argv, &ctx) < 0)
 *             return 2;
 *         trp_dataset *d = trp_text_files(ctx, "data/?.txt", 8);
 *         if (trp_count(trp_transform(d, shout, NULL, 0), &n) < 0)
 *             fprintf(stderr, "%s\n", trp_error_text(ctx));
 *         else
 *             printf("%llu\n", (unsigned long long)n);
 *         return trp_finalize(ctx);
 *     }
 *
 * To be read from here to the end: 1 the run, 2 functions, 3 datasets, 4 actions,
 * 5 shapes, 6 wide operations, 7 tasks, 8 jobs, 9 what all tasks share. More of it: examples/.
 */
#ifndef TROUPE_H
#define TROUPE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_VERSION_MAJOR 0
#define TRP_VERSION_MINOR 1
#define TRP_VERSION_PATCH 0

typedef struct trp_context trp_context;
typedef struct trp_dataset trp_dataset;
typedef struct trp_profile trp_profile;
typedef struct trp_task trp_task;
typedef struct trp_record_writer trp_writer;
typedef struct trp_rows trp_rows;

/* ---- 1. the run ---- */

/* What functions return besides 0; in brackets what main ends with. (The library's own
 * sources have them from core/base/error.h.) */
#ifndef TRP_CORE_BASE_ERROR_H
enum {
    TRP_EINVAL = -1,      /* wrong call or value (2) */
    TRP_ENOMEM = -2,      /* out of memory (4) */
    TRP_ENEVER = -4,      /* no executor can ever have this shape here (3) */
    TRP_EEXIST = -5,      /* already there (2) */
    TRP_ENOENT = -6,      /* not there, no file matches (2) */
    TRP_ELIMIT = -7,      /* too large (2) */
    TRP_ESYSTEM = -8,     /* the platform failed: disk, MPI (4) */
    TRP_ECANCELLED = -10, /* cancelled from outside (130) */
    TRP_EFAILED = -11,    /* a stage gave up (1) */
    TRP_ESTATE = -12,     /* not now, not here (2) */
    TRP_ETIME = -13,      /* time is up (75) */
};
#endif

/* Removes nothing from argv. TRP_EINVAL (-1) with a line on stderr when the program was
 * started neither by `troupe run` nor with at least two MPI ranks, nor TROUPE_INLINE is
 * set. */
int trp_init(int *argc, char ***argv, trp_context **ret_ctx);
/* Gives everything back, prints the closing summary, frees all handles. Returns the
 * exit status for main, with which `troupe run` ends in any case: that of what ended
 * the run from outside, else of the first call that failed and was not made good, else
 * 0. A profile that was refused is made good by a later build under its name, an action
 * by a later one that succeeds on the same dataset, anything by trp_error_clear. Another
 * status that the program ends with behind it is the run's in place of 0. */
int trp_finalize(trp_context *ctx);
/* What the last failed call said; "" when none failed. Valid until the next call. */
const char *trp_error_text(const trp_context *ctx);
/* What failed so far was expected, or the program has another way: it does not count
 * for the exit status, and trp_error_text is "". */
void trp_error_clear(trp_context *ctx);

/* ---- 2. functions: batches in, records out ----
 *
 *     TRP_FUNCTION(squares);
 *     int squares(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
 *     {
 *         for (size_t i = 0; i < in->count; i++) {
 *             int64_t v = trp_get_i64(in, i);
 *             if (trp_emit_i64(out, NULL, 0, v * v) < 0)
 *                 return -1;
 *         }
 *         return 0;
 *     }
 */

/* A batch of records in columns. Record i has the value bytes values[value_offsets[i]
 * .. value_offsets[i+1]), and a key likewise when keys != NULL. When value_width > 0
 * every value has that width and value_offsets is NULL (value i at values + i *
 * value_width); keys likewise.
 *
 * `values` begins at a multiple of 8: where value_width is a multiple of what a type's
 * alignment wants (8 at most), each value may be read as that type, through a pointer. All
 * else (values of any size, keys, what trp_group_next, trp_left and trp_right hand out)
 * lies anywhere, and is to be copied: trp_get_i64 and its like do. */
typedef struct trp_batch {
    size_t count;
    const uint8_t *values;
    const uint64_t *value_offsets; /* count + 1 entries, or NULL */
    uint32_t value_width;
    const uint8_t *keys;         /* NULL: records have no key */
    const uint64_t *key_offsets; /* count + 1 entries, or NULL */
    uint32_t key_width;
} trp_batch;

static inline const void *trp_value(const trp_batch *b, size_t i, size_t *ret_size)
{
    if (b->value_width) {
        if (ret_size)
            *ret_size = b->value_width;
        return b->values + i * b->value_width;
    }
    if (ret_size)
        *ret_size = (size_t)(b->value_offsets[i + 1] - b->value_offsets[i]);
    return b->values + b->value_offsets[i];
}

static inline const void *trp_key(const trp_batch *b, size_t i, size_t *ret_size)
{
    if (!b->keys) {
        if (ret_size)
            *ret_size = 0;
        return NULL;
    }
    if (b->key_width) {
        if (ret_size)
            *ret_size = b->key_width;
        return b->keys + i * b->key_width;
    }
    if (ret_size)
        *ret_size = (size_t)(b->key_offsets[i + 1] - b->key_offsets[i]);
    return b->keys + b->key_offsets[i];
}

/* Bytes as a number in the machine's order; 0 where there are not 8 of them. */
static inline int64_t trp_as_i64(const void *p, size_t n)
{
    int64_t v = 0;
    if (n == sizeof(v))
        memcpy(&v, p, sizeof(v));
    return v;
}
static inline double trp_as_f64(const void *p, size_t n)
{
    double v = 0;
    if (n == sizeof(v))
        memcpy(&v, p, sizeof(v));
    return v;
}

static inline int32_t trp_as_i32(const void *p, size_t n)
{
    int32_t v = 0;
    if (n == sizeof(v))
        memcpy(&v, p, sizeof(v));
    return v;
}
static inline float trp_as_f32(const void *p, size_t n)
{
    float v = 0;
    if (n == sizeof(v))
        memcpy(&v, p, sizeof(v));
    return v;
}

/* The value or the key of record i as such a number. */
static inline int64_t trp_get_i64(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_value(b, i, &n);
    return trp_as_i64(p, n);
}
static inline double trp_get_f64(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_value(b, i, &n);
    return trp_as_f64(p, n);
}
static inline int64_t trp_get_key_i64(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_key(b, i, &n);
    return trp_as_i64(p, n);
}
static inline double trp_get_key_f64(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_key(b, i, &n);
    return trp_as_f64(p, n);
}

static inline int32_t trp_get_i32(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_value(b, i, &n);
    return trp_as_i32(p, n);
}
static inline float trp_get_f32(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_value(b, i, &n);
    return trp_as_f32(p, n);
}
static inline int32_t trp_get_key_i32(const trp_batch *b, size_t i)
{
    size_t n;
    const void *p = trp_key(b, i, &n);
    return trp_as_i32(p, n);
}

/* The value or the key of record i, copied to a variable of `size` bytes; -1: it has
 * another size. TRP_GET(in, i, &point), with any struct that has no pointers. */
static inline int trp_get(const trp_batch *b, size_t i, void *to, size_t size)
{
    size_t n;
    const void *p = trp_value(b, i, &n);
    if (n != size)
        return -1;
    memcpy(to, p, size);
    return 0;
}
static inline int trp_get_key(const trp_batch *b, size_t i, void *to, size_t size)
{
    size_t n;
    const void *p = trp_key(b, i, &n);
    if (!p || n != size)
        return -1;
    memcpy(to, p, size);
    return 0;
}
#define TRP_GET(batch, i, to) trp_get((batch), (i), (to), sizeof(*(to)))
#define TRP_GET_KEY(batch, i, to) trp_get_key((batch), (i), (to), sizeof(*(to)))

/* Adds a record; key NULL: none (all records of a writer have keys or none has). -1
 * when memory is out or the attempt was killed. */
int trp_emit(trp_writer *w, const void *key, size_t key_size, const void *value,
             size_t value_size);

/* The same with a number, or with a text without its NUL. */
static inline int trp_emit_i64(trp_writer *w, const void *key, size_t key_size,
                               int64_t value)
{
    return trp_emit(w, key, key_size, &value, sizeof(value));
}
static inline int trp_emit_f64(trp_writer *w, const void *key, size_t key_size,
                               double value)
{
    return trp_emit(w, key, key_size, &value, sizeof(value));
}
static inline int trp_emit_i32(trp_writer *w, const void *key, size_t key_size,
                               int32_t value)
{
    return trp_emit(w, key, key_size, &value, sizeof(value));
}
static inline int trp_emit_f32(trp_writer *w, const void *key, size_t key_size,
                               float value)
{
    return trp_emit(w, key, key_size, &value, sizeof(value));
}
/* A struct: TRP_EMIT(out, key, key_size, &point). Its padding is part of it: two are the
 * same where all their bytes are. */
#define TRP_EMIT(out, key, key_size, from)                                             \
    trp_emit((out), (key), (key_size), (from), sizeof(*(from)))
static inline int trp_emit_text(trp_writer *w, const void *key, size_t key_size,
                                const char *text)
{
    return trp_emit(w, key, key_size, text, strlen(text));
}

/* Keys of several parts, one after the other, whose bytes are in the order of the parts: so
 * trp_sort_by_key(d, TRP_BYTES, n) and what comes behind any wide operation is sorted by the
 * first part, then by the second. -1: there is no room for it any more.
 *
 *     trp_composite key = {0};
 *     if (trp_composite_text(&key, user, n) < 0 || trp_composite_i64(&key, time) < 0)
 *         return -1;
 *     trp_emit(out, key.bytes, key.size, …);
 *
 * They are taken apart in the same order:
 *
 *     trp_composite_parts p = trp_composite_of(trp_key(in, i, &n), n);
 *     size_t size = trp_composite_next_text(&p, user, sizeof(user));
 *     int64_t time = trp_composite_next_i64(&p); */
typedef struct trp_composite {
    size_t size;
    uint8_t bytes[248];
} trp_composite;

static inline int trp_composite_u64(trp_composite *k, uint64_t v)
{
    if (k->size > sizeof(k->bytes) - 8)
        return -1;
    for (int i = 0; i < 8; i++)
        k->bytes[k->size++] = (uint8_t)(v >> (56 - 8 * i));
    return 0;
}
static inline int trp_composite_i64(trp_composite *k, int64_t v)
{
    return trp_composite_u64(k, (uint64_t)v ^ UINT64_C(1) << 63);
}
/* What is no number is above all others, all as one; -0.0 is 0.0. */
static inline int trp_composite_f64(trp_composite *k, double v)
{
    uint64_t bits;
    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof(bits));
    if (v != v)
        bits = UINT64_C(0x7ff8) << 48;
    return trp_composite_u64(k, bits >> 63 ? ~bits : bits | UINT64_C(1) << 63);
}
/* Any bytes; a shorter part is before those that begin with it. */
static inline int trp_composite_text(trp_composite *k, const void *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)text;
    const size_t before = k->size;
    for (size_t i = 0; i <= size; i++) {
        const int more = i == size || p[i] == 0;
        if (sizeof(k->bytes) - k->size < 1u + (unsigned)more) {
            k->size = before;
            return -1;
        }
        k->bytes[k->size++] = i < size ? p[i] : 0;
        if (more) /* 0 255 is a byte 0, 0 1 is the end */
            k->bytes[k->size++] = i < size ? 255 : 1;
    }
    return 0;
}

typedef struct trp_composite_parts {
    const uint8_t *at, *end;
} trp_composite_parts;
static inline trp_composite_parts trp_composite_of(const void *key, size_t size)
{
    trp_composite_parts p;
    p.at = (const uint8_t *)key;
    p.end = p.at ? p.at + size : p.at;
    return p;
}
static inline uint64_t trp_composite_next_u64(trp_composite_parts *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8 && p->at < p->end; i++)
        v = v << 8 | *p->at++;
    return v;
}
static inline int64_t trp_composite_next_i64(trp_composite_parts *p)
{
    return (int64_t)(trp_composite_next_u64(p) ^ UINT64_C(1) << 63);
}
static inline double trp_composite_next_f64(trp_composite_parts *p)
{
    uint64_t bits = trp_composite_next_u64(p);
    double v;
    bits = bits >> 63 ? bits ^ UINT64_C(1) << 63 : ~bits;
    memcpy(&v, &bits, sizeof(v));
    return v;
}
/* Its size; as much of it as fits is copied to `to`. */
static inline size_t trp_composite_next_text(trp_composite_parts *p, void *to,
                                             size_t cap)
{
    size_t n = 0;
    while (p->end - p->at >= 1) {
        const uint8_t c = *p->at++;
        if (c == 0 && p->at < p->end && *p->at++ == 1)
            break;
        if (n < cap)
            ((uint8_t *)to)[n] = c;
        n++;
    }
    return n;
}

/* What runs on executors. A batch in, any number of records out by trp_emit. Returns 0,
 * or an error code other than 0, which fails the attempt. `arg` is the copy of what was
 * given to trp_transform. Called once for each batch of a partition; for a partition
 * without records it is not called. */
typedef int (*trp_function)(trp_task *t, const trp_batch *in, trp_writer *out,
                            const void *arg);
/* Combines the values a and b (sizes given; a came before b) into out. For trp_reduce:
 * associative. */
typedef int (*trp_combine)(const void *a, size_t na, const void *b, size_t nb,
                           trp_writer *out, const void *arg);

/* The same with its task, to say why it fails and to read a broadcast (section 9). NULL where
 * the driver calls it: it reduces what tasks have reduced. */
typedef int (*trp_task_combine)(trp_task *t, const void *a, size_t na, const void *b,
                                size_t nb, trp_writer *out, const void *arg);

/* Makes a function known by its name, so that an executor finds it: TRP_FUNCTION(name);
 * at file scope, before its definition; the others are for functions of other types.
 * The function must not be static. (The structs are never used: they take the
 * semicolon, which ISO C forbids behind a function.) */
#define TRP_FUNCTION(name)                                                             \
    int name(trp_task *, const trp_batch *, trp_writer *, const void *);               \
    TRP_REGISTERED(name)
#define TRP_COMBINE(name)                                                              \
    int name(const void *, size_t, const void *, size_t, trp_writer *, const void *);  \
    TRP_REGISTERED(name)
#define TRP_COMPARE(name)                                                              \
    int name(const void *, size_t, const void *, size_t, const void *);                \
    TRP_REGISTERED(name)
#define TRP_COGROUP(name)                                                              \
    int name(trp_task *, const void *, size_t, const trp_batch *, const trp_batch *,   \
             trp_writer *, const void *);                                              \
    TRP_REGISTERED(name)
#define TRP_PARTITION(name)                                                            \
    uint32_t name(const void *, size_t, uint32_t, const void *);                       \
    TRP_REGISTERED(name)
#define TRP_TASK_COMBINE(name)                                                         \
    int name(trp_task *, const void *, size_t, const void *, size_t, trp_writer *,     \
             const void *);                                                            \
    TRP_REGISTERED(name)
#define TRP_TASK_COMPARE(name)                                                         \
    int name(trp_task *, const void *, size_t, const void *, size_t, const void *);    \
    TRP_REGISTERED(name)
#define TRP_TASK_PARTITION(name)                                                       \
    uint32_t name(trp_task *, const void *, size_t, uint32_t, const void *);           \
    TRP_REGISTERED(name)
#define TRP_BEGIN(name)                                                                \
    int name(trp_task *, void **, trp_writer *, const void *);                         \
    TRP_REGISTERED(name)
#define TRP_BATCH(name)                                                                \
    int name(trp_task *, void *, const trp_batch *, trp_writer *, const void *);       \
    TRP_REGISTERED(name)
#define TRP_END(name)                                                                  \
    int name(trp_task *, void *, trp_writer *, const void *);                          \
    TRP_REGISTERED(name)
#define TRP_REGISTERED(name)                                                           \
    __attribute__((constructor)) static void trp_register_##name(void)                 \
    {                                                                                  \
        trp_register(#name, (void (*)(void))(name));                                   \
    }                                                                                  \
    struct trp_registered_##name
void trp_register(const char *name, void (*function)(void));

/* ---- 3. datasets ----
 *
 *     trp_dataset *d = trp_range(ctx, 0, 1000000, 8);
 *     d = trp_named(trp_map(d, squares, NULL, 0), "squares");
 */

/* The int64 values begin, begin + 1, … end - 1. */
trp_dataset *trp_range(trp_context *ctx, int64_t begin, int64_t end,
                       uint32_t partitions);
/* `count` values of `width` bytes each, copied. */
trp_dataset *trp_array(trp_context *ctx, const void *values, size_t count,
                       uint32_t width, uint32_t partitions);
/* The same with values of any size: value i is values[offsets[i] .. offsets[i+1]). */
trp_dataset *trp_records(trp_context *ctx, const void *values, const uint64_t *offsets,
                         size_t count, uint32_t partitions);
/* The same with keys: key i is keys[key_offsets[i] .. key_offsets[i+1]). */
trp_dataset *trp_pairs(trp_context *ctx, const void *keys, const uint64_t *key_offsets,
                       const void *values, const uint64_t *offsets, size_t count,
                       uint32_t partitions);
/* Lines (without LF) of the files a pattern matches (as glob(7) and **), cut into about
 * `partitions` partitions at line ends; files that end in .gz or .zst are read through
 * their decompressor and never cut. The key of a record is its file's path. */
trp_dataset *trp_text_files(trp_context *ctx, const char *pattern, uint32_t partitions);

/* Values of `width` bytes, as they stand one behind the other in the files a pattern
 * matches, cut into about `partitions` partitions between values. A file's size is a
 * multiple of the width. The key of a record is its file's path. */
trp_dataset *trp_binary_files(trp_context *ctx, const char *pattern, uint32_t width,
                              uint32_t partitions);

trp_dataset *trp_transform(trp_dataset *d, trp_function f, const void *arg,
                           size_t arg_size);
/* A function that emits exactly one record for each (checked: another number of them is
 * a mistake in the program, which ends the stage at once and is not tried again) … */
trp_dataset *trp_map(trp_dataset *d, trp_function f, const void *arg, size_t arg_size);
/* … and one that emits for each record an int32: 0 drops it, else the record is kept.
 */
trp_dataset *trp_filter(trp_dataset *d, trp_function f, const void *arg,
                        size_t arg_size);
/* A state over all batches of a partition, in three functions, of which `begin` and `end`
 * may be NULL. For each partition, also one without records, `begin` is called once, and
 * may put its state into *state (NULL before); `batch` for each batch; `end` once, behind
 * the last one. All may emit. When the attempt fails or is killed behind `begin`, `end` is
 * called with `out` NULL: to free the state, and for nothing else.
 *
 *     d = trp_partitions(d, open_model, predict, close_model, "model.bin", 10);
 */
typedef int (*trp_partition_begin)(trp_task *t, void **state, trp_writer *out,
                                   const void *arg);
typedef int (*trp_partition_batch)(trp_task *t, void *state, const trp_batch *in,
                                   trp_writer *out, const void *arg);
typedef int (*trp_partition_end)(trp_task *t, void *state, trp_writer *out,
                                 const void *arg);
trp_dataset *trp_partitions(trp_dataset *d, trp_partition_begin begin,
                            trp_partition_batch batch, trp_partition_end end,
                            const void *arg, size_t arg_size);
/* All partitions of a, then those of b. */
trp_dataset *trp_union(trp_dataset *a, trp_dataset *b);
/* The same records in fewer partitions, without a shuffle: each is a run of neighbouring
 * partitions of d, as long as the others or one longer, and its task computes them one
 * after the other, in order. So what d computes runs in no more tasks than `partitions`
 * (1 or more; above those of d: as many as d has), and to its functions trp_task_index
 * is the new partition. Such a task is best run where any of its partitions of d is.
 * What goes with a launch (values of trp_array, trp_records) has 64 MiB at most for all
 * of them. Where more tasks than that shall compute d: trp_repartition. */
trp_dataset *trp_coalesce(trp_dataset *d, uint32_t partitions);
/* The name of the stage that computes d, in every display (1 to 200 bytes of UTF-8,
 * copied). Of several in one stage the one nearest to its end. */
trp_dataset *trp_named(trp_dataset *d, const char *name);
/* Where partitions are kept: in memory as far as there is room (a share of the executor's
 * memory, memory.fraction), on the disk of the node, in memory and what it has no room for
 * on the disk. */
enum trp_storage { TRP_MEMORY_ONLY = 1, TRP_DISK_ONLY, TRP_MEMORY_AND_DISK };
/* The same dataset, whose partitions stay on the executors that computed them: who needs
 * one there later finds it, and nothing below is computed. Tasks run where their
 * partition is, if they can soon. What is lost with its executor, or had no room, is
 * computed again, and nothing else. Not kept is what a barrier stage computes, since a task
 * that finds its partition would not wait for the others (trp_checkpoint keeps it). */
trp_dataset *trp_persist(trp_dataset *d, enum trp_storage level);
/* What was kept of it goes now, and none of it is kept from now on. Tasks that read it
 * go on. `d`: what trp_persist returned. */
int trp_unpersist(trp_dataset *d);
/* The same dataset, written to a folder that all hosts see (made, or empty) when the first
 * action needs it, and read from there from then on: what it was made of, also the files
 * that were read for it, is not needed any more. A partition is there whole or not at
 * all; damage is found. The folder stays. (To save what other programs read: trp_save.)
 */
trp_dataset *trp_checkpoint(trp_dataset *d, const char *folder);
uint32_t trp_partition_count(const trp_dataset *d);

/* The program does not use d any more. What d needs and nothing else goes: map outputs and
 * kept partitions on all hosts, and what driver and engine know of it; what a job needs that
 * runs goes behind it. A dataset that d is made of stays as it is where the program used it
 * otherwise: when it kept it (trp_persist), made something else of it, or ran an action on
 * it after it was used for d. Others on the way to d stay valid; of theirs, too, goes what
 * was computed, and is computed again when it is asked for. Who makes datasets by the
 * thousand frees each of them, at once when something is made of it: it lives as long as
 * that does.
 *
 *     trp_dataset *on(trp_dataset *made, trp_dataset *of)
 *     {
 *         trp_dataset_free(of);
 *         return made;
 *     }
 *     …
 *     next = on(trp_map(next, step, NULL, 0), next);
 *
 * NULL: nothing. (trp_unpersist and a checkpoint that was written free in the same way
 * what they make superfluous.) */
void trp_dataset_free(trp_dataset *d);

/* ---- 4. actions: they compute, and wait for it ----
 *
 *     trp_rows *rows;
 *     if (trp_collect(d, &rows) == 0) {
 *         const trp_batch *b = trp_rows_batch(rows);
 *         for (size_t i = 0; i < b->count; i++)
 *             printf("%lld\n", (long long)trp_get_i64(b, i));
 *     }
 */

int trp_count(trp_dataset *d, uint64_t *ret_count);
/* All records in partition order. Free with trp_rows_free (or leave it to finalize). */
int trp_collect(trp_dataset *d, trp_rows **ret_rows);
const trp_batch *trp_rows_batch(const trp_rows *r);
void trp_rows_free(trp_rows *r);
/* Reduces all values to one: in each partition there, then over partitions on the
 * driver. *ret_value is malloc'ed (free it), NULL with size 0 when there are no
 * records. */
int trp_reduce(trp_dataset *d, trp_combine f, const void *arg, size_t arg_size,
               void **ret_value, size_t *ret_size);
int trp_reduce_with_task(trp_dataset *d, trp_task_combine f, const void *arg,
                         size_t arg_size, void **ret_value, size_t *ret_size);
/* Runs f for its effects; what it emits is dropped. */
int trp_foreach(trp_dataset *d, trp_function f, const void *arg, size_t arg_size);
/* Writes each partition as DIR/part-NNNNN: values, one a line ("KEY\tVALUE" with keys).
 * DIR is made; it may not exist. A file appears whole or not at all. */
int trp_save(trp_dataset *d, const char *dir);
/* The same with nothing between: of each record its key, if it has one, and its value. What
 * has values of one width and no keys is read again by trp_binary_files. */
int trp_save_binary(trp_dataset *d, const char *dir);
/* The first n records, in partition order: of as few partitions as are needed, and no more
 * of one than is wanted. Free with trp_rows_free. */
int trp_take(trp_dataset *d, size_t n, trp_rows **ret_rows);

/* ---- 5. shapes: what the executors of a stage have, and where it runs ----
 *
 *     trp_profile *train;
 *     trp_profile_from(ctx, "train", "cores=2 memory=4g gpu=2 / gpu=1/2", &train);
 *     d = trp_with_resources(d, train);
 */

/* An executor's side and, behind a slash that stands alone, a task's. Built; codes as
 * of trp_profile_build. The same in steps: trp_profile_new … trp_profile_build. */
int trp_profile_from(trp_context *ctx, const char *name, const char *text,
                     trp_profile **ret_profile);
int trp_profile_new(trp_context *ctx, const char *name, trp_profile **ret_profile);
/* Executor side: cores, memory, memoryOverhead, offHeap (MiB) or any custom resource.
 */
int trp_profile_executor(trp_profile *p, const char *resource, int64_t amount);
/* The same with a unit: "4g". */
int trp_profile_executor_text(trp_profile *p, const char *resource, const char *amount);
/* Task side. A value within 1e-9 of 1/k is taken as 1/k. */
int trp_profile_task(trp_profile *p, const char *resource, double amount);
int trp_profile_task_text(trp_profile *p, const char *resource, const char *amount);
/* Checks it and makes it usable. -1 (impossible) or -4 (never fits here), with the
 * reason in trp_error_text. */
int trp_profile_build(trp_profile *p);

/* The stage that computes d runs in this shape. Of several on one dataset (trp_barrier
 * and trp_prefer between them make no other) the last counts; those of different
 * datasets of one stage must agree. */
trp_dataset *trp_with_resources(trp_dataset *d, trp_profile *p);
/* Partition i of d is best computed on the hosts named in hosts[i], as `hostname` says
 * them there: "node1", or several with commas; NULL or "": anywhere. There are as many
 * as partitions, copied. A task waits for such a host, then its rack, as long as
 * locality.wait says. */
trp_dataset *trp_prefer(trp_dataset *d, const char *const *hosts);
/* All tasks of the stage that computes d start at once, or none: as many slots as there
 * are partitions must be had. They may wait for each other with trp_barrier_wait. When
 * one fails, all run again. */
trp_dataset *trp_barrier(trp_dataset *d);
/* Computed again, d may have other records: a function draws random numbers, or asks what
 * changes. When outputs of its stage are lost after they were read in part, the stage runs
 * again as a whole, and so does all that was made of it: no result has records of both.
 * (What trp_foreach did is done again; accumulators have what was counted first.) Where
 * it is expensive: trp_checkpoint, behind which nothing is computed again. */
trp_dataset *trp_indeterminate(trp_dataset *d);

/* ---- 6. wide operations: each partition needs records of all partitions of d ----
 *
 *     d = trp_reduce_by_key(words, TRP_SUM_I64, 32);    // how often each word stands
 *     d = trp_sort_by_key(by_count, TRP_I64 | TRP_DESCENDING, 8);
 *
 * What d computes then runs as a stage of its own, in its own profile, and leaves its
 * records in files on the hosts where it ran, sorted by key and dealt out to
 * `partitions` (1 or more) by a hash of the key. The stage that reads them merges them.
 * The result depends on the records alone, not on what ran where or when: within a
 * partition records come in the order of the bytes of their keys, values of one key in
 * the order of the partitions of d and in each as they were emitted. Records without a
 * key are a mistake in the program, but for trp_distinct and trp_repartition. A key and
 * a value have 1 GiB together at most, and one record must fit in a task's share of the
 * executor's memory (memory.fraction). */

/* How the values of one key become one. Values are int64_t or double, 8 bytes in the
 * machine's order; sums of int64_t wrap around. */
enum trp_sum {
    TRP_SUM_I64 = 1,
    TRP_MIN_I64,
    TRP_MAX_I64,
    TRP_SUM_F64,
    TRP_MIN_F64,
    TRP_MAX_F64,
    TRP_COUNT, /* how many values there are, whatever they are, as an int64_t */
};
/* One record for each key: the key and the sum of its values. A record without a key,
 * or with a value of another width, is a mistake in the program. */
trp_dataset *trp_reduce_by_key(trp_dataset *d, enum trp_sum sum, uint32_t partitions);
/* The same by a function of the program, which makes one value of two of one key (the
 * first came before): associative. Values are combined where they are made, too. */
trp_dataset *trp_combine_by_key(trp_dataset *d, trp_combine f, const void *arg,
                                size_t arg_size, uint32_t partitions);
/* One record for each key: the key and all of its values, to be taken apart with
 * trp_group and trp_group_next. Of a group that memory does not hold the values are in a
 * file, mapped: take it apart where it is made, by a function right behind. What would
 * copy it (another wide operation, trp_collect, trp_checkpoint) fails and says
 * so, and trp_persist does not keep it. Where values shall become one, trp_combine_by_key
 * moves less. */
trp_dataset *trp_group_by_key(trp_dataset *d, uint32_t partitions);

typedef struct trp_group_values {
    const uint8_t *at, *end;
} trp_group_values;
/* The values in record i of what trp_group_by_key made. */
static inline trp_group_values trp_group(const trp_batch *b, size_t i)
{
    trp_group_values v;
    size_t n;
    v.at = (const uint8_t *)trp_value(b, i, &n);
    v.end = v.at + n;
    return v;
}
/* The next value, in the batch's memory; NULL: there are no more. */
static inline const void *trp_group_next(trp_group_values *v, size_t *ret_size)
{
    uint32_t n;
    const uint8_t *value = v->at + sizeof(n);
    if (v->end - v->at < (ptrdiff_t)sizeof(n))
        return NULL;
    memcpy(&n, v->at, sizeof(n));
    if ((size_t)(v->end - value) < n)
        return NULL;
    v->at = value + n;
    *ret_size = n;
    return value;
}

/* In what order keys are. Numbers are 8 bytes in the machine's order; doubles that are
 * no numbers count as above all others. `TRP_I64 | TRP_DESCENDING`: the largest first. */
enum trp_order { TRP_BYTES = 1, TRP_I64, TRP_F64, TRP_DESCENDING = 16 };
/* All records in the order of their keys, over all partitions: the first partition has
 * the first of them. Where the ranges of partitions begin is found from a sample of
 * keys, for which d is computed once more, when the first action needs it. */
trp_dataset *trp_sort_by_key(trp_dataset *d, unsigned order, uint32_t partitions);
/* The same by a function of the program: below 0, 0, above 0 as memcmp. Of keys that it
 * says are equal, records stay in the order of d. */
typedef int (*trp_compare)(const void *a, size_t na, const void *b, size_t nb,
                           const void *arg);
trp_dataset *trp_sort_by(trp_dataset *d, trp_compare f, const void *arg,
                         size_t arg_size, uint32_t partitions);
/* As trp_group_by_key, with the values of each key in order: by that of numbers or bytes, or
 * by a function as of trp_sort_by. Of equal values the one that came first is in front. Of a
 * group that memory does not hold 8 bytes a value are in memory. */
trp_dataset *trp_group_sorted(trp_dataset *d, unsigned order, uint32_t partitions);
trp_dataset *trp_group_sorted_by(trp_dataset *d, trp_compare f, const void *arg,
                                 size_t arg_size, uint32_t partitions);
/* An action: the n records with the greatest values, the greatest first; of those that f
 * says are equal, the first ones. Each task holds n records. f gets values, and NULL as its
 * argument. Free with trp_rows_free. */
int trp_top(trp_dataset *d, size_t n, trp_compare f, trp_rows **ret_rows);

/* Every pair of a value of a and one of b with the same key: the key, and the pair, to
 * be taken apart with trp_left and trp_right. TRP_LEFT: also values of a whose key b
 * has not; TRP_OUTER: those of b, too. For each value of a those of b come in their order. The
 * values of one key in b are held in memory as far as there is room, and else read from
 * the disk for each value of a: the side with more of them is better the left one. */
enum trp_join { TRP_INNER = 1, TRP_LEFT, TRP_OUTER };
trp_dataset *trp_join(trp_dataset *a, trp_dataset *b, enum trp_join type,
                      uint32_t partitions);
/* One side of the pair in record i: a's value, b's value; NULL: there is none. */
static inline const void *trp_left(const trp_batch *b, size_t i, size_t *ret_size)
{
    uint32_t n;
    size_t whole;
    const uint8_t *pair = (const uint8_t *)trp_value(b, i, &whole);
    memcpy(&n, pair, sizeof(n));
    *ret_size = n == UINT32_MAX ? 0 : n;
    return n == UINT32_MAX ? NULL : pair + 2 * sizeof(n);
}
static inline const void *trp_right(const trp_batch *b, size_t i, size_t *ret_size)
{
    uint32_t n[2];
    size_t whole;
    const uint8_t *pair = (const uint8_t *)trp_value(b, i, &whole);
    memcpy(n, pair, sizeof(n));
    *ret_size = n[1] == UINT32_MAX ? 0 : n[1];
    return n[1] == UINT32_MAX ? NULL
                              : pair + sizeof(n) + (n[0] == UINT32_MAX ? 0 : n[0]);
}

/* Calls f once for each key that a or b has, with its values in both (batches without
 * keys, of 0 or more records; mapped from files when memory does not hold them); it emits
 * any number of records. Returns 0 or an error code, as a trp_function does. */
typedef int (*trp_cogroup_function)(trp_task *t, const void *key, size_t key_size,
                                    const trp_batch *a, const trp_batch *b,
                                    trp_writer *out, const void *arg);
trp_dataset *trp_cogroup(trp_dataset *a, trp_dataset *b, trp_cogroup_function f,
                         const void *arg, size_t arg_size, uint32_t partitions);

/* Each record once, key and value taken together. */
trp_dataset *trp_distinct(trp_dataset *d, uint32_t partitions);
/* The same records, dealt out in turn. */
trp_dataset *trp_repartition(trp_dataset *d, uint32_t partitions);
/* The same records, each in the partition that f says for its key, from 0; one that is
 * not there is a mistake in the program. f depends on the key and its argument alone: a
 * task that runs again must deal out its records as it did before. */
typedef uint32_t (*trp_partition)(const void *key, size_t key_size, uint32_t partitions,
                                  const void *arg);
trp_dataset *trp_partition_by(trp_dataset *d, trp_partition f, const void *arg,
                              size_t arg_size, uint32_t partitions);

/* The same functions with their task: to say by trp_task_error why they fail, and to read a
 * broadcast. A comparison or a partition cannot return that it fails: the task does, when it
 * has called trp_task_error. The task is NULL on the driver, which finds the ranges of a sort
 * by a few comparisons: trp_broadcast_get has nothing there, and trp_task_error says
 * nothing. */
typedef int (*trp_task_compare)(trp_task *t, const void *a, size_t na, const void *b,
                                size_t nb, const void *arg);
typedef uint32_t (*trp_task_partition)(trp_task *t, const void *key, size_t key_size,
                                       uint32_t partitions, const void *arg);
trp_dataset *trp_combine_by_key_with_task(trp_dataset *d, trp_task_combine f,
                                          const void *arg, size_t arg_size,
                                          uint32_t partitions);
trp_dataset *trp_sort_by_with_task(trp_dataset *d, trp_task_compare f, const void *arg,
                                   size_t arg_size, uint32_t partitions);
trp_dataset *trp_group_sorted_by_with_task(trp_dataset *d, trp_task_compare f,
                                           const void *arg, size_t arg_size,
                                           uint32_t partitions);
trp_dataset *trp_partition_by_with_task(trp_dataset *d, trp_task_partition f,
                                        const void *arg, size_t arg_size,
                                        uint32_t partitions);

/* ---- 7. tasks: what a function may ask of its own, and say ----
 *
 *     const char *gpu;
 *     if (trp_task_resource(t, "gpu", &gpu, 1) < 1)
 *         return trp_task_error(t, "task %u has no gpu", trp_task_index(t)), -1;
 */

uint32_t trp_task_index(const trp_task *t);   /* partition, from 0 */
uint32_t trp_task_attempt(const trp_task *t); /* from 0 */
uint32_t trp_task_stage(const trp_task *t);
uint32_t trp_task_cpus(const trp_task *t);
/* The addresses given of a resource: how many; pointers into the task in
 * addresses[0..cap). */
uint32_t trp_task_resource(const trp_task *t, const char *resource,
                           const char **addresses, uint32_t cap);
uint32_t trp_task_executor(const trp_task *t);
const char *trp_task_host(const trp_task *t);
/* 1 when the attempt was given up: return soon. */
int trp_task_killed(const trp_task *t);
/* Says why the function fails (with a non-zero return); shown to the user. */
void trp_task_error(trp_task *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* In a stage made by trp_barrier: waits until every task of the stage has called it (or
 * trp_barrier_allgather: all the same one) as often as this one. A negative code when
 * the attempt was given up or the others did not come (trp_task_error has the text). A
 * partition without records calls no function, and a long one calls it once a batch. */
int trp_barrier_wait(trp_task *t);
/* The same, and brings `message` to all: *ret_messages has those of all tasks in order
 * of partitions. Valid until the next call or the function's return. */
int trp_barrier_allgather(trp_task *t, const void *message, size_t size,
                          const trp_batch **ret_messages);

/* ---- 8. jobs: actions that do not wait ----
 *
 * The same actions, begun only. Any number of jobs run beside each other, on the same
 * executors, while the program computes something else; what several of them need is
 * computed once. `pool` names one of the pools that scheduler.allocation.file has: with
 * scheduler.mode=FAIR they share the slots by weights and minimum shares (NULL:
 * "default"; FIFO: the job that was begun first goes first).
 *
 *     trp_job *a = trp_count_async(words, "daily"), *b = trp_save_async(d, "out", NULL);
 *     const void *n;
 *     if (trp_job_wait(a, &n, NULL) == 0)
 *         printf("%ju\n", (uintmax_t)*(const uint64_t *)n);
 *
 * NULL with the error in the context when it cannot be begun. What is given as `arg` is
 * copied. Ranges of trp_sort_by_key are still found before the call returns. */
typedef struct trp_job trp_job;
trp_job *trp_count_async(trp_dataset *d, const char *pool);
trp_job *trp_collect_async(trp_dataset *d, const char *pool);
trp_job *trp_reduce_async(trp_dataset *d, trp_combine f, const void *arg,
                          size_t arg_size, const char *pool);
trp_job *trp_foreach_async(trp_dataset *d, trp_function f, const void *arg,
                           size_t arg_size, const char *pool);
trp_job *trp_save_async(trp_dataset *d, const char *dir, const char *pool);
trp_job *trp_save_binary_async(trp_dataset *d, const char *dir, const char *pool);
/* Waits for the job's end. The result is the job's own, until trp_job_free: of count a
 * uint64_t (size 8), of reduce the value (NULL: there are no records), of collect a
 * trp_batch of all records (size: how many); else NULL. ret_result and ret_size may be
 * NULL. A second call says the same again. A failure names the job, and counts until the
 * same action succeeds (trp_finalize); that the program cancelled it (TRP_ECANCELLED)
 * does not. */
int trp_job_wait(trp_job *j, const void **ret_result, size_t *ret_size);
/* The same, for at most so many seconds (0: it only looks): TRP_ETIME, without a text, when
 * it is not over by then. It goes on. */
int trp_job_wait_for(trp_job *j, double seconds, const void **ret_result,
                     size_t *ret_size);
/* 1: the job is over, and trp_job_wait returns at once; 0: it is not. */
int trp_job_test(trp_job *j);
/* Waits until one of n jobs is over: the number of the first that is, from 0. Of those
 * that are NULL none is. TRP_EINVAL: all are; it is trp_job_wait that says how one ended. */
int trp_job_wait_any(trp_job *const *jobs, size_t n);
int trp_job_wait_any_for(trp_job *const *jobs, size_t n, double seconds);
/* Ends it, also what runs of it, but for stages that other jobs need. To one that is
 * over, or cancelled already, nothing happens. It need not be waited for. */
int trp_job_cancel(trp_job *j);
/* Cancels all jobs that still need a stage of this name (trp_named, or as displays have
 * it). TRP_ENOENT: none does. */
int trp_cancel_stage(trp_context *ctx, const char *name);
/* Lets its result go; cancels it when it runs. trp_finalize does so for all. */
void trp_job_free(trp_job *j);

/* ---- 9. what all tasks share: sums that they add to, bytes that they read ----
 *
 * Both are plain values, which a function gets in its argument:
 *
 *     struct args { struct trp_accumulator bad; struct trp_broadcast table; } a = {
 *         trp_accumulator(ctx, "bad lines"), trp_broadcast(ctx, table, sizeof(table))};
 *     trp_count(trp_transform(d, parse, &a, sizeof(a)), &n);
 *     printf("%lld bad lines\n", (long long)trp_accumulator_value(a.bad));
 *
 * and in parse, with `const struct args *a = arg`:
 *
 *     const int32_t *table = trp_broadcast_get(t, a->table, &size);
 *     if (!table || trp_add(t, a->bad, 1) < 0)
 *         return -1;
 */

/* A sum of int64_t (it wraps around), with a name for event log and summary (copied). Id
 * 0 with the error in the context. */
struct trp_accumulator {
    uint32_t id;
};
struct trp_accumulator trp_accumulator(trp_context *ctx, const char *name);
/* In a task: adds to it. What counts is each partition of what the function makes, once,
 * however often it is computed: by attempts that fail, by copies of slow tasks, for
 * outputs that were lost, by several actions. (The function of trp_foreach makes its
 * partitions anew in each action.) So the sum depends on the data alone, if what the
 * function adds does. TRP_EINVAL, TRP_ENOMEM: return with an error then. */
int trp_add(trp_task *t, struct trp_accumulator a, int64_t n);
/* On the driver: the sum of all tasks that have succeeded by now. */
int64_t trp_accumulator_value(struct trp_accumulator a);

/* `size` bytes for all tasks, copied: into a file of the run, which each host reads once,
 * and whose pages the executors of a host share. Id 0 with the error in the context. */
struct trp_broadcast {
    uint32_t id;
};
struct trp_broadcast trp_broadcast(trp_context *ctx, const void *data, size_t size);
/* In a task: the bytes, to be read only, at an address for any type, until the function
 * returns. NULL when they cannot be read, or are gone: return with an error then. A task
 * whose broadcast is written over meanwhile fails. */
const void *trp_broadcast_get(trp_task *t, struct trp_broadcast b, size_t *ret_size);
/* No job that is begun from here on asks for it: its file goes. trp_finalize does so for
 * all. */
void trp_broadcast_free(trp_context *ctx, struct trp_broadcast b);

#ifdef __cplusplus
}
#endif
#endif
