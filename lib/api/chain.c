/*
 * Encoding and decoding of chains.
 *
 * The driver walks the graph below an action's dataset breadth first, stamping each
 * node with the number of the walk, so a node that is reached twice is written once and
 * nothing has to be cleared. The body is the list of nodes in that order (so node 0 is
 * the dataset itself), each with the places of what it is made of. Cost: O(nodes), once
 * an action, into a buffer that the context keeps.
 *
 * Rejected: writing out a list of steps for each source ("branch"), which grows as 2^n
 * for n unions of a dataset with itself; walking by recursion, which a fold of many
 * unions overflows.
 *
 * A decoder trusts nothing: every place is checked, and a walk that is longer than
 * there are nodes (a cycle, which no driver writes) is an error.
 */
#include "api/chain.h"
#include "api/broadcast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

enum { BODY_VERSION = 5 };

/* ---- the driver's side ---- */

static int nodes_add(trp_context *ctx, trp_dataset *d)
{
    if (d->walk == ctx->walks)
        return 0;
    if (!TRP_ARRAY_GROW(ctx->nodes, ctx->nnodes, ctx->nodes_capacity))
        return trp_context_fail(ctx, TRP_ENOMEM, "out of memory for a chain");
    d->walk = ctx->walks;
    d->place = ctx->nnodes;
    ctx->nodes[ctx->nnodes++] = d;
    return 0;
}

int trp_chain_walk(trp_dataset *d)
{
    trp_context *ctx = d->context;
    ctx->walks++;
    ctx->nnodes = 0;
    int rc = nodes_add(ctx, d);
    for (size_t i = 0; rc == 0 && i < ctx->nnodes; i++) {
        trp_dataset *n = ctx->nodes[i];
        if (n->a)
            rc = nodes_add(ctx, n->a);
        if (rc == 0 && n->b)
            rc = nodes_add(ctx, n->b);
    }
    return rc;
}

static void put_step(struct trp_buf *b, const struct trp_step *s)
{
    trp_put_text(b, s->name);
    trp_put_bytes(b, s->arg, s->arg_size);
}

static void put_node(struct trp_buf *b, const trp_dataset *d)
{
    trp_put_u8(b, (uint8_t)d->kind);
    trp_put_u32(b, d->partitions);
    trp_put_u32(b, d->maker);
    switch (d->kind) {
    case TRP_NODE_RANGE:
        trp_put_s64(b, d->range.begin);
        trp_put_s64(b, d->range.end);
        return;
    case TRP_NODE_ARRAY:
        trp_put_u32(b, d->inputs.width);
        return;
    case TRP_NODE_RECORDS:
        trp_put_u8(b, d->inputs.keyed);
        return;
    case TRP_NODE_CHECKPOINT:
        trp_put_text(b, d->checkpoint.folder);
        return;
    case TRP_NODE_WIDE:
        trp_wide_plan_put(b, &d->wide.plan);
        return;
    case TRP_NODE_TEXT:
        trp_put_text(b, d->inputs.base);
        trp_put_u32(b, d->inputs.width);
        return;
    case TRP_NODE_TRANSFORM:
    case TRP_NODE_MAP:
    case TRP_NODE_FILTER:
        trp_put_u32(b, d->a->place);
        put_step(b, &d->step);
        return;
    case TRP_NODE_PARTITIONS:
        trp_put_u32(b, d->a->place);
        put_step(b, &d->step);
        trp_put_text(b, d->step.begin ? d->step.begin : "");
        trp_put_text(b, d->step.end ? d->step.end : "");
        return;
    case TRP_NODE_UNION:
        trp_put_u32(b, d->a->place);
        trp_put_u32(b, d->b->place);
        return;
    case TRP_NODE_PERSIST:
        trp_put_u32(b, d->a->place);
        trp_put_u32(b, trp_dataset_keeps(d) ? d->persist.dataset : TRP_NONE);
        trp_put_u8(b, (uint8_t)d->persist.level);
        return;
    case TRP_NODE_COALESCE:
    case TRP_NODE_PROFILE:
    case TRP_NODE_BARRIER:
    case TRP_NODE_INDETERMINATE:
    case TRP_NODE_PREFER:
    case TRP_NODE_NAMED:
    case TRP_NODE_FIRST:
        trp_put_u32(b, d->a->place);
        return;
    }
}

int trp_chain_put(struct trp_buf *b, const trp_context *ctx,
                  const struct trp_chain_end *end)
{
    trp_put_u8(b, BODY_VERSION);
    trp_put_u8(b, (uint8_t)end->kind);
    put_step(b, &end->step);
    trp_put_text(b, end->dir);
    trp_put_u8(b, end->binary);
    trp_put_u8(b, end->tasked);
    trp_put_u32(b, end->maker);
    trp_put_text(b, trp_context_shared(ctx));
    trp_broadcasts_put(b, ctx);
    if (end->kind >= TRP_DO_SAMPLE) {
        trp_wide_plan_put(b, end->plan);
        trp_put_u8(b, (uint8_t)end->side);
        trp_put_u32(b, end->want);
    }
    trp_put_u32(b, (uint32_t)ctx->nnodes);
    for (size_t i = 0; i < ctx->nnodes; i++)
        put_node(b, ctx->nodes[i]);
    return b->failed ? TRP_ENOMEM : 0;
}

bool trp_chain_has_inputs(enum trp_node_kind kind)
{
    return kind == TRP_NODE_ARRAY || kind == TRP_NODE_RECORDS || kind == TRP_NODE_TEXT;
}

bool trp_chain_input(const trp_dataset *d, uint32_t task, const uint8_t **ret_data,
                     uint32_t *ret_size)
{
    while (d->a && d->kind != TRP_NODE_COALESCE) {
        if (d->kind == TRP_NODE_UNION && task >= d->a->partitions) {
            task -= d->a->partitions;
            d = d->b;
        } else {
            d = d->a;
        }
    }
    bool whole = trp_chain_has_inputs(d->kind);
    *ret_data = NULL;
    *ret_size = 0;
    if (whole || (d->kind == TRP_NODE_COALESCE && d->inputs.offsets)) {
        *ret_data = d->inputs.data + d->inputs.offsets[task];
        *ret_size = (uint32_t)(d->inputs.offsets[task + 1] - d->inputs.offsets[task]);
    }
    return whole;
}

static const char *end_name(enum trp_end_kind kind)
{
    switch (kind) {
    case TRP_DO_COUNT:
        return "count";
    case TRP_DO_COLLECT:
        return "collect";
    case TRP_DO_REDUCE:
        return "reduce";
    case TRP_DO_FOREACH:
        return "foreach";
    case TRP_DO_SAVE:
        return "save";
    case TRP_DO_CHECKPOINT:
        return "checkpoint";
    case TRP_DO_SAMPLE:
        return "sample";
    case TRP_DO_SHUFFLE:
        return "shuffle";
    }
    return "persist"; /* no end at all: a kept dataset */
}

/* Of what is no step. */
static const char *node_name(enum trp_node_kind kind, const struct trp_wide_plan *p)
{
    switch (kind) {
    case TRP_NODE_RANGE:
        return "trp_range";
    case TRP_NODE_ARRAY:
        return "trp_array";
    case TRP_NODE_RECORDS:
        return "trp_records";
    case TRP_NODE_TEXT:
        return "trp_text_files";
    case TRP_NODE_CHECKPOINT:
        return "trp_checkpoint";
    case TRP_NODE_WIDE:
        return trp_wide_name(p);
    case TRP_NODE_COALESCE:
        return "trp_coalesce";
    default:
        return "trp_union";
    }
}

/* Of a source of the program's. */
static const char *source_name(const trp_dataset *d)
{
    if (d->kind == TRP_NODE_TEXT && d->inputs.width)
        return "trp_binary_files";
    if (d->kind == TRP_NODE_RECORDS && d->inputs.keyed)
        return "trp_pairs";
    return node_name(d->kind, d->kind == TRP_NODE_WIDE ? &d->wide.plan : NULL);
}

/* The nearest name that trp_named gave; NULL: none. */
static const char *given_name(const trp_dataset *d)
{
    for (; d->a && d->kind != TRP_NODE_UNION; d = d->a)
        if (d->kind == TRP_NODE_NAMED)
            return d->name;
    return NULL;
}

void trp_chain_job_name(const trp_dataset *d, const struct trp_chain_end *end,
                        char *buf, size_t size)
{
    const char *given = given_name(d);
    if (given)
        snprintf(buf, size, "%s %s", end_name(end->kind), given);
    else
        trp_chain_name(d, end, buf, size);
}

/* A program has this called for each of its jobs, which may be thousands a second: no
 * snprintf. */
static void add(char *buf, size_t size, size_t *at, const char *text)
{
    size_t n = strnlen(text, size - 1 - *at);
    memcpy(buf + *at, text, n);
    *at += n;
    buf[*at] = '\0';
}

void trp_chain_name(const trp_dataset *d, const struct trp_chain_end *end, char *buf,
                    size_t size)
{
    enum { SHOWN = 6 };
    const char *names[SHOWN + 1], *given = given_name(d);
    size_t n = 0, all = 0;
    if (given) {
        snprintf(buf, size, "%s", given);
        return;
    }
    if (end->step.name) {
        names[n++] = end->step.name;
        all++;
    }
    for (; d->a && d->kind != TRP_NODE_UNION; d = d->a) {
        if (d->kind > TRP_NODE_COALESCE) /* a mark */
            continue;
        if (n < SHOWN)
            names[n++] =
                d->kind == TRP_NODE_COALESCE ? node_name(d->kind, NULL) : d->step.name;
        all++;
    }
    size_t at = 0;
    add(buf, size, &at,
        end->kind == TRP_DO_SHUFFLE ? trp_wide_name(end->plan) : end_name(end->kind));
    add(buf, size, &at, " ");
    add(buf, size, &at, source_name(d));
    if (all > n)
        add(buf, size, &at, " → …");
    while (n > 0) {
        add(buf, size, &at, " → ");
        size_t room = size - at < 25 ? size - at : 25; /* of a name: 24 bytes at most */
        add(buf, at + room, &at, names[--n]);
    }
}

/* ---- the executor's side ---- */

static bool is_step(enum trp_node_kind kind)
{
    return kind >= TRP_NODE_TRANSFORM && kind <= TRP_NODE_PARTITIONS;
}

static bool get_step(struct trp_view *v, struct trp_chain_node *n)
{
    size_t size;
    n->name = trp_get_text(v);
    const uint8_t *arg = trp_get_bytes(v, &size);
    if (v->bad || !n->name)
        return false;
    if (size == 0)
        return true;
    n->arg = malloc(size); /* aligned for whatever it is */
    if (!n->arg)
        return false;
    memcpy(n->arg, arg, size);
    return true;
}

static int find_function(const char *name, void (**ret)(void), trp_error *err)
{
    *ret = trp_registry_function(name);
    if (*ret)
        return 0;
    return trp_error_set(err, TRP_EPROTO, "no function is registered as %.255s", name);
}

static bool get_node(struct trp_view *v, struct trp_chain_node *n, uint32_t nnodes)
{
    n->kind = trp_get_u8(v);
    n->partitions = trp_get_u32(v);
    n->maker = trp_get_u32(v);
    bool ok = true;
    switch (n->kind) {
    case TRP_NODE_RANGE:
        n->begin = trp_get_s64(v);
        n->end = trp_get_s64(v);
        ok = n->partitions > 0 && n->begin <= n->end;
        break;
    case TRP_NODE_ARRAY:
        n->width = trp_get_u32(v);
        ok = n->width > 0;
        break;
    case TRP_NODE_RECORDS:
        n->keyed = trp_get_flag(v);
        break;
    case TRP_NODE_WIDE:
        ok = trp_wide_plan_get(v, &n->plan) && n->partitions == n->plan.partitions;
        break;
    case TRP_NODE_TEXT:
        ok = (n->base = trp_get_text(v)) != NULL;
        n->width = trp_get_u32(v);
        break;
    case TRP_NODE_CHECKPOINT:
        ok = (n->base = trp_get_text(v)) != NULL;
        break;
    case TRP_NODE_TRANSFORM:
    case TRP_NODE_MAP:
    case TRP_NODE_FILTER:
        n->a = trp_get_u32(v);
        ok = get_step(v, n);
        break;
    case TRP_NODE_PARTITIONS:
        n->a = trp_get_u32(v);
        ok = get_step(v, n) && (n->begin_name = trp_get_text(v)) &&
             (n->end_name = trp_get_text(v));
        break;
    case TRP_NODE_UNION:
        n->a = trp_get_u32(v);
        n->b = trp_get_u32(v);
        break;
    case TRP_NODE_PERSIST:
        n->a = trp_get_u32(v);
        n->dataset = trp_get_u32(v);
        n->level = trp_get_u8(v);
        ok = n->level > 0 && n->level <= (TRP_BLOCK_MEMORY | TRP_BLOCK_DISK);
        break;
    case TRP_NODE_COALESCE:
    case TRP_NODE_PROFILE:
    case TRP_NODE_BARRIER:
    case TRP_NODE_INDETERMINATE:
    case TRP_NODE_PREFER:
    case TRP_NODE_NAMED:
    case TRP_NODE_FIRST:
        n->a = trp_get_u32(v);
        break;
    default:
        return false;
    }
    return ok && !v->bad && n->a < nnodes && n->b < nnodes;
}

/* FNV-1a: names are short and a chain is decoded once. */
static uint64_t hash_more(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
    return (h ^ 0xff) * UINT64_C(0x100000001b3);
}

/* The function of a plan that has one. */
static int resolve_plan(struct trp_wide_plan *p, trp_error *err)
{
    return p->function && *p->function ? find_function(p->function, &p->code, err) : 0;
}

/* What is called before and behind the batches of a partition. */
static int resolve_ends(struct trp_chain_node *n, trp_error *err)
{
    void (*f)(void) = NULL;
    if (n->kind != TRP_NODE_PARTITIONS)
        return 0;
    if (*n->begin_name && find_function(n->begin_name, &f, err) < 0)
        return TRP_EPROTO;
    n->first = (trp_partition_begin)f;
    f = NULL;
    if (*n->end_name && find_function(n->end_name, &f, err) < 0)
        return TRP_EPROTO;
    n->last = (trp_partition_end)f;
    return 0;
}

/* Functions of all nodes and of the action, and the hash of their names. */
static int resolve(struct trp_chain *c, trp_error *err)
{
    c->key = hash_more(UINT64_C(0xcbf29ce484222325), end_name(c->kind));
    void (*f)(void);
    for (uint32_t i = 0; i < c->nnodes; i++) {
        struct trp_chain_node *n = &c->nodes[i];
        c->keeps |= n->kind == TRP_NODE_PERSIST && n->dataset != TRP_NONE;
        if (!is_step(n->kind)) {
            if (n->kind == TRP_NODE_WIDE && resolve_plan(&n->plan, err) < 0)
                return TRP_EPROTO;
            c->key = hash_more(c->key, node_name(n->kind, &n->plan));
            continue;
        }
        if (find_function(n->name, &f, err) < 0 || resolve_ends(n, err) < 0)
            return TRP_EPROTO;
        n->function = (trp_function)f;
        n->batch = (trp_partition_batch)f;
        c->key = hash_more(c->key, n->name);
    }
    if (c->kind >= TRP_DO_SAMPLE) {
        c->key = hash_more(c->key, trp_wide_name(&c->plan));
        return resolve_plan(&c->plan, err);
    }
    if (c->kind != TRP_DO_REDUCE && c->kind != TRP_DO_FOREACH)
        return 0;
    if (find_function(c->last.name, &f, err) < 0)
        return TRP_EPROTO;
    c->last.function = (trp_function)f;
    c->combine = (trp_combine)f;
    c->key = hash_more(c->key, c->last.name);
    return 0;
}

static bool get_chain(struct trp_view *v, struct trp_chain *c)
{
    if (trp_get_u8(v) != BODY_VERSION)
        return false;
    c->kind = trp_get_u8(v);
    if (c->kind < TRP_DO_COUNT || c->kind > TRP_DO_SHUFFLE || !get_step(v, &c->last))
        return false;
    c->dir = trp_get_text(v);
    c->binary = trp_get_flag(v);
    c->tasked = trp_get_flag(v);
    c->last.maker = trp_get_u32(v);
    c->shared = trp_get_text(v);
    if (!trp_broadcasts_get(v, &c->broadcasts, &c->nbroadcasts) || !c->shared)
        return false;
    if (c->kind >= TRP_DO_SAMPLE) {
        bool ok = trp_wide_plan_get(v, &c->plan);
        c->side = trp_get_u8(v);
        c->want = trp_get_u32(v);
        if (!ok || c->side >= c->plan.nsides)
            return false;
    }
    uint32_t n = trp_get_count(v, 5);
    if (v->bad || !c->dir || n == 0 || !(c->nodes = calloc(n, sizeof(*c->nodes))))
        return false;
    c->nnodes = n;
    for (uint32_t i = 0; i < n; i++)
        if (!get_node(v, &c->nodes[i], n))
            return false;
    return trp_view_end(v);
}

int trp_chain_get(const uint8_t *body, size_t size, struct trp_chain **ret,
                  trp_error *err)
{
    struct trp_chain *c = calloc(1, sizeof(*c));
    if (!c)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a chain");
    struct trp_view v = trp_view_of(body, size);
    int rc = get_chain(&v, c)
                 ? resolve(c, err)
                 : trp_error_set(err, TRP_EPROTO,
                                 "a stage's chain of functions cannot be read");
    if (rc < 0) {
        trp_chain_free(c);
        return rc;
    }
    trp_broadcasts_keep(c->broadcasts, c->nbroadcasts);
    *ret = c;
    return 0;
}

static void node_clear(struct trp_chain_node *n)
{
    trp_wide_plan_free(&n->plan);
    free(n->base);
    free(n->name);
    free(n->begin_name);
    free(n->end_name);
    free(n->arg);
}

void trp_chain_free(struct trp_chain *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->nnodes; i++)
        node_clear(&c->nodes[i]);
    node_clear(&c->last);
    trp_wide_plan_free(&c->plan);
    free(c->nodes);
    free(c->dir);
    free(c->shared);
    free(c->broadcasts);
    free(c);
}

uint32_t trp_members_shared(const struct trp_members *m)
{
    uint32_t n = m->n;
    while (n > 0 && m->of[n - 1].at + 1 >= m->of[n - 1].end)
        n--;
    return n;
}

bool trp_members_next(struct trp_members *m, uint32_t above)
{
    for (; m->n > above; m->n--)
        if (++m->of[m->n - 1].at < m->of[m->n - 1].end)
            return true;
    return false;
}

/* The partition of what a coalesced node is made of: the `k`-th such node on the path.
 * False: it has none for this task. */
static bool take_member(const struct trp_chain *c, const struct trp_chain_node *node,
                        uint32_t k, struct trp_members *m, uint32_t *task)
{
    if (k == TRP_STEPS_MAX)
        return false;
    if (k == m->n) { /* a new run */
        int64_t first;
        uint64_t count;
        trp_range_part(0, c->nodes[node->a].partitions, node->partitions, *task, &first,
                       &count);
        if (count == 0)
            return false;
        m->of[m->n].at = (uint32_t)first;
        m->of[m->n++].end = (uint32_t)((uint64_t)first + count);
    }
    *task = m->of[k].at;
    return true;
}

/* A step that keeps what passes it. */
static void add_keep(struct trp_keeps *k, uint32_t node, uint32_t step,
                     uint32_t partition, uint32_t above)
{
    if (k->n < TRP_KEEPS_MAX)
        k->v[k->n++] = (struct trp_keep){node, step, partition, above};
}

int64_t trp_chain_path(const struct trp_chain *c, uint32_t task, struct trp_members *m,
                       struct trp_path_step *steps, uint32_t *ret_nsteps,
                       uint32_t *ret_partition, struct trp_keeps *ret_keeps)
{
    uint32_t at = 0, n = 0, coalesced = 0;
    ret_keeps->n = 0;
    for (uint32_t walked = 0; walked < c->nnodes; walked++) {
        const struct trp_chain_node *node = &c->nodes[at];
        if (task >= node->partitions)
            return TRP_EPROTO;
        if (node->kind < TRP_NODE_TRANSFORM) {
            for (uint32_t i = 0; i < n / 2; i++) {
                struct trp_path_step swap = steps[i];
                steps[i] = steps[n - 1 - i];
                steps[n - 1 - i] = swap;
            }
            for (uint32_t i = 0; i < ret_keeps->n; i++)
                ret_keeps->v[i].step = n - 1 - ret_keeps->v[i].step;
            *ret_nsteps = n;
            *ret_partition = task;
            return at;
        }
        bool keeps = node->kind == TRP_NODE_PERSIST && node->dataset != TRP_NONE;
        if (keeps)
            add_keep(ret_keeps, at, n, task, coalesced);
        if (is_step(node->kind) || keeps) {
            if (n == TRP_STEPS_MAX)
                return TRP_EPROTO;
            steps[n++] = (struct trp_path_step){at, task, coalesced};
        }
        if (node->kind == TRP_NODE_COALESCE &&
            !take_member(c, node, coalesced++, m, &task))
            return TRP_EPROTO;
        at = node->a;
        if (node->kind == TRP_NODE_UNION && task >= c->nodes[at].partitions) {
            task -= c->nodes[at].partitions;
            at = node->b;
        }
    }
    return TRP_EPROTO;
}

void trp_range_part(int64_t begin, int64_t end, uint32_t partitions, uint32_t i,
                    int64_t *ret_first, uint64_t *ret_count)
{
    uint64_t all = (uint64_t)end - (uint64_t)begin;
    uint64_t from = (uint64_t)((unsigned __int128)all * i / partitions);
    uint64_t to = (uint64_t)((unsigned __int128)all * (i + 1u) / partitions);
    *ret_first = (int64_t)((uint64_t)begin + from);
    *ret_count = to - from;
}
