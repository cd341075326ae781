/*
 * Actions. Each begins a job. The form that waits (trp_count) begins the job as the
 * form that does not (trp_count_async), and then waits for it. Partitions are reduced
 * where they are, and their values are combined here in partition order, so a result
 * does not depend on what ran where or when.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/job.h"

static trp_job *no_dataset(const char *what)
{
    trp_action_no_dataset(what);
    return NULL;
}

/* The action cannot be begun; the context has why. */
static trp_job *refused(trp_dataset *d, int rc)
{
    trp_action_note(d, rc);
    return NULL;
}

/* The function of an action as a step; its argument is only borrowed. */
static int end_step(trp_context *ctx, const char *what, void (*f)(void),
                    const void *arg, size_t arg_size, struct trp_step *ret)
{
    const char *name = f ? trp_registry_name(f) : NULL;
    if (!name)
        return trp_context_fail(ctx, TRP_EINVAL,
                                "%s: the function is not known by a name; write "
                                "TRP_FUNCTION(name) or TRP_COMBINE(name) before its "
                                "definition",
                                what);
    if (arg_size > TRP_ARGUMENT_MAX || (arg_size && !arg))
        return trp_context_fail(ctx, TRP_EINVAL,
                                "%s: %zu bytes of argument for %s; there may be 0 to "
                                "%d",
                                what, arg_size, name, TRP_ARGUMENT_MAX);
    *ret = (struct trp_step){
        .name = name, .arg = arg_size ? arg : NULL, .arg_size = arg_size};
    return 0;
}

/* ---- begun ---- */

trp_job *trp_count_async(trp_dataset *d, const char *pool)
{
    const struct trp_chain_end end = {.kind = TRP_DO_COUNT};
    return d ? trp_job_begin(d, &end, pool) : no_dataset("trp_count");
}

trp_job *trp_collect_async(trp_dataset *d, const char *pool)
{
    const struct trp_chain_end end = {.kind = TRP_DO_COLLECT};
    return d ? trp_job_begin(d, &end, pool) : no_dataset("trp_collect");
}

static trp_job *begin_reduce(trp_dataset *d, void (*f)(void), bool tasked,
                             const void *arg, size_t arg_size, const char *pool)
{
    struct trp_chain_end end = {.kind = TRP_DO_REDUCE, .tasked = tasked};
    if (!d)
        return no_dataset("trp_reduce");
    int rc = end_step(d->context, "trp_reduce", f, arg, arg_size, &end.step);
    return rc < 0 ? refused(d, rc) : trp_job_begin(d, &end, pool);
}

trp_job *trp_reduce_async(trp_dataset *d, trp_combine f, const void *arg,
                          size_t arg_size, const char *pool)
{
    return begin_reduce(d, (void (*)(void))f, false, arg, arg_size, pool);
}

trp_job *trp_foreach_async(trp_dataset *d, trp_function f, const void *arg,
                           size_t arg_size, const char *pool)
{
    struct trp_chain_end end = {.kind = TRP_DO_FOREACH};
    if (!d)
        return no_dataset("trp_foreach");
    int rc = end_step(d->context, "trp_foreach", (void (*)(void))f, arg, arg_size,
                      &end.step);
    return rc < 0 ? refused(d, rc) : trp_job_begin(d, &end, pool);
}

static trp_job *begin_save(trp_dataset *d, const char *dir, const char *pool,
                           bool binary)
{
    const char *what = binary ? "trp_save_binary" : "trp_save";
    if (!d)
        return no_dataset(what);
    trp_context *ctx = d->context;
    if (!dir || !*dir)
        return refused(d,
                       trp_context_fail(ctx, TRP_EINVAL, "%s: no folder given", what));
    if (mkdir(dir, 0777) != 0)
        return refused(
            d, trp_context_fail(
                   ctx, errno == EEXIST ? TRP_EEXIST : TRP_ESYSTEM,
                   "%s: cannot make the folder %s: %s%s", what, dir, strerror(errno),
                   errno == EEXIST ? "; give one that is not there yet" : ""));
    char *whole = realpath(dir, NULL);
    if (!whole)
        return refused(d, trp_context_fail(ctx, TRP_ESYSTEM, "%s: %s: %s", what, dir,
                                           strerror(errno)));
    const struct trp_chain_end end = {
        .kind = TRP_DO_SAVE, .dir = whole, .binary = binary};
    trp_job *j = trp_job_begin(d, &end, pool);
    free(whole);
    return j;
}

trp_job *trp_save_async(trp_dataset *d, const char *dir, const char *pool)
{
    return begin_save(d, dir, pool, false);
}

trp_job *trp_save_binary_async(trp_dataset *d, const char *dir, const char *pool)
{
    return begin_save(d, dir, pool, true);
}

/* ---- waited for ---- */

int trp_count(trp_dataset *d, uint64_t *ret_count)
{
    trp_job *j = trp_count_async(d, NULL);
    int rc = trp_job_wait(j, NULL, NULL);
    if (rc == 0 && ret_count)
        *ret_count = j->count;
    trp_job_free(j);
    return rc;
}

int trp_foreach(trp_dataset *d, trp_function f, const void *arg, size_t arg_size)
{
    trp_job *j = trp_foreach_async(d, f, arg, arg_size, NULL);
    int rc = trp_job_wait(j, NULL, NULL);
    trp_job_free(j);
    return rc;
}

int trp_save(trp_dataset *d, const char *dir)
{
    trp_job *j = trp_save_async(d, dir, NULL);
    int rc = trp_job_wait(j, NULL, NULL);
    trp_job_free(j);
    return rc;
}

int trp_save_binary(trp_dataset *d, const char *dir)
{
    trp_job *j = trp_save_binary_async(d, dir, NULL);
    int rc = trp_job_wait(j, NULL, NULL);
    trp_job_free(j);
    return rc;
}

int trp_collect(trp_dataset *d, trp_rows **ret_rows)
{
    if (d && !ret_rows)
        return trp_action_note(d, trp_context_fail(d->context, TRP_EINVAL,
                                                   "trp_collect: nowhere to put the "
                                                   "rows"));
    trp_job *j = trp_collect_async(d, NULL);
    int rc = trp_job_wait(j, NULL, NULL);
    if (rc == 0) {
        *ret_rows = j->rows;
        j->rows = NULL;
    }
    trp_job_free(j);
    return rc;
}

static int reduce(trp_dataset *d, void (*f)(void), bool tasked, const void *arg,
                  size_t arg_size, void **ret_value, size_t *ret_size)
{
    if (d && (!ret_value || !ret_size))
        return trp_action_note(d, trp_context_fail(d->context, TRP_EINVAL,
                                                   "trp_reduce: nowhere to put the "
                                                   "value"));
    trp_job *j = begin_reduce(d, f, tasked, arg, arg_size, NULL);
    int rc = trp_job_wait(j, NULL, NULL);
    if (rc == 0) {
        *ret_value = j->value;
        *ret_size = j->size;
        j->value = NULL;
    }
    trp_job_free(j);
    return rc;
}

int trp_reduce(trp_dataset *d, trp_combine f, const void *arg, size_t arg_size,
               void **ret_value, size_t *ret_size)
{
    return reduce(d, (void (*)(void))f, false, arg, arg_size, ret_value, ret_size);
}

int trp_reduce_with_task(trp_dataset *d, trp_task_combine f, const void *arg,
                         size_t arg_size, void **ret_value, size_t *ret_size)
{
    return reduce(d, (void (*)(void))f, true, arg, arg_size, ret_value, ret_size);
}

/* ---- the value of a reduce ---- */

static int combine_parts(trp_job *j, struct trp_reducer *r)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < j->dataset->partitions; i++) {
        if (!j->parts[i].any)
            continue;
        if ((rc = trp_part_load(j, i)) < 0)
            return rc;
        rc = trp_reducer_add(r, j->parts[i].data, j->parts[i].size);
        trp_part_free(j, i);
    }
    if (rc == 0)
        return 0;
    return trp_context_fail(j->context, TRP_EFAILED,
                            "stage %s: combining the partitions on the driver: %s %s "
                            "(code %d)",
                            j->context->told[j->told]->name, j->end.step.name,
                            r->failed ? r->failed : "failed", rc);
}

int trp_reduce_take(trp_job *j)
{
    struct trp_reducer r;
    trp_reducer_init(&r);
    trp_reducer_reset(&r, (trp_combine)trp_registry_function(j->end.step.name),
                      j->end.step.arg);
    r.tasked = j->end.tasked;
    int rc = combine_parts(j, &r);
    const void *value = rc == 0 ? trp_reducer_value(&r, &j->size) : NULL;
    j->value = value ? malloc(j->size + 1) : NULL;
    if (j->value && j->size)
        memcpy(j->value, value, j->size);
    if (value && !j->value)
        rc = trp_context_fail(j->context, TRP_ENOMEM, "out of memory for the value");
    if (!j->value)
        j->size = 0;
    trp_reducer_free(&r);
    return rc;
}
