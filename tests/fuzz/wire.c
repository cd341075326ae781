/*
 * The control channel's messages: bytes as a broken or foreign peer could send them.
 *
 * What a decoder takes it has to have understood: encoded again it is the same bytes
 * (ENDS, which has two forms of a plain end: the same ends). What it refuses is
 * TRP_EPROTO. Every borrowed byte is looked at, for the sanitizer.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire/blocks.h"
#include "wire/map_output.h"
#include "wire/message.h"

static unsigned touched;

static void touch(const void *p, size_t n)
{
    const uint8_t *at = p;
    for (size_t i = 0; i < n; i++)
        touched += at[i];
}

static void same(const char *what, struct trp_buf *b, const uint8_t *data, size_t size)
{
    FUZZ_CHECK(!b->failed && b->size == size && memcmp(b->data, data, size) == 0,
               "%s: %zu bytes become %zu, or others", what, size, b->size);
    trp_buf_free(b);
}

static int take_command(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_command c;
    int rc = trp_command_get(data, size, &c);
    if (rc < 0)
        return rc;
    FUZZ_CHECK(c.nargv > 0 && !c.argv[c.nargv] && !c.env[c.nenv],
               "a command that execve cannot take");
    FUZZ_CHECK(c.nresource_env % 2 == 0, "%u strings in pairs", c.nresource_env);
    trp_command_put(&b, &c);
    trp_command_free(&c);
    same("a command", &b, data, size);
    return 0;
}

static int take_stage(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_stage_message m;
    int rc = trp_stage_message_get(data, size, &m);
    if (rc < 0)
        return rc;
    if (m.work == TRP_WORK_COMMAND) {
        rc = take_command(m.body, m.body_size);
        FUZZ_CHECK(rc == 0 || rc == TRP_EPROTO, "a command's verdict is %d", rc);
    }
    trp_stage_message_put(&b, &m);
    trp_stage_message_free(&m);
    same("STAGE", &b, data, size);
    return 0;
}

static int take_launches(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_view v;
    struct trp_launch l;
    uint32_t count, n = 0;
    int rc = trp_launch_open(data, size, &v, &count);
    if (rc < 0)
        return rc;
    trp_launch_begin(&b);
    while ((rc = trp_launch_next(&v, &l)) > 0) {
        touch(l.resources, l.resources_size);
        touch(l.extra, l.extra_size);
        trp_launch_put(&b, &l);
        n++;
    }
    FUZZ_CHECK(rc == 0 && n == count, "%u launches of %u, then %d", n, count, rc);
    trp_batch_finish(&b);
    same("LAUNCH", &b, data, size);
    return 0;
}

static bool ends_equal(const struct trp_end *a, const struct trp_end *b)
{
    return a->attempt.n == b->attempt.n && a->status == b->status &&
           a->code == b->code && a->duration_ns == b->duration_ns &&
           a->cpu_ns == b->cpu_ns && a->peak_kib == b->peak_kib &&
           a->limit_mib == b->limit_mib && a->records_in == b->records_in &&
           a->records_out == b->records_out && a->bytes_in == b->bytes_in &&
           a->bytes_out == b->bytes_out && a->extra_size == b->extra_size &&
           a->in_file == b->in_file && a->file.size == b->file.size &&
           a->file.hash == b->file.hash && a->nadded == b->nadded &&
           (!a->nadded || memcmp(a->added, b->added,
                                 a->nadded * sizeof(struct trp_added_record)) == 0) &&
           (!a->extra_size || memcmp(a->extra, b->extra, a->extra_size) == 0);
}

/* Encodes the end alone and takes it again. */
static void end_again(const struct trp_end *e)
{
    struct trp_buf b = {0};
    struct trp_view v;
    struct trp_end again;
    uint32_t count;
    trp_ends_begin(&b);
    trp_ends_put(&b, e);
    trp_batch_finish(&b);
    FUZZ_CHECK(trp_ends_open(b.data, b.size, &v, &count) == 0 && count == 1 &&
                   trp_ends_next(&v, &again) == 1 && ends_equal(e, &again),
               "an end of status %u comes back as another", e->status);
    trp_buf_free(&b);
}

static int take_ends(const uint8_t *data, size_t size)
{
    struct trp_view v;
    struct trp_end e;
    uint32_t count, n = 0;
    int rc = trp_ends_open(data, size, &v, &count);
    if (rc < 0)
        return rc;
    while ((rc = trp_ends_next(&v, &e)) > 0) {
        touch(e.extra, e.extra_size);
        touch(e.added, e.nadded * sizeof(struct trp_added_record));
        end_again(&e);
        n++;
    }
    FUZZ_CHECK(rc == 0 && n == count, "%u ends of %u, then %d", n, count, rc);
    return 0;
}

static int take_kill(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    trp_attempt_id attempt;
    enum trp_kill_mode mode;
    int rc = trp_kill_get(data, size, &attempt, &mode);
    if (rc < 0)
        return rc;
    trp_kill_put(&b, attempt, mode);
    same("KILL", &b, data, size);
    return 0;
}

static int take_forget(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    uint32_t stage;
    int rc = trp_number_get(data, size, TRP_MSG_FORGET, &stage);
    if (rc < 0)
        return rc;
    trp_number_put(&b, TRP_MSG_FORGET, stage);
    same("FORGET", &b, data, size);
    return 0;
}

static int take_sync(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_sync s;
    int rc = trp_sync_get(data, size, &s);
    if (rc < 0)
        return rc;
    trp_sync_put(&b, &s);
    same("SYNC", &b, data, size);
    struct trp_copy_ask ask;
    if (s.kind != TRP_SYNC_COPY || trp_copy_ask_get(s.message, s.size, &ask) < 0)
        return 0;
    trp_copy_ask_put(&b, &ask);
    same("a SYNC about a copy", &b, s.message, s.size);
    return 0;
}

static void take_copy_from(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    uint32_t from;
    char *endpoint;
    if (trp_copy_from_get(data, size, &from, &endpoint) < 0)
        return;
    trp_copy_from_put(&b, from, endpoint);
    free(endpoint);
    same("where a copy is", &b, data, size);
}

static int take_synced(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_synced s;
    int rc = trp_synced_get(data, size, &s);
    if (rc < 0)
        return rc;
    trp_synced_put(&b, &s);
    for (uint32_t i = 0; i < s.count; i++) {
        size_t n;
        const uint8_t *m = trp_get_bytes(&s.counted, &n);
        trp_put_bytes(&b, m, n);
        take_copy_from(m, n);
    }
    same("SYNCED", &b, data, size);
    return 0;
}

static int take_inputs(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_stage_inputs *in;
    int rc = trp_stage_inputs_get(data, size, &in);
    if (rc < 0)
        return rc;
    trp_stage_inputs_put(&b, in);
    trp_stage_inputs_free(in);
    same("INPUTS", &b, data, size);
    return 0;
}

static int take_records(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_view v;
    trp_attempt_id attempt;
    uint64_t records;
    int rc = trp_records_open(data, size, &v);
    if (rc < 0 || size == 1)
        return rc;
    while (trp_records_next(&v, &attempt, &records))
        trp_records_put(&b, attempt, records);
    same("RECORDS", &b, data, size);
    return 0;
}

static int take_shutdown(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    bool over;
    int rc = trp_shutdown_get(data, size, &over);
    if (rc < 0)
        return rc;
    trp_shutdown_put(&b, over);
    same("SHUTDOWN", &b, data, size);
    return 0;
}

static int take_order(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_files_order o;
    int rc = trp_files_order_get(data, size, &o);
    if (rc < 0)
        return rc;
    trp_files_order_put(&b, &o);
    free(o.parent);
    same("FILES", &b, data, size);
    return 0;
}

static int take_location(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_location l;
    char *endpoint;
    int rc = trp_location_get(data, size, &l, &endpoint);
    if (rc < 0)
        return rc;
    trp_location_put(&b, &l, endpoint);
    trp_location_clear(&l);
    free(endpoint);
    same("LOCATION", &b, data, size);
    return 0;
}

static int take_servers(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_view v = trp_message_view(data, size, TRP_MSG_SERVERS);
    uint32_t location, n;
    char **endpoints;
    int rc = 0;
    trp_servers_begin(&b);
    while (rc >= 0 && (rc = trp_servers_next(&v, &location, &endpoints, &n)) > 0) {
        trp_servers_add(&b, location, (const char *const *)endpoints, n);
        trp_endpoints_free(endpoints, n);
    }
    if (rc < 0)
        trp_buf_free(&b);
    else
        same("SERVERS", &b, data, size);
    return rc;
}

static int take_blocks(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_view v;
    struct trp_block_state s;
    uint32_t problem, count;
    int rc = trp_blocks_open(data, size, &v, &problem, &count);
    if (rc < 0)
        return rc;
    trp_blocks_begin(&b, problem, count);
    while ((rc = trp_blocks_next(&v, &s)) > 0)
        trp_block_state_put(&b, &s);
    if (rc == 0)
        same("BLOCKS", &b, data, size);
    trp_buf_free(&b);
    return rc;
}

static int take_move(const uint8_t *data, size_t size)
{
    struct trp_move_output *v;
    struct trp_buf b = {0};
    uint32_t n;
    int rc = trp_move_get(data, size, &v, &n);
    if (rc < 0)
        return rc;
    trp_move_put(&b, v, n);
    same("MOVE", &b, data, size);
    free(v);
    return 0;
}

static int take_moved(const uint8_t *data, size_t size)
{
    struct trp_moved_output m;
    struct trp_buf b = {0};
    struct trp_view v = trp_message_view(data, size, TRP_MSG_MOVED);
    bool last;
    char *text;
    int rc;
    trp_moved_begin(&b);
    while ((rc = trp_moved_next(&v, &m, &last, &text)) > 0)
        trp_moved_add(&b, &m);
    if (rc == 0) {
        trp_moved_finish(&b, last, text);
        free(text);
        same("MOVED", &b, data, size);
    }
    trp_buf_free(&b);
    return rc;
}

static int take_unpersist(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    uint32_t dataset;
    int rc = trp_number_get(data, size, TRP_MSG_UNPERSIST, &dataset);
    if (rc < 0)
        return rc;
    trp_number_put(&b, TRP_MSG_UNPERSIST, dataset);
    same("UNPERSIST", &b, data, size);
    return 0;
}

static int take_drop(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    uint32_t *datasets, n;
    int rc = trp_drop_get(data, size, &datasets, &n);
    if (rc < 0)
        return rc;
    trp_drop_put(&b, datasets, n);
    free(datasets);
    same("DROP", &b, data, size);
    return 0;
}

/* What ends carry as bytes of their own. */
static void take_parts(const uint8_t *data, size_t size)
{
    struct trp_buf b = {0};
    struct trp_fetch_end f;
    uint64_t *sizes;
    uint32_t n;
    if (trp_fetch_end_get(data, size, &f) == 0) {
        trp_fetch_end_put(&b, &f);
        free(f.more);
        same("a fetch failure", &b, data, size);
    }
    if (trp_sizes_get(data, size, &sizes, &n) < 0)
        return;
    trp_sizes_put(&b, sizes, n); /* a size may be written in more than one way */
    uint64_t *again = NULL;
    uint32_t m = 0;
    FUZZ_CHECK(trp_sizes_get(b.data, b.size, &again, &m) == 0 && m == n &&
                   memcmp(sizes, again, n * sizeof(*sizes)) == 0,
               "%u sizes come back as %u, or others", n, m);
    free(sizes);
    free(again);
    trp_buf_free(&b);
}

static int take(const uint8_t *data, size_t size)
{
    switch (trp_message_kind_of(data, size)) {
    case TRP_MSG_STAGE:
        return take_stage(data, size);
    case TRP_MSG_LAUNCH:
        return take_launches(data, size);
    case TRP_MSG_ENDS:
        return take_ends(data, size);
    case TRP_MSG_KILL:
        return take_kill(data, size);
    case TRP_MSG_FORGET:
        return take_forget(data, size);
    case TRP_MSG_SYNC:
        return take_sync(data, size);
    case TRP_MSG_SYNCED:
        return take_synced(data, size);
    case TRP_MSG_INPUTS:
        return take_inputs(data, size);
    case TRP_MSG_RECORDS:
        return take_records(data, size);
    case TRP_MSG_FILES:
        return take_order(data, size);
    case TRP_MSG_LOCATION:
        return take_location(data, size);
    case TRP_MSG_SERVERS:
        return take_servers(data, size);
    case TRP_MSG_BLOCKS:
        return take_blocks(data, size);
    case TRP_MSG_UNPERSIST:
        return take_unpersist(data, size);
    case TRP_MSG_DROP:
        return take_drop(data, size);
    case TRP_MSG_SHUTDOWN:
        return take_shutdown(data, size);
    case TRP_MSG_MOVE:
        return take_move(data, size);
    case TRP_MSG_MOVED:
        return take_moved(data, size);
    }
    return take_command(data, size); /* a body without its message */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    take_parts(data, size);
    int rc = take(data, size);
    FUZZ_CHECK(rc == 0 || rc == TRP_EPROTO, "a message's verdict is %d", rc);
    return 0;
}
