/*
 * Jobs are computed when they are waited for, each task by itself, the last first.
 */
#include "fake_driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "data/block_file.h"
#include "os/tree.h"
#include "wire/map_output.h"

enum { FAKE_TRIES = 4 };

struct trp_driver fake;

/* Every attempt may commit. */
static int fake_sync(const struct trp_task_info *info, enum trp_sync_kind kind,
                     const void *message, uint32_t size, uint8_t **ret_reply,
                     size_t *ret_size)
{
    struct trp_buf b = {0};
    (void)message;
    (void)size;
    g_assert_cmpint(kind, ==, TRP_SYNC_COMMIT);
    trp_synced_put(&b, &(struct trp_synced){.attempt = info->attempt});
    *ret_reply = b.data;
    *ret_size = b.size;
    return 0;
}

static int fake_blocks_folder(void *context)
{
    (void)context;
    return open(fake.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int trp_driver_open(const char *run_dir, trp_driver **ret_driver,
                    trp_profiles **ret_profiles, trp_error *err)
{
    (void)run_dir;
    struct trp_profile_defaults defaults;
    trp_options_profile_defaults(NULL, &defaults);
    fake = (struct trp_driver){.memory = 1 << 20};
    fake.folder = g_dir_make_tmp("fake-XXXXXX", NULL);
    fake.blocks = trp_block_store_new(fake_blocks_folder, NULL);
    trp_block_store_pool(fake.blocks, 64 << 20);
    fake.accumulators = trp_accumulators_new();
    *ret_driver = &fake;
    return trp_profiles_new(&defaults, NULL, ret_profiles, err);
}

int trp_driver_open_static(const char *program, int started,
                           const struct trp_function_runner *runner,
                           trp_driver **ret_driver, trp_profiles **ret_profiles,
                           trp_error *err)
{
    (void)program;
    (void)started;
    (void)runner;
    return trp_driver_open("", ret_driver, ret_profiles, err);
}

int trp_executor_main(int *argc, char ***argv, const struct trp_function_runner *runner)
{
    (void)argc;
    (void)argv;
    (void)runner;
    return 0;
}

int trp_driver_profile_added(trp_driver *d, trp_profile_id id, trp_error *err)
{
    (void)id;
    (void)err;
    d->profiles++;
    return 0;
}

/* Behind a kept dataset are those that it reads. */
static void fake_parents(trp_driver *d, struct fake_dataset *f,
                         const struct trp_dataset_spec *spec)
{
    const struct trp_dataset_parent *p = spec->parents;
    GArray *all = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    GString *reads = g_string_new(NULL);
    for (uint32_t i = 0; i < spec->nparents; i++) {
        g_assert_cmpuint(p[i].dataset, <, d->ndatasets);
        const struct fake_dataset *kept = &d->datasets[p[i].dataset];
        if (p[i].shuffle) {
            g_array_append_val(all, p[i].dataset);
            continue;
        }
        const uint32_t n = p[i].nfirst ? p[i].nfirst - 1 : kept->partitions;
        g_assert_true(kept->kept);
        g_assert_cmpuint(p[i].begin + n, <=, spec->partitions);
        g_assert_true(!p[i].nfirst ||
                      (p[i].first[0] == 0 && p[i].first[n] <= kept->partitions));
        g_string_append_printf(reads, "%u from %u%s", p[i].dataset, p[i].begin,
                               p[i].nfirst ? ":" : "");
        for (uint32_t k = 0; k < p[i].nfirst; k++)
            g_string_append_printf(reads, " %u", p[i].first[k]);
        g_string_append(reads, "; ");
        g_array_append_vals(all, kept->parents, kept->nparents);
    }
    f->nparents = all->len;
    f->parents = (uint32_t *)(void *)g_array_free(all, FALSE);
    f->reads = g_string_free(reads, FALSE);
}

void trp_driver_shares_files(trp_driver *d)
{
    (void)d;
}

void trp_driver_unpersist(trp_driver *d, uint32_t dataset)
{
    g_assert_true(d->datasets[dataset].kept);
    trp_block_drop(d->blocks, dataset);
    d->unpersisted++;
}

void trp_driver_dataset_free(trp_driver *d, uint32_t dataset)
{
    struct fake_dataset *f = &d->datasets[dataset];
    g_assert_false(f->freed);
    for (uint32_t i = dataset + 1; i < d->ndatasets; i++)
        for (uint32_t k = 0; !d->datasets[i].freed && k < d->datasets[i].nparents; k++)
            g_assert_cmpuint(d->datasets[i].parents[k], !=, dataset);
    f->freed = TRUE;
    trp_block_files_remove(d->folder, &dataset, 1);
    if (f->kept)
        trp_block_drop(d->blocks, dataset);
    d->freed++;
}

void trp_driver_keeps(trp_driver *d, uint32_t dataset, unsigned level)
{
    g_assert_true(d->datasets[dataset].kept);
    g_assert_cmpuint(level, >, 0);
}

int trp_driver_dataset(trp_driver *d, const struct trp_dataset_spec *spec,
                       uint32_t *ret_id, trp_error *err)
{
    (void)err;
    g_assert_cmpuint(d->ndatasets, <, FAKE_DATASETS);
    struct fake_dataset *f = &d->datasets[d->ndatasets];
    GString *places = g_string_new("");
    for (uint32_t t = 0, i = 0; spec->nprefer && t < spec->partitions; t++) {
        for (uint32_t first = i; i < spec->nprefer && spec->prefer[i].partition == t;
             i++)
            g_string_append_printf(places, "%s%s", i > first ? " " : "",
                                   spec->prefer[i].host);
        g_string_append_c(places, '|');
    }
    *f = (struct fake_dataset){.name = g_strdup(spec->name),
                               .places = g_string_free(places, FALSE),
                               .partitions = spec->partitions,
                               .kept = spec->cached,
                               .profile = spec->profile,
                               .barrier = spec->barrier};
    fake_parents(d, f, spec);
    *ret_id = d->ndatasets++;
    return 0;
}

int trp_driver_submit(trp_driver *d, const struct trp_job_spec *spec,
                      const struct trp_work *work, trp_job_id *ret_job, trp_error *err)
{
    (void)err;
    g_assert_true(spec->is_dataset);
    g_assert_cmpuint(spec->dataset, <, d->ndatasets);
    d->places = d->datasets[spec->dataset].places;
    d->profile = d->datasets[spec->dataset].profile;
    d->all = g_renew(struct fake_job, d->all, d->jobs + 1);
    d->all[d->jobs] = (struct fake_job){.work = *work,
                                        .dataset = spec->dataset,
                                        .name = g_strdup(spec->name),
                                        .pool = g_strdup(spec->pool)};
    ret_job->n = d->jobs++;
    return 0;
}

void fake_pool(uint64_t bytes)
{
    trp_block_store_free(fake.blocks);
    fake.blocks = trp_block_store_new(fake_blocks_folder, NULL);
    trp_block_store_pool(fake.blocks, bytes);
}

uint32_t trp_driver_accumulator(trp_driver *d, const char *name)
{
    return trp_accumulators_add(d->accumulators, name);
}

int64_t trp_driver_accumulated(trp_driver *d, uint32_t id)
{
    return trp_accumulators_value(d->accumulators, id);
}

const char *trp_driver_shared(const trp_driver *d)
{
    return d->folder;
}

void trp_driver_enter(trp_driver *d)
{
    d->entered++;
}

void trp_driver_leave(trp_driver *d)
{
    g_assert_cmpuint(d->entered--, >, 0);
}

static void fake_gone(struct fake_job *j)
{
    if (!j->gone)
        j->work.gone(j->work.context);
    j->gone = TRUE;
}

bool trp_driver_over(trp_driver *d, trp_job_id job)
{
    return d->all[job.n].cancelled;
}

int trp_driver_wait_any(trp_driver *d, const trp_job_id *jobs, uint32_t n,
                        int64_t timeout_ns)
{
    for (uint32_t i = 0; timeout_ns && i < n; i++)
        if (jobs[i].n < d->jobs)
            return (int)i; /* it is computed when it is waited for */
    return TRP_ETIME;
}

void trp_driver_cancel(trp_driver *d, trp_job_id job)
{
    d->all[job.n].cancelled = TRUE;
}

void trp_driver_drop(trp_driver *d, trp_job_id job)
{
    fake_gone(&d->all[job.n]);
}

int trp_driver_cancel_stage(trp_driver *d, const char *name)
{
    int rc = TRP_ENOENT;
    for (uint32_t i = 0; i < d->jobs; i++) {
        if (d->all[i].gone || strcmp(d->datasets[d->all[i].dataset].name, name) != 0)
            continue;
        d->all[i].cancelled = TRUE;
        rc = 0;
    }
    return rc;
}

/* Where the outputs lie that a dataset reads. */
static struct trp_stage_inputs *fake_inputs(trp_driver *d, const struct fake_dataset *f)
{
    char name[] = "here", none[] = "";
    struct trp_location here = {.number = TRP_NONE, .host = name, .folder = none};
    struct trp_stage_inputs in = {
        .nlocations = 1, .locations = &here, .ninputs = f->nparents};
    struct trp_buf b = {0};
    in.inputs = g_new0(struct trp_input, f->nparents + 1);
    for (uint32_t i = 0; i < f->nparents; i++) {
        const struct fake_dataset *p = &d->datasets[f->parents[i]];
        in.inputs[i].dataset = f->parents[i];
        in.inputs[i].nmaps = p->partitions;
        in.inputs[i].maps = g_new0(struct trp_input_map, p->partitions);
        for (uint32_t k = 0; k < p->partitions; k++)
            in.inputs[i].maps[k].attempt = p->outputs[k];
    }
    trp_stage_inputs_put(&b, &in);
    for (uint32_t i = 0; i < f->nparents; i++)
        g_free(in.inputs[i].maps);
    g_free(in.inputs);
    struct trp_stage_inputs *ret;
    g_assert_cmpint(trp_stage_inputs_get(b.data, b.size, &ret), ==, 0);
    trp_buf_free(&b);
    return ret;
}

static void fake_map_again(trp_driver *d, uint32_t dataset, uint32_t task);

/* Runs one attempt and tells its verdict; true when there is to be another one. */
static gboolean fake_attempt(trp_driver *d, uint32_t dataset, void *stage,
                             uint32_t task, uint32_t number, int *ret_status)
{
    struct fake_dataset *f = &d->datasets[dataset];
    struct trp_launch l = {.task = task};
    d->work.launch(d->work.context, dataset, task, number, &l);
    g_autofree uint8_t *input = g_malloc(l.extra_size + 1);
    if (l.extra_size)
        memcpy(input + 1, l.extra, l.extra_size);
    volatile int killed = 0;
    struct trp_stage_inputs *inputs = fake_inputs(d, f);
    struct trp_task_info info = {.attempt.n = (uint64_t)d->attempts++ << 32,
                                 .sync = fake_sync,
                                 .task = task,
                                 .ntasks = f->partitions,
                                 .number = number,
                                 .cpus = 1,
                                 .host = "here",
                                 .resources = d->resources,
                                 .memory = d->memory,
                                 .map_outputs = d->folder,
                                 .blocks = d->blocks,
                                 .inputs = inputs,
                                 .killed = &killed};
    struct trp_function_result r;
    trp_function_result_clear(&r);
    trp_runner.run(stage, &info, input + 1, l.extra_size, &r);
    d->spilled += r.data.spilled_bytes;
    d->hits += r.data.cache_hits;
    d->misses += r.data.cache_misses;
    trp_stage_inputs_free(inputs);
    if (r.status && r.fetch.failed) { /* it counts nothing */
        fake_map_again(d, r.fetch.dataset, r.fetch.map);
        for (uint32_t i = 0; i < r.fetch.nmore; i++)
            fake_map_again(d, r.fetch.dataset, r.fetch.more[i].map);
        free(r.fetch.more);
        return fake_attempt(d, dataset, stage, task, number, ret_status);
    }
    struct trp_action verdict = {.kind = TRP_ACTION_TASK_END};
    if (r.mistake)
        g_snprintf(d->failed, sizeof d->failed, "a mistake in the program: %s",
                   r.error);
    else if (r.status)
        g_snprintf(d->failed, sizeof d->failed, "exit status %d: %s", (int)r.status,
                   r.error);
    verdict.task_end.task = task;
    verdict.task_end.number = number;
    verdict.task_end.status = !r.status   ? TRP_END_SUCCESS
                              : r.mistake ? TRP_END_MISTAKE
                                          : TRP_END_EXIT;
    verdict.task_end.code = r.status;
    verdict.task_end.counted = r.status != 0;
    verdict.task_end.retried = r.status && !r.mistake && number + 1 < FAKE_TRIES;
    verdict.task_end.failures = r.status ? number + 1 : number;
    if (r.status == 0)
        d->records_in += r.records_in;
    struct trp_end end = {.attempt = info.attempt,
                          .code = r.status,
                          .in_file = r.in_file,
                          .file = r.file,
                          .records_in = r.records_in,
                          .records_out = r.records_out,
                          .extra = r.status ? (uint8_t *)r.error : r.result,
                          .extra_size =
                              r.status ? (uint32_t)strlen(r.error) : r.result_size};
    if (dataset != d->dataset && r.status == 0) { /* a map output */
        uint64_t *sizes;
        uint32_t n;
        g_assert_cmpint(trp_sizes_get(r.result, r.result_size, &sizes, &n), ==, 0);
        free(sizes);
        f->outputs[task] = info.attempt.n;
        end.extra_size = 0;
    }
    d->work.task_ended(d->work.context, dataset, &verdict, &end);
    for (int i = 0; r.status == 0 && i < 2; i++) {
        const struct trp_event_update *updates;
        g_assert_cmpint(
            trp_accumulators_take(d->accumulators, r.added, r.nadded, &updates), >=, 0);
    }
    free(r.added);
    if (r.status == 0)
        d->work.task_ended(d->work.context, dataset, &verdict, &end);
    free(r.fetch.more);
    free(r.result);
    *ret_status = r.status;
    return verdict.task_end.retried;
}

static int fake_task(trp_driver *d, uint32_t dataset, void *stage, uint32_t task,
                     trp_error *err)
{
    uint32_t number = 0;
    int status;
    char times[48];
    while (fake_attempt(d, dataset, stage, task, number++, &status))
        ;
    return status == 0
               ? 0
               : trp_error_set(err, TRP_EFAILED, "stage %s: task %u %s %s",
                               d->datasets[dataset].name, task,
                               trp_failed_text(number, d->failed, times, sizeof times),
                               d->failed);
}

static void *fake_open(trp_driver *d, uint32_t dataset, trp_error *err)
{
    struct trp_stage_message m = {0};
    if (d->work.stage_message(d->work.context, dataset, &m, err) < 0)
        return NULL;
    d->body_size = m.body_size;
    return trp_runner.stage_open(m.body, m.body_size, err);
}

static void fake_map_again(trp_driver *d, uint32_t dataset, uint32_t task)
{
    trp_error err;
    void *stage = fake_open(d, dataset, &err);
    g_assert_nonnull(stage);
    d->maps_again++;
    g_assert_cmpint(fake_task(d, dataset, stage, task, &err), ==, 0);
    trp_runner.stage_close(stage);
}

static int fake_compute(trp_driver *d, uint32_t dataset, trp_error *err)
{
    struct fake_dataset *f = &d->datasets[dataset];
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < f->nparents; i++)
        if (!d->datasets[f->parents[i]].outputs)
            rc = fake_compute(d, f->parents[i], err);
    if (rc < 0)
        return rc;
    void *stage = fake_open(d, dataset, err);
    if (!stage)
        return TRP_EFAILED;
    gboolean map = dataset != d->dataset;
    if (map)
        f->outputs = g_new0(uint64_t, f->partitions);
    for (uint32_t i = 0; rc == 0 && i < f->partitions; i++)
        rc = fake_task(d, dataset, stage, map ? f->partitions - 1 - i : i, err);
    if (map && rc < 0)
        g_clear_pointer(&f->outputs, g_free);
    trp_runner.stage_close(stage);
    return rc;
}

int trp_driver_wait(trp_driver *d, trp_job_id job, trp_error *err)
{
    int rc;
    if (d->all[job.n].cancelled) {
        rc = trp_error_set(err, TRP_ECANCELLED, "Job %s cancelled", d->all[job.n].name);
    } else {
        d->work = d->all[job.n].work;
        d->dataset = d->all[job.n].dataset;
        rc = fake_compute(d, d->dataset, err);
    }
    fake_gone(&d->all[job.n]);
    return rc;
}

int trp_driver_stopped(const trp_driver *d)
{
    return d->stopped;
}

int trp_driver_end(trp_driver *d, int status, bool quiet)
{
    (void)quiet;
    d->ends++;
    d->end_status = status;
    trp_block_store_free(d->blocks);
    size_t budget = SIZE_MAX;
    trp_tree_remove(AT_FDCWD, d->folder, &budget);
    g_clear_pointer(&d->folder, g_free);
    g_assert_cmpuint(d->entered, ==, 0);
    for (uint32_t i = 0; i < d->jobs; i++) {
        fake_gone(&d->all[i]);
        g_free(d->all[i].name);
        g_free(d->all[i].pool);
    }
    g_clear_pointer(&d->all, g_free);
    trp_accumulators_free(d->accumulators);
    for (uint32_t i = 0; i < d->ndatasets; i++) {
        g_free(d->datasets[i].name);
        g_free(d->datasets[i].places);
        g_free(d->datasets[i].reads);
        g_free(d->datasets[i].parents);
        g_free(d->datasets[i].outputs);
    }
    d->ndatasets = 0;
    return status;
}

void trp_driver_exits(int status)
{
    (void)status;
}

trp_context *fake_init(void)
{
    trp_context *ctx;
    g_setenv("TROUPE_DRIVER", "/nowhere", TRUE);
    int argc = 0;
    char *none[] = {NULL}, **argv = none;
    g_assert_cmpint(trp_init(&argc, &argv, &ctx), ==, 0);
    return ctx;
}

const trp_batch *collected(trp_dataset *d)
{
    trp_rows *rows;
    if (trp_collect(d, &rows) < 0)
        g_error("%s", trp_error_text(trp_context_current()));
    return trp_rows_batch(rows); /* freed by trp_finalize */
}

void assert_error(trp_context *ctx, const char *part)
{
    if (!strstr(trp_error_text(ctx), part))
        g_error("\"%s\" says nothing of \"%s\"", trp_error_text(ctx), part);
}
