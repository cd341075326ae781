/*
 * What concerns several stages. Names are found by bisection in an index sorted by name
 * (n log n; a linear search would be quadratic for a chain of 10,000 stages).
 *
 * Order: Kahn's algorithm with a heap of the stages whose parents are all placed, so
 * that ties keep the order of the file. What it cannot place waits for a cycle: walking
 * from the first such stage along unplaced parents must come back to a stage already
 * met. No recursion anywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/pipeline_load.h"
#include "conf/wording.h"
#include "core/base/heap.h"
#include "core/base/ids.h"

enum { CYCLE_SHOWN = 12 };

struct index {
    const trp_pipeline *p;
    uint32_t *by_name; /* stages that have a name */
    uint32_t n;
};

/* ---- names ---- */

static int by_name_then_place(const void *a, const void *b, void *context)
{
    const struct trp_pipeline_stage *stages = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = strcmp(stages[x].name, stages[y].name);
    return order ? order : (x > y) - (x < y);
}

static uint32_t find_stage(const struct index *ix, const char *name)
{
    uint32_t low = 0, high = ix->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(ix->p->stages[ix->by_name[middle]].name, name);
        if (order == 0)
            return ix->by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return TRP_NONE;
}

static void check_names(trp_yaml *y, struct index *ix)
{
    struct trp_pipeline_stage *stages = ix->p->stages;
    for (uint32_t i = 0; i < ix->p->nstages; i++) {
        if (stages[i].name)
            ix->by_name[ix->n++] = i;
    }
    qsort_r(ix->by_name, ix->n, sizeof(*ix->by_name), by_name_then_place, stages);
    for (uint32_t i = 1; i < ix->n; i++) {
        const struct trp_pipeline_stage *a = &stages[ix->by_name[i - 1]];
        const struct trp_pipeline_stage *b = &stages[ix->by_name[i]];
        if (!strcmp(a->name, b->name))
            trp_yaml_wrong(y, b->mark,
                           "a second stage \"%s\", the first is in line %u; give it "
                           "another name",
                           trp_show(b->name).text, a->mark.line);
    }
}

/* ---- after ---- */

static void unknown_parent(trp_yaml *y, const struct index *ix,
                           const struct trp_after *a)
{
    struct trp_nearest near = trp_nearest_of(a->stage);
    struct trp_name_list all = {0};
    if (!trp_yaml_would_tell(y, a->mark))
        return;
    for (uint32_t i = 0; i < ix->p->nstages; i++) {
        const char *name = ix->p->stages[i].name;
        if (name)
            trp_nearest_try(&near, name);
        if (name && !all.full)
            trp_name_list_add(&all, trp_show(name).text);
    }
    if (near.best)
        trp_yaml_wrong(y, a->mark, "after names an unknown stage \"%s\"%s",
                       trp_show(a->stage).text, trp_did_you_mean(&near).text);
    else
        trp_yaml_wrong(y, a->mark,
                       "after names an unknown stage \"%s\"; the stages are %s",
                       trp_show(a->stage).text, all.text);
}

static int64_t product_tasks(const struct trp_pipeline_stage *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->nparts; i++) {
        if (s->parts[i].kind != TRP_FOREACH_ITEMS ||
            __builtin_mul_overflow(n, s->parts[i].nitems, &n))
            return -1;
    }
    return n;
}

/* Tasks of a stage, or -1 while nobody can know. */
static int64_t known_tasks(const struct trp_pipeline_stage *s)
{
    switch (s->foreach) {
    case TRP_FOREACH_NONE:
        return s->tasks == TRP_NONE ? -1 : (int64_t)s->tasks; /* NONE: it is wrong */
    case TRP_FOREACH_ITEMS:
        return s->nitems;
    case TRP_FOREACH_PRODUCT:
        return product_tasks(s);
    default:
        return -1;
    }
}

static void check_each(trp_yaml *y, const struct trp_pipeline_stage *s,
                       const struct trp_pipeline_stage *parent,
                       const struct trp_after *a)
{
    int64_t own = known_tasks(s), theirs = known_tasks(parent);
    const struct trp_pipeline_stage *none =
        s->foreach != TRP_FOREACH_TABLE ? s : parent;
    if (a->by && !parent->absent && none->foreach != TRP_FOREACH_TABLE)
        trp_yaml_wrong(y, a->by_mark,
                       "by: stage %s has no table, so no columns; give it foreach: "
                       "{table: FILE}, or write each or neither",
                       none->name ? trp_show(none->name).text : "");
    if (a->each && !a->by && !parent->absent && own >= 0 && theirs >= 0 &&
        own != theirs)
        trp_yaml_wrong(
            y, a->mark,
            "each: stage %s has %lld task%s, %s has %lld; make them equal, or "
            "leave each out",
            trp_show(a->stage).text, (long long)theirs, theirs == 1 ? "" : "s",
            s->name ? trp_show(s->name).text : "this one", (long long)own);
}

/* `seen_by[i]` is the last stage (plus 1) that named stage i in its `after`. */
static void resolve_parents(trp_yaml *y, const struct index *ix, uint32_t *seen_by)
{
    struct trp_pipeline_stage *stages = ix->p->stages;
    for (uint32_t i = 0; i < ix->p->nstages; i++) {
        for (uint32_t k = 0; k < stages[i].nafter; k++) {
            struct trp_after *a = &stages[i].after[k];
            if (!a->stage)
                continue;
            a->index = find_stage(ix, a->stage);
            if (a->index == TRP_NONE && ix->n == ix->p->nstages)
                unknown_parent(y, ix, a); /* else it may be one without a name */
            if (a->index == TRP_NONE)
                continue;
            if (seen_by[a->index] == i + 1)
                trp_yaml_wrong(y, a->mark, "after names \"%s\" twice; remove one",
                               trp_show(a->stage).text);
            seen_by[a->index] = i + 1;
            check_each(y, &stages[i], &stages[a->index], a);
        }
    }
}

/* ---- order ---- */

/* The children of stage i are children[first[i] .. first[i + 1]). */
struct graph {
    uint32_t *first, *children, *waits; /* waits: parents not placed yet */
    struct trp_heap ready;              /* stages whose parents are placed */
};

static bool graph_make(struct graph *g, const trp_pipeline *p,
                       struct trp_conf_arena *scratch)
{
    uint32_t n = p->nstages, edges = 0;
    for (uint32_t i = 0; i < n; i++)
        edges += p->stages[i].nafter;
    g->first = trp_conf_arena_alloc(scratch, (size_t)n + 2, sizeof(uint32_t));
    g->children = trp_conf_arena_alloc(scratch, edges, sizeof(uint32_t));
    g->waits = trp_conf_arena_alloc(scratch, n, sizeof(uint32_t));
    g->ready = (struct trp_heap){.v = trp_conf_arena_alloc(scratch, n, sizeof(int64_t)),
                                 .cap = n};
    if (!g->first || !g->children || !g->waits || !g->ready.v)
        return false;
    /* Counted two places up, then summed, then filled from one place up. */
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < p->stages[i].nafter; k++) {
            uint32_t parent = p->stages[i].after[k].index;
            if (parent == TRP_NONE)
                continue;
            g->first[parent + 2]++;
            g->waits[i]++;
        }
    }
    for (uint32_t i = 2; i < n + 2; i++)
        g->first[i] += g->first[i - 1];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < p->stages[i].nafter; k++) {
            uint32_t parent = p->stages[i].after[k].index;
            if (parent != TRP_NONE)
                g->children[g->first[parent + 1]++] = i;
        }
    }
    return true;
}

/* Places what can be placed; returns how many. */
static uint32_t place_stages(trp_pipeline *p, struct graph *g)
{
    uint32_t placed = 0;
    for (uint32_t i = 0; i < p->nstages; i++) {
        if (g->waits[i] == 0)
            trp_heap_push(&g->ready, i);
    }
    while (g->ready.n > 0) {
        uint32_t stage = (uint32_t)trp_heap_pop(&g->ready);
        p->order[placed++] = stage;
        for (uint32_t k = g->first[stage]; k < g->first[stage + 1]; k++) {
            uint32_t child = g->children[k];
            if (--g->waits[child] == 0)
                trp_heap_push(&g->ready, child);
        }
    }
    return placed;
}

/* The first of its parents that waits itself. */
static const struct trp_after *waiting_parent(const trp_pipeline *p,
                                              const struct graph *g, uint32_t stage)
{
    const struct trp_pipeline_stage *s = &p->stages[stage];
    for (uint32_t k = 0; k < s->nafter; k++) {
        if (s->after[k].index != TRP_NONE && g->waits[s->after[k].index] > 0)
            return &s->after[k];
    }
    return NULL; /* cannot be: it waits */
}

static void tell_cycle(trp_yaml *y, const trp_pipeline *p, const struct graph *g,
                       uint32_t *met)
{
    uint32_t at = 0, first;
    while (g->waits[at] == 0)
        at++;
    for (; !met[at]; at = waiting_parent(p, g, at)->index)
        met[at] = 1;
    /* `at` is on the cycle; it is told from its first stage in the file. */
    first = at;
    for (uint32_t i = waiting_parent(p, g, at)->index; i != at;
         i = waiting_parent(p, g, i)->index)
        first = i < first ? i : first;

    char path[512];
    size_t used = 0;
    uint32_t i = first, shown = 0;
    do {
        used += (size_t)snprintf(path + used, sizeof(path) - used, "%s → ",
                                 trp_show(p->stages[i].name).text);
        i = waiting_parent(p, g, i)->index;
    } while (i != first && ++shown < CYCLE_SHOWN && used < sizeof(path) / 2);
    trp_yaml_wrong(y, waiting_parent(p, g, first)->mark,
                   "stages wait for each other: %s%s%s; remove one \"after\"", path,
                   i == first ? "" : "… → ", trp_show(p->stages[first].name).text);
}

/* Files that are to go and do not: of stages that nobody waits for, or somebody who runs at
 * every --resume. */
static void warn_of_temp(trp_yaml *y, trp_pipeline *p, uint8_t *waited)
{
    enum { WAITED = 1, ALWAYS = 2 };
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct trp_pipeline_stage *s = &p->stages[i];
        for (uint32_t a = 0; !s->absent && a < s->nafter; a++)
            if (s->after[a].index != TRP_NONE)
                waited[s->after[a].index] |= WAITED | (s->always ? ALWAYS : 0);
    }
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct trp_pipeline_stage *s = &p->stages[i];
        if (!s->temp_mark.line || s->absent)
            continue;
        if (!waited[i])
            trp_pipeline_warn(y, p, s->temp_mark,
                              "stage %s: no stage comes after it, so its output that "
                              "is temp stays",
                              s->name);
        else if (waited[i] & ALWAYS)
            trp_pipeline_warn(y, p, s->temp_mark,
                              "stage %s: a stage after it runs at every --resume, so "
                              "its output that is temp stays",
                              s->name);
    }
}

void trp_pipeline_check(trp_yaml *y, trp_pipeline *p)
{
    struct trp_conf_arena scratch = {0};
    struct index ix = {.p = p};
    struct graph g = {0};
    ix.by_name = trp_conf_arena_alloc(&scratch, p->nstages, sizeof(uint32_t));
    uint32_t *marks = trp_conf_arena_alloc(&scratch, p->nstages, sizeof(uint32_t));
    p->order = trp_yaml_alloc(y, p->nstages, sizeof(uint32_t));
    bool room = ix.by_name && marks && p->order;
    if (room) {
        check_names(y, &ix);
        resolve_parents(y, &ix, marks);
        room = graph_make(&g, p, &scratch);
    }
    if (!room) {
        trp_yaml_no_memory(y);
    } else if (place_stages(p, &g) < p->nstages) {
        memset(marks, 0, p->nstages * sizeof(*marks));
        tell_cycle(y, p, &g, marks);
    } else {
        memset(marks, 0, p->nstages * sizeof(*marks));
        warn_of_temp(y, p, (uint8_t *)marks);
    }
    trp_conf_arena_free(&scratch);
}

/* ---- when ---- */

void trp_pipeline_leave_out(trp_pipeline *p)
{
    uint32_t n = 0, all = p->nstages;
    struct trp_pipeline_stage *s = p->stages;
    for (uint32_t i = 0; i < all; i++)
        if (!s[i].absent)
            s[i].place = n++;
    if (n == all)
        return;
    for (uint32_t i = 0, place = n; i < all; i++)
        if (s[i].absent)
            s[i].place = place++;
    for (uint32_t i = 0; i < p->nstages; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < s[i].nafter; k++) {
            const struct trp_pipeline_stage *parent = &s[s[i].after[k].index];
            if (parent->absent)
                continue;
            s[i].after[kept] = s[i].after[k];
            s[i].after[kept++].index = parent->place;
        }
        s[i].nafter = kept;
    }
    for (uint32_t i = 0, k = 0; i < p->nstages; i++)
        if (!s[p->order[i]].absent)
            p->order[k++] = s[p->order[i]].place;
    for (uint32_t i = 0; i < all; i++)
        while (s[i].place != i) {
            const struct trp_pipeline_stage there = s[s[i].place];
            s[s[i].place] = s[i];
            s[i] = there;
        }
    p->nstages = n;
    p->nabsent = all - n;
}
