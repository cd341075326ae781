/* Writing an engine's trace: records into a buffer, full buffers into frames. */
#include "events/engine_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "events/engine_fields.h"
#include "events/engine_trace_form.h"
#include "os/held.h"

enum { FRAME = 256 << 10, ZSTD_LEVEL = 1 };
static const int64_t FLUSH_NS = INT64_C(5000000000);

struct trp_engine_trace {
    char *file;
    int fd;
    const trp_profiles *profiles;
    uint32_t known; /* profiles that the trace has, or that the engine added */
    bool live;
    struct trp_buf text, one, packed; /* of the frame; of one record; compressed */
    int64_t now, flushed;
    uint64_t events, actions;
    trp_error failed; /* code 0: not */
};

/* ---- frames ---- */

static void fail(trp_engine_trace *t, const char *why)
{
    if (!t->failed.code)
        trp_error_set(&t->failed, TRP_ESYSTEM, "%s: cannot be written: %s", t->file,
                      why);
}

static void flush(trp_engine_trace *t)
{
    size_t most = ZSTD_compressBound(t->text.size), n = 0;
    t->flushed = t->now;
    if (!t->text.size || t->failed.code || t->text.failed || t->one.failed) {
        if (t->text.failed || t->one.failed)
            fail(t, "out of memory");
        trp_buf_clear(&t->text);
        return;
    }
    trp_buf_clear(&t->packed);
    uint8_t *p = trp_buf_reserve(&t->packed, most);
    if (p)
        n = ZSTD_compress(p, most, t->text.data, t->text.size, ZSTD_LEVEL);
    if (!p || ZSTD_isError(n))
        fail(t, "out of memory");
    for (size_t done = 0; p && !t->failed.code && done < n;) {
        ssize_t k = write(t->fd, p + done, n - done);
        if (k < 0 && errno != EINTR)
            fail(t, strerror(errno));
        done += k > 0 ? (size_t)k : 0;
    }
    trp_buf_clear(&t->text);
}

/* What is in `one` becomes a record. */
static void finish_record(trp_engine_trace *t, enum trp_trace_kind kind)
{
    trp_put_u8(&t->text, (uint8_t)kind);
    trp_put_varint(&t->text, t->one.size);
    trp_put_raw(&t->text, t->one.data, t->one.size);
    trp_buf_clear(&t->one);
    if (t->text.size >= FRAME)
        flush(t);
}

/* ---- records ---- */

static void put_profile(trp_engine_trace *t, uint32_t n)
{
    struct trp_profile_builder b;
    trp_profile_written(trp_profiles_get(t->profiles, (trp_profile_id){n}), &b);
    trp_fields_put_builder(&t->one, &b);
    finish_record(t, TRP_TRACE_PROFILE);
}

static void put_new_profiles(trp_engine_trace *t)
{
    while (t->known < trp_profiles_count(t->profiles))
        put_profile(t, t->known++);
}

static void put_head(trp_engine_trace *t, const struct trp_engine_config *config)
{
    trp_put_raw(&t->text, TRP_TRACE_MAGIC, strlen(TRP_TRACE_MAGIC));
    trp_put_u8(&t->text, TRP_TRACE_VERSION);
    trp_fields_put_defaults(&t->one, trp_profiles_defaults(t->profiles));
    trp_fields_put_config(&t->one, config);
    trp_put_varint(&t->text, t->one.size);
    trp_put_raw(&t->text, t->one.data, t->one.size);
    trp_buf_clear(&t->one);
}

int trp_engine_trace_new(const char *file, const struct trp_engine_config *config,
                         const trp_profiles *profiles, bool live,
                         trp_engine_trace **ret, trp_error *err)
{
    trp_engine_trace *t = calloc(1, sizeof *t);
    if (t)
        t->file = strdup(file);
    if (!t || !t->file) {
        free(t);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %s", file);
    }
    t->profiles = profiles;
    t->live = live;
    t->fd = trp_held_open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (t->fd < 0) {
        int rc = trp_error_set(err, TRP_ESYSTEM, "%s: cannot be made: %m", file);
        free(t->file);
        free(t);
        return rc;
    }
    put_head(t, config);
    put_new_profiles(t);
    *ret = t;
    return 0;
}

int trp_engine_trace_step(trp_engine_trace *t, trp_engine *e, int64_t now_ns,
                          const struct trp_event *event, trp_error *err)
{
    put_new_profiles(t);
    int64_t since = t->events && now_ns > t->now ? now_ns - t->now : 0;
    t->now = t->events && now_ns < t->now ? t->now : now_ns;
    trp_put_varint(&t->one, (uint64_t)since);
    trp_fields_put_event(&t->one, event);
    finish_record(t, TRP_TRACE_EVENT);
    t->events++;
    if (t->live && t->now - t->flushed > FLUSH_NS)
        flush(t);
    int rc = trp_engine_step(e, now_ns, event, err);
    t->known = trp_profiles_count(t->profiles); /* the engine's own */
    return rc;
}

trp_executor_id trp_engine_trace_expect(trp_engine_trace *t, trp_engine *e,
                                        trp_profile_id profile)
{
    put_new_profiles(t);
    trp_put_varint(&t->one, profile.n);
    finish_record(t, TRP_TRACE_EXPECT);
    return trp_engine_expect_executor(e, profile);
}

void trp_engine_trace_action(trp_engine_trace *t, const struct trp_action *a)
{
    trp_fields_put_action(&t->one, a);
    finish_record(t, TRP_TRACE_ACTION);
    t->actions++;
}

int trp_engine_trace_close(trp_engine_trace *t, trp_error *err)
{
    int rc = 0;
    if (!t)
        return 0;
    trp_put_varint(&t->one, t->events);
    trp_put_varint(&t->one, t->actions);
    finish_record(t, TRP_TRACE_END);
    flush(t);
    if (close(t->fd) < 0)
        fail(t, strerror(errno));
    if (t->failed.code)
        rc = trp_error_set(err, t->failed.code, "%s", t->failed.text);
    trp_buf_free(&t->text);
    trp_buf_free(&t->one);
    trp_buf_free(&t->packed);
    free(t->file);
    free(t);
    return rc;
}
