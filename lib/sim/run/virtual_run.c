/*
 * The loop of a virtual run: the next thing that is due, the engine's step, what it
 * decides, who gets room. Timers of the engine fire when nothing else is due before.
 *
 * What cannot end is told: an engine that waits while nothing will ever happen, a
 * hundred years of virtual time, or STEPS_MAX steps in which no task ends.
 */
#include "sim/run/virtual_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "sim/run/virtual_run_state.h"

static const int64_t YEARS_100 = INT64_C(100) * 365 * 24 * 3600 * 1000000000;
enum { STEPS_MAX = 10000000 };

void trp_virtual_fail(struct trp_virtual_run *r, int code, const char *text)
{
    if (r->rc == 0)
        r->rc = trp_error_set(r->err, code, "%s", text);
    r->over = true;
}

void trp_virtual_later(struct trp_virtual_run *r, int64_t in,
                       enum trp_virtual_due_kind kind, uint32_t a, uint64_t b)
{
    if (!trp_virtual_heap_put(&r->heap, r->now + in, kind, a, b))
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
}

void trp_virtual_step(struct trp_virtual_run *r, const struct trp_event *ev)
{
    trp_error why;
    const struct trp_action *a;
    r->steps++;
    int rc = r->trace ? trp_engine_trace_step(r->trace, r->engine, r->now, ev, &why)
                      : trp_engine_step(r->engine, r->now, ev, &why);
    if (rc < 0) {
        trp_virtual_fail(r, rc, why.text);
        return;
    }
    if (r->performing)
        return; /* the loop further out takes what follows */
    r->performing = true;
    while ((a = trp_engine_next(r->engine))) {
        if (r->trace)
            trp_engine_trace_action(r->trace, a);
        trp_virtual_act(r, a);
    }
    r->performing = false;
}

/* ---- making ---- */

static double task_devices(const struct trp_custom *c)
{
    return trp_amount_to_double(c->task);
}

static void plan_stage(struct trp_virtual_run *r, uint32_t i)
{
    const struct trp_pipeline_stage *s = &r->c.pipeline->stages[i];
    const struct trp_resource_profile *p = trp_profiles_get(r->c.profiles, r->c.ids[i]);
    struct trp_virtual_plan *plan = &r->plan[i];
    r->result->stages[i] =
        (struct trp_virtual_stage){.name = s->name,
                                   .profile = s->profile ? s->profile : "default",
                                   .ntasks = r->c.ntasks[i],
                                   .ranks = s->spec.ranks,
                                   .ready = -1,
                                   .first = -1,
                                   .end = -1};
    plan->task.cores = (double)p->task_cpus;
    for (uint32_t d = 0; d < r->c.cluster->ndevices; d++)
        for (uint32_t k = 0; k < p->ncustom; k++)
            if (strcmp(p->custom[k].name, r->c.cluster->devices[d]) == 0)
                plan->task.devices[d] = task_devices(&p->custom[k]);
}

/* Those that executors may be on at once. */
static uint32_t hosts_of(const struct trp_virtual_run *r)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < r->c.cluster->ngroups; g++)
        n += r->c.cluster->groups[g].count;
    return r->c.inside_only ? trp_virtual_inside_nodes(r->cluster) : n;
}

struct trp_event trp_virtual_fit_of(const struct trp_virtual_run *r,
                                    const struct trp_resource_profile *p,
                                    trp_error *why)
{
    uint32_t inside = 0, n = trp_virtual_fit(r->cluster, p, 0, &inside, why);
    return (struct trp_event){
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {.profile = p->id,
                .executors = n,
                .additional = n - inside,
                .text = why->text,
                .hosts = hosts_of(r),
                .more = r->patient}
    };
}

/* Each stage fits, or the run is refused as the driver would refuse it; the engine is
 * told how many executors there can be. */
static int tell_fit(struct trp_virtual_run *r)
{
    const trp_pipeline *p = r->c.pipeline;
    trp_error why = {0};
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct trp_pipeline_stage *s = &p->stages[i];
        const struct trp_resource_profile *profile =
            trp_profiles_get(r->c.profiles, r->c.ids[i]);
        struct trp_mark at = s->profile_mark.line ? s->profile_mark : s->mark;
        uint32_t n = trp_virtual_fit(r->cluster, profile, s->spec.ranks, NULL, &why);
        if (!n || !trp_limits_most(&r->c.engine, profile, s->spec.ranks, &why))
            return trp_error_at(r->err, TRP_ENEVER, p->file, at,
                                "stage %s never fits %s: %s", s->name,
                                r->c.cluster->file, why.text);
        struct trp_event ev = trp_virtual_fit_of(r, profile, &why);
        if (!s->spec.ranks)
            trp_virtual_step(r, &ev);
    }
    return r->rc;
}

static int make_run(struct trp_virtual_run *r)
{
    const trp_pipeline *p = r->c.pipeline;
    struct trp_virtual_config config = {.model = r->c.cluster,
                                        .inside = r->c.inside,
                                        .seed = r->c.seed,
                                        .inside_only = r->c.inside_only,
                                        .whole_jobs = r->c.whole_jobs,
                                        .handler = trp_virtual_cluster_handler};
    config.handler.context = r;
    r->plan = calloc((size_t)p->nstages + 1, sizeof *r->plan);
    r->result->stages = calloc((size_t)p->nstages + 1, sizeof *r->result->stages);
    r->resources = calloc(TRP_PROFILE_RESOURCES, sizeof *r->resources);
    if (!r->plan || !r->result->stages || !r->resources)
        return trp_error_set(r->err, TRP_ENOMEM, "out of memory for the simulation");
    r->result->nstages = p->nstages;
    r->result->ndevices = r->c.cluster->ndevices;
    memcpy(r->result->devices, r->c.cluster->devices, sizeof r->result->devices);
    for (uint32_t i = 0; i < p->nstages; i++)
        plan_stage(r, i);
    int rc = trp_stage_specs_make(p, r->c.ids, r->c.options, NULL, &r->specs, r->err);
    r->patient = !r->c.inside_only && !r->c.whole_jobs;
    for (uint32_t k = 0; k < r->specs.nstages; k++) {
        if (!r->c.ahead)
            r->specs.stages[k].look_ahead = TRP_LOOK_AHEAD_OFF;
        r->plan[r->specs.of[k]].place = k;
        trp_stage_specs_count(&r->specs, k, p, r->c.ntasks[r->specs.of[k]]);
    }
    if (rc == 0)
        rc = trp_virtual_cluster_new(&config, &r->cluster, r->err);
    if (rc == 0)
        rc = trp_engine_new(&r->c.engine, r->c.profiles, &r->engine, r->err);
    if (rc == 0 && r->c.record)
        rc = trp_engine_trace_new(r->c.record, &r->c.engine, r->c.profiles, false,
                                  &r->trace, r->err);
    return rc < 0 ? rc : tell_fit(r);
}

/* ---- the loop ---- */

static void submit_own_job(struct trp_virtual_run *r)
{
    uint32_t inside = trp_virtual_inside_nodes(r->cluster);
    struct trp_random random = trp_random_of(r->c.seed, TRP_DRAW_QUEUE, 0, 0);
    int64_t wait = 0;
    if (inside) {
        r->result->jobs++;
        wait = trp_distribution_draw(&r->c.cluster->wait, &random) +
               r->c.cluster->wait_per_node_ns * inside;
    }
    trp_virtual_later(r, wait, TRP_DUE_BEGIN, 0, 0);
}

static void stands_still(struct trp_virtual_run *r)
{
    char why[512] = "";
    for (uint32_t i = 0; i < r->result->nstages && !*why; i++) {
        const struct trp_virtual_stage *s = &r->result->stages[i];
        if (s->ready >= 0 && s->end < 0)
            trp_engine_why_waiting(r->engine, r->now, (trp_stage_id){r->plan[i].place},
                                   why, sizeof why);
    }
    char text[640];
    snprintf(text, sizeof text, "the run stands still: %s",
             *why ? why : "nothing will happen any more");
    trp_virtual_fail(r, TRP_ELIMIT, text);
}

/* Those who began to wait, and those whom room became free for. */
static void serve(struct trp_virtual_run *r)
{
    while ((r->asked || r->freed) && !r->over) {
        bool asked = r->asked;
        r->asked = r->freed = false;
        if (asked)
            trp_virtual_submit(r->cluster, r->now);
        else
            trp_virtual_serve(r->cluster, r->now);
    }
    if (trp_virtual_failed(r->cluster))
        trp_virtual_fail(r, TRP_ENOMEM, "out of memory for the simulation");
}

static void turn(struct trp_virtual_run *r)
{
    int64_t timer = trp_engine_next_timer(r->engine);
    int64_t due = r->heap.n ? r->heap.v[0].at : INT64_MAX;
    if (timer == INT64_MAX && due == INT64_MAX) {
        stands_still(r);
    } else if (timer < due) {
        struct trp_event ev = {.kind = TRP_EVENT_TIME};
        r->now = timer > r->now ? timer : r->now;
        trp_virtual_step(r, &ev);
    } else {
        struct trp_virtual_due next = trp_virtual_heap_take(&r->heap);
        r->now = next.at;
        trp_virtual_happen(r, &next);
    }
    serve(r);
    if (r->now > YEARS_100)
        trp_virtual_fail(r, TRP_ELIMIT, "no end within 100 years of virtual time");
    if (r->steps - r->last_end > STEPS_MAX)
        trp_virtual_fail(r, TRP_ELIMIT, "nothing comes to an end any more");
}

static void close_accounts(struct trp_virtual_run *r)
{
    struct trp_virtual_result *v = r->result;
    for (uint32_t i = 0; i < r->nexecutors; i++)
        if (r->executors[i].state == TRP_VIRTUAL_STARTS ||
            r->executors[i].state == TRP_VIRTUAL_UP)
            trp_virtual_settle(r, i, TRP_NONE);
    v->held = trp_virtual_held(r->cluster, v->start, r->now);
    v->makespan = r->now;
    v->events = r->steps;
    for (uint32_t i = 0; i < v->nstages; i++)
        trp_sim_amounts_add(&v->used, &v->stages[i].used, 1);
}

static void run_free(struct trp_virtual_run *r)
{
    for (uint32_t i = 0; r->plan && i < r->c.pipeline->nstages; i++)
        trp_stage_places_free(&r->plan[i].places);
    free(r->plan);
    free(r->resources);
    free(r->attempts);
    free(r->executors);
    free(r->heap.v);
    trp_stage_specs_free(&r->specs);
    trp_virtual_cluster_free(r->cluster);
    trp_engine_free(r->engine);
}

int trp_virtual_run(const struct trp_virtual_run_config *config,
                    struct trp_virtual_result *ret, trp_error *err)
{
    struct trp_virtual_result result = {0};
    struct trp_virtual_run r = {.c = *config, .result = &result, .err = err};
    r.rc = make_run(&r);
    if (r.rc == 0)
        submit_own_job(&r);
    while (r.rc == 0 && !r.over)
        turn(&r);
    if (r.rc == 0)
        close_accounts(&r);
    int closed = trp_engine_trace_close(r.trace, r.rc == 0 ? err : NULL);
    if (r.rc == 0)
        r.rc = closed;
    run_free(&r);
    if (r.rc < 0)
        trp_virtual_result_free(&result);
    else
        *ret = result;
    return r.rc;
}

void trp_virtual_result_free(struct trp_virtual_result *r)
{
    for (uint32_t i = 0; r->stages && i < r->nstages; i++) {
        trp_durations_free(&r->stages[i].ran);
        free(r->stages[i].why);
    }
    free(r->stages);
    memset(r, 0, sizeof *r);
}
