/*
 * Outputs stand in one array per shuffle and, at the same time, on the list of the
 * place that holds them, so that one output is found by its index and all outputs of a
 * lost executor by its list. Places are found from their executor and from their host;
 * they are few and never go.
 *
 * An output that was dropped keeps its id and sizes: a block that was moved off a dying
 * executor is often told after the executor's death, and is back then without a new
 * run.
 *
 * A reducer's preference adds up sizes in the places themselves, marked with the number
 * of the question, so it costs one walk over the maps and no table.
 */
#include "core/dag/outputs.h"

#include <string.h>
#include <utlist.h>

#include "core/base/array.h"

struct place {
    struct trp_output_place at;
    struct output *first; /* its outputs, newest first */
    uint32_t n;
    struct place *next_of_executor, *next_of_host;
    uint64_t asked; /* the question that `sum` belongs to */
    uint64_t sum;
};

enum sizes_kind { SIZES_EQUAL, SIZES_EXACT, SIZES_AVERAGE };

struct output {
    struct place *place; /* NULL: missing */
    struct output *next, *prev;
    uint64_t id;
    uint8_t
        *sizes; /* exact: a byte a reducer; average: a bit a reducer, set if empty */
    uint64_t average;
    uint32_t nsizes;
    uint32_t shuffle;
    bool was_there; /* id and sizes mean something */
    uint8_t kind;
};

struct shuffle {
    uint32_t maps, reducers, available;
    struct output outputs[];
};

struct trp_map_outputs {
    struct shuffle **shuffles;
    uint32_t nshuffles, shuffles_cap;
    struct place **executors, **hosts; /* first place of each, by number */
    struct place shared;               /* what all hosts see */
    uint32_t nexecutors, executors_cap, nhosts, hosts_cap;
    uint64_t epoch, questions;
    uint64_t powers[256]; /* what a size byte means */
};

trp_map_outputs *trp_map_outputs_new(void)
{
    trp_map_outputs *o = calloc(1, sizeof(*o));
    if (!o)
        return NULL;
    double power = 1.0;
    o->shared.at = (struct trp_output_place){TRP_NONE, TRP_NONE};
    for (uint32_t i = 1; i < 256; i++) {
        power *= 1.1;
        o->powers[i] = (uint64_t)power;
    }
    return o;
}

static void shuffle_free(struct shuffle *s)
{
    for (uint32_t i = 0; s && i < s->maps; i++)
        free(s->outputs[i].sizes);
    free(s);
}

void trp_map_outputs_free(trp_map_outputs *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->nshuffles; i++)
        shuffle_free(o->shuffles[i]);
    for (uint32_t i = 0; i < o->nhosts; i++)
        for (struct place *p = o->hosts[i], *next; p; p = next) {
            next = p->next_of_host;
            free(p);
        }
    free(o->shuffles);
    free(o->executors);
    free(o->hosts);
    free(o);
}

/* ---- shuffles ---- */

static struct shuffle *shuffle_of(const trp_map_outputs *o, uint32_t shuffle)
{
    return shuffle < o->nshuffles ? o->shuffles[shuffle] : NULL;
}

static struct output *output_of(const trp_map_outputs *o, uint32_t shuffle,
                                uint32_t map)
{
    struct shuffle *s = shuffle_of(o, shuffle);
    return s && map < s->maps ? &s->outputs[map] : NULL;
}

/* Makes an array of pointers reach `index`, the new ones NULL. */
static bool reach(void *v, uint32_t *n, uint32_t *cap, uint32_t index)
{
    void **array = *(void ***)v;
    if (index < *n)
        return true;
    if (!TRP_ARRAY_GROW(array, index, *cap))
        return false;
    memset(array + *n, 0, ((size_t)index + 1 - *n) * sizeof(*array));
    *n = index + 1;
    *(void ***)v = array;
    return true;
}

int trp_map_outputs_register(trp_map_outputs *o, uint32_t shuffle, uint32_t maps,
                             uint32_t reducers, trp_error *err)
{
    if (shuffle_of(o, shuffle))
        return trp_error_set(err, TRP_EEXIST, "shuffle %u is registered already",
                             shuffle);
    if (maps > TRP_MAP_OUTPUTS_MAPS_MAX)
        return trp_error_set(err, TRP_ELIMIT, "shuffle %u: %u map tasks, at most %u",
                             shuffle, maps, (unsigned)TRP_MAP_OUTPUTS_MAPS_MAX);
    struct shuffle *s = calloc(1, sizeof(*s) + maps * sizeof(*s->outputs));
    if (!s || !reach(&o->shuffles, &o->nshuffles, &o->shuffles_cap, shuffle)) {
        free(s);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a shuffle");
    }
    s->maps = maps;
    s->reducers = reducers;
    for (uint32_t i = 0; i < maps; i++)
        s->outputs[i].shuffle = shuffle;
    o->shuffles[shuffle] = s;
    return 0;
}

bool trp_map_outputs_known(const trp_map_outputs *o, uint32_t shuffle)
{
    return shuffle_of(o, shuffle) != NULL;
}

uint32_t trp_map_outputs_maps(const trp_map_outputs *o, uint32_t shuffle)
{
    const struct shuffle *s = shuffle_of(o, shuffle);
    return s ? s->maps : 0;
}

/* ---- places ---- */

static struct place *place_of(trp_map_outputs *o, struct trp_output_place at)
{
    if (at.host == TRP_NONE)
        return &o->shared;
    struct place *p = at.host < o->nhosts ? o->hosts[at.host] : NULL;
    while (p && p->at.executor != at.executor)
        p = p->next_of_host;
    if (p)
        return p;
    if (!reach(&o->hosts, &o->nhosts, &o->hosts_cap, at.host))
        return NULL;
    if (at.executor != TRP_NONE &&
        !reach(&o->executors, &o->nexecutors, &o->executors_cap, at.executor))
        return NULL;
    p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->at = at;
    p->next_of_host = o->hosts[at.host];
    o->hosts[at.host] = p;
    if (at.executor != TRP_NONE) {
        p->next_of_executor = o->executors[at.executor];
        o->executors[at.executor] = p;
    }
    return p;
}

static void leave_place(trp_map_outputs *o, struct output *out)
{
    struct place *p = out->place;
    if (!p)
        return;
    DL_DELETE(p->first, out);
    out->place = NULL;
    p->n--;
    o->shuffles[out->shuffle]->available--;
}

static void enter(trp_map_outputs *o, struct output *out, struct place *p)
{
    DL_PREPEND(p->first, out);
    out->place = p;
    p->n++;
    o->shuffles[out->shuffle]->available++;
}

static void empty_place(trp_map_outputs *o, struct place *p)
{
    while (p->first)
        leave_place(o, p->first);
}

/* ---- sizes ---- */

/* The least byte whose power is not below `size`. */
static uint8_t compress(const trp_map_outputs *o, uint64_t size)
{
    if (size <= 1)
        return (uint8_t)size;
    uint32_t low = 1, high = 255;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (o->powers[middle] >= size)
            high = middle;
        else
            low = middle + 1;
    }
    return (uint8_t)low;
}

/* Average and bitmap. */
static void summarise(struct output *out, const uint64_t *sizes, uint32_t n)
{
    uint64_t sum = 0, filled = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!sizes[i]) {
            out->sizes[i / 8] |= (uint8_t)(1u << i % 8);
            continue;
        }
        filled++;
        sum = sizes[i] > UINT64_MAX - sum ? UINT64_MAX : sum + sizes[i];
    }
    out->average = filled ? sum / filled : 0;
}

static bool take_sizes(const trp_map_outputs *o, struct output *out,
                       const uint64_t *sizes, uint32_t n)
{
    bool exact = n <= TRP_MAP_OUTPUTS_EXACT;
    uint8_t *own = n ? calloc(exact ? n : (n + 7) / 8, 1) : NULL;
    if (n && !own)
        return false;
    free(out->sizes);
    out->sizes = own;
    out->nsizes = n;
    out->kind = !n ? SIZES_EQUAL : exact ? SIZES_EXACT : SIZES_AVERAGE;
    if (out->kind == SIZES_AVERAGE)
        summarise(out, sizes, n);
    else
        for (uint32_t i = 0; i < n; i++)
            own[i] = compress(o, sizes[i]);
    return true;
}

static uint64_t size_for(const trp_map_outputs *o, const struct output *out,
                         uint32_t reduce)
{
    if (out->kind == SIZES_EQUAL)
        return 1;
    if (reduce >= out->nsizes)
        return 0;
    if (out->kind == SIZES_EXACT)
        return o->powers[out->sizes[reduce]];
    return out->sizes[reduce / 8] >> reduce % 8 & 1 ? 0 : out->average;
}

/* ---- outputs come, move and go ---- */

int trp_map_outputs_add(trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                        struct trp_output_place place, uint64_t id,
                        const uint64_t *sizes, uint32_t nsizes)
{
    struct output *out = output_of(o, shuffle, map);
    if (!out)
        return TRP_ENOENT;
    struct place *p = place_of(o, place);
    if (!p || !take_sizes(o, out, sizes, nsizes))
        return TRP_ENOMEM;
    leave_place(o, out);
    enter(o, out, p);
    out->id = id;
    out->was_there = true;
    if (nsizes > o->shuffles[shuffle]->reducers)
        o->shuffles[shuffle]->reducers = nsizes;
    return 0;
}

int trp_map_outputs_move(trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                         uint64_t id, struct trp_output_place to)
{
    struct output *out = output_of(o, shuffle, map);
    if (!out || !out->was_there || out->id != id)
        return TRP_ENOENT;
    struct place *p = place_of(o, to);
    if (!p)
        return TRP_ENOMEM;
    leave_place(o, out);
    enter(o, out, p);
    return 0;
}

void trp_map_outputs_drop(trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                          struct trp_output_place place)
{
    struct output *out = output_of(o, shuffle, map);
    if (out && out->place && out->place->at.executor == place.executor &&
        out->place->at.host == place.host)
        leave_place(o, out);
    o->epoch++;
}

void trp_map_outputs_drop_all(trp_map_outputs *o, uint32_t shuffle)
{
    struct shuffle *s = shuffle_of(o, shuffle);
    for (uint32_t i = 0; s && s->available && i < s->maps; i++)
        leave_place(o, &s->outputs[i]);
    o->epoch++;
}

void trp_map_outputs_drop_executor(trp_map_outputs *o, uint32_t executor)
{
    struct place *p = executor < o->nexecutors ? o->executors[executor] : NULL;
    for (; p; p = p->next_of_executor)
        empty_place(o, p);
    o->epoch++;
}

void trp_map_outputs_drop_host(trp_map_outputs *o, uint32_t host)
{
    struct place *p = host < o->nhosts ? o->hosts[host] : NULL;
    for (; p; p = p->next_of_host)
        empty_place(o, p);
    o->epoch++;
}

void trp_map_outputs_unregister(trp_map_outputs *o, uint32_t shuffle)
{
    struct shuffle *s = shuffle_of(o, shuffle);
    if (!s)
        return;
    for (uint32_t i = 0; i < s->maps; i++)
        leave_place(o, &s->outputs[i]);
    shuffle_free(s);
    o->shuffles[shuffle] = NULL;
}

uint64_t trp_map_outputs_epoch(const trp_map_outputs *o)
{
    return o->epoch;
}

void trp_map_outputs_grow_epoch(trp_map_outputs *o)
{
    o->epoch++;
}

/* ---- questions ---- */

uint32_t trp_map_outputs_missing(const trp_map_outputs *o, uint32_t shuffle)
{
    const struct shuffle *s = shuffle_of(o, shuffle);
    return s ? s->maps - s->available : 0;
}

bool trp_map_outputs_complete(const trp_map_outputs *o, uint32_t shuffle)
{
    const struct shuffle *s = shuffle_of(o, shuffle);
    return s && s->available == s->maps;
}

bool trp_map_outputs_place(const trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                           struct trp_output_place *ret)
{
    const struct output *out = output_of(o, shuffle, map);
    if (!out || !out->place)
        return false;
    if (ret)
        *ret = out->place->at;
    return true;
}

uint64_t trp_map_outputs_id(const trp_map_outputs *o, uint32_t shuffle, uint32_t map)
{
    const struct output *out = output_of(o, shuffle, map);
    return out && out->place ? out->id : 0;
}

uint64_t trp_map_outputs_size(const trp_map_outputs *o, uint32_t shuffle, uint32_t map,
                              uint32_t reduce)
{
    const struct output *out = output_of(o, shuffle, map);
    return out && out->place ? size_for(o, out, reduce) : 0;
}

static bool place_before(struct trp_output_place a, struct trp_output_place b)
{
    return a.host != b.host ? a.host < b.host : a.executor < b.executor;
}

/* Keeps `ret` sorted; what does not fit falls off its end. */
static uint32_t insert(struct trp_output_place *ret, uint32_t n, uint32_t max,
                       struct trp_output_place at)
{
    uint32_t i = n;
    while (i > 0 && place_before(at, ret[i - 1]))
        i--;
    if (i == max)
        return n;
    uint32_t keep = n < max ? n : max - 1;
    memmove(ret + i + 1, ret + i, (keep - i) * sizeof(*ret));
    ret[i] = at;
    return keep + 1;
}

uint32_t trp_map_outputs_prefer(trp_map_outputs *o, uint32_t shuffle, uint32_t reduce,
                                double share, struct trp_output_place *ret,
                                uint32_t max)
{
    const struct shuffle *s = shuffle_of(o, shuffle);
    if (!s || s->maps >= TRP_MAP_OUTPUTS_PREFER_MAX ||
        s->reducers >= TRP_MAP_OUTPUTS_PREFER_MAX)
        return 0;
    uint64_t total = 0, question = ++o->questions;
    for (uint32_t i = 0; i < s->maps; i++) {
        const struct output *out = &s->outputs[i];
        uint64_t size = out->place ? size_for(o, out, reduce) : 0;
        if (!size)
            continue;
        if (out->place->asked != question) {
            out->place->asked = question;
            out->place->sum = 0;
        }
        out->place->sum += size;
        total += size;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->maps; i++) {
        struct place *p = s->outputs[i].place;
        if (!p || p == &o->shared || p->asked != question)
            continue;
        p->asked = 0; /* looked at */
        if ((double)p->sum / (double)total >= share)
            n = insert(ret, n, max, p->at);
    }
    return n;
}
