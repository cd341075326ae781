/*
 * Racks from the switch tree, and the end of steps.
 */
#include "calls.h"

#include <errno.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/line.h"

static void put_rack(FILE *to, uint32_t number, const char *rack, const char *nodes)
{
    trp_slurm_hostlist list = slurm_hostlist_create(nodes);
    for (char *name; list && (name = slurm_hostlist_shift(list)); free(name)) {
        trp_slurm_line_begin(to, number, "host");
        trp_slurm_line_put(to, "name", name);
        trp_slurm_line_put(to, "rack", rack);
        trp_slurm_line_end(to);
    }
    if (list)
        slurm_hostlist_destroy(list);
}

/* From 24.11 on what libslurm has of it is the plugin's own; scontrol prints the same
 * line a switch: "SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=node[1-2]". */
#if SLURM_PRINTS_JOBS
int trp_slurm_call_racks(FILE *to, uint32_t number)
{
    topo_info_response_msg_t *topo = NULL;
    trp_slurm_rpcs++;
    if (slurm_load_topo(&topo) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < topo->record_count; i++) {
        const topo_info_t *s = &topo->topo_array[i];
        if (s->level == 0 && s->nodes && *s->nodes)
            put_rack(to, number, s->name, s->nodes);
    }
    slurm_free_topo_info_msg(topo);
    return 0;
}
#else
int trp_slurm_call_racks(FILE *to, uint32_t number)
{
    trp_slurm_rpcs++;
    char *text = trp_slurm_scontrol("show topology"), *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *name = trp_slurm_value(line, "SwitchName");
        char *level = trp_slurm_value(line, "Level");
        char *nodes = trp_slurm_value(line, "Nodes");
        if (name && level && nodes && strcmp(level, "0") == 0)
            put_rack(to, number, name, nodes);
        free(name);
        free(level);
        free(nodes);
    }
    free(text);
    return 0;
}
#endif

static void put_step(FILE *to, uint32_t number, const job_step_info_t *s)
{
    trp_slurm_hostlist list = slurm_hostlist_create(s->nodes ? s->nodes : "");
    for (char *name; list && (name = slurm_hostlist_shift(list)); free(name)) {
        trp_slurm_line_begin(to, number, "step");
        trp_slurm_line_put_number(to, "job", s->step_id.job_id);
        trp_slurm_line_put_number(to, "step", s->step_id.step_id);
        trp_slurm_line_put(to, "host", name);
        trp_slurm_line_end(to);
    }
    if (list)
        slurm_hostlist_destroy(list);
}

int trp_slurm_call_steps(FILE *to, uint32_t number, uint32_t job)
{
    job_step_info_response_msg_t *steps = NULL;
    trp_slurm_rpcs++;
    if (slurm_get_job_steps(0, job, NO_VAL, &steps, SHOW_ALL) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < steps->job_step_count; i++) {
        if (steps->job_steps[i].step_id.step_id <= SLURM_MAX_NORMAL_STEP_ID)
            put_step(to, number, &steps->job_steps[i]);
    }
    slurm_free_job_step_info_response_msg(steps);
    return 0;
}

static int signal_step(uint32_t job, uint32_t step, uint16_t signal)
{
    trp_slurm_rpcs++;
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
    int code = slurm_kill_job_step(job, step, signal);
#else
    int code = slurm_kill_job_step(job, step, signal, 0);
#endif
    if (code == SLURM_SUCCESS)
        return 0;
    return errno == ESLURM_ALREADY_DONE || errno == ESLURM_INVALID_JOB_ID ? 0 : errno;
}

/* Steps whose name begins so, or is that. */
static int signal_steps(uint32_t job, const char *name, bool whole, uint16_t signal)
{
    job_step_info_response_msg_t *steps = NULL;
    size_t size = strlen(name) + whole;
    int code = 0;
    trp_slurm_rpcs++;
    if (slurm_get_job_steps(0, job, NO_VAL, &steps, SHOW_ALL) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < steps->job_step_count; i++) {
        const job_step_info_t *s = &steps->job_steps[i];
        if (!s->name || strncmp(s->name, name, size) != 0)
            continue;
        int one = signal_step(job, s->step_id.step_id, signal);
        code = code ? code : one;
    }
    slurm_free_job_step_info_response_msg(steps);
    return code;
}

int trp_slurm_call_end_step(uint32_t job, uint32_t step)
{
    return signal_step(job, step, SIGKILL);
}

int trp_slurm_call_end_steps(uint32_t job, const char *prefix)
{
    return signal_steps(job, prefix, false, SIGKILL);
}

int trp_slurm_call_end_named(uint32_t job, const char *name)
{
    return signal_steps(job, name, true, SIGKILL);
}

int trp_slurm_call_term_step(uint32_t job, const char *name)
{
    return signal_steps(job, name, true, SIGTERM);
}
