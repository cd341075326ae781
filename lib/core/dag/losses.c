/*
 * Executors and hosts that go, as map outputs and cached data see it (semantics,
 * section 10).
 *
 * Two epochs an executor keep one loss from being acted upon twice: that of the loss
 * itself, up to which tasks' outputs from there do not count, and that of the files,
 * which a fetch failure may declare lost while the executor lives. Both are kept when
 * the executor has gone: late messages speak of it.
 */
#include <string.h>

#include "core/engine_state.h"

struct trp_dag_executor *trp_dag_executor(struct trp_engine *e, uint32_t executor)
{
    return executor < e->dag.nexecutors ? &e->dag.executors[executor] : NULL;
}

struct trp_output_place trp_dag_place(const struct trp_engine *e, uint32_t executor)
{
    return (struct trp_output_place){e->config.host_files ? TRP_NONE : executor,
                                     e->dag.executors[executor].host};
}

void trp_dag_executor_added(struct trp_engine *e, uint32_t executor, uint32_t host)
{
    struct trp_dag *d = &e->dag;
    uint64_t n = (uint64_t)executor + 1;
    if (!TRP_ARRAY_RESERVE(d->executors, d->executors_cap, n)) {
        e->out_of_memory = true;
        return;
    }
    if (n > d->nexecutors) {
        memset(d->executors + d->nexecutors, 0,
               (size_t)(n - d->nexecutors) * sizeof(*d->executors));
        d->nexecutors = (uint32_t)n;
    }
    d->executors[executor] = (struct trp_dag_executor){.host = host};
}

void trp_dag_files_lost(struct trp_engine *e, uint32_t executor, bool files,
                        bool whole_host, uint64_t epoch, bool always)
{
    struct trp_dag_executor *x = trp_dag_executor(e, executor);
    if (!x)
        return;
    if (x->failed_at < epoch + 1) {
        x->failed_at = epoch + 1;
        trp_graph_uncache_executor(&e->dag.graph, executor);
        trp_supply_cached(e, executor);
        e->dag.changes++;
    }
    if (!files || (!always && x->files_lost_at >= epoch + 1))
        return;
    if (!always)
        x->files_lost_at = epoch + 1;
    if (whole_host)
        trp_map_outputs_drop_host(e->dag.outputs, x->host);
    else
        trp_map_outputs_drop_executor(e->dag.outputs, executor);
    e->dag.changes++;
}

/* ---- decommissioning ---- */

void trp_dag_executor_decommissioned(struct trp_engine *e, uint32_t executor,
                                     bool whole_host)
{
    struct trp_dag_executor *x = trp_dag_executor(e, executor);
    if (!x)
        return;
    x->decommissioning = true;
    x->host_decommissioned |= whole_host;
}

bool trp_dag_loss_was_planned(const struct trp_engine *e, uint32_t executor)
{
    if (executor >= e->dag.nexecutors)
        return false;
    const struct trp_dag_executor *x = &e->dag.executors[executor];
    return x->released ||
           (x->decommissioning && e->config.ignore_decommission_failures);
}

static void forget_decommission(struct trp_engine *e, uint32_t executor)
{
    e->dag.executors[executor].decommissioning = false;
    e->dag.executors[executor].host_decommissioned = false;
}

/* That it was decommissioned is remembered of the last few that are gone. */
static void remember_decommission(struct trp_engine *e, uint32_t executor)
{
    struct trp_stack *s = &e->dag.decommissioned;
    if (!trp_stack_push(s, executor)) {
        e->out_of_memory = true;
        return;
    }
    if (s->n <= e->config.decommission.retained)
        return;
    forget_decommission(e, s->v[0]);
    memmove(s->v, s->v + 1, --s->n * sizeof(*s->v));
}

void trp_dag_executor_lost(struct trp_engine *e, const struct trp_executor *lost,
                           enum trp_loss reason)
{
    uint32_t executor = lost->id.n;
    struct trp_dag_executor *x = trp_dag_executor(e, executor);
    const struct trp_engine_config *c = &e->config;
    if (!x)
        return;
    bool whole_host = reason == TRP_LOSS_HOST;
    bool kept = c->shuffle_service || c->host_files;
    x->released |= reason == TRP_LOSS_RELEASED;
    trp_dag_files_lost(e, executor, whole_host || !kept, whole_host,
                       trp_map_outputs_epoch(e->dag.outputs), false);
    if (x->decommissioning)
        remember_decommission(e, executor);
}
