/*
 * One list of jobs, each with a state; one `struct trp_slurm_kind_jobs` a kind. A
 * look goes over all jobs (give back) and all kinds (ask, cancel); both are few. Calls
 * to troupe-slurm are answered later, from the loop, and end in another look.
 *
 * Rejected: keeping an empty job for a while, for the next stage: requests of the next
 * stage stand in the queue before the executors of the one before are gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "cluster/slurm/helper/inventory_lines.h"
#include "cluster/slurm/jobs/additional_parts.h"
#include "core/base/time.h"

enum { OWED = 256 };

/* ---- the list ---- */

struct trp_slurm_job *trp_additional_add(struct trp_slurm *s,
                                         struct trp_slurm_kind_jobs *w, uint32_t units,
                                         bool queued)
{
    struct trp_slurm_job *j = calloc(1, sizeof *j);
    if (!j)
        return NULL;
    LL_APPEND(s->additional.jobs, j);
    j->slurm = s;
    j->want = w;
    j->units = units;
    j->queued = queued;
    j->asked_ns = trp_additional_now();
    if (queued)
        j->guard = trp_additional_guard_id(s);
    return j;
}

uint32_t trp_additional_guard_id(struct trp_slurm *s)
{
    return TRP_CLUSTER_GUARDS + s->additional.guard_ids++ % TRP_CLUSTER_GUARD_IDS;
}

void trp_additional_forget(struct trp_slurm_job *j)
{
    LL_DELETE(j->slurm->additional.jobs, j);
    trp_additional_guard_leave(j);
    trp_slurm_inventory_free(&j->granted);
    free(j->shrinking.nodes);
    free(j);
}

void trp_additional_tell_news(const struct trp_slurm_job *j, int what, int64_t at)
{
    const struct trp_slurm *s = j->slurm;
    const struct trp_cluster_job_news news = {.job = j->job,
                                              .additional = true,
                                              .what = what,
                                              .profile = j->want->profile.id,
                                              .asked_ns = j->asked_ns,
                                              .at = at};
    if (s->handler.batch.job && j->job)
        s->handler.batch.job(s->handler.context, &news);
}

/* ---- a job begins ---- */

static bool is_ahead(const struct trp_slurm *s, const struct trp_slurm_kind_jobs *w)
{
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        const struct trp_slurm_request_kind *kind = trp_slurm_ledger_kind(s->ledger, i);
        if (kind->context == w)
            return kind->ahead;
    }
    return false;
}

/* What it has is in j->granted. */
void trp_additional_take_in(struct trp_slurm_job *j)
{
    struct trp_slurm *s = j->slurm;
    int64_t started = j->granted.started;
    trp_slurm_set_racks(s, &j->granted, NULL); /* else there is none */
    j->ends = j->granted.ends;
    int code = trp_slurm_inventory_merge(&s->inventory, &j->granted, &j->part);
    trp_slurm_inventory_free(&j->granted);
    if (code == 0) {
        code = trp_slurm_ledger_add_part(s->ledger, j->part);
        if (code < 0)
            trp_slurm_inventory_remove(&s->inventory, j->part);
    }
    if (code < 0) {
        trp_additional_give_back(j, "end");
        trp_additional_forget(j);
        return;
    }
    trp_slurm_watch_part(s, j->part);
    j->job = s->inventory.parts[j->part].job;
    j->began = (int64_t)time(NULL);
    j->shrinking = (struct trp_slurm_shrinking){.slurm = s, .part = j->part};
    j->state = TRP_SLURM_JOB_RUNS;
    s->inventory.parts[j->part].ahead = is_ahead(s, j->want);
    s->additional.had++;
    trp_additional_tell_news(j, TRP_JOB_BEGAN, started);
    if (s->handler.batch.queue_wait && !j->want->ranks)
        s->handler.batch.queue_wait(s->handler.context, j->want->profile.id,
                                    trp_additional_now() - j->asked_ns);
    trp_slurm_held_changed(s);
}

int trp_additional_on_granted(void *context, const struct trp_slurm_line *line,
                              trp_error *err)
{
    struct trp_slurm_job *j = context;
    return trp_slurm_inventory_add(&j->granted, line, err);
}

static void on_found(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm_job *j = context;
    struct trp_slurm *s = j->slurm;
    if (end->failed || !j->granted.live) {
        trp_slurm_inventory_free(&j->granted);
        j->state = TRP_SLURM_JOB_PENDING; /* the next poll sees what it is */
        s->additional.poll_at = trp_additional_now() + TRP_ADDITIONAL_FIRST_POLL_NS;
    } else {
        trp_acquire_had(&j->want->acquire);
        trp_additional_take_in(j);
    }
    trp_slurm_pump_soon(s);
}

/* A queued job runs: what has it got? */
void trp_additional_find_out(struct trp_slurm_job *j)
{
    char call[64];
    snprintf(call, sizeof call, "job job=%u", j->job);
    trp_slurm_inventory_free(&j->granted);
    if (trp_slurm_helper_call(j->slurm->helper, call, trp_additional_on_granted,
                              on_found, j) == 0)
        j->state = TRP_SLURM_JOB_FOUND;
}

bool trp_slurm_additional_guard(struct trp_slurm *s, uint32_t id)
{
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->guard != id || j->unwanted)
            continue;
        trp_additional_guard_called(j);
        if (!j->queued)
            return true;
        if (j->state == TRP_SLURM_JOB_PENDING)
            trp_additional_find_out(j);
        s->additional.poll_at = trp_additional_now() + TRP_ADDITIONAL_FIRST_POLL_NS;
        trp_slurm_pump_soon(s);
        return true;
    }
    return false;
}

/* ---- the whole ---- */

static bool somebody_waits(const struct trp_slurm *s)
{
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        if (trp_slurm_ledger_kind(s->ledger, i)->waiting)
            return true;
    }
    return s->additional.jobs != NULL;
}

/* When to look again. */
static int64_t look_after_kinds(struct trp_slurm *s)
{
    int64_t due = INT64_MAX, one;
    while (trp_additional_release_one(s))
        ;
    if (!trp_additional_ask_offers(s))
        return due;
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        one = trp_additional_ask(s, trp_slurm_ledger_kind(s->ledger, i));
        due = trp_earlier(due, one);
    }
    one = trp_additional_poll(s);
    return one < due ? one : due;
}

int64_t trp_slurm_additional_look(struct trp_slurm *s)
{
    int64_t due = trp_additional_tell_again(s), one;
    if (s->additional.helper_gone && !s->closed)
        trp_additional_refuse_hopeless(s);
    if (s->closed || !s->driver_address || !somebody_waits(s))
        return due;
    for (uint32_t i = 0;
         !s->additional.allowed && i < trp_slurm_ledger_kinds(s->ledger); i++)
        trp_additional_make_do(s, trp_slurm_ledger_kind(s->ledger, i), true);
    one = s->additional.allowed ? look_after_kinds(s) : INT64_MAX;
    due = trp_earlier(due, one);
    one = trp_additional_guard(s);
    return one < due ? one : due;
}

/* troupe-slurm was killed, and what it knew is lost: another one is told. */
static void start_another(struct trp_slurm *s)
{
    uint32_t owed[OWED], n = trp_additional_owed(s, owed, OWED);
    trp_error err;
    char call[64];
    s->answer_rpcs += trp_slurm_helper_stop(s->helper, false);
    s->helper = NULL;
    if (trp_slurm_helper_start(s->helper_program, -1, &s->helper, &err) < 0) {
        fprintf(stderr, "troupe: %s; additional jobs are ended by what runs there\n",
                err.text);
        return;
    }
    trp_slurm_sweep(s);
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->job && n < OWED)
            owed[n++] = j->job;
    }
    for (uint32_t i = 0; i < n; i++) {
        snprintf(call, sizeof call, "take job=%u guarded=%d", owed[i],
                 trp_additional_has_guard(s, owed[i]));
        trp_slurm_helper_tell(s->helper, call);
    }
}

void trp_slurm_additional_close(struct trp_slurm *s)
{
    uint32_t owed[OWED];
    if (s->additional.helper_gone)
        start_another(s);
    if (!s->helper)
        return;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->job)
            trp_additional_give_back(j, j->state == TRP_SLURM_JOB_PENDING ? "cancel"
                                                                          : "end");
        bool guarded = j->job && (j->queued || trp_additional_has_guard(s, j->job));
        trp_slurm_helper_expect(s->helper, j->job, !guarded);
    }
    for (uint32_t i = trp_additional_owed(s, owed, OWED); i-- > 0;)
        trp_slurm_helper_expect(s->helper, owed[i],
                                !trp_additional_has_guard(s, owed[i]));
    if (s->additional.unsure)
        trp_slurm_helper_expect(s->helper, 0, true);
}

void trp_slurm_additional_tell_ends(struct trp_slurm *s)
{
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (!j->end_told)
            trp_additional_tell_news(j, TRP_JOB_ENDED, 0);
    }
    trp_additional_tell_debts(s);
}

void trp_slurm_additional_free(struct trp_slurm *s)
{
    while (s->additional.jobs)
        trp_additional_forget(s->additional.jobs);
    for (uint32_t i = 0; s->ledger && i < trp_slurm_ledger_kinds(s->ledger); i++)
        free(trp_slurm_ledger_kind(s->ledger, i)->context);
    trp_slurm_offers_free(&s->additional.offers);
    trp_additional_forget_debts(s);
}
