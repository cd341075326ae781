/* Executors of the layers that have an engine. */
#include "sim/scenario/case_executors.h"

uint32_t trp_sim_executor_number(trp_engine *e, struct trp_sim_names *names,
                                 const char *name)
{
    int n = trp_sim_names_find(names, name);
    if (n >= 0)
        return (uint32_t)n;
    if (trp_sched_alone_reserve(e) == TRP_NONE)
        return TRP_NONE;
    n = trp_sim_names_add(names, name);
    return n < 0 ? TRP_NONE : (uint32_t)n;
}

int trp_sim_executor_add(const trp_sim_case *c, trp_engine *e, int64_t now_ns,
                         uint32_t n, const struct trp_sim_executor *x, trp_error *err)
{
    const struct trp_event added = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {.executor = {n},
                  .host = x->host,
                  .rack = trp_sim_rack_of(c, x->host),
                  .resources = x->resources,
                  .nresources = x->nresources,
                  .cores = x->cores},
    };
    return trp_sched_alone_add(e, now_ns, n, x->profile, &added, err);
}

bool trp_sim_read_lose(trp_sim_case *c, const struct trp_yaml_node *node, bool hosts,
                       const char **ret_name, struct trp_event *ret_lost)
{
    struct lose {
        const char *executor;
        bool host_lost, by_app;
        int reason;
    } v = {.by_app = true};
    static const enum trp_loss reasons[] = {TRP_LOSS_EXITED, TRP_LOSS_RELEASED,
                                            TRP_LOSS_DECOMMISSIONED, TRP_LOSS_HEARTBEAT,
                                            TRP_LOSS_HOST};
    static const struct trp_sim_field fields[] = {
        TRP_SIM_MUST(v, executor, NAME),
        TRP_SIM_MAY(v, by_app, BOOL),
        TRP_SIM_MAY_CHOICE(
            v, reason, "exited|killed_by_driver|decommissioned|heartbeat|host_lost"),
        TRP_SIM_MAY(v, host_lost, BOOL),
    };
    if (!trp_sim_fields(c, node, "lose", fields, hosts ? 4 : 3, &v))
        return false;
    *ret_name = v.executor;
    *ret_lost = (struct trp_event){
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {.reason = v.host_lost ? TRP_LOSS_HOST : reasons[v.reason],
                 .not_by_app = !v.by_app},
    };
    return true;
}
