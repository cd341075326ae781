/*
 * What every action does: its dataset's chain as one stage, submitted and waited for,
 * with what came back.
 *
 *     struct trp_stage_run a;
 *     int rc = trp_stage_run(&a, dataset, TRP_DO_COUNT, NULL, NULL);
 *     if (rc < 0) return rc;                  // told and noted, nothing to free
 *     *ret_count = a.count;
 *     trp_stage_run_free(&a);
 */
#ifndef TRP_API_STAGE_RUN_H
#define TRP_API_STAGE_RUN_H

#include "api/lineage.h"

/* What came back for one partition. */
struct trp_part {
    uint8_t *data;
    uint32_t size;
    bool done;
    bool any; /* reduce: there is a value */
};

struct trp_stage_run {
    trp_context *context;
    trp_dataset *dataset;
    struct trp_chain_end end;
    uint32_t told; /* the dataset of its last stage */
    uint64_t count;
    uint64_t *done;         /* count: a bit for each partition */
    struct trp_part *parts; /* collect, reduce */
    trp_error bad;          /* a result that could not be taken */
    struct {
        bool there, mistake;
        const char *stage;
        uint32_t task, times;
        int32_t code;
        char text[512];
    } failure; /* by a function's code, for good */
};

/* `step`: the action's function, NULL: none; `dir`: of save. */
int trp_stage_run(struct trp_stage_run *a, trp_dataset *d, enum trp_end_kind kind,
                  const struct trp_step *step, const char *dir);
/* The same, but the failure is only told, not noted: what runs for the sake of another
 * action. */
int trp_stage_run_end(struct trp_stage_run *a, trp_dataset *d,
                      const struct trp_chain_end *end);
void trp_stage_run_free(struct trp_stage_run *a);

/* An action on `d` ended with `rc`, which is returned: a failure counts until an action
 * on `d` succeeds. trp_stage_run notes its failures itself, but not that it succeeded:
 * the action goes on. */
int trp_action_note(trp_dataset *d, int rc);
/* An action on NULL: the chain failed where it was made, and the context has why. */
int trp_action_no_dataset(const char *what);

/* actions.c: removes what attempts left in a folder that died while they wrote. */
void trp_remove_unfinished(const char *dir);
/* checkpoint.c: runs the job that writes a TRP_NODE_CHECKPOINT. */
int trp_checkpoint_write(trp_dataset *d);

#endif
