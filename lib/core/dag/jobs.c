/*
 * Jobs: what is submitted, what ends. A job uses stages; a stage that no job uses ends
 * and goes. A job waits for the end of some of the stages it uses: one that was told as
 * stages for all of them, one that was given as a dataset for its last.
 *
 * A job is over when it waits for none, when it failed, or when it was cancelled; then
 * what only it used is stopped, in this order: the stage to blame, the others by id,
 * the job. Attempts that are still being killed may report later. A job that drains is
 * over later: when nothing of it runs any more, or when it is cancelled.
 */
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "core/engine_state.h"

struct trp_job *trp_job_find(const struct trp_engine *e, trp_job_id id)
{
    return id.n < e->njobs ? e->jobs[id.n] : NULL;
}

/* ---- uses ---- */

void trp_use_add(struct trp_engine *e, struct trp_use *u, struct trp_job *j,
                 struct trp_stage *s)
{
    /* New jobs mostly go last. */
    struct trp_use *after = s->uses ? s->uses->prev : NULL;
    while (after && after->job->id.n > j->id.n)
        after = after == s->uses ? NULL : after->prev;
    *u = (struct trp_use){.job = j, .stage = s, .over = true};
    DL_APPEND_ELEM(s->uses, after, u);
    j->busy += s->live > 0;
    if (s->is_map && !s->uses->next)
        trp_supply_shuffle(e, s->shuffle, true);
}

static void use_remove(struct trp_engine *e, struct trp_use *u)
{
    struct trp_stage *s = u->stage;
    DL_DELETE(s->uses, u);
    if (s->is_map && !s->uses)
        trp_supply_shuffle(e, s->shuffle, false);
}

/* ---- a job ends ---- */

static void report_over(struct trp_engine *e, struct trp_job *j)
{
    const char *text = j->text ? trp_action_text(e, "%s", j->text) : "";
    struct trp_action *act = trp_action_add(e, TRP_ACTION_JOB_ENDED);
    act->job_ended.job = j->id;
    act->job_ended.stage = j->failed;
    act->job_ended.code = j->code;
    act->job_ended.text = text;
    act->job_ended.outcome = TRP_OUTCOME_SUCCEEDED;
    if (j->code)
        act->job_ended.outcome =
            j->cancelled ? TRP_OUTCOME_CANCELLED : TRP_OUTCOME_FAILED;
}

static void end_job(struct trp_engine *e, struct trp_job *j)
{
    j->over = true;
    e->jobs_active--;
    e->any_dirty = true;
    trp_gate_remove(e, j);
    for (uint32_t i = 0; i < j->nuses; i++) {
        struct trp_stage *s = j->uses[i].stage;
        use_remove(e, &j->uses[i]);
        if (s->uses)
            continue;
        bool started = s->state == TRP_STAGE_RUNNING;
        trp_stage_close(e, s, started ? TRP_OUTCOME_CANCELLED : TRP_OUTCOME_SKIPPED, 0,
                        TRP_NONE, "");
        trp_stage_check_dead(e, s);
    }
    report_over(e, j);
    e->unsettled = true;
    LL_PREPEND2(e->dag.dead_jobs, j, dead_next);
}

void trp_job_stage_over(struct trp_engine *e, struct trp_use *u)
{
    if (u->over)
        return;
    u->over = true;
    if (--u->job->open == 0)
        end_job(e, u->job);
}

static void note_text(struct trp_job *j, const char *text)
{
    free(j->text);
    j->text = strdup(text);
}

/* The stage ends when its attempts have; the tasks of a barrier stage need each other.
 * The first one that gives up ends the run. */
static void drain(struct trp_engine *e, struct trp_stage *s, int code, uint32_t task,
                  const char *text)
{
    if (s->gave_up.text)
        return;
    s->gave_up.text = strdup(text);
    s->gave_up.code = code;
    s->gave_up.task = task;
    e->out_of_memory |= !s->gave_up.text;
    if (!e->draining) {
        trp_engine_drain(e);
        trp_action_add(e, TRP_ACTION_JOB_DRAINS)->stage = s->id;
    }
    if (!s->live || s->barrier)
        trp_stage_gave_up(e, s);
}

void trp_job_fail(struct trp_engine *e, struct trp_job *j, int code,
                  struct trp_stage *s, uint32_t task, const char *text)
{
    trp_error whole;
    if (j->over)
        return;
    if (j->failed.n == TRP_NONE) {
        j->failed.n = s ? s->id.n : TRP_NONE;
        j->code = code;
        trp_error_set(&whole, code, "%s%s",
                      j->final && s ? "Job aborted due to stage failure: " : "", text);
        note_text(j, whole.text);
    }
    if (j->drains && s) {
        drain(e, s, code, task, text);
        return;
    }
    if (s && s->uses->job == j && !s->uses->next)
        trp_stage_close(e, s, TRP_OUTCOME_FAILED, code, task, text);
    end_job(e, j);
}

void trp_job_stop(struct trp_engine *e, struct trp_job *j, const char *why)
{
    char number[16];
    trp_error text;
    if (j->over)
        return;
    if (!j->code) {
        snprintf(number, sizeof(number), "%u", j->id.n);
        trp_error_set(&text, TRP_ECANCELLED, "Job %s cancelled%s%s",
                      j->name ? j->name : number, *why ? " " : "", why);
        note_text(j, text.text);
        j->cancelled = true;
        j->code = TRP_ECANCELLED;
    }
    end_job(e, j);
}

/* While draining: jobs of which nothing runs any more are over. One that failed waits
 * for what it asked of its stages. */
void trp_jobs_check_drained(struct trp_engine *e)
{
    for (uint32_t i = 0; e->draining && i < e->njobs; i++) {
        struct trp_job *j = e->jobs[i];
        if (j && !j->over && !j->busy && !(j->asked && trp_job_drains(j)))
            trp_job_stop(e, j, "");
    }
}

static void job_free(struct trp_job *j)
{
    if (!j)
        return;
    free(j->name);
    free(j->pool);
    free(j->text);
    free(j->partitions);
    free(j->uses);
    free(j);
}

void trp_jobs_free_dead(struct trp_engine *e)
{
    trp_stages_free_dead(e);
    while (e->dag.dead_jobs) {
        struct trp_job *j = e->dag.dead_jobs;
        e->dag.dead_jobs = j->dead_next;
        e->jobs[j->id.n] = NULL;
        if (j->of_dataset)
            e->dag.graph.v[j->dataset]->users--;
        job_free(j);
    }
}

void trp_jobs_free(struct trp_engine *e)
{
    struct trp_dag *d = &e->dag;
    for (uint32_t i = e->nstages; i-- > 0;) /* children before parents */
        if (e->stages[i])
            trp_stage_free(e, e->stages[i]);
    for (uint32_t i = 0; i < e->njobs; i++)
        job_free(e->jobs[i]);
    free(e->stages);
    free(e->jobs);
    trp_graph_free(&d->graph);
    trp_map_outputs_free(d->outputs);
    free(d->map_stages);
    free(d->executors);
    free(d->decommissioned.v);
    free(d->failed.v);
    free(d->rolling.v);
    free(d->lost.v);
    free(d->found.v);
    free(d->resubmit_due);
    free(d->places);
    free(d->reads);
    free(d->place_first);
}

/* ---- submission as stages ---- */

static int check_parent(const struct trp_job_spec *spec, uint32_t i, uint32_t p,
                        trp_error *err)
{
    const struct trp_stage_spec *s = &spec->stages[i];
    const struct trp_parent_spec *link = &s->parents[p];
    if (link->stage >= i)
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: its parent does not stand before it", s->name);
    const struct trp_stage_spec *parent = &spec->stages[link->stage];
    if (link->shuffle && !parent->map)
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: stage %s leaves no map outputs", s->name,
                             parent->name);
    if (link->each && (link->shuffle || parent->map))
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: map outputs of stage %s are read by all tasks",
                             s->name, parent->name);
    if (link->by && (!link->each || s->tasks_known))
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: which tasks of stage %s its tasks wait for is "
                             "told with them",
                             s->name, parent->name);
    if (link->each && !link->by && s->tasks_known && parent->tasks_known &&
        s->ntasks != parent->ntasks)
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: %u task%s after each of %u of stage %s",
                             s->name, s->ntasks, s->ntasks == 1 ? "" : "s",
                             parent->ntasks, parent->name);
    return 0;
}

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
    if (s->map && (s->tolerate || s->tolerate_ppm))
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: no task of a map stage may fail for good",
                             s->name);
    if (s->kind == TRP_STAGE_GANG && (s->map || s->barrier))
        return trp_error_set(err, TRP_EINVAL,
                             "stage %s: a gang is no map stage and has no barrier",
                             s->name);
    for (uint32_t p = 0; p < s->nparents; p++) {
        int rc = check_parent(spec, i, p, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static enum trp_edge edge_of(const struct trp_parent_spec *p,
                             const struct trp_stage *parent)
{
    if (p->shuffle)
        return TRP_EDGE_SHUFFLE;
    if (!p->each)
        return TRP_EDGE_AFTER;
    return parent->barrier ? TRP_EDGE_EACH_OF_ALL : TRP_EDGE_EACH;
}

static int add_stages(struct trp_engine *e, const struct trp_job_spec *spec,
                      struct trp_job *j, trp_error *err)
{
    uint32_t first = e->nstages;
    j->uses = malloc((spec->nstages ? spec->nstages : 1) * sizeof(*j->uses));
    for (uint32_t i = 0; j->uses && i < spec->nstages; i++) {
        const struct trp_stage_spec *ss = &spec->stages[i];
        struct trp_stage *s = trp_stage_new(e, ss);
        if (!s)
            break;
        for (uint32_t p = 0; p < ss->nparents; p++) {
            struct trp_stage *parent = e->stages[first + ss->parents[p].stage];
            trp_stage_link(s, parent, edge_of(&ss->parents[p], parent));
            s->parents[p].by_value = ss->parents[p].by;
        }
        if (s->is_map)
            s->shuffle = e->dag.nshuffles++;
        s->first_job = j->id;
        s->redo = true;
        trp_use_add(e, &j->uses[j->nuses++], j, s);
        j->uses[i].over = false;
    }
    j->open = j->nuses;
    if (j->nuses == spec->nstages)
        return 0;
    while (e->nstages > first)
        trp_stage_free(e, e->stages[--e->nstages]);
    return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages", spec->nstages);
}

static struct trp_job *job_new(struct trp_engine *e, const struct trp_job_spec *spec,
                               trp_error *err)
{
    struct trp_job *j = calloc(1, sizeof(*j));
    char *name = spec->name ? strdup(spec->name) : NULL;
    char *pool = spec->pool ? strdup(spec->pool) : NULL;
    if (!j || (spec->name && !name) || (spec->pool && !pool) ||
        !TRP_ARRAY_GROW(e->jobs, e->njobs, e->jobs_cap)) {
        free(j);
        free(name);
        free(pool);
        trp_error_set(err, TRP_ENOMEM, "out of memory for a job");
        return NULL;
    }
    j->id.n = e->njobs;
    j->name = name;
    j->pool = pool;
    j->failed.n = TRP_NONE;
    return j;
}

static void enter(struct trp_engine *e, struct trp_job *j)
{
    e->jobs[e->njobs++] = j;
    e->jobs_active++;
    trp_action_add(e, TRP_ACTION_JOB_STARTED)->job = j->id;
}

static int submit_stages(struct trp_engine *e, const struct trp_job_spec *spec,
                         struct trp_job *j, trp_error *err)
{
    j->keep_going = e->config.keep_going;
    j->drains = spec->drains && !j->keep_going;
    int rc = add_stages(e, spec, j, err);
    if (rc < 0)
        return rc;
    enter(e, j);
    if (e->draining)
        trp_job_stop(e, j, "");
    else if (!j->open)
        end_job(e, j);
    for (uint32_t i = 0; !j->over && i < j->nuses; i++)
        trp_stage_want(e, j->uses[i].stage);
    return 0;
}

/* ---- submission as a dataset ---- */

static int check_dataset(const struct trp_engine *e, const struct trp_job_spec *spec,
                         trp_error *err)
{
    const struct trp_dataset *d = trp_graph_get(&e->dag.graph, spec->dataset);
    if (!d)
        return trp_error_set(err, TRP_EINVAL, "there is no dataset %u", spec->dataset);
    for (uint32_t i = 0; spec->some && i < spec->npartitions; i++)
        if (spec->partitions[i] >= d->partitions)
            return trp_error_set(err, TRP_EINVAL,
                                 "dataset %s has %u partitions, no partition %u",
                                 d->name, d->partitions, spec->partitions[i]);
    return 0;
}

void trp_job_start(struct trp_engine *e, struct trp_job *j)
{
    trp_error err;
    int rc = trp_plan_job(e, j, &err);
    if (rc == TRP_EWAIT && !j->map_only &&
        ++j->gate_failures <= e->config.barrier.check_max_failures) {
        trp_gate_add(e, j);
        return;
    }
    if (rc < 0) {
        trp_job_fail(e, j, rc == TRP_EWAIT ? TRP_EFAILED : rc, NULL, TRP_NONE,
                     err.text);
        return;
    }
    struct trp_use *u = &j->uses[j->nuses - 1]; /* the last stage has the highest id */
    while (u->stage != j->final)
        u--;
    u->over = false;
    j->open = 1;
    if (j->final->is_map && trp_stage_is_available(e, j->final))
        trp_job_stage_over(e, u);
    else
        trp_stage_want(e, j->final);
}

static int submit_dataset(struct trp_engine *e, const struct trp_job_spec *spec,
                          struct trp_job *j, trp_error *err)
{
    bool none =
        spec->some ? !spec->npartitions : !e->dag.graph.v[spec->dataset]->partitions;
    j->dataset = spec->dataset;
    j->map_only = spec->map_only;
    j->redo = spec->redo;
    j->of_dataset = true;
    if (spec->some && !none) {
        j->partitions = malloc(spec->npartitions * sizeof(*j->partitions));
        if (!j->partitions)
            return trp_error_set(err, TRP_ENOMEM, "out of memory for a job");
        memcpy(j->partitions, spec->partitions,
               spec->npartitions * sizeof(*j->partitions));
        j->npartitions = spec->npartitions;
    }
    e->dag.graph.v[j->dataset]->users++;
    enter(e, j);
    if (e->draining)
        trp_job_stop(e, j, "");
    else if (none)
        end_job(e, j);
    else
        trp_job_start(e, j);
    return 0;
}

int trp_job_submit(struct trp_engine *e, const struct trp_job_spec *spec,
                   trp_error *err)
{
    int rc = spec->is_dataset ? check_dataset(e, spec, err) : 0;
    for (uint32_t i = 0; rc == 0 && !spec->is_dataset && i < spec->nstages; i++)
        rc = check_stage(e, spec, i, err);
    if (rc < 0)
        return rc;
    struct trp_job *j = job_new(e, spec, err);
    if (!j)
        return TRP_ENOMEM;
    rc = spec->is_dataset ? submit_dataset(e, spec, j, err)
                          : submit_stages(e, spec, j, err);
    if (rc < 0)
        job_free(j);
    return rc;
}
