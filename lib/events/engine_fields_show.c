/* Bytes of the engine's structs to a line of text, without making the structs. */
#include <stdarg.h>
#include <stdio.h>

#include "events/engine_fields_table.h"

struct line {
    char *buf;
    size_t size, n;
};

static void say(struct line *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct line *l, const char *fmt, ...)
{
    va_list args;
    if (l->n + 1 >= l->size)
        return;
    va_start(args, fmt);
    int n = vsnprintf(l->buf + l->n, l->size - l->n, fmt, args);
    va_end(args);
    l->n += n > 0 ? (size_t)n : 0;
}

static void show(struct trp_view *v, const struct trp_fields *t, struct line *l);

static void show_text(struct trp_view *v, struct line *l)
{
    uint32_t n = trp_fields_get_count(v);
    const uint8_t *p = trp_get_raw(v, n);
    if (p)
        say(l, "\"%.*s\"", (int)(n < 200 ? n : 200), (const char *)p);
}

/* The words of a choice; numbers where there are none. */
static void show_choice(const struct trp_field *f, uint64_t x, struct line *l)
{
    if (x >= f->most)
        say(l, "?");
    else if (f->most == 2 && strcmp(f->name, "kind") != 0)
        say(l, x ? "yes" : "no");
    else if (f->most == TRP_END_OUTPUT + 1)
        say(l, "%s", trp_end_status_name((enum trp_end_status)x));
    else if (strstr(f->name, "outcome"))
        say(l, "%s", trp_outcome_name((enum trp_outcome)x));
    else if (strstr(f->name, "level"))
        say(l, "%s", trp_level_name((enum trp_level)x));
    else
        say(l, "%u", (unsigned)x);
}

static void show_list(struct trp_view *v, const struct trp_fields *of, uint32_t n,
                      struct line *l)
{
    say(l, "[");
    for (uint32_t i = 0; i < n && !v->bad; i++) {
        say(l, i ? "; " : "");
        show(v, of, l);
    }
    say(l, "]");
}

static void show_field(struct trp_view *v, const struct trp_field *f, uint32_t count,
                       struct line *l)
{
    uint64_t x;
    uint32_t n;
    switch (f->type) {
    case TRP_FIELD_UNSIGNED:
        x = trp_get_varint(v);
        if (x == TRP_NONE)
            say(l, "none");
        else
            say(l, "%llu", (unsigned long long)x);
        return;
    case TRP_FIELD_CHOICE:
        show_choice(f, trp_get_varint(v), l);
        return;
    case TRP_FIELD_SIGNED:
        say(l, "%lld", (long long)trp_unzigzag(trp_get_varint(v)));
        return;
    case TRP_FIELD_ATTEMPT:
        x = trp_get_varint(v);
        say(l, "%llu.%llu", (unsigned long long)x,
            (unsigned long long)trp_get_varint(v));
        return;
    case TRP_FIELD_NUMBER:
        trp_get_u64(v);
        return;
    case TRP_FIELD_MAYBE:
        if (!trp_get_varint(v)) {
            say(l, "none");
            return;
        }
        show_text(v, l);
        return;
    case TRP_FIELD_TEXT:
    case TRP_FIELD_CHARS:
        show_text(v, l);
        return;
    case TRP_FIELD_POINTER:
        show(v, f->of, l);
        return;
    case TRP_FIELD_ARRAY:
        n = trp_fields_get_array(v);
        show_list(v, f->of, n == TRP_NONE ? 0 : n, l);
        return;
    case TRP_FIELD_INLINE:
        show_list(v, f->of, trp_fields_get_count(v), l);
        return;
    case TRP_FIELD_TEXTS:
        n = trp_fields_get_count(v);
        say(l, "[");
        for (uint32_t i = 0; i < n && !v->bad; i++)
            show_text(v, l);
        say(l, "]");
        return;
    case TRP_FIELD_PREFER:
        say(l, trp_get_varint(v) ? "…" : "none");
        v->at = v->end; /* too long to show, and what follows with it */
        return;
    case TRP_FIELD_DONE:
        if (trp_get_varint(v))
            trp_get_raw(v, count);
        return;
    }
}

static void show(struct trp_view *v, const struct trp_fields *t, struct line *l)
{
    for (uint32_t i = 0; i < t->n && !v->bad && (i == 0 || v->at < v->end); i++) {
        /* "ended.from.map" is from.map, "stage.n" is stage. */
        const char *name = t->fields[i].name, *dot = strchr(name, '.');
        if (dot && strcmp(dot, ".n") != 0)
            name = dot + 1;
        int n = (int)strlen(name);
        if (n > 2 && strcmp(name + n - 2, ".n") == 0)
            n -= 2;
        say(l, "%s%.*s=", i ? " " : "", n, name);
        show_field(v, &t->fields[i], 0, l);
    }
}

static bool show_kind(struct trp_view *v, const struct trp_fields *kinds, uint32_t n,
                      char *buf, size_t size)
{
    struct line l = {buf, size, 0};
    uint64_t kind = trp_get_varint(v);
    if (v->bad || kind >= n)
        return false;
    say(&l, "%s%s", kinds[kind].name, kinds[kind].n ? " " : "");
    show(v, &kinds[kind], &l);
    return !v->bad;
}

bool trp_fields_show_event(struct trp_view *v, char *buf, size_t size)
{
    return show_kind(v, trp_fields_of_event, trp_fields_events, buf, size);
}

bool trp_fields_show_action(struct trp_view *v, char *buf, size_t size)
{
    return show_kind(v, trp_fields_of_action, trp_fields_actions, buf, size);
}
