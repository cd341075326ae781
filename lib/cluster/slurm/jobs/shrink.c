/*
 * The driver's own job is shrunk only where additional jobs may be had: what is given
 * back could not be had again, and a node that fails, or a task that needs a larger
 * executor after all, would find nothing. Components of a heterogeneous job cannot
 * shrink.
 *
 * Rejected: leaving the nodes to the next stage's placement and giving back what
 * happens to be idle. Its executors come before those of the last stage are gone, to
 * whatever node is free first.
 */
#include "cluster/slurm/jobs/shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/jobs/additional_parts.h"
#include "core/alloc/outlook.h"
#include "core/base/time.h"

#define SETTLE_NS (3 * TRP_SECOND)
#define FIRST_PAUSE_NS (TRP_SECOND / 8)
#define IMPATIENT_NS (2 * TRP_SECOND) /* after such a pause stages are not held back */
#define PAUSE_MAX_NS (60 * TRP_SECOND)

enum { OWN = 0 }; /* the part */

/* `refusal` of cluster/slurm/helper/line.h. */
enum refusal { BUSY, WAIT, NEVER, LOST };

int trp_slurm_shrink_open(struct trp_slurm *s, const struct trp_slurm_config *config)
{
    struct trp_slurm_shrink *k = &s->shrink;
    k->own = (struct trp_slurm_shrinking){.slurm = s, .part = OWN};
    k->needed = calloc((size_t)s->inventory.nnodes + 1, sizeof *k->needed);
    k->allowed = config->shrink && s->additional.allowed && s->inventory.nparts == 1 &&
                 s->inventory.parts[OWN].component < 0;
    k->news = true;
    k->used = calloc((size_t)s->inventory.nnodes + 1, sizeof *k->used);
    k->outlook = calloc(1, sizeof *k->outlook);
    return k->needed && k->used && k->outlook ? 0 : TRP_ENOMEM;
}

void trp_slurm_shrink_free(struct trp_slurm *s)
{
    free(s->shrink.needed);
    free(s->shrink.used);
    if (s->shrink.outlook)
        trp_outlook_free(s->shrink.outlook);
    free(s->shrink.outlook);
    free(s->shrink.own.nodes);
}

/* ---- giving nodes back ---- */

static bool is_of(const struct trp_slurm *s, uint32_t node, uint32_t part)
{
    return s->inventory.nodes[node].name && s->inventory.nodes[node].part == part;
}

/* Names of the nodes of a part that go, or of those that stay; malloc'ed. */
static char *names_of(const struct trp_slurm *s, uint32_t part, const bool *going,
                      bool want)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    const char *comma = "";
    for (uint32_t i = 0; f && i < s->inventory.nnodes; i++) {
        if (!is_of(s, i, part) || going[i] != want ||
            trp_slurm_ledger_standing(s->ledger, i) == TRP_SLURM_GONE)
            continue;
        fprintf(f, "%s%s", comma, s->inventory.nodes[i].name);
        comma = ",";
    }
    if (!f || fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char *names_of_asked(const struct trp_slurm_shrinking *x)
{
    struct trp_slurm *s = x->slurm;
    bool *going = calloc((size_t)s->inventory.nnodes + 1, sizeof *going);
    for (uint32_t i = 0; going && i < x->n; i++)
        going[x->nodes[i]] = true;
    char *names = going ? names_of(s, x->part, going, true) : NULL;
    free(going);
    return names;
}

static void on_given(struct trp_slurm_shrinking *x)
{
    struct trp_slurm *s = x->slurm;
    char text[TRP_SLURM_TOLD], *names = names_of_asked(x);
    snprintf(text, sizeof text, "nodes of Slurm job %u were given back: %s",
             s->inventory.parts[x->part].job, names ? names : "");
    free(names);
    for (uint32_t i = 0; i < x->n; i++)
        trp_slurm_inventory_remove_node(&s->inventory, x->nodes[i]);
    trp_slurm_ledger_removed(s->ledger);
    trp_slurm_held_changed(s);
    x->pause_ns = 0;
    if (x->live)
        trp_slurm_ledger_close_part(s->ledger, x->part);
    if (x->part == OWN) {
        s->shrink.allowed = !x->live;
        s->shrink.news = true;
        trp_slurm_view_free(s);
        trp_slurm_view_make(s, NULL); /* or it shows none */
        trp_slurm_additional_less_room(s);
        s->handler.batch.shrunk(s->handler.context, true, text);
    }
}

static void on_refused(struct trp_slurm_shrinking *x, const struct trp_slurm_end *end)
{
    struct trp_slurm *s = x->slurm;
    char text[TRP_SLURM_TOLD], *names = names_of_asked(x);
    if (end->refusal == BUSY || end->refusal == LOST) {
        x->pause_ns = x->pause_ns ? 2 * x->pause_ns : FIRST_PAUSE_NS;
        if (x->pause_ns > PAUSE_MAX_NS)
            x->pause_ns = PAUSE_MAX_NS;
        x->at_ns = trp_additional_now() + x->pause_ns;
    } else {
        x->refused = true;
        s->shrink.denied |= end->refusal == NEVER;
        snprintf(text, sizeof text,
                 "Slurm: %s (job %u was to give back %s, and keeps what it has)",
                 end->text, s->inventory.parts[x->part].job, names ? names : "");
        s->handler.notice(s->handler.context, text);
    }
    free(names);
    for (uint32_t i = 0; i < x->n; i++)
        trp_slurm_ledger_hold(s->ledger, x->nodes[i], false);
    s->shrink.news = true;
}

static void on_answer(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm_shrinking *x = context;
    x->asking = false;
    if (end->failed)
        on_refused(x, end);
    else
        on_given(x);
    x->n = 0;
    trp_slurm_pump_soon(x->slurm);
}

static bool may(const struct trp_slurm_shrinking *x)
{
    return !x->asking && !x->refused && !x->slurm->shrink.denied &&
           !x->slurm->additional.helper_gone && trp_additional_now() >= x->at_ns;
}

void trp_slurm_shrink_job(struct trp_slurm_shrinking *x, const bool *going, bool live)
{
    struct trp_slurm *s = x->slurm;
    char *call = NULL;
    if (!may(x))
        return;
    char *left = names_of(s, x->part, going, false);
    uint32_t *nodes =
        reallocarray(x->nodes, (size_t)s->inventory.nnodes + 1, sizeof *x->nodes);
    x->nodes = nodes ? nodes : x->nodes;
    x->live = live;
    x->n = 0;
    for (uint32_t i = 0; nodes && i < s->inventory.nnodes; i++) {
        if (is_of(s, i, x->part) && going[i] &&
            trp_slurm_ledger_standing(s->ledger, i) != TRP_SLURM_GONE)
            nodes[x->n++] = i;
    }
    if (x->n > 0 && left && *left &&
        asprintf(&call, "shrink job=%u nodes=%s live=%d",
                 s->inventory.parts[x->part].job, left, live) >= 0)
        x->asking = trp_slurm_helper_call(s->helper, call, NULL, on_answer, x) == 0;
    for (uint32_t i = 0; x->asking && i < x->n; i++)
        trp_slurm_ledger_hold(s->ledger, x->nodes[i], true);
    free(call);
    free(left);
}

/* ---- the driver's own job ---- */

static bool may_own(const struct trp_slurm *s)
{
    return s->shrink.allowed && !s->shrink.own.refused && !s->shrink.denied;
}

/* All nodes that a load of the outlook takes. */
static int keep_load(const struct trp_slurm *s, const struct trp_outlook *o,
                     uint32_t load, bool *keep)
{
    struct trp_slurm_load *v = calloc((size_t)o->nkinds + 1, sizeof *v);
    uint32_t n = 0;
    int code = v ? 0 : TRP_ENOMEM;
    for (uint32_t i = 0; i < o->nkinds && code == 0; i++) {
        const struct trp_outlook_kind *kind = &o->kinds[i];
        v[n].count = o->counts[(size_t)load * o->nkinds + i];
        v[n].units = kind->ranks ? kind->ranks : 1;
        if (!v[n].count)
            continue;
        code = kind->ranks ? trp_slurm_footprint_rank(kind->profile, s->site,
                                                      &v[n].footprint, NULL)
                           : trp_slurm_footprint_executor(kind->profile, s->site,
                                                          &v[n].footprint, NULL);
        n++;
    }
    if (code == 0)
        code = trp_slurm_ledger_keep(s->ledger, v, n, keep);
    free(v);
    return code;
}

/* False: not known, or nothing will run any more, and the job ends soon. */
static bool find_needed(struct trp_slurm *s, bool *keep)
{
    struct trp_outlook *o = s->shrink.outlook;
    trp_outlook_free(o);
    if (!s->handler.batch.outlook || !s->handler.batch.outlook(s->handler.context, o))
        return false;
    bool known = o->nloads > 0;
    for (uint32_t i = 0; i < o->nloads && known; i++)
        known = keep_load(s, o, i, keep) == 0;
    return known;
}

static void always_needed(const struct trp_slurm *s, bool *keep)
{
    uint32_t here = trp_slurm_ledger_driver(s->ledger), first = UINT32_MAX;
    for (uint32_t i = s->watch.nodes; i-- > 0;) {
        if (!is_of(s, i, OWN))
            continue;
        first = i;
        if (strcmp(s->inventory.nodes[i].name, s->inventory.batch_host) == 0)
            keep[i] = true;
    }
    if (here < s->watch.nodes)
        keep[here] = true;
    else if (first < s->watch.nodes)
        keep[first] = true;
}

static bool is_spare(const struct trp_slurm *s, uint32_t node)
{
    return is_of(s, node, OWN) && !s->shrink.needed[node] && s->shrink.used[node] &&
           trp_slurm_ledger_standing(s->ledger, node) != TRP_SLURM_GONE;
}

static bool any_spare(const struct trp_slurm *s)
{
    for (uint32_t i = 0; may_own(s) && i < s->watch.nodes; i++) {
        if (is_spare(s, i))
            return true;
    }
    return false;
}

/* Nothing runs in the driver's job but what is going. */
static bool is_quiet(const struct trp_slurm *s)
{
    return s->users->staying(s, OWN, NULL) == 0;
}

/* What runs is all that is still to come. */
static bool is_enough(const struct trp_slurm *s)
{
    const struct trp_outlook *o = s->shrink.outlook;
    for (uint32_t i = 0; i < o->nloads * o->nkinds; i++) {
        const struct trp_outlook_kind *kind = &o->kinds[i % o->nkinds];
        if (o->counts[i] &&
            (kind->ranks ||
             s->users->staying(s, OWN, kind->profile->name) < o->counts[i]))
            return false;
    }
    return o->nloads > 0;
}

bool trp_slurm_shrink_settling(const struct trp_slurm *s)
{
    return s->shrink.own.asking || trp_additional_now() < s->shrink.settled_ns;
}

static void update_settling(struct trp_slurm *s)
{
    const struct trp_slurm_shrinking *x = &s->shrink.own;
    bool hopeful = !x->refused && x->pause_ns < IMPATIENT_NS;
    if (!hopeful || !any_spare(s) || !is_quiet(s))
        s->shrink.settled_ns = 0;
    else if (!s->shrink.settled_ns)
        s->shrink.settled_ns = trp_additional_now() + SETTLE_NS;
}

void trp_slurm_shrink_hold_again(struct trp_slurm *s)
{
    bool all = trp_slurm_shrink_settling(s);
    for (uint32_t i = 0; i < s->watch.nodes; i++) {
        if (is_of(s, i, OWN))
            trp_slurm_ledger_hold(s->ledger, i, all || is_spare(s, i));
    }
}

void trp_slurm_shrink_hold(struct trp_slurm *s)
{
    struct trp_slurm_shrink *k = &s->shrink;
    if (!k->allowed)
        return;
    if (k->news && !k->own.asking) {
        k->news = false;
        memset(k->needed, 0, s->watch.nodes * sizeof *k->needed);
        if (!may_own(s) || !find_needed(s, k->needed))
            memset(k->needed, true, s->watch.nodes * sizeof *k->needed);
        always_needed(s, k->needed);
    }
    update_settling(s);
    trp_slurm_shrink_hold_again(s);
}

static bool any_held(const struct trp_slurm *s)
{
    for (uint32_t i = 0; s->shrink.allowed && i < s->watch.nodes; i++) {
        if (is_of(s, i, OWN) && trp_slurm_ledger_is_held(s->ledger, i))
            return true;
    }
    return false;
}

static bool anybody_waits(const struct trp_slurm *s)
{
    for (uint32_t i = 0; i < trp_slurm_ledger_kinds(s->ledger); i++) {
        const struct trp_slurm_request_kind *kind = trp_slurm_ledger_kind(s->ledger, i);
        if (kind->waiting && !kind->ahead)
            return true;
    }
    return false;
}

bool trp_slurm_shrink_lift(struct trp_slurm *s)
{
    if (trp_slurm_shrink_settling(s) || !anybody_waits(s) || !any_held(s))
        return false;
    for (uint32_t i = 0; i < s->watch.nodes; i++) {
        if (is_of(s, i, OWN))
            trp_slurm_ledger_hold(s->ledger, i, false);
    }
    return true;
}

/* What is placed leaves later than in the turn of the loop in which it came. */
static void note_used(struct trp_slurm *s)
{
    for (uint32_t i = 0; i < s->watch.nodes; i++) {
        if (!is_of(s, i, OWN) || s->shrink.used[i] ||
            trp_slurm_ledger_placed_on(s->ledger, i) == 0)
            continue;
        s->shrink.used[i] = true;
        s->shrink.news = true;
    }
}

void trp_slurm_shrink_own(struct trp_slurm *s)
{
    if (!s->shrink.allowed)
        return;
    note_used(s);
    bool empty = trp_slurm_ledger_placed(s->ledger, OWN) == 0;
    bool live = !empty && s->leaving == 0 && !anybody_waits(s);
    if ((!empty && !live) || !any_spare(s) || (live && !is_enough(s)))
        return;
    bool *going = calloc((size_t)s->inventory.nnodes + 1, sizeof *going);
    for (uint32_t i = 0; going && i < s->watch.nodes; i++) {
        going[i] = is_spare(s, i) && trp_slurm_ledger_placed_on(s->ledger, i) == 0;
        if (going[i])
            trp_slurm_tidy_owe_files(s, i);
        going[i] = going[i] && !trp_slurm_tidy_on(s, i);
    }
    if (going)
        trp_slurm_shrink_job(&s->shrink.own, going, live);
    free(going);
}

static int64_t due_of(const struct trp_slurm_shrinking *x, int64_t now)
{
    bool waits = !x->asking && !x->refused && x->at_ns > now;
    return waits ? x->at_ns : INT64_MAX;
}

int64_t trp_slurm_shrink_due(const struct trp_slurm *s)
{
    int64_t now = trp_additional_now(), due = due_of(&s->shrink.own, now);
    for (const struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        int64_t one = due_of(&j->shrinking, now);
        due = trp_earlier(due, one);
    }
    if (s->shrink.settled_ns > now && s->shrink.settled_ns < due)
        due = s->shrink.settled_ns;
    return due;
}
