/* Codecs of what is said of map outputs: counts are checked before anything is taken
 * for them, and a decoder that fails frees what it had copied. */
#include "wire/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "wire/message.h"

/* ---- INPUTS -------------------------------------------------------------------- */

void trp_stage_inputs_put(struct trp_buf *b, const struct trp_stage_inputs *in)
{
    trp_put_u8(b, TRP_MSG_INPUTS);
    trp_put_u32(b, in->stage.n);
    trp_put_u32(b, in->stage_attempt);
    trp_put_u32(b, in->nhosts);
    for (uint32_t i = 0; i < in->nhosts; i++) {
        const struct trp_input_host *h = &in->hosts[i];
        trp_put_text(b, h->name);
        trp_put_u32(b, h->nendpoints);
        for (uint32_t k = 0; k < h->nendpoints; k++)
            trp_put_text(b, h->endpoints[k]);
    }
    trp_put_u32(b, in->ninputs);
    for (uint32_t i = 0; i < in->ninputs; i++) {
        trp_put_u32(b, in->inputs[i].dataset);
        trp_put_u32(b, in->inputs[i].nmaps);
        for (uint32_t k = 0; k < in->inputs[i].nmaps; k++) {
            trp_put_u32(b, in->inputs[i].maps[k].host);
            trp_put_u64(b, in->inputs[i].maps[k].attempt);
        }
    }
}

static bool get_host(struct trp_view *v, struct trp_input_host *h)
{
    h->name = trp_get_text(v);
    uint32_t n = trp_get_count(v, sizeof(uint32_t));
    v->bad = v->bad || n > TRP_INPUT_ENDPOINTS_MAX;
    if (v->bad || !h->name)
        return false;
    h->endpoints = calloc(n ? n : 1, sizeof *h->endpoints);
    if (!h->endpoints)
        return false;
    for (; h->nendpoints < n; h->nendpoints++)
        if (!(h->endpoints[h->nendpoints] = trp_get_text(v)))
            return false;
    return true;
}

static bool get_input(struct trp_view *v, struct trp_input *in, uint32_t nhosts)
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
        in->maps[in->nmaps].host = trp_get_u32(v);
        in->maps[in->nmaps].attempt = trp_get_u64(v);
        v->bad = v->bad || in->maps[in->nmaps].host >= nhosts;
        if (v->bad)
            return false;
    }
    return true;
}

static bool get_inputs(struct trp_view *v, struct trp_stage_inputs *in)
{
    in->stage.n = trp_get_u32(v);
    in->stage_attempt = trp_get_u32(v);
    uint32_t n = trp_get_count(v, 2 * sizeof(uint32_t));
    if (v->bad || !(in->hosts = calloc(n ? n : 1, sizeof *in->hosts)))
        return false;
    for (; in->nhosts < n; in->nhosts++)
        if (!get_host(v, &in->hosts[in->nhosts])) {
            in->nhosts++; /* what it has is freed with it */
            return false;
        }
    n = trp_get_count(v, 2 * sizeof(uint32_t));
    if (v->bad || !(in->inputs = calloc(n ? n : 1, sizeof *in->inputs)))
        return false;
    for (; in->ninputs < n; in->ninputs++)
        if (!get_input(v, &in->inputs[in->ninputs], in->nhosts)) {
            in->ninputs++;
            return false;
        }
    v->bad = !trp_view_end(v);
    return !v->bad;
}

int trp_stage_inputs_get(const void *p, size_t n, struct trp_stage_inputs **ret)
{
    struct trp_view v = trp_view_of(p, n);
    if (trp_get_u8(&v) != TRP_MSG_INPUTS)
        return TRP_EPROTO;
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
    for (uint32_t i = 0; i < in->nhosts; i++) {
        for (uint32_t k = 0; k < in->hosts[i].nendpoints; k++)
            free(in->hosts[i].endpoints[k]);
        free(in->hosts[i].endpoints);
        free(in->hosts[i].name);
    }
    for (uint32_t i = 0; i < in->ninputs; i++)
        free(in->inputs[i].maps);
    free(in->hosts);
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
