/* The oracle's order of task sets: semantics 19. */
#include <stdio.h>
#include <string.h>

#include "oracle.h"

static void set_name(const struct oracle *o, int set, char *buf, size_t size)
{
    snprintf(buf, size, "TaskSet_%d.%d", o->setup->sets[set].stage,
             o->setup->sets[set].attempt);
}

static bool in_pool(const struct oracle *o, int pool, int of)
{
    for (; pool != OR_NONE; pool = o->setup->pools[pool].parent)
        if (pool == of)
            return true;
    return false;
}

/* A child of a pool: a pool, or a set. */
struct child {
    bool is_set;
    int n, running, min_share, weight, priority, stage;
    char name[32];
};

static bool fair_before(const struct child *a, const struct child *b)
{
    bool needy_a = a->running < a->min_share, needy_b = b->running < b->min_share;
    if (needy_a != needy_b)
        return needy_a;
    double x, y;
    if (needy_a) {
        x = (double)a->running / (a->min_share > 1 ? a->min_share : 1);
        y = (double)b->running / (b->min_share > 1 ? b->min_share : 1);
    } else {
        x = (double)a->running / a->weight;
        y = (double)b->running / b->weight;
    }
    if (x < y || x > y)
        return x < y;
    return strcmp(a->name, b->name) < 0;
}

static bool fifo_before(const struct child *a, const struct child *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->stage < b->stage;
}

static int children_of(const struct oracle *o, int pool, bool flat, struct child *v)
{
    const struct or_setup *c = o->setup;
    int n = 0;
    for (int p = 0; p < c->npools && !flat; p++) {
        if (c->pools[p].parent != pool)
            continue;
        v[n] = (struct child){.n = p,
                              .min_share = c->pools[p].min_share,
                              .weight = c->pools[p].weight,
                              .stage = -1};
        for (int s = 0; s < c->nsets; s++)
            if (o->sets[s].submitted && in_pool(o, c->sets[s].pool, p))
                v[n].running += or_running_of(o, s);
        snprintf(v[n].name, sizeof(v[n].name), p ? "p%d" : "default", p);
        n++;
    }
    for (int s = 0; s < c->nsets; s++) {
        if (!o->sets[s].submitted || (!flat && c->sets[s].pool != pool))
            continue;
        v[n] = (struct child){.is_set = true,
                              .n = s,
                              .weight = 1,
                              .running = or_running_of(o, s),
                              .priority = c->sets[s].job,
                              .stage = c->sets[s].stage};
        set_name(o, s, v[n].name, sizeof(v[n].name));
        n++;
    }
    return n;
}

static int order_pool(const struct oracle *o, int pool, bool fair, bool flat, int *ret)
{
    struct child v[OR_POOLS + OR_SETS];
    int n = children_of(o, pool, flat, v), nret = 0;
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && (fair ? fair_before(&v[k], &v[k - 1])
                                       : fifo_before(&v[k], &v[k - 1]));
             k--) {
            struct child t = v[k];
            v[k] = v[k - 1];
            v[k - 1] = t;
        }
    for (int i = 0; i < n; i++)
        if (v[i].is_set)
            ret[nret++] = v[i].n;
        else
            nret +=
                order_pool(o, v[i].n, o->setup->pools[v[i].n].fair, false, ret + nret);
    return nret;
}

int or_order(const struct oracle *o, int *ret_sets)
{
    return order_pool(o, OR_NONE, o->setup->fair, !o->setup->fair, ret_sets);
}
