/*
 * The messages' codecs.
 *
 * Rare messages (STAGE, KILL, …) are written field by field; LAUNCH and ENDS are a head
 * with a count and packed records (launches.h). A batch is checked whole when it is
 * opened, by one walk over its records' sizes (about 2 ns each): a broken batch is
 * refused before any of its entries was acted on. A decoder that fails frees what it
 * had copied, so the caller frees nothing after an error.
 */
#include "wire/message.h"

#include <stdlib.h>
#include <string.h>

/* Structs hold what they own as const, for their readers' sake. */
static void release(const void *p)
{
    free((void *)(uintptr_t)p);
}

enum trp_message_kind trp_message_kind_of(const void *p, size_t n)
{
    const uint8_t *kind = (const uint8_t *)p;
    if (n == 0 || *kind < TRP_MSG_STAGE || *kind > TRP_MSG_DROP)
        return (enum trp_message_kind)0;
    return (enum trp_message_kind) * kind;
}

struct trp_view trp_message_view(const void *p, size_t n, enum trp_message_kind kind)
{
    struct trp_view v = trp_view_of(p, n);
    if (trp_get_u8(&v) != kind)
        v.bad = true;
    return v;
}

/* ---- STAGE --------------------------------------------------------------------- */

void trp_stage_message_put(struct trp_buf *b, const struct trp_stage_message *m)
{
    trp_put_u8(b, TRP_MSG_STAGE);
    trp_put_u8(b, (uint8_t)m->work);
    trp_put_u32(b, m->stage.n);
    trp_put_u32(b, m->stage_attempt);
    trp_put_u8(b, m->whole);
    trp_put_u32(b, m->ntasks);
    trp_put_u32(b, m->task_cpus);
    trp_put_s64(b, m->timeout_ns);
    trp_put_s64(b, m->records_ns);
    trp_put_u64(b, m->memory);
    trp_put_text(b, m->name);
    trp_put_text(b, m->profile);
    trp_put_bytes(b, m->body, m->body_size);
}

int trp_stage_message_get(const void *p, size_t n, struct trp_stage_message *ret)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_STAGE);
    struct trp_stage_message m = {0};
    uint8_t work = trp_get_u8(&v);
    m.work = (enum trp_work_kind)work;
    m.stage.n = trp_get_u32(&v);
    m.stage_attempt = trp_get_u32(&v);
    m.whole = trp_get_flag(&v);
    m.ntasks = trp_get_u32(&v);
    m.task_cpus = trp_get_u32(&v);
    m.timeout_ns = trp_get_s64(&v);
    m.records_ns = trp_get_s64(&v);
    m.memory = trp_get_u64(&v);
    m.name = trp_get_text(&v);
    m.profile = trp_get_text(&v);
    const uint8_t *body = trp_get_bytes(&v, &m.body_size);
    bool good = trp_view_end(&v) && m.timeout_ns >= 0 && m.records_ns >= 0 &&
                (work == TRP_WORK_FUNCTION || work == TRP_WORK_COMMAND);
    if (good && m.body_size > 0) {
        uint8_t *copy = (uint8_t *)malloc(m.body_size);
        if (copy)
            memcpy(copy, body, m.body_size);
        m.body = copy;
    }
    if (!good || !m.name || !m.profile || (m.body_size > 0 && !m.body)) {
        trp_stage_message_free(&m);
        return good ? TRP_ENOMEM : TRP_EPROTO;
    }
    *ret = m;
    return 0;
}

void trp_stage_message_free(struct trp_stage_message *m)
{
    release(m->name);
    release(m->profile);
    release(m->body);
    *m = (struct trp_stage_message){0};
}

/* ---- a command ----------------------------------------------------------------- */

static void put_list(struct trp_buf *b, const char *const *list, uint32_t n)
{
    trp_put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        trp_put_text(b, list[i]);
}

/* Pointers, their NULL and all texts in one block; NULL with *ret_n 0 on failure. */
static const char *const *get_list(struct trp_view *v, uint32_t *ret_n)
{
    uint32_t n = trp_get_count(v, sizeof(uint32_t));
    size_t text = 0, size;
    struct trp_view ahead = *v;
    for (uint32_t i = 0; i < n; i++) {
        trp_get_bytes(&ahead, &size);
        text += size + 1;
    }
    *ret_n = 0;
    v->bad = ahead.bad;
    if (v->bad)
        return NULL;
    const char **list = (const char **)malloc((n + (size_t)1) * sizeof *list + text);
    if (!list)
        return NULL;
    char *to = (char *)(list + n + 1);
    bool nul_inside = false;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *from = trp_get_bytes(v, &size);
        list[i] = to;
        if (size > 0)
            memcpy(to, from, size);
        nul_inside |= strnlen(to, size) < size;
        to[size] = 0;
        to += size + 1;
    }
    list[n] = NULL;
    v->bad = nul_inside;
    *ret_n = n;
    return list;
}

void trp_command_put(struct trp_buf *b, const struct trp_command *c)
{
    put_list(b, c->argv, c->nargv);
    put_list(b, c->env, c->nenv);
    put_list(b, c->resource_env, c->nresource_env);
    trp_put_text(b, c->cwd);
    trp_put_text(b, c->base);
    trp_put_text(b, c->log_dir);
    trp_put_text(b, c->run);
    trp_put_text(b, c->run_dir);
    trp_put_u8(b, c->one_log);
    put_list(b, c->outputs, c->noutputs);
    trp_put_s64(b, c->outputs_wait_ns);
}

int trp_command_get(const void *p, size_t n, struct trp_command *ret)
{
    struct trp_view v = trp_view_of(p, n);
    struct trp_command c = {0};
    c.argv = get_list(&v, &c.nargv);
    c.env = get_list(&v, &c.nenv);
    c.resource_env = get_list(&v, &c.nresource_env);
    c.cwd = trp_get_text(&v);
    c.base = trp_get_text(&v);
    c.log_dir = trp_get_text(&v);
    c.run = trp_get_text(&v);
    c.run_dir = trp_get_text(&v);
    c.one_log = trp_get_flag(&v);
    c.outputs = get_list(&v, &c.noutputs);
    c.outputs_wait_ns = trp_get_s64(&v);
    bool all = c.argv && c.env && c.resource_env && c.outputs && c.cwd && c.base &&
               c.log_dir && c.run && c.run_dir;
    bool good = trp_view_end(&v) && c.outputs_wait_ns >= 0 && (!all || c.nargv > 0) &&
                c.nresource_env % 2 == 0;
    if (!good || !all) {
        trp_command_free(&c);
        return good ? TRP_ENOMEM : TRP_EPROTO;
    }
    *ret = c;
    return 0;
}

void trp_command_free(struct trp_command *c)
{
    release(c->argv);
    release(c->env);
    release(c->resource_env);
    release(c->outputs);
    release(c->cwd);
    release(c->base);
    release(c->log_dir);
    release(c->run);
    release(c->run_dir);
    *c = (struct trp_command){0};
}

/* ---- LAUNCH and ENDS (records in launches.h) ------------------------------------ */

static void batch_begin(struct trp_buf *b, enum trp_message_kind kind)
{
    const struct trp_batch_head head = {.kind = (uint8_t)kind};
    trp_buf_clear(b);
    trp_put_raw(b, &head, sizeof head);
}

void trp_batch_finish(struct trp_buf *b)
{
    struct trp_batch_head head;
    if (b->failed)
        return;
    memcpy(&head, b->data, sizeof head);
    head.count = htole32(head.count);
    memcpy(b->data, &head, sizeof head);
}

/* The head: its kind, and a count of records of at least `min_size`. */
static struct trp_view batch_open(const void *p, size_t n, enum trp_message_kind kind,
                                  size_t min_size, uint32_t *ret_count)
{
    struct trp_view v = trp_message_view(p, n, kind);
    const uint8_t *zero = trp_get_raw(&v, 3);
    if (!zero || zero[0] | zero[1] | zero[2])
        v.bad = true;
    *ret_count = trp_get_count(&v, min_size);
    if (*ret_count == 0)
        v.bad = true;
    return v;
}

void trp_launch_begin(struct trp_buf *b)
{
    batch_begin(b, TRP_MSG_LAUNCH);
}

int trp_launch_open(const void *p, size_t n, struct trp_view *ret_v,
                    uint32_t *ret_count)
{
    uint32_t count, found = 0;
    struct trp_view v =
        batch_open(p, n, TRP_MSG_LAUNCH, sizeof(struct trp_launch_record), &count);
    struct trp_view all = v;
    struct trp_launch l;
    int rc = v.bad ? TRP_EPROTO : 1;
    while (rc > 0 && (rc = trp_launch_next(&all, &l)) > 0)
        found++;
    if (rc < 0 || found != count)
        return TRP_EPROTO;
    *ret_v = v;
    *ret_count = count;
    return 0;
}

void trp_ends_begin(struct trp_buf *b)
{
    batch_begin(b, TRP_MSG_ENDS);
}

int trp_ends_open(const void *p, size_t n, struct trp_view *ret_v, uint32_t *ret_count)
{
    uint32_t count, found = 0;
    struct trp_view v =
        batch_open(p, n, TRP_MSG_ENDS, sizeof(struct trp_end_record), &count);
    struct trp_view all = v;
    struct trp_end e;
    int rc = v.bad ? TRP_EPROTO : 1;
    while (rc > 0 && (rc = trp_ends_next(&all, &e)) > 0)
        found++;
    if (rc < 0 || found != count)
        return TRP_EPROTO;
    *ret_v = v;
    *ret_count = count;
    return 0;
}

/* ---- KILL, FORGET, SHUTDOWN ------------------------------------------------------ */

void trp_kill_put(struct trp_buf *b, trp_attempt_id attempt, enum trp_kill_mode mode)
{
    trp_put_u8(b, TRP_MSG_KILL);
    trp_put_u8(b, (uint8_t)mode);
    trp_put_u64(b, attempt.n);
}

int trp_kill_get(const void *p, size_t n, trp_attempt_id *ret_attempt,
                 enum trp_kill_mode *ret_mode)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_KILL);
    uint8_t mode = trp_get_u8(&v);
    trp_attempt_id attempt = {trp_get_u64(&v)};
    if (!trp_view_end(&v) || mode > TRP_KILL_SOFT)
        return TRP_EPROTO;
    *ret_attempt = attempt;
    *ret_mode = (enum trp_kill_mode)mode;
    return 0;
}

void trp_number_put(struct trp_buf *b, enum trp_message_kind kind, uint32_t number)
{
    trp_put_u8(b, (uint8_t)kind);
    trp_put_u32(b, number);
}

int trp_number_get(const void *p, size_t n, enum trp_message_kind kind,
                   uint32_t *ret_number)
{
    struct trp_view v = trp_message_view(p, n, kind);
    uint32_t number = trp_get_u32(&v);
    if (!trp_view_end(&v))
        return TRP_EPROTO;
    *ret_number = number;
    return 0;
}

void trp_shutdown_put(struct trp_buf *b, bool over)
{
    trp_put_u8(b, TRP_MSG_SHUTDOWN);
    trp_put_u8(b, over);
}

int trp_shutdown_get(const void *p, size_t n, bool *ret_over)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_SHUTDOWN);
    bool over = trp_get_flag(&v);
    if (!trp_view_end(&v))
        return TRP_EPROTO;
    *ret_over = over;
    return 0;
}

/* ---- SYNC, SYNCED --------------------------------------------------------------- */

void trp_sync_put(struct trp_buf *b, const struct trp_sync *s)
{
    trp_put_u8(b, TRP_MSG_SYNC);
    trp_put_u8(b, (uint8_t)s->kind);
    trp_put_u64(b, s->attempt.n);
    trp_put_u32(b, s->epoch);
    trp_put_bytes(b, s->message, s->size);
}

int trp_sync_get(const void *p, size_t n, struct trp_sync *ret)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_SYNC);
    struct trp_sync s = {0};
    size_t size = 0;
    uint8_t kind = trp_get_u8(&v);
    s.kind = (enum trp_sync_kind)kind;
    s.attempt.n = trp_get_u64(&v);
    s.epoch = trp_get_u32(&v);
    s.message = trp_get_bytes(&v, &size);
    s.size = (uint32_t)size;
    if (!trp_view_end(&v) || kind > TRP_SYNC_COPY ||
        (size && s.kind != TRP_SYNC_ALL_GATHER && s.kind != TRP_SYNC_COPY))
        return TRP_EPROTO;
    *ret = s;
    return 0;
}

void trp_synced_put(struct trp_buf *b, const struct trp_synced *s)
{
    trp_put_u8(b, TRP_MSG_SYNCED);
    trp_put_u64(b, s->attempt.n);
    trp_put_u32(b, s->epoch);
    trp_put_u32(b, (uint32_t)s->status);
    trp_put_bytes(b, s->text, s->text_size);
    trp_put_u32(b, s->count);
}

int trp_synced_get(const void *p, size_t n, struct trp_synced *ret)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_SYNCED);
    struct trp_synced s = {0};
    size_t size = 0;
    s.attempt.n = trp_get_u64(&v);
    s.epoch = trp_get_u32(&v);
    s.status = (int32_t)trp_get_u32(&v);
    s.text = trp_get_bytes(&v, &size);
    s.text_size = (uint32_t)size;
    s.count = trp_get_count(&v, 4);
    s.counted = v;
    for (uint32_t i = 0; i < s.count; i++)
        trp_get_bytes(&v, &size);
    if (!trp_view_end(&v))
        return TRP_EPROTO;
    *ret = s;
    return 0;
}

/* ---- RECORDS ------------------------------------------------------------------- */

enum { RECORDS_ENTRY = 16 };

void trp_records_put(struct trp_buf *b, trp_attempt_id attempt, uint64_t records)
{
    if (b->size == 0)
        trp_put_u8(b, TRP_MSG_RECORDS);
    trp_put_u64(b, attempt.n);
    trp_put_u64(b, records);
}

int trp_records_open(const void *p, size_t n, struct trp_view *ret_v)
{
    *ret_v = trp_message_view(p, n, TRP_MSG_RECORDS);
    return ret_v->bad || (n - 1) % RECORDS_ENTRY ? TRP_EPROTO : 0;
}

bool trp_records_next(struct trp_view *v, trp_attempt_id *ret_attempt,
                      uint64_t *ret_records)
{
    if (v->at == v->end)
        return false;
    ret_attempt->n = trp_get_u64(v);
    *ret_records = trp_get_u64(v);
    return true;
}
