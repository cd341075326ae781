/*
 * Asking for additional jobs, by the decisions of acquire.h, and what the user is told
 * of those that he waits for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/slurm/jobs/additional_parts.h"
#include "core/base/time.h"

enum { NODES_MS = 10000 };

/* `refusal` of cluster/slurm/helper/line.h. */
enum refusal { BUSY, WAIT, NEVER, LOST };

/* ---- what is told ---- */

static void notice(struct trp_slurm *s, struct trp_slurm_kind_jobs *w, const char *text)
{
    if (strcmp(w->told, text) == 0 || !s->handler.notice)
        return;
    snprintf(w->told, sizeof w->told, "%s", text);
    s->handler.notice(s->handler.context, text);
}

static void describe_want(const struct trp_slurm *s,
                          const struct trp_slurm_kind_jobs *w, uint32_t count,
                          char *text, size_t size)
{
    char partition[TRP_SLURM_NAME] = "";
    trp_slurm_request_place(s, &w->profile, w->ranks, partition, NULL);
    if (w->ranks)
        snprintf(text, size, "%u ranks of profile %s%s%s", w->ranks, w->profile.name,
                 *partition ? ", partition " : "", partition);
    else
        snprintf(text, size, "%u executor%s of profile %s%s%s", count,
                 count == 1 ? "" : "s", w->profile.name,
                 *partition ? ", partition " : "", partition);
}

void trp_additional_tell_refusal(struct trp_slurm *s, struct trp_slurm_kind_jobs *w,
                                 uint32_t count, const char *refusal)
{
    char what[300], rule[300], text[TRP_SLURM_TOLD];
    describe_want(s, w, count, what, sizeof what);
    trp_slurm_request_rule(s, &w->profile, w->ranks, rule, sizeof rule);
    snprintf(text, sizeof text, "Slurm: %.300s (an additional job was asked for: %s%s)",
             refusal, what, rule);
    notice(s, w, text);
}

/* Of several that a kind has in the queue the first is told. */
void trp_additional_tell_pending(struct trp_slurm *s, const struct trp_slurm_job *j)
{
    const struct trp_slurm_job *first = s->additional.jobs;
    while (first != j &&
           (first->want != j->want || first->state != TRP_SLURM_JOB_PENDING))
        first = first->next;
    if (first != j)
        return;
    char what[300], text[TRP_SLURM_TOLD];
    describe_want(s, j->want, j->units, what, sizeof what);
    snprintf(text, sizeof text, "Slurm job %u is pending: %s (for %s)", j->job,
             j->reason, what);
    notice(s, j->want, text);
}

void trp_slurm_additional_tell_trial(struct trp_slurm *s,
                                     const struct trp_slurm_request_kind *kind,
                                     uint32_t node)
{
    struct trp_slurm_kind_jobs *w = kind->context;
    char text[TRP_SLURM_TOLD];
    snprintf(text, sizeof text,
             "%s does not answer; there is no other room for executors of profile %s, "
             "so it is tried from time to time",
             s->inventory.nodes[node].name, w->profile.name);
    if (strcmp(w->trial, text) == 0 || !s->handler.notice)
        return;
    snprintf(w->trial, sizeof w->trial, "%s", text);
    s->handler.notice(s->handler.context, text);
}

void trp_slurm_additional_why(const struct trp_slurm *s,
                              const struct trp_resource_profile *p, char *text,
                              size_t size)
{
    char when[32] = "";
    *text = '\0';
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->state != TRP_SLURM_JOB_PENDING ||
            strcmp(j->want->profile.name, p->name) != 0)
            continue;
        time_t start = (time_t)j->start;
        struct tm t;
        if (start > time(NULL) && localtime_r(&start, &t))
            strftime(when, sizeof when, ", expected at %H:%M", &t);
        snprintf(text, size, "Slurm job %u is pending: %s%s", j->job,
                 *j->reason ? j->reason : "queued", when);
        return;
    }
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        const struct trp_slurm_kind_jobs *w =
            trp_slurm_ledger_kind(s->ledger, i)->context;
        if (w && strcmp(w->profile.name, p->name) == 0 &&
            (*w->refused || *w->told || *w->trial))
            snprintf(text, size, "%s",
                     *w->refused ? w->refused
                     : *w->told  ? w->told
                                 : w->trial);
    }
}

/* ---- asking ---- */

/* The next look refuses them. */
static void on_never(struct trp_slurm *s, struct trp_slurm_kind_jobs *w, uint32_t count,
                     const char *refusal)
{
    trp_additional_tell_refusal(s, w, count, refusal);
    snprintf(w->never, sizeof w->never, "%s", w->told);
    w->never_until = 0;
    trp_slurm_pump_soon(s);
}

/* True: no job is to be asked for; *ret_due: when that is looked at again. */
static bool is_never(struct trp_slurm *s, struct trp_slurm_kind_jobs *w,
                     int64_t *ret_due)
{
    *ret_due = INT64_MAX;
    if (w->never_until && trp_additional_now() >= w->never_until) {
        w->never_until = 0;
        *w->never = '\0';
    }
    if (!*w->never)
        return false;
    notice(s, w, w->never);
    if (!w->local)
        s->users->never(s, w);
    if (w->never_until)
        *ret_due = w->never_until;
    return true;
}

static bool runs(const struct trp_slurm *s, const struct trp_slurm_kind_jobs *w)
{
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->want == w && j->state == TRP_SLURM_JOB_RUNS)
            return true;
    }
    return false;
}

void trp_additional_refuse_hopeless(struct trp_slurm *s)
{
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        const struct trp_slurm_request_kind *kind = trp_slurm_ledger_kind(s->ledger, i);
        struct trp_slurm_kind_jobs *w = kind->context;
        if (!w || w->local || !kind->waiting || runs(s, w))
            continue;
        snprintf(w->never, sizeof w->never,
                 "no additional Slurm job can be taken for profile %s: troupe-slurm is "
                 "gone; see the log of the run",
                 w->profile.name);
        notice(s, w, w->never);
        s->users->never(s, w);
    }
}

static void on_refused(struct trp_slurm_job *j, const struct trp_slurm_end *end)
{
    struct trp_slurm *s = j->slurm;
    struct trp_slurm_kind_jobs *w = j->want;
    enum refusal r = (enum refusal)end->refusal;
    uint32_t units = j->units;
    bool queued = j->queued, spares = j->spares;
    trp_additional_forget(j);
    w->acquire.asking = false;
    s->additional.unsure = r == LOST;
    if (r == BUSY && queued && units > 1) {
        trp_acquire_too_large(&w->acquire, units);
        return;
    }
    /* Slurm queues whatever can be had at any time. */
    if (!spares && (r == NEVER || (r == BUSY && queued))) {
        on_never(s, w, units, end->text);
        return;
    }
    if (!queued && r == BUSY && w->ranks && trp_slurm_request_spread(s, w))
        return;
    if (!queued && (r == BUSY || r == WAIT)) {
        trp_acquire_busy(&w->acquire, r == WAIT ? 1 : units);
        return;
    }
    trp_additional_tell_refusal(s, w, units, end->text);
    trp_acquire_refused(&w->acquire, trp_additional_now());
}

static int on_queued(void *context, const struct trp_slurm_line *line, trp_error *err)
{
    struct trp_slurm_job *j = context;
    (void)err;
    j->job = (uint32_t)trp_slurm_line_number(line, "job");
    return 0;
}

static void on_asked(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm_job *j = context;
    struct trp_slurm *s = j->slurm;
    if (end->failed) {
        on_refused(j, end);
    } else {
        s->additional.unsure = false;
        j->want->most = 0;
        trp_acquire_had(&j->want->acquire);
        j->state = TRP_SLURM_JOB_PENDING;
        if (j->queued) {
            trp_additional_tell_news(j, TRP_JOB_QUEUED, 0);
            s->additional.poll_at = trp_additional_now() + TRP_ADDITIONAL_FIRST_POLL_NS;
            s->additional.poll_step = s->additional.poll_ns;
        } else {
            trp_additional_take_in(j);
        }
    }
    trp_slurm_pump_soon(s);
}

static bool ask_job(struct trp_slurm *s, struct trp_slurm_kind_jobs *w, uint32_t count,
                    bool queued)
{
    trp_error err;
    struct trp_slurm_job *j = trp_additional_add(s, w, count, queued);
    if (!j)
        return false;
    char *call = trp_slurm_request_call(s, queued ? "queue" : "allocate", w, count,
                                        queued ? j : NULL, &j->spares, &err);
    int code = call ? trp_slurm_helper_call(
                          s->helper, call,
                          queued ? on_queued : trp_additional_on_granted, on_asked, j)
                    : TRP_ENEVER;
    free(call);
    if (code < 0) {
        trp_additional_forget(j);
        if (code == TRP_ENEVER)
            on_never(s, w, count, err.text);
        return false;
    }
    trp_acquire_asked(&w->acquire);
    w->job_tried = true;
    return true;
}

static bool is_coming(const struct trp_slurm_job *j)
{
    return j->queued &&
           (j->state == TRP_SLURM_JOB_PENDING || j->state == TRP_SLURM_JOB_FOUND);
}

/* Queued jobs of `most` executors together are not wanted any more: the last first. */
static bool cancel(struct trp_slurm *s, const struct trp_slurm_kind_jobs *w,
                   uint32_t most)
{
    struct trp_slurm_job *last = NULL;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->want == w && j->state == TRP_SLURM_JOB_PENDING && j->units <= most)
            last = j;
    }
    if (!last)
        return false;
    trp_additional_give_back(last, "cancel");
    trp_additional_forget(last);
    return true;
}

/* Jobs that were asked for ahead and are more than what still is ahead go to the kind
 * that needs them. */
static void hand_over(struct trp_slurm *s, const struct trp_slurm_request_kind *kind)
{
    const struct trp_slurm_kind_jobs *w = kind->context;
    uint32_t coming = 0;
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next)
        coming += j->want == w && is_coming(j) ? j->units : 0;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->want != w || !is_coming(j) ||
            (kind->waiting && coming < kind->waiting + j->units))
            continue;
        coming -= j->units;
        j->want = w->needed;
    }
}

/* Of a profile's place: how many executors, or ranks, a node holds. */
static uint32_t on_node(const struct trp_slurm *s, const struct trp_slurm_kind_jobs *w,
                        const struct trp_slurm_footprint *footprint)
{
    char partition[TRP_SLURM_NAME] = "";
    trp_slurm_request_place(s, &w->profile, w->ranks, partition, NULL);
    return trp_slurm_offers_on_node(&s->additional.offers, partition, footprint);
}

static struct trp_acquire_need need_of(const struct trp_slurm *s,
                                       const struct trp_slurm_request_kind *kind)
{
    struct trp_acquire_need need = {
        .waiting = kind->may_add,
        .leaving = kind->may_add && !kind->ahead &&
                   (s->leaving > 0 || trp_slurm_shrink_settling(s))};
    need.freeing = need.leaving &&
                   trp_slurm_ledger_held(s->ledger, &kind->footprint, kind->units) > 0;
    uint32_t jobs = 0, held = 0; /* for those that are tried on doubtful nodes */
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        need.coming += j->want == kind->context && is_coming(j) ? j->units : 0;
        /* A job that was asked for ahead may be given to this kind when it is needed. */
        need.freeing |=
            j->state == TRP_SLURM_JOB_ASKED && j->want->needed == kind->context;
        held +=
            j->want == kind->context && j->state == TRP_SLURM_JOB_RUNS && !j->was_used
                ? j->units
                : 0;
        jobs++;
    }
    need.waiting += kind->tried > held ? kind->tried - held : 0;
    if (s->shrink.denied)
        need.node = on_node(s, kind->context, &kind->footprint);
    need.jobs_left = jobs < s->additional.most ? s->additional.most - jobs : 0;
    return need;
}

void trp_additional_make_do(struct trp_slurm *s, struct trp_slurm_request_kind *kind,
                            bool they)
{
    if (they && !kind->last_resort && kind->waiting && trp_slurm_watch_has_doubts(s))
        trp_slurm_pump_soon(s);
    kind->last_resort = they;
}

void trp_slurm_additional_again(struct trp_slurm *s,
                                struct trp_slurm_request_kind *kind)
{
    kind->last_resort = !s->additional.allowed;
}

/* The engine does not decide for gangs whether an additional job may be asked for. It may
 * at once if the driver's own job never has room for the gang, else after a wait. Returns
 * when that wait is over; INT64_MAX: there is none. */
static int64_t look_at_gangs(const struct trp_slurm *s,
                             const struct trp_slurm_request_kind *kind)
{
    struct trp_slurm_kind_jobs *w = kind->context;
    int64_t now = trp_additional_now();
    if (!w->ranks || kind->waiting == kind->may_add) {
        w->waits_since = 0;
        return INT64_MAX;
    }
    if (!w->waits_since)
        w->waits_since = now;
    if (w->local && now < w->waits_since + s->additional.patience_ns)
        return w->waits_since + s->additional.patience_ns;
    for (struct trp_slurm_request *r = kind->first; r; r = r->behind)
        trp_slurm_ledger_may_add(r);
    return INT64_MAX;
}

int64_t trp_additional_ask(struct trp_slurm *s, struct trp_slurm_request_kind *kind)
{
    struct trp_slurm_kind_jobs *w = kind->context;
    int64_t due = INT64_MAX, gangs;
    if (!w)
        return due;
    if (is_never(s, w, &due)) {
        trp_additional_make_do(s, kind, true);
        return due;
    }
    gangs = look_at_gangs(s, kind);
    if (kind->may_add && !trp_slurm_ledger_srun_room(s->ledger))
        return INT64_MAX;
    if (w->needed)
        hand_over(s, kind);
    for (;;) {
        struct trp_acquire_need need = need_of(s, kind);
        struct trp_acquire_step step =
            trp_acquire_next(&w->acquire, &need, trp_additional_now());
        bool done = false;
        if (step.what == TRP_ACQUIRE_NOW || step.what == TRP_ACQUIRE_QUEUE)
            /* A gang is one request of all its ranks: one a job. */
            done = ask_job(s, w, w->ranks ? 1 : step.count,
                           step.what == TRP_ACQUIRE_QUEUE);
        else if (step.what == TRP_ACQUIRE_CANCEL)
            done = cancel(s, w, step.count);
        if (!done) {
            /* Those for whom no job may be had yet wait for good nodes. */
            trp_additional_make_do(
                s, kind,
                kind->may_add == kind->waiting &&
                    trp_acquire_exhausted(&w->acquire, trp_additional_now()));
            return step.due < gangs ? step.due : gangs;
        }
    }
}

void trp_slurm_additional_less_room(struct trp_slurm *s)
{
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        const struct trp_slurm_request_kind *kind = trp_slurm_ledger_kind(s->ledger, i);
        struct trp_slurm_kind_jobs *w = kind->context;
        if (!w || !w->local)
            continue;
        w->local =
            trp_slurm_ledger_fit(s->ledger, &kind->footprint, kind->units, NULL) > 0;
        if (!w->local && *w->never)
            s->users->never(s, w);
    }
}

/* ---- what the cluster has ---- */

static void on_nodes(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm *s = context;
    (void)end; /* without an answer Slurm's refusals say it */
    s->additional.offers.known = true;
    trp_slurm_pump_soon(s);
}

bool trp_additional_ask_offers(struct trp_slurm *s)
{
    struct trp_slurm_additional *f = &s->additional;
    if (!f->offers.known && !f->offers_asked)
        f->offers_asked = trp_slurm_helper_call(s->helper, "nodes",
                                                trp_slurm_offers_add, on_nodes, s) == 0;
    if (!f->offers.known && f->offers_asked)
        return false;
    return f->offers.known;
}

/* Where neither a route nor a job says which partition, the one where most fit counts: who
 * submits the job may name any. */
static uint32_t fit_anywhere(const struct trp_slurm_offers *o, const char *partition,
                             const struct trp_slurm_footprint *footprint,
                             uint32_t units, trp_error *err)
{
    uint32_t most = trp_slurm_offers_fit(o, partition, footprint, units, err);
    for (uint32_t i = 0; !*partition && i < o->npartitions; i++) {
        uint32_t n =
            trp_slurm_offers_fit(o, o->partitions[i].name, footprint, units, NULL);
        most = n > most ? n : most;
    }
    return most;
}

uint32_t trp_slurm_additional_fit(struct trp_slurm *s,
                                  const struct trp_resource_profile *p, uint32_t ranks,
                                  const struct trp_slurm_footprint *footprint,
                                  trp_error *err)
{
    struct trp_slurm_offers *o = &s->additional.offers;
    char partition[TRP_SLURM_NAME];
    if (!s->additional.allowed) {
        trp_error_set(err, TRP_ENEVER, "additional jobs are not taken");
        return 0;
    }
    if (trp_slurm_request_place(s, p, ranks, partition, err) < 0)
        return 0;
    if (!s->ledger)
        return fit_anywhere(o, partition, footprint, ranks ? ranks : 1, err);
    if (!s->helper &&
        trp_slurm_helper_start(s->helper_program, -1, &s->helper, err) < 0)
        return 0;
    if (!o->known && !s->additional.offers_asked) {
        trp_slurm_helper_ask(s->helper, "nodes", trp_slurm_offers_add, o, NODES_MS,
                             NULL);
        o->known = true; /* or Slurm does not answer: it is not asked again */
    }
    if (o->npartitions == 0)
        return UINT32_MAX; /* Slurm will say it */
    return trp_slurm_offers_fit(o, partition, footprint, ranks ? ranks : 1, err);
}

int trp_slurm_additional_wanted(struct trp_slurm *s, struct trp_slurm_request *r,
                                const struct trp_resource_profile *p, uint32_t ranks,
                                trp_error *err)
{
    struct trp_slurm_kind_jobs *w = r->kind->context;
    if (!w) {
        w = calloc(1, sizeof *w);
        if (!w)
            return trp_error_set(err, TRP_ENOMEM, "out of memory");
        w->acquire.poll_ns = s->additional.poll_ns;
        w->profile = *p;
        w->ranks = ranks;
        w->not_on = r->kind->not_on;
        w->local = trp_slurm_ledger_fit(s->ledger, &r->footprint, r->units, NULL) > 0;
        r->kind->context = w;
    }
    trp_slurm_additional_again(s, r->kind);
    if (*w->never && !w->local)
        return trp_error_set(err, TRP_ENEVER, "%s", w->never);
    return 0;
}

int trp_slurm_additional_needed(struct trp_slurm *s, struct trp_slurm_request *r)
{
    struct trp_slurm_kind_jobs *w = r->kind->context;
    int code = trp_slurm_ledger_need_now(s->ledger, r);
    if (code == 0)
        code = trp_slurm_additional_wanted(s, r, &w->profile, 0, NULL);
    if (code == 0)
        w->needed = r->kind->context;
    trp_slurm_pump_soon(s);
    return code;
}

/* ---- how long it would take ---- */

struct when {
    struct trp_slurm *slurm;
    trp_profile_id profile;
};

static int on_when(void *context, const struct trp_slurm_line *line, trp_error *err)
{
    const struct when *w = context;
    struct trp_slurm *s = w->slurm;
    int64_t wait = trp_slurm_line_number(line, "start") - (int64_t)time(NULL);
    (void)err;
    if (strcmp(line->word, "when") == 0 && s->handler.batch.queue_wait)
        s->handler.batch.queue_wait(
            s->handler.context, w->profile,
            wait > 0 && wait < INT64_MAX / TRP_SECOND ? wait * TRP_SECOND : 0);
    return 0;
}

static void on_when_told(void *context, const struct trp_slurm_end *end)
{
    (void)end; /* refused: nothing is known */
    free(context);
}

/* Executors that have to be waited for: not those for which nodes of additional jobs
 * have room, which are given back until then, nor more than there is room for beside
 * the driver's own job. Slurm only knows that these jobs may go on to their time limit.
 */
static uint32_t waited_for(const struct trp_slurm *s,
                           const struct trp_slurm_kind_jobs *want, uint32_t executors)
{
    struct trp_slurm_footprint footprint;
    char partition[TRP_SLURM_NAME], other[TRP_SLURM_NAME];
    uint32_t own = 0, additional = 0;
    if (trp_slurm_footprint_executor(&want->profile, s->site, &footprint, NULL) < 0 ||
        trp_slurm_request_place(s, &want->profile, 0, partition, NULL) < 0)
        return executors;
    uint32_t all =
        trp_slurm_offers_fit(&s->additional.offers, partition, &footprint, 1, NULL);
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        if (!s->inventory.nodes[i].name)
            continue;
        const struct trp_slurm_job *j =
            trp_slurm_additional_of(s, s->inventory.nodes[i].part);
        snprintf(other, sizeof other, "%s", s->inventory.place.partition);
        if (j)
            trp_slurm_request_place(s, &j->want->profile, j->want->ranks, other, NULL);
        if (strcmp(other, partition) == 0)
            *(j ? &additional : &own) += on_node(s, want, &footprint);
    }
    uint32_t most = all > own ? all - own : 0;
    executors = executors < most ? executors : most;
    return executors > additional ? executors - additional : 0;
}

void trp_slurm_additional_ask_wait(struct trp_slurm *s,
                                   const struct trp_resource_profile *p,
                                   uint32_t executors)
{
    const struct trp_slurm_kind_jobs want = {.profile = *p};
    executors = waited_for(s, &want, executors);
    struct when *w = executors ? malloc(sizeof *w) : NULL;
    char *call =
        s->additional.allowed && w
            ? trp_slurm_request_call(s, "when", &want, executors, NULL, NULL, NULL)
            : NULL;
    if (w)
        *w = (struct when){s, p->id};
    if (!call || trp_slurm_helper_call(s->helper, call, on_when, on_when_told, w) < 0)
        free(w);
    free(call);
}
