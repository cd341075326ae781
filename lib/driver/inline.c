/*
 * Map outputs lie in a private folder, which goes with the process or, if that is
 * killed, with the next one of its user that makes one.
 */
#include "driver/inline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/option_places.h"
#include "conf/site.h"
#include "core/base/array.h"
#include "data/block_file.h"
#include "events/event_log.h"
#include "os/private_folder.h"
#include "wire/map_output.h"

struct inline_dataset {
    char *name;
    uint32_t partitions, nparents;
    uint32_t *parents;
    trp_profile_id profile;
    bool barrier;
    uint64_t *outputs; /* by task: the attempt that made it; NULL: none are there */
    bool needed;       /* by the job that runs */
};

struct trp_inline {
    const struct trp_function_runner *runner;
    trp_options *options;
    struct trp_site *site;
    trp_profiles *profiles;
    struct inline_dataset *datasets;
    uint32_t ndatasets, capacity;
    uint32_t attempts; /* so far */
    trp_accumulators *accumulators;
    char host[256];
    char folder[TRP_PRIVATE_FOLDER];
};

bool trp_inline_wanted(void)
{
    const char *said = getenv("TROUPE_INLINE");
    return said && *said && strcmp(said, "0") != 0;
}

static int open_parts(trp_inline *in, trp_error *err)
{
    struct trp_profile_defaults defaults;
    int rc = trp_options_new(&in->options, err);
    if (rc == 0)
        rc = trp_site_load(NULL, &in->site, err);
    if (rc == 0)
        rc = trp_options_from_places(in->options, in->site, NULL, err);
    if (rc == 0)
        rc = trp_options_check(in->options, err);
    if (rc < 0)
        return rc;
    trp_options_profile_defaults(in->options, &defaults);
    rc = trp_profiles_new(&defaults, NULL, &in->profiles, err);
    if (rc == 0)
        rc = trp_private_folder("", in->folder, err);
    if (rc == 0)
        trp_private_folders_sweep(in->folder);
    gethostname(in->host, sizeof(in->host) - 1);
    return rc;
}

int trp_inline_open(const struct trp_function_runner *runner, trp_inline **ret,
                    trp_profiles **ret_profiles, trp_error *err)
{
    trp_inline *in = calloc(1, sizeof(*in));
    if (!in)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    in->runner = runner;
    in->accumulators = trp_accumulators_new();
    int rc = in->accumulators ? open_parts(in, err)
                              : trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (rc < 0) {
        trp_profiles_free(in->profiles);
        trp_inline_end(in);
        return rc;
    }
    *ret = in;
    *ret_profiles = in->profiles;
    return 0;
}

trp_accumulators *trp_inline_accumulators(trp_inline *in)
{
    return in->accumulators;
}

const char *trp_inline_shared(const trp_inline *in)
{
    return in->folder;
}

static void dataset_clear(struct inline_dataset *d)
{
    free(d->name);
    free(d->parents);
    free(d->outputs);
    *d = (struct inline_dataset){0};
}

void trp_inline_end(trp_inline *in)
{
    if (!in)
        return;
    trp_accumulators_free(in->accumulators);
    for (uint32_t i = 0; i < in->ndatasets; i++)
        dataset_clear(&in->datasets[i]);
    free(in->datasets);
    if (in->folder[0])
        trp_private_folder_remove(in->folder);
    trp_site_free(in->site);
    trp_options_free(in->options);
    free(in);
}

/* ---- datasets ---- */

/* Those whose map outputs are read: what a kept dataset reads is read in its place. */
static bool take_parents(const trp_inline *in, struct inline_dataset *d,
                         const struct trp_dataset_spec *spec)
{
    size_t most = 1;
    for (uint32_t i = 0; i < spec->nparents; i++)
        most += 1 + in->datasets[spec->parents[i].dataset].nparents;
    d->parents = malloc(most * sizeof(*d->parents));
    for (uint32_t i = 0; d->parents && i < spec->nparents; i++) {
        const struct trp_dataset_parent *p = &spec->parents[i];
        const struct inline_dataset *kept = &in->datasets[p->dataset];
        if (p->shuffle)
            d->parents[d->nparents++] = p->dataset;
        for (uint32_t k = 0; !p->shuffle && k < kept->nparents; k++)
            d->parents[d->nparents++] = kept->parents[k];
    }
    return d->parents != NULL;
}

int trp_inline_dataset(trp_inline *in, const struct trp_dataset_spec *spec,
                       uint32_t *ret_id, trp_error *err)
{
    if (spec->barrier && spec->partitions > 1)
        return trp_error_set(err, TRP_EINVAL,
                             "a barrier of %u tasks: without executors tasks run one "
                             "after the other, and cannot wait for each other",
                             spec->partitions);
    if (!TRP_ARRAY_GROW(in->datasets, in->ndatasets, in->capacity))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an action");
    struct inline_dataset *d = &in->datasets[in->ndatasets];
    *d = (struct inline_dataset){.name = strdup(spec->name),
                                 .partitions = spec->partitions,
                                 .barrier = spec->barrier,
                                 .profile = spec->has_profile ? spec->profile
                                                              : (trp_profile_id){0}};
    if (!d->name || !take_parents(in, d, spec)) {
        free(d->name);
        free(d->parents);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an action");
    }
    *ret_id = in->ndatasets++;
    return 0;
}

void trp_inline_dataset_free(trp_inline *in, uint32_t dataset)
{
    if (in->datasets[dataset].outputs)
        trp_block_files_remove(in->folder, &dataset, 1);
    dataset_clear(&in->datasets[dataset]);
}

/* ---- one task ---- */

/* Where the outputs lie that a dataset reads; NULL: out of memory. */
static struct trp_stage_inputs *inputs_of(trp_inline *in,
                                          const struct inline_dataset *d)
{
    struct trp_stage_inputs *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->users = 1;
    s->locations = calloc(1, sizeof(*s->locations));
    s->inputs = calloc(d->nparents + 1, sizeof(*s->inputs));
    bool good = s->locations && s->inputs;
    if (good) {
        s->nlocations = 1;
        s->locations[0].number = TRP_NONE; /* this process's own */
        s->locations[0].host = strdup(in->host);
        s->locations[0].folder = strdup("");
        good = s->locations[0].host && s->locations[0].folder;
    }
    for (uint32_t i = 0; good && i < d->nparents; i++) {
        const struct inline_dataset *p = &in->datasets[d->parents[i]];
        struct trp_input *at = &s->inputs[s->ninputs++];
        at->dataset = d->parents[i];
        at->maps = calloc(p->partitions + 1, sizeof(*at->maps));
        good = at->maps != NULL;
        at->nmaps = good ? p->partitions : 0;
        for (uint32_t k = 0; k < at->nmaps; k++)
            at->maps[k].attempt = p->outputs[k];
    }
    if (good)
        return s;
    trp_stage_inputs_free(s);
    return NULL;
}

/* The devices of a task are the first ones: nobody else has any. */
static void put_resources(struct trp_buf *b, const struct trp_resource_profile *p)
{
    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        if (c->task <= 0)
            continue;
        const int64_t whole = trp_amount_units(c->task);
        trp_put_raw(b, c->name, strlen(c->name));
        for (int64_t k = 0; k < (whole ? whole : 1); k++) {
            char address[24];
            int n = snprintf(address, sizeof(address), "%c%lld", k ? ',' : '=',
                             (long long)k);
            trp_put_raw(b, address, (size_t)n);
        }
        trp_put_raw(b, "\n", 1);
    }
    trp_put_u8(b, 0);
}

/* The only task of a stage has all messages when it has its own. */
static int sync_alone(const struct trp_task_info *info, enum trp_sync_kind kind,
                      const void *message, uint32_t size, uint8_t **ret_reply,
                      size_t *ret_size)
{
    struct trp_buf b = {0};
    const struct inline_dataset *d = info->sync_context;
    static const char text[] = "its stage is no barrier stage (trp_barrier)";
    struct trp_synced s = {.attempt = info->attempt};
    if (d->barrier || kind == TRP_SYNC_COMMIT) {
        s.count = kind == TRP_SYNC_ALL_GATHER;
    } else {
        s.status = TRP_ESTATE;
        s.text = (const uint8_t *)text;
        s.text_size = sizeof(text) - 1;
    }
    trp_synced_put(&b, &s);
    if (s.count)
        trp_put_bytes(&b, message, size);
    *ret_reply = b.data;
    *ret_size = b.size;
    return b.failed ? TRP_ENOMEM : 0;
}

/* What all tasks of a stage have in common. */
struct inline_stage {
    uint32_t dataset;
    const char *job;
    const struct trp_work *work;
    void *chain;
    struct trp_stage_inputs *inputs;
    struct trp_buf resources;
};

static int task_failed(const struct inline_stage *s, const char *stage, uint32_t task,
                       const struct trp_function_result *r, trp_error *err)
{
    const enum trp_end_status status = r->fetch.failed ? TRP_END_FETCH
                                       : r->mistake    ? TRP_END_MISTAKE
                                                       : TRP_END_EXIT;
    const struct trp_end end = {.status = (uint8_t)status,
                                .code = r->status,
                                .extra = (const uint8_t *)r->error,
                                .extra_size = (uint32_t)strlen(r->error)};
    const struct trp_action verdict = {
        .kind = TRP_ACTION_TASK_END, .task_end = {.status = status, .code = r->status}
    };
    char failed[48], why[600];
    const bool named = strcmp(s->job, stage) != 0; /* as the driver does */
    trp_end_reason(&verdict, &end, 0, why, sizeof(why));
    return trp_error_set(err, TRP_EFAILED, "%s%s%sstage %s: task %u %s %s",
                         named ? "job " : "", named ? s->job : "", named ? ": " : "",
                         stage, task, trp_failed_text(1, why, failed, sizeof(failed)),
                         why);
}

static int task_succeeded(trp_inline *in, const struct inline_stage *s, uint32_t task,
                          trp_attempt_id attempt, const struct trp_function_result *r,
                          trp_error *err)
{
    const struct trp_event_update *updates;
    const struct trp_action verdict = {
        .kind = TRP_ACTION_TASK_END,
        .task_end = {.task = task, .status = TRP_END_SUCCESS}
    };
    const struct trp_end end = {.attempt = attempt,
                                .status = TRP_END_SUCCESS,
                                .records_out = r->records_out,
                                .extra = r->result,
                                .extra_size = r->result_size,
                                .in_file = r->in_file,
                                .file = r->file};
    s->work->task_ended(s->work->context, s->dataset, &verdict, &end);
    return trp_accumulators_take(in->accumulators, r->added, r->nadded, &updates) < 0
               ? trp_error_set(err, TRP_ENOMEM, "out of memory for accumulators")
               : 0;
}

static int run_task(trp_inline *in, const struct inline_stage *s, uint32_t task,
                    uint64_t *ret_attempt, trp_error *err)
{
    const struct inline_dataset *d = &in->datasets[s->dataset];
    const struct trp_resource_profile *p = trp_profiles_get(in->profiles, d->profile);
    static const int never = 0;
    struct trp_launch l = {.task = task};
    struct trp_function_result r;
    s->work->launch(s->work->context, s->dataset, task, 0, &l);
    const struct trp_task_info info = {
        .attempt.n = (uint64_t)in->attempts++ << 32,
        .stage = s->dataset,
        .task = task,
        .ntasks = d->partitions,
        .cpus = (uint32_t)p->task_cpus,
        .host = in->host,
        .resources = (const char *)s->resources.data,
        .killed = &never,
        .memory = trp_profile_task_memory(
            p, trp_options_number(in->options, "memory.fraction")),
        .map_outputs = in->folder,
        .inputs = s->inputs,
        .sync = sync_alone,
        .sync_context = &in->datasets[s->dataset],
    };
    trp_function_result_clear(&r);
    in->runner->run(s->chain, &info, l.extra, l.extra_size, &r);
    int rc = 0;
    if (r.status)
        rc = task_failed(s, d->name, task, &r, err);
    else
        rc = task_succeeded(in, s, task, info.attempt, &r, err);
    *ret_attempt = info.attempt.n;
    free(r.fetch.more);
    free(r.added);
    free(r.result);
    return rc;
}

/* ---- a job ---- */

static int run_tasks(trp_inline *in, const struct inline_stage *s, trp_error *err)
{
    struct inline_dataset *d = &in->datasets[s->dataset];
    uint64_t *outputs = malloc((d->partitions + 1) * sizeof(*outputs));
    if (!outputs)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    for (uint32_t i = 0; i < d->partitions; i++) {
        int rc = run_task(in, s, i, &outputs[i], err);
        if (rc < 0) {
            free(outputs);
            return rc;
        }
    }
    free(d->outputs);
    d->outputs = outputs;
    return 0;
}

static int run_stage(trp_inline *in, const char *job, uint32_t dataset,
                     const struct trp_work *work, trp_error *err)
{
    const struct inline_dataset *d = &in->datasets[dataset];
    struct inline_stage s = {.dataset = dataset, .job = job, .work = work};
    struct trp_stage_message m = {0};
    int rc = work->stage_message(work->context, dataset, &m, err);
    if (rc < 0)
        return rc;
    s.chain = in->runner->stage_open(m.body, m.body_size, err);
    if (!s.chain)
        return TRP_EFAILED;
    s.inputs = inputs_of(in, d);
    put_resources(&s.resources, trp_profiles_get(in->profiles, d->profile));
    if (s.inputs && !s.resources.failed)
        rc = run_tasks(in, &s, err);
    else
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory for a stage");
    trp_stage_inputs_leave(s.inputs);
    trp_buf_free(&s.resources);
    in->runner->stage_close(s.chain);
    return rc;
}

int trp_inline_job(trp_inline *in, const char *name, uint32_t dataset,
                   const struct trp_work *work, trp_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i <= dataset; i++)
        in->datasets[i].needed = i == dataset;
    for (uint32_t i = dataset + 1; i-- > 0;) {
        const struct inline_dataset *d = &in->datasets[i];
        for (uint32_t k = 0; d->needed && k < d->nparents; k++)
            if (!in->datasets[d->parents[k]].outputs)
                in->datasets[d->parents[k]].needed = true;
    }
    for (uint32_t i = 0; rc == 0 && i <= dataset; i++)
        if (in->datasets[i].needed)
            rc = run_stage(in, name, i, work, err);
    return rc;
}
