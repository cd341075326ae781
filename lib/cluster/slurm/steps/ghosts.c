/*
 * We make one `steps` call (line.h, one RPC) at a time, for one job: that of the first
 * node which is taken. The pause before a call doubles, until a step is started. We
 * leave steps alone that are not among our ended ones. A taken node without a ghost is
 * used again.
 */
#include "cluster/slurm/steps/ghosts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

#include "cluster/slurm/jobs/node_watch.h"

enum { FIRST_MS = 250, MOST_MS = 8000 };

static void on_timer(uv_timer_t *timer);

static void look_later(struct trp_slurm *s)
{
    struct trp_slurm_ghosts *g = &s->ghosts;
    if (g->asked || uv_is_active((uv_handle_t *)&g->timer))
        return;
    uv_timer_start(&g->timer, on_timer, g->pause_ms, 0);
    g->pause_ms = 2 * g->pause_ms < MOST_MS ? 2 * g->pause_ms : MOST_MS;
}

/* The first node that is taken, UINT32_MAX: none. */
static uint32_t find_taken(const struct trp_slurm *s)
{
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        if (s->inventory.nodes[i].name &&
            trp_slurm_ledger_standing(s->ledger, i) == TRP_SLURM_TAKEN)
            return i;
    }
    return UINT32_MAX;
}

static bool is_over(const struct trp_slurm_ghosts *g, uint32_t job, uint32_t step)
{
    for (uint64_t i = 0; i < g->nover && i < TRP_SLURM_STEPS_KEPT; i++) {
        if (g->over[i].job == job && g->over[i].step == step)
            return true;
    }
    return false;
}

static void end_ghost(struct trp_slurm *s, uint32_t job, uint32_t step)
{
    char call[64];
    snprintf(call, sizeof call, "end-step job=%u step=%u", job, step);
    trp_slurm_helper_tell(s->helper, call);
}

static int on_step(void *context, const struct trp_slurm_line *line, trp_error *err)
{
    struct trp_slurm *s = context;
    struct trp_slurm_ghosts *g = &s->ghosts;
    const char *host = trp_slurm_line_text(line, "host");
    uint32_t job = (uint32_t)trp_slurm_line_number(line, "job");
    uint32_t step = (uint32_t)trp_slurm_line_number(line, "step");
    (void)err;
    if (s->closed || strcmp(line->word, "step") != 0 || !is_over(g, job, step))
        return 0;
    if (g->cancelled != step) /* a line for each of its hosts */
        end_ghost(s, job, step);
    g->cancelled = step;
    for (uint32_t i = 0; i < g->capacity && i < s->inventory.nnodes; i++) {
        const struct trp_slurm_node *n = &s->inventory.nodes[i];
        if (n->name && n->part == g->part && strcmp(n->name, host) == 0)
            g->haunted[i] = true;
    }
    return 0;
}

static void on_answer(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm *s = context;
    struct trp_slurm_ghosts *g = &s->ghosts;
    g->asked = false;
    if (s->closed)
        return;
    for (uint32_t i = 0; !end->failed && i < g->capacity && i < s->inventory.nnodes;
         i++) {
        const struct trp_slurm_node *n = &s->inventory.nodes[i];
        if (n->name && n->part == g->part && !g->haunted[i] &&
            trp_slurm_ledger_standing(s->ledger, i) == TRP_SLURM_TAKEN)
            trp_slurm_ledger_set_standing(s->ledger, i, TRP_SLURM_GOOD);
    }
    trp_slurm_pump_soon(s);
    if (find_taken(s) != UINT32_MAX)
        look_later(s);
}

static void on_timer(uv_timer_t *timer)
{
    struct trp_slurm *s = timer->data;
    struct trp_slurm_ghosts *g = &s->ghosts;
    uint32_t node = find_taken(s), n = s->inventory.nnodes;
    char call[64];
    if (node == UINT32_MAX)
        return;
    if (TRP_ARRAY_RESERVE(g->haunted, g->capacity, n)) {
        memset(g->haunted, 0, g->capacity * sizeof *g->haunted);
        g->cancelled = UINT32_MAX;
        g->part = s->inventory.nodes[node].part;
        snprintf(call, sizeof call, "steps job=%u", s->inventory.parts[g->part].job);
        g->asked = trp_slurm_helper_call(s->helper, call, on_step, on_answer, s) == 0;
    }
    if (!g->asked)
        look_later(s);
}

void trp_slurm_ghosts_open(struct trp_slurm *s)
{
    s->ghosts.timer.data = s;
    s->ghosts.pause_ms = FIRST_MS;
    uv_timer_init(s->loop, &s->ghosts.timer);
    s->handles++;
}

static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static bool names_node(const struct trp_slurm *s, const struct trp_slurm_spot *spot,
                       const char *refusal)
{
    const char *name = s->inventory.nodes[spot->node].name;
    size_t n = strlen(name);
    for (const char *at = refusal; (at = strstr(at, name)); at += n) {
        if ((at == refusal || !is_in_name(at[-1])) && !is_in_name(at[n]))
            return true;
    }
    return false;
}

/* Of several nodes it is that one, if a node is named. */
static bool is_meant(const struct trp_slurm *s, const struct trp_slurm_request *r,
                     uint32_t spot, const char *refusal)
{
    bool any = false;
    for (uint32_t i = 0; i < r->nspots && !any; i++)
        any = names_node(s, &r->spots[i], refusal);
    return !any || names_node(s, &r->spots[spot], refusal);
}

static void note_over(struct trp_slurm *s, const struct trp_slurm_request *r,
                      uint32_t step)
{
    struct trp_slurm_ghosts *g = &s->ghosts;
    uint64_t at = g->nover++ % TRP_SLURM_STEPS_KEPT;
    g->over[at].job = trp_slurm_part_of(s, r)->job;
    g->over[at].step = step;
}

/* "StepId=7.2": a step that has begun on some of its nodes keeps their room until the
 * others are missed. */
static bool is_ghost(struct trp_slurm *s, const struct trp_slurm_request *r,
                     const char *refusal)
{
    const char *id = strstr(refusal, "StepId=");
    unsigned step;
    if (!id || sscanf(id + strcspn(id, ". "), ".%u", &step) != 1)
        return false;
    note_over(s, r, step);
    return true;
}

void trp_slurm_ghosts_refused(struct trp_slurm *s, const struct trp_slurm_request *r,
                              const char *refusal)
{
    struct trp_slurm_kind_jobs *w = r->kind->context;
    bool made = *refusal && !strstr(refusal, "Unable to c"); /* a step was */
    bool ghost = made && is_ghost(s, r, refusal);
    snprintf(w->refused, sizeof w->refused,
             "Slurm has refused a step of profile %s on %s%s, where it should fit: %s",
             w->profile.name, trp_slurm_node_of(s, r)->name,
             r->nspots > 1 ? " and others" : "", refusal);
    for (uint32_t i = 0; i < r->nspots; i++) {
        uint32_t node = r->spots[i].node;
        if (made && is_meant(s, r, i, refusal))
            trp_slurm_watch_doubt(s, node, TRP_SLURM_SILENT);
        else if ((!made || ghost) &&
                 trp_slurm_ledger_standing(s->ledger, node) < TRP_SLURM_TAKEN)
            trp_slurm_ledger_set_standing(s->ledger, node, TRP_SLURM_TAKEN);
    }
    if (!made || ghost)
        look_later(s);
}

void trp_slurm_ghosts_started(struct trp_slurm *s)
{
    s->ghosts.pause_ms = FIRST_MS;
}

void trp_slurm_ghosts_over(const struct trp_slurm_executor *e)
{
    if (e->heard.has_step && e->request.state == TRP_SLURM_PLACED)
        note_over(e->slurm, &e->request, e->heard.step);
}
