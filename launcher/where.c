/*
 * Inside a Slurm job or not.
 *
 * SLURM_JOB_ID alone says little: it stays in the environment of a terminal or a
 * service that was started from a job. Slurm itself is asked; a job that is over, or is
 * another user's, is none of ours, and the run is a local one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "programs.h"
#include "settings.h"

void trp_settings_where_free(struct trp_cluster_where *w)
{
    free((void *)(uintptr_t)w->helper);
    free((void *)(uintptr_t)w->rank_program);
    free((void *)(uintptr_t)w->answer);
    *w = (struct trp_cluster_where){0};
}

static uint32_t job_of_environment(const struct trp_backend *b)
{
    const char *text = getenv(b->job_variable);
    char *end = NULL;
    unsigned long n = text ? strtoul(text, &end, 10) : 0;
    return n && !*end && n < UINT32_MAX ? (uint32_t)n : 0;
}

/* The batch system is asked here and nowhere else: all that follows reads what it
 * answered. */
static int ask_batch_system(const struct trp_settings *s, struct trp_cluster_where *w,
                            trp_error *err)
{
    trp_cluster *c;
    char *answer = NULL;
    trp_error why;
    int code = w->batch->ask(w, &answer, &why);
    w->answer = answer;
    if (code == 0)
        code = trp_cluster_new(NULL, w, s->options, s->site, NULL, NULL, &c, &why);
    if (code == 0) {
        c->ops->close(c, NULL);
        return 0;
    }
    if (code == TRP_ENOENT) {
        trp_settings_where_free(w);
        return 0;
    }
    return trp_error_set(err, code,
                         "this is %s job %u (%s), but %s; --local runs on this machine "
                         "alone",
                         w->batch->name, w->job, w->batch->job_variable, why.text);
}

/* Gangs are to be started, and the site file does not say by what. */
static bool has_open_gangs(const struct trp_settings *s)
{
    bool any = false;
    for (uint32_t i = 0; s->pipeline && i < s->pipeline->nstages; i++)
        any |= s->pipeline->stages[i].spec.ranks > 0;
    return any && !s->site->mpi;
}

/* Not with cores that are pretended; not in a batch job, which has its own; and not in a
 * task of another run, which waits for this one and keeps its cores meanwhile. */
static bool shares_cores(const struct trp_settings_request *q, bool in_job)
{
    return !q->cores && !in_job && !getenv("TROUPE_TASK") && !getenv("TROUPE_EXECUTOR");
}

int trp_settings_where(const struct trp_settings_request *q,
                       const struct trp_settings *s, struct trp_cluster_where *ret,
                       trp_error *err)
{
    const struct trp_backend *const *b = trp_backends;
    char *helper = NULL, *rank = NULL;
    trp_error why;
    while (*b && !job_of_environment(*b))
        b++;
    *ret = (struct trp_cluster_where){.local_cores = q->cores,
                                      .share_cores = shares_cores(q, *b != NULL)};
    if (q->local || q->cores || !*b)
        return 0;
    uint32_t job = job_of_environment(*b);
    if (trp_program_own((*b)->helper, &helper, &why) < 0)
        return trp_error_set(err, TRP_ESYSTEM,
                             "this is %s job %u (%s), but %s: it is built %s; --local "
                             "runs on this machine alone",
                             (*b)->name, job, (*b)->job_variable, why.text,
                             (*b)->built);
    if (trp_program_own("troupe-rank", &rank, err) < 0) {
        free(helper);
        return TRP_ESYSTEM;
    }
    *ret = (struct trp_cluster_where){.batch = *b,
                                      .job = job,
                                      .helper = helper,
                                      .rank_program = rank,
                                      .gangs = has_open_gangs(s)};
    int code = ask_batch_system(s, ret, err);
    if (code < 0)
        trp_settings_where_free(ret);
    return code;
}

void trp_settings_outside(const struct trp_settings_request *q, const char *partition,
                          bool tells, struct trp_cluster_where *where)
{
    const struct trp_backend *const *b = trp_backends;
    char *helper = NULL, *answer = NULL;
    trp_error why;
    while (*b && !(*b)->is_here())
        b++;
    if (q->local || q->cores || where->batch || !*b)
        return;
    int code = trp_program_own((*b)->helper, &helper, &why);
    struct trp_cluster_where outside = {
        .batch = *b, .partition = partition, .helper = helper};
    if (code == 0)
        code = (*b)->ask(&outside, &answer, &why);
    outside.answer = answer;
    if (code == 0) {
        trp_settings_where_free(where);
        *where = outside;
        return;
    }
    if (tells)
        fprintf(stderr, "troupe: %s is not asked: %s; the plan is for this machine\n",
                (*b)->name, why.text);
    free(helper);
}

int trp_settings_step(const struct trp_cluster_where *w, trp_error *err)
{
    const struct trp_backend *b = w->batch;
    const char *step = b ? getenv(b->step_variable) : NULL;
    const char *tasks = b ? getenv(b->step_tasks_variable) : NULL;
    if (!step || strtoul(step, NULL, 10) > b->steps)
        return 0;
    if (tasks && strtoul(tasks, NULL, 10) > 1)
        return trp_error_set(
            err, TRP_EINVAL,
            "run: srun has started %s of these; call troupe run once, in "
            "the job's script, without srun",
            tasks);
    fprintf(stderr,
            "troupe: srun has started this: unless by srun --overlap, its step "
            "keeps its cores and memory from executors, which wait for them; call "
            "troupe run in the job's script, without srun\n");
    return 0;
}
