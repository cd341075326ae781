/*
 * Which jobs the run has, for who asks where it is: what is known here, without a call to
 * Slurm.
 */
#include "cluster/slurm/jobs/additional.h"

/* The nodes of the driver's own job, which is several parts when it is heterogeneous
 * (`j` NULL), or of an additional one. */
static uint32_t nodes_of(const struct trp_slurm *s, const struct trp_slurm_job *j)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->inventory.nnodes; i++)
        n += s->inventory.nodes[i].name &&
             trp_slurm_ledger_standing(s->ledger, i) != TRP_SLURM_GONE &&
             trp_slurm_additional_of(s, s->inventory.nodes[i].part) == j;
    return n;
}

void trp_slurm_jobs_tell(const struct trp_slurm *s,
                         void (*tell)(void *context, const struct trp_cluster_job *job),
                         void *context)
{
    static const char *const states[] = {[TRP_SLURM_JOB_ASKED] = "asked",
                                         [TRP_SLURM_JOB_PENDING] = "pending",
                                         [TRP_SLURM_JOB_FOUND] = "starting",
                                         [TRP_SLURM_JOB_RUNS] = "running",
                                         [TRP_SLURM_JOB_OVER] = "ending"};
    struct trp_cluster_job one = {
        .job = s->inventory.nparts ? s->inventory.parts[0].leader : 0,
        .state = "running",
        .reason = "",
        .nodes = nodes_of(s, NULL),
        .ends = s->inventory.ends};
    tell(context, &one);
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        bool waits = j->state < TRP_SLURM_JOB_FOUND;
        bool placed = j->state >= TRP_SLURM_JOB_RUNS;
        one =
            (struct trp_cluster_job){.job = j->job,
                                     .additional = true,
                                     .state = states[j->state],
                                     .profile = j->want ? j->want->profile.name : NULL,
                                     .reason = waits ? j->reason : "",
                                     .nodes = placed ? nodes_of(s, j) : 0,
                                     .start = waits ? j->start : 0,
                                     .ends = waits ? 0 : j->ends};
        tell(context, &one);
    }
}
