/*
 * What the files of layer `dag` share. Datasets and executors have the numbers of their
 * names; a dataset's number in the engine is another, for there parents come first.
 */
#ifndef TRP_SIM_SCENARIO_LAYER_DAG_H
#define TRP_SIM_SCENARIO_LAYER_DAG_H

#include "core/engine_state.h"
#include "core/scenario/dag_alone.h"
#include "sim/scenario/layer.h"

struct trp_sim_dataset {
    const char *name;
    struct trp_mark mark;
    struct trp_dataset_parent *parents; /* numbers of names until it is added */
    struct trp_dataset_spec spec;
    uint32_t id;       /* in the engine, TRP_NONE: not added yet */
    uint32_t attempts; /* of its last stage that was submitted */
};

struct trp_sim_job {
    const char *label;
    bool over, succeeded;
};

struct trp_sim_dag {
    trp_sim_case *c;
    trp_engine *engine;
    struct trp_dag_alone alone;
    struct trp_sim_names names; /* of datasets */
    struct trp_sim_dataset *datasets;
    uint32_t *by_id;      /* dataset of an id in the engine */
    uint64_t npartitions; /* of all */
    struct trp_sim_names executors;
    struct trp_sim_names labels; /* of jobs, by id */
    struct trp_sim_job *jobs;
    uint32_t njobs, jobs_cap;
    uint32_t *stages; /* dataset of each stage that ever was */
    uint32_t nstages, stages_cap;
};

/* Numbers of what the file names; negative: an error is told. An executor may be lost
 * already. */
int trp_sim_dag_dataset(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                        const char *name);
int trp_sim_dag_executor(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                         const char *name);
/* The stage that computes a dataset and has that attempt, the one that runs it first;
 * *ret NULL with 0: it is gone. */
int trp_sim_dag_stage(struct trp_sim_dag *s, const struct trp_yaml_node *at,
                      const char *name, int64_t attempt, struct trp_stage **ret);
/* layer_dag_tasks.c: how tasks end. */
int trp_sim_dag_task(struct trp_sim_dag *s, const char *action,
                     const struct trp_yaml_node *value);
/* layer_dag_read.c: `datasets:`, into the engine. */
int trp_sim_dag_read(struct trp_sim_dag *s, trp_error *err);
/* layer_dag_state.c */
json_t *trp_sim_dag_state(void *layer, const char *key,
                          const struct trp_yaml_node *wanted);
json_t *trp_sim_dag_submitted(struct trp_sim_dag *s, const struct trp_stage *stage,
                              const struct trp_set_spec *spec);

#endif
