/*
 * Executors of the layers that have an engine: `sched`, `health` and `dag`.
 */
#ifndef TRP_SIM_SCENARIO_CASE_EXECUTORS_H
#define TRP_SIM_SCENARIO_CASE_EXECUTORS_H

#include "core/scenario/sched_alone.h"
#include "sim/scenario/layer.h"

/* The number of an executor, which is reserved when it is new; TRP_NONE: no memory. */
uint32_t trp_sim_executor_number(trp_engine *e, struct trp_sim_names *names,
                                 const char *name);
/* It comes, with that number. As trp_sched_alone_add. */
int trp_sim_executor_add(const trp_sim_case *c, trp_engine *e, int64_t now_ns,
                         uint32_t n, const struct trp_sim_executor *x, trp_error *err);
/* The step `lose`: EXECUTOR_LOST but for the executor's number, which is ret_name's.
 * With `hosts` it may say host_lost. */
bool trp_sim_read_lose(trp_sim_case *c, const struct trp_yaml_node *node, bool hosts,
                       const char **ret_name, struct trp_event *ret_lost);

#endif
