/*
 * Nodes of a virtual cluster. They are numbered inside first, then outside, group by
 * group, so that each zone is a row of numbers and first fit in a zone is one search in
 * the tree of free room.
 */
#include "sim/run/virtual_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run/virtual_state.h"

void trp_sim_amounts_add(struct trp_sim_amounts *to, const struct trp_sim_amounts *what,
                         double times)
{
    to->nodes += times * what->nodes;
    to->cores += times * what->cores;
    for (int i = 0; i < TRP_PROFILE_RESOURCES; i++)
        to->devices[i] += times * what->devices[i];
}

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* ---- making ---- */

static void add_zones(trp_virtual_cluster *c, bool inside)
{
    for (uint32_t g = 0; g < c->model->ngroups; g++) {
        uint32_t in = c->config.inside[g], all = c->model->groups[g].count;
        uint32_t n = inside ? in : all - in;
        if (!n)
            continue;
        c->zones[c->nzones++] = (struct trp_virtual_zone){
            .group = g, .from = c->nnodes, .to = c->nnodes + n, .inside = inside};
        c->nnodes += n;
    }
    if (inside)
        c->ninside = c->nnodes;
}

/* Others have some of the nodes outside, always the same: chosen by the seed. */
static void take_busy(trp_virtual_cluster *c, struct trp_virtual_zone *z)
{
    const struct trp_sim_group *g = &c->model->groups[z->group];
    uint32_t n = z->to - z->from;
    struct trp_random r = trp_random_of(c->config.seed, TRP_DRAW_BUSY, z->group, 0);
    if (z->inside)
        return;
    uint32_t want = (uint32_t)(g->busy * n + 0.5);
    for (uint32_t i = 0; i < n && z->busy < want; i++) {
        /* Each node with the probability that leaves exactly `want` of them. */
        if (trp_random_unit(&r) * (n - i) >= want - z->busy)
            continue;
        c->nodes[z->from + i].down = true;
        trp_node_tree_close(c->tree, z->from + i, true);
        z->busy++;
    }
}

int trp_virtual_cluster_new(const struct trp_virtual_config *config,
                            trp_virtual_cluster **ret, trp_error *err)
{
    trp_virtual_cluster *c = calloc(1, sizeof(*c));
    int64_t room[TRP_SIM_DIMS] = {0};
    if (!c)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster");
    c->config = *config;
    c->model = config->model;
    c->dims = 2 + c->model->ndevices;
    c->free_share = TRP_NONE;
    add_zones(c, true);
    if (!config->inside_only)
        add_zones(c, false);
    c->nodes = calloc(c->nnodes + 1, sizeof(*c->nodes));
    c->tree = trp_node_tree_new(c->nnodes, c->dims);
    if (!c->nodes || !c->tree) {
        trp_virtual_cluster_free(c);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster");
    }
    for (uint32_t i = 0; i < c->nzones; i++) {
        trp_virtual_group_capacity(c->model, c->zones[i].group, room);
        for (uint32_t n = c->zones[i].from; n < c->zones[i].to; n++) {
            c->nodes[n].first = TRP_NONE;
            trp_node_tree_add(c->tree, n, room, 1);
        }
        take_busy(c, &c->zones[i]);
    }
    *ret = c;
    return 0;
}

void trp_virtual_cluster_free(trp_virtual_cluster *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->nshares; i++)
        free(c->shares[i].places);
    free(c->shares);
    for (uint32_t i = 0; i < c->nlines; i++)
        free(c->lines[i].not_on);
    free(c->lines);
    free(c->nodes);
    trp_node_tree_free(c->tree);
    free(c);
}

static const struct trp_virtual_zone *zone_of(const trp_virtual_cluster *c,
                                              uint32_t node)
{
    const struct trp_virtual_zone *z = c->zones;
    while (node >= z->to)
        z++;
    return z;
}

/* ---- accounts ---- */

/* The part of a node that so much of everything is: the largest of the parts. */
static double part_of_node(const trp_virtual_cluster *c, uint32_t node,
                           const int64_t *amounts)
{
    int64_t room[TRP_SIM_DIMS] = {0};
    double part = 0;
    trp_virtual_group_capacity(c->model, zone_of(c, node)->group, room);
    for (uint32_t d = 0; d < c->dims; d++)
        if (amounts[d] > 0 && (double)amounts[d] / (double)room[d] > part)
            part = (double)amounts[d] / (double)room[d];
    return part;
}

static void count_in(const trp_virtual_cluster *c, uint32_t node,
                     const int64_t *amounts, struct trp_sim_amounts *to)
{
    to->nodes += part_of_node(c, node, amounts);
    to->cores += (double)amounts[0];
    for (uint32_t i = 0; i < c->model->ndevices; i++)
        to->devices[i] += (double)amounts[2 + i];
}

struct trp_sim_amounts trp_virtual_amounts(const trp_virtual_cluster *c, uint32_t share)
{
    struct trp_sim_amounts a = {0};
    const struct trp_virtual_share *s = &c->shares[share];
    const struct trp_virtual_line *l = &c->lines[s->line];
    int64_t need[TRP_SIM_DIMS] = {0};
    if (!l->ranks)
        count_in(c, s->node, l->one, &a);
    for (uint32_t i = 0; i < s->nplaces; i++) {
        for (uint32_t d = 0; d < c->dims; d++)
            need[d] = trp_virtual_footprint_of(&l->need, d, s->places[i].ranks);
        count_in(c, s->places[i].node, need, &a);
    }
    return a;
}

static void whole_node(const trp_virtual_cluster *c, uint32_t node,
                       struct trp_sim_amounts *ret)
{
    int64_t room[TRP_SIM_DIMS] = {0};
    trp_virtual_group_capacity(c->model, zone_of(c, node)->group, room);
    memset(ret, 0, sizeof *ret);
    count_in(c, node, room, ret);
}

struct trp_sim_amounts trp_virtual_held(const trp_virtual_cluster *c, int64_t start,
                                        int64_t now)
{
    struct trp_sim_amounts held = c->held, a;
    for (uint32_t n = 0; n < c->nnodes; n++) {
        bool outside = n >= c->ninside;
        if (outside && !(c->model->whole_nodes && c->nodes[n].used))
            continue;
        whole_node(c, n, &a);
        trp_sim_amounts_add(&held, &a,
                            seconds(now - (outside ? c->nodes[n].since : start)));
    }
    for (uint32_t i = 0; i < c->nshares && !c->model->whole_nodes; i++) {
        const struct trp_virtual_share *s = &c->shares[i];
        if (s->state >= TRP_SHARE_HAS && s->node >= c->ninside)
            a = trp_virtual_amounts(c, i);
        else
            continue;
        trp_sim_amounts_add(&held, &a, seconds(now - s->since));
    }
    return held;
}

bool trp_virtual_failed(const trp_virtual_cluster *c)
{
    return c->failed;
}

uint32_t trp_virtual_inside_nodes(const trp_virtual_cluster *c)
{
    return c->ninside;
}

/* ---- nodes ---- */

static void node_take(trp_virtual_cluster *c, uint32_t node, const int64_t *need,
                      int64_t now)
{
    struct trp_virtual_node *n = &c->nodes[node];
    trp_node_tree_add(c->tree, node, need, -1);
    if (n->used++)
        return;
    n->since = now;
    n->use++;
    if (c->config.handler.node_used)
        c->config.handler.node_used(c->config.handler.context, node, n->use);
}

static void node_give(trp_virtual_cluster *c, uint32_t node, const int64_t *need,
                      int64_t now)
{
    struct trp_virtual_node *n = &c->nodes[node];
    struct trp_sim_amounts a;
    trp_node_tree_add(c->tree, node, need, 1);
    if (--n->used || node < c->ninside || !c->model->whole_nodes)
        return;
    whole_node(c, node, &a);
    trp_sim_amounts_add(&c->held, &a, seconds(now - n->since));
}

bool trp_virtual_node_fails(trp_virtual_cluster *c, uint32_t node, uint32_t use,
                            uint32_t **ret, uint32_t *ret_n)
{
    struct trp_virtual_node *n = &c->nodes[node];
    *ret = NULL;
    *ret_n = 0;
    if (n->use != use || !n->used || n->down)
        return false;
    n->down = true;
    trp_node_tree_close(c->tree, node, true);
    *ret = calloc(n->used + 1, sizeof(**ret));
    if (!*ret) {
        c->failed = true;
        return true;
    }
    for (uint32_t s = n->first; s != TRP_NONE; s = c->shares[s].node_next)
        (*ret)[(*ret_n)++] = s;
    for (uint32_t l = 0; l < c->nlines; l++) {
        if (!c->lines[l].ranks)
            continue;
        for (uint32_t s = c->lines[l].has.first; s != TRP_NONE; s = c->shares[s].next)
            for (uint32_t i = 0; i < c->shares[s].nplaces; i++)
                if (c->shares[s].places[i].node == node)
                    (*ret)[(*ret_n)++] = s;
    }
    return true;
}

void trp_virtual_node_repaired(trp_virtual_cluster *c, uint32_t node)
{
    c->nodes[node].down = false;
    trp_node_tree_close(c->tree, node, false);
}

char *trp_virtual_host(const trp_virtual_cluster *c, uint32_t node, char *buf,
                       size_t size)
{
    const struct trp_virtual_zone *z = zone_of(c, node);
    uint32_t before = z->inside ? 0 : c->config.inside[z->group];
    snprintf(buf, size, "%s%u", c->model->groups[z->group].name,
             before + node - z->from + 1);
    return buf;
}

char *trp_virtual_rack(const trp_virtual_cluster *c, uint32_t node, char *buf,
                       size_t size)
{
    const struct trp_virtual_zone *z = zone_of(c, node);
    const struct trp_sim_group *g = &c->model->groups[z->group];
    uint64_t i = (z->inside ? 0 : c->config.inside[z->group]) + node - z->from;
    uint64_t rack = i * g->racks / g->count + 1;
    snprintf(buf, size, "%s-r%llu", g->name, (unsigned long long)rack);
    return buf;
}

/* ---- shares ---- */

static bool place_executor(trp_virtual_cluster *c, struct trp_virtual_share *s,
                           const struct trp_virtual_zone *z, int64_t now)
{
    const struct trp_virtual_line *l = &c->lines[s->line];
    uint32_t node = trp_node_tree_find(c->tree, z->from, z->to, l->one);
    if (node == TRP_NONE)
        return false;
    uint32_t share = (uint32_t)(s - c->shares);
    struct trp_virtual_node *n = &c->nodes[node];
    s->node = node;
    s->node_prev = TRP_NONE;
    s->node_next = n->first;
    if (n->first != TRP_NONE)
        c->shares[n->first].node_prev = share;
    n->first = share;
    node_take(c, node, l->one, now);
    return true;
}

static bool add_place(struct trp_virtual_share *s, uint32_t node, uint32_t ranks)
{
    if (!TRP_ARRAY_GROW(s->places, s->nplaces, s->places_capacity))
        return false;
    s->places[s->nplaces++] = (struct trp_virtual_place){node, ranks};
    return true;
}

static void give_places(trp_virtual_cluster *c, struct trp_virtual_share *s,
                        int64_t now)
{
    int64_t need[TRP_SIM_DIMS] = {0};
    for (uint32_t i = 0; i < s->nplaces; i++) {
        for (uint32_t d = 0; d < c->dims; d++)
            need[d] = trp_virtual_footprint_of(&c->lines[s->line].need, d,
                                               s->places[i].ranks);
        node_give(c, s->places[i].node, need, now);
    }
    free(s->places);
    s->places = NULL;
    s->nplaces = s->places_capacity = 0;
}

/* All ranks in the zones of one side, as many on a node as it holds; or none. */
static bool place_gang(trp_virtual_cluster *c, struct trp_virtual_share *s,
                       uint32_t zones, bool inside, int64_t now)
{
    const struct trp_virtual_line *l = &c->lines[s->line];
    int64_t need[TRP_SIM_DIMS] = {0};
    uint32_t left = l->ranks;
    for (uint32_t i = 0; i < c->nzones && left; i++) {
        const struct trp_virtual_zone *z = &c->zones[i];
        uint32_t node = z->from;
        while (zones >> i & 1 && z->inside == inside && left) {
            node = trp_node_tree_find(c->tree, node, z->to, l->one);
            if (node == TRP_NONE)
                break;
            uint64_t k = trp_virtual_footprint_fits(
                &l->need, trp_node_tree_available(c->tree, node), c->dims);
            k = k < left ? k : left;
            for (uint32_t d = 0; d < c->dims; d++)
                need[d] = trp_virtual_footprint_of(&l->need, d, k);
            if (!add_place(s, node, (uint32_t)k)) {
                c->failed = true;
                break;
            }
            node_take(c, node++, need, now);
            left -= (uint32_t)k;
        }
    }
    if (left) {
        give_places(c, s, now);
        return false;
    }
    s->node = s->places[0].node;
    return true;
}

bool trp_virtual_place(trp_virtual_cluster *c, uint32_t share, uint32_t zones,
                       int64_t now)
{
    struct trp_virtual_share *s = &c->shares[share];
    bool placed = false;
    if (c->lines[s->line].ranks)
        placed =
            place_gang(c, s, zones, true, now) || place_gang(c, s, zones, false, now);
    for (uint32_t i = 0; i < c->nzones && !c->lines[s->line].ranks && !placed; i++)
        placed = zones >> i & 1 && place_executor(c, s, &c->zones[i], now);
    if (placed) {
        s->state = TRP_SHARE_HAS;
        s->since = now;
    }
    return placed;
}

void trp_virtual_unplace(trp_virtual_cluster *c, uint32_t share, int64_t now,
                         bool counts)
{
    struct trp_virtual_share *s = &c->shares[share];
    if (counts && s->node >= c->ninside && !c->model->whole_nodes) {
        struct trp_sim_amounts a = trp_virtual_amounts(c, share);
        trp_sim_amounts_add(&c->held, &a, seconds(now - s->since));
    }
    s->state = TRP_SHARE_WAITS;
    if (c->lines[s->line].ranks) {
        give_places(c, s, now);
        return;
    }
    if (s->node_prev == TRP_NONE)
        c->nodes[s->node].first = s->node_next;
    else
        c->shares[s->node_prev].node_next = s->node_next;
    if (s->node_next != TRP_NONE)
        c->shares[s->node_next].node_prev = s->node_prev;
    node_give(c, s->node, c->lines[s->line].one, now);
}

void trp_virtual_share_free(trp_virtual_cluster *c, uint32_t share)
{
    c->shares[share].state = TRP_SHARE_FREE;
    c->shares[share].next = c->free_share;
    c->free_share = share;
}

uint32_t trp_virtual_owner(const trp_virtual_cluster *c, uint32_t share)
{
    return c->shares[share].owner;
}

uint32_t trp_virtual_node(const trp_virtual_cluster *c, uint32_t share)
{
    return c->shares[share].node;
}

trp_profile_id trp_virtual_profile(const trp_virtual_cluster *c, uint32_t share)
{
    return c->lines[c->shares[share].line].profile;
}

bool trp_virtual_is_outside(const trp_virtual_cluster *c, uint32_t share)
{
    return c->shares[share].node >= c->ninside;
}

bool trp_virtual_is_gang(const trp_virtual_cluster *c, uint32_t share)
{
    return c->lines[c->shares[share].line].ranks > 0;
}
