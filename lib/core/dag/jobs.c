/*
 * Jobs and stages: which stage is ready, what its end means for others, when a job is
 * over.
 *
 * Every stage counts its *blockers*: parents that have not ended well (or, for `each`,
 * whose tasks are not known yet). The count reaching 0 makes the stage ready, so a
 * chain of any length costs O(edges) in all. Ready stages go through a work list that
 * the end of each step empties, never recursion: 10,000 empty stages in a row end in
 * one step.
 *
 * A job is over when all its stages have ended; attempts that are still being killed
 * then may report later. Stages of a job that is over and has no attempts left are
 * freed.
 */
#include <stdio.h>
#include <string.h>

#include "core/engine_state.h"

static void stage_free(struct trp_engine *e, struct trp_stage *s)
{
    if (!s)
        return;
    if (s->set)
        trp_task_set_free(e, s->set);
    free(s->name);
    free(s->not_on);
    free(s->parents);
    free(s->children);
    free(s);
}

void trp_jobs_free(struct trp_engine *e)
{
    for (uint32_t i = 0; i < e->nstages; i++)
        stage_free(e, e->stages[i]);
    for (uint32_t i = 0; i < e->njobs; i++)
        free(e->jobs[i]);
    free(e->stages);
    free(e->jobs);
}

struct trp_stage *trp_stage_find(const struct trp_engine *e, trp_stage_id id)
{
    return id.n < e->nstages ? e->stages[id.n] : NULL;
}

/* ---- submission ---- */

static int check_stage(struct trp_engine *e, const struct trp_job_spec *spec,
                       uint32_t i, trp_error *err)
{
    const struct trp_stage_spec *s = &spec->stages[i];
    if (!trp_profiles_get(e->profiles, s->profile))
        return trp_error_set(err, TRP_EINVAL, "stage %s: no profile %u", s->name,
                             s->profile.n);
    if (s->kind == TRP_STAGE_GANG && (!s->ranks || (s->tasks_known && s->ntasks != 1)))
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: a gang is one task of 1 rank or more", s->name);
    for (uint32_t p = 0; p < s->nparents; p++) {
        uint32_t n = s->parents[p].stage;
        if (n >= i)
            return trp_error_set(err, TRP_EINVAL,
                                 "stage %s: its parent does not stand before it",
                                 s->name);
        if (s->parents[p].each && s->tasks_known && spec->stages[n].tasks_known &&
            s->ntasks != spec->stages[n].ntasks)
            return trp_error_set(
                err, TRP_EINVAL, "stage %s: %u tasks after each of %u of stage %s",
                s->name, s->ntasks, spec->stages[n].ntasks, spec->stages[n].name);
    }
    return 0;
}

static struct trp_stage *stage_new(const struct trp_stage_spec *spec)
{
    struct trp_stage *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->name = strdup(spec->name ? spec->name : "");
    s->parents = malloc((spec->nparents ? spec->nparents : 1) * sizeof(*s->parents));
    s->not_on = malloc((spec->nnot_on ? spec->nnot_on : 1) * sizeof(*s->not_on));
    if (!s->name || !s->parents || !s->not_on) {
        free(s->name);
        free(s->parents);
        free(s->not_on);
        free(s);
        return NULL;
    }
    if (spec->nnot_on)
        memcpy(s->not_on, spec->not_on, spec->nnot_on * sizeof(*s->not_on));
    s->nnot_on = spec->nnot_on;
    s->profile = spec->profile;
    s->kind = spec->kind;
    s->tasks_known = spec->tasks_known;
    s->ntasks = spec->ntasks;
    s->ranks = spec->ranks;
    s->max_failures = spec->max_failures;
    s->max_running = spec->max_running;
    s->memory_factor_ppm = spec->memory_factor_ppm;
    s->tolerate = spec->tolerate;
    s->tolerate_ppm = spec->tolerate_ppm;
    s->min_executors = spec->min_executors;
    s->max_executors = spec->max_executors;
    s->outcome = TRP_OUTCOME_RUNNING;
    return s;
}

/* Room for all children is made in one go: counts first, then links. */
static bool link_stages(struct trp_engine *e, const struct trp_job_spec *spec,
                        uint32_t first)
{
    for (uint32_t i = 0; i < spec->nstages; i++)
        for (uint32_t p = 0; p < spec->stages[i].nparents; p++)
            e->stages[first + spec->stages[i].parents[p].stage]->nchildren++;
    for (uint32_t i = 0; i < spec->nstages; i++) {
        struct trp_stage *s = e->stages[first + i];
        s->children = malloc((s->nchildren ? s->nchildren : 1) * sizeof(*s->children));
        if (!s->children)
            return false;
        s->nchildren = 0;
    }
    for (uint32_t i = 0; i < spec->nstages; i++) {
        struct trp_stage *s = e->stages[first + i];
        for (uint32_t p = 0; p < spec->stages[i].nparents; p++) {
            const struct trp_parent_spec *ps = &spec->stages[i].parents[p];
            struct trp_stage *parent = e->stages[first + ps->stage];
            s->parents[s->nparents++] = (struct trp_stage_link){parent, ps->each};
            parent->children[parent->nchildren++] =
                (struct trp_stage_link){s, ps->each};
        }
        s->blockers = s->nparents;
    }
    return true;
}

static int add_stages(struct trp_engine *e, const struct trp_job_spec *spec,
                      struct trp_job *j, trp_error *err)
{
    if (!trp_array_room((void **)&e->stages, &e->stages_cap,
                        (uint64_t)e->nstages + spec->nstages, sizeof(*e->stages)))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages",
                             spec->nstages);
    uint32_t first = e->nstages, n = 0;
    for (; n < spec->nstages; n++) {
        struct trp_stage *s = stage_new(&spec->stages[n]);
        if (!s)
            break;
        s->id.n = first + n;
        s->job = j;
        e->stages[first + n] = s;
    }
    if (n == spec->nstages && link_stages(e, spec, first)) {
        e->nstages += spec->nstages;
        return 0;
    }
    while (n-- > 0)
        stage_free(e, e->stages[first + n]);
    return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages", spec->nstages);
}

static void ready_add(struct trp_engine *e, struct trp_stage *s)
{
    s->ready_next = NULL;
    if (e->ready_last)
        e->ready_last->ready_next = s;
    else
        e->ready_first = s;
    e->ready_last = s;
}

static void stage_ready(struct trp_engine *e, struct trp_stage *s)
{
    trp_error err;
    s->state = TRP_STAGE_ASKED;
    if (!s->tasks_known)
        trp_action_add(e, TRP_ACTION_STAGE_READY)->stage = s->id;
    else if (trp_stage_submit(e, s, s->ntasks, NULL, NULL, &err) < 0)
        trp_stage_end(e, s, TRP_OUTCOME_FAILED, err.code, TRP_NONE, err.text);
}

void trp_jobs_run_ready(struct trp_engine *e)
{
    while (e->ready_first) {
        struct trp_stage *s = e->ready_first;
        e->ready_first = s->ready_next;
        if (!e->ready_first)
            e->ready_last = NULL;
        if (s->state != TRP_STAGE_WAITING)
            continue;
        stage_ready(e, s);
        trp_job_check_over(e, s->job);
    }
}

int trp_job_submit(struct trp_engine *e, const struct trp_job_spec *spec,
                   trp_error *err)
{
    for (uint32_t i = 0; i < spec->nstages; i++) {
        int rc = check_stage(e, spec, i, err);
        if (rc < 0)
            return rc;
    }
    struct trp_job *j = calloc(1, sizeof(*j));
    if (!j || !trp_array_room((void **)&e->jobs, &e->jobs_cap, (uint64_t)e->njobs + 1,
                              sizeof(*e->jobs))) {
        free(j);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a job");
    }
    j->id.n = e->njobs;
    j->first = e->nstages;
    j->nstages = spec->nstages;
    j->failed.n = TRP_NONE;
    int rc = add_stages(e, spec, j, err);
    if (rc < 0) {
        free(j);
        return rc;
    }
    e->jobs[e->njobs++] = j;
    e->jobs_active++;
    trp_action_add(e, TRP_ACTION_JOB_STARTED)->job = j->id;
    if (e->draining) {
        trp_job_cancel(e, j);
        return 0;
    }
    for (uint32_t i = 0; i < spec->nstages; i++)
        if (!e->stages[j->first + i]->blockers)
            ready_add(e, e->stages[j->first + i]);
    trp_job_check_over(e, j);
    return 0;
}

/* ---- a stage starts ---- */

/* One blocker less for each child that waits in this way. */
static void unblock(struct trp_engine *e, const struct trp_stage *s, bool each)
{
    for (uint32_t i = 0; i < s->nchildren; i++)
        if (s->children[i].each == each && --s->children[i].stage->blockers == 0)
            ready_add(e, s->children[i].stage);
}

/* The set joins its class: what it wants of executors is counted from now on. */
static void join_class(struct trp_task_set *set, struct trp_class *c)
{
    const struct trp_stage *s = set->stage;
    set->class = c;
    c->sets++;
    set->is_bounded = s->max_running || s->min_executors || s->max_executors;
    if (!set->is_bounded) {
        c->open += set->pending;
        return;
    }
    set->bounded_next = c->bounded;
    if (c->bounded)
        c->bounded->bounded_prev = set;
    c->bounded = set;
}

static int check_each(const struct trp_stage *s, uint32_t ntasks, trp_error *err)
{
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage *p = s->parents[i].stage;
        if (s->parents[i].each && p->ntasks != ntasks)
            return trp_error_set(err, TRP_EFAILED,
                                 "it has %u tasks, but each of stage %s has %u", ntasks,
                                 p->name, p->ntasks);
    }
    return 0;
}

int trp_stage_submit(struct trp_engine *e, struct trp_stage *s, uint32_t ntasks,
                     const struct trp_preferences *prefer, const uint8_t *done,
                     trp_error *err)
{
    int rc = check_each(s, ntasks, err);
    if (rc < 0)
        return rc;
    trp_profile_id class = s->profile;
    if (trp_profiles_may_run(e->profiles, s->profile, (trp_profile_id){0}))
        class.n = 0;
    struct trp_class *c = s->kind == TRP_STAGE_TASKS ? trp_class_of(e, class) : NULL;
    if (c && c->never)
        return trp_error_set(err, TRP_ENEVER, "%s", c->never);
    struct trp_task_set *set = trp_task_set_new(e, s, ntasks, prefer, done, err);
    if (!set || (!c && s->kind == TRP_STAGE_TASKS)) {
        trp_task_set_free(e, set);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", ntasks);
    }
    s->set = set;
    s->ntasks = ntasks;
    s->tasks_known = true;
    s->state = TRP_STAGE_RUNNING;
    trp_action_add(e, TRP_ACTION_STAGE_SUBMITTED)->stage = s->id;
    unblock(e, s, true);
    e->any_dirty = true;
    if (c) {
        join_class(set, c);
        if (set->pending) {
            trp_task_set_list(set);
            trp_round_full(e, c);
        }
    } else if (set->pending && !e->draining) {
        trp_gang_launch(e, set);
    }
    trp_stage_check_end(e, s);
    return 0;
}

/* ---- a stage ends ---- */

static void report_end(struct trp_engine *e, struct trp_stage *s, int code,
                       uint32_t task, const char *text)
{
    /* The text first: making it may move nothing, but keeps the order plain. */
    const char *own = *text ? trp_action_text(e, "%s", text) : "";
    struct trp_action *act = trp_action_add(e, TRP_ACTION_STAGE_ENDED);
    act->stage_ended.stage = s->id;
    act->stage_ended.outcome = s->outcome;
    act->stage_ended.code = code;
    act->stage_ended.task = task;
    act->stage_ended.text = own;
}

static void leave_class(struct trp_engine *e, struct trp_task_set *set)
{
    set->ended = true;
    e->any_dirty = true;
    struct trp_class *c = set->class;
    if (!c)
        return;
    trp_task_set_unlist(set);
    c->sets--;
    if (!set->is_bounded) {
        c->open -= set->pending + set->running + set->queued;
        return;
    }
    if (set->bounded_next)
        set->bounded_next->bounded_prev = set->bounded_prev;
    if (set->bounded_prev)
        set->bounded_prev->bounded_next = set->bounded_next;
    else
        c->bounded = set->bounded_next;
}

/* Marks a stage ended and tells it. Does not look at other stages. */
static void end_one(struct trp_engine *e, struct trp_stage *s, enum trp_outcome outcome,
                    int code, uint32_t task, const char *text)
{
    for (struct trp_task_set *set = s->set; set; set = set->overflow)
        leave_class(e, set);
    s->state = TRP_STAGE_ENDED;
    s->outcome = outcome;
    s->job->ended++;
    report_end(e, s, code, task, text);
    if (!s->set)
        return;
    trp_attempts_kill(e, s->set);
    if (!s->set->attempts) {
        trp_task_set_free(e, s->set);
        s->set = NULL;
    }
}

/* Skips everything that needs a stage which did not succeed. */
static void skip_children(struct trp_engine *e, struct trp_stage *s)
{
    struct trp_stage *list = s;
    while (list) {
        struct trp_stage *at = list;
        list = at->skip_next;
        at->skip_next = NULL;
        for (uint32_t i = 0; i < at->nchildren; i++) {
            struct trp_stage *c = at->children[i].stage;
            if (c->state == TRP_STAGE_ENDED)
                continue;
            char text[160];
            snprintf(text, sizeof(text), "stage %.100s did not succeed", at->name);
            end_one(e, c, TRP_OUTCOME_SKIPPED, 0, TRP_NONE, text);
            c->skip_next = list;
            list = c;
        }
    }
}

static void end_others(struct trp_engine *e, struct trp_job *j,
                       enum trp_outcome running)
{
    for (uint32_t i = 0; i < j->nstages; i++) {
        struct trp_stage *s = e->stages[j->first + i];
        if (s->state == TRP_STAGE_ENDED)
            continue;
        bool started = s->state == TRP_STAGE_RUNNING;
        end_one(e, s, started ? running : TRP_OUTCOME_SKIPPED, 0, TRP_NONE, "");
    }
}

void trp_stage_end(struct trp_engine *e, struct trp_stage *s, enum trp_outcome outcome,
                   int code, uint32_t task, const char *text)
{
    if (s->state == TRP_STAGE_ENDED)
        return;
    struct trp_job *j = s->job;
    end_one(e, s, outcome, code, task, text);
    if (outcome == TRP_OUTCOME_SUCCEEDED) {
        unblock(e, s, false);
        return;
    }
    if (j->failed.n == TRP_NONE) {
        j->failed = s->id;
        j->code = code;
    }
    if (e->config.keep_going)
        skip_children(e, s);
    else
        end_others(e, j, TRP_OUTCOME_CANCELLED);
}

void trp_stage_task_done(struct trp_engine *e, struct trp_stage *s, uint32_t task)
{
    for (uint32_t i = 0; i < s->nchildren; i++) {
        struct trp_task_set *c = s->children[i].each ? s->children[i].stage->set : NULL;
        if (!c || c->ended)
            continue;
        struct trp_task *t = &c->tasks[task];
        if (!t->held || --t->held || !trp_task_is_pending(t))
            continue;
        trp_task_set_push(e, c, task);
        trp_task_set_recompute(c);
        if (c->class && !c->is_bounded)
            c->class->open++;
        e->any_dirty = true;
        if (c->class)
            trp_round_full(e, c->class);
        else if (!e->draining)
            trp_gang_launch(e, c);
    }
}

void trp_stage_check_end(struct trp_engine *e, struct trp_stage *s)
{
    struct trp_task_set *set = s->set;
    if (s->state == TRP_STAGE_RUNNING && set->done + set->failed == set->ntasks)
        trp_stage_end(e, s, TRP_OUTCOME_SUCCEEDED, 0, TRP_NONE, "");
}

/* ---- a job ends ---- */

void trp_job_cancel(struct trp_engine *e, struct trp_job *j)
{
    if (j->over)
        return;
    j->cancelled = true;
    end_others(e, j, TRP_OUTCOME_CANCELLED);
    trp_job_check_over(e, j);
}

static void report_over(struct trp_engine *e, struct trp_job *j)
{
    struct trp_action *act = trp_action_add(e, TRP_ACTION_JOB_ENDED);
    act->job_ended.job = j->id;
    act->job_ended.stage = j->failed;
    act->job_ended.code = j->code;
    act->job_ended.outcome = TRP_OUTCOME_SUCCEEDED;
    if (j->failed.n != TRP_NONE)
        act->job_ended.outcome = TRP_OUTCOME_FAILED;
    else if (j->cancelled)
        act->job_ended.outcome = TRP_OUTCOME_CANCELLED;
    if (j->cancelled && j->failed.n == TRP_NONE)
        act->job_ended.code = TRP_ECANCELLED;
    j->over = true;
    e->jobs_active--;
    e->any_dirty = true;
}

/* Tells the job's end once; it is freed after the step when no attempt of it is left.
 */
void trp_job_check_over(struct trp_engine *e, struct trp_job *j)
{
    if (j->ended < j->nstages)
        return;
    if (!j->over)
        report_over(e, j);
    if (j->attempts || j->dead)
        return;
    j->dead = true;
    j->dead_next = e->dead_jobs;
    e->dead_jobs = j;
}

void trp_jobs_free_dead(struct trp_engine *e)
{
    while (e->dead_jobs) {
        struct trp_job *j = e->dead_jobs;
        e->dead_jobs = j->dead_next;
        for (uint32_t i = 0; i < j->nstages; i++) {
            stage_free(e, e->stages[j->first + i]);
            e->stages[j->first + i] = NULL;
        }
        e->jobs[j->id.n] = NULL;
        free(j);
    }
}

static bool needs_class(const struct trp_stage *s, const struct trp_class *c)
{
    for (const struct trp_task_set *set = s->set; set; set = set->overflow)
        if (set->class == c)
            return true;
    return false;
}

/* Fails every stage that needs executors of a class. */
void trp_class_give_up(struct trp_engine *e, struct trp_class *c, int code,
                       const char *text)
{
    for (uint32_t i = 0; i < e->nstages; i++) {
        struct trp_stage *s = e->stages[i];
        if (!s || s->state != TRP_STAGE_RUNNING || !needs_class(s, c))
            continue;
        struct trp_job *j = s->job;
        trp_stage_end(e, s, TRP_OUTCOME_FAILED, code, TRP_NONE, text);
        trp_job_check_over(e, j);
    }
}

/* While draining: jobs of which nothing runs any more are over. */
void trp_jobs_check_drained(struct trp_engine *e)
{
    for (uint32_t i = 0; e->draining && i < e->njobs; i++)
        if (e->jobs[i] && !e->jobs[i]->over && !e->jobs[i]->attempts)
            trp_job_cancel(e, e->jobs[i]);
}
