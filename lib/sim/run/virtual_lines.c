/*
 * Who waits for room in a virtual cluster.
 *
 * Of the shares of a line that wait, `asked` are covered by jobs in the queue, and
 * `credit` of those by jobs whose wait is over. Shares of a line are alike, so only the
 * numbers matter: when room inside serves one, one less has to be covered by a job.
 *
 * Lines are served in the order of their longest waiting share. If that share finds no
 * room, the zones that it could use are closed to the lines behind it until the next
 * time, so small shares never starve a gang. Lines of what is requested ahead come
 * last. Cost: O(lines) a grant.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/run/virtual_state.h"

/* ---- lists ---- */

static void list_add(trp_virtual_cluster *c, struct trp_virtual_list *l, uint32_t share)
{
    struct trp_virtual_share *s = &c->shares[share];
    s->next = TRP_NONE;
    s->prev = l->n ? l->last : TRP_NONE;
    if (l->n++)
        c->shares[l->last].next = share;
    else
        l->first = share;
    l->last = share;
}

static void list_remove(trp_virtual_cluster *c, struct trp_virtual_list *l,
                        uint32_t share)
{
    struct trp_virtual_share *s = &c->shares[share];
    if (s->prev == TRP_NONE)
        l->first = s->next;
    else
        c->shares[s->prev].next = s->next;
    if (s->next == TRP_NONE)
        l->last = s->prev;
    else
        c->shares[s->next].prev = s->prev;
    if (--l->n == 0)
        l->first = l->last = TRP_NONE;
}

/* ---- lines ---- */

static void line_make(const trp_virtual_cluster *c, struct trp_virtual_line *l,
                      const struct trp_resource_profile *p, uint32_t ranks)
{
    int64_t room[TRP_SIM_DIMS] = {0};
    const struct trp_virtual_list none = {TRP_NONE, TRP_NONE, 0};
    *l = (struct trp_virtual_line){
        .profile = p->id, .ranks = ranks, .waits = none, .has = none, .left = none};
    trp_virtual_footprint_make(c->model, p, ranks, &l->need);
    for (uint32_t d = 0; d < c->dims; d++)
        l->one[d] = trp_virtual_footprint_of(&l->need, d, 1);
    for (uint32_t i = 0; i < c->nzones; i++) {
        trp_virtual_group_capacity(c->model, c->zones[i].group, room);
        if (trp_virtual_footprint_fits(&l->need, room, c->dims))
            *(c->zones[i].inside ? &l->inside_mask : &l->out_mask) |= UINT32_C(1) << i;
    }
}

static uint32_t line_find(const trp_virtual_cluster *c, trp_profile_id profile,
                          uint32_t ranks, bool ahead, const char *not_on)
{
    for (uint32_t i = 0; i < c->nlines; i++)
        if (c->lines[i].profile.n == profile.n && c->lines[i].ranks == ranks &&
            c->lines[i].ahead == ahead &&
            strcmp(c->lines[i].not_on ? c->lines[i].not_on : "", not_on) == 0)
            return i;
    return TRP_NONE;
}

uint32_t trp_virtual_line(trp_virtual_cluster *c, const struct trp_resource_profile *p,
                          uint32_t ranks, bool ahead, const char *not_on)
{
    uint32_t found = line_find(c, p->id, ranks, ahead, not_on);
    if (found != TRP_NONE)
        return found;
    if (!TRP_ARRAY_GROW(c->lines, c->nlines, c->lines_cap))
        return TRP_NONE;
    struct trp_virtual_line *l = &c->lines[c->nlines];
    line_make(c, l, p, ranks);
    if (*not_on && !(l->not_on = strdup(not_on)))
        return TRP_NONE;
    if (ahead) {
        l->ahead = true;
        l->needed = line_find(c, p->id, ranks, false, "");
        l->inside_mask = 0;
    }
    return c->nlines++;
}

/* ---- shares ---- */

static uint32_t share_new(trp_virtual_cluster *c, uint32_t line, uint32_t owner)
{
    uint32_t share = c->free_share;
    if (share != TRP_NONE) {
        c->free_share = c->shares[share].next;
    } else {
        if (!TRP_ARRAY_GROW(c->shares, c->nshares, c->shares_cap)) {
            c->failed = true;
            return TRP_NONE;
        }
        share = c->nshares++;
    }
    c->shares[share] = (struct trp_virtual_share){.line = line,
                                                  .owner = owner,
                                                  .state = TRP_SHARE_WAITS,
                                                  .node = TRP_NONE,
                                                  .asked = c->serial++};
    return share;
}

uint32_t trp_virtual_ask(trp_virtual_cluster *c, uint32_t line, uint32_t owner)
{
    uint32_t share = share_new(c, line, owner);
    if (share != TRP_NONE)
        list_add(c, &c->lines[line].waits, share);
    return share;
}

void trp_virtual_may_add(trp_virtual_cluster *c, uint32_t share)
{
    if (share == TRP_NONE || c->shares[share].state != TRP_SHARE_WAITS)
        return;
    c->lines[c->shares[share].line].may_add += !c->shares[share].may_add;
    c->shares[share].may_add = true;
}

/* It waits in this line no more. */
static void leave_waiting(trp_virtual_cluster *c, struct trp_virtual_line *l,
                          uint32_t share)
{
    list_remove(c, &l->waits, share);
    l->may_add -= c->shares[share].may_add;
}

static void no_more_than_wait(struct trp_virtual_line *l)
{
    if (l->asked > l->waits.n)
        l->asked = l->waits.n;
    if (l->credit > l->waits.n)
        l->credit = l->waits.n;
}

static void give_back(trp_virtual_cluster *c, struct trp_virtual_list *l,
                      uint32_t share, int64_t now)
{
    list_remove(c, l, share);
    trp_virtual_unplace(c, share, now, true);
    trp_virtual_share_free(c, share);
}

void trp_virtual_leave(trp_virtual_cluster *c, uint32_t share, int64_t now)
{
    struct trp_virtual_share *s = &c->shares[share];
    struct trp_virtual_line *l = &c->lines[s->line];
    if (s->state == TRP_SHARE_WAITS) {
        leave_waiting(c, l, share);
        trp_virtual_share_free(c, share);
        no_more_than_wait(l);
    } else if (c->config.whole_jobs) {
        list_remove(c, &l->has, share);
        list_add(c, &l->left, share);
        s->state = TRP_SHARE_LEFT;
        s->owner = TRP_NONE;
    } else {
        give_back(c, &l->has, share, now);
    }
    while (!l->has.n && !l->waits.n && l->left.n) /* the job is over */
        give_back(c, &l->left, l->left.first, now);
}

/* ---- jobs ---- */

static uint32_t nodes_of(const trp_virtual_cluster *c, const struct trp_virtual_line *l,
                         uint32_t shares)
{
    int64_t room[TRP_SIM_DIMS] = {0};
    uint64_t fits = 1, units = l->ranks ? (uint64_t)shares * l->ranks : shares;
    for (uint32_t i = 0; i < c->nzones; i++)
        if (l->out_mask >> i & 1) {
            trp_virtual_group_capacity(c->model, c->zones[i].group, room);
            fits = trp_virtual_footprint_fits(&l->need, room, c->dims);
            break;
        }
    return (uint32_t)((units + fits - 1) / fits);
}

uint32_t trp_virtual_nodes(trp_virtual_cluster *c, const struct trp_resource_profile *p,
                           uint32_t executors)
{
    struct trp_virtual_line l;
    line_make(c, &l, p, 0);
    return nodes_of(c, &l, executors);
}

static void submit_job(trp_virtual_cluster *c, uint32_t line, uint32_t shares)
{
    c->config.handler.job(c->config.handler.context, line, shares,
                          nodes_of(c, &c->lines[line], shares));
}

void trp_virtual_share_needed(trp_virtual_cluster *c, uint32_t share)
{
    struct trp_virtual_share *s = &c->shares[share];
    struct trp_virtual_line *from = &c->lines[s->line], *to;
    if (!from->ahead || s->state != TRP_SHARE_WAITS)
        return;
    to = &c->lines[from->needed];
    leave_waiting(c, from, share);
    list_add(c, &to->waits, share);
    to->may_add += s->may_add;
    s->line = from->needed;
    /* What jobs cover goes along. */
    if (from->asked > from->waits.n) {
        from->asked--;
        to->asked++;
    }
    if (from->credit) {
        from->credit--;
        to->credit++;
    }
}

void trp_virtual_submit(trp_virtual_cluster *c, int64_t now)
{
    trp_virtual_serve(c, now); /* inside */
    for (uint32_t i = 0; i < c->nlines; i++) {
        no_more_than_wait(&c->lines[i]);
        uint32_t may = c->lines[i].may_add, asked = c->lines[i].asked;
        uint32_t n = may > asked ? may - asked : 0;
        if (!n || !c->lines[i].out_mask)
            continue;
        c->lines[i].asked += n;
        submit_job(c, i, n);
    }
}

/* The executors that it was requested for may be needed by now. */
void trp_virtual_job_ready(trp_virtual_cluster *c, uint32_t line, uint32_t shares)
{
    struct trp_virtual_line *l = &c->lines[line];
    uint32_t n = l->asked - l->credit;
    n = n < shares ? n : shares;
    l->credit += n;
    if (l->ahead && shares > n)
        trp_virtual_job_ready(c, l->needed, shares - n);
}

/* ---- serving ---- */

static void grant(trp_virtual_cluster *c, struct trp_virtual_line *l, uint32_t share)
{
    leave_waiting(c, l, share);
    list_add(c, &l->has, share);
    if (c->shares[share].node >= c->ninside) {
        l->credit--;
        l->asked--;
    }
    no_more_than_wait(l);
    c->config.handler.granted(c->config.handler.context, share);
}

/* All shares that the line's jobs cover, or none. */
static bool serve_whole(trp_virtual_cluster *c, struct trp_virtual_line *l,
                        uint32_t zones, int64_t now)
{
    uint32_t n = l->credit, placed = 0, s = l->waits.first;
    for (; placed < n && trp_virtual_place(c, s, zones, now); placed++)
        s = c->shares[s].next;
    if (placed == n) {
        while (n-- > 0)
            grant(c, l, l->waits.first);
        return true;
    }
    for (s = l->waits.first; placed > 0; placed--, s = c->shares[s].next)
        trp_virtual_unplace(c, s, now, false);
    return false;
}

/* The line whose first share has waited longest, of those not in `done`; those ahead
 * last. */
static uint32_t next_line(const trp_virtual_cluster *c, const bool *done)
{
    uint32_t best = TRP_NONE;
    for (uint32_t i = 0; i < c->nlines; i++) {
        if (done[i] || !c->lines[i].waits.n)
            continue;
        const struct trp_virtual_line *l = &c->lines[i],
                                      *b = &c->lines[best == TRP_NONE ? 0 : best];
        if (best == TRP_NONE || l->ahead < b->ahead ||
            (l->ahead == b->ahead &&
             c->shares[l->waits.first].asked < c->shares[b->waits.first].asked))
            best = i;
    }
    return best;
}

/* Keeps the hosts where the line's shares are not to be from being found. */
static void bar(trp_virtual_cluster *c, const struct trp_virtual_line *l, bool barred)
{
    char name[64];
    for (const char *at = l->not_on; at && *at; at += strcspn(at, ",")) {
        at += *at == ',';
        size_t size = strcspn(at, ",");
        for (uint32_t n = 0; n < c->nnodes; n++) {
            trp_virtual_host(c, n, name, sizeof name);
            if (strncmp(at, name, size) == 0 && !name[size])
                trp_node_tree_close(c->tree, n, barred || c->nodes[n].down);
        }
    }
}

void trp_virtual_serve(trp_virtual_cluster *c, int64_t now)
{
    bool *done = calloc(c->nlines + 1, sizeof(*done));
    uint32_t closed = 0, i;
    if (!done) {
        c->failed = true;
        return;
    }
    while ((i = next_line(c, done)) != TRP_NONE) {
        struct trp_virtual_line *l = &c->lines[i];
        uint32_t zones = l->inside_mask | (l->credit ? l->out_mask : 0);
        bool served;
        bar(c, l, true);
        if (c->config.whole_jobs && l->credit) {
            served = serve_whole(c, l, zones & ~closed, now);
        } else {
            uint32_t share = l->waits.first;
            served = trp_virtual_place(c, share, zones & ~closed, now);
            if (served)
                grant(c, l, share);
        }
        bar(c, l, false);
        if (!served) {
            done[i] = true;
            closed |= l->not_on ? 0 : zones; /* it waits for one that others have */
        }
    }
    free(done);
}
