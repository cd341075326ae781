/*
 * What executors and gangs have to know of additional jobs and nodes, and tell of
 * themselves: what is below them does not know them.
 */
#include <string.h>
#include <utlist.h>

#include "cluster/slurm/steps/executor_state.h"

static void on_never(struct trp_slurm *s, const struct trp_slurm_kind_jobs *w)
{
    struct trp_slurm_executor *e, *next;
    trp_slurm_gangs_refuse(s, w);
    HASH_ITER(hh, s->executors, e, next) {
        if (e->state == TRP_SLURM_EXECUTOR_QUEUED && e->request.kind->context == w)
            trp_slurm_executor_refuse(e, w->never);
    }
}

static void on_judged(struct trp_slurm *s, uint32_t part)
{
    struct trp_slurm_executor *e, *next;
    HASH_ITER(hh, s->executors, e, next) {
        if (trp_slurm_executor_has_srun(e) && e->heard.asked &&
            trp_slurm_node_of(s, &e->request)->part == part)
            trp_slurm_executor_happen(e, TRP_SLURM_ON_JUDGED, NULL);
    }
    trp_slurm_gangs_judge(s, part);
}

static void on_drained(struct trp_slurm *s, uint32_t node)
{
    struct trp_slurm_executor *e, *next;
    HASH_ITER(hh, s->executors, e, next) {
        if (trp_slurm_executor_is_there(e) && e->request.spots[0].node == node &&
            !trp_slurm_executor_is_to_go(e))
            s->handler.batch.leaving(s->handler.context, (trp_executor_id){e->id});
    }
}

static void on_doubted(struct trp_slurm *s, const char *host)
{
    struct trp_slurm_executor *e, *next;
    HASH_ITER(hh, s->executors, e, next) {
        if (e->state == TRP_SLURM_EXECUTOR_STARTING &&
            strcmp(trp_slurm_node_of(s, &e->request)->name, host) == 0)
            trp_slurm_executor_happen(e, TRP_SLURM_ON_DOUBT, NULL);
    }
}

static void on_ends(struct trp_slurm *s, uint32_t part, int64_t when)
{
    struct trp_slurm_executor *e, *next;
    HASH_ITER(hh, s->executors, e, next) {
        if (trp_slurm_executor_is_there(e) &&
            trp_slurm_node_of(s, &e->request)->part == part)
            s->handler.batch.executor_ends(s->handler.context, (trp_executor_id){e->id},
                                           when);
    }
}

static bool is_any_unheard(const struct trp_slurm *s)
{
    for (const struct trp_slurm_executor *e = s->executors; e; e = e->hh.next) {
        if (e->unheard)
            return true;
    }
    return false;
}

static bool is_in(const struct trp_slurm *s, const struct trp_slurm_request *r,
                  uint32_t part)
{
    return r->state == TRP_SLURM_PLACED && r->nspots &&
           trp_slurm_node_of(s, r)->part == part;
}

static uint32_t count_staying(const struct trp_slurm *s, uint32_t part,
                              const char *profile)
{
    uint32_t n = 0;
    for (const struct trp_slurm_executor *e = s->executors; e; e = e->hh.next)
        n += !trp_slurm_executor_is_to_go(e) && is_in(s, &e->request, part) &&
             (!profile || strcmp(e->profile, profile) == 0);
    for (const struct trp_slurm_gang *g = s->gang_list; g && !profile; g = g->next)
        n += is_in(s, &g->request, part);
    return n;
}

const struct trp_slurm_users trp_slurm_step_users = {
    .never = on_never,
    .judged = on_judged,
    .lost = trp_slurm_gangs_lost,
    .drained = on_drained,
    .doubted = on_doubted,
    .ends = on_ends,
    .any_unheard = is_any_unheard,
    .staying = count_staying,
};
