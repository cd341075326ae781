/*
 * Racks from the switch tree, what srun starts gangs by, and the end of steps.
 */
#include "calls.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/helper/line.h"
#include "cluster/slurm/helper/mpi_types.h"

static void put_rack(FILE *to, uint32_t number, const char *rack, const char *nodes)
{
    trp_libslurm_hostlist list = slurm_hostlist_create(nodes);
    for (char *name; list && (name = slurm_hostlist_shift(list)); free(name)) {
        trp_slurm_line_begin(to, number, "host");
        trp_slurm_line_put(to, "name", name);
        trp_slurm_line_put(to, "rack", rack);
        trp_slurm_line_end(to);
    }
    if (list)
        slurm_hostlist_destroy(list);
}

/* What has nodes of its own: "SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=node[1-2]",
 * a leaf switch; and the smallest units of other kinds of topologies. */
static char *rack_of(const char *line)
{
    static const char *const kinds[] = {"SwitchName", "BlockName", "RingName",
                                        "TorusName"};
    char *level = trp_slurm_value(line, "Level"), *name = NULL;
    for (size_t i = 0; !name && i < sizeof kinds / sizeof *kinds; i++)
        name = trp_slurm_value(line, kinds[i]);
    if (level && strcmp(level, "0") != 0) {
        free(name);
        name = NULL;
    }
    free(level);
    return name;
}

/* From 24.11 on what libslurm has of it is the plugin's own; what scontrol prints is
 * the same in all families. `topology` "": the cluster's. */
static void put_topology(FILE *to, uint32_t number, const char *topology)
{
    char arguments[128];
    snprintf(arguments, sizeof arguments, "show topology %s", topology);
    trp_slurm_rpcs++;
    char *text = trp_slurm_scontrol(arguments), *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *rack = rack_of(line), *nodes = trp_slurm_value(line, "Nodes");
        if (rack && nodes)
            put_rack(to, number, rack, nodes);
        free(rack);
        free(nodes);
    }
    free(text);
}

/* From 25.05 on a partition may have a topology of its own. */
#if TRP_LIBSLURM_SINCE(25, 5)
static const char *topology_of(const partition_info_t *p)
{
    return p->topology_name ? p->topology_name : "";
}

/* Each topology but `own`, once. */
static void put_others(FILE *to, uint32_t number, const partition_info_msg_t *parts,
                       const char *own)
{
    if (*own)
        put_topology(to, number, "");
    for (uint32_t i = 0; i < parts->record_count; i++) {
        const char *name = topology_of(&parts->partition_array[i]);
        bool told = !*name || strcmp(name, own) == 0;
        for (uint32_t k = 0; !told && k < i; k++)
            told = strcmp(name, topology_of(&parts->partition_array[k])) == 0;
        if (!told)
            put_topology(to, number, name);
    }
}

int trp_slurm_call_racks(FILE *to, uint32_t number, const char *partition)
{
    partition_info_msg_t *parts = NULL;
    const char *own = "";
    trp_slurm_rpcs++;
    if (slurm_load_partitions(0, &parts, SHOW_ALL | SHOW_LOCAL) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < parts->record_count; i++) {
        if (strcmp(parts->partition_array[i].name, partition) == 0)
            own = topology_of(&parts->partition_array[i]);
    }
    put_others(to, number, parts, own);
    put_topology(to, number, own);
    slurm_free_partition_info_msg(parts);
    return 0;
}
#else
int trp_slurm_call_racks(FILE *to, uint32_t number, const char *partition)
{
    (void)partition;
    put_topology(to, number, "");
    return 0;
}
#endif

/* srun writes the list to stderr. */
int trp_slurm_call_mpi(FILE *to, uint32_t number)
{
    char types[TRP_SLURM_MPI_TYPES], *said;
    said = trp_slurm_printed("exec srun --mpi=list 2>&1 </dev/null");
    trp_slurm_mpi_types(said ? said : "", types, sizeof types);
    free(said);
    trp_slurm_line_begin(to, number, "mpi");
    trp_slurm_line_put(to, "types", types);
    trp_slurm_line_end(to);
    return 0;
}

static void put_step(FILE *to, uint32_t number, const job_step_info_t *s)
{
    trp_libslurm_hostlist list = slurm_hostlist_create(s->nodes ? s->nodes : "");
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
    if (trp_libslurm_load_steps(&steps, job) != SLURM_SUCCESS)
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
    if (trp_libslurm_kill_step(job, step, signal) == SLURM_SUCCESS)
        return 0;
    return errno == ESLURM_ALREADY_DONE || errno == ESLURM_INVALID_JOB_ID ? 0 : errno;
}

/* Steps whose name begins so, or is that; 0: EBUSY when there is one. */
static int signal_steps(uint32_t job, const char *name, bool whole, uint16_t signal)
{
    job_step_info_response_msg_t *steps = NULL;
    size_t size = strlen(name) + whole;
    int code = 0;
    trp_slurm_rpcs++;
    if (trp_libslurm_load_steps(&steps, job) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < steps->job_step_count; i++) {
        const job_step_info_t *s = &steps->job_steps[i];
        if (!s->name || strncmp(s->name, name, size) != 0)
            continue;
        int one = signal ? signal_step(job, s->step_id.step_id, signal) : EBUSY;
        code = code ? code : one;
    }
    slurm_free_job_step_info_response_msg(steps);
    return code;
}

int trp_slurm_call_end_step(uint32_t job, uint32_t step)
{
    return signal_step(job, step, SIGKILL);
}

int trp_slurm_call_find_steps(uint32_t job, const char *prefix)
{
    return signal_steps(job, prefix, false, 0);
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
