/*
 * The end of an executor by force, and the limits of its start.
 *
 * It comes in blows, each when the one before has not helped: closing
 * srun's stdin (the step ends its executor and tidies up), SIGTERM to srun (Slurm kills
 * the step), asking Slurm for the same, SIGKILL to srun. A step that has started says
 * at once that it is ending; when it does not, its node is gone: srun, which would wait
 * for half a minute, gets all of them. An executor is told gone, and its room is free,
 * when its srun is gone.
 *
 * Where a node does not answer, or Slurm holds its room to be taken, srun waits for
 * minutes, or for ever. So a start has a limit, after which the executor goes back into
 * the queue, unnoticed by the driver; it is short on a node that is doubtful.
 */
#include <signal.h>
#include <stdio.h>

#include "cluster/slurm/slurm_state.h"

enum {
    RELEASE_MS = 2000, /* from SHUTDOWN to the kill */
    BLOW_MS = 2000,    /* from one blow to the next */
    ANSWER_MS = 3000,  /* in which a step answers: its node may be busy */
    WITHDRAW_MS = 1000,
};

void trp_slurm_executor_tried(struct trp_slurm_executor *e, bool tried)
{
    if (e->tried == tried)
        return;
    e->tried = tried;
    e->request.shape->tried += tried ? 1 : UINT32_MAX;
}

/* By its name as long as its number is not known. */
static void end_step(const struct trp_slurm_executor *e)
{
    const struct trp_slurm *s = e->slurm;
    char call[512], name[TRP_SLURM_STEP_NAME];
    uint32_t part = s->inventory.nodes[e->request.spots[0].node].part;
    trp_slurm_step_name(e, name);
    int n =
        snprintf(call, sizeof call, "end-step job=%u ", s->inventory.parts[part].job);
    if (e->step >= 0)
        snprintf(call + n, sizeof call - (size_t)n, "step=%lld", (long long)e->step);
    else
        snprintf(call + n, sizeof call - (size_t)n, "name=%s", name);
    if (s->helper)
        trp_slurm_helper_tell(s->helper, call);
}

void trp_slurm_executor_strike(struct trp_slurm_executor *e)
{
    if (e->blows == TRP_SLURM_BLOWS)
        return;
    switch (e->blows++) {
    case 0:
        e->leaving = true;
        trp_slurm_executor_say(e, "end\n");
        trp_slurm_executor_hang_up(e);
        break;
    case 1:
        if (!e->exited)
            uv_process_kill(&e->process, SIGTERM);
        break;
    case 2:
        end_step(e);
        break;
    default:
        if (!e->exited)
            uv_process_kill(&e->process, SIGKILL);
        break;
    }
}

static void on_blow(uv_timer_t *timer)
{
    struct trp_slurm_executor *e = timer->data;
    trp_slurm_executor_strike(e);
    if (e->blows < TRP_SLURM_BLOWS)
        uv_timer_start(timer, on_blow, BLOW_MS, 0);
}

static void dismiss(struct trp_slurm_executor *e)
{
    e->slurm->leaving += !e->dismissed;
    e->dismissed = true;
}

static void on_no_answer(uv_timer_t *timer)
{
    struct trp_slurm_executor *e = timer->data;
    while (e->blows < TRP_SLURM_BLOWS)
        trp_slurm_executor_strike(e);
}

static void on_answer_due(uv_timer_t *timer)
{
    struct trp_slurm_executor *e = timer->data;
    if (e->ending || e->ended)
        uv_timer_start(timer, on_blow, BLOW_MS, 0);
    else
        on_no_answer(timer);
}

void trp_slurm_executor_kill(struct trp_slurm_executor *e)
{
    if (e->state == TRP_SLURM_WAITS) {
        trp_slurm_executor_release(e, false);
        return;
    }
    if (e->state == TRP_SLURM_RUNS && e->given_up)
        dismiss(e);
    if (e->state != TRP_SLURM_RUNS || e->blows)
        return;
    if (e->granted && !e->ended && !e->dismissed) /* its end was not told */
        trp_slurm_watch_doubt(e->slurm, e->request.spots[0].node, TRP_SLURM_DOUBTFUL);
    dismiss(e);
    trp_slurm_executor_strike(e);
    if (e->granted)
        uv_timer_start(&e->timer, on_answer_due, ANSWER_MS, 0);
    else
        uv_timer_start(&e->timer, on_blow, BLOW_MS, 0);
}

void trp_slurm_executor_silent(struct trp_slurm_executor *e, bool silent)
{
    uint32_t node;
    if (e->state != TRP_SLURM_RUNS || !e->granted || e->dismissed)
        return;
    e->unheard = silent;
    node = e->request.spots[0].node;
    if (silent)
        trp_slurm_watch_doubt(e->slurm, node, TRP_SLURM_DOUBTFUL);
    else
        trp_slurm_watch_trust(e->slurm, node);
}

/* An srun that waits for room withdraws its request for a SIGTERM. */
static void on_start_late(uv_timer_t *timer)
{
    struct trp_slurm_executor *e = timer->data;
    e->given_up = true;
    trp_slurm_watch_doubt(e->slurm, e->request.spots[0].node, TRP_SLURM_SILENT);
    trp_slurm_executor_strike(e);
    trp_slurm_executor_strike(e);
    uv_timer_start(timer, on_no_answer, WITHDRAW_MS, 0);
}

void trp_slurm_executor_limit(struct trp_slurm_executor *e)
{
    uv_timer_start(&e->timer, on_start_late, TRP_SLURM_START_MS, 0);
}

void trp_slurm_executor_try(struct trp_slurm_executor *e)
{
    if (e->tried || e->blows || e->dismissed)
        return;
    trp_slurm_executor_tried(e, true);
    uv_timer_start(&e->timer, on_start_late, TRP_SLURM_TRIAL_MS, 0);
}

void trp_slurm_executor_started(struct trp_slurm_executor *e)
{
    if (!e->dismissed)
        uv_timer_stop(&e->timer);
    trp_slurm_executor_tried(e, false);
    trp_slurm_ghosts_started(e->slurm);
}

static void on_release_late(uv_timer_t *timer)
{
    trp_slurm_executor_kill(timer->data);
}

void trp_slurm_executor_release(struct trp_slurm_executor *e, bool told)
{
    e->released = true;
    if (e->state == TRP_SLURM_WAITS) {
        trp_slurm_books_leave(e->slurm->books, &e->request);
        e->state = TRP_SLURM_WITHDRAWN;
        trp_slurm_pump_soon(e->slurm);
    } else if (e->state == TRP_SLURM_RUNS && !told) {
        dismiss(e); /* its end says nothing of its node */
        trp_slurm_executor_kill(e);
    } else if (e->state == TRP_SLURM_RUNS && !e->dismissed) {
        dismiss(e);
        uv_timer_start(&e->timer, on_release_late, RELEASE_MS, 0);
    }
}
