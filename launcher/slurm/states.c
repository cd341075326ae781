/*
 * What became of a job's nodes: one look at the job, which may have lost some, and one
 * at the states of all nodes.
 */
#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "cluster/slurm/line.h"

static const char *word_of(uint32_t state)
{
    if ((state & NODE_STATE_BASE) == NODE_STATE_DOWN)
        return "down";
    return state & (NODE_STATE_DRAIN | NODE_STATE_FAIL) ? "drain" : "up";
}

static const char *find_state(const node_info_msg_t *nodes, const char *name)
{
    for (uint32_t i = 0; i < nodes->record_count; i++) {
        const node_info_t *n = &nodes->node_array[i];
        if (n->name && strcmp(n->name, name) == 0)
            return word_of(n->node_state);
    }
    return "down";
}

static void put_states(FILE *to, uint32_t number, const slurm_job_info_t *job,
                       const node_info_msg_t *nodes)
{
    hostlist_t list = slurm_hostlist_create(job->nodes ? job->nodes : "");
    for (char *name; list && (name = slurm_hostlist_shift(list)); free(name)) {
        trp_slurm_line_begin(to, number, "state");
        trp_slurm_line_put_number(to, "job", job->job_id);
        trp_slurm_line_put(to, "name", name);
        trp_slurm_line_put(to, "state", find_state(nodes, name));
        trp_slurm_line_end(to);
    }
    if (list)
        slurm_hostlist_destroy(list);
}

int trp_slurm_call_states(FILE *to, uint32_t number, uint32_t id)
{
    job_info_msg_t *jobs = NULL;
    node_info_msg_t *nodes = NULL;
    int code = 0;
    trp_slurm_rpcs += 2;
    if (slurm_load_job(&jobs, id, SHOW_ALL) != SLURM_SUCCESS ||
        slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS)
        code = errno;
    for (uint32_t i = 0; code == 0 && i < jobs->record_count; i++) {
        trp_slurm_line_begin(to, number, "ends");
        trp_slurm_line_put_number(to, "job", jobs->job_array[i].job_id);
        trp_slurm_line_put_number(to, "ends", jobs->job_array[i].end_time);
        trp_slurm_line_end(to);
        put_states(to, number, &jobs->job_array[i], nodes);
    }
    if (nodes)
        slurm_free_node_info_msg(nodes);
    if (jobs)
        slurm_free_job_info_msg(jobs);
    return code;
}
