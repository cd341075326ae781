/*
 * Checkpoints: a dataset is written once to a folder that all hosts see, and is read
 * from there from then on.
 *
 * It is a source as soon as it is made: only the one job that writes it looks at what
 * it was made of, and that job runs before the first action that needs it (lineage.c).
 * A partition is a file (data/part_file.h), which gets its name from the one attempt of
 * its task that may (commit.c). A file of ours in the folder says that it is taken, so
 * no two checkpoints share one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/flow.h"
#include "api/job.h"
#include "data/part_file.h"

/* ---- the program's side ---- */

static bool is_empty(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    bool empty = d != NULL;
    while (empty && (e = readdir(d)))
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    if (d)
        closedir(d);
    return empty;
}

/* Makes the folder, or takes an empty one: its whole path; NULL: told. */
static char *take_folder(trp_context *ctx, const char *folder)
{
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno == EEXIST && !is_empty(folder)) {
        trp_dataset_fail(ctx, TRP_EEXIST,
                         "trp_checkpoint: %s is not an empty folder; give one that is, "
                         "or that is not there yet",
                         folder);
        return NULL;
    }
    char *whole = made || errno == EEXIST ? realpath(folder, NULL) : NULL;
    int at = whole ? open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int fd = at >= 0 ? openat(at, "checkpoint", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                              0666)
                     : -1;
    if (fd < 0) {
        trp_dataset_fail(ctx, TRP_ESYSTEM,
                         "trp_checkpoint: cannot use the folder %s: %s", folder,
                         strerror(errno));
        free(whole);
        whole = NULL;
    } else {
        close(fd);
    }
    if (at >= 0)
        close(at);
    return whole;
}

trp_dataset *trp_checkpoint(trp_dataset *d, const char *folder)
{
    if (!d)
        return NULL;
    trp_context *ctx = d->context;
    if (!folder || !*folder)
        return trp_dataset_refuse(ctx, TRP_EINVAL, "trp_checkpoint: no folder given");
    char *whole = take_folder(ctx, folder);
    if (!whole)
        return NULL;
    size_t size = strlen(whole) + 1;
    trp_dataset *n = trp_dataset_source(ctx, TRP_NODE_CHECKPOINT, "trp_checkpoint",
                                        d->partitions, size);
    if (n) {
        n->checkpoint.from = d;
        n->checkpoint.folder = memcpy(n + 1, whole, size);
    }
    free(whole);
    return trp_dataset_made_of(n, d);
}

int trp_checkpoint_write(trp_dataset *d, const char *pool)
{
    const struct trp_chain_end end = {.kind = TRP_DO_CHECKPOINT,
                                      .dir = d->checkpoint.folder};
    trp_job *j;
    int rc = trp_job_before(d->checkpoint.from, &end, pool, &j);
    if (rc < 0)
        return rc;
    trp_job_free(j);
    d->checkpoint.written = true;
    trp_reach_cut(d->checkpoint.from);
    d->checkpoint.from = NULL;
    return 0;
}

/* ---- tasks ---- */

int trp_flow_checkpoint_put(struct trp_flow *f, const trp_batch *in)
{
    uint8_t *data;
    uint32_t size;
    trp_error err;
    int rc = trp_batch_encode(in, &data, &size);
    if (rc < 0)
        return trp_flow_fail(f, rc,
                             "out of memory for a checkpoint, or a record is "
                             "too large for it");
    rc = trp_part_file_put(f->part, data, size, &err);
    f->ret->bytes_out += size;
    free(data);
    return rc < 0 ? trp_flow_fail(f, rc, "%s", err.text) : 0;
}

int trp_flow_checkpoint(struct trp_flow *f, const uint8_t *input, size_t size)
{
    const struct trp_task_info *info = f->task.info;
    trp_error err;
    if (trp_part_file_create(f->chain->dir, info->task, info->attempt.n, &f->part,
                             &err) < 0)
        return trp_flow_fail(f, err.code, "%s", err.text);
    int rc = trp_flow_records(f, input, size);
    if (rc == 0 && trp_part_file_end(f->part, &err) < 0)
        rc = trp_flow_fail(f, err.code, "%s", err.text);
    if (rc == 0)
        rc = trp_flow_commit(f, trp_part_file_hidden(f->part));
    int closed = trp_part_file_close(f->part, rc == 0, &err);
    f->part = NULL;
    return closed < 0 ? trp_flow_fail(f, closed, "%s", err.text) : rc;
}

int trp_flow_checkpoint_source(struct trp_flow *f, const struct trp_chain_node *n)
{
    const uint8_t *data;
    size_t size;
    trp_part_reader *r = NULL;
    trp_error err;
    trp_batch b;
    int rc = trp_part_file_open(n->base, f->partition, &r, &err);
    while (rc >= 0 && (rc = trp_part_file_next(r, &data, &size, &err)) > 0) {
        f->ret->bytes_in += size;
        if (trp_batch_decode(data, size, &b) < 0)
            rc = trp_error_set(&err, TRP_EPROTO, "%s has what is no records", n->base);
        else if (trp_flow_source_batch(f, &b) < 0)
            break;
    }
    trp_part_file_free(r);
    if (rc > 0) /* told */
        return -1;
    return rc < 0 ? trp_flow_fail(f, rc, "trp_checkpoint: %s", err.text) : 0;
}
