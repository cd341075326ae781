/*
 * The end of an executor by force, and the limits of its start.
 *
 * It comes in blows, each when the one before has not helped: closing
 * srun's stdin (the step ends its executor and tidies up), SIGTERM to srun (Slurm kills
 * the step), asking Slurm for the same, SIGKILL to srun. A step that has started says
 * at once that it is ending; when it does not, its node is gone: srun, which would wait
 * for half a minute, gets all of them. An executor is told gone, and its room is free,
 * when its srun is gone. Its tasks need not wait for that: one that does not answer for
 * a second is told lost. A node that is only busy is not given up by then.
 *
 * Where a node does not answer, or Slurm holds its room to be taken, srun waits for
 * minutes, or for ever. So a start has a limit, after which the executor goes back into
 * the queue, unnoticed by the driver; it is short on a node that is doubtful.
 */
#include <signal.h>
#include <stdio.h>

#include "cluster/slurm/jobs/node_watch.h"
#include "cluster/slurm/steps/executor_state.h"
#include "cluster/slurm/steps/ghosts.h"

enum {
    RELEASE_MS = 2000, /* from SHUTDOWN to the kill */
    BLOW_MS = 2000,    /* from one blow to the next */
    LOST_MS = 1000,    /* without an answer of the step, the executor is lost … */
    ANSWER_MS = 3000,  /* … and by then its node: it may be busy */
    WITHDRAW_MS = 1000,
};

void trp_slurm_executor_tried(struct trp_slurm_executor *e, bool tried)
{
    if (e->tried == tried)
        return;
    e->tried = tried;
    e->request.kind->tried += tried ? 1 : UINT32_MAX;
}

void trp_slurm_step_name(const struct trp_slurm_executor *e,
                         char buf[TRP_SLURM_STEP_NAME])
{
    snprintf(buf, TRP_SLURM_STEP_NAME, "%s:%s.%u", e->slurm->command.run_name,
             e->profile, e->id);
}

/* By its name as long as its number is not known. */
static void end_step(const struct trp_slurm_executor *e)
{
    const struct trp_slurm *s = e->slurm;
    char call[512], name[TRP_SLURM_STEP_NAME];
    trp_slurm_step_name(e, name);
    int n = snprintf(call, sizeof call, "end-step job=%u ",
                     trp_slurm_part_of(s, &e->request)->job);
    if (e->heard.has_step)
        snprintf(call + n, sizeof call - (size_t)n, "step=%u", e->heard.step);
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
        trp_slurm_executor_say(e, "end\n");
        trp_slurm_executor_hang_up(e);
        break;
    case 1:
        if (!trp_slurm_executor_has_exited(e))
            uv_process_kill(&e->process, SIGTERM);
        break;
    case 2:
        end_step(e);
        break;
    default:
        if (!trp_slurm_executor_has_exited(e))
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

static void on_no_answer(uv_timer_t *timer)
{
    struct trp_slurm_executor *e = timer->data;
    while (e->blows < TRP_SLURM_BLOWS)
        trp_slurm_executor_strike(e);
}

static void on_answer_due(uv_timer_t *timer)
{
    struct trp_slurm_executor *e = timer->data;
    if (e->heard.ending || e->heard.ended)
        uv_timer_start(timer, on_blow, BLOW_MS, 0);
    else
        on_no_answer(timer);
}

static void on_no_answer_yet(uv_timer_t *timer)
{
    const struct trp_slurm_executor *e = timer->data;
    const struct trp_slurm *s = e->slurm;
    uv_timer_start(timer, on_answer_due, ANSWER_MS - LOST_MS, 0);
    if (!e->heard.ending && !e->heard.ended)
        s->handler.batch.unanswered(s->handler.context, (trp_executor_id){e->id});
}

void trp_slurm_executor_begin_end(struct trp_slurm_executor *e,
                                  const struct trp_slurm_line *line)
{
    (void)line;
    if (e->blows)
        return;
    trp_slurm_executor_strike(e);
    if (trp_slurm_executor_is_there(e))
        uv_timer_start(&e->timer, on_no_answer_yet, LOST_MS, 0);
    else
        uv_timer_start(&e->timer, on_blow, BLOW_MS, 0);
}

/* The driver has lost it before its end was told: its node may be gone. */
void trp_slurm_executor_doubt_and_end(struct trp_slurm_executor *e,
                                      const struct trp_slurm_line *line)
{
    if (!e->heard.ended)
        trp_slurm_watch_doubt(e->slurm, e->request.spots[0].node, TRP_SLURM_DOUBTFUL);
    trp_slurm_executor_begin_end(e, line);
}

static void on_end_late(uv_timer_t *timer)
{
    trp_slurm_executor_happen(timer->data, TRP_SLURM_ON_KILL, NULL);
}

void trp_slurm_executor_await_end(struct trp_slurm_executor *e,
                                  const struct trp_slurm_line *line)
{
    (void)line;
    uv_timer_start(&e->timer, on_end_late, RELEASE_MS, 0);
}

void trp_slurm_executor_silent(struct trp_slurm_executor *e, bool silent)
{
    uint32_t node;
    if (!trp_slurm_executor_is_there(e) || trp_slurm_executor_is_to_go(e))
        return;
    e->unheard = silent;
    node = e->request.spots[0].node;
    if (silent)
        trp_slurm_watch_doubt(e->slurm, node, TRP_SLURM_DOUBTFUL);
    else
        trp_slurm_watch_trust(e->slurm, node);
}

static void on_start_due(uv_timer_t *timer)
{
    trp_slurm_executor_happen(timer->data, TRP_SLURM_ON_START_DUE, NULL);
}

/* An srun that waits for room withdraws its request for a SIGTERM. */
void trp_slurm_executor_give_up(struct trp_slurm_executor *e,
                                const struct trp_slurm_line *line)
{
    (void)line;
    trp_slurm_watch_doubt(e->slurm, e->request.spots[0].node, TRP_SLURM_SILENT);
    trp_slurm_executor_strike(e);
    trp_slurm_executor_strike(e);
    uv_timer_start(&e->timer, on_no_answer, WITHDRAW_MS, 0);
}

void trp_slurm_executor_limit(struct trp_slurm_executor *e)
{
    uv_timer_start(&e->timer, on_start_due, TRP_SLURM_START_MS, 0);
}

/* From now on its start has a shorter limit. */
void trp_slurm_executor_try(struct trp_slurm_executor *e,
                            const struct trp_slurm_line *line)
{
    (void)line;
    if (e->tried)
        return;
    trp_slurm_executor_tried(e, true);
    uv_timer_start(&e->timer, on_start_due, TRP_SLURM_TRIAL_MS, 0);
}

void trp_slurm_executor_started(struct trp_slurm_executor *e)
{
    uv_timer_stop(&e->timer);
    trp_slurm_executor_tried(e, false);
    trp_slurm_ghosts_started(e->slurm);
}
