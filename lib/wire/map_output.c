/* Codecs of what is said of map outputs: counts are checked before anything is taken
 * for them, and a decoder that fails frees what it had copied. */
#include "wire/map_output.h"

#include <stdlib.h>
#include <string.h>

#include "wire/message.h"

/* ---- locations ----------------------------------------------------------------- */

enum { LOCATION_MIN = 3 * sizeof(uint32_t) + 2 * sizeof(uint64_t) };

static void put_location(struct trp_buf *b, const struct trp_location *l)
{
    trp_put_u32(b, l->number);
    trp_put_text(b, l->host);
    trp_put_text(b, l->folder);
    trp_put_u64(b, l->dev);
    trp_put_u64(b, l->ino);
}

static bool get_location(struct trp_view *v, struct trp_location *ret)
{
    ret->number = trp_get_u32(v);
    ret->host = trp_get_text(v);
    ret->folder = trp_get_text(v);
    ret->dev = trp_get_u64(v);
    ret->ino = trp_get_u64(v);
    return !v->bad && ret->host && ret->folder;
}

void trp_location_clear(struct trp_location *l)
{
    free(l->host);
    free(l->folder);
    *l = (struct trp_location){.number = TRP_NONE};
}

void trp_location_put(struct trp_buf *b, const struct trp_location *l,
                      const char *endpoint)
{
    trp_put_u8(b, TRP_MSG_LOCATION);
    put_location(b, l);
    trp_put_text(b, endpoint);
}

int trp_location_get(const void *p, size_t n, struct trp_location *ret,
                     char **ret_endpoint)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_LOCATION);
    struct trp_location l = {0};
    char *endpoint = get_location(&v, &l) ? trp_get_text(&v) : NULL;
    if (endpoint && trp_view_end(&v)) {
        *ret = l;
        *ret_endpoint = endpoint;
        return 0;
    }
    int rc = v.bad || endpoint ? TRP_EPROTO : TRP_ENOMEM;
    free(endpoint);
    trp_location_clear(&l);
    return rc;
}

void trp_files_order_put(struct trp_buf *b, const struct trp_files_order *o)
{
    trp_put_u8(b, TRP_MSG_FILES);
    trp_put_text(b, o->parent);
    trp_put_u8(b, o->in_run);
    trp_put_u8(b, o->serves);
    trp_put_u8(b, o->here_only);
    trp_put_u8(b, o->opens);
    trp_put_u8(b, o->compress);
}

int trp_files_order_get(const void *p, size_t n, struct trp_files_order *ret)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_FILES);
    struct trp_files_order o = {.parent = trp_get_text(&v)};
    o.in_run = trp_get_flag(&v);
    o.serves = trp_get_flag(&v);
    o.here_only = trp_get_flag(&v);
    o.opens = trp_get_flag(&v);
    o.compress = trp_get_u8(&v);
    v.bad = v.bad || o.compress > TRP_COMPRESS_MAX;
    if (o.parent && trp_view_end(&v)) {
        *ret = o;
        return 0;
    }
    free(o.parent);
    return v.bad || o.parent ? TRP_EPROTO : TRP_ENOMEM;
}

void trp_servers_begin(struct trp_buf *b)
{
    trp_buf_clear(b);
    trp_put_u8(b, TRP_MSG_SERVERS);
}

void trp_servers_add(struct trp_buf *b, uint32_t location, const char *const *endpoints,
                     uint32_t n)
{
    trp_put_u32(b, location);
    trp_put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        trp_put_text(b, endpoints[i]);
}

void trp_endpoints_free(char **endpoints, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        free(endpoints[i]);
    free(endpoints);
}

int trp_servers_next(struct trp_view *v, uint32_t *ret_location, char ***ret_endpoints,
                     uint32_t *ret_n)
{
    if (trp_view_end(v))
        return 0;
    *ret_location = trp_get_u32(v);
    uint32_t n = trp_get_count(v, sizeof(uint32_t)), got = 0;
    if (v->bad || n > TRP_ENDPOINTS_MAX)
        return TRP_EPROTO;
    char **all = calloc(n ? n : 1, sizeof *all);
    while (all && got < n && (all[got] = trp_get_text(v)))
        got++;
    if (all && got == n) {
        *ret_endpoints = all;
        *ret_n = n;
        return 1;
    }
    if (all)
        trp_endpoints_free(all, got);
    return v->bad ? TRP_EPROTO : TRP_ENOMEM;
}

/* ---- MOVE and MOVED ------------------------------------------------------------ */

enum { MOVE_BYTES = 2 * sizeof(uint32_t) + sizeof(uint64_t) };

static void put_move(struct trp_buf *b, const struct trp_move_output *m)
{
    trp_put_u32(b, m->dataset);
    trp_put_u32(b, m->map);
    trp_put_u64(b, m->attempt);
}

static void get_move(struct trp_view *v, struct trp_move_output *ret)
{
    ret->dataset = trp_get_u32(v);
    ret->map = trp_get_u32(v);
    ret->attempt = trp_get_u64(v);
}

void trp_move_put(struct trp_buf *b, const struct trp_move_output *v, uint32_t n)
{
    trp_put_u8(b, TRP_MSG_MOVE);
    trp_put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        put_move(b, &v[i]);
}

int trp_move_get(const void *p, size_t size, struct trp_move_output **ret,
                 uint32_t *ret_n)
{
    struct trp_view v = trp_message_view(p, size, TRP_MSG_MOVE);
    uint32_t n = trp_get_count(&v, MOVE_BYTES);
    struct trp_move_output *all = v.bad ? NULL : malloc((n ? n : 1) * sizeof *all);
    for (uint32_t i = 0; all && i < n; i++)
        get_move(&v, &all[i]);
    if (all && trp_view_end(&v)) {
        *ret = all;
        *ret_n = n;
        return 0;
    }
    int rc = v.bad || all ? TRP_EPROTO : TRP_ENOMEM;
    free(all);
    return rc;
}

void trp_drop_put(struct trp_buf *b, const uint32_t *datasets, uint32_t n)
{
    trp_put_u8(b, TRP_MSG_DROP);
    trp_put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        trp_put_u32(b, datasets[i]);
}

int trp_drop_get(const void *p, size_t size, uint32_t **ret, uint32_t *ret_n)
{
    struct trp_view v = trp_message_view(p, size, TRP_MSG_DROP);
    uint32_t n = trp_get_count(&v, sizeof **ret);
    uint32_t *all = v.bad ? NULL : malloc((n ? n : 1) * sizeof *all);
    for (uint32_t i = 0; all && i < n; i++)
        all[i] = trp_get_u32(&v);
    if (all && trp_view_end(&v)) {
        *ret = all;
        *ret_n = n;
        return 0;
    }
    int rc = v.bad || all ? TRP_EPROTO : TRP_ENOMEM;
    free(all);
    return rc;
}

void trp_moved_begin(struct trp_buf *b)
{
    trp_buf_clear(b);
    trp_put_u8(b, TRP_MSG_MOVED);
}

void trp_moved_add(struct trp_buf *b, const struct trp_moved_output *m)
{
    trp_put_u8(b, 1);
    put_move(b, &m->is);
    trp_put_u64(b, m->bytes);
    trp_put_u64(b, (uint64_t)m->took_ns);
}

void trp_moved_finish(struct trp_buf *b, bool last, const char *text)
{
    trp_put_u8(b, 0);
    trp_put_u8(b, last);
    trp_put_text(b, text);
}

int trp_moved_next(struct trp_view *v, struct trp_moved_output *ret, bool *ret_last,
                   char **ret_text)
{
    if (trp_get_flag(v)) {
        get_move(v, &ret->is);
        ret->bytes = trp_get_u64(v);
        ret->took_ns = (int64_t)trp_get_u64(v);
        v->bad = v->bad || ret->took_ns < 0 || ret->took_ns > TRP_LONGEST_NS ||
                 ret->bytes > TRP_LARGEST;
        return v->bad ? TRP_EPROTO : 1;
    }
    bool last = trp_get_flag(v);
    char *text = v->bad ? NULL : trp_get_text(v);
    if (text && trp_view_end(v)) {
        *ret_last = last;
        *ret_text = text;
        return 0;
    }
    int rc = v->bad || text ? TRP_EPROTO : TRP_ENOMEM;
    free(text);
    return rc;
}

/* ---- INPUTS -------------------------------------------------------------------- */

void trp_stage_inputs_put(struct trp_buf *b, const struct trp_stage_inputs *in)
{
    trp_put_u8(b, TRP_MSG_INPUTS);
    trp_put_u32(b, in->stage.n);
    trp_put_u32(b, in->stage_attempt);
    trp_put_u32(b, in->nlocations);
    for (uint32_t i = 0; i < in->nlocations; i++)
        put_location(b, &in->locations[i]);
    trp_put_u32(b, in->ninputs);
    for (uint32_t i = 0; i < in->ninputs; i++) {
        trp_put_u32(b, in->inputs[i].dataset);
        trp_put_u32(b, in->inputs[i].nmaps);
        for (uint32_t k = 0; k < in->inputs[i].nmaps; k++) {
            trp_put_u32(b, in->inputs[i].maps[k].location);
            trp_put_u64(b, in->inputs[i].maps[k].attempt);
        }
    }
}

static bool get_input(struct trp_view *v, struct trp_input *in, uint32_t nlocations)
{
    in->dataset = trp_get_u32(v);
    uint32_t n = trp_get_count(v, 12);
    v->bad = v->bad || n > TRP_INPUT_PARTITIONS_MAX;
    if (v->bad)
        return false;
    in->maps = malloc((n ? n : 1) * sizeof *in->maps);
    if (!in->maps)
        return false;
    for (; in->nmaps < n; in->nmaps++) {
        in->maps[in->nmaps].location = trp_get_u32(v);
        in->maps[in->nmaps].attempt = trp_get_u64(v);
        v->bad = v->bad || in->maps[in->nmaps].location >= nlocations;
        if (v->bad)
            return false;
    }
    return true;
}

static bool get_inputs(struct trp_view *v, struct trp_stage_inputs *in)
{
    in->stage.n = trp_get_u32(v);
    in->stage_attempt = trp_get_u32(v);
    uint32_t n = trp_get_count(v, LOCATION_MIN);
    if (v->bad || !(in->locations = calloc(n ? n : 1, sizeof *in->locations)))
        return false;
    for (; in->nlocations < n; in->nlocations++)
        if (!get_location(v, &in->locations[in->nlocations])) {
            in->nlocations++; /* what it has is freed with it */
            return false;
        }
    n = trp_get_count(v, 2 * sizeof(uint32_t));
    if (v->bad || !(in->inputs = calloc(n ? n : 1, sizeof *in->inputs)))
        return false;
    for (; in->ninputs < n; in->ninputs++)
        if (!get_input(v, &in->inputs[in->ninputs], in->nlocations)) {
            in->ninputs++;
            return false;
        }
    v->bad = !trp_view_end(v);
    return !v->bad;
}

int trp_stage_inputs_get(const void *p, size_t n, struct trp_stage_inputs **ret)
{
    struct trp_view v = trp_message_view(p, n, TRP_MSG_INPUTS);
    struct trp_stage_inputs *in = calloc(1, sizeof *in);
    if (!in)
        return TRP_ENOMEM;
    in->users = 1;
    if (!get_inputs(&v, in)) {
        trp_stage_inputs_free(in);
        return v.bad ? TRP_EPROTO : TRP_ENOMEM;
    }
    *ret = in;
    return 0;
}

void trp_stage_inputs_free(struct trp_stage_inputs *in)
{
    if (!in)
        return;
    for (uint32_t i = 0; i < in->nlocations; i++)
        trp_location_clear(&in->locations[i]);
    for (uint32_t i = 0; i < in->ninputs; i++)
        free(in->inputs[i].maps);
    free(in->locations);
    free(in->inputs);
    free(in);
}

void trp_stage_inputs_leave(struct trp_stage_inputs *in)
{
    if (in && --in->users == 0)
        trp_stage_inputs_free(in);
}

const struct trp_input *trp_stage_inputs_of(const struct trp_stage_inputs *in,
                                            uint32_t dataset)
{
    for (uint32_t i = 0; in && i < in->ninputs; i++)
        if (in->inputs[i].dataset == dataset)
            return &in->inputs[i];
    return NULL;
}

/* ---- sizes --------------------------------------------------------------------- */

static void put_varint(struct trp_buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 128; v >>= 7)
        bytes[n++] = (uint8_t)(v | 128);
    bytes[n++] = (uint8_t)v;
    trp_put_raw(b, bytes, n);
}

static uint64_t get_varint(struct trp_view *v)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = trp_get_u8(v);
        n |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return n;
    }
    v->bad = true;
    return 0;
}

void trp_sizes_put(struct trp_buf *b, const uint64_t *sizes, uint32_t n)
{
    put_varint(b, n);
    for (uint32_t i = 0; i < n;) {
        put_varint(b, sizes[i]);
        if (sizes[i++])
            continue;
        uint32_t run = 0; /* empty ones that follow */
        while (i < n && !sizes[i]) {
            run++;
            i++;
        }
        put_varint(b, run);
    }
}

int trp_sizes_get(const void *p, size_t size, uint64_t **ret_sizes, uint32_t *ret_n)
{
    struct trp_view v = trp_view_of(p, size);
    uint64_t count = get_varint(&v);
    if (v.bad || count > TRP_INPUT_PARTITIONS_MAX)
        return TRP_EPROTO;
    uint32_t n = (uint32_t)count;
    uint64_t *sizes = calloc(n ? n : 1, sizeof *sizes);
    if (!sizes)
        return TRP_ENOMEM;
    for (uint32_t i = 0; i < n && !v.bad;) {
        sizes[i] = get_varint(&v);
        if (sizes[i++])
            continue;
        uint64_t run = get_varint(&v);
        v.bad = v.bad || run > n - i;
        i += v.bad ? 0 : (uint32_t)run;
    }
    if (trp_view_end(&v)) {
        *ret_sizes = sizes;
        *ret_n = n;
        return 0;
    }
    free(sizes);
    return TRP_EPROTO;
}

/* ---- fetch failures ------------------------------------------------------------ */

void trp_fetch_end_put(struct trp_buf *b, const struct trp_fetch_end *f)
{
    trp_put_u32(b, f->dataset);
    trp_put_u32(b, f->map);
    trp_put_u64(b, f->attempt.n);
    trp_put_u32(b, f->location);
    trp_put_u32(b, f->nmore);
    for (uint32_t i = 0; i < f->nmore; i++) {
        trp_put_u32(b, f->more[i].map);
        trp_put_u64(b, f->more[i].attempt);
    }
    trp_put_raw(b, f->text, f->size);
}

int trp_fetch_end_get(const void *p, size_t n, struct trp_fetch_end *ret)
{
    struct trp_view v = trp_view_of(p, n);
    ret->dataset = trp_get_u32(&v);
    ret->map = trp_get_u32(&v);
    ret->attempt.n = trp_get_u64(&v);
    ret->location = trp_get_u32(&v);
    uint32_t count = trp_get_count(&v, 12);
    ret->nmore = 0;
    ret->more = count ? malloc(count * sizeof *ret->more) : NULL;
    if (count && !ret->more)
        return TRP_ENOMEM;
    for (; ret->nmore < count; ret->nmore++) {
        ret->more[ret->nmore].map = trp_get_u32(&v);
        ret->more[ret->nmore].attempt = trp_get_u64(&v);
    }
    ret->size = (uint32_t)(v.end - v.at);
    ret->text = (const char *)v.at;
    if (!v.bad)
        return 0;
    free(ret->more);
    return TRP_EPROTO;
}

/* ---- copies of files that all hosts read ----------------------------------------- */

void trp_copy_ask_put(struct trp_buf *b, const struct trp_copy_ask *a)
{
    trp_put_u32(b, a->number);
    trp_put_u64(b, a->hash);
    trp_put_u8(b, a->has);
    trp_put_u8(b, a->failed);
    trp_put_u32(b, a->from);
}

int trp_copy_ask_get(const void *p, size_t n, struct trp_copy_ask *ret)
{
    struct trp_view v = trp_view_of(p, n);
    ret->number = trp_get_u32(&v);
    ret->hash = trp_get_u64(&v);
    ret->has = trp_get_flag(&v);
    ret->failed = trp_get_flag(&v);
    ret->from = trp_get_u32(&v);
    return trp_view_end(&v) ? 0 : TRP_EPROTO;
}

void trp_copy_from_put(struct trp_buf *b, uint32_t location, const char *endpoint)
{
    trp_put_u32(b, location);
    trp_put_text(b, endpoint);
}

int trp_copy_from_get(const void *p, size_t n, uint32_t *ret_location,
                      char **ret_endpoint)
{
    struct trp_view v = trp_view_of(p, n);
    *ret_location = trp_get_u32(&v);
    *ret_endpoint = trp_get_text(&v);
    if (!*ret_endpoint)
        return v.bad ? TRP_EPROTO : TRP_ENOMEM;
    if (trp_view_end(&v) && (*ret_location == TRP_NONE) == !**ret_endpoint)
        return 0;
    free(*ret_endpoint);
    *ret_endpoint = NULL;
    return TRP_EPROTO;
}
