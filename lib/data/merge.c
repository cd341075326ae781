/*
 * Merging.
 *
 * A tree of losers (Knuth 5.4.1): in each inner node the stream that lost there, above
 * all who has won. When the winner goes on to its next record, only the nodes above it
 * are played again: log2(n) comparisons a record, nearly always of two numbers.
 *
 * What is combined is copied first, since streams lend their records until they go on.
 */
#include "data/merge.h"

#include <stdlib.h>

#include "data/key_order.h"

int trp_merge_open(struct trp_merge *m, struct trp_stream **take_streams, uint32_t n,
                   const struct trp_shuffle_order *order, trp_error *err)
{
    *m = (struct trp_merge){
        .order = order, .streams = take_streams, .n = n, .failed = TRP_NO_SOURCE};
    m->losers = (uint32_t *)calloc((size_t)n + 1, sizeof *m->losers);
    return m->losers ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

static void end_stream(struct trp_merge *m, uint32_t i)
{
    if (m->streams[i])
        m->streams[i]->free(m->streams[i]);
    m->streams[i] = NULL;
}

void trp_merge_close(struct trp_merge *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        end_stream(m, i);
    free(m->streams);
    free(m->losers);
    trp_buf_free(&m->fold.key);
    trp_buf_free(&m->fold.value);
    *m = (struct trp_merge){0};
}

/* ---- the tree -------------------------------------------------------------------- */

static bool keys_before(const struct trp_merge *m, const struct trp_stream *x,
                        const struct trp_stream *y, bool x_is_lower)
{
    const struct trp_record *a = &x->record, *b = &y->record;
    int c = trp_key_compare(m->order, a->key, a->nk, b->key, b->nk, 0);
    return c != 0 ? c < 0 : x_is_lower;
}

/* Whether stream a's record comes before stream b's. */
static inline bool before(const struct trp_merge *m, uint32_t a, uint32_t b)
{
    const struct trp_stream *x = m->streams[a], *y = m->streams[b];
    if (!x || !y)
        return x || (!y && a < b);
    if (x->partition != y->partition)
        return x->partition < y->partition;
    if (m->order->unordered)
        return a < b;
    if (x->prefix != y->prefix)
        return x->prefix < y->prefix;
    return keys_before(m, x, y, a < b);
}

static int advance(struct trp_merge *m, uint32_t i, trp_error *err)
{
    struct trp_stream *s = m->streams[i];
    int rc = trp_stream_next(s, err);
    m->read += rc > 0 && s->source != TRP_NO_SOURCE;
    if (rc > 0)
        s->prefix = trp_key_prefix(m->order, s->record.key, s->record.nk);
    if (rc == 0)
        end_stream(m, i);
    if (rc < 0)
        m->failed = i;
    return rc < 0 ? rc : 0;
}

/* Stream i has another record: plays the nodes above it again. */
static void replay(struct trp_merge *m, uint32_t i)
{
    uint32_t winner = i;
    for (uint32_t node = (i + m->n) / 2; node > 0; node /= 2) {
        if (before(m, m->losers[node], winner)) {
            uint32_t loser = winner;
            winner = m->losers[node];
            m->losers[node] = loser;
        }
    }
    m->losers[0] = winner;
}

/* The first game: node i plays the winners of nodes 2i and 2i+1, leaves are n … 2n-1.
 */
static int start(struct trp_merge *m, trp_error *err)
{
    uint32_t *winners = (uint32_t *)calloc((size_t)m->n * 2 + 1, sizeof *winners);
    int rc = winners ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < m->n && rc == 0; i++) {
        rc = advance(m, i, err);
        winners[m->n + i] = i;
    }
    for (uint32_t node = m->n - 1; node > 0 && rc == 0; node--) {
        uint32_t a = winners[(size_t)node * 2], b = winners[(size_t)node * 2 + 1];
        bool first = before(m, a, b);
        winners[node] = first ? a : b;
        m->losers[node] = first ? b : a;
    }
    if (rc == 0)
        m->losers[0] = m->n > 1 ? winners[1] : 0;
    m->started = rc == 0;
    free(winners);
    return rc;
}

/* 1: *ret is the stream whose record is next. */
static int next_stream(struct trp_merge *m, struct trp_stream **ret, trp_error *err)
{
    if (m->n == 0)
        return 0;
    if (!m->started) {
        int rc = start(m, err);
        if (rc < 0)
            return rc;
    } else {
        uint32_t i = m->losers[0];
        if (!m->streams[i])
            return 0;
        int rc = advance(m, i, err);
        if (rc < 0)
            return rc;
        replay(m, i);
    }
    *ret = m->streams[m->losers[0]];
    return *ret != NULL;
}

/* ---- combining ------------------------------------------------------------------- */

static int copy_bytes(struct trp_buf *to, const void *p, size_t n, trp_error *err)
{
    trp_buf_clear(to);
    if (trp_buf_grow(to, n + 1)) /* for no bytes, too, an address */
        trp_put_raw(to, p, n);
    return to->failed ? trp_error_set(err, TRP_ENOMEM, "out of memory") : 0;
}

static bool is_same_key(const struct trp_merge *m, const struct trp_stream *s)
{
    const struct trp_buf *key = &m->fold.key;
    const struct trp_record *r = &s->record;
    if (s->partition != m->partition)
        return false;
    return trp_key_compare(m->order, (const uint8_t *)key->data, key->size, r->key,
                           r->nk, 0) == 0;
}

static int combine(struct trp_merge *m, const struct trp_record *r, trp_error *err)
{
    struct trp_buf *value = &m->fold.value;
    const void *made = NULL;
    size_t size = 0;
    int rc = m->order->combine(m->order->context, value->data, value->size,
                               trp_record_value(r), r->nv, &made, &size);
    if (rc < 0)
        return trp_error_set(err, rc, "values could not be combined");
    if (size > TRP_SHUFFLE_RECORD_MAX - m->fold.key.size)
        return trp_error_set(err, TRP_ELIMIT,
                             "a combined value of %zu bytes is larger than records may "
                             "be",
                             size);
    return copy_bytes(value, made, size, err);
}

/* All records of the next key as one. */
static int next_combined(struct trp_merge *m, struct trp_shuffle_record *ret,
                         trp_error *err)
{
    struct trp_stream *s = NULL;
    int rc = 1;
    if (m->fold.ahead)
        s = m->streams[m->losers[0]];
    else
        rc = next_stream(m, &s, err);
    if (rc <= 0 || !s)
        return rc < 0 ? rc : 0;
    m->partition = s->partition;
    rc = copy_bytes(&m->fold.key, s->record.key, s->record.nk, err);
    if (rc == 0)
        rc =
            copy_bytes(&m->fold.value, trp_record_value(&s->record), s->record.nv, err);
    while (rc == 0) {
        rc = next_stream(m, &s, err);
        if (rc <= 0 || !is_same_key(m, s))
            break;
        rc = combine(m, &s->record, err);
    }
    if (rc < 0)
        return rc;
    m->fold.ahead = true; /* at the end there is no stream */
    *ret = (struct trp_shuffle_record){m->fold.key.data, m->fold.value.data,
                                       m->fold.key.size, m->fold.value.size};
    return 1;
}

int trp_merge_next(struct trp_merge *m, struct trp_shuffle_record *ret, trp_error *err)
{
    struct trp_stream *s;
    if (m->order->combine)
        return next_combined(m, ret, err);
    int rc = next_stream(m, &s, err);
    if (rc <= 0)
        return rc;
    m->partition = s->partition;
    *ret = (struct trp_shuffle_record){s->record.key, trp_record_value(&s->record),
                                       s->record.nk, s->record.nv};
    return 1;
}
