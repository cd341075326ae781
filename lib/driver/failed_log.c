/* Of a gang the log of the first of its ranks that has one is taken. */
#include "driver/failed_log.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/ids.h"
#include "events/run_folder.h"
#include "events/task_logs.h"
#include "os/log_tail.h"

/* An empty log is about to be removed. */
static bool has_text(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0;
}

/* Its last line goes to `line`: "" when that is blank. */
static char *find_log(const struct trp_failed_attempt *a, char *line, size_t size)
{
    static const char *const suffix[] = {"err", "out"};
    char attempt[16] = "", *path = NULL, *pattern;
    line[0] = '\0';
    if (a->stage_attempt)
        snprintf(attempt, sizeof attempt, "s%u.", a->stage_attempt);
    for (int i = 0; i < 2 && !path; i++) {
        glob_t found;
        if (asprintf(&pattern, "%s/logs/%s/%u.%s%u%s.%s", a->run_dir, a->stage->name,
                     a->task, attempt, a->number,
                     a->stage->spec.ranks && !a->no_rank ? ".*" : "", suffix[i]) < 0)
            return NULL;
        if (glob(pattern, 0, NULL, &found) == 0) {
            if (!a->no_rank || has_text(found.gl_pathv[0]))
                path = pattern;
            if (!trp_log_last_line(found.gl_pathv[0], line, size))
                line[0] = '\0';
            globfree(&found);
        }
        if (!path)
            free(pattern);
    }
    return path;
}

static bool has_one_log(const struct trp_pipeline_stage *s)
{
    return s->one_log && !s->spec.ranks;
}

/* How `troupe logs` shows it. */
static char *see_stream(const struct trp_failed_attempt *a)
{
    struct trp_task_log *v = NULL;
    const struct trp_task_log of = {.task = a->task,
                                    .stage_attempt = a->stage_attempt,
                                    .number = a->number,
                                    .rank = TRP_NONE};
    uint32_t n = 0;
    char *dir = NULL, *text = NULL, name[64];
    bool printed = false;
    if (asprintf(&dir, "%s/logs/%s", a->run_dir, a->stage->name) < 0)
        return NULL;
    trp_task_logs_find(dir, &v, &n, NULL);
    free(dir);
    for (uint32_t i = 0; i < n; i++)
        printed = printed || (v[i].task == of.task && v[i].number == of.number &&
                              v[i].stage_attempt == of.stage_attempt);
    trp_task_logs_free(v, n);
    if (!printed)
        return strdup("");
    trp_task_log_name(&of, name, sizeof name);
    *strrchr(name, '.') = '\0';
    int made = asprintf(&text, "; see: troupe logs %s %s %s",
                        trp_run_called(a->run_dir), a->stage->name, name);
    return made < 0 ? NULL : text;
}

char *trp_failed_log(const struct trp_failed_attempt *a)
{
    char line[256];
    return find_log(a, line, sizeof line);
}

char *trp_failed_log_see(const struct trp_failed_attempt *a)
{
    char line[256], *text = NULL;
    if (has_one_log(a->stage))
        return see_stream(a);
    char *log = find_log(a, line, sizeof line);
    if (!log)
        return strdup("");
    if (asprintf(&text, "; see %s%s%s%s", a->shown, log + strlen(a->run_dir),
                 line[0] ? ": " : "", line) < 0)
        text = NULL;
    free(log);
    return text;
}
