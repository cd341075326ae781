/*
 * Map outputs between engine and executors.
 *
 * Executors keep no table of outputs and ask for none. When an attempt of a stage is
 * begun all its inputs are there; where, goes to each executor in one message before
 * its first launch of that attempt. A place that has become wrong since is found out by
 * who reads there, told as a fetch failure, and the next attempt has a new message.
 */
#include "driver/map_outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/kept_datasets.h"
#include "driver/locations.h"
#include "driver/moving.h"
#include "driver/perform.h"
#include "wire/map_output.h"

/* ---- stages of datasets ---- */

static void learn(trp_driver *d, uint32_t id)
{
    struct trp_stage_view v;
    struct trp_driver_stage *s = NULL;
    trp_stage_id parents[64], *all = parents;
    if (trp_engine_stage(d->engine, (trp_stage_id){id}, &v) == 0 &&
        v.job.n < d->njobs && d->jobs[v.job.n]) {
        struct trp_driver_job *j = d->jobs[v.job.n];
        uint32_t n = trp_engine_parents(d->engine, (trp_stage_id){id}, parents, 64);
        if (n > 64 && (all = calloc(n, sizeof *all)))
            trp_engine_parents(d->engine, (trp_stage_id){id}, all, n);
        s = all ? trp_perform_stage_of_dataset(j, id, &v, all, n) : NULL;
        if (all != parents)
            free(all);
        if (!s) {
            trp_perform_out_of_memory(d);
        } else {
            if (!j->nstages)
                j->first = id;
            j->nstages = id + 1 - j->first;
        }
    }
    d->stages[d->nstages++] = s;
    d->stages_known += s != NULL;
    if (s)
        trp_driver_count_stage(d, s, true);
    if (s && s->map)
        trp_driver_need_files(d);
}

void trp_driver_learn_stages(trp_driver *d)
{
    uint32_t first = d->nstages, n = trp_engine_stages(d->engine);
    if (first >= n)
        return;
    if (!TRP_ARRAY_RESERVE(d->stages, d->stages_cap, n)) {
        trp_perform_out_of_memory(d);
        return;
    }
    while (d->nstages < n)
        learn(d, d->nstages);
    for (uint32_t i = first; i < n; i++)
        if (d->stages[i])
            trp_perform_log_job(d, d->stages[i]->job);
}

/* ---- INPUTS ---- */

/* What the message has of locations: borrowed. */
struct places {
    struct trp_location *v;
    uint32_t n, cap;
};

/* Outputs of one location mostly stand side by side. */
static uint32_t place_of(struct places *p, const struct trp_location *l)
{
    for (uint32_t i = p->n; i-- > 0;)
        if (p->v[i].number == l->number && strcmp(p->v[i].host, l->host) == 0)
            return i;
    if (!TRP_ARRAY_GROW(p->v, p->n, p->cap))
        return TRP_NONE;
    p->v[p->n] = *l;
    return p->n++;
}

/* An output that is missing by now has no attempt: who reads it will say so. */
static bool fill_input(trp_driver *d, struct trp_input *in, uint32_t dataset,
                       struct places *places)
{
    static char none[] = "";
    struct trp_input_view v;
    in->dataset = dataset;
    in->nmaps = trp_engine_inputs(d->engine, dataset);
    in->maps = calloc(in->nmaps ? in->nmaps : 1, sizeof *in->maps);
    for (uint32_t i = 0; in->maps && i < in->nmaps; i++) {
        bool there = trp_engine_input(d->engine, dataset, i, &v) == 0;
        const struct trp_location nowhere = {
            .number = TRP_NONE,
            .host = (char *)(uintptr_t)(there ? v.host : ""),
            .folder = none};
        const struct trp_location *l =
            there ? trp_driver_location_of(d, dataset, i, v.attempt.n) : NULL;
        if (l)
            trp_driver_awaits(d, l->number);
        in->maps[i].location = place_of(places, l ? l : &nowhere);
        in->maps[i].attempt = there ? v.attempt.n : TRP_INPUT_MISSING;
        if (in->maps[i].location == TRP_NONE)
            return false;
    }
    return in->maps != NULL;
}

static bool make_inputs(trp_driver *d, struct trp_driver_stage *s)
{
    struct places places = {0};
    struct trp_stage_inputs in = {.stage = s->id, .stage_attempt = s->attempt};
    bool ok = (in.inputs = calloc(s->nparents, sizeof *in.inputs)) != NULL;
    for (uint32_t i = 0; ok && i < s->nparents; i++) {
        struct trp_stage_view v;
        if (trp_engine_stage(d->engine, s->parents[i], &v) < 0 || !v.map)
            continue;
        ok = fill_input(d, &in.inputs[in.ninputs++], v.dataset, &places);
    }
    in.locations = places.v;
    in.nlocations = places.n;
    trp_buf_clear(&s->inputs);
    if (ok)
        trp_stage_inputs_put(&s->inputs, &in);
    for (uint32_t i = 0; i < in.ninputs; i++)
        free(in.inputs[i].maps);
    free(in.inputs);
    free(places.v);
    return ok && !s->inputs.failed;
}

const struct trp_buf *trp_driver_inputs(trp_driver *d, struct trp_driver_stage *s,
                                        trp_error *err)
{
    if (s->dataset == TRP_NONE || !s->nparents)
        return NULL;
    if (s->inputs.size && s->inputs_of == s->attempt)
        return &s->inputs;
    if (!make_inputs(d, s)) {
        trp_buf_free(&s->inputs);
        trp_error_set(err, TRP_ENOMEM, "out of memory for the places of map outputs");
        return NULL;
    }
    s->inputs_of = s->attempt;
    return &s->inputs;
}

/* ---- ends ---- */

static bool take_sizes(struct trp_end *end, struct trp_task_end *ret)
{
    uint64_t *sizes;
    if (trp_sizes_get(end->extra, end->extra_size, &sizes, &ret->nsizes) < 0)
        return false;
    ret->sizes = sizes;
    end->extra = NULL;
    end->extra_size = 0;
    return true;
}

/* Those whose outputs are still the ones that were looked for. */
static void take_others(const trp_driver *d, struct trp_fetch_end *f,
                        struct trp_fetch_source *ret)
{
    uint32_t *maps = f->nmore ? malloc(f->nmore * sizeof *maps) : NULL;
    for (uint32_t i = 0; maps && i < f->nmore; i++) {
        struct trp_input_view v;
        const struct trp_location *at =
            trp_driver_location_of(d, f->dataset, f->more[i].map, f->more[i].attempt);
        bool moved = f->location != TRP_NONE && at && at->number != f->location;
        if (!moved &&
            trp_engine_input(d->engine, f->dataset, f->more[i].map, &v) == 0 &&
            v.attempt.n == f->more[i].attempt)
            maps[ret->nmore++] = f->more[i].map;
    }
    ret->more = maps;
    free(f->more);
}

/* Nobody serves that location: all of the dataset that lies there is gone. */
static void take_all_there(const trp_driver *d, uint32_t dataset,
                           const struct trp_location *at, struct trp_fetch_source *ret)
{
    const uint32_t n = trp_engine_inputs(d->engine, dataset);
    uint32_t *maps = calloc(n ? n : 1, sizeof *maps);
    free((void *)(uintptr_t)ret->more);
    ret->nmore = 0;
    for (uint32_t i = 0; maps && i < n; i++) {
        struct trp_input_view v;
        if (i != ret->map && trp_engine_input(d->engine, dataset, i, &v) == 0 &&
            trp_driver_location_of(d, dataset, i, v.attempt.n) == at)
            maps[ret->nmore++] = i;
    }
    ret->more = maps;
}

static bool take_fetch(trp_driver *d, struct trp_end *end, struct trp_task_end *ret)
{
    struct trp_fetch_end f;
    if (trp_fetch_end_get(end->extra, end->extra_size, &f) < 0)
        return false;
    ret->from = trp_engine_blame(d->engine, f.dataset, f.map, f.attempt);
    const struct trp_location *at =
        trp_driver_location_of(d, f.dataset, f.map, f.attempt.n);
    if (f.location != TRP_NONE && at && at->number != f.location) {
        /* It was moved, and nobody is to blame, but that those there had to go. */
        const struct trp_driver_location *was =
            f.location < d->nlocations ? &d->locations[f.location] : NULL;
        ret->from.map = TRP_NONE;
        ret->from.executor.n =
            was && !trp_record_of(d, was->last) ? was->last : TRP_NONE;
        at = NULL;
    }
    take_others(d, &f, &ret->from);
    const struct trp_driver_stage *m =
        ret->from.stage.n == TRP_NONE ? NULL : trp_driver_stage_of(d, ret->from.stage);
    if (snprintf(d->fetch_text, sizeof d->fetch_text, "%.*s%s%s%s", (int)f.size, f.text,
                 m ? " (stage " : "", m ? m->name : "", m ? ")" : "") < 0)
        return false;
    d->fetch = (struct trp_event_fetch){.shuffle = f.dataset,
                                        .map_index = f.map,
                                        .map = f.attempt,
                                        .executor = ret->from.executor,
                                        .host = at ? at->host : ""};
    if (at && trp_driver_unserved(d, at))
        take_all_there(d, f.dataset, at, &ret->from);
    ret->from.text = d->fetch_text;
    end->extra = (const uint8_t *)d->fetch_text;
    end->extra_size = (uint32_t)strlen(d->fetch_text);
    return true;
}

bool trp_driver_take_outputs(trp_driver *d, struct trp_end *end,
                             struct trp_task_end *ret)
{
    ret->sizes = NULL;
    ret->nsizes = 0;
    if (end->status == TRP_END_FETCH)
        return take_fetch(d, end, ret);
    if (end->status != TRP_END_SUCCESS || !end->extra_size)
        return true;
    struct trp_attempt_view a;
    const struct trp_driver_stage *s = trp_engine_attempt(d->engine, end->attempt, &a)
                                           ? trp_driver_stage_of(d, a.stage)
                                           : NULL;
    return !s || !s->map || take_sizes(end, ret);
}

void trp_driver_outputs_done(struct trp_task_end *ended)
{
    free((void *)(uintptr_t)ended->sizes);
    free((void *)(uintptr_t)ended->from.more);
    ended->from.more = NULL;
    ended->from.nmore = 0;
    ended->sizes = NULL;
    ended->nsizes = 0;
}

/* ---- datasets ---- */

int trp_driver_dataset(trp_driver *d, const struct trp_dataset_spec *spec,
                       uint32_t *ret_id, trp_error *err)
{
    struct trp_event ev = {.kind = TRP_EVENT_DATASET, .dataset = {.spec = spec}};
    trp_driver_enter(d);
    int rc = trp_driver_note_kept(d, spec, err);
    bool noted = rc == 0;
    if (noted)
        rc = trp_driver_try_step(d, &ev, err);
    if (rc == 0) {
        trp_driver_perform(d);
        *ret_id = d->ndatasets++;
    } else if (noted) {
        trp_driver_forget_kept(d, d->ndatasets);
    }
    trp_driver_leave(d);
    return rc;
}
