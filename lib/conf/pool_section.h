/*
 * Pools of a run (core/sched/pools.h): `pools:` of a pipeline, and the file that the
 * option scheduler.allocation.file names, which has the same key and nothing else. What
 * a person wrote is checked here; the engine itself forgives odd words, as Spark does.
 *
 *     trp_pool_list_make(pipeline, options, cwd, &pools, &err);
 *     config.pools = pools.specs;
 *     config.npools = pools.n;
 *     … trp_engine_new …
 *     trp_pool_list_free(&pools);
 */
#ifndef TRP_CONF_POOL_SECTION_H
#define TRP_CONF_POOL_SECTION_H

#include "conf/arena.h"
#include "conf/options.h"
#include "conf/pipeline.h"
#include "core/sched/pools.h"

struct trp_yaml;
struct trp_yaml_node;

/* A mapping of names to {weight, min_share, mode}; kept in the tree's arena. */
void trp_pool_section_read(struct trp_yaml *y, const struct trp_yaml_node *node,
                           struct trp_pool_section *ret);

struct trp_pool_list {
    struct trp_pool_spec *specs; /* "default" among them; borrows from the pipeline */
    uint32_t n;                  /* 0: FIFO */
    struct trp_conf_arena arena;
};

/* The pools of the pipeline and of the file; of two of one name the pipeline's counts.
 * A relative file is below `cwd` (NULL: the working folder). With scheduler.mode=FIFO
 * the file is not read. TRP_EINVAL with FILE:LINE:COL: pools or a stage's `pool` with
 * FIFO, a stage's pool that is not among them, anything wrong in the file. */
int trp_pool_list_make(const trp_pipeline *p, const trp_options *o, const char *cwd,
                       struct trp_pool_list *ret, trp_error *err);
void trp_pool_list_free(struct trp_pool_list *l);

#endif
