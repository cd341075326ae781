/*
 * The entries of LAUNCH and ENDS: part of wire/message.h, never included by itself.
 *
 * Inline, because a launch and an end are put and taken at millions a second: one room
 * check, one copy of a packed record, then the bytes that follow it. The count in the
 * message's head is in the machine's order until _finish.
 */
#ifndef TRP_WIRE_LAUNCHES_H
#define TRP_WIRE_LAUNCHES_H

/* Both messages begin so. */
struct trp_batch_head {
    uint8_t kind;
    uint8_t zero[3];
    uint32_t count;
} __attribute__((packed));

struct trp_launch_record { /* then resources, then extra */
    uint64_t attempt;
    uint32_t stage, task;
    uint16_t number;
    uint8_t queued, has_item;
    uint32_t seen;
    uint32_t resources_size, extra_size;
} __attribute__((packed));

enum { TRP_END_SHORT = 1, TRP_END_LONG = 2, TRP_END_DATA = 3 };
enum { TRP_END_ADDED = 1, TRP_END_IN_FILE = 2 }; /* of what follows in addition */

struct trp_end_record { /* all of a TRP_END_SHORT */
    uint64_t attempt;
    uint8_t form, status;
    uint16_t more; /* TRP_END_ADDED … */
    uint32_t code; /* short: CPU time in ns */
    uint64_t duration_ns;
} __attribute__((packed));

struct trp_end_rest { /* follows in the other two; then extra */
    uint64_t cpu_ns, peak_kib;
    uint32_t limit_mib; /* beyond 32 bits: all ones */
    uint32_t extra_size;
    uint64_t records_in, records_out, bytes_in, bytes_out;
} __attribute__((packed));

struct trp_end_data_record { /* follows in a TRP_END_DATA */
    uint64_t v[sizeof(struct trp_end_data) / 8];
} __attribute__((packed));

struct trp_end_file_record { /* follows with TRP_END_IN_FILE */
    uint64_t size, hash;
} __attribute__((packed));

struct trp_added_record { /* follow with TRP_END_ADDED, behind their number (32 bits) */
    uint32_t accumulator, maker, partition;
    uint64_t value;
} __attribute__((packed));

_Static_assert(sizeof(struct trp_launch_record) == 32, "a launch takes 32 bytes");
_Static_assert(sizeof(struct trp_end_record) == 24, "a plain end takes 24 bytes");
_Static_assert(sizeof(struct trp_end_rest) == 56, "an end takes 80 bytes");

static inline void trp_batch_count(struct trp_buf *b)
{
    uint32_t count;
    uint8_t *at = b->data + offsetof(struct trp_batch_head, count);
    memcpy(&count, at, sizeof count);
    count++;
    memcpy(at, &count, sizeof count);
}

static inline void trp_launch_put(struct trp_buf *b, const struct trp_launch *l)
{
    size_t more = (size_t)l->resources_size + l->extra_size;
    uint8_t *p = trp_buf_reserve(b, sizeof(struct trp_launch_record) + more);
    if (!p)
        return;
    const struct trp_launch_record r = {
        .attempt = htole64(l->attempt.n),
        .stage = htole32(l->stage.n),
        .task = htole32(l->task),
        .number = htole16(l->number),
        .queued = l->queued != 0,
        .has_item = l->has_item != 0,
        .seen = htole32(l->seen),
        .resources_size = htole32(l->resources_size),
        .extra_size = htole32(l->extra_size),
    };
    memcpy(p, &r, sizeof r);
    p += sizeof r;
    if (l->resources_size > 0)
        memcpy(p, l->resources, l->resources_size);
    if (l->extra_size > 0)
        memcpy(p + l->resources_size, l->extra, l->extra_size);
    trp_batch_count(b);
}

static inline int trp_launch_next(struct trp_view *v, struct trp_launch *ret)
{
    if (v->at == v->end)
        return v->bad ? TRP_EPROTO : 0;
    struct trp_launch_record r;
    const uint8_t *p = trp_get_raw(v, sizeof r);
    if (!p)
        return TRP_EPROTO;
    memcpy(&r, p, sizeof r);
    *ret = (struct trp_launch){
        .attempt = {le64toh(r.attempt)},
        .stage = {le32toh(r.stage)},
        .task = le32toh(r.task),
        .number = le16toh(r.number),
        .queued = r.queued,
        .has_item = r.has_item,
        .seen = le32toh(r.seen),
        .resources_size = le32toh(r.resources_size),
        .extra_size = le32toh(r.extra_size),
    };
    ret->resources = trp_get_raw(v, ret->resources_size);
    ret->extra = trp_get_raw(v, ret->extra_size);
    return v->bad || r.queued > 1 || r.has_item > 1 ? TRP_EPROTO : 1;
}

static inline bool trp_end_is_short(const struct trp_end *e)
{
    return e->status == TRP_END_SUCCESS && e->extra_size == 0 && e->code == 0 &&
           (uint64_t)e->cpu_ns <= UINT32_MAX && (e->peak_kib | e->limit_mib) == 0 &&
           (e->records_in | e->records_out | e->bytes_in | e->bytes_out) == 0 &&
           !e->has_data && !e->nadded && !e->in_file;
}

static inline uint8_t *trp_end_file_put(uint8_t *p, const struct trp_end *e)
{
    const struct trp_end_file_record r = {htole64(e->file.size), htole64(e->file.hash)};
    memcpy(p, &r, sizeof r);
    return p + sizeof r;
}

static inline uint8_t *trp_end_added_put(uint8_t *p, const struct trp_end *e)
{
    const uint32_t n = htole32(e->nadded);
    memcpy(p, &n, sizeof n);
    p += sizeof n;
    memcpy(p, e->added, e->nadded * sizeof(struct trp_added_record));
    return p + e->nadded * sizeof(struct trp_added_record);
}

static inline bool trp_end_added_get(struct trp_view *v, struct trp_end *e)
{
    e->nadded = trp_get_count(v, sizeof(struct trp_added_record));
    e->added = trp_get_raw(v, e->nadded * sizeof(struct trp_added_record));
    return e->nadded > 0;
}

/* Entry i of those that travel. */
static inline struct trp_added trp_added_at(const uint8_t *added, uint32_t i)
{
    struct trp_added_record r;
    memcpy(&r, added + i * sizeof r, sizeof r);
    return (struct trp_added){le32toh(r.accumulator), le32toh(r.maker),
                              le32toh(r.partition), (int64_t)le64toh(r.value)};
}

/* Appends one. */
static inline void trp_added_put(struct trp_buf *b, const struct trp_added *a)
{
    const struct trp_added_record r = {htole32(a->accumulator), htole32(a->maker),
                                       htole32(a->partition),
                                       htole64((uint64_t)a->value)};
    trp_put_raw(b, &r, sizeof r);
}

/* All of its members are of 64 bits. */
static inline void trp_end_data_put(uint8_t *p, const struct trp_end_data *d)
{
    struct trp_end_data_record r;
    memcpy(&r, d, sizeof r);
    for (size_t i = 0; i < sizeof r / 8; i++)
        r.v[i] = htole64(r.v[i]);
    memcpy(p, &r, sizeof r);
}

static inline bool trp_end_data_get(struct trp_view *v, struct trp_end_data *ret)
{
    struct trp_end_data_record r;
    const uint8_t *p = trp_get_raw(v, sizeof r);
    if (!p)
        return false;
    memcpy(&r, p, sizeof r);
    for (size_t i = 0; i < sizeof r / 8; i++)
        r.v[i] = le64toh(r.v[i]);
    memcpy(ret, &r, sizeof r);
    return true;
}

static inline void trp_ends_put(struct trp_buf *b, const struct trp_end *e)
{
    bool is_short = trp_end_is_short(e);
    struct trp_end_record r = {
        .attempt = htole64(e->attempt.n),
        .form = is_short      ? TRP_END_SHORT
                : e->has_data ? TRP_END_DATA
                              : TRP_END_LONG,
        .status = e->status,
        .more = htole16((uint16_t)((e->nadded ? TRP_END_ADDED : 0) |
                                   (e->in_file ? TRP_END_IN_FILE : 0))),
        .code = htole32(is_short ? (uint32_t)e->cpu_ns : (uint32_t)e->code),
        .duration_ns = htole64((uint64_t)e->duration_ns),
    };
    struct trp_end_rest rest;
    size_t data = e->has_data ? sizeof(struct trp_end_data_record) : 0;
    size_t file = e->in_file ? sizeof(struct trp_end_file_record) : 0;
    size_t added = e->nadded ? 4 + e->nadded * sizeof(struct trp_added_record) : 0;
    size_t more =
        is_short ? 0 : sizeof rest + data + file + added + (size_t)e->extra_size;
    uint8_t *p = trp_buf_reserve(b, sizeof r + more);
    if (!p)
        return;
    memcpy(p, &r, sizeof r);
    trp_batch_count(b);
    if (is_short)
        return;
    rest = (struct trp_end_rest){
        .cpu_ns = htole64((uint64_t)e->cpu_ns),
        .peak_kib = htole64((uint64_t)e->peak_kib),
        .limit_mib = htole32(
            (uint64_t)e->limit_mib > UINT32_MAX ? UINT32_MAX : (uint32_t)e->limit_mib),
        .extra_size = htole32(e->extra_size),
        .records_in = htole64(e->records_in),
        .records_out = htole64(e->records_out),
        .bytes_in = htole64(e->bytes_in),
        .bytes_out = htole64(e->bytes_out),
    };
    p += sizeof r;
    memcpy(p, &rest, sizeof rest);
    p += sizeof rest;
    if (data)
        trp_end_data_put(p, &e->data);
    p += data;
    if (file)
        p = trp_end_file_put(p, e);
    if (added)
        p = trp_end_added_put(p, e);
    if (e->extra_size > 0)
        memcpy(p, e->extra, e->extra_size);
}

/* Its numbers are those of something that can have been. */
static inline bool trp_end_can_be(const struct trp_end *e)
{
    uint64_t most = e->records_in | e->records_out | e->bytes_in | e->bytes_out;
    const uint64_t *data = (const uint64_t *)&e->data;
    for (size_t i = 0; e->has_data && i < sizeof e->data / 8; i++)
        most |= data[i];
    return most < TRP_LARGEST && e->cpu_ns >= 0 &&
           e->cpu_ns / TRP_CORES_MOST <= e->duration_ns + TRP_SECOND &&
           e->peak_kib >= 0 && (uint64_t)e->peak_kib < TRP_LARGEST / 1024;
}

/* The rest of a TRP_END_LONG whose head is read. */
static inline int trp_ends_rest(struct trp_view *v, uint16_t more, struct trp_end *e)
{
    struct trp_end_rest rest;
    struct trp_end_file_record file;
    const uint8_t *p = trp_get_raw(v, sizeof rest);
    if (!p)
        return TRP_EPROTO;
    memcpy(&rest, p, sizeof rest);
    e->cpu_ns = (int64_t)le64toh(rest.cpu_ns);
    e->peak_kib = (int64_t)le64toh(rest.peak_kib);
    e->limit_mib = le32toh(rest.limit_mib);
    e->extra_size = le32toh(rest.extra_size);
    e->records_in = le64toh(rest.records_in);
    e->records_out = le64toh(rest.records_out);
    e->bytes_in = le64toh(rest.bytes_in);
    e->bytes_out = le64toh(rest.bytes_out);
    if (e->has_data && !trp_end_data_get(v, &e->data))
        return TRP_EPROTO;
    e->in_file = more & TRP_END_IN_FILE;
    if (e->in_file) {
        p = trp_get_raw(v, sizeof file);
        if (!p)
            return TRP_EPROTO;
        memcpy(&file, p, sizeof file);
        e->file = (struct trp_result_file){le64toh(file.size), le64toh(file.hash)};
    }
    if (more & TRP_END_ADDED && !trp_end_added_get(v, e))
        return TRP_EPROTO;
    e->extra = trp_get_raw(v, e->extra_size);
    return v->bad || !trp_end_can_be(e) ? TRP_EPROTO : 1;
}

static inline int trp_ends_next(struct trp_view *v, struct trp_end *ret)
{
    if (v->at == v->end)
        return v->bad ? TRP_EPROTO : 0;
    struct trp_end_record r;
    const uint8_t *p = trp_get_raw(v, sizeof r);
    if (!p)
        return TRP_EPROTO;
    memcpy(&r, p, sizeof r);
    *ret = (struct trp_end){
        .attempt = {le64toh(r.attempt)},
        .status = r.status,
        .duration_ns = (int64_t)le64toh(r.duration_ns),
    };
    bool told = r.status <= TRP_END_PLATFORM || r.status == TRP_END_MISTAKE ||
                r.status == TRP_END_FETCH || r.status == TRP_END_OUTPUT;
    uint16_t more = le16toh(r.more);
    if (more & ~(TRP_END_ADDED | TRP_END_IN_FILE) || !told ||
        (uint64_t)ret->duration_ns > (uint64_t)TRP_LONGEST_NS ||
        r.status == TRP_END_LOST || (more && r.status != TRP_END_SUCCESS))
        return TRP_EPROTO;
    if (r.form == TRP_END_SHORT) {
        ret->cpu_ns = le32toh(r.code);
        return r.status == TRP_END_SUCCESS && !more ? 1 : TRP_EPROTO;
    }
    if (r.form != TRP_END_LONG && r.form != TRP_END_DATA)
        return TRP_EPROTO;
    ret->has_data = r.form == TRP_END_DATA;
    ret->code = (int32_t)le32toh(r.code);
    return trp_ends_rest(v, more, ret);
}

#endif
