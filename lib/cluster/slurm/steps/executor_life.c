/*
 * The life of an executor's step, as one table: what may happen to it, how far it has
 * come by then, who ends it, and what is done about it.
 *
 *     queued ─▶ starting ─▶ granted ─▶ admitted ─▶ gone
 *       ▲          │ too late, or refused for now
 *       └──────────┘
 *
 * How far it has come and who ends it are two things: what the end of its srun means
 * (step_end.c) depends on both. Who ends it is decided once, with two exceptions: what
 * is started too late may be told to go meanwhile, and a release overrides all, since
 * nobody waits for its end any more.
 *
 * What is not in the table is not done. The user is told of the first of these: it is a
 * mistake in Troupe.
 */
#include <stdio.h>
#include <strings.h>

#include "cluster/slurm/steps/executor_state.h"

enum {
    QUEUED = TRP_SLURM_EXECUTOR_QUEUED,
    WITHDRAWN = TRP_SLURM_EXECUTOR_WITHDRAWN,
    STARTING = TRP_SLURM_EXECUTOR_STARTING,
    GRANTED = TRP_SLURM_EXECUTOR_GRANTED,
    ADMITTED = TRP_SLURM_EXECUTOR_ADMITTED,
    THERE = GRANTED | ADMITTED,
    SRUN = STARTING | THERE, /* its srun lives, or has just ended */

    NOBODY = TRP_SLURM_BY_NOBODY,
    LIMIT = TRP_SLURM_BY_LIMIT,
    SLURM = TRP_SLURM_BY_SLURM,
    SLURM_KILLED = TRP_SLURM_BY_SLURM_KILLED,
    LACK = TRP_SLURM_BY_LACK,
    KILL = TRP_SLURM_BY_KILL,
    RELEASE = TRP_SLURM_BY_RELEASE,
    TO_GO = TRP_SLURM_TO_GO,
    ANY = NOBODY | LIMIT | SLURM | TO_GO,
    SAME = 0,
};

/* clang-format off */
static const struct rule {
    enum trp_slurm_event event;
    uint8_t states, enders;
    uint8_t state, ender; /* from now on */
    void (*act)(struct trp_slurm_executor *e, const struct trp_slurm_line *line);
} rules[] = {
    {TRP_SLURM_ON_DISMISS,   QUEUED,             ANY,            WITHDRAWN, SAME,         trp_slurm_executor_unqueue},
    {TRP_SLURM_ON_RELEASE,   QUEUED,             ANY,            WITHDRAWN, SAME,         trp_slurm_executor_unqueue},
    {TRP_SLURM_ON_KILL,      QUEUED,             ANY,            WITHDRAWN, SAME,         trp_slurm_executor_unqueue},
    {TRP_SLURM_ON_KILL,      WITHDRAWN,          ANY,            SAME,      SAME,         NULL},
    {TRP_SLURM_ON_ROOM,      QUEUED,             ANY,            STARTING,  SAME,         trp_slurm_executor_start},

    {TRP_SLURM_ON_DOUBT,     STARTING,           NOBODY,         SAME,      SAME,         trp_slurm_executor_try},
    {TRP_SLURM_ON_DOUBT,     STARTING,           ANY,            SAME,      SAME,         NULL},
    {TRP_SLURM_ON_START_DUE, STARTING,           NOBODY,         SAME,      LIMIT,        trp_slurm_executor_give_up},
    {TRP_SLURM_ON_STARTED,   STARTING,           NOBODY,         SAME,      SAME,         trp_slurm_executor_take_start},
    {TRP_SLURM_ON_STARTED,   STARTING,           ANY,            SAME,      SAME,         trp_slurm_executor_note_step},
    {TRP_SLURM_ON_GO,        STARTING,           NOBODY,         GRANTED,   SAME,         trp_slurm_executor_tell_granted},
    {TRP_SLURM_ON_LACK,      STARTING,           NOBODY,         SAME,      LACK,         trp_slurm_executor_begin_end},
    {TRP_SLURM_ON_FAILED,    STARTING | GRANTED, ANY,            SAME,      SAME,         trp_slurm_executor_note_refusal},
    {TRP_SLURM_ON_CAME,      GRANTED,            ANY,            ADMITTED,  SAME,         trp_slurm_executor_note_came},

    {TRP_SLURM_ON_LEAVING,   THERE,              NOBODY,         SAME,      SLURM,        trp_slurm_executor_tell_ending},
    {TRP_SLURM_ON_LEAVING,   SRUN,               ANY,            SAME,      SAME,         NULL},
    {TRP_SLURM_ON_ENDING,    THERE,              ANY,            SAME,      SAME,         trp_slurm_executor_note_ending},
    {TRP_SLURM_ON_ENDED,     THERE,              ANY,            SAME,      SAME,         trp_slurm_executor_note_ended},

    {TRP_SLURM_ON_DISMISS,   SRUN,               NOBODY | SLURM, SAME,      RELEASE,      trp_slurm_executor_await_end},
    {TRP_SLURM_ON_DISMISS,   SRUN,               ANY,            SAME,      RELEASE,      NULL},
    {TRP_SLURM_ON_RELEASE,   SRUN,               ANY,            SAME,      RELEASE,      trp_slurm_executor_begin_end},
    {TRP_SLURM_ON_KILL,      STARTING,           NOBODY | LIMIT, SAME,      KILL,         trp_slurm_executor_begin_end},
    {TRP_SLURM_ON_KILL,      THERE,              NOBODY,         SAME,      KILL,         trp_slurm_executor_doubt_and_end},
    {TRP_SLURM_ON_KILL,      THERE,              SLURM,          SAME,      SLURM_KILLED, trp_slurm_executor_doubt_and_end},
    {TRP_SLURM_ON_KILL,      SRUN,               TO_GO,          SAME,      SAME,         trp_slurm_executor_begin_end},

    {TRP_SLURM_ON_EXIT,      SRUN,               ANY,            SAME,      SAME,         trp_slurm_executor_finish_when_over},
    {TRP_SLURM_ON_JUDGED,    SRUN,               ANY,            SAME,      SAME,         trp_slurm_executor_finish},
};
/* clang-format on */

/* clang-format off */
static const char *const names[] = {
    [TRP_SLURM_ON_ROOM] = "room",         [TRP_SLURM_ON_DOUBT] = "a doubtful node",
    [TRP_SLURM_ON_START_DUE] = "a late start", [TRP_SLURM_ON_STARTED] = "a started step",
    [TRP_SLURM_ON_GO] = "a go",           [TRP_SLURM_ON_LACK] = "missing devices",
    [TRP_SLURM_ON_FAILED] = "a failed step", [TRP_SLURM_ON_CAME] = "an admission",
    [TRP_SLURM_ON_LEAVING] = "a step that is being ended",
    [TRP_SLURM_ON_ENDING] = "a step that ends", [TRP_SLURM_ON_ENDED] = "a step that has ended",
    [TRP_SLURM_ON_DISMISS] = "a dismissal", [TRP_SLURM_ON_RELEASE] = "a release",
    [TRP_SLURM_ON_KILL] = "a kill",       [TRP_SLURM_ON_EXIT] = "the end of its srun",
    [TRP_SLURM_ON_JUDGED] = "news of its job",
};
/* clang-format on */

void trp_slurm_executor_set(struct trp_slurm_executor *e,
                            enum trp_slurm_executor_state state,
                            enum trp_slurm_ender ender)
{
    struct trp_slurm *s = e->slurm;
    s->leaving -= (e->ender & TO_GO) != 0;
    s->leaving += (ender & TO_GO) != 0;
    e->state = state;
    e->ender = ender;
}

/* Told from the loop, since this may be inside a call of the driver's. */
static void note_misplaced(const struct trp_slurm_executor *e,
                           enum trp_slurm_event event)
{
    struct trp_slurm *s = e->slurm;
    if (s->misplaced++ == 0) {
        snprintf(s->misplaced_text, sizeof s->misplaced_text,
                 "a mistake in Troupe: executor %u got %s in state %d (%#x), which "
                 "changes nothing; please report it",
                 e->id, names[event], ffs((int)e->state), (unsigned)e->ender);
        trp_slurm_pump_soon(s);
    }
}

void trp_slurm_executor_happen(struct trp_slurm_executor *e, enum trp_slurm_event event,
                               const struct trp_slurm_line *line)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *r = &rules[i];
        if (r->event != event || !(r->states & e->state) || !(r->enders & e->ender))
            continue;
        trp_slurm_executor_set(e, r->state ? r->state : e->state,
                               r->ender ? r->ender : e->ender);
        if (r->act)
            r->act(e, line);
        return;
    }
    note_misplaced(e, event);
}
