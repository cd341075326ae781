/*
 * What is made of the end of an executor's srun: one verdict, from what srun and the
 * step have said and how far the executor had come.
 *
 * A start that failed is one whose own process ended before it was admitted, or could
 * not be started, on a host that answers: the step, or Slurm's, tells that. "Not now"
 * is none, nor is what somebody ended: when a step ends without a word its node, its
 * job, or the srun beside us is gone. Words of Slurm's that nobody knows are a failure:
 * what is wrong for good has to end some time.
 */
#include <signal.h>
#include <string.h>

#include "cluster/slurm/steps/executor_state.h"
#include "executor/srun_refusal.h"

static bool says(const struct trp_slurm_executor *e, const char *const *patterns)
{
    for (; *patterns; patterns++) {
        if (strcasestr(e->heard.complained.text, *patterns) ||
            strcasestr(e->heard.refusal, *patterns))
            return true;
    }
    return false;
}

/* The step's own words, or srun's. */
static enum trp_srun_refusal refusal_of(const struct trp_slurm_executor *e)
{
    enum trp_srun_refusal srun = trp_srun_refusal(e->heard.complained.text);
    enum trp_srun_refusal own = trp_srun_refusal(e->heard.refusal);
    return own > srun ? own : srun;
}

bool trp_slurm_executor_out_of_memory(const struct trp_slurm_executor *e)
{
    static const char *const patterns[] = {"out of memory", "oom-kill", NULL};
    struct trp_slurm_executor const *at = e;
    return e->heard.ended ? e->heard.kills > 0 && e->heard.signal == SIGKILL
                          : says(at, patterns);
}

bool trp_slurm_executor_in_order(const struct trp_slurm_executor *e)
{
    return (e->ender & TRP_SLURM_TO_GO && e->ender != TRP_SLURM_BY_SLURM_KILLED) ||
           (e->heard.ended && e->heard.status == 0 && e->heard.signal == 0);
}

static enum trp_slurm_verdict not_started(const struct trp_slurm_executor *e)
{
    enum trp_srun_refusal refusal = refusal_of(e);
    if (e->ender == TRP_SLURM_BY_LACK)
        return TRP_SLURM_END_ENDED;
    if (e->ender & TRP_SLURM_TO_GO)
        return TRP_SLURM_END_AS_TOLD;
    if (e->ender == TRP_SLURM_BY_LIMIT)
        return TRP_SLURM_END_GIVEN_UP;
    if (refusal == TRP_SRUN_TOO_OFTEN)
        return TRP_SLURM_END_TOO_OFTEN;
    if (refusal == TRP_SRUN_NEVER)
        return TRP_SLURM_END_NEVER;
    if (*e->heard.refusal)
        return TRP_SLURM_END_FAILED;
    /* An srun without a word was killed. */
    return !e->heard.complained.size || refusal == TRP_SRUN_NOT_NOW
               ? TRP_SLURM_END_NOT_NOW
               : TRP_SLURM_END_FAILED;
}

static enum trp_slurm_verdict not_admitted(const struct trp_slurm_executor *e)
{
    static const char *const cancelled[] = {"CANCELLED", "Node failure", NULL};
    static const char *const told[] = {": task 0: ", NULL}; /* Killed, Exited with … */
    if (e->ender == TRP_SLURM_BY_RELEASE)
        return TRP_SLURM_END_AS_TOLD;
    if (e->ender & (TRP_SLURM_BY_SLURM | TRP_SLURM_BY_SLURM_KILLED) ||
        says(e, cancelled))
        return TRP_SLURM_END_ENDED;
    return e->heard.ended || trp_slurm_executor_out_of_memory(e) || says(e, told)
               ? TRP_SLURM_END_FAILED
               : TRP_SLURM_END_ENDED;
}

enum trp_slurm_verdict trp_slurm_executor_verdict(const struct trp_slurm_executor *e,
                                                  const struct trp_slurm_job *j)
{
    if (!trp_slurm_executor_is_there(e))
        return not_started(e);
    if (j && j->gone && !trp_slurm_executor_in_order(e))
        return TRP_SLURM_END_JOB_OVER;
    if (e->state != TRP_SLURM_EXECUTOR_ADMITTED)
        return not_admitted(e);
    return trp_slurm_executor_in_order(e) ? TRP_SLURM_END_AS_TOLD : TRP_SLURM_END_DIED;
}

/* ---- where starts fail ---- */

void trp_slurm_executor_note_came(struct trp_slurm_executor *e,
                                  const struct trp_slurm_line *line)
{
    struct trp_slurm_request_kind *kind = e->request.kind;
    struct trp_slurm_kind_jobs *w = kind->context;
    (void)line;
    kind->failed_on[0] = '\0';
    kind->failed_elsewhere = false;
    w->job_tried = false;
    w->refused[0] = '\0';
}

bool trp_slurm_executor_failed(struct trp_slurm_executor *e)
{
    const struct trp_slurm *s = e->slurm;
    struct trp_slurm_request_kind *kind = e->request.kind;
    const struct trp_slurm_kind_jobs *w = kind->context;
    const char *host = trp_slurm_node_of(s, &e->request)->name;
    if (*kind->failed_on && strcmp(kind->failed_on, host) != 0)
        kind->failed_elsewhere = true;
    snprintf(kind->failed_on, sizeof kind->failed_on, "%s",
             kind->failed_elsewhere ? "" : host);
    if (kind->failed_elsewhere)
        return false;
    return trp_slurm_ledger_another(s->ledger, kind, host) ||
           (s->additional.allowed && !w->job_tried && !*w->never);
}
