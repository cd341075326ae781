/*
 * Replay. What the new engine decides is kept, as the bytes that the trace would have,
 * with the number of the event it followed from, until the trace has its next action:
 * both must be the same bytes. So a decision is found at its own event, although a
 * driver may tell events while it is still performing actions of others.
 */
#include "sim/run/replay.h"

#include <stdlib.h>
#include <string.h>

#include "events/engine_fields.h"
#include "events/engine_trace.h"

enum { SHOWN = 1500 };

/* Decisions of the new engine that the trace has not come to yet. */
struct decisions {
    struct trp_buf bytes; /* size (u32), event (u64), bytes */
    size_t at;
};

struct replay {
    trp_trace_reader *reader;
    trp_profiles *profiles;
    trp_engine *engine;
    struct decisions now;
    uint64_t actions;
    char event[SHOWN]; /* the last one */
    FILE *out;
    const char *file;
    trp_error *err;
};

/* ---- the engine ---- */

static int make_engine(struct replay *r, const struct trp_profile_builder *first)
{
    struct trp_profile_defaults d = *trp_trace_reader_defaults(r->reader);
    struct trp_profile_builder b = *first;
    trp_error why;
    if (!d.cores_configured) /* a section that writes cores would configure them */
        b.executor.cores = -1;
    int rc = trp_profiles_new(&d, &b, &r->profiles, &why);
    if (rc == 0)
        rc = trp_engine_new(trp_trace_reader_config(r->reader), r->profiles, &r->engine,
                            &why);
    return rc < 0 ? trp_error_set(r->err, TRP_EINVAL, "%s: %s", r->file, why.text) : 0;
}

static int add_profile(struct replay *r, const struct trp_profile_builder *b)
{
    trp_profile_id id;
    trp_error why;
    if (!r->engine)
        return make_engine(r, b);
    int rc = trp_profiles_add(r->profiles, b, &id, &why);
    return rc < 0 ? trp_error_set(r->err, TRP_EINVAL, "%s: %s", r->file, why.text) : 0;
}

/* Everything it decided, kept. */
static void keep_decisions(struct replay *r)
{
    const struct trp_action *a;
    struct trp_buf *b = &r->now.bytes;
    if (r->now.at == b->size) {
        trp_buf_clear(b);
        r->now.at = 0;
    }
    while ((a = trp_engine_next(r->engine))) {
        size_t head = b->size;
        trp_put_u32(b, 0);
        trp_put_u64(b, trp_trace_reader_events(r->reader));
        trp_fields_put_action(b, a);
        uint32_t n = htole32((uint32_t)(b->size - head - 12));
        if (!b->failed)
            memcpy(b->data + head, &n, sizeof n);
    }
}

static int replay_event(struct replay *r, const struct trp_trace_record *record)
{
    trp_error why;
    struct trp_view v = trp_view_of(record->bytes, record->size);
    trp_fields_show_event(&v, r->event, sizeof r->event);
    int rc = trp_engine_step(r->engine, record->now_ns, &record->event, &why);
    if (rc == TRP_ENOMEM)
        return trp_error_set(r->err, rc, "%s", why.text);
    keep_decisions(r); /* a refused event is decided too: nothing follows */
    return r->now.bytes.failed ? trp_error_set(r->err, TRP_ENOMEM, "out of memory") : 0;
}

/* ---- comparing ---- */

static const char *shown(const uint8_t *p, size_t n, char *buf)
{
    struct trp_view v = trp_view_of(p, n);
    if (!p)
        return "nothing";
    return trp_fields_show_action(&v, buf, SHOWN) ? buf
                                                  : "what this troupe cannot name";
}

static int differs(struct replay *r, uint64_t event, const uint8_t *then, size_t nthen,
                   const uint8_t *now, size_t nnow)
{
    char a[SHOWN], b[SHOWN];
    bool last = event == trp_trace_reader_events(r->reader);
    fprintf(r->out,
            "%s: event %llu decides otherwise (decision %llu)\n"
            "%s%s%sthen: %s\nnow:  %s\n",
            r->file, (unsigned long long)event, (unsigned long long)r->actions + 1,
            last ? "event: " : "", last ? r->event : "", last ? "\n" : "",
            shown(then, nthen, a), shown(now, nnow, b));
    return trp_error_set(r->err, TRP_EFAILED, "%s: the engine decides otherwise now",
                         r->file);
}

static int compare(struct replay *r, const struct trp_trace_record *record)
{
    struct decisions *d = &r->now;
    uint64_t event = trp_trace_reader_events(r->reader);
    const uint8_t *now = NULL;
    size_t n = 0;
    if (d->at < d->bytes.size) {
        struct trp_view v = trp_view_of(d->bytes.data + d->at, d->bytes.size - d->at);
        n = trp_get_u32(&v);
        event = trp_get_u64(&v);
        now = trp_get_raw(&v, n);
        d->at += 12 + n;
    }
    if (!now || n != record->size || memcmp(now, record->bytes, n) != 0)
        return differs(r, event, record->bytes, record->size, now, n);
    r->actions++;
    return 0;
}

/* Decisions that the trace does not have. */
static int nothing_left(struct replay *r)
{
    struct decisions *d = &r->now;
    if (d->at == d->bytes.size)
        return 0;
    struct trp_view v = trp_view_of(d->bytes.data + d->at, d->bytes.size - d->at);
    size_t n = trp_get_u32(&v);
    uint64_t event = trp_get_u64(&v);
    return differs(r, event, NULL, 0, trp_get_raw(&v, n), n);
}

static int take_record(struct replay *r, const struct trp_trace_record *record)
{
    if (record->kind == TRP_TRACE_PROFILE)
        return add_profile(r, &record->builder);
    if (!r->engine)
        return trp_error_set(r->err, TRP_EINVAL, "%s: no default profile", r->file);
    switch (record->kind) {
    case TRP_TRACE_EXPECT:
        if (!trp_profiles_get(r->profiles, record->profile))
            return trp_error_set(r->err, TRP_EINVAL, "%s: no profile %u", r->file,
                                 record->profile.n);
        trp_engine_expect_executor(r->engine, record->profile);
        return 0;
    case TRP_TRACE_EVENT:
        return replay_event(r, record);
    case TRP_TRACE_ACTION:
        return compare(r, record);
    default:
        return 0;
    }
}

int trp_sim_replay(const char *file, FILE *out, trp_error *err)
{
    struct replay r = {.out = out, .file = file, .err = err};
    struct trp_trace_record record;
    int rc = trp_trace_reader_open(file, &r.reader, err);
    while (rc == 0 && (rc = trp_trace_reader_next(r.reader, &record, err)) == 1)
        rc = take_record(&r, &record);
    if (rc == 0)
        rc = nothing_left(&r);
    if (rc == 0)
        fprintf(out, "%s: %llu events, %llu decisions: the same again\n", file,
                (unsigned long long)trp_trace_reader_events(r.reader),
                (unsigned long long)r.actions);
    trp_engine_free(r.engine);
    if (r.profiles)
        trp_profiles_free(r.profiles);
    trp_buf_free(&r.now.bytes);
    trp_trace_reader_close(r.reader);
    return rc;
}
