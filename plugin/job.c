/*
 * A site with `scratch:` gives every job a folder, not only Troupe's: whether a job
 * will call troupe is not known when it starts, and a folder costs less than asking.
 * Without `scratch:` nothing is done for any job.
 */
#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"
#include "plugin/scratch.h"
#include "plugin/shapes.h"

static int read_job(spank_t sp, struct trp_node_job *ret, trp_error *err)
{
    if (spank_get_item(sp, S_JOB_ID, &ret->id) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_UID, &ret->uid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_GID, &ret->gid) != ESPANK_SUCCESS)
        return trp_error_set(err, TRP_ESTATE, "Slurm does not tell the job");
    return 0;
}

/* Is this node, of $SLURMD_NODENAME, one of a job's? */
static bool has_this_node(const slurm_job_info_t *job)
{
    const char *node = getenv("SLURMD_NODENAME");
    hostlist_t list = job->nodes ? slurm_hostlist_create(job->nodes) : NULL;
    bool has = !node || (list && slurm_hostlist_find(list, node) >= 0);
    if (list)
        slurm_hostlist_destroy(list);
    return has;
}

/* One that waits to start again is not here, unless its end is still going on. */
static bool may_be_here(const slurm_job_info_t *job)
{
    if (job->job_state & JOB_COMPLETING)
        return has_this_node(job);
    uint32_t state = job->job_state & JOB_STATE_BASE;
    return (state == JOB_RUNNING || state == JOB_SUSPENDED) && has_this_node(job);
}

bool trp_plugin_job_here(uint32_t id, void *context)
{
    struct trp_plugin_asking *a = context;
    job_info_msg_t *found = NULL;
    if (id == a->own || a->silent)
        return true;
    if (slurm_load_job(&found, id, SHOW_ALL) != SLURM_SUCCESS) {
        bool unknown = slurm_get_errno() == ESLURM_INVALID_JOB_ID;
        a->silent = !unknown;
        return !unknown;
    }
    bool here = false;
    for (uint32_t i = 0; i < found->record_count; i++) {
        if (found->job_array[i].job_id == id)
            here |= may_be_here(&found->job_array[i]);
    }
    slurm_free_job_info_msg(found);
    return here;
}

int trp_plugin_prolog(spank_t sp, const struct trp_plugin *p, trp_error *err)
{
    struct trp_node_job job = {0};
    char parent[PATH_MAX];
    int code = trp_shapes_scratch(p->shapes, parent, err);
    if (code < 0)
        return code == TRP_ENOENT ? 0 : code;
    code = read_job(sp, &job, err);
    if (code == 0)
        code = trp_scratch_make(TRP_SCRATCH_RECORDS, parent, &job, err);
    struct trp_plugin_asking asking = {.own = job.id};
    if (code == 0)
        code = trp_scratch_sweep(TRP_SCRATCH_RECORDS, parent, trp_plugin_job_here,
                                 &asking, err);
    return code;
}

int trp_plugin_epilog(spank_t sp, trp_error *err)
{
    struct trp_node_job job;
    int code = read_job(sp, &job, err);
    if (code == 0)
        code = trp_scratch_end(TRP_SCRATCH_RECORDS, &job, err);
    return code == TRP_ENOENT ? 0 : code;
}

int trp_plugin_scratch(spank_t sp, trp_error *err)
{
    struct trp_node_job job;
    char path[PATH_MAX];
    int code = read_job(sp, &job, err);
    if (code < 0 || trp_scratch_find(TRP_SCRATCH_RECORDS, &job, path) < 0)
        return code;
    spank_err_t rc = spank_setenv(sp, "TROUPE_SCRATCH", path, 1);
    return rc == ESPANK_SUCCESS
               ? 0
               : trp_error_set(err, TRP_ESYSTEM, "TROUPE_SCRATCH cannot be set: %s",
                               spank_strerror(rc));
}
