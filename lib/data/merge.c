/*
 * Merging.
 *
 * A tree of losers (Knuth 5.4.1): in each inner node the stream that lost there, above
 * all who has won. When the winner goes on to its next record, only the nodes above it
 * are played again: log2(n) comparisons a record, nearly always of two numbers, which
 * lie in the nodes.
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
    m->losers = (struct trp_player *)calloc((size_t)n + 1, sizeof *m->losers);
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

/* Whether a comes before b, whose partitions and prefixes are equal. */
static bool keys_before(const struct trp_merge *m, const struct trp_player *a,
                        const struct trp_player *b)
{
    int c = 0;
    if (a->partition != TRP_ENDED && !m->order->unordered) {
        const struct trp_record *x = &m->streams[a->stream]->record;
        const struct trp_record *y = &m->streams[b->stream]->record;
        c = trp_key_compare(m->order, x->key, x->nk, y->key, y->nk, 0);
    }
    return c != 0 ? c < 0 : a->stream < b->stream;
}

static inline bool before(const struct trp_merge *m, const struct trp_player *a,
                          const struct trp_player *b)
{
    if (a->partition != b->partition)
        return a->partition < b->partition;
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    return keys_before(m, a, b);
}

/* Stream i goes on to its next record. */
static int advance(struct trp_merge *m, uint32_t i, struct trp_player *ret,
                   trp_error *err)
{
    struct trp_stream *s = m->streams[i];
    int rc = trp_stream_next(s, err);
    *ret = (struct trp_player){.partition = TRP_ENDED, .stream = i};
    if (rc > 0) {
        ret->partition = s->partition;
        if (!m->order->unordered)
            ret->prefix = trp_key_prefix(m->order, s->record.key, s->record.nk);
        return 0;
    }
    if (rc == 0)
        end_stream(m, i);
    else
        m->failed = i;
    return rc;
}

/* One who has a new record plays the nodes above again. */
static void replay(struct trp_merge *m, struct trp_player winner)
{
    for (uint32_t node = (winner.stream + m->n) / 2; node > 0; node /= 2) {
        if (before(m, &m->losers[node], &winner)) {
            struct trp_player loser = winner;
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
    struct trp_player *winners =
        (struct trp_player *)calloc((size_t)m->n * 2 + 1, sizeof *winners);
    int rc = winners ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < m->n && rc == 0; i++)
        rc = advance(m, i, &winners[m->n + i], err);
    for (uint32_t node = m->n - 1; node > 0 && rc == 0; node--) {
        const struct trp_player *a = &winners[(size_t)node * 2], *b = a + 1;
        bool first = before(m, a, b);
        winners[node] = first ? *a : *b;
        m->losers[node] = first ? *b : *a;
    }
    if (rc == 0)
        m->losers[0] = winners[1]; /* of one stream it is the leaf */
    m->started = rc == 0;
    free(winners);
    return rc;
}

/* The stream whose record is next; NULL: there is none. */
static struct trp_stream *winner_of(const struct trp_merge *m)
{
    return m->streams[m->losers[0].stream];
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
        struct trp_player player;
        if (!winner_of(m))
            return 0;
        int rc = advance(m, m->losers[0].stream, &player, err);
        if (rc < 0)
            return rc;
        replay(m, player);
    }
    *ret = winner_of(m);
    return *ret != NULL;
}

/* ---- combining ------------------------------------------------------------------- */

static int keep(struct trp_buf *to, const void *p, size_t n, trp_error *err)
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
    return keep(value, made, size, err);
}

/* All records of the next key as one. */
static int next_combined(struct trp_merge *m, struct trp_shuffle_record *ret,
                         trp_error *err)
{
    struct trp_stream *s = NULL;
    int rc = 1;
    if (m->fold.ahead)
        s = winner_of(m);
    else
        rc = next_stream(m, &s, err);
    if (rc <= 0 || !s)
        return rc < 0 ? rc : 0;
    m->partition = s->partition;
    rc = keep(&m->fold.key, s->record.key, s->record.nk, err);
    if (rc == 0)
        rc = keep(&m->fold.value, trp_record_value(&s->record), s->record.nv, err);
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
