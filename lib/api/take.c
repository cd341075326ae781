/*
 * trp_take and trp_top: made of other parts. A function with a state over its partition,
 * which executors find as they find those of the program, emits what is wanted of
 * it; that is collected.
 *
 * trp_take asks for the first partition alone, then for the first four, sixteen and so on:
 * what few partitions have is there soon, and at most a third is computed twice.
 */
#include <stdlib.h>
#include <string.h>

#include "api/flow.h"
#include "api/job.h"

enum { MORE = 4 }; /* times as many partitions as before */

/* ---- trp_take ---- */

TRP_BEGIN(trp_take_begin);
int trp_take_begin(trp_task *t, void **state, trp_writer *out, const void *arg)
{
    (void)t, (void)out;
    uint64_t *left = malloc(sizeof(*left));
    if (left)
        memcpy(left, arg, sizeof(*left));
    *state = left;
    return left ? 0 : TRP_ENOMEM;
}

TRP_BATCH(trp_take_batch);
int trp_take_batch(trp_task *t, void *state, const trp_batch *in, trp_writer *out,
                   const void *arg)
{
    (void)arg;
    uint64_t *left = state;
    for (size_t i = 0; i<in->count && * left> 0; i++, --*left) {
        size_t n, nk;
        const void *value = trp_value(in, i, &n), *key = trp_key(in, i, &nk);
        if (trp_emit(out, key, nk, value, n) < 0)
            return -1;
    }
    if (*left == 0)
        trp_flow_enough(t);
    return 0;
}

TRP_END(trp_take_end);
int trp_take_end(trp_task *t, void *state, trp_writer *out, const void *arg)
{
    (void)t, (void)out, (void)arg;
    free(state);
    return 0;
}

/* The first partitions of `d`: the program does not see it. */
static trp_dataset *first_partitions(trp_dataset *d, uint32_t partitions)
{
    trp_dataset *n = trp_dataset_inner(trp_dataset_mark(d, TRP_NODE_FIRST, 0));
    if (n)
        n->partitions = partitions;
    return n;
}

/* Collects what `made` computes, which goes; what failed has failed on `d`. */
static int collect_of(trp_dataset *d, trp_dataset *made, trp_rows **ret_rows)
{
    trp_context *ctx = d->context;
    if (!made)
        return trp_action_note(d, ctx->error.code);
    int rc = trp_collect(made, ret_rows);
    trp_make_good(&made->owed);
    trp_action_note(d, rc);
    trp_error error = ctx->error;
    trp_dataset_free(made);
    ctx->error = error;
    return rc;
}

static int no_rows(trp_dataset *d, const char *what)
{
    return trp_action_note(d, trp_context_fail(d->context, TRP_EINVAL,
                                               "%s: nowhere to put the rows", what));
}

int trp_take(trp_dataset *d, size_t n, trp_rows **ret_rows)
{
    if (!d)
        return trp_action_no_dataset("trp_take");
    if (!ret_rows)
        return no_rows(d, "trp_take");
    const uint64_t wanted = n;
    if (d->made)
        d->made = 2;
    for (uint32_t k = 1;; k = k > d->partitions / MORE ? d->partitions : k * MORE) {
        trp_dataset *some = first_partitions(d, k);
        some = some ? trp_partitions(some, trp_take_begin, trp_take_batch, trp_take_end,
                                     &wanted, sizeof(wanted))
                    : NULL;
        int rc = collect_of(d, some, ret_rows);
        if (rc < 0)
            return rc;
        trp_rows *r = *ret_rows;
        if (r->batch.count >= n)
            r->batch.count = n;
        if (r->batch.count == n || k == d->partitions)
            return 0;
        trp_rows_free(r);
    }
}

/* ---- trp_top ---- */

struct best {
    uint64_t number; /* in the order in which they came */
    uint8_t *key, *value;
    size_t nk, n;
    bool keyed;
};

/* A heap, the first one to go on top. */
struct top {
    trp_compare compare;
    uint64_t most, seen;
    struct best *v;
    size_t n, capacity;
};

/* Above 0: `a` stands before `b`. */
static int stands_before(const struct top *t, const struct best *a,
                         const struct best *b)
{
    int rc = t->compare(a->value, a->n, b->value, b->n, NULL);
    return rc ? rc : (a->number < b->number) - (a->number > b->number);
}

static void swap(struct best *a, struct best *b)
{
    const struct best c = *a;
    *a = *b;
    *b = c;
}

static void sift_down(struct top *t, size_t n)
{
    for (size_t i = 0, k; (k = 2 * i + 1) < n; i = k) {
        if (k + 1 < n && stands_before(t, &t->v[k], &t->v[k + 1]) > 0)
            k++;
        if (stands_before(t, &t->v[i], &t->v[k]) <= 0)
            return;
        swap(&t->v[i], &t->v[k]);
    }
}

static void sift_up(struct top *t, size_t i)
{
    for (; i > 0 && stands_before(t, &t->v[(i - 1) / 2], &t->v[i]) > 0; i = (i - 1) / 2)
        swap(&t->v[i], &t->v[(i - 1) / 2]);
}

static bool keep(struct best *b)
{
    uint8_t *both = malloc(b->n + b->nk + 1);
    if (!both)
        return false;
    if (b->n)
        memcpy(both, b->value, b->n);
    if (b->nk)
        memcpy(both + b->n, b->key, b->nk);
    b->value = both;
    b->key = both + b->n;
    return true;
}

static int add(struct top *t, const trp_batch *in, size_t i)
{
    struct best b = {.number = t->seen++, .keyed = in->keys != NULL};
    b.value = (uint8_t *)(uintptr_t)trp_value(in, i, &b.n);
    b.key = (uint8_t *)(uintptr_t)trp_key(in, i, &b.nk);
    if (t->most == 0 || (t->n == t->most && stands_before(t, &t->v[0], &b) > 0))
        return 0;
    if (t->n == t->capacity && t->n < t->most) {
        size_t more = t->capacity ? 2 * t->capacity : 16;
        struct best *v = realloc(t->v, more * sizeof(*v));
        if (!v)
            return TRP_ENOMEM;
        t->v = v;
        t->capacity = more;
    }
    if (!keep(&b))
        return TRP_ENOMEM;
    if (t->n < t->most) {
        t->v[t->n++] = b;
        sift_up(t, t->n - 1);
        return 0;
    }
    free(t->v[0].value);
    t->v[0] = b;
    sift_down(t, t->n);
    return 0;
}

/* The first in front. */
static void put_in_order(struct top *t)
{
    for (size_t n = t->n; n > 1;) {
        swap(&t->v[0], &t->v[--n]);
        sift_down(t, n);
    }
}

static void top_clear(struct top *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i].value);
    free(t->v);
}

static int emit_all(struct top *t, trp_writer *out)
{
    int rc = 0;
    put_in_order(t);
    for (size_t i = 0; rc == 0 && i < t->n; i++)
        rc = trp_emit(out, t->v[i].keyed ? t->v[i].key : NULL, t->v[i].nk,
                      t->v[i].value, t->v[i].n);
    return rc;
}

/* The argument: how many, and the name of the function. */
TRP_BEGIN(trp_top_begin);
int trp_top_begin(trp_task *t, void **state, trp_writer *out, const void *arg)
{
    (void)out;
    const char *name = (const char *)arg + sizeof(uint64_t);
    struct top *top = calloc(1, sizeof(*top));
    *state = top;
    if (!top)
        return TRP_ENOMEM;
    memcpy(&top->most, arg, sizeof(top->most));
    top->compare = (trp_compare)trp_registry_function(name);
    if (!top->compare)
        trp_task_error(t, "no function is registered as %s", name);
    return top->compare ? 0 : -1;
}

TRP_BATCH(trp_top_batch);
int trp_top_batch(trp_task *t, void *state, const trp_batch *in, trp_writer *out,
                  const void *arg)
{
    (void)t, (void)out, (void)arg;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->count; i++)
        rc = add(state, in, i);
    return rc;
}

TRP_END(trp_top_end);
int trp_top_end(trp_task *t, void *state, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    struct top *top = state;
    int rc = out && top ? emit_all(top, out) : 0;
    if (top)
        top_clear(top);
    free(top);
    return rc;
}

/* The best of all partitions, in place of what they have sent. */
static int merge(trp_context *ctx, trp_rows *r, trp_compare f, size_t n)
{
    struct top t = {.compare = f, .most = n};
    trp_writer records;
    int rc = 0;
    trp_writer_init(&records);
    for (size_t i = 0; rc == 0 && i < r->batch.count; i++)
        rc = add(&t, &r->batch, i);
    if (rc == 0)
        rc = emit_all(&t, &records);
    top_clear(&t);
    if (rc < 0) {
        trp_writer_free(&records);
        return trp_context_fail(ctx, TRP_ENOMEM, "trp_top: out of memory");
    }
    trp_writer_free(&r->records);
    r->records = records;
    r->batch = trp_writer_batch(&r->records);
    return 0;
}

int trp_top(trp_dataset *d, size_t n, trp_compare f, trp_rows **ret_rows)
{
    struct {
        uint64_t n;
        char name[TRP_FUNCTION_NAME_MAX + 1];
    } arg = {.n = n};
    if (!d)
        return trp_action_no_dataset("trp_top");
    if (!ret_rows)
        return no_rows(d, "trp_top");
    const char *name = f ? trp_registry_name((void (*)(void))f) : NULL;
    if (!name)
        return trp_action_note(
            d, trp_context_fail(d->context, TRP_EINVAL,
                                "trp_top: the function is not known by a name; write "
                                "TRP_COMPARE(name) before its definition"));
    strncpy(arg.name, name, sizeof(arg.name) - 1);
    const uint8_t made = d->made ? 2 : 0;
    trp_dataset *best =
        trp_partitions(d, trp_top_begin, trp_top_batch, trp_top_end, &arg, sizeof(arg));
    d->made = made;
    int rc = collect_of(d, best, ret_rows);
    if (rc == 0 && (rc = merge(d->context, *ret_rows, f, n)) < 0) {
        trp_rows_free(*ret_rows);
        trp_action_note(d, rc);
    }
    return rc;
}
