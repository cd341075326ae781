/*
 * Making, linking and freeing of stages. A stage is freed at the end of the step in
 * which no job uses it any more and the last attempt of its tasks has ended: whatever
 * speaks of it until then finds it. One that the engine made itself is freed when the
 * next step begins: only the actions of this one tell the driver that there was one.
 */
#include <string.h>
#include <utlist.h>

#include "core/engine_state.h"

struct trp_stage *trp_stage_find(const struct trp_engine *e, trp_stage_id id)
{
    return id.n < e->nstages ? e->stages[id.n] : NULL;
}

static void copy_spec(struct trp_stage *s, const struct trp_stage_spec *spec)
{
    s->nnot_on = spec->nnot_on;
    s->profile = spec->profile;
    s->kind = spec->kind;
    s->tasks_known = spec->tasks_known;
    s->ntasks = spec->ntasks;
    s->ranks = spec->ranks;
    s->max_failures = spec->max_failures;
    s->max_losses = spec->max_losses;
    s->max_repeats = spec->max_repeats;
    s->max_running = spec->max_running;
    s->memory_factor_ppm = spec->memory_factor_ppm;
    s->tolerate = spec->tolerate;
    s->tolerate_ppm = spec->tolerate_ppm;
    s->min_executors = spec->min_executors;
    s->max_executors = spec->max_executors;
    s->look_ahead = spec->look_ahead;
    s->look_ahead_ns = spec->look_ahead_ns;
    s->is_map = spec->map;
    s->barrier = spec->barrier;
    s->indeterminate = spec->indeterminate;
    s->checked = spec->checked;
}

static void free_memory(struct trp_stage *s)
{
    free(s->name);
    free(s->pool);
    free(s->not_on);
    for (uint32_t i = 0; s->parents && i < s->nparents; i++)
        free(s->parents[i].by);
    free(s->parents);
    free(s->prefer);
    free(s->epochs);
    free(s->bits);
    free(s->commits);
    free(s->lost);
    free(s->gave_up.text);
    free(s);
}

struct trp_stage *trp_stage_new(struct trp_engine *e, const struct trp_stage_spec *spec)
{
    struct trp_stage *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->name = strdup(spec->name ? spec->name : "");
    s->pool = spec->pool ? strdup(spec->pool) : NULL;
    s->parents = malloc((spec->nparents ? spec->nparents : 1) * sizeof(*s->parents));
    s->not_on = malloc((spec->nnot_on ? spec->nnot_on : 1) * sizeof(*s->not_on));
    if (!s->name || (spec->pool && !s->pool) || !s->parents || !s->not_on ||
        !TRP_ARRAY_GROW(e->stages, e->nstages, e->stages_cap)) {
        free_memory(s);
        return NULL;
    }
    if (spec->nnot_on)
        memcpy(s->not_on, spec->not_on, spec->nnot_on * sizeof(*s->not_on));
    copy_spec(s, spec);
    s->outcome = TRP_OUTCOME_RUNNING;
    s->dataset = s->shuffle = s->last_failed = TRP_NONE;
    s->id.n = e->nstages;
    e->stages[e->nstages++] = s;
    return s;
}

void trp_stage_link(struct trp_stage *s, struct trp_stage *parent, enum trp_edge edge)
{
    struct trp_stage_link *l = &s->parents[s->nparents++];
    *l = (struct trp_stage_link){.parent = parent, .child = s, .edge = edge};
    DL_APPEND(parent->children, l);
    parent->each_children += edge == TRP_EDGE_EACH;
}

static void unlink(struct trp_stage_link *l)
{
    DL_DELETE(l->parent->children, l);
    l->parent->each_children -= l->edge == TRP_EDGE_EACH;
}

void trp_stage_free(struct trp_engine *e, struct trp_stage *s)
{
    for (uint32_t i = 0; i < s->nparents; i++)
        if (s->parents[i].parent)
            unlink(&s->parents[i]);
    if (s->dataset != TRP_NONE)
        e->dag.graph.v[s->dataset]->users--;
    for (struct trp_stage_link *l = s->children; l; l = l->next)
        l->parent = NULL; /* a child that lives longer, for its attempts' sake */
    if (s->is_map && s->dataset == TRP_NONE) {
        trp_map_outputs_unregister(e->dag.outputs, s->shuffle);
        trp_supply_shuffle_gone(e, s->shuffle);
    }
    free_memory(s);
}

void trp_stage_check_dead(struct trp_engine *e, struct trp_stage *s)
{
    if (s->uses || s->live || s->dead || e->sched_alone)
        return;
    s->dead = true;
    e->unsettled = true;
    LL_PREPEND2(e->dag.dead_stages, s, dead_next);
}

static void free_one(struct trp_engine *e, struct trp_stage *s)
{
    e->stages[s->id.n] = NULL;
    trp_stage_free(e, s);
}

void trp_stages_free_dead(struct trp_engine *e)
{
    while (e->dag.dead_stages) {
        struct trp_stage *s = e->dag.dead_stages;
        e->dag.dead_stages = s->dead_next;
        if (s->dataset == TRP_NONE) {
            free_one(e, s);
            continue;
        }
        LL_PREPEND2(e->dag.told_stages, s, dead_next);
    }
}

void trp_stages_free_told(struct trp_engine *e)
{
    while (e->dag.told_stages) {
        struct trp_stage *s = e->dag.told_stages;
        e->dag.told_stages = s->dead_next;
        free_one(e, s);
    }
}

/* ---- what keeps it alive ---- */

void trp_dag_attempt_began(struct trp_engine *e, struct trp_stage *s)
{
    (void)e;
    if (s->live++)
        return;
    for (struct trp_use *u = s->uses; u; u = u->next)
        u->job->busy++;
}

void trp_dag_attempt_gone(struct trp_engine *e, struct trp_stage *s)
{
    if (--s->live)
        return;
    for (struct trp_use *u = s->uses; u; u = u->next)
        u->job->busy--;
    if (s->gave_up.text)
        trp_stage_gave_up(e, s);
    trp_stage_check_dead(e, s);
}

uint16_t trp_dag_held(const struct trp_stage *s, uint32_t task)
{
    uint16_t held = 0;
    for (uint32_t i = 0; i < s->nparents; i++)
        held +=
            s->parents[i].edge == TRP_EDGE_EACH && trp_link_holds(&s->parents[i], task);
    return held;
}

/* ---- executors that can never be obtained ---- */

static bool needs_class(const struct trp_stage *s, const struct trp_class *c)
{
    for (const struct trp_task_set *set = s->set; set; set = set->overflow)
        if (set->class == c)
            return true;
    return false;
}

void trp_class_give_up(struct trp_engine *e, struct trp_class *c, int code,
                       const char *text)
{
    for (uint32_t i = 0; i < e->nstages; i++) {
        struct trp_stage *s = trp_stage_at(e, i);
        if (s && s->state == TRP_STAGE_RUNNING && needs_class(s, c))
            trp_stage_abort(e, s, code, TRP_NONE, text);
    }
}
