/*
 * Datasets: nodes of the lineage graph, checked when they are made and never changed.
 *
 * A handle is one allocation in the context's list; nothing is computed here. What a
 * partition's task needs to know besides the stage (a slice of an array, records, parts
 * of files) is laid out once, in the order of partitions, so that a launch only points
 * into it. A range needs nothing: the task computes its values from its number, so a
 * million partitions cost the driver nothing.
 *
 * Handles live until trp_dataset_free or trp_finalize. A chain's intermediate handles have
 * no owner in C: what is kept for them goes with the chain (reach.c), and a node that stays
 * takes little over 100 bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/chain.h"
#include "core/base/utf8.h"

/* With `more` bytes behind it, which live as long as it does. */
static trp_dataset *node_new(trp_context *ctx, enum trp_node_kind kind,
                             uint32_t partitions, size_t more)
{
    trp_dataset *d = calloc(1, sizeof(*d) + more);
    if (!d)
        return trp_dataset_refuse(ctx, TRP_ENOMEM, "out of memory for a dataset");
    d->context = ctx;
    d->kind = kind;
    d->partitions = partitions;
    d->result = d->side = TRP_NONE;
    d->maker = ++ctx->makers;
    d->next = ctx->datasets;
    ctx->datasets = d;
    return d;
}

void trp_dataset_release(trp_dataset *d)
{
    if (trp_chain_has_inputs(d->kind) || d->kind == TRP_NODE_COALESCE) {
        free(d->inputs.data);
        free(d->inputs.offsets);
        free(d->inputs.base);
    }
    if (d->kind == TRP_NODE_WIDE)
        trp_buf_free(&d->wide.plan.bounds);
    free(d);
}

void trp_datasets_free(trp_context *ctx)
{
    while (ctx->datasets) {
        trp_dataset *d = ctx->datasets;
        ctx->datasets = d->next;
        trp_dataset_release(d);
    }
}

/* ---- sources ---- */

static bool partitions_ok(trp_context *ctx, const char *what, uint32_t partitions)
{
    if (partitions >= 1 && partitions <= TRP_PARTITIONS_MAX)
        return true;
    trp_dataset_fail(ctx, TRP_EINVAL, "%s: %u partitions; there may be 1 to %d", what,
                     partitions, TRP_PARTITIONS_MAX);
    return false;
}

trp_dataset *trp_dataset_source(trp_context *ctx, enum trp_node_kind kind,
                                const char *what, uint32_t partitions, size_t more)
{
    return partitions_ok(ctx, what, partitions) ? node_new(ctx, kind, partitions, more)
                                                : NULL;
}

/* The first record of partition i when `count` records are dealt out evenly. */
static uint64_t first_record(uint64_t count, uint32_t partitions, uint32_t i)
{
    return (uint64_t)((unsigned __int128)count * i / partitions);
}

trp_dataset *trp_range(trp_context *ctx, int64_t begin, int64_t end,
                       uint32_t partitions)
{
    if (!ctx || !partitions_ok(ctx, "trp_range", partitions))
        return NULL;
    trp_dataset *d = node_new(ctx, TRP_NODE_RANGE, partitions, 0);
    if (!d)
        return NULL;
    d->range.begin = begin;
    d->range.end = end > begin ? end : begin;
    return d;
}

/* A source node that takes over `in`; frees it when that fails. */
static trp_dataset *source_new(trp_context *ctx, enum trp_node_kind kind,
                               const char *what, uint32_t partitions,
                               struct trp_inputs *in)
{
    trp_dataset *d = NULL;
    for (uint32_t i = 0; i < partitions; i++) {
        uint64_t size = in->offsets[i + 1] - in->offsets[i];
        if (size <= TRP_INPUT_MAX)
            continue;
        trp_dataset_fail(ctx, TRP_ELIMIT,
                         "%s: partition %u would have %llu bytes of input, above %u "
                         "MiB; use more partitions",
                         what, i, (unsigned long long)size, TRP_INPUT_MAX >> 20);
        goto fail;
    }
    d = node_new(ctx, kind, partitions, 0);
    if (!d)
        goto fail;
    d->inputs = *in;
    return d;
fail:
    free(in->data);
    free(in->offsets);
    free(in->base);
    return NULL;
}

trp_dataset *trp_array(trp_context *ctx, const void *values, size_t count,
                       uint32_t width, uint32_t partitions)
{
    if (!ctx || !partitions_ok(ctx, "trp_array", partitions))
        return NULL;
    if (width == 0 || (!values && count) || count > SIZE_MAX / 2 / width)
        return trp_dataset_refuse(ctx, TRP_EINVAL, "trp_array: %zu values of %u bytes",
                                  count, width);
    struct trp_inputs in = {.width = width};
    in.data = malloc(count * width + 1);
    in.offsets = malloc(((size_t)partitions + 1) * sizeof(*in.offsets));
    if (!in.data || !in.offsets) {
        free(in.data);
        free(in.offsets);
        trp_dataset_fail(ctx, TRP_ENOMEM, "trp_array: out of memory");
        return NULL;
    }
    if (count)
        memcpy(in.data, values, count * width);
    for (uint32_t i = 0; i <= partitions; i++)
        in.offsets[i] = first_record(count, partitions, i) * width;
    return source_new(ctx, TRP_NODE_ARRAY, "trp_array", partitions, &in);
}

/* Values of any size, or keys; `offsets` as the program gave them. */
struct column {
    const uint8_t *bytes;
    const uint64_t *offsets; /* NULL: there is none */
};

static size_t column_size(const struct column *c, size_t count)
{
    return c->offsets && count ? (size_t)(c->offsets[count] - c->offsets[0]) + 4 * count
                               : 0;
}

static uint8_t *put_entry(uint8_t *at, const struct column *c, uint64_t record)
{
    if (!c->offsets)
        return at;
    uint32_t n = (uint32_t)(c->offsets[record + 1] - c->offsets[record]);
    memcpy(at, &n, 4);
    if (n)
        memcpy(at + 4, c->bytes + c->offsets[record], n);
    return at + 4 + (size_t)n;
}

/* Each record is its key's size (4 bytes) and bytes, if it has one, and its value's. */
static int records_layout(const struct column *keys, const struct column *values,
                          size_t count, uint32_t partitions, struct trp_inputs *in)
{
    in->data = malloc(column_size(keys, count) + column_size(values, count) + 1);
    in->offsets = malloc(((size_t)partitions + 1) * sizeof(*in->offsets));
    if (!in->data || !in->offsets)
        return TRP_ENOMEM;
    uint8_t *at = in->data;
    uint64_t record = 0;
    for (uint32_t i = 0; i < partitions; i++) {
        in->offsets[i] = (uint64_t)(at - in->data);
        for (uint64_t end = first_record(count, partitions, i + 1); record < end;
             record++)
            at = put_entry(put_entry(at, keys, record), values, record);
    }
    in->offsets[partitions] = (uint64_t)(at - in->data);
    return 0;
}

static bool column_ok(trp_context *ctx, const char *what, const char *of,
                      const struct column *c, size_t count)
{
    if (count && (!c->offsets || (!c->bytes && c->offsets[count] > c->offsets[0]))) {
        trp_dataset_fail(ctx, TRP_EINVAL, "%s: no %ss or offsets given", what, of);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (c->offsets[i + 1] >= c->offsets[i] &&
            c->offsets[i + 1] - c->offsets[i] <= TRP_INPUT_MAX)
            continue;
        trp_dataset_fail(ctx, TRP_EINVAL,
                         "%s: %s %zu begins at %llu and ends at %llu; it must not end "
                         "earlier nor be above %u MiB",
                         what, strcmp(of, "value") == 0 ? "record" : of, i,
                         (unsigned long long)c->offsets[i],
                         (unsigned long long)c->offsets[i + 1], TRP_INPUT_MAX >> 20);
        return false;
    }
    return true;
}

static trp_dataset *records_new(trp_context *ctx, const char *what,
                                const struct column *keys, const struct column *values,
                                size_t count, uint32_t partitions)
{
    struct trp_inputs in = {.keyed = keys->offsets != NULL};
    if (records_layout(keys, values, count, partitions, &in) < 0) {
        free(in.data);
        free(in.offsets);
        return trp_dataset_refuse(ctx, TRP_ENOMEM, "%s: out of memory", what);
    }
    return source_new(ctx, TRP_NODE_RECORDS, what, partitions, &in);
}

trp_dataset *trp_records(trp_context *ctx, const void *values, const uint64_t *offsets,
                         size_t count, uint32_t partitions)
{
    const struct column none = {0}, column = {values, offsets};
    if (!ctx || !partitions_ok(ctx, "trp_records", partitions) ||
        !column_ok(ctx, "trp_records", "value", &column, count))
        return NULL;
    return records_new(ctx, "trp_records", &none, &column, count, partitions);
}

trp_dataset *trp_pairs(trp_context *ctx, const void *keys, const uint64_t *key_offsets,
                       const void *values, const uint64_t *offsets, size_t count,
                       uint32_t partitions)
{
    const struct column k = {keys, key_offsets}, v = {values, offsets};
    if (!ctx || !partitions_ok(ctx, "trp_pairs", partitions) ||
        !column_ok(ctx, "trp_pairs", "key", &k, count) ||
        !column_ok(ctx, "trp_pairs", "value", &v, count))
        return NULL;
    return records_new(ctx, "trp_pairs", &k, &v, count, partitions);
}

trp_dataset *trp_text_files(trp_context *ctx, const char *pattern, uint32_t partitions)
{
    if (!ctx || !partitions_ok(ctx, "trp_text_files", partitions))
        return NULL;
    trp_error err;
    struct trp_inputs in = {0};
    if (trp_text_plan(pattern, 0, partitions, &in, &err) < 0)
        return trp_dataset_refuse(ctx, err.code, "%s", err.text);
    return source_new(ctx, TRP_NODE_TEXT, "trp_text_files", partitions, &in);
}

trp_dataset *trp_binary_files(trp_context *ctx, const char *pattern, uint32_t width,
                              uint32_t partitions)
{
    if (!ctx || !partitions_ok(ctx, "trp_binary_files", partitions))
        return NULL;
    if (width == 0 || width > TRP_VALUE_WIDTH_MAX)
        return trp_dataset_refuse(
            ctx, TRP_EINVAL,
            "trp_binary_files: values of %u bytes; there may be 1 "
            "to %d",
            width, TRP_VALUE_WIDTH_MAX);
    trp_error err;
    struct trp_inputs in = {0};
    if (trp_text_plan(pattern, width, partitions, &in, &err) < 0)
        return trp_dataset_refuse(ctx, err.code, "%s", err.text);
    in.width = width;
    return source_new(ctx, TRP_NODE_TEXT, "trp_binary_files", partitions, &in);
}

/* ---- steps, unions, profiles ---- */

bool trp_dataset_steps_ok(const trp_dataset *d, const char *what)
{
    if (d->steps < TRP_STEPS_MAX - 1)
        return true;
    trp_dataset_fail(d->context, TRP_ELIMIT, "%s: more than %d functions in one chain",
                     what, TRP_STEPS_MAX - 1);
    return false;
}

/* The name of a function of a step; NULL, told: it has none. */
static const char *name_of(trp_context *ctx, const char *what, void (*f)(void),
                           const char *macro)
{
    const char *name = f ? trp_registry_name(f) : NULL;
    if (!name)
        trp_dataset_fail(ctx, TRP_EINVAL,
                         "%s: the function is not known by a name; write %s(name) "
                         "before its definition",
                         what, macro);
    return name;
}

/* `s`: its functions. */
static trp_dataset *step_new(trp_dataset *d, enum trp_node_kind kind, const char *what,
                             struct trp_step s, const void *arg, size_t arg_size)
{
    trp_context *ctx = d->context;
    if (arg_size > TRP_ARGUMENT_MAX || (arg_size && !arg))
        return trp_dataset_refuse(
            ctx, TRP_EINVAL, "%s: %zu bytes of argument for %s; there may be 0 to %d",
            what, arg_size, s.name, TRP_ARGUMENT_MAX);
    if (!trp_dataset_steps_ok(d, what))
        return NULL;
    trp_dataset *n = node_new(ctx, kind, d->partitions, arg_size);
    if (!n)
        return NULL;
    if (arg_size)
        memcpy(n + 1, arg, arg_size);
    s.arg = arg_size ? n + 1 : NULL;
    s.arg_size = arg_size;
    n->step = s;
    n->a = d;
    n->steps = d->steps + 1;
    return trp_dataset_made_of(n, d);
}

static trp_dataset *function_step(trp_dataset *d, enum trp_node_kind kind,
                                  const char *what, trp_function f, const void *arg,
                                  size_t arg_size)
{
    struct trp_step s = {0};
    if (!d || !(s.name = name_of(d->context, what, (void (*)(void))f, "TRP_FUNCTION")))
        return NULL;
    return step_new(d, kind, what, s, arg, arg_size);
}

trp_dataset *trp_transform(trp_dataset *d, trp_function f, const void *arg,
                           size_t arg_size)
{
    return function_step(d, TRP_NODE_TRANSFORM, "trp_transform", f, arg, arg_size);
}

trp_dataset *trp_map(trp_dataset *d, trp_function f, const void *arg, size_t arg_size)
{
    return function_step(d, TRP_NODE_MAP, "trp_map", f, arg, arg_size);
}

trp_dataset *trp_filter(trp_dataset *d, trp_function f, const void *arg,
                        size_t arg_size)
{
    return function_step(d, TRP_NODE_FILTER, "trp_filter", f, arg, arg_size);
}

trp_dataset *trp_partitions(trp_dataset *d, trp_partition_begin begin,
                            trp_partition_batch batch, trp_partition_end end,
                            const void *arg, size_t arg_size)
{
    static const char what[] = "trp_partitions";
    struct trp_step s = {0};
    if (!d ||
        !(s.name = name_of(d->context, what, (void (*)(void))batch, "TRP_BATCH")) ||
        (begin &&
         !(s.begin = name_of(d->context, what, (void (*)(void))begin, "TRP_BEGIN"))) ||
        (end && !(s.end = name_of(d->context, what, (void (*)(void))end, "TRP_END"))))
        return NULL;
    return step_new(d, TRP_NODE_PARTITIONS, what, s, arg, arg_size);
}

trp_dataset *trp_union(trp_dataset *a, trp_dataset *b)
{
    if (!a || !b)
        return NULL;
    trp_context *ctx = a->context;
    if (a->partitions > TRP_PARTITIONS_MAX - b->partitions)
        return trp_dataset_refuse(
            ctx, TRP_ELIMIT,
            "trp_union: %u and %u partitions; there may be %d together", a->partitions,
            b->partitions, TRP_PARTITIONS_MAX);
    trp_dataset *d = node_new(ctx, TRP_NODE_UNION, a->partitions + b->partitions, 0);
    if (!d)
        return NULL;
    d->a = a;
    d->b = b;
    d->steps = a->steps > b->steps ? a->steps : b->steps;
    if (a != b)
        trp_dataset_made_of(d, b);
    return trp_dataset_made_of(d, a);
}

trp_dataset *trp_dataset_coalesced(trp_dataset *d, uint32_t partitions)
{
    if (!partitions_ok(d->context, "trp_coalesce", partitions) ||
        !trp_dataset_steps_ok(d, "trp_coalesce"))
        return NULL;
    if (partitions > d->partitions)
        partitions = d->partitions;
    trp_dataset *n = node_new(d->context, TRP_NODE_COALESCE, partitions, 0);
    if (!n)
        return NULL;
    n->a = d;
    n->steps = d->steps + 1;
    return n;
}

trp_dataset *trp_dataset_mark(trp_dataset *d, enum trp_node_kind kind, size_t more)
{
    trp_dataset *n = node_new(d->context, kind, d->partitions, more);
    if (!n)
        return NULL;
    n->a = d;
    n->steps = d->steps;
    return n;
}

trp_dataset *trp_barrier(trp_dataset *d)
{
    return d ? trp_dataset_made_of(trp_dataset_mark(d, TRP_NODE_BARRIER, 0), d) : NULL;
}

trp_dataset *trp_indeterminate(trp_dataset *d)
{
    return d ? trp_dataset_made_of(trp_dataset_mark(d, TRP_NODE_INDETERMINATE, 0), d)
             : NULL;
}

/* `d` without the profiles that were put on it, and on nothing it is made of: the same
 * dataset where there are none. NULL: out of memory. */
static trp_dataset *without_profile(trp_dataset *d)
{
    if (d->kind == TRP_NODE_PROFILE)
        return without_profile(d->a);
    if (d->kind < TRP_NODE_BARRIER)
        return d;
    trp_dataset *a = without_profile(d->a);
    if (!a || a == d->a)
        return a ? d : NULL;
    trp_dataset *n = trp_dataset_inner(trp_dataset_mark(a, d->kind, 0));
    if (!n)
        return NULL;
    n->lender = d;
    if (n->kind == TRP_NODE_PREFER)
        n->prefer = d->prefer;
    if (n->kind == TRP_NODE_NAMED)
        n->name = d->name;
    return n;
}

trp_dataset *trp_with_resources(trp_dataset *d, trp_profile *p)
{
    if (!d)
        return NULL;
    if (p && p->error.code) { /* refused: the reason once more */
        trp_context_fail_with(d->context, &p->error);
        return NULL;
    }
    if (!p || !p->built)
        return trp_dataset_refuse(
            d->context, TRP_EINVAL,
            "trp_with_resources: the profile %s was not built; call "
            "trp_profile_build and check it",
            p ? p->builder.name : "(none)");
    trp_dataset *bare = without_profile(d);
    trp_dataset *n = bare ? trp_dataset_mark(bare, TRP_NODE_PROFILE, 0) : NULL;
    if (n)
        n->profile = p->id;
    return trp_dataset_made_of(n, d);
}

bool trp_name_is_text(const char *name)
{
    const char *s = name;
    size_t n = name ? strlen(name) : 0;
    if (n == 0 || n > TRP_STAGE_NAME_MAX)
        return false;
    for (size_t i = 0, length; i < n; i += length) {
        length = trp_utf8_length(s + i, n - i);
        if (length == 0 || (unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
    }
    return true;
}

trp_dataset *trp_named(trp_dataset *d, const char *name)
{
    if (!d)
        return NULL;
    if (!trp_name_is_text(name))
        return trp_dataset_refuse(
            d->context, TRP_EINVAL,
            "trp_named: a name has 1 to %d bytes of UTF-8 and no control "
            "characters",
            TRP_STAGE_NAME_MAX);
    size_t size = strlen(name);
    trp_dataset *n = trp_dataset_mark(d, TRP_NODE_NAMED, size + 1);
    if (n)
        n->name = memcpy(n + 1, name, size + 1);
    return trp_dataset_made_of(n, d);
}

uint32_t trp_partition_count(const trp_dataset *d)
{
    return d ? d->partitions : 0;
}
