/*
 * One call at a time (`states` of line.h, two RPCs). An answer that brings no news
 * doubles the wait, up to SLOWEST times; news and doubts bring it back. Before the end
 * of the job it is a quarter of what is left, so that a limit that is raised is
 * noticed. While an executor is not heard of it is half of `slurm.poll`.
 *
 * While slurmctld does not answer, the call stands in troupe-slurm and nothing else is
 * asked.
 */
#include "cluster/slurm/jobs/node_watch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/array.h"

#include "cluster/slurm/jobs/additional.h"

/* TRUST_S: longer than the usual SlurmdTimeout, after which Slurm has missed a node
 * that does not answer. */
enum { SLOWEST = 6, DOUBT_MS = 1000, TRUST_S = 330 };

static void on_timer(uv_timer_t *timer);

static void wait_ms(struct trp_slurm *s, uint64_t ms)
{
    uv_timer_start(&s->watch.timer, on_timer, ms, 0);
}

/* Nodes of the driver's job have the first places; where one was given back a node of
 * an additional job may stand. */
static bool is_own(const struct trp_slurm *s, uint32_t node)
{
    const struct trp_slurm_node *n = &s->inventory.nodes[node];
    return node < s->watch.nodes && n->name &&
           s->inventory.parts[n->part].leader == s->inventory.parts[0].leader;
}

/* ---- an answer ---- */

static bool is_doubted(enum trp_slurm_standing standing)
{
    return standing > TRP_SLURM_GOOD && standing <= TRP_SLURM_SILENT;
}

/* The nodes of that host. */
static void mark_host(struct trp_slurm *s, const char *name,
                      enum trp_slurm_standing standing)
{
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        const char *its = s->inventory.nodes[i].name;
        if (its && strcmp(its, name) == 0 &&
            trp_slurm_ledger_standing(s->ledger, i) <= TRP_SLURM_SILENT)
            trp_slurm_ledger_set_standing(s->ledger, i, standing);
    }
}

static void set_standing(struct trp_slurm *s, uint32_t node,
                         enum trp_slurm_standing standing)
{
    enum trp_slurm_standing before = trp_slurm_ledger_standing(s->ledger, node);
    if (before == TRP_SLURM_GONE)
        return;
    s->watch.news |= standing != before;
    s->shrink.news |= standing != before;
    trp_slurm_ledger_set_standing(s->ledger, node, standing);
    if (standing == TRP_SLURM_CLOSED)
        s->users->drained(s, node); /* also those that have come since */
}

/* That a node is up says little at first: it is until Slurm misses it. One that has
 * come back has in Slurm's records the steps that died there, and no room for others.
 */
static void set_up(struct trp_slurm *s, uint32_t node)
{
    enum trp_slurm_standing before = trp_slurm_ledger_standing(s->ledger, node);
    bool trusted = (int64_t)time(NULL) > s->watch.doubted + TRUST_S;
    if (before == TRP_SLURM_TAKEN)
        return; /* that it is up says nothing of its room */
    if (before == TRP_SLURM_SILENT && !trusted) {
        trp_slurm_ledger_set_standing(s->ledger, node, TRP_SLURM_DOUBTFUL);
        trp_slurm_pump_soon(s);
    } else if (before != TRP_SLURM_DOUBTFUL || trusted) {
        set_standing(s, node, TRP_SLURM_GOOD);
    }
}

/* It was there when Slurm was asked. */
static bool is_watched(const struct trp_slurm *s, uint32_t node)
{
    const struct trp_slurm_node *n = &s->inventory.nodes[node];
    if (is_own(s, node))
        return true;
    const struct trp_slurm_job *j = n->name && node < s->watch.capacity
                                        ? trp_slurm_additional_of(s, n->part)
                                        : NULL;
    return j && j->watched;
}

static struct trp_slurm_job *find_job(const struct trp_slurm *s, uint32_t number)
{
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next) {
        if (j->watched && j->job == number)
            return j;
    }
    return NULL;
}

static void take_state(struct trp_slurm *s, const struct trp_slurm_line *line)
{
    const char *name = trp_slurm_line_text(line, "name");
    const char *state = trp_slurm_line_text(line, "state");
    uint32_t job = (uint32_t)trp_slurm_line_number(line, "job");
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        const struct trp_slurm_node *n = &s->inventory.nodes[i];
        if (!is_watched(s, i) || strcmp(n->name, name) != 0 ||
            s->inventory.parts[n->part].job != job)
            continue;
        s->watch.seen[i] = true;
        if (strcmp(state, "up") == 0)
            set_up(s, i);
        else if (strcmp(state, "mute") != 0)
            set_standing(s, i, TRP_SLURM_CLOSED);
    }
}

/* The end of an additional job is its executors'. */
static void take_end_of(struct trp_slurm *s, struct trp_slurm_job *j, int64_t ends)
{
    if (ends == j->ends)
        return;
    j->ends = ends;
    s->users->ends(s, j->part, ends);
}

/* The end of the driver's job is that of its first component. */
static void take_end(struct trp_slurm *s, const struct trp_slurm_line *line)
{
    int64_t ends = trp_slurm_line_number(line, "ends");
    struct trp_slurm_job *j = find_job(s, (uint32_t)trp_slurm_line_number(line, "job"));
    if (j)
        take_end_of(s, j, ends);
    if ((uint32_t)trp_slurm_line_number(line, "job") != s->inventory.parts[0].job ||
        ends == s->inventory.ends)
        return;
    s->inventory.ends = ends;
    s->handler.batch.ends(s->handler.context, ends);
}

/* Its nodes are not looked for any more. */
static void take_over(struct trp_slurm *s, const struct trp_slurm_line *line)
{
    struct trp_slurm_job *j = find_job(s, (uint32_t)trp_slurm_line_number(line, "job"));
    if (!j)
        return;
    j->watched = false;
    s->watch.news = true;
    trp_slurm_additional_over(s, j, trp_slurm_line_text(line, "state"),
                              trp_slurm_line_number(line, "ended"));
}

static int take_line(void *context, const struct trp_slurm_line *line, trp_error *err)
{
    struct trp_slurm *s = context;
    (void)err;
    if (s->closed)
        return 0;
    if (strcmp(line->word, "state") == 0)
        take_state(s, line);
    else if (strcmp(line->word, "ends") == 0)
        take_end(s, line);
    else if (strcmp(line->word, "over") == 0)
        take_over(s, line);
    return 0;
}

/* The nodes that jobs have no more. True: the driver's job had some of them before. */
static bool drop_gone(struct trp_slurm *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->watch.capacity && i < s->inventory.nnodes; i++) {
        if (!is_watched(s, i) || s->watch.seen[i] ||
            trp_slurm_ledger_standing(s->ledger, i) == TRP_SLURM_GONE)
            continue;
        set_standing(s, i, TRP_SLURM_GONE);
        s->users->lost(s, i);
        trp_slurm_ledger_resized(s->ledger, s->inventory.nodes[i].part);
        any |= is_own(s, i);
    }
    return any;
}

static uint64_t next_wait(struct trp_slurm *s)
{
    struct trp_slurm_watch *w = &s->watch;
    int64_t left = s->inventory.ends - (int64_t)time(NULL);
    uint64_t quarter = left > 0 ? (uint64_t)left * 1000 / 4 : 0;
    w->wait_ms = w->news ? w->poll_ms : 2 * w->wait_ms;
    if (w->wait_ms > SLOWEST * w->poll_ms)
        w->wait_ms = SLOWEST * w->poll_ms;
    /* Its node may be gone, which only Slurm can tell before network.timeout. */
    if (s->users->any_unheard(s) && w->wait_ms > w->poll_ms / 2)
        w->wait_ms = w->poll_ms / 2;
    if (s->inventory.ends && w->wait_ms > quarter)
        w->wait_ms = quarter > w->poll_ms ? quarter : w->poll_ms;
    return w->wait_ms;
}

static void on_answer(void *context, const struct trp_slurm_end *end)
{
    struct trp_slurm *s = context;
    struct trp_slurm_watch *w = &s->watch;
    w->asked = false;
    if (s->closed)
        return;
    if (!end->failed && drop_gone(s)) {
        trp_slurm_additional_less_room(s);
        s->handler.batch.shrunk(s->handler.context, false,
                                "nodes of the Slurm job are gone");
    }
    if (w->news)
        trp_slurm_pump_soon(s);
    uint64_t ms = next_wait(s);
    wait_ms(s, w->again ? DOUBT_MS : ms);
}

/* ---- asking ---- */

/* An executor that vanished may have ended well after all. */
bool trp_slurm_watch_has_doubts(const struct trp_slurm *s)
{
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        if (s->inventory.nodes[i].name &&
            is_doubted(trp_slurm_ledger_standing(s->ledger, i)))
            return true;
    }
    return false;
}

/* What is there now is asked for: marks jobs, makes room for their nodes. */
static bool begin_answer(struct trp_slurm *s)
{
    struct trp_slurm_watch *w = &s->watch;
    uint32_t n = s->inventory.nnodes;
    if (!TRP_ARRAY_RESERVE(w->seen, w->capacity, n))
        return false;
    memset(w->seen, 0, w->capacity * sizeof *w->seen);
    w->news = false;
    for (struct trp_slurm_job *j = s->additional.jobs; j; j = j->next)
        j->watched = j->state >= TRP_SLURM_JOB_RUNS && !j->gone;
    return true;
}

static void on_timer(uv_timer_t *timer)
{
    struct trp_slurm *s = timer->data;
    struct trp_slurm_watch *w = &s->watch;
    char call[64];
    if (w->again && !trp_slurm_watch_has_doubts(s)) {
        w->again = false;
        wait_ms(s, w->wait_ms);
        return;
    }
    w->again = false;
    snprintf(call, sizeof call, "states job=%u", s->inventory.parts[0].leader);
    w->asked = begin_answer(s) &&
               trp_slurm_helper_call(s->helper, call, take_line, on_answer, s) == 0;
    if (!w->asked)
        wait_ms(s, w->wait_ms);
}

void trp_slurm_watch_doubt(struct trp_slurm *s, uint32_t node,
                           enum trp_slurm_standing how)
{
    const char *host = s->inventory.nodes[node].name;
    enum trp_slurm_standing before = trp_slurm_ledger_standing(s->ledger, node);
    if (s->closed || before >= how)
        return;
    mark_host(s, host, how);
    s->watch.doubted = (int64_t)time(NULL);
    if (is_doubted(before))
        return; /* Slurm is being asked of it, less and less often */
    s->users->doubted(s, host);
    s->shrink.news = true;
    s->watch.wait_ms = s->watch.poll_ms;
    s->watch.again = true;
    if (!s->watch.asked)
        wait_ms(s, DOUBT_MS);
}

void trp_slurm_watch_trust(struct trp_slurm *s, uint32_t node)
{
    if (!is_doubted(trp_slurm_ledger_standing(s->ledger, node)))
        return;
    mark_host(s, s->inventory.nodes[node].name, TRP_SLURM_GOOD);
    s->shrink.news = true;
    trp_slurm_pump_soon(s);
}

void trp_slurm_watch_part(struct trp_slurm *s, uint32_t part)
{
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        const struct trp_slurm_node *n = &s->inventory.nodes[i];
        if (n->name && n->part != part &&
            is_doubted(trp_slurm_ledger_standing(s->ledger, i)))
            mark_host(s, n->name, trp_slurm_ledger_standing(s->ledger, i));
    }
}

static void on_first(uv_timer_t *timer)
{
    struct trp_slurm *s = timer->data;
    wait_ms(s, s->watch.wait_ms);
    s->handler.batch.ends(s->handler.context, s->inventory.ends);
}

int trp_slurm_watch_open(struct trp_slurm *s, uint64_t poll_ms)
{
    s->watch.nodes = s->inventory.nnodes;
    s->watch.poll_ms = s->watch.wait_ms = poll_ms;
    s->watch.timer.data = s;
    uv_timer_init(s->loop, &s->watch.timer);
    s->handles++;
    uv_timer_start(&s->watch.timer, on_first, 0, 0);
    return 0;
}
