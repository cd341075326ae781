/*
 * One stage: what it waits for, its attempts, its end. dag_state.h has the states.
 *
 * What a stage waits for is looked up when it is wanted, and counted: each parent that
 * gets there takes one off. Only when an output or cached data was lost meanwhile is
 * everything looked up again (Spark does so at every parent's end). So a chain of any
 * length, and a stage of any number of parents, costs O(edges) in all.
 *
 * An attempt runs the tasks that are missing then: of a map stage those without an
 * output, of any other those that are not over.
 */
#include <assert.h>
#include <string.h>

#include "core/engine_state.h"
#include "core/scenario/dag_alone.h"

void trp_stage_to(struct trp_stage *s, enum trp_stage_state state)
{
    static const uint8_t next[] = {
        [TRP_STAGE_IDLE] = 1 << TRP_STAGE_WAITING | 1 << TRP_STAGE_ASKED |
                           1 << TRP_STAGE_RUNNING | 1 << TRP_STAGE_ENDED,
        [TRP_STAGE_WAITING] = 1 << TRP_STAGE_IDLE | 1 << TRP_STAGE_ENDED,
        [TRP_STAGE_ASKED] = 1 << TRP_STAGE_RUNNING | 1 << TRP_STAGE_ENDED,
        [TRP_STAGE_RUNNING] = 1 << TRP_STAGE_IDLE | 1 << TRP_STAGE_ENDED,
        [TRP_STAGE_ENDED] = 0,
    };
    assert(next[s->state] >> state & 1);
    if (s->state == TRP_STAGE_WAITING) {
        for (uint32_t i = 0; i < s->nparents && s->blockers; i++)
            s->parents[i].waits = false;
        s->blockers = 0;
    }
    s->state = state;
}

bool trp_stage_is_available(const struct trp_engine *e, const struct trp_stage *s)
{
    return s->is_map ? trp_map_outputs_complete(e->dag.outputs, s->shuffle)
                     : s->outcome == TRP_OUTCOME_SUCCEEDED;
}

/* Is the parent as far as the child needs? */
static bool is_open(const struct trp_engine *e, const struct trp_stage_link *l)
{
    return l->edge == TRP_EDGE_EACH ? l->parent->attempts > 0
                                    : trp_stage_is_available(e, l->parent);
}

/* ---- wanted and waiting ---- */

static void enqueue(struct trp_engine *e, struct trp_stage *s)
{
    s->queued = true;
    e->unsettled = true;
    s->ready_next = NULL;
    if (e->dag.ready_last)
        e->dag.ready_last->ready_next = s;
    else
        e->dag.ready_first = s;
    e->dag.ready_last = s;
}

void trp_stage_want(struct trp_engine *e, struct trp_stage *s)
{
    if (s->state == TRP_STAGE_IDLE && !s->failed && !s->queued)
        enqueue(e, s);
}

/* Which of its shuffles a stage reads: not those behind data that is cached. */
static bool reads(const struct trp_engine *e, const struct trp_stage_link *l)
{
    const struct trp_graph *g = &e->dag.graph;
    return !l->child->cache_in_chain || g->v[l->parent->dataset]->read == g->walk;
}

static void resolve(struct trp_engine *e, struct trp_stage *s)
{
    if (s->cache_in_chain && !trp_graph_walk(&e->dag.graph, s->dataset, true))
        e->out_of_memory = true;
    for (uint32_t i = 0; i < s->nparents; i++) {
        struct trp_stage_link *l = &s->parents[i];
        bool needed = reads(e, l), open = is_open(e, l);
        l->waits = needed && !open;
        s->blockers += l->waits;
        if (l->waits)
            trp_stage_want(e, l->parent);
        else if (needed && l->parent->is_map && !l->parent->attempts)
            l->parent->attempts = 1; /* skipped: a later run is a second attempt */
    }
    s->looked_at = e->dag.changes;
    if (s->blockers)
        trp_stage_to(s, TRP_STAGE_WAITING);
}

static void start(struct trp_engine *e, struct trp_stage *s)
{
    trp_error err;
    if (!s->tasks_known) {
        trp_stage_to(s, TRP_STAGE_ASKED);
        trp_action_add(e, TRP_ACTION_STAGE_READY)->stage = s->id;
    } else if (trp_stage_begin(e, s, s->ntasks, NULL, NULL, NULL, 0, &err) < 0) {
        trp_stage_abort(e, s, err.code, TRP_NONE, err.text);
    }
}

static void complete(struct trp_engine *e, struct trp_stage *s);

void trp_stages_run_ready(struct trp_engine *e)
{
    while (e->dag.ready_first) {
        struct trp_stage *s = e->dag.ready_first;
        e->dag.ready_first = s->ready_next;
        if (!e->dag.ready_first)
            e->dag.ready_last = NULL;
        s->queued = false;
        if (s->unjudged && s->state == TRP_STAGE_RUNNING)
            complete(e, s);
        if (s->state != TRP_STAGE_IDLE || s->failed ||
            (s->uses && trp_job_drains(s->uses->job)))
            continue;
        resolve(e, s);
        if (s->state == TRP_STAGE_IDLE)
            start(e, s);
    }
}

/* Some map stage got all its outputs, some stage got tasks: children that waited. */
static void unblock(struct trp_engine *e, struct trp_stage *s, bool each)
{
    for (struct trp_stage_link *l = s->children; l; l = l->next) {
        struct trp_stage *c = l->child;
        if (!l->waits || (l->edge == TRP_EDGE_EACH) != each)
            continue;
        l->waits = false;
        if (--c->blockers && c->looked_at == e->dag.changes)
            continue;
        trp_stage_to(c, TRP_STAGE_IDLE);
        trp_stage_want(e, c);
    }
}

/* ---- an attempt begins ---- */

static int check_each(const struct trp_stage *s, uint32_t ntasks, trp_error *err)
{
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage *p = s->parents[i].parent;
        enum trp_edge edge = s->parents[i].edge;
        if ((edge == TRP_EDGE_EACH || edge == TRP_EDGE_EACH_OF_ALL) &&
            !s->parents[i].by_value && p->ntasks != ntasks)
            return trp_error_set(err, TRP_EFAILED,
                                 "it has %u task%s, but each of stage %s has %u",
                                 ntasks, ntasks == 1 ? "" : "s", p->name, p->ntasks);
    }
    return 0;
}

/* Of each parent `by` a value, in their order. */
static int make_links(struct trp_stage *s, uint32_t ntasks, const struct trp_by *by,
                      uint32_t nby, trp_error *err)
{
    uint32_t n = 0;
    int rc = 0;
    for (uint32_t i = 0; i < s->nparents && rc == 0; i++) {
        struct trp_stage_link *l = &s->parents[i];
        n += l->by_value;
        if (l->by_value && l->edge == TRP_EDGE_EACH && n <= nby && !l->by)
            rc = trp_task_links_make(l, ntasks, &by[n - 1], err);
    }
    return rc < 0 || n == nby
               ? rc
               : trp_error_set(err, TRP_EINVAL,
                               "it is told of %u parents which of their "
                               "tasks its tasks wait for, and has %u such",
                               nby, n);
}

/* Tasks of a barrier stage run together: all are over already, or none counts as such.
 */
static bool may_skip(const struct trp_stage *s, uint32_t ntasks, const uint8_t *done)
{
    return done && !s->is_map && (!s->barrier || !memchr(done, 0, ntasks));
}

/* The stage gets its tasks, once. `done`: over already, in an earlier run. */
static int take_tasks(struct trp_engine *e, struct trp_stage *s, uint32_t ntasks,
                      const uint8_t *done, const struct trp_by *by, uint32_t nby,
                      trp_error *err)
{
    int rc = check_each(s, ntasks, err);
    if (rc == 0 && s->kind == TRP_STAGE_GANG && ntasks > 1)
        rc = trp_error_set(err, TRP_EFAILED, "a gang is one task, not %u", ntasks);
    if (rc < 0 || s->bits)
        return rc;
    rc = make_links(s, ntasks, by, nby, err);
    if (rc < 0)
        return rc;
    s->bits = calloc((size_t)ntasks / 64 + 1, sizeof(*s->bits));
    if (!s->bits)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", ntasks);
    s->ntasks = ntasks;
    s->tasks_known = true;
    if (!may_skip(s, ntasks, done))
        done = NULL;
    for (uint32_t i = 0; done && i < ntasks; i++)
        if (done[i]) {
            trp_bit_set(s->bits, i);
            s->succeeded++;
        }
    if (s->is_map && !trp_map_outputs_known(e->dag.outputs, s->shuffle))
        return trp_map_outputs_register(e->dag.outputs, s->shuffle, ntasks, 0, err);
    return 0;
}

/* Which tasks need not run, a byte each; NULL with *ret_missing == ntasks: all run. */
static uint8_t *not_missing(const struct trp_engine *e, const struct trp_stage *s,
                            uint32_t missing)
{
    if (missing == s->ntasks)
        return NULL;
    uint8_t *done = malloc(s->ntasks ? s->ntasks : 1);
    for (uint32_t i = 0; done && i < s->ntasks; i++)
        done[i] = s->is_map ? trp_map_outputs_place(e->dag.outputs, s->shuffle, i, NULL)
                            : trp_bit(s->bits, i);
    return done;
}

static void await(struct trp_stage *s, const uint8_t *done, uint32_t missing)
{
    if (!s->is_map)
        return;
    s->awaited = missing;
    for (uint32_t i = 0; i < s->ntasks; i++)
        if (!done || !done[i])
            trp_bit_set(s->bits, i);
        else
            trp_bit_clear(s->bits, i);
}

static bool note_epoch(struct trp_engine *e, struct trp_stage *s)
{
    if (!TRP_ARRAY_GROW(s->epochs, s->attempts, s->epochs_cap))
        return false;
    if (s->attempts == 1)
        s->epochs[0] = 0; /* it may have been skipped */
    s->epochs[s->attempts] = trp_map_outputs_epoch(e->dag.outputs);
    return true;
}

void trp_stage_tell_submitted(struct trp_engine *e, struct trp_stage *s)
{
    s->end_told = false;
    trp_action_add(e, TRP_ACTION_STAGE_SUBMITTED)->stage = s->id;
}

static int submit(struct trp_engine *e, struct trp_stage *s, const uint8_t *done,
                  const struct trp_preferences *prefer, trp_error *err)
{
    struct trp_preferences own;
    struct trp_set_spec spec = {
        .attempt = s->attempts - 1,
        .job = s->uses->job->id.n,
        .pool = s->pool ? s->pool : s->uses->job->pool,
        .barrier = s->barrier,
        .map = s->is_map,
        .ntasks = s->ntasks,
        .prefer = prefer ? prefer : trp_dag_prefer(e, s, done, &own),
        .done = done,
    };
    if (e->dag.alone) {
        trp_action_add(e, TRP_ACTION_STAGE_SUBMITTED)->stage = s->id;
        e->dag.alone->submit(e->dag.alone->context, s, &spec);
        return 0;
    }
    return trp_set_submit(e, s, &spec, err) ? 0 : err->code;
}

int trp_stage_begin(struct trp_engine *e, struct trp_stage *s, uint32_t ntasks,
                    const struct trp_preferences *prefer, const uint8_t *done,
                    const struct trp_by *by, uint32_t nby, trp_error *err)
{
    int rc = take_tasks(e, s, ntasks, done, by, nby, err);
    if (rc < 0)
        return rc;
    trp_stage_inherit_losses(e, s);
    /* What may come out differently, or only together, is made as a whole. */
    if (s->is_map && (s->indeterminate || s->barrier) &&
        !trp_stage_is_available(e, s)) {
        if (s->indeterminate && s->attempts)
            trp_stage_made_anew(e, s);
        if (s->state == TRP_STAGE_ENDED)
            return 0;
        trp_map_outputs_drop_all(e->dag.outputs, s->shuffle);
    }
    uint32_t missing = s->is_map ? trp_map_outputs_missing(e->dag.outputs, s->shuffle)
                                 : ntasks - s->succeeded - s->given_up - s->unasked;
    uint8_t *skip = not_missing(e, s, missing);
    if ((missing < ntasks && !skip) || !note_epoch(e, s)) {
        free(skip);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", ntasks);
    }
    await(s, skip, missing);
    trp_stage_to(s, TRP_STAGE_RUNNING);
    s->attempts++;
    if (missing)
        rc = submit(e, s, skip, prefer, err);
    else if (s->dataset == TRP_NONE)
        trp_stage_tell_submitted(e, s);
    free(skip);
    trp_ahead_begun(e, s);
    if (rc < 0 || s->state != TRP_STAGE_RUNNING)
        return rc;
    trp_gate_watch(e, s);
    unblock(e, s, true);
    trp_stage_tell_inherited(e, s);
    if (!missing && s->state == TRP_STAGE_RUNNING)
        complete(e, s);
    return 0;
}

/* ---- it is done ---- */

/* Also of earlier attempts, whose tasks nobody needs any more. */
static void kill_sets(struct trp_engine *e, struct trp_stage *s)
{
    if (s->attempts <= 1) {
        if (s->set)
            trp_set_kill(e, s->set);
        return;
    }
    for (struct trp_task_set *set = e->sets; set; set = trp_set_after(e, set))
        if (set->stage == s)
            trp_set_kill(e, set);
}

static void tell_uses(struct trp_engine *e, struct trp_stage *s)
{
    for (struct trp_use *u = s->uses, *next; u; u = next) {
        next = u->next;
        trp_job_stage_over(e, u);
    }
}

/* Once for what was submitted: a map stage that has ended may run again, and its job
 * may be over before that begins. */
static void report_end(struct trp_engine *e, struct trp_stage *s,
                       enum trp_outcome outcome, int code, uint32_t task,
                       const char *text)
{
    if (s->end_told)
        return;
    s->end_told = true;
    const char *own = *text ? trp_action_text(e, "%s", text) : "";
    struct trp_action *act = trp_action_add(e, TRP_ACTION_STAGE_ENDED);
    act->stage_ended.stage = s->id;
    act->stage_ended.outcome = outcome;
    act->stage_ended.code = code;
    act->stage_ended.task = task;
    act->stage_ended.lost = outcome == TRP_OUTCOME_FAILED && trp_stage_lost_too_many(s);
    act->stage_ended.text = own;
}

static void complete_map(struct trp_engine *e, struct trp_stage *s)
{
    trp_stage_to(s, TRP_STAGE_IDLE);
    trp_map_outputs_grow_epoch(e->dag.outputs);
    if (s->roll_back) {
        s->roll_back = false;
        trp_map_outputs_drop_all(e->dag.outputs, s->shuffle);
    }
    if (!trp_stage_is_available(e, s)) {
        const char *text = trp_action_text(e, "%s", "outputs were lost while it ran");
        struct trp_action *act = trp_action_add(e, TRP_ACTION_STAGE_RETRIED);
        act->stage_retried.stage = s->id;
        act->stage_retried.attempt = s->attempts - 1;
        act->stage_retried.text = text;
        if (s->set)
            trp_set_zombie(e, s->set);
        trp_stage_want(e, s);
        return;
    }
    kill_sets(e, s);
    s->outcome = TRP_OUTCOME_SUCCEEDED;
    report_end(e, s, TRP_OUTCOME_SUCCEEDED, 0, TRP_NONE, "");
    tell_uses(e, s);
    unblock(e, s, false);
}

/* What it lost counts by what the stages where that began have lost when they have ended,
 * which with `by` may be later than its own end. */
static bool awaits_judgement(const struct trp_stage *s)
{
    for (uint32_t i = 0; s->skipped && i < s->nparents; i++)
        if (s->parents[i].by && s->parents[i].parent &&
            s->parents[i].parent->state != TRP_STAGE_ENDED)
            return true;
    return false;
}

/* The stage has ended: children that waited for that alone. */
static void judge_children(struct trp_engine *e, struct trp_stage *s)
{
    for (struct trp_stage_link *l = s->children; l && s->each_children; l = l->next)
        if (l->child->unjudged && l->child->state == TRP_STAGE_RUNNING &&
            !l->child->queued)
            enqueue(e, l->child);
}

/* Once a stage; out of the way of what is done for every task. */
TRP_RARE static void complete(struct trp_engine *e, struct trp_stage *s)
{
    s->failed_attempts = 0;
    s->last_failed = TRP_NONE;
    if (s->is_map) {
        complete_map(e, s);
        return;
    }
    s->unjudged = awaits_judgement(s);
    if (s->unjudged)
        return;
    if (trp_stage_lost_too_many(s)) {
        trp_stage_fail_for_losses(e, s);
        return;
    }
    if (s->checked && s->ntasks) {
        if (s->asked)
            return;
        trp_action_add(e, TRP_ACTION_STAGE_CHECK)->stage = s->id;
        s->asked = true;
        s->uses->job->asked++;
        return;
    }
    trp_stage_close(e, s, TRP_OUTCOME_SUCCEEDED, 0, TRP_NONE, "");
    tell_uses(e, s);
    unblock(e, s, false);
    judge_children(e, s);
}

bool trp_stage_was_checked(struct trp_engine *e, struct trp_stage *s, const char *text)
{
    if (!s->asked || s->state == TRP_STAGE_ENDED)
        return false;
    s->checked = s->asked = false;
    s->uses->job->asked--;
    if (text)
        trp_stage_abort(e, s, TRP_EFAILED, TRP_NONE, text);
    else
        complete(e, s);
    return true;
}

/* While a task set is at it, that says so when it is through with its own work. */
void trp_stage_check_complete(struct trp_engine *e, struct trp_stage *s)
{
    bool over = s->is_map ? s->state == TRP_STAGE_RUNNING && !s->awaited
                          : s->succeeded + s->given_up + s->unasked == s->ntasks;
    if (over && s->state != TRP_STAGE_ENDED && !s->gave_up.text &&
        !(s->set && !s->set->zombie))
        complete(e, s);
}

/* A map output counts if its task began after the last loss of its executor that we
 * know of. */
TRP_RARE static void take_output(struct trp_engine *e, struct trp_stage *s,
                                 uint32_t attempt, uint32_t task, uint32_t executor,
                                 const struct trp_task_end *end)
{
    struct trp_dag_executor *x = trp_dag_executor(e, executor);
    if (!x || (x->failed_at && s->epochs[attempt] < x->failed_at))
        return;
    if (trp_map_outputs_add(e->dag.outputs, s->shuffle, task,
                            trp_dag_place(e, executor), end->attempt.n, end->sizes,
                            end->sizes ? end->nsizes : 0) == TRP_ENOMEM)
        e->out_of_memory = true;
    trp_supply_output(e, executor, s->shuffle);
}

/* The tasks of children that waited for this one, which is done. */
TRP_RARE static void let_go(struct trp_engine *e, struct trp_stage *s, uint32_t task)
{
    for (struct trp_stage_link *l = s->children; l; l = l->next)
        if (l->edge == TRP_EDGE_EACH)
            trp_link_done(e, l, task);
}

void trp_stage_done(struct trp_engine *e, struct trp_stage *s, uint32_t attempt,
                    uint32_t task, uint32_t executor, const struct trp_task_end *end)
{
    if (s->state == TRP_STAGE_ENDED || task >= s->ntasks || attempt >= s->attempts)
        return;
    bool old = attempt + 1 < s->attempts;
    if (old && (s->indeterminate || s->barrier))
        return;
    if (s->barrier && !s->is_map && s->state != TRP_STAGE_RUNNING)
        return; /* its attempt has failed: it runs again as a whole */
    if (old && s->set)
        trp_set_task_elsewhere(e, s->set, task);
    if (!s->is_map) {
        if (trp_bit_put(s->bits, task))
            return;
        s->succeeded++;
        if (s->each_children)
            let_go(e, s, task);
        trp_stage_check_complete(e, s);
        return;
    }
    s->awaited -= trp_bit(s->bits, task);
    trp_bit_clear(s->bits, task);
    take_output(e, s, attempt, task, executor, end);
    trp_stage_check_complete(e, s);
}

void trp_stage_resubmitted(struct trp_engine *e, struct trp_stage *s, uint32_t attempt,
                           uint32_t task)
{
    if (s->state == TRP_STAGE_ENDED || !s->is_map || task >= s->ntasks || !s->attempts)
        return;
    s->awaited += !trp_bit(s->bits, task);
    trp_bit_set(s->bits, task);
    if (s->barrier)
        trp_stage_barrier_failed(e, s, attempt, task, "its output was lost");
}

/* ---- it ends otherwise ---- */

void trp_stage_close(struct trp_engine *e, struct trp_stage *s,
                     enum trp_outcome outcome, int code, uint32_t task,
                     const char *text)
{
    if (s->state == TRP_STAGE_ENDED)
        return;
    /* A map stage that was told before, or of datasets that never was begun. */
    bool silent =
        s->end_told || (outcome == TRP_OUTCOME_SKIPPED && s->state == TRP_STAGE_IDLE &&
                        !s->failed && s->dataset != TRP_NONE);
    bool stops = s->state == TRP_STAGE_RUNNING && outcome != TRP_OUTCOME_SUCCEEDED;
    if (stops && e->dag.alone)
        e->dag.alone->stop(e->dag.alone->context, s);
    trp_stage_to(s, TRP_STAGE_ENDED);
    trp_gate_unwatch(e, s);
    trp_ahead_over(e, s);
    s->failed = false;
    if (s->shuffle < e->dag.nmap_stages && e->dag.map_stages[s->shuffle] == s)
        e->dag.map_stages[s->shuffle] = NULL;
    if (!silent) {
        s->outcome = outcome;
        report_end(e, s, outcome, code, task, text);
    }
    kill_sets(e, s);
}

/* Are tasks of the child left that can run, though the parent did not succeed? */
static bool goes_on(const struct trp_stage_link *l)
{
    const struct trp_stage *p = l->parent;
    return l->edge == TRP_EDGE_EACH && !l->waits && p->attempts &&
           (l->child->bits || p->succeeded);
}

/* Skips everything that needs a stage which did not succeed. */
static void skip_children(struct trp_engine *e, struct trp_stage *s)
{
    struct trp_stage *list = s;
    while (list) {
        struct trp_stage *at = list;
        list = at->skip_next;
        at->skip_next = NULL;
        for (struct trp_stage_link *l = at->children; l; l = l->next) {
            struct trp_stage *c = l->child;
            if (c->state == TRP_STAGE_ENDED || goes_on(l))
                continue;
            trp_error text;
            trp_error_set(&text, 0, "stage %.100s did not succeed", at->name);
            trp_stage_close(e, c, TRP_OUTCOME_SKIPPED, 0, TRP_NONE, text.text);
            trp_job_stage_over(e, c->uses);
            c->skip_next = list;
            list = c;
        }
    }
}

void trp_stage_gave_up(struct trp_engine *e, struct trp_stage *s)
{
    char losses[160];
    uint32_t task = s->gave_up.task;
    const char *text = s->gave_up.text;
    if (s->state == TRP_STAGE_ENDED)
        return;
    if (s->bits && trp_stage_lost_too_many(s)) { /* more may be lost by now */
        task = trp_stage_losses_text(s, losses, sizeof(losses));
        text = losses;
    }
    trp_stage_close(e, s, TRP_OUTCOME_FAILED, s->gave_up.code, task, text);
    judge_children(e, s);
    trp_job_stage_over(e, s->uses);
}

void trp_stage_abort(struct trp_engine *e, struct trp_stage *s, int code, uint32_t task,
                     const char *text)
{
    if (s->state == TRP_STAGE_ENDED)
        return;
    struct trp_job *j = s->uses->job;
    if (j->drains) {
        trp_job_fail(e, j, code, s, task, text);
        return;
    }
    if (!j->keep_going) {
        /* Each job that fails takes its use away; the last one ends the stage. */
        while (s->uses && s->state != TRP_STAGE_ENDED)
            trp_job_fail(e, s->uses->job, code, s, task, text);
        return;
    }
    trp_stage_close(e, s, TRP_OUTCOME_FAILED, code, task, text);
    trp_stage_lose_rest(e, s);
    judge_children(e, s);
    if (j->failed.n == TRP_NONE) {
        j->failed = s->id;
        j->code = code;
    }
    trp_job_stage_over(e, s->uses);
    skip_children(e, s);
}
