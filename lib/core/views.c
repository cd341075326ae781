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
        .ntasks = s->ntasks,
        .succeeded = s->succeeded,
        .failed = s->given_up,
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

int trp_engine_output(const trp_engine *e, trp_stage_id stage, uint32_t map,
                      trp_executor_id *ret_executor, const char **ret_host)
{
    const struct trp_stage *s = trp_stage_find(e, stage);
    struct trp_output_place at;
    if (!s || !s->is_map ||
        !trp_map_outputs_place(e->dag.outputs, s->shuffle, map, &at))
        return TRP_ENOENT;
    ret_executor->n = at.executor;
    *ret_host = e->hosts.hosts[at.host].name;
    return 0;
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
    if (s->where)
        n += s->ntasks * sizeof(*s->where);
    if (s->past_first)
        n += s->ntasks * sizeof(*s->past_first) + s->past_cap * sizeof(*s->past);
    if (s->prefer_first)
        n += ((size_t)s->ntasks + 1) * sizeof(uint32_t) +
             s->prefer_first[s->ntasks] * sizeof(*s->places);
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
        .bytes_per_task = tasks ? bytes / tasks : 0,
    };
}

const trp_ledger *trp_engine_ledger(const trp_engine *e, trp_executor_id executor)
{
    const struct trp_executor *x = trp_executor_find(e, executor);
    return x ? x->ledger : NULL;
}
