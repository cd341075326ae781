/*
 * Stages made of datasets. Every shuffled dataset behind a job's dataset gets a map
 * stage, unless a stage of another job makes that shuffle already; parents come first,
 * so that ids grow from parents to children. Datasets still to be made stand on a
 * stack: one is walked when it comes to the top, pushes what it lacks, and is made when
 * it is on top again. So every dataset of a job is walked twice, whatever the graph's
 * depth.
 */
#include <string.h>

#include "core/engine_state.h"

static struct trp_stage **map_stage(struct trp_engine *e, uint32_t dataset)
{
    uint32_t shuffle = e->dag.graph.v[dataset]->shuffle;
    return shuffle < e->dag.nmap_stages ? &e->dag.map_stages[shuffle] : NULL;
}

static struct trp_stage *find_map_stage(struct trp_engine *e, uint32_t dataset)
{
    struct trp_stage **at = map_stage(e, dataset);
    return at ? *at : NULL;
}

/* The dataset's number among the map outputs, where its outputs may be already. */
static int take_shuffle(struct trp_engine *e, uint32_t dataset, trp_error *err)
{
    struct trp_dataset *d = e->dag.graph.v[dataset];
    struct trp_dag *dag = &e->dag;
    if (d->shuffle == TRP_NONE)
        d->shuffle = dag->nshuffles++;
    if (!TRP_ARRAY_GROW(dag->map_stages, d->shuffle, dag->map_stages_cap))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a shuffle");
    while (dag->nmap_stages <= d->shuffle)
        dag->map_stages[dag->nmap_stages++] = NULL;
    if (trp_map_outputs_known(dag->outputs, d->shuffle))
        return 0;
    return trp_map_outputs_register(dag->outputs, d->shuffle, d->partitions, 0, err);
}

/* ---- what a stage must fulfil; the chain was walked just now ---- */

static int stage_profile(struct trp_engine *e, trp_profile_id *ret, trp_error *err)
{
    const struct trp_stack *p = &e->dag.graph.profiles;
    trp_profile_id *v = malloc((p->n ? p->n : 1) * sizeof(*v));
    if (!v)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    for (uint32_t i = 0; i < p->n; i++)
        v[i].n = p->v[i];
    uint32_t before = trp_profiles_count(e->profiles);
    int rc = trp_profiles_of_stage(e->profiles, v, p->n, ret, err);
    free(v);
    if (rc == 0 && trp_profiles_count(e->profiles) > before)
        trp_action_add(e, TRP_ACTION_PROFILE_ADDED)->profile = *ret;
    return rc;
}

static int check_barrier(struct trp_engine *e, uint32_t dataset, trp_profile_id profile,
                         uint32_t ntasks, trp_error *err)
{
    const struct trp_dataset *d = e->dag.graph.v[dataset];
    if (!d->barrier)
        return 0;
    int rc = trp_gate_check(e, d->name, profile, d->partitions, err);
    return rc < 0 ? rc : trp_graph_check_barrier(&e->dag.graph, dataset, ntasks, err);
}

/* ---- making one ---- */

static bool may_prefer(const struct trp_dataset *d)
{
    return d->may_cache || d->prefer_first || (d->nparents == 1 && d->parents->shuffle);
}

static bool note_preferences(struct trp_engine *e, struct trp_stage *s)
{
    const struct trp_graph *g = &e->dag.graph;
    for (uint32_t i = 0; i < g->chain.n; i++)
        s->nprefer += may_prefer(g->v[g->chain.v[i]]);
    s->prefer = malloc((s->nprefer ? s->nprefer : 1) * sizeof(*s->prefer));
    if (!s->prefer)
        return false;
    s->nprefer = 0;
    for (uint32_t i = 0; i < g->chain.n; i++) {
        const struct trp_dataset *d = g->v[g->chain.v[i]];
        s->cache_in_chain |= d->may_cache;
        for (uint32_t k = 0; k < d->nparents; k++)
            s->has_runs |= d->parents[k].begin || d->parents[k].nfirst;
        if (may_prefer(d))
            s->prefer[s->nprefer++] = g->chain.v[i];
    }
    return true;
}

static struct trp_stage *make(struct trp_engine *e, struct trp_job *j, uint32_t dataset,
                              bool map, trp_profile_id profile)
{
    struct trp_graph *g = &e->dag.graph;
    const struct trp_dataset *d = g->v[dataset];
    struct trp_stage_spec spec = {
        .name = d->name,
        .profile = profile,
        .nparents = g->shuffles.n,
        .tasks_known = true,
        .ntasks = d->partitions,
        .map = map,
        .barrier = d->barrier,
        .indeterminate = d->indeterminate,
    };
    struct trp_stage *s = trp_stage_new(e, &spec);
    if (!s)
        return NULL;
    s->first_job = j->id;
    s->dataset = dataset;
    g->v[dataset]->users++;
    s->bits = calloc((size_t)d->partitions / 64 + 1, sizeof(*s->bits));
    if (!s->bits || !note_preferences(e, s))
        return NULL;
    for (uint32_t i = 0; i < g->shuffles.n; i++)
        trp_stage_link(s, find_map_stage(e, g->shuffles.v[i]), TRP_EDGE_SHUFFLE);
    if (map) {
        s->shuffle = d->shuffle;
        *map_stage(e, dataset) = s;
    }
    return s;
}

/* Walked, checked and made, all its parents being there. */
static int make_map(struct trp_engine *e, struct trp_job *j, uint32_t dataset,
                    trp_error *err)
{
    trp_profile_id profile = {0};
    int rc = stage_profile(e, &profile, err);
    if (rc == 0)
        rc = check_barrier(e, dataset, profile, e->dag.graph.v[dataset]->partitions,
                           err);
    if (rc == 0 && !trp_graph_walk(&e->dag.graph, dataset, false))
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    if (rc == 0)
        rc = take_shuffle(e, dataset, err);
    if (rc == 0 && !make(e, j, dataset, true, profile))
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    return rc;
}

/* Puts the shuffles that the walked chain lacks on the stack, the first on top. */
static bool push_lacking(struct trp_engine *e, struct trp_stack *todo)
{
    const struct trp_stack *shuffles = &e->dag.graph.shuffles;
    for (uint32_t i = shuffles->n; i-- > 0;)
        if (!find_map_stage(e, shuffles->v[i]) && !trp_stack_push(todo, shuffles->v[i]))
            return false;
    return true;
}

static int make_maps(struct trp_engine *e, struct trp_job *j, struct trp_stack *todo,
                     trp_error *err)
{
    int rc = 0;
    while (rc == 0 && todo->n) {
        uint32_t at = todo->v[todo->n - 1], before = todo->n;
        if (find_map_stage(e, at)) {
            todo->n--;
            continue;
        }
        if (!trp_graph_walk(&e->dag.graph, at, false) || !push_lacking(e, todo))
            return trp_error_set(err, TRP_ENOMEM, "out of memory for stages");
        if (todo->n == before)
            rc = make_map(e, j, at, err);
    }
    return rc;
}

/* ---- the job's last stage ---- */

/* The bits of partitions that the job does not ask for are set. */
static void ask_for(struct trp_stage *s, const struct trp_job *j)
{
    if (!j->partitions)
        return;
    for (uint32_t i = 0; i < s->ntasks; i++)
        trp_bit_set(s->bits, i);
    s->unasked = s->ntasks;
    for (uint32_t i = 0; i < j->npartitions; i++) {
        s->unasked -= trp_bit(s->bits, j->partitions[i]);
        trp_bit_clear(s->bits, j->partitions[i]);
    }
}

static uint32_t distinct_partitions(const struct trp_engine *e, const struct trp_job *j)
{
    uint32_t partitions = e->dag.graph.v[j->dataset]->partitions, n = 0;
    uint8_t *seen = j->partitions ? calloc(partitions, 1) : NULL;
    if (!seen)
        return partitions;
    for (uint32_t i = 0; i < j->npartitions; i++) {
        n += !seen[j->partitions[i]];
        seen[j->partitions[i]] = 1;
    }
    free(seen);
    return n;
}

static int make_result(struct trp_engine *e, struct trp_job *j, struct trp_stack *todo,
                       trp_error *err)
{
    struct trp_graph *g = &e->dag.graph;
    trp_profile_id profile = {0};
    if (!trp_graph_walk(g, j->dataset, false))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for stages");
    int rc = stage_profile(e, &profile, err);
    if (rc == 0)
        rc = check_barrier(e, j->dataset, profile, distinct_partitions(e, j), err);
    if (rc == 0 && (!trp_graph_walk(g, j->dataset, false) || !push_lacking(e, todo)))
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for stages");
    if (rc == 0)
        rc = make_maps(e, j, todo, err);
    if (rc < 0)
        return rc;
    if (trp_graph_walk(g, j->dataset, false))
        j->final = make(e, j, j->dataset, false, profile);
    if (!j->final)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    j->final->redo = j->redo;
    ask_for(j->final, j);
    return 0;
}

static int make_stages(struct trp_engine *e, struct trp_job *j, trp_error *err)
{
    struct trp_stack todo = {0};
    int rc;
    if (!j->map_only) {
        rc = make_result(e, j, &todo, err);
    } else {
        rc = trp_stack_push(&todo, j->dataset)
                 ? make_maps(e, j, &todo, err)
                 : trp_error_set(err, TRP_ENOMEM, "out of memory for stages");
        if (rc == 0)
            j->final = find_map_stage(e, j->dataset);
    }
    free(todo.v);
    return rc;
}

/* ---- all that a job uses ---- */

/* Ids of a stage and all behind it, into dag.found, in order. */
static bool find_all(struct trp_engine *e, struct trp_stage *last)
{
    struct trp_stack *found = &e->dag.found;
    found->n = 0;
    last->mark = ++e->dag.mark;
    if (!trp_stack_push(found, last->id.n))
        return false;
    for (uint32_t at = 0; at < found->n; at++) {
        const struct trp_stage *s = e->stages[found->v[at]];
        for (uint32_t i = 0; i < s->nparents; i++) {
            struct trp_stage *p = s->parents[i].parent;
            if (p->mark == e->dag.mark)
                continue;
            p->mark = e->dag.mark;
            if (!trp_stack_push(found, p->id.n))
                return false;
        }
    }
    trp_stack_sort(found);
    return true;
}

static int use_all(struct trp_engine *e, struct trp_job *j, trp_error *err)
{
    const struct trp_stack *found = &e->dag.found;
    if (find_all(e, j->final))
        j->uses = malloc(found->n * sizeof(*j->uses));
    if (!j->uses)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a job's stages");
    for (; j->nuses < found->n; j->nuses++)
        trp_use_add(e, &j->uses[j->nuses], j, e->stages[found->v[j->nuses]]);
    return 0;
}

int trp_plan_job(struct trp_engine *e, struct trp_job *j, trp_error *err)
{
    uint32_t first = e->nstages;
    int rc = make_stages(e, j, err);
    if (rc == 0)
        rc = use_all(e, j, err);
    if (rc == 0)
        return 0;
    j->final = NULL;
    while (e->nstages > first) {
        struct trp_stage *s = e->stages[--e->nstages];
        struct trp_stage **at = s->is_map ? map_stage(e, s->dataset) : NULL;
        if (at && *at == s)
            *at = NULL;
        trp_stage_free(e, s);
    }
    return rc;
}
