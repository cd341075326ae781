/*
 * What became of the nodes of the driver's job and of additional ones: one look at the
 * jobs, which may have lost some, and one at the states of all nodes. Of one job alone
 * slurmctld is asked by its number, else of all that the user has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "cluster/slurm/helper/line.h"

static const char *word_of(uint32_t state)
{
    if ((state & NODE_STATE_BASE) == NODE_STATE_DOWN)
        return "down";
    if (state & (NODE_STATE_DRAIN | NODE_STATE_FAIL))
        return "drain";
    return state & NODE_STATE_NO_RESPOND ? "mute" : "up";
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
    trp_libslurm_hostlist list = slurm_hostlist_create(job->nodes ? job->nodes : "");
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

static void put_job(FILE *to, uint32_t number, const slurm_job_info_t *job,
                    const node_info_msg_t *nodes)
{
    trp_slurm_line_begin(to, number, "ends");
    trp_slurm_line_put_number(to, "job", job->job_id);
    trp_slurm_line_put_number(to, "ends", job->end_time);
    trp_slurm_line_end(to);
    put_states(to, number, job, nodes);
}

static void put_over(FILE *to, uint32_t number, const slurm_job_info_t *job)
{
    trp_slurm_line_begin(to, number, "over");
    trp_slurm_line_put_number(to, "job", job->job_id);
    trp_slurm_line_put(to, "state", trp_slurm_state_word(job->job_state));
    trp_slurm_line_put_number(to, "ended", job->end_time);
    trp_slurm_line_end(to);
}

static int load_jobs(job_info_msg_t **jobs, uint32_t id)
{
    if (trp_slurm_additional_are_left())
        return slurm_load_job_user(jobs, getuid(), SHOW_ALL);
    return trp_libslurm_load_job(jobs, id, SHOW_ALL);
}

int trp_slurm_call_states(FILE *to, uint32_t number, uint32_t id)
{
    job_info_msg_t *jobs = NULL;
    node_info_msg_t *nodes = NULL;
    int code = 0;
    trp_slurm_rpcs += 2;
    if (load_jobs(&jobs, id) != SLURM_SUCCESS ||
        slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS)
        code = errno;
    for (uint32_t i = 0; code == 0 && i < jobs->record_count; i++) {
        const slurm_job_info_t *job = &jobs->job_array[i];
        uint32_t state = job->job_state & JOB_STATE_BASE;
        bool held = trp_slurm_additional_is_held(job->job_id);
        if (held && state > JOB_SUSPENDED)
            put_over(to, number, job);
        else if (trp_slurm_is_of(job, id) || (held && state != JOB_PENDING))
            put_job(to, number, job, nodes);
    }
    if (nodes)
        slurm_free_node_info_msg(nodes);
    if (jobs)
        slurm_free_job_info_msg(jobs);
    return code;
}
