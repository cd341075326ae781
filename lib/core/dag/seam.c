/*
 * Events from outside that concern nobody but the DAG.
 */
#include "core/engine_state.h"

/* The numbers of the hosts that a dataset prefers; NULL: out of memory. */
static uint32_t *intern_hosts(struct trp_engine *e, const struct trp_dataset_spec *spec)
{
    uint32_t n = spec->nprefer;
    uint32_t *hosts = malloc((n ? n : 1) * sizeof(*hosts));
    for (uint32_t i = 0; hosts && i < n; i++) {
        hosts[i] = trp_hosts_intern(&e->hosts, spec->prefer[i].host, NULL);
        if (hosts[i] != TRP_NONE)
            continue;
        free(hosts);
        hosts = NULL;
    }
    return hosts;
}

int trp_dag_dataset(struct trp_engine *e, const struct trp_dataset_spec *spec,
                    trp_error *err)
{
    uint32_t id;
    if (spec->has_profile && !trp_profiles_get(e->profiles, spec->profile))
        return trp_error_set(err, TRP_EINVAL, "dataset %s: no profile %u",
                             spec->name ? spec->name : "", spec->profile.n);
    uint32_t *hosts = intern_hosts(e, spec);
    if (!hosts)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a dataset");
    int rc = trp_graph_add(&e->dag.graph, spec, hosts, &id, err);
    free(hosts);
    return rc;
}

/* Its outputs go, unless a job uses them; its cached partitions in any case. */
static bool release_dataset(struct trp_engine *e, uint32_t dataset)
{
    struct trp_graph *g = &e->dag.graph;
    if (!trp_graph_get(g, dataset))
        return false;
    uint32_t shuffle = g->v[dataset]->shuffle;
    trp_graph_uncache(g, dataset);
    g->v[dataset]->may_cache = false;
    for (uint32_t i = 0; i < g->nexecutors; i++)
        trp_supply_cached(e, i);
    e->dag.changes++;
    if (shuffle >= e->dag.nmap_stages || e->dag.map_stages[shuffle])
        return true;
    trp_map_outputs_unregister(e->dag.outputs, shuffle);
    trp_supply_shuffle_gone(e, shuffle);
    return true;
}

int trp_dag_free_dataset(struct trp_engine *e, uint32_t dataset, trp_error *err)
{
    const struct trp_dataset *d = trp_graph_get(&e->dag.graph, dataset);
    if (!d)
        return trp_error_set(err, TRP_EINVAL, "there is no dataset %u", dataset);
    if (d->users)
        return trp_error_set(err, TRP_EWAIT, "dataset %s is in use", d->name);
    release_dataset(e, dataset);
    trp_graph_remove(&e->dag.graph, dataset);
    return 0;
}

/* Can outputs lie there: on the executor, or with the files of its host? */
static bool may_hold(const struct trp_engine *e, uint32_t executor)
{
    const struct trp_executor *x = trp_executor_find(e, (trp_executor_id){executor});
    return executor < e->dag.nexecutors && (e->config.host_files || (x && x->came));
}

static bool output_moved(struct trp_engine *e, const struct trp_event *ev)
{
    const struct trp_stage *s = trp_stage_find(e, ev->moved.stage);
    uint32_t executor = ev->moved.executor.n;
    bool shared = executor == TRP_NONE;
    struct trp_output_place to = {TRP_NONE, TRP_NONE};
    if (!s || !s->is_map || (!shared && !may_hold(e, executor)))
        return false;
    if (!shared)
        to = trp_dag_place(e, executor);
    if (trp_map_outputs_move(e->dag.outputs, s->shuffle, ev->moved.map,
                             ev->moved.attempt.n, to) < 0)
        return false;
    if (!shared)
        trp_supply_output(e, executor, s->shuffle);
    return true;
}

static bool cached(struct trp_engine *e, const struct trp_event *ev)
{
    uint32_t executor = ev->cached.executor.n;
    const struct trp_executor *x = trp_executor_find(e, ev->cached.executor);
    if (!x || !x->came)
        return false;
    if (ev->cached.gone)
        trp_graph_uncache_copy(&e->dag.graph, ev->cached.dataset, ev->cached.partition,
                               executor);
    else if (trp_graph_cache(&e->dag.graph, ev->cached.dataset, ev->cached.partition,
                             executor) < 0)
        return false;
    e->dag.changes++;
    trp_supply_cached(e, executor);
    return true;
}

static bool cancel_stage(struct trp_engine *e, trp_stage_id id)
{
    struct trp_stage *s = trp_stage_find(e, id);
    trp_error why;
    if (!s || !s->uses)
        return false;
    trp_error_set(&why, 0, "because stage %.100s was cancelled", s->name);
    while (s->uses)
        trp_job_stop(e, s->uses->job, why.text);
    return true;
}

bool trp_dag_event(struct trp_engine *e, const struct trp_event *ev)
{
    switch (ev->kind) {
    case TRP_EVENT_DATASET_RELEASED:
        return release_dataset(e, ev->released.dataset);
    case TRP_EVENT_CACHED:
        return cached(e, ev);
    case TRP_EVENT_OUTPUT_MOVED:
        return output_moved(e, ev);
    default:
        return cancel_stage(e, ev->cancel_stage.stage);
    }
}
