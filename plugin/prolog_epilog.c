/*
 * A site with `scratch:` gives every job a folder, not only Troupe's: whether a job
 * will call troupe is not known when it starts, and a folder costs less than asking.
 * Without `scratch:` nothing is done for any job.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cluster/slurm/helper/libslurm.h"
#include "plugin/as_user.h"
#include "plugin/job_folder.h"
#include "plugin/plugin.h"
#include "plugin/shapes.h"

/* As those of plugin.h. */
#pragma weak slurm_free_job_info_msg
#pragma weak slurm_hostlist_create
#pragma weak slurm_hostlist_destroy
#pragma weak slurm_hostlist_find
#pragma weak slurm_init
#pragma weak slurm_load_job

enum { PROLOG_S = 15, EPILOG_S = 120 };
#define NO_ALLOCATE UINT32_C(0xffff0000)

static int read_job(spank_t sp, struct trp_node_job *ret, trp_error *err)
{
    if (spank_get_item(sp, S_JOB_ID, &ret->id) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_UID, &ret->uid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_GID, &ret->gid) != ESPANK_SUCCESS)
        return trp_error_set(err, TRP_ESTATE, "Slurm does not tell the job");
    const char *sluid = getenv("SLURM_JOB_SLUID"); /* slurmd's, of prolog and epilog */
    snprintf(ret->sluid, sizeof ret->sluid, "%s", sluid ? sluid : "");
    return 0;
}

/* Is this node, of $SLURMD_NODENAME, one of a job's? */
static bool has_this_node(const slurm_job_info_t *job)
{
    const char *node = getenv("SLURMD_NODENAME");
    trp_libslurm_hostlist list = job->nodes ? slurm_hostlist_create(job->nodes) : NULL;
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

/* None that a process ends with which is ended. */
enum { IS_HERE = 70, IS_NOT_HERE, NOT_TOLD };

static int ask_for(void *context)
{
    const uint32_t *id = context;
    job_info_msg_t *found = NULL;
    slurm_init(NULL); /* what Slurm calls prologs with did not, from 23.02 on */
    if (trp_libslurm_load_job(&found, *id, SHOW_ALL) != SLURM_SUCCESS)
        return errno == ESLURM_INVALID_JOB_ID ? IS_NOT_HERE : NOT_TOLD;
    bool here = false;
    for (uint32_t i = 0; i < found->record_count; i++) {
        if (found->job_array[i].job_id == *id)
            here |= may_be_here(&found->job_array[i]);
    }
    slurm_free_job_info_msg(found);
    return here ? IS_HERE : IS_NOT_HERE;
}

/* By a process of its own, since libslurm ends the one in which it cannot go on. */
bool trp_plugin_job_here(uint32_t id, void *context)
{
    struct trp_plugin_asking *a = context;
    /* slurmctld knows nothing of srun --no-allocate. */
    if (id == a->own || a->silent || id >= NO_ALLOCATE)
        return true;
    int answer = trp_as_user(geteuid(), getegid(), 0, ask_for, &id);
    a->silent = answer != IS_HERE && answer != IS_NOT_HERE;
    return answer != IS_NOT_HERE;
}

/* ---- in time ---- */

/* What is done in a process of its own, which ends in time: a prolog or epilog that
 * does not has its node drained, and a file system or a slurmctld that does not answer
 * is no reason for that. In memory that both share. */
struct timed {
    struct trp_node_job job;
    char parent[PATH_MAX];
    unsigned seconds;
    int code;
    trp_error err;
};

/* Slurm's own limit is PrologEpilogTimeout, or from 25.05 on that of either; every
 * program of Slurm has slurm.conf in this variable. */
static unsigned seconds_for(unsigned wanted,
                            uint16_t (*limit)(const slurm_conf_t *conf))
{
    const slurm_conf_t *conf = dlsym(RTLD_DEFAULT, "slurm_conf");
    unsigned most = conf ? limit(conf) : NO_VAL16;
    if (most == 0 || most >= NO_VAL16)
        return wanted;
    most = most > 2 ? most / 2 : 1;
    return wanted < most ? wanted : most;
}

static int do_timed(int (*work)(void *), const struct trp_node_job *job,
                    const char *parent, unsigned seconds, trp_error *err)
{
    struct timed *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t == MAP_FAILED)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    t->job = *job;
    t->seconds = seconds;
    snprintf(t->parent, sizeof t->parent, "%s", parent);
    int code = trp_as_user(geteuid(), getegid(), t->seconds + 1, work, t) < 0
                   ? trp_error_set(err, TRP_ESYSTEM,
                                   "job %u: its folder is not done in %u s; what is "
                                   "left is for a later prolog",
                                   job->id, t->seconds)
                   : t->code;
    if (t->code < 0)
        trp_error_set(err, t->code, "%s", t->err.text);
    munmap(t, sizeof *t);
    return code;
}

/* Leftovers first: they may be what the new folder has no room for. */
static int sweep_and_make(void *context)
{
    struct timed *t = context;
    struct trp_plugin_asking asking = {.own = t->job.id};
    trp_error why;
    int swept = trp_scratch_sweep(TRP_SCRATCH_RECORDS, t->parent, trp_plugin_job_here,
                                  &asking, &why);
    t->code = trp_scratch_make(TRP_SCRATCH_RECORDS, t->parent, &t->job, &t->err);
    if (t->code == 0 && swept < 0)
        t->code = trp_error_set(&t->err, swept, "%s", why.text);
    return 0;
}

static int end_job(void *context)
{
    struct timed *t = context;
    t->code = trp_scratch_end(TRP_SCRATCH_RECORDS, &t->job, t->seconds, &t->err);
    return 0;
}

int trp_plugin_prolog(spank_t sp, const struct trp_plugin *p, trp_error *err)
{
    struct trp_node_job job = {0};
    char parent[PATH_MAX];
    int code = trp_shapes_scratch(p->shapes, parent, err);
    if (code < 0)
        return code == TRP_ENOENT ? 0 : code;
    code = read_job(sp, &job, err);
    return code < 0 ? code
                    : do_timed(sweep_and_make, &job, parent,
                               seconds_for(PROLOG_S, trp_libslurm_prolog_limit), err);
}

int trp_plugin_epilog(spank_t sp, trp_error *err)
{
    struct trp_node_job job;
    int code = read_job(sp, &job, err);
    if (code == 0 && trp_scratch_has(TRP_SCRATCH_RECORDS, &job))
        code = do_timed(end_job, &job, "",
                        seconds_for(EPILOG_S, trp_libslurm_epilog_limit), err);
    return code == TRP_ENOENT ? 0 : code;
}

int trp_plugin_scratch(spank_t sp, trp_error *err)
{
    struct trp_node_job job;
    char path[PATH_MAX];
    int code = read_job(sp, &job, err);
    if (code < 0)
        return code;
    if (trp_scratch_find(TRP_SCRATCH_RECORDS, &job, path) < 0) {
        spank_unsetenv(sp, "TROUPE_SCRATCH"); /* that of the job which submitted this */
        return 0;
    }
    spank_err_t rc = spank_setenv(sp, "TROUPE_SCRATCH", path, 1);
    return rc == ESPANK_SUCCESS
               ? 0
               : trp_error_set(err, TRP_ESYSTEM, "TROUPE_SCRATCH cannot be set: %s",
                               spank_strerror(rc));
}
