/* What the engine tells of itself: stages, outputs, counts, ledger. Nothing changes. */
#include "core/engine.h"
#include "core/engine_state.h"

uint32_t trp_engine_stages(const trp_engine *e)
{
    return e->nstages;
}

int trp_engine_stage(const trp_engine *e, trp_stage_id stage,
                     struct trp_stage_view *ret)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    if (!s)
        return TRP_ENOENT;
    *ret = (struct trp_stage_view){
        .name = s->name,
        .job = s->first_job,
        .profile = s->profile,
        .kind = s->kind,
        .submitted = s->state >= TRP_STAGE_RUNNING,
        .outcome = s->outcome,
        .attempts = s->attempts,
        .dataset = s->dataset,
        .map = s->is_map,
        .barrier = s->barrier,
        .used = s->uses != NULL,
        .ntasks = s->ntasks,
        .succeeded = s->succeeded,
        .failed = s->given_up,
        .skipped = s->skipped,
    };
    if (s->is_map && s->tasks_known)
        ret->succeeded =
            s->ntasks - trp_map_outputs_missing(e->dag.outputs, s->shuffle);
    for (const struct trp_task_set *set = s->set; set; set = set->overflow) {
        ret->pending += set->pending;
        ret->running += set->running;
        ret->queued += set->queued;
    }
    return 0;
}

trp_profile_id trp_engine_task_profile(const trp_engine *e, trp_stage_id stage,
                                       uint32_t task)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    const struct trp_task_set *in = s ? s->set : NULL;
    if (!in || task >= in->ntasks)
        return s ? s->profile : (trp_profile_id){0};
    for (uint8_t i = 0; i < in->tasks[task].grown && in->overflow; i++)
        in = in->overflow;
    return in->profile->id;
}

static const char *host_name(const trp_engine *e, struct trp_output_place at)
{
    return at.host == TRP_NONE ? "" : e->hosts.hosts[at.host].name;
}

int trp_engine_output(const trp_engine *e, trp_stage_id stage, uint32_t map,
                      trp_executor_id *ret_executor, const char **ret_host)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    struct trp_output_place at;
    if (!s || !s->is_map ||
        !trp_map_outputs_place(e->dag.outputs, s->shuffle, map, &at))
        return TRP_ENOENT;
    ret_executor->n = at.executor;
    *ret_host = host_name(e, at);
    return 0;
}

bool trp_engine_attempt(const trp_engine *e, trp_attempt_id attempt,
                        struct trp_attempt_view *ret)
{
    uint32_t slot = trp_attempt_find(e, attempt);
    if (slot == TRP_NONE)
        return false;
    const struct trp_attempt *a = &e->attempts.v[slot];
    *ret = (struct trp_attempt_view){.stage = a->set->stage->id,
                                     .task = a->task,
                                     .executor = {a->executor},
                                     .queued = a->state == TRP_ATTEMPT_QUEUED};
    return true;
}

uint32_t trp_engine_parents(const trp_engine *e, trp_stage_id stage, trp_stage_id *ret,
                            uint32_t cap)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    uint32_t n = s ? s->nparents : 0;
    for (uint32_t i = 0; i < n && i < cap; i++)
        ret[i] = s->parents[i].parent->id;
    return n;
}

/* The number of a dataset among the map outputs. */
static uint32_t shuffle_of(const trp_engine *e, uint32_t dataset)
{
    const struct trp_dataset *d = trp_graph_get(&e->dag.graph, dataset);
    return d ? d->shuffle : TRP_NONE;
}

uint32_t trp_engine_inputs(const trp_engine *e, uint32_t dataset)
{
    return trp_map_outputs_maps(e->dag.outputs, shuffle_of(e, dataset));
}

int trp_engine_input(const trp_engine *e, uint32_t dataset, uint32_t map,
                     struct trp_input_view *ret)
{
    struct trp_output_place at;
    uint32_t shuffle = shuffle_of(e, dataset);
    if (!trp_map_outputs_place(e->dag.outputs, shuffle, map, &at))
        return TRP_ENOENT;
    ret->attempt.n = trp_map_outputs_id(e->dag.outputs, shuffle, map);
    ret->executor.n = at.executor;
    ret->host = host_name(e, at);
    return 0;
}

bool trp_engine_awaits(const trp_engine *e, uint32_t dataset)
{
    uint32_t shuffle = shuffle_of(e, dataset);
    const struct trp_stage *m =
        shuffle < e->dag.nmap_stages ? e->dag.map_stages[shuffle] : NULL;
    for (const struct trp_stage_link *l = m ? m->children : NULL; l; l = l->next)
        if (l->edge == TRP_EDGE_SHUFFLE && l->child->uses &&
            l->child->state != TRP_STAGE_ENDED &&
            !(l->child->is_map && trp_stage_is_available(e, l->child)))
            return true;
    return false;
}

/* Any executor by which the engine knows the place: the last one there. */
static uint32_t executor_at(const trp_engine *e, struct trp_output_place at)
{
    if (at.executor != TRP_NONE)
        return at.executor;
    for (uint32_t i = e->dag.nexecutors; i-- > 0;)
        if (e->dag.executors[i].host == at.host)
            return i;
    return TRP_NONE;
}

struct trp_fetch_source trp_engine_blame(const trp_engine *e, uint32_t dataset,
                                         uint32_t map, trp_attempt_id attempt)
{
    struct trp_fetch_source from = {{TRP_NONE}, TRP_NONE, {TRP_NONE}, NULL, NULL, 0};
    struct trp_output_place at;
    uint32_t shuffle = shuffle_of(e, dataset);
    if (shuffle >= e->dag.nmap_stages || !e->dag.map_stages[shuffle])
        return from;
    from.stage = e->dag.map_stages[shuffle]->id;
    if (!trp_map_outputs_place(e->dag.outputs, shuffle, map, &at) ||
        trp_map_outputs_id(e->dag.outputs, shuffle, map) != attempt.n)
        return from;
    from.map = map;
    from.executor.n = executor_at(e, at);
    return from;
}

static size_t list_bytes(const struct trp_task_set *s, const struct trp_pending *p)
{
    size_t n = ((size_t)p->all.cap + p->no_pref.cap) * sizeof(uint32_t);
    for (uint32_t i = 0; p->hosts && i < s->nhosts; i++)
        n += sizeof(*p->hosts) + p->hosts[i].cap * sizeof(uint32_t);
    for (uint32_t i = 0; p->racks && i < s->nracks; i++)
        n += sizeof(*p->racks) + p->racks[i].cap * sizeof(uint32_t);
    return n;
}

static size_t set_bytes(const struct trp_task_set *s)
{
    size_t n = sizeof(*s) + s->ntasks * sizeof(*s->tasks);
    n += list_bytes(s, &s->lists) + list_bytes(s, &s->copy_lists);
    if (s->success_executor)
        n += s->ntasks * sizeof(*s->success_executor);
    if (s->past_hosts_first)
        n += s->ntasks * sizeof(*s->past_hosts_first) +
             s->past_hosts_cap * sizeof(*s->past_hosts);
    if (s->prefer_first)
        n += ((size_t)s->ntasks + 1) * sizeof(uint32_t) +
             s->prefer_first[s->ntasks] * sizeof(*s->preferred);
    return n;
}

void trp_engine_counts(const trp_engine *e, struct trp_engine_counts *ret)
{
    size_t bytes = e->attempts.cap * sizeof(*e->attempts.v);
    uint64_t tasks = 0;
    for (uint32_t i = 0; i < e->nstages; i++)
        if (e->stages[i] && e->stages[i]->set) {
            bytes += set_bytes(e->stages[i]->set);
            tasks += e->stages[i]->set->ntasks;
        }
    *ret = (struct trp_engine_counts){
        .launches = e->launches,
        .ends = e->ends,
        .ignored_events = e->ignored,
        .executors_live = e->live,
        .executors_requested = e->requested,
        .visits = e->visits,
        .bytes_per_task = tasks ? bytes / tasks : 0,
    };
}

const trp_ledger *trp_engine_ledger(const trp_engine *e, trp_executor_id executor)
{
    const struct trp_executor *x = trp_executor_find(e, executor);
    return x ? x->ledger : NULL;
}

uint32_t trp_engine_cached(const trp_engine *e, uint32_t dataset)
{
    const struct trp_dataset *d = trp_graph_get(&e->dag.graph, dataset);
    return d ? d->ncached : 0;
}
