#include "events/page/axis.h"

#include <stdlib.h>

int trp_page_axis_make(const struct trp_page_facts *f, struct trp_page_axis *ret)
{
    struct trp_page_axis a = {.v = calloc((size_t)f->nstarts + 1, sizeof *a.v),
                              .n = f->nstarts};
    int64_t ran = 0;
    if (!a.v)
        return TRP_ENOMEM;
    for (uint32_t i = 0; i < a.n; i++)
        ran += f->starts[i].last - f->starts[i].at;
    for (uint32_t i = 0; i < a.n; i++) {
        int64_t gap = i ? f->starts[i].at - a.v[i - 1].to : 0;
        gap = gap > ran / 50 ? ran / 50 : gap;
        a.v[i] = (struct trp_page_stretch){.from = f->starts[i].at,
                                           .to = f->starts[i].last,
                                           .at = a.length + (gap > 0 ? gap : 0)};
        a.length = a.v[i].at + a.v[i].to - a.v[i].from;
    }
    a.length = a.length > 0 ? a.length : 1;
    *ret = a;
    return 0;
}

void trp_page_axis_free(struct trp_page_axis *a)
{
    free(a->v);
    *a = (struct trp_page_axis){0};
}

int64_t trp_page_axis_at(const struct trp_page_axis *a, int64_t wall_ms)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct trp_page_stretch *s = &a->v[i];
        if (i && wall_ms < s->from)
            break;
        at = s->at + (wall_ms > s->to ? s->to : wall_ms) - s->from;
    }
    return at < 0 ? 0 : at > a->length ? a->length : at;
}

void trp_page_bins_add(struct trp_page_bins *b, int64_t from, int64_t to, double amount)
{
    double scale = (double)b->n / (double)b->length;
    double begin = (double)from * scale, end = (double)to * scale;
    uint32_t first = begin > 0 ? (uint32_t)begin : 0;
    for (uint32_t i = first; i < b->n && (double)i < end; i++) {
        double low = begin > i ? begin : i, high = end < i + 1.0 ? end : i + 1.0;
        if (high > low)
            b->v[i] += amount * (high - low);
    }
}
