/* A stage's folder is looked at once, for all its tasks. */
#include "see_logs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asking.h"
#include "events/run_folder.h"
#include "events/task_logs.h"

static int by_task(const void *task, const void *log)
{
    int64_t a = *(const int64_t *)task, b = ((const struct trp_task_log *)log)->task;
    return a < b ? -1 : a > b;
}

/* Of those from the `first` on that are of `stage`, or of all. */
static void see_stage(const char *folder, const char *stage, bool all, json_t *tasks,
                      size_t first)
{
    struct trp_task_log *v = NULL;
    uint32_t n = 0;
    char dir[4400];
    snprintf(dir, sizeof dir, "%s/logs/%s", folder, stage);
    trp_task_logs_find(dir, &v, &n, NULL);
    for (size_t i = first; i < json_array_size(tasks); i++) {
        json_t *t = json_array_get(tasks, i);
        int64_t task = trp_asking_int(t, "task");
        if (!all && strcmp(trp_asking_text(t, "stage"), stage) != 0)
            continue;
        json_t *see = n && bsearch(&task, v, n, sizeof *v, by_task)
                          ? json_sprintf("troupe logs %s %s %" PRId64,
                                         trp_run_called(folder), stage, task)
                          : json_null();
        json_object_set_new(t, "see", see);
    }
    trp_task_logs_free(v, n);
}

void trp_see_logs(const char *folder, const char *stage, json_t *tasks)
{
    json_t *t;
    size_t i;
    if (folder && stage && json_array_size(tasks)) {
        see_stage(folder, stage, true, tasks, 0);
        return;
    }
    json_array_foreach(tasks, i, t) {
        const char *of = trp_asking_text(t, "stage");
        if (json_object_get(t, "see"))
            continue;
        if (folder && *of)
            see_stage(folder, of, false, tasks, i);
        else
            json_object_set_new(t, "see", json_null());
    }
}
