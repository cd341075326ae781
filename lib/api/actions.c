/*
 * Actions but collect (rows.c). Partitions are reduced where they are, and their values
 * combined here in partition order, so a result does not depend on what ran where or
 * when.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/stage_run.h"

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
    *ret = (struct trp_step){name, arg_size ? arg : NULL, arg_size};
    return 0;
}

int trp_count(trp_dataset *d, uint64_t *ret_count)
{
    if (!d)
        return trp_action_no_dataset("trp_count");
    struct trp_stage_run a;
    int rc = trp_stage_run(&a, d, TRP_DO_COUNT, NULL, NULL);
    if (rc < 0)
        return rc;
    if (ret_count)
        *ret_count = a.count;
    trp_stage_run_free(&a);
    return trp_action_note(d, 0);
}

int trp_foreach(trp_dataset *d, trp_function f, const void *arg, size_t arg_size)
{
    if (!d)
        return trp_action_no_dataset("trp_foreach");
    struct trp_step step;
    int rc =
        end_step(d->context, "trp_foreach", (void (*)(void))f, arg, arg_size, &step);
    if (rc < 0)
        return trp_action_note(d, rc);
    struct trp_stage_run a;
    rc = trp_stage_run(&a, d, TRP_DO_FOREACH, &step, NULL);
    if (rc < 0)
        return rc;
    trp_stage_run_free(&a);
    return trp_action_note(d, 0);
}

static int combine_parts(struct trp_stage_run *a, trp_combine f, const void *arg,
                         void **ret_value, size_t *ret_size)
{
    struct trp_reducer r;
    trp_reducer_init(&r);
    trp_reducer_reset(&r, f, arg);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < a->dataset->partitions; i++)
        if (a->parts[i].any)
            rc = trp_reducer_add(&r, a->parts[i].data, a->parts[i].size);
    if (rc != 0) {
        rc = trp_context_fail(a->context, TRP_EFAILED,
                              "stage %s: combining the partitions on the driver: %s %s "
                              "(code %d)",
                              a->context->told[a->told].name, a->end.step.name,
                              r.failed ? r.failed : "failed", rc);
        trp_reducer_free(&r);
        return rc;
    }
    size_t n;
    const void *value = trp_reducer_value(&r, &n);
    void *copy = value ? malloc(n + 1) : NULL;
    if (copy && n)
        memcpy(copy, value, n);
    if (value && !copy)
        rc = trp_context_fail(a->context, TRP_ENOMEM, "out of memory for the value");
    trp_reducer_free(&r);
    if (rc == 0) {
        *ret_value = copy;
        *ret_size = n;
    }
    return rc;
}

int trp_reduce(trp_dataset *d, trp_combine f, const void *arg, size_t arg_size,
               void **ret_value, size_t *ret_size)
{
    if (!d)
        return trp_action_no_dataset("trp_reduce");
    trp_context *ctx = d->context;
    if (!ret_value || !ret_size)
        return trp_action_note(
            d,
            trp_context_fail(ctx, TRP_EINVAL, "trp_reduce: nowhere to put the value"));
    struct trp_step step;
    int rc = end_step(ctx, "trp_reduce", (void (*)(void))f, arg, arg_size, &step);
    if (rc < 0)
        return trp_action_note(d, rc);
    struct trp_stage_run a;
    rc = trp_stage_run(&a, d, TRP_DO_REDUCE, &step, NULL);
    if (rc < 0)
        return rc;
    rc = combine_parts(&a, f, arg, ret_value, ret_size);
    trp_stage_run_free(&a);
    return trp_action_note(d, rc);
}

void trp_remove_unfinished(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    const struct dirent *e;
    while ((e = readdir(d)))
        if (strncmp(e->d_name, ".part-", 6) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

int trp_save(trp_dataset *d, const char *dir)
{
    if (!d)
        return trp_action_no_dataset("trp_save");
    trp_context *ctx = d->context;
    if (!dir || !*dir)
        return trp_action_note(
            d, trp_context_fail(ctx, TRP_EINVAL, "trp_save: no folder given"));
    if (mkdir(dir, 0777) != 0)
        return trp_action_note(
            d, trp_context_fail(
                   ctx, errno == EEXIST ? TRP_EEXIST : TRP_ESYSTEM,
                   "trp_save: cannot make the folder %s: %s%s", dir, strerror(errno),
                   errno == EEXIST ? "; give one that is not there yet" : ""));
    char *whole = realpath(dir, NULL);
    if (!whole)
        return trp_action_note(d, trp_context_fail(ctx, TRP_ESYSTEM, "trp_save: %s: %s",
                                                   dir, strerror(errno)));
    struct trp_stage_run a;
    int rc = trp_stage_run(&a, d, TRP_DO_SAVE, NULL, whole);
    if (rc == 0)
        trp_stage_run_free(&a);
    trp_remove_unfinished(whole);
    free(whole);
    return trp_action_note(d, rc);
}
