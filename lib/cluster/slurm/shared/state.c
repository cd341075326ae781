/*
 * What every part of the Slurm cluster calls.
 */
#include <stdio.h>

#include "cluster/slurm/shared/slurm_state.h"

void trp_slurm_handle_closed(struct trp_slurm *s)
{
    if (--s->handles == 0 && s->closed)
        s->free(s);
}

void trp_slurm_own_closed(uv_handle_t *handle)
{
    trp_slurm_handle_closed(handle->data);
}

void trp_slurm_tell_limit(struct trp_slurm *s)
{
    if (!s->told_limit)
        fprintf(stderr, "troupe: Slurm limits how often it is called; executors are "
                        "started more slowly (slurm.max_rpcs_per_minute)\n");
    s->told_limit = true;
}

void trp_slurm_srun_started(struct trp_slurm *s)
{
    s->sruns++;
    trp_slurm_budget_take(&s->budget, (int64_t)uv_hrtime(), TRP_SLURM_SRUN_RPCS);
}

void trp_slurm_srun_refused(struct trp_slurm *s)
{
    trp_slurm_tell_limit(s);
    trp_slurm_budget_refused(&s->budget, (int64_t)uv_hrtime());
    trp_slurm_pump_soon(s);
}

void trp_slurm_held_changed(struct trp_slurm *s)
{
    s->held_changed = true;
    trp_slurm_pump_soon(s);
}

void trp_slurm_pump_soon(struct trp_slurm *s)
{
    uv_timer_start(&s->pump, s->on_pump, 0, 0);
}

struct trp_slurm_job *trp_slurm_additional_of(const struct trp_slurm *s, uint32_t part)
{
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->state >= TRP_SLURM_JOB_RUNS && j->part == part)
            return j;
    }
    return NULL;
}

const struct trp_slurm_node *trp_slurm_node_of(const struct trp_slurm *s,
                                               const struct trp_slurm_request *r)
{
    return &s->inventory.nodes[r->spots[0].node];
}

const struct trp_slurm_part *trp_slurm_part_of(const struct trp_slurm *s,
                                               const struct trp_slurm_request *r)
{
    return &s->inventory.parts[trp_slurm_node_of(s, r)->part];
}

struct trp_slurm_job *trp_slurm_job_of(const struct trp_slurm *s,
                                       const struct trp_slurm_request *r)
{
    return trp_slurm_additional_of(s, trp_slurm_node_of(s, r)->part);
}
