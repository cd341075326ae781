/*
 * Stages are dealt to chains, so that of two in one chain the later waits for the
 * earlier. Each stage makes a load: itself, and of every other chain the most of each
 * kind that a stage takes which may run beside it. Which stages wait for which is a
 * matrix of bits, a row a stage, made in the order of the stages.
 *
 * Rejected: the heaviest set of stages that may run at once, exactly. It is a flow
 * problem for one number a stage, and executors of several kinds are not one number.
 */
#include "core/alloc/outlook.h"

#include <string.h>

#include "core/engine_state.h"

struct work {
    const struct trp_outlook_stage *stages;
    uint32_t n, words;
    uint64_t *before;      /* n rows: the stages whose end a stage waits for */
    uint32_t *kind;        /* of a stage: its index */
    uint32_t *next;        /* in its chain; TRP_NONE: the last */
    uint32_t *head, *tail; /* of a chain */
    uint32_t *chain;       /* of a stage */
    uint32_t nchains;
    uint32_t *load, *most; /* by kind: the present stage's; of one chain */
    uint32_t kept_cap;
};

static uint32_t add_saturated(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static bool waits_for(const struct work *w, uint32_t stage, uint32_t other)
{
    return w->before[(size_t)stage * w->words + other / 64] >> (other % 64) & 1;
}

/* With `each` a stage runs beside its parent, and after all that the parent waits for.
 */
static void find_before(struct work *w, uint32_t stage)
{
    const struct trp_outlook_stage *s = &w->stages[stage];
    uint64_t *row = &w->before[(size_t)stage * w->words];
    for (uint32_t i = 0; i < s->nparents; i++) {
        uint32_t parent = s->parents[i].stage;
        for (uint32_t k = 0; k < w->words; k++)
            row[k] |= w->before[(size_t)parent * w->words + k];
        if (!s->parents[i].each)
            row[parent / 64] |= UINT64_C(1) << (parent % 64);
    }
}

static void join_chain(struct work *w, uint32_t stage)
{
    uint32_t c = 0;
    while (c < w->nchains && !waits_for(w, stage, w->tail[c]))
        c++;
    if (c == w->nchains)
        w->head[w->nchains++] = stage;
    else
        w->next[w->tail[c]] = stage;
    w->tail[c] = stage;
    w->chain[stage] = c;
    w->next[stage] = TRP_NONE;
}

static void find_shape(struct work *w, uint32_t stage, struct trp_outlook *o)
{
    struct trp_outlook_kind want = w->stages[stage].kind;
    uint32_t i = 0;
    while (i < o->nkinds &&
           (o->kinds[i].profile != want.profile || o->kinds[i].ranks != want.ranks))
        i++;
    o->kinds[i] = want;
    o->nkinds += i == o->nkinds;
    w->kind[stage] = i;
}

/* What runs of a chain beside a stage. */
static void add_chain(struct work *w, uint32_t stage, uint32_t chain)
{
    for (uint32_t i = w->head[chain]; i != TRP_NONE; i = w->next[i]) {
        uint32_t count = w->stages[i].count, *most = &w->most[w->kind[i]];
        if (!waits_for(w, stage, i) && !waits_for(w, i, stage) && count > *most)
            *most = count;
    }
    for (uint32_t i = w->head[chain]; i != TRP_NONE; i = w->next[i]) {
        uint32_t k = w->kind[i];
        w->load[k] = add_saturated(w->load[k], w->most[k]);
        w->most[k] = 0;
    }
}

static bool covers(const uint32_t *a, const uint32_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i] < b[i])
            return false;
    return true;
}

/* Unless another one covers it; those that it covers go. */
static int keep_load(struct work *w, struct trp_outlook *o)
{
    uint32_t n = o->nkinds, kept = 0;
    if (covers(w->most, w->load, n)) /* which is all zeros again */
        return 0;
    for (uint32_t i = 0; i < o->nloads; i++)
        if (covers(&o->counts[(size_t)i * n], w->load, n))
            return 0;
    for (uint32_t i = 0; i < o->nloads; i++) {
        const uint32_t *old = &o->counts[(size_t)i * n];
        if (!covers(w->load, old, n))
            memmove(&o->counts[(size_t)kept++ * n], old, n * sizeof(*old));
    }
    o->nloads = kept;
    if (!TRP_ARRAY_RESERVE(o->counts, w->kept_cap, ((uint64_t)kept + 1) * n))
        return TRP_ENOMEM;
    memcpy(&o->counts[(size_t)o->nloads++ * n], w->load, n * sizeof(*w->load));
    return 0;
}

static int make_load(struct work *w, uint32_t stage, struct trp_outlook *o)
{
    memset(w->load, 0, o->nkinds * sizeof(*w->load));
    w->load[w->kind[stage]] = w->stages[stage].count;
    for (uint32_t c = 0; c < w->nchains; c++)
        if (c != w->chain[stage])
            add_chain(w, stage, c);
    return keep_load(w, o);
}

int trp_outlook_make(const struct trp_outlook_stage *stages, uint32_t n,
                     struct trp_outlook *ret)
{
    struct work w = {.stages = stages, .n = n, .words = (n + 63) / 64};
    *ret = (struct trp_outlook){0};
    if (n > TRP_OUTLOOK_STAGES)
        return TRP_ELIMIT;
    if (n == 0)
        return 0;
    uint32_t *numbers = calloc((size_t)n * 7, sizeof(*numbers));
    w.before = calloc((size_t)n * w.words, sizeof(*w.before));
    ret->kinds = calloc(n, sizeof(*ret->kinds));
    int code = numbers && w.before && ret->kinds ? 0 : TRP_ENOMEM;
    uint32_t **const arrays[] = {&w.kind,  &w.next, &w.head, &w.tail,
                                 &w.chain, &w.load, &w.most};
    for (uint32_t i = 0; code == 0 && i < 7; i++)
        *arrays[i] = numbers + (size_t)i * n;
    for (uint32_t i = 0; code == 0 && i < n; i++) {
        find_shape(&w, i, ret);
        find_before(&w, i);
        join_chain(&w, i);
    }
    for (uint32_t i = 0; code == 0 && i < n; i++)
        code = make_load(&w, i, ret);
    free(numbers);
    free(w.before);
    if (code < 0)
        trp_outlook_free(ret);
    return code;
}

void trp_outlook_free(struct trp_outlook *o)
{
    free(o->kinds);
    free(o->counts);
    *o = (struct trp_outlook){0};
}

/* ---- of an engine ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Executors that a stage may still use: as demand.c bounds them. */
static uint32_t executors_of(const struct trp_engine *e, const struct trp_stage *s)
{
    const struct trp_resource_profile *p = trp_profiles_get(e->profiles, s->profile);
    const int64_t none[TRP_CAPS] = {0};
    int64_t cost[TRP_CAPS];
    uint32_t n = UINT32_MAX;
    if (s->tasks_known) {
        uint32_t over = s->is_map ? 0 : s->succeeded + s->given_up + s->unasked;
        n = s->ntasks > over ? s->ntasks - over : 0;
    }
    if (s->max_running)
        n = smaller(n, s->max_running);
    n = n / p->slots + (n % p->slots != 0);
    if (n)
        n = larger(n, larger(s->min_executors, e->config.min_executors));
    if (s->max_executors)
        n = smaller(n, s->max_executors);
    trp_caps_cost(&e->caps, p, cost);
    return smaller(smaller(n, e->config.max_executors),
                   trp_caps_left(&e->caps, none, cost, NULL));
}

static uint32_t link_parents(const struct trp_stage *s, const uint32_t *place,
                             struct trp_parent_spec *ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->nparents; i++) {
        uint32_t at = place[s->parents[i].parent->id.n];
        if (at != TRP_NONE)
            ret[n++] = (struct trp_parent_spec){
                .stage = at, .each = s->parents[i].edge == TRP_EDGE_EACH};
    }
    return n;
}

int trp_engine_outlook(const trp_engine *e, struct trp_outlook *ret)
{
    uint32_t n = 0, nparents = 0;
    *ret = (struct trp_outlook){0};
    for (uint32_t i = 0; i < e->nstages; i++) {
        const struct trp_stage *s = trp_stage_at(e, i);
        bool may_run = s && s->state != TRP_STAGE_ENDED;
        n += may_run;
        nparents += may_run ? s->nparents : 0;
    }
    if (n > TRP_OUTLOOK_STAGES)
        return TRP_ELIMIT;
    struct trp_outlook_stage *v = calloc((size_t)n + 1, sizeof(*v));
    struct trp_parent_spec *parents = calloc((size_t)nparents + 1, sizeof(*parents));
    uint32_t *place = malloc(((size_t)e->nstages + 1) * sizeof(*place));
    int code = v && parents && place ? 0 : TRP_ENOMEM;
    n = nparents = 0;
    for (uint32_t i = 0; code == 0 && i < e->nstages; i++) {
        const struct trp_stage *s = trp_stage_at(e, i);
        place[i] = TRP_NONE;
        if (!s || s->state == TRP_STAGE_ENDED)
            continue;
        bool gang = s->kind == TRP_STAGE_GANG;
        place[i] = n;
        v[n].kind = (struct trp_outlook_kind){trp_profiles_get(e->profiles, s->profile),
                                              gang ? s->ranks : 0};
        v[n].count = gang ? 1 : executors_of(e, s);
        v[n].parents = &parents[nparents];
        v[n].nparents = link_parents(s, place, &parents[nparents]);
        nparents += v[n++].nparents;
    }
    if (code == 0)
        code = trp_outlook_make(v, n, ret);
    free(v);
    free(parents);
    free(place);
    return code;
}
