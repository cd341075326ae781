/*
 * What a job was granted.
 *
 * libslurm has the granted CPUs and memory of a node only in a structure of its own;
 * what there is is the text of `scontrol -d show job`, which libslurm printed up to
 * 24.05 (slurm_print_job_info) and scontrol itself does from then on. Its lines
 * "Nodes=node[1-2] CPU_IDs=0-3 Mem=4096 GRES=gpu:a100:2(IDX:0-1)" are exactly what
 * slurmctld keeps: also for --mem=0 and for whole nodes, of which the environment says
 * what was asked for. The nodes' own records tell threads, features and memory;
 * slurm.conf, whether memory is handed out at all.
 */
#include "calls.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/slurm/helper/line.h"

uint64_t trp_slurm_rpcs;

enum { NODES_KEPT_S = 60 };

/* "0-3,8": how many. */
static int64_t count_ids(const char *text)
{
    int64_t n = 0;
    while (*text >= '0' && *text <= '9') {
        char *end;
        long from = strtol(text, &end, 10), to = from;
        if (*end == '-')
            to = strtol(end + 1, &end, 10);
        n += to - from + 1;
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static const node_info_t *find_node(const struct trp_slurm_facts *f, const char *name)
{
    for (uint32_t i = 0; f->nodes && i < f->nodes->record_count; i++) {
        const node_info_t *n = &f->nodes->node_array[i];
        if (n->name && strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

static bool memory_is_handed_out(const struct trp_slurm_facts *f)
{
    return f->conf->select_type_param & TRP_LIBSLURM_MEMORY;
}

bool trp_slurm_cores_are_whole(const slurm_conf_t *conf)
{
    return conf->select_type_param & (TRP_LIBSLURM_CORE | TRP_LIBSLURM_SOCKET);
}

/* Memory that is not handed out: all of the node's but what it keeps for itself. */
static int64_t memory_of(const struct trp_slurm_facts *f, const node_info_t *n,
                         const char *granted)
{
    int64_t mib = granted ? strtoll(granted, NULL, 10) : 0;
    if ((mib > 0 && memory_is_handed_out(f)) || !n)
        return mib;
    return (int64_t)n->real_memory - (int64_t)n->mem_spec_limit;
}

static void put_node(FILE *to, uint32_t number, const struct trp_slurm_facts *f,
                     const slurm_job_info_t *job, const char *name, const char *line)
{
    char *ids = trp_slurm_value(line, "CPU_IDs"),
         *memory = trp_slurm_value(line, "Mem");
    char *gres = trp_slurm_value(line, "GRES");
    const node_info_t *n = find_node(f, name);
    trp_slurm_line_begin(to, number, "node");
    trp_slurm_line_put_number(to, "job", job->job_id);
    trp_slurm_line_put(to, "name", name);
    trp_slurm_line_put(to, "host", n && n->node_hostname ? n->node_hostname : name);
    trp_slurm_line_put_number(to, "cpus", ids ? count_ids(ids) : 0);
    trp_slurm_line_put_number(to, "memory", memory_of(f, n, memory));
    trp_slurm_line_put_number(
        to, "threads",
        n && trp_slurm_cores_are_whole(f->conf) && n->threads ? n->threads : 1);
    trp_slurm_line_put_number(to, "sockets", n ? n->sockets : 0);
    trp_slurm_line_put(to, "features", n ? n->features_act : "");
    trp_slurm_line_put(to, "gres", gres ? gres : "");
    trp_slurm_line_end(to);
    free(ids);
    free(memory);
    free(gres);
}

/* What `scontrol -d show job` prints, malloc'ed; NULL: out of memory, or there is no
 * scontrol. With the leader of a heterogeneous job come its other parts. */
#if SLURM_PRINTS_JOBS
static char *job_text(slurm_job_info_t *job)
{
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    if (!into)
        return NULL;
    trp_slurm_rpcs++; /* it loads the nodes for itself */
    slurm_print_job_info(into, job, 0);
    fclose(into);
    return text;
}

/* Its words for a reason are in that text only. */
static char *reason_of(slurm_job_info_t *job)
{
    char *text = job_text(job);
    char *reason = text ? trp_slurm_value(text, "Reason") : NULL;
    free(text);
    return reason;
}
#else
static char *job_text(slurm_job_info_t *job)
{
    char arguments[48];
    snprintf(arguments, sizeof arguments, "-d show job %u", job->job_id);
    trp_slurm_rpcs += 2; /* the job, and the nodes */
    return trp_slurm_scontrol(arguments);
}

extern const char *slurm_job_state_reason_string(enum job_state_reason reason);

static char *reason_of(slurm_job_info_t *job)
{
    return strdup(slurm_job_state_reason_string(job->state_reason));
}
#endif

/* One line of the text stands for all nodes with the same share, and they come one after
 * the other: the job's name and comment, before and behind them, may read like them. */
static void put_nodes(FILE *to, uint32_t number, const struct trp_slurm_facts *f,
                      slurm_job_info_t *job)
{
    char *text = job_text(job);
    const char *const begin = "     Nodes=";
    bool own = true, among = false;
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        if (strncmp(line, "JobId=", strlen("JobId=")) == 0)
            own = strtoul(line + strlen("JobId="), NULL, 10) == job->job_id;
        bool share = own && strncmp(line, begin, strlen(begin)) == 0;
        if (among && !share)
            break;
        among = share;
        char *names = share ? trp_slurm_value(line, "Nodes") : NULL;
        trp_libslurm_hostlist list = names ? slurm_hostlist_create(names) : NULL;
        for (char *name; list && (name = slurm_hostlist_shift(list)); free(name))
            put_node(to, number, f, job, name, line);
        if (list)
            slurm_hostlist_destroy(list);
        free(names);
        line = end ? end + 1 : NULL;
    }
    free(text);
}

/* Of a job that is completing, too, it says why. */
const char *trp_slurm_state_word(uint32_t state)
{
    static const char *const names[] = {
        "PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
        "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
    uint32_t base = state & JOB_STATE_BASE;
    return base < sizeof names / sizeof *names ? names[base] : "OVER";
}

/* A number of SlurmctldParameters, "rl_enable,rl_bucket_size=50". */
static int64_t parameter(const slurm_conf_t *conf, const char *key, int64_t otherwise)
{
    const char *at = strcasestr(conf->slurmctld_params, key);
    int64_t n = at ? strtoll(at + strlen(key), NULL, 10) : 0;
    return n > 0 ? n : otherwise;
}

/* From 23.02 on each user may have so many calls at once, and another each so many
 * milliseconds; with Slurm's own defaults. */
static void put_rate(FILE *to, const slurm_conf_t *conf)
{
    if (!conf->slurmctld_params || !strcasestr(conf->slurmctld_params, "rl_enable"))
        return;
    trp_slurm_line_put_number(to, "calls", parameter(conf, "rl_bucket_size=", 30));
    trp_slurm_line_put_number(to, "call_ms",
                              1000 * parameter(conf, "rl_refill_period=", 1) /
                                  parameter(conf, "rl_refill_rate=", 2));
}

static void put_allocation(FILE *to, uint32_t number, const struct trp_slurm_facts *f,
                           slurm_job_info_t *job)
{
    bool live = (job->job_state & JOB_STATE_BASE) == JOB_RUNNING &&
                !(job->job_state & JOB_COMPLETING);
    bool part = job->het_job_id && job->het_job_id != NO_VAL;
    trp_slurm_line_begin(to, number, "allocation");
    trp_slurm_line_put_number(to, "job", job->job_id);
    trp_slurm_line_put_number(to, "leader", part ? job->het_job_id : job->job_id);
    trp_slurm_line_put_number(to, "component",
                              part ? (int64_t)job->het_job_offset : -1);
    trp_slurm_line_put_number(to, "uid", job->user_id);
    trp_slurm_line_put_number(to, "live", live);
    trp_slurm_line_put(to, "state", trp_slurm_state_word(job->job_state));
    trp_slurm_line_put_number(to, "started", job->start_time);
    trp_slurm_line_put_number(to, "ends", job->end_time);
    trp_slurm_line_put(to, "batch_host", job->batch_host ? job->batch_host : "");
    trp_slurm_line_put(to, "licences", job->licenses ? job->licenses : "");
    trp_slurm_line_put_number(to, "memory_enforced", memory_is_handed_out(f));
    trp_slurm_line_put(to, "partition", job->partition);
    trp_slurm_line_put(to, "account", job->account);
    trp_slurm_line_put(to, "qos", job->qos);
    trp_slurm_line_put(to, "reservation", job->resv_name);
    trp_slurm_line_put(to, "cluster",
                       f->conf->cluster_name ? f->conf->cluster_name : "");
    put_rate(to, f->conf);
    trp_slurm_line_end(to);
}

const struct trp_slurm_facts *trp_slurm_facts_load(void)
{
    static struct trp_slurm_facts f;
    static time_t loaded;
    node_info_msg_t *fresh = NULL;
    time_t now = time(NULL);
    if (f.nodes && now - loaded < NODES_KEPT_S)
        return &f;
    trp_slurm_rpcs += f.conf ? 1 : 2;
    if (!f.conf && slurm_load_ctl_conf(0, &f.conf) != SLURM_SUCCESS)
        return NULL;
    if (slurm_load_node(f.nodes ? f.nodes->last_update : 0, &fresh,
                        SHOW_ALL | SHOW_LOCAL) == SLURM_SUCCESS) {
        if (f.nodes)
            slurm_free_node_info_msg(f.nodes);
        f.nodes = fresh;
    } else if (errno != SLURM_NO_CHANGE_IN_DATA) {
        return NULL;
    }
    loaded = now;
    return &f;
}

void trp_slurm_put_additional(FILE *to, uint32_t number, slurm_job_info_t *job)
{
    char *reason = reason_of(job);
    trp_slurm_line_begin(to, number, "additional");
    trp_slurm_line_put_number(to, "job", job->job_id);
    trp_slurm_line_put(to, "state", trp_slurm_state_word(job->job_state));
    trp_slurm_line_put(to, "reason", reason);
    trp_slurm_line_put(to, "why", job->state_desc);
    trp_slurm_line_put_number(to, "start", job->start_time);
    trp_slurm_line_end(to);
    free(reason);
}

bool trp_slurm_is_of(const slurm_job_info_t *job, uint32_t id)
{
    return job->job_id == id || (job->het_job_id == id && id);
}

int trp_slurm_call_job(FILE *to, uint32_t number, uint32_t id)
{
    const struct trp_slurm_facts *f = NULL;
    job_info_msg_t *jobs = NULL;
    trp_slurm_rpcs++;
    /* Without SHOW_LOCAL it asks for federations first. */
    const uint16_t shown = SHOW_ALL | SHOW_DETAIL | SHOW_LOCAL;
    int code = trp_libslurm_load_job(&jobs, id, shown) == SLURM_SUCCESS ? 0 : errno;
    if (code == 0 && !(f = trp_slurm_facts_load()))
        code = errno;
    for (uint32_t i = 0; code == 0 && i < jobs->record_count; i++) {
        slurm_job_info_t *job = &jobs->job_array[i];
        if (!trp_slurm_is_of(job, id))
            continue;
        put_allocation(to, number, f, job);
        put_nodes(to, number, f, job);
    }
    if (jobs)
        slurm_free_job_info_msg(jobs);
    return code;
}
