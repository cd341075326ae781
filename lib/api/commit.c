/*
 * Commits: before an attempt gives the part that it wrote its name, it asks the driver,
 * which lets one attempt of a task do so at a time (core/sched/commits.h).
 *
 * The driver may lose that attempt, and its process may go on all the same, at any
 * later time: it may only have been stopped. So the next attempt that is allowed first
 * removes the files that other attempts of the task have written under hidden names.
 * The lost one then has nothing left to rename.
 */
#include <stdlib.h>

#include "api/flow.h"
#include "data/part_file.h"

static int ask_driver(struct trp_flow *f)
{
    const struct trp_task_info *info = f->task.info;
    uint8_t *reply = NULL;
    size_t size = 0;
    struct trp_synced s = {0};
    int rc = info->sync(info, TRP_SYNC_COMMIT, NULL, 0, &reply, &size);
    if (rc == 0)
        rc = trp_synced_get(reply, size, &s);
    if (rc < 0) {
        trp_flow_fail(f, rc, "the driver did not say who commits the output");
    } else if (s.status < 0) {
        f->ret->denied = !f->failed;
        trp_flow_fail(f, s.status, "%.*s", (int)s.text_size, (const char *)s.text);
        rc = s.status;
    } else {
        rc = s.status;
    }
    free(reply);
    return rc;
}

int trp_flow_commit(struct trp_flow *f, const char *hidden)
{
    int rc = ask_driver(f);
    if (rc == TRP_COMMIT_AGAIN)
        trp_part_take_names(f->chain->dir, f->task.info->task, hidden);
    return rc < 0 ? -1 : 0;
}
