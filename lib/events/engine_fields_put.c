/*
 * The engine's structs to bytes. Arrays are a count and their elements; a pointer to
 * one struct is that struct.
 */
#include <assert.h>

#include "events/engine_fields_table.h"

void trp_put_varint(struct trp_buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    uint8_t *p = trp_buf_reserve(b, n);
    if (p)
        memcpy(p, bytes, n);
}

static int64_t load_signed(const void *p, uint32_t size)
{
    int shift = 64 - 8 * (int)size;
    return (int64_t)(trp_field_load(p, size) << shift) >> shift;
}

static void put(struct trp_buf *b, const struct trp_fields *t, const char *s);

static void put_text(struct trp_buf *b, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    trp_put_varint(b, n);
    trp_put_raw(b, s, n);
}

static void put_list(struct trp_buf *b, const struct trp_fields *of, const char *v,
                     uint64_t n)
{
    trp_put_varint(b, n);
    for (uint64_t i = 0; i < n; i++)
        put(b, of, v + i * of->size);
}

/* 0: NULL, else the number and 1. */
static void put_array(struct trp_buf *b, const struct trp_fields *of, const char *v,
                      uint64_t n)
{
    trp_put_varint(b, v ? n + 1 : 0);
    for (uint64_t i = 0; v && i < n; i++)
        put(b, of, v + i * of->size);
}

static void put_prefer(struct trp_buf *b, const struct trp_preferences *p, uint32_t n)
{
    trp_put_varint(b, p->first != NULL);
    for (uint32_t i = 0; p->first && i < n; i++) {
        trp_put_varint(b, p->first[i + 1] - p->first[i]);
        for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
            put_text(b, p->places[k].host);
            trp_put_varint(b, p->places[k].executor);
        }
    }
}

static void put_field(struct trp_buf *b, const struct trp_field *f, const char *s)
{
    const char *at = s + f->offset;
    const char *p = NULL;
    trp_attempt_id id;
    uint32_t n = f->count ? (uint32_t)trp_field_load(s + f->count, 4) : 0;
    if (f->type >= TRP_FIELD_TEXT && f->type != TRP_FIELD_CHARS &&
        f->type != TRP_FIELD_INLINE && f->type != TRP_FIELD_PREFER)
        memcpy(&p, at, sizeof p);
    switch (f->type) {
    case TRP_FIELD_UNSIGNED:
    case TRP_FIELD_CHOICE:
        trp_put_varint(b, trp_field_load(at, f->size));
        break;
    case TRP_FIELD_SIGNED:
        trp_put_varint(b, trp_zigzag(load_signed(at, f->size)));
        break;
    case TRP_FIELD_ATTEMPT:
        memcpy(&id, at, sizeof id);
        trp_put_varint(b, trp_attempt_number(id));
        trp_put_varint(b, (uint32_t)id.n);
        break;
    case TRP_FIELD_NUMBER:
        trp_put_u64(b, trp_field_load(at, 8));
        break;
    case TRP_FIELD_TEXT:
        put_text(b, p);
        break;
    case TRP_FIELD_MAYBE:
        trp_put_varint(b, p != NULL);
        if (p)
            put_text(b, p);
        break;
    case TRP_FIELD_CHARS:
        put_text(b, at);
        break;
    case TRP_FIELD_POINTER:
        put(b, f->of, p);
        break;
    case TRP_FIELD_ARRAY:
        put_array(b, f->of, p, n);
        break;
    case TRP_FIELD_INLINE:
        put_list(b, f->of, at, n);
        break;
    case TRP_FIELD_TEXTS:
        trp_put_varint(b, n);
        for (uint32_t i = 0; i < n; i++)
            put_text(b, ((const char *const *)(const void *)p)[i]);
        break;
    case TRP_FIELD_PREFER:
        put_prefer(b, (const struct trp_preferences *)(const void *)at, n);
        break;
    case TRP_FIELD_DONE:
        trp_put_varint(b, p != NULL);
        if (p)
            trp_put_raw(b, p, n);
        break;
    }
}

static void put(struct trp_buf *b, const struct trp_fields *t, const char *s)
{
    for (uint32_t i = 0; i < t->n; i++)
        put_field(b, &t->fields[i], s);
}

void trp_fields_put_event(struct trp_buf *b, const struct trp_event *e)
{
    assert(e->kind < trp_fields_events);
    trp_put_varint(b, e->kind);
    put(b, &trp_fields_of_event[e->kind], (const char *)e);
}

void trp_fields_put_action(struct trp_buf *b, const struct trp_action *a)
{
    assert(a->kind < trp_fields_actions);
    trp_put_varint(b, a->kind);
    put(b, &trp_fields_of_action[a->kind], (const char *)a);
}

/* All that has an option's value, in the order of the table. */
static void put_options(struct trp_buf *b, enum trp_option_taker taker, const char *s)
{
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        struct trp_field f = trp_field_of_option(t);
        if (t->member.taker == taker)
            put_field(b, &f, s);
    }
}

void trp_fields_put_config(struct trp_buf *b, const struct trp_engine_config *c)
{
    put(b, &trp_fields_of_config, (const char *)c);
    put_options(b, TRP_TAKER_ENGINE, (const char *)c);
}

void trp_fields_put_defaults(struct trp_buf *b, const struct trp_profile_defaults *d)
{
    put(b, &trp_fields_of_defaults, (const char *)d);
    put_options(b, TRP_TAKER_PROFILES, (const char *)d);
}

void trp_fields_put_builder(struct trp_buf *b, const struct trp_profile_builder *p)
{
    put(b, &trp_fields_of_builder, (const char *)p);
}
