/*
 * Additional jobs that are ended, or cancelled: Slurm is told until it has taken it,
 * later and later when it has not. One entry a job; its number is nobody else's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "cluster/slurm/jobs/additional_parts.h"
#include "core/base/time.h"

#define PAUSE_MAX_NS (60 * TRP_SECOND)

struct trp_slurm_debt {
    struct trp_slurm_debt *next;
    struct trp_slurm *slurm;
    const char *verb; /* static */
    uint32_t job;
    bool end_told; /* the driver knows that it has ended */
    bool asking;
    int64_t at_ns, pause_ns;
};

static void tell_end(const struct trp_slurm_debt *debt)
{
    const struct trp_slurm *s = debt->slurm;
    const struct trp_cluster_job_news news = {
        .job = debt->job, .additional = true, .what = TRP_JOB_ENDED};
    if (!debt->end_told && s->handler.batch.job)
        s->handler.batch.job(s->handler.context, &news);
}

static void on_told(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm_debt *debt = context;
    struct trp_slurm *s = debt->slurm;
    debt->asking = false;
    if (end->failed) {
        debt->pause_ns = debt->pause_ns ? 2 * debt->pause_ns : TRP_SECOND;
        if (debt->pause_ns > PAUSE_MAX_NS)
            debt->pause_ns = PAUSE_MAX_NS;
        debt->at_ns = trp_additional_now() + debt->pause_ns;
    } else {
        tell_end(debt);
        LL_DELETE(s->additional.debts, debt);
        free(debt);
    }
    trp_slurm_pump_soon(s);
}

static void ask_to_end(struct trp_slurm_debt *debt)
{
    char call[64];
    snprintf(call, sizeof call, "%s job=%u", debt->verb, debt->job);
    debt->asking =
        trp_slurm_helper_call(debt->slurm->helper, call, NULL, on_told, debt) == 0;
    if (!debt->asking)
        debt->at_ns = trp_additional_now() + TRP_SECOND;
}

void trp_additional_give_back(const struct trp_slurm_job *j, const char *verb)
{
    struct trp_slurm *s = j->slurm;
    char call[64];
    struct trp_slurm_debt *debt = s->closed ? NULL : calloc(1, sizeof *debt);
    if (!debt) { /* at the end troupe-slurm tries by itself */
        snprintf(call, sizeof call, "%s job=%u", verb, j->job);
        trp_slurm_helper_tell(s->helper, call);
        return;
    }
    *debt = (struct trp_slurm_debt){.next = s->additional.debts,
                                    .slurm = s,
                                    .verb = verb,
                                    .job = j->job,
                                    .end_told = j->end_told};
    s->additional.debts = debt;
    ask_to_end(debt);
}

int64_t trp_additional_tell_again(struct trp_slurm *s)
{
    int64_t due = INT64_MAX, now = trp_additional_now();
    for (struct trp_slurm_debt *debt = s->additional.debts; debt; debt = debt->next) {
        if (!debt->asking && !s->additional.helper_gone && debt->at_ns <= now)
            ask_to_end(debt);
        if (!debt->asking && debt->at_ns < due)
            due = debt->at_ns;
    }
    return s->additional.helper_gone ? INT64_MAX : due;
}

uint32_t trp_additional_owed(const struct trp_slurm *s, uint32_t *ret, uint32_t most)
{
    uint32_t n = 0;
    for (struct trp_slurm_debt *debt = s->additional.debts; debt && n < most;
         debt = debt->next)
        ret[n++] = debt->job;
    return n;
}

void trp_additional_tell_debts(const struct trp_slurm *s)
{
    for (const struct trp_slurm_debt *debt = s->additional.debts; debt;
         debt = debt->next)
        tell_end(debt);
}

void trp_additional_forget_debts(struct trp_slurm *s)
{
    for (struct trp_slurm_debt *debt; (debt = s->additional.debts); free(debt))
        s->additional.debts = debt->next;
}
