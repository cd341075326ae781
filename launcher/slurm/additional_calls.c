/*
 * Additional jobs: asked for now or queued, looked at, and given back.
 *
 * Every job that was got is kept in a list until it is given back, so that it can be
 * ended when the driver is gone. A request whose answer was lost on the way may have
 * been granted all the same: from then on we are *unsure*, and before the next request,
 * and at the end, the user's jobs are searched for those that carry this run's comment
 * and are not in the list; they are ended. So a request can be made again, and nothing
 * is granted to nobody.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"

#include "calls.h"

enum {
    COMMENT = 256,
    TRANSPORT_ERRORS = 5000, /* from there on, in slurm_errno.h */
    NO_FIT = 7200,           /* … and of topologies, from 26.05 on */
    NO_FIT_LAST = 7299
};

struct job {
    uint32_t number;
    bool guarded;
};

static struct {
    struct job *jobs;
    uint32_t n, capacity;
    bool unsure;
    bool look;             /* at the end: for what is left of any driver of the run */
    char comment[COMMENT]; /* of all of them; "": none was asked for */
    char run[COMMENT], folder[PATH_MAX];
    char *drivers; /* "7,8": jobs that drivers of this run were in */
} held;

/* ---- what was got ---- */

static void hold(uint32_t job, bool guarded)
{
    if (!TRP_ARRAY_GROW(held.jobs, held.n, held.capacity))
        abort(); /* ended by its guard, or its executors */
    held.jobs[held.n++] = (struct job){job, guarded};
}

bool trp_slurm_additional_is_held(uint32_t job)
{
    for (size_t i = 0; i < held.n; i++) {
        if (held.jobs[i].number == job)
            return true;
    }
    return false;
}

static void let_go(uint32_t job)
{
    for (size_t i = 0; i < held.n; i++) {
        if (held.jobs[i].number == job) {
            held.jobs[i] = held.jobs[--held.n];
            return;
        }
    }
}

int trp_slurm_call_guarded(uint32_t job, bool yes)
{
    for (size_t i = 0; i < held.n; i++) {
        if (held.jobs[i].number == job)
            held.jobs[i].guarded = yes;
    }
    return 0;
}

int trp_slurm_call_take(uint32_t job, bool guarded)
{
    hold(job, guarded);
    return 0;
}

bool trp_slurm_additional_are_guarded(void)
{
    bool all = !held.unsure;
    for (size_t i = 0; i < held.n; i++)
        all = all && held.jobs[i].guarded;
    return all;
}

/* ---- how it was refused ---- */

enum trp_slurm_refusal trp_slurm_refusal_of(int code)
{
    switch (code) {
    case ESLURM_NODES_BUSY:
    case ESLURM_CAN_NOT_START_IMMEDIATELY:
    case ESLURM_NOT_TOP_PRIORITY:
    case ESLURM_FRAGMENTATION:
    case ESLURM_PORTS_BUSY:
    case ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE: /* of fewer it may have it */
    case ESLURM_NODE_NOT_AVAIL:                    /* the others are down */
    case ESLURM_TOO_MANY_REQUESTED_CPUS:
    case ESLURM_INVALID_NODE_COUNT:
    case ESLURM_BAD_TASK_COUNT:
    case ESLURM_INVALID_LICENSES:
    case ESLURM_INVALID_NODE_NAME: /* the job has lost some of them */
        return TRP_SLURM_BUSY;
    case ESLURM_INVALID_PARTITION_NAME:
    case ESLURM_DEFAULT_PARTITION_NOT_SET:
    case ESLURM_ACCESS_DENIED:
    case ESLURM_JOB_MISSING_REQUIRED_PARTITION_GROUP:
    case ESLURM_USER_ID_MISSING:
    case ESLURM_INVALID_FEATURE:
    case ESLURM_INVALID_TASK_MEMORY:
    case ESLURM_INVALID_ACCOUNT:
    case ESLURM_INVALID_TIME_LIMIT:
    case ESLURM_RESERVATION_ACCESS:
    case ESLURM_RESERVATION_INVALID:
    case ESLURM_INVALID_QOS:
    case ESLURM_INVALID_CPU_COUNT:
    case ESLURM_INVALID_GRES:
    case ESLURM_INVALID_GRES_TYPE:
    case ESLURM_INVALID_TRES:
    case ESLURM_UNSUPPORTED_GRES:
    case ESLURM_PARTITION_ASSOC:
    case ESLURM_BATCH_ONLY:
    case ESLURM_NOT_SUPPORTED: /* disable_job_shrink */
        return TRP_SLURM_NEVER;
    default:
        break;
    }
    if (code >= NO_FIT && code <= NO_FIT_LAST) /* of fewer nodes it may have them */
        return TRP_SLURM_BUSY;
    /* The call, or its answer, did not arrive: not a word of slurmctld's. */
    bool answered = code >= ESLURM_INVALID_PARTITION_NAME && code < TRANSPORT_ERRORS;
    return answered ? TRP_SLURM_WAIT : TRP_SLURM_LOST;
}

static int refused(int code)
{
    held.unsure |= trp_slurm_refusal_of(code) == TRP_SLURM_LOST;
    return code;
}

/* A call that may get a job is under way, which nobody holds when it is given up. */
static int answered(int code)
{
    held.unsure = false;
    return code == SLURM_SUCCESS ? 0 : refused(errno);
}

/* ---- asking ---- */

static char *text_or_null(const struct trp_slurm_line *line, const char *key)
{
    const char *text = trp_slurm_line_text(line, key);
    return *text ? (char *)(uintptr_t)text : NULL; /* libslurm only reads it */
}

/* "gres:gpu:2,gres:nic:1"; from 23.11 on it is "gres/gpu:2,gres/nic:1". */
static char *gres_or_null(const struct trp_slurm_line *line, const char *key)
{
    char *text = text_or_null(line, key);
#if TRP_LIBSLURM_SINCE(23, 11)
    for (char *at = text; at && (at = strstr(at, "gres:")); at++)
        at[strlen("gres")] = at == text || at[-1] == ',' ? '/' : ':';
#endif
    return text;
}

static void describe(const struct trp_slurm_line *line, job_desc_msg_t *d)
{
    uint32_t tasks = (uint32_t)trp_slurm_line_number(line, "tasks");
    uint32_t nodes = (uint32_t)trp_slurm_line_number(line, "nodes");
    uint16_t cpus = (uint16_t)trp_slurm_line_number(line, "cpus");
    int64_t memory = trp_slurm_line_number(line, "memory");
    int64_t minutes = trp_slurm_line_number(line, "time");
    slurm_init_job_desc_msg(d);
    d->user_id = getuid();
    d->group_id = getgid();
    d->name = text_or_null(line, "name");
    d->comment = text_or_null(line, "comment");
    d->work_dir = text_or_null(line, "folder");
    d->num_tasks = tasks;
    d->cpus_per_task = cpus;
    d->min_cpus = tasks * cpus;
    d->min_nodes = 1;
    if (nodes > 0) {
        d->min_nodes = d->max_nodes = nodes;
        d->ntasks_per_node = (uint16_t)trp_slurm_line_number(line, "node_tasks");
    }
    if (memory > 0)
        d->pn_min_memory = (uint64_t)memory | MEM_PER_CPU;
    d->tres_per_task = gres_or_null(line, "gres");
    d->tres_per_node = gres_or_null(line, "node_gres");
    d->licenses = text_or_null(line, "licences");
    d->features = text_or_null(line, "constraint");
    d->partition = text_or_null(line, "partition");
    d->account = text_or_null(line, "account");
    d->qos = text_or_null(line, "qos");
    d->reservation = text_or_null(line, "reservation");
    d->exc_nodes = text_or_null(line, "exclude");
    if (minutes > 0)
        d->time_limit = (uint32_t)minutes;
    if (trp_slurm_line_number(line, "exclusive"))
        d->shared = JOB_SHARED_NONE;
    d->kill_on_node_fail = 0;
    d->requeue = 0;
}

static bool is_a_driver(uint32_t job)
{
    for (const char *at = held.drivers; at && *at;) {
        char *end;
        if (strtoul(at, &end, 10) == job)
            return true;
        at = *end ? end + 1 : end;
    }
    return false;
}

/* An additional job of any driver of the run in this folder. */
static bool is_of_run(const slurm_job_info_t *job)
{
    char prefix[COMMENT + 32];
    if (!job->comment)
        return false;
    if (*held.comment && strcmp(job->comment, held.comment) == 0)
        return true;
    int n = snprintf(prefix, sizeof prefix, "troupe %s of job ", held.run);
    return *held.run && strncmp(job->comment, prefix, (size_t)n) == 0 &&
           is_a_driver((uint32_t)strtoul(job->comment + n, NULL, 10)) &&
           !is_a_driver(job->job_id) && job->work_dir &&
           strcmp(job->work_dir, held.folder) == 0;
}

/* Those that are held or carry our comment: each is shown, or ended when we do not know
 * it. */
static int search(FILE *to, uint32_t number, bool end_unknown)
{
    job_info_msg_t *jobs = NULL;
    int code = 0;
    trp_slurm_rpcs++;
    if (slurm_load_job_user(&jobs, getuid(), SHOW_ALL) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < jobs->record_count; i++) {
        slurm_job_info_t *job = &jobs->job_array[i];
        bool over = (job->job_state & JOB_STATE_BASE) > JOB_SUSPENDED;
        bool ours = is_of_run(job);
        if (!ours && !trp_slurm_additional_is_held(job->job_id))
            continue;
        if (to)
            trp_slurm_put_additional(to, number, job);
        else if (end_unknown && !over && !trp_slurm_additional_is_held(job->job_id))
            code = trp_slurm_call_end(job->job_id);
        if (code)
            break;
    }
    slurm_free_job_info_msg(jobs);
    return code;
}

static int become_sure(void)
{
    bool due = held.unsure || held.look;
    int code = due ? search(NULL, 0, true) : 0;
    if (code == 0)
        held.unsure = held.look = false;
    return code;
}

int trp_slurm_call_sweep(const struct trp_slurm_line *line)
{
    snprintf(held.run, sizeof held.run, "%s", trp_slurm_line_text(line, "run"));
    snprintf(held.folder, sizeof held.folder, "%s",
             trp_slurm_line_text(line, "folder"));
    free(held.drivers);
    held.drivers = strdup(trp_slurm_line_text(line, "drivers"));
    held.look = trp_slurm_line_number(line, "now");
    return held.drivers ? become_sure() : ENOMEM;
}

void trp_slurm_sweep_at_end(void)
{
    held.look = held.look || *held.comment;
}

static int set_comment(const struct trp_slurm_line *line)
{
    snprintf(held.comment, sizeof held.comment, "%s",
             trp_slurm_line_text(line, "comment"));
    return become_sure();
}

/* A job that slurmctld cannot be told of now is found before the next one is asked for,
 * and at the end. */
static void withdraw(uint32_t job)
{
    if (trp_slurm_call_end(job) == 0)
        return;
    let_go(job);
    held.unsure = true;
}

/* A request that is granted at once or not at all (`immediate`) would stand in Slurm's
 * accounts as a job that failed. */
int trp_slurm_call_allocate(FILE *to, const struct trp_slurm_line *line)
{
    job_desc_msg_t d;
    resource_allocation_response_msg_t *granted = NULL;
    int code = set_comment(line);
    if (code)
        return refused(code);
    describe(line, &d);
    trp_slurm_rpcs++;
    held.unsure = true;
    code = answered(slurm_allocate_resources(&d, &granted));
    if (code)
        return code;
    uint32_t job = TRP_LIBSLURM_JOB_OF(granted);
    bool waits = granted->node_cnt == 0;
    int why = (int)granted->error_code;
    slurm_free_resource_allocation_response_msg(granted);
    hold(job, false);
    code = waits ? why ? why : ESLURM_NODES_BUSY
                 : trp_slurm_call_job(to, line->number, job);
    if (code)
        withdraw(job);
    return code;
}

/* slurm.h says that it is to be called, and does not declare it. */
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *msg);

int trp_slurm_call_when(FILE *to, const struct trp_slurm_line *line)
{
    job_desc_msg_t d;
    will_run_response_msg_t *answer = NULL;
    describe(line, &d);
    trp_slurm_rpcs++;
    if (slurm_job_will_run2(&d, &answer) != SLURM_SUCCESS)
        return refused(errno);
    trp_slurm_line_begin(to, line->number, "when");
    trp_slurm_line_put_number(to, "start", answer ? (int64_t)answer->start_time : 0);
    trp_slurm_line_end(to);
    slurm_free_will_run_response_msg(answer);
    return 0;
}

int trp_slurm_call_queue(FILE *to, const struct trp_slurm_line *line)
{
    static char null[] = "/dev/null", path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    static char libraries[4096]; /* where the guard finds MPI as we do */
    const char *own = getenv("LD_LIBRARY_PATH");
    job_desc_msg_t d;
    submit_response_msg_t *answer = NULL;
    char *environment[] = {path, libraries, text_or_null(line, "entry"), NULL};
    int code = set_comment(line);
    if (code)
        return refused(code);
    describe(line, &d);
    snprintf(libraries, sizeof libraries, "LD_LIBRARY_PATH=%s", own ? own : "");
    d.script = text_or_null(line, "script");
    d.environment = environment;
    d.env_size = environment[2] ? 3 : 2;
    d.std_in = d.std_out = d.std_err = null;
    trp_slurm_rpcs++;
    held.unsure = true;
    code = answered(slurm_submit_batch_job(&d, &answer));
    if (code)
        return code;
    hold(TRP_LIBSLURM_JOB_OF(answer), true); /* its script */
    trp_slurm_line_begin(to, line->number, "queued");
    trp_slurm_line_put_number(to, "job", TRP_LIBSLURM_JOB_OF(answer));
    trp_slurm_line_end(to);
    slurm_free_submit_response_response_msg(answer);
    return 0;
}

/* ---- looking and giving back ---- */

int trp_slurm_call_jobs(FILE *to, uint32_t number)
{
    return *held.comment ? search(to, number, false) : 0;
}

/* A job that is over has nothing that could be given back. */
static int unless_over(int code)
{
    static const int over[] = {ESLURM_ALREADY_DONE, ESLURM_INVALID_JOB_ID,
                               ESLURM_JOB_NOT_RUNNING};
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        code = code == over[i] ? 0 : code;
    return code;
}

int trp_slurm_call_end(uint32_t job)
{
    trp_slurm_rpcs++;
    int code =
        trp_libslurm_kill_job(job, SIGKILL) == SLURM_SUCCESS ? 0 : unless_over(errno);
    if (code == 0)
        let_go(job);
    return code;
}

int trp_slurm_call_complete(uint32_t job)
{
    trp_slurm_rpcs++;
    if (trp_libslurm_complete_job(job) != SLURM_SUCCESS)
        return trp_slurm_call_end(job);
    let_go(job);
    return 0;
}

/* Whether all of `names` are in `kept`. */
static bool are_in(const char *names, trp_libslurm_hostlist kept)
{
    trp_libslurm_hostlist list = slurm_hostlist_create(names);
    bool in = true;
    for (char *name; list && (name = slurm_hostlist_shift(list)); free(name))
        in = in && slurm_hostlist_find(kept, name) >= 0;
    if (list)
        slurm_hostlist_destroy(list);
    return in;
}

/* Steps on nodes that a job gives up are killed: those of tasks' own sruns, or of other
 * programs in the job, are waited for. A step on another node keeps its cores for ever
 * when the job shrinks below it: "unable to update job's core use information". */
static int find_steps(uint32_t job, const char *nodes, bool live)
{
    job_step_info_response_msg_t *steps = NULL;
    trp_slurm_rpcs++;
    if (trp_libslurm_load_steps(&steps, job) != SLURM_SUCCESS)
        return errno;
    trp_libslurm_hostlist kept = slurm_hostlist_create(nodes);
    int code = kept ? 0 : ENOMEM;
    for (uint32_t i = 0; code == 0 && i < steps->job_step_count; i++) {
        const job_step_info_t *s = &steps->job_steps[i];
        if (s->step_id.step_id <= SLURM_MAX_NORMAL_STEP_ID && s->nodes &&
            (!live || !are_in(s->nodes, kept)))
            code = EBUSY;
    }
    if (kept)
        slurm_hostlist_destroy(kept);
    slurm_free_job_step_info_response_msg(steps);
    return code;
}

int trp_slurm_call_shrink(uint32_t job, const char *nodes, bool live)
{
    job_desc_msg_t d;
    int code = find_steps(job, nodes, live);
    if (code)
        return unless_over(code);
    slurm_init_job_desc_msg(&d);
    TRP_LIBSLURM_JOB_OF(&d) = job;
    d.req_nodes = (char *)(uintptr_t)nodes; /* libslurm only reads it */
    trp_slurm_rpcs++;
    return slurm_update_job(&d) == SLURM_SUCCESS ? 0 : unless_over(errno);
}

bool trp_slurm_additional_are_left(void)
{
    return held.n > 0 || held.unsure || held.look;
}

int trp_slurm_additional_end_all(void)
{
    int code = 0;
    while (code == 0 && held.n > 0)
        code = trp_slurm_call_end(held.jobs[held.n - 1].number);
    int sure = become_sure();
    return code ? code : sure;
}
