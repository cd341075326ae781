/*
 * What becomes of additional jobs: nodes and jobs that nobody needs are given back, a
 * job that seems to end is asked about, pending ones are polled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/slurm/jobs/additional_parts.h"

enum { POLLS_MOST = 6, NEW_S = 10 };
#define TOO_SHORT_NS INT64_C(60000000000)

/* ---- the end of a job ---- */

static void give_back(struct trp_slurm_job *j)
{
    struct trp_slurm *s = j->slurm;
    trp_slurm_ledger_close_part(s->ledger, j->part);
    trp_slurm_inventory_remove(&s->inventory, j->part);
    trp_additional_give_back(j, "end");
    trp_additional_forget(j);
    trp_slurm_held_changed(s);
}

/* The job has lost it. */
static bool is_gone(const struct trp_slurm *s, uint32_t node)
{
    return trp_slurm_ledger_standing(s->ledger, node) == TRP_SLURM_GONE;
}

/* Gives nodes back on which nothing runs while others of the job are busy. The queue of
 * requests was served just before, so none of those that wait fits on these nodes. The
 * batch step of a job that was queued is on its first node, which stays. */
static void shrink(struct trp_slurm_job *j)
{
    struct trp_slurm *s = j->slurm;
    bool first = j->queued;
    bool *going = calloc((size_t)s->inventory.nnodes + 1, sizeof *going);
    for (uint32_t i = 0; going && i < s->inventory.nnodes; i++) {
        const struct trp_slurm_node *n = &s->inventory.nodes[i];
        if (!n->name || n->part != j->part || is_gone(s, i))
            continue;
        going[i] = !first && trp_slurm_ledger_placed_on(s->ledger, i) == 0;
        if (going[i])
            trp_slurm_tidy_owe_files(s, i);
        going[i] = going[i] && !trp_slurm_tidy_on(s, i);
        first = false;
    }
    if (going)
        trp_slurm_shrink_job(&j->shrinking, going, true);
    free(going);
}

/* The kind of request that the job was submitted for. */
static const struct trp_slurm_request_kind *kind_of(const struct trp_slurm_job *j)
{
    const trp_slurm_ledger *b = j->slurm->ledger;
    uint32_t i = 0;
    while (trp_slurm_ledger_kind(b, i)->context != j->want)
        i++;
    return trp_slurm_ledger_kind(b, i);
}

/* True: one was given back and is no longer in the list. */
bool trp_additional_release_one(struct trp_slurm *s)
{
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->state < TRP_SLURM_JOB_RUNS || j->asking || j->shrinking.asking)
            continue;
        if (trp_slurm_ledger_placed(s->ledger, j->part) > 0) {
            if (!j->was_used)
                trp_acquire_used(&j->want->acquire);
            j->was_used = true;
            s->inventory.parts[j->part].ahead =
                false; /* what was requested ahead has come */
            if (j->state == TRP_SLURM_JOB_RUNS && s->leaving == 0)
                shrink(j);
            continue;
        }
        for (uint32_t i = 0; i < s->inventory.nnodes; i++)
            if (s->inventory.nodes[i].name && s->inventory.nodes[i].part == j->part)
                trp_slurm_tidy_owe_files(s, i);
        if (trp_slurm_tidy_in(s, j->part))
            continue;
        const struct trp_slurm_request_kind *kind = kind_of(j);
        if (!j->was_used && kind->tried > 0)
            continue; /* requests that were tried there may be queued again soon */
        if (!j->was_used && kind->waiting > 0) {
            /* Slurm granted nodes that cannot hold it: wait before asking again. */
            trp_additional_tell_refusal(s, j->want, j->units,
                                        "the nodes that it granted cannot hold them");
            trp_acquire_refused(&j->want->acquire, trp_additional_now());
        }
        give_back(j);
        return true;
    }
    return false;
}

static int on_state(void *context, const struct trp_slurm_line *line, trp_error *err)
{
    struct trp_slurm_job *j = context;
    (void)err;
    if (strcmp(line->word, "allocation") == 0) {
        j->gone = !trp_slurm_line_number(line, "live");
        j->ended = j->gone ? trp_slurm_line_number(line, "ends") : 0;
        snprintf(j->end, sizeof j->end, "%s", trp_slurm_line_text(line, "state"));
    }
    return 0;
}

void trp_slurm_additional_cause(const struct trp_slurm_job *j, char *text, size_t size)
{
    static const struct {
        const char *state, *how;
    } endings[] = {
        {"TIMEOUT",   "reached its time limit"},
        {"CANCELLED", "was cancelled"         },
        {"PREEMPTED", "was preempted"         },
        {"DEADLINE",  "reached its deadline"  },
        {"NODE_FAIL", "lost its nodes"        },
    };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (strcmp(j->end, endings[i].state) == 0) {
            snprintf(text, size, "its Slurm job %u %s", j->job, endings[i].how);
            return;
        }
    }
    snprintf(text, size, "its Slurm job %u was ended (%s)", j->job, j->end);
}

int trp_slurm_additional_status(const struct trp_slurm_job *j)
{
    if (strcmp(j->end, "TIMEOUT") == 0)
        return TRP_ETIME;
    return strcmp(j->end, "NODE_FAIL") == 0 ? TRP_ENOENT : TRP_ECANCELLED;
}

/* Nothing new starts there; the job is given back when its last step has ended. */
static void close_job(struct trp_slurm *s, struct trp_slurm_job *j)
{
    if (j->state != TRP_SLURM_JOB_RUNS)
        return;
    j->state = TRP_SLURM_JOB_OVER;
    trp_slurm_ledger_close_part(s->ledger, j->part);
    trp_slurm_held_changed(s);
}

/* It is over: Slurm says so. */
static void end_job(struct trp_slurm *s, struct trp_slurm_job *j)
{
    if (!j->end_told)
        trp_additional_tell_news(j, TRP_JOB_ENDED, j->ended);
    j->end_told = true;
    close_job(s, j);
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        if (s->inventory.nodes[i].name && s->inventory.nodes[i].part == j->part)
            s->users->lost(s, i);
    }
}

void trp_slurm_additional_over(struct trp_slurm *s, struct trp_slurm_job *j,
                               const char *state, int64_t ended)
{
    j->gone = true;
    j->ended = ended;
    snprintf(j->end, sizeof j->end, "%s", state);
    end_job(s, j);
}

/* If tasks do not fit into the time of a job that has just begun, another such job does
 * not help: none is submitted for them for TOO_SHORT_NS. */
void trp_slurm_additional_outlived(struct trp_slurm *s, struct trp_slurm_job *j,
                                   struct trp_slurm_kind_jobs *w, int64_t takes_ns)
{
    int64_t whole = j->ends - j->began, used = (int64_t)time(NULL) - j->first;
    int64_t takes = (takes_ns - 1) / 1000000000 + 1;
    bool is_new = used < NEW_S && used < whole / 10;
    close_job(s, j);
    trp_slurm_pump_soon(s);
    if ((takes <= whole && !is_new) || j->want != w || *w->never)
        return;
    snprintf(
        w->never, sizeof w->never,
        "tasks of profile %s take %lld s (median), and an additional Slurm job ends "
        "after %lld s (the shortest of: the site file's time, the partition's limit, "
        "and "
        "what was left of the driver's job)",
        w->profile.name, (long long)takes, (long long)whole);
    w->never_until = trp_additional_now() + TOO_SHORT_NS;
}

static void on_doubt(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm_job *j = context;
    struct trp_slurm *s = j->slurm;
    uint32_t part = j->part;
    (void)end; /* a query that failed tells nothing: the job may live */
    j->asking = false;
    if (j->gone)
        end_job(s, j);
    s->users->judged(s, part);
    trp_slurm_pump_soon(s);
}

void trp_slurm_additional_doubt(struct trp_slurm *s, struct trp_slurm_job *j)
{
    char call[64];
    if (j->asking || j->gone)
        return;
    snprintf(call, sizeof call, "job job=%u", j->job);
    j->asking = trp_slurm_helper_call(s->helper, call, on_state, on_doubt, j) == 0;
}

void trp_slurm_additional_lost(struct trp_slurm *s)
{
    s->additional.allowed = false;
    s->additional.helper_gone = true;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->asking)
            on_doubt(j, NULL);
    }
    trp_slurm_pump_soon(s);
}

/* ---- polling ---- */

static int on_polled_one(void *context, const struct trp_slurm_line *line,
                         trp_error *err)
{
    struct trp_slurm *s = context;
    uint32_t number = (uint32_t)trp_slurm_line_number(line, "job");
    const char *state = trp_slurm_line_text(line, "state");
    const char *why = trp_slurm_line_text(line, "why");
    (void)err;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->job != number || j->state != TRP_SLURM_JOB_PENDING)
            continue;
        j->polled = false;
        snprintf(j->reason, sizeof j->reason, "%s",
                 *why ? why : trp_slurm_line_text(line, "reason"));
        j->start = trp_slurm_line_number(line, "start");
        if (strcmp(state, "PENDING") == 0)
            trp_additional_tell_pending(s, j);
        else if (strcmp(state, "RUNNING") == 0)
            trp_additional_find_out(j);
        else
            j->gone = true;
        return 0;
    }
    return 0;
}

static void on_polled(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm *s = context;
    struct trp_slurm_job *next;
    s->additional.polling = false;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = next) {
        next = j->next;
        bool forgotten = j->polled && !end->failed;
        if (j->state != TRP_SLURM_JOB_PENDING || (!j->gone && !forgotten))
            continue;
        char text[128];
        snprintf(text, sizeof text, "job %u ended before it had started", j->job);
        trp_additional_tell_refusal(s, j->want, j->units, text);
        trp_acquire_refused(&j->want->acquire, trp_additional_now());
        trp_additional_give_back(j, "cancel");
        trp_additional_forget(j);
    }
    trp_slurm_pump_soon(s);
}

/* When the next poll is due; INT64_MAX: none. */
int64_t trp_additional_poll(struct trp_slurm *s)
{
    struct trp_slurm_additional *f = &s->additional;
    bool pending = false;
    for (const struct trp_slurm_job *j = f->jobs; j; j = j->next)
        pending |= j->state == TRP_SLURM_JOB_PENDING;
    if (!pending || f->polling)
        return INT64_MAX;
    if (trp_additional_now() < f->poll_at)
        return f->poll_at;
    for (struct trp_slurm_job *j = f->jobs; j; j = j->next)
        j->polled = j->state == TRP_SLURM_JOB_PENDING;
    f->polling =
        trp_slurm_helper_call(s->helper, "jobs", on_polled_one, on_polled, s) == 0;
    f->poll_at = trp_additional_now() + f->poll_step;
    if (f->poll_step < POLLS_MOST * f->poll_ns)
        f->poll_step *= 2;
    return INT64_MAX;
}
