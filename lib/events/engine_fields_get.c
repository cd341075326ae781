/*
 * Bytes to the engine's structs. Counts, choices and texts are checked; what a struct
 * points to is kept until all is freed at once.
 */
#include <stdlib.h>

#include "core/base/array.h"
#include "events/engine_fields_table.h"

uint64_t trp_get_varint(struct trp_view *v)
{
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t *p = trp_get_raw(v, 1);
        if (!p)
            return 0;
        x |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p & 0x80)) {
            v->bad = v->bad || (shift == 63 && *p > 1);
            return x;
        }
    }
    v->bad = true;
    return 0;
}

static void store(void *p, uint32_t size, uint64_t x)
{
    x = htole64(x);
    memcpy(p, &x, size);
}

void trp_fields_memory_free(struct trp_fields_memory *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        free(m->v[i]);
    free(m->v);
    *m = (struct trp_fields_memory){0};
}

static void *memory(struct trp_fields_memory *m, struct trp_view *v, size_t n,
                    size_t size)
{
    void *p = calloc(n + 1, size);
    if (p && TRP_ARRAY_GROW(m->v, m->n, m->cap)) {
        m->v[m->n++] = p;
        return p;
    }
    free(p);
    v->bad = true;
    return NULL;
}

/* A number of things of at least a byte each; an empty struct has none. */
uint32_t trp_fields_get_count(struct trp_view *v)
{
    uint64_t n = trp_get_varint(v);
    if (n > (size_t)(v->end - v->at))
        v->bad = true;
    return v->bad ? 0 : (uint32_t)n;
}

/* TRP_NONE: there is no array. */
uint32_t trp_fields_get_array(struct trp_view *v)
{
    uint64_t n = trp_get_varint(v);
    if (n > (size_t)(v->end - v->at) + 1)
        v->bad = true;
    return v->bad || !n ? TRP_NONE : (uint32_t)n - 1;
}

static char *get_text(struct trp_view *v, struct trp_fields_memory *m)
{
    uint32_t n = trp_fields_get_count(v);
    const uint8_t *p = trp_get_raw(v, n);
    char *s = p ? memory(m, v, n, 1) : NULL;
    if (!s)
        return NULL;
    if (n > 0)
        memcpy(s, p, n);
    v->bad = v->bad || memchr(s, '\0', n);
    return s;
}

static void get(struct trp_view *v, struct trp_fields_memory *m,
                const struct trp_fields *t, char *s);

static void *get_list(struct trp_view *v, struct trp_fields_memory *m,
                      const struct trp_fields *of, uint32_t n)
{
    char *list = memory(m, v, n, of->size);
    for (uint32_t i = 0; i < n && !v->bad; i++)
        get(v, m, of, list + i * of->size);
    return list;
}

/* Grows the places as they come: their number is known at the end only. */
static void get_prefer(struct trp_view *v, struct trp_fields_memory *m,
                       struct trp_preferences *p, uint32_t n)
{
    struct trp_place *places = NULL;
    uint32_t cap = 0, total = 0;
    if (!trp_get_varint(v))
        return;
    v->bad = v->bad || n > (size_t)(v->end - v->at);
    if (v->bad)
        return;
    uint32_t *first = memory(m, v, (size_t)n + 1, sizeof *first);
    for (uint32_t i = 0; first && i < n && !v->bad; i++) {
        uint32_t k = trp_fields_get_count(v);
        first[i] = total;
        for (; k > 0 && !v->bad; k--, total++) {
            if (!TRP_ARRAY_GROW(places, total, cap)) {
                v->bad = true;
                break;
            }
            places[total].host = get_text(v, m);
            places[total].executor = (uint32_t)trp_get_varint(v);
        }
    }
    if (first)
        first[n] = total;
    struct trp_place *kept = memory(m, v, total, sizeof *kept);
    if (kept && total)
        memcpy(kept, places, total * sizeof *kept);
    free(places);
    *p = (struct trp_preferences){first, kept};
}

static void get_number(struct trp_view *v, const struct trp_field *f, char *at)
{
    uint64_t x = trp_get_varint(v);
    bool wide = f->size == 8;
    if (f->type == TRP_FIELD_SIGNED) {
        int64_t y = trp_unzigzag(x);
        int64_t most = wide ? INT64_MAX : (INT64_C(1) << (8 * f->size - 1)) - 1;
        v->bad = v->bad || y > most || y < -most - 1;
        store(at, f->size, (uint64_t)y);
        return;
    }
    uint64_t most = wide ? UINT64_MAX : (UINT64_C(1) << (8 * f->size)) - 1;
    v->bad = v->bad || x > most || (f->type == TRP_FIELD_CHOICE && x >= f->most);
    store(at, f->size, v->bad ? 0 : x);
}

static void get_double(struct trp_view *v, char *at)
{
    double x;
    uint64_t bits = trp_get_u64(v);
    memcpy(&x, &bits, sizeof x);
    v->bad = v->bad || !(x >= -1e300 && x <= 1e300);
    store(at, 8, v->bad ? 0 : bits);
}

static void get_chars(struct trp_view *v, const struct trp_field *f, char *at)
{
    uint32_t n = trp_fields_get_count(v);
    const uint8_t *p = trp_get_raw(v, n);
    if (!p || n >= f->size || memchr(p, '\0', n))
        v->bad = true;
    else
        memcpy(at, p, n);
}

static void get_field(struct trp_view *v, struct trp_fields_memory *m,
                      const struct trp_field *f, char *s)
{
    char *at = s + f->offset;
    const void *p = NULL;
    const char **texts;
    trp_attempt_id id;
    uint32_t n = f->count ? (uint32_t)trp_field_load(s + f->count, 4) : 0;
    switch (f->type) {
    case TRP_FIELD_UNSIGNED:
    case TRP_FIELD_CHOICE:
    case TRP_FIELD_SIGNED:
        get_number(v, f, at);
        return;
    case TRP_FIELD_ATTEMPT:
        id.n = trp_get_varint(v) << 32;
        id.n |= (uint32_t)trp_get_varint(v);
        store(at, 8, id.n);
        return;
    case TRP_FIELD_NUMBER:
        get_double(v, at);
        return;
    case TRP_FIELD_CHARS:
        get_chars(v, f, at);
        return;
    case TRP_FIELD_INLINE:
        n = trp_fields_get_count(v);
        v->bad = v->bad || n > f->most;
        store(s + f->count, 4, v->bad ? 0 : n);
        for (uint32_t i = 0; i < n && !v->bad; i++)
            get(v, m, f->of, at + i * f->of->size);
        return;
    case TRP_FIELD_PREFER:
        get_prefer(v, m, (struct trp_preferences *)(void *)at, n);
        return;
    case TRP_FIELD_TEXT:
        p = get_text(v, m);
        break;
    case TRP_FIELD_MAYBE:
        p = trp_get_varint(v) ? get_text(v, m) : NULL;
        break;
    case TRP_FIELD_POINTER:
        p = get_list(v, m, f->of, 1);
        break;
    case TRP_FIELD_ARRAY:
        n = trp_fields_get_array(v);
        store(s + f->count, 4, n == TRP_NONE ? 0 : n);
        p = n == TRP_NONE ? NULL : get_list(v, m, f->of, n);
        break;
    case TRP_FIELD_TEXTS:
        n = trp_fields_get_count(v);
        store(s + f->count, 4, n);
        p = texts = memory(m, v, n, sizeof *texts);
        for (uint32_t i = 0; i < n && !v->bad; i++)
            texts[i] = get_text(v, m);
        break;
    case TRP_FIELD_DONE:
        if (!trp_get_varint(v))
            break;
        const uint8_t *bytes = trp_get_raw(v, n);
        void *copy = bytes ? memory(m, v, n, 1) : NULL;
        if (copy && n)
            memcpy(copy, bytes, n);
        p = copy;
        break;
    }
    memcpy(at, &p, sizeof p);
}

static void get(struct trp_view *v, struct trp_fields_memory *m,
                const struct trp_fields *t, char *s)
{
    for (uint32_t i = 0; i < t->n && !v->bad; i++)
        get_field(v, m, &t->fields[i], s);
}

bool trp_fields_get_event(struct trp_view *v, struct trp_fields_memory *m,
                          struct trp_event *ret)
{
    uint64_t kind = trp_get_varint(v);
    memset(ret, 0, sizeof *ret);
    if (v->bad || kind >= trp_fields_events)
        return false;
    ret->kind = (enum trp_event_kind)kind;
    get(v, m, &trp_fields_of_event[kind], (char *)ret);
    return trp_view_end(v);
}

/* All that has an option's value, in the order of the table. */
static void get_options(struct trp_view *v, enum trp_option_taker taker, char *s)
{
    for (const struct trp_option *t = trp_option_table; t->key; t++) {
        struct trp_field f = trp_field_of_option(t);
        if (t->member.taker == taker && !v->bad)
            get_field(v, NULL, &f, s);
    }
}

/* Could options have made it: all are within their bounds, and nothing is below 0? */
static bool is_possible(const struct trp_engine_config *c)
{
    const struct trp_fields *fields = &trp_fields_of_config;
    for (uint32_t i = 0; i < fields->n; i++)
        if (fields->fields[i].type == TRP_FIELD_SIGNED &&
            (int64_t)trp_field_load((const char *)c + fields->fields[i].offset, 8) < 0)
            return false;
    for (const struct trp_option *t = trp_option_table; t->key; t++)
        if (t->member.taker == TRP_TAKER_ENGINE && !trp_option_member_is_possible(t, c))
            return false;
    return true;
}

bool trp_fields_get_config(struct trp_view *v, struct trp_fields_memory *m,
                           struct trp_engine_config *ret)
{
    memset(ret, 0, sizeof *ret);
    get(v, m, &trp_fields_of_config, (char *)ret);
    get_options(v, TRP_TAKER_ENGINE, (char *)ret);
    return !v->bad && is_possible(ret);
}

bool trp_fields_get_defaults(struct trp_view *v, struct trp_fields_memory *m,
                             struct trp_profile_defaults *ret)
{
    memset(ret, 0, sizeof *ret);
    get(v, m, &trp_fields_of_defaults, (char *)ret);
    get_options(v, TRP_TAKER_PROFILES, (char *)ret);
    return !v->bad;
}

bool trp_fields_get_builder(struct trp_view *v, struct trp_fields_memory *m,
                            struct trp_profile_builder *ret)
{
    memset(ret, 0, sizeof *ret);
    get(v, m, &trp_fields_of_builder, (char *)ret);
    return trp_view_end(v);
}
