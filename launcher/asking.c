#include "asking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/time.h"
#include "events/run_record.h"
#include "events/run_status.h"
#include "os/clock.h"
#include "os/held.h"

static const int64_t STEP_PAUSE_NS = 30 * TRP_SECOND; /* from one try to the next */

/* ---- finding ---- */

int trp_asking_find(const char *runs_dir, const char *run, struct trp_asking *ret,
                    trp_error *err)
{
    char *runs = NULL;
    *ret = (struct trp_asking){.step = {.ends = {-1, -1, -1}}};
    int code = trp_runs_dir(runs_dir, &runs, err);
    if (code == 0)
        code = trp_run_folder_find(runs, run ? run : "last", &ret->folder, err);
    free(runs);
    if (code == TRP_EINVAL && !run)
        trp_error_set(err, code, "there are no runs in this folder; name a RUN");
    if (code == 0 && !trp_run_folder_view(ret->folder, &ret->view))
        code = trp_error_set(err, TRP_EINVAL, "%s/state/run.json cannot be read",
                             ret->folder);
    if (code < 0)
        trp_asking_free(ret);
    return code;
}

int trp_asking_again(struct trp_asking *a, trp_error *err)
{
    struct trp_run_view view;
    if (!trp_run_folder_view(a->folder, &view))
        return trp_error_set(err, TRP_EINVAL, "%s/state/run.json cannot be read",
                             a->folder);
    trp_run_view_clear(&a->view);
    a->view = view;
    *a->note = '\0';
    return 0;
}

void trp_asking_free(struct trp_asking *a)
{
    trp_run_view_clear(&a->view);
    trp_step_close(&a->step);
    free(a->folder);
    *a = (struct trp_asking){.step = {.ends = {-1, -1, -1}}};
}

void trp_asking_tell(const struct trp_asking *a)
{
    if (*a->note)
        fprintf(stderr, "troupe: %s\n", a->note);
}

/* ---- members ---- */

const char *trp_asking_text(const json_t *of, const char *key)
{
    const char *text = json_string_value(json_object_get(of, key));
    return text ? text : "";
}

int64_t trp_asking_int(const json_t *of, const char *key)
{
    return json_integer_value(json_object_get(of, key));
}

char *trp_asking_time(int64_t ms, char *buf, size_t size)
{
    long long s = (ms > 0 ? ms : 0) / 1000;
    if (s < 60)
        snprintf(buf, size, "%.1f s", (double)(ms > 0 ? ms : 0) / 1000);
    else if (s < 3600)
        snprintf(buf, size, "%lldm%02llds", s / 60, s % 60);
    else
        snprintf(buf, size, "%lldh%02lldm", s / 3600, s / 60 % 60);
    return buf;
}

/* ---- its driver ---- */

/* Why it is the log's, and how old that is. */
static void note(struct trp_asking *a, const char *why)
{
    char events[4400], age[32] = "";
    struct stat st;
    snprintf(events, sizeof events, "%s/events.jsonl", a->folder);
    if (trp_held_stat(events, &st) == 0)
        trp_asking_time(trp_clock_wall_ns() / 1000000 -
                            (int64_t)st.st_mtim.tv_sec * 1000,
                        age, sizeof age);
    snprintf(a->note, sizeof a->note,
             "run %.100s: %.300s: this is what its event log says%s%s%s", a->view.name,
             why, *age ? ", last written " : "", age, *age ? " ago" : "");
}

static int read_answer(const char *text, json_t **ret, trp_error *err)
{
    json_error_t why;
    json_t *j = json_loads(text, 0, &why);
    const json_t *refusal = json_object_get(j, "error");
    int code = 0;
    if (!json_is_object(j))
        code = trp_error_set(err, TRP_ESYSTEM, "its driver's answer is no JSON: %s",
                             why.text);
    else if (refusal)
        code = trp_error_set(err, TRP_EINVAL, "%s", json_string_value(refusal));
    if (code < 0)
        json_decref(j);
    else
        *ret = j;
    return code;
}

/* Of a run in a Slurm job by a step of that, which is kept for what is asked next. One
 * that has failed is given up: what it says later would be taken for something else. */
static int ask_there(struct trp_asking *a, const struct trp_ask *q, char **ret_answer,
                     trp_error *err)
{
    const char *host = *a->view.host ? a->view.host : "another host";
    trp_error why;
    int code = TRP_EWAIT;
    if (trp_clock_ns() >= a->step_at) {
        code = a->step.pid ? 0 : trp_step_open(a->folder, a->view.host, &a->step, &why);
        if (code == 0)
            code = trp_step_ask(&a->step, q, ret_answer, &why);
        if (code == 0)
            return 0;
        trp_step_close(&a->step);
        a->step_at = trp_clock_ns() + STEP_PAUSE_NS;
        snprintf(a->step_why, sizeof a->step_why, "%.290s", why.text);
    }
    return trp_error_set(err, TRP_ENOENT, "its driver is on %s, and %s", host,
                         a->step_why);
}

int trp_asking_driver(struct trp_asking *a, const struct trp_ask *q, json_t **ret,
                      trp_error *err)
{
    char *answer = NULL;
    if (strcmp(a->view.status, "running") != 0)
        return trp_error_set(err, TRP_ENOENT, "run %s does not go on", a->view.name);
    int code = trp_run_is_here(&a->view) ? trp_ask_call(a->folder, q, &answer, err)
                                         : ask_there(a, q, &answer, err);
    if (code == 0)
        code = read_answer(answer, ret, err);
    free(answer);
    if (code == 0 || code == TRP_EINVAL)
        return code;
    note(a, err->text);
    return trp_error_set(err, TRP_ENOENT, "%s", a->note);
}

/* ---- its log ---- */

static int of_log(struct trp_asking *a, json_t **ret, trp_error *err)
{
    int64_t began = trp_clock_ns();
    const struct trp_run_view *v = &a->view;
    struct trp_run_records r;
    struct trp_buf b = {0};
    char events[4400];
    snprintf(events, sizeof events, "%s/events.jsonl", a->folder);
    int code = trp_run_records_read(events, &r, err);
    if (code < 0)
        return code;
    const struct trp_status s = {.run = v->name,
                                 .name = v->app,
                                 .status = v->status,
                                 .from = "log",
                                 .host = v->host,
                                 .now = trp_clock_wall_ns(),
                                 .started = v->started_ms * 1000000,
                                 .ended = v->ended_ms * 1000000,
                                 .exit_status = v->exit_status};
    trp_status_of_log(&b, r.v[r.n - 1], &s);
    trp_run_records_free(&r);
    *ret = b.failed ? NULL : json_loadb((const char *)b.data, b.size, 0, NULL);
    trp_buf_free(&b);
    a->log_ns = trp_clock_ns() - began;
    return *ret ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

int trp_asking_status(struct trp_asking *a, json_t **ret, trp_error *err)
{
    const struct trp_ask q = {.what = TRP_ASK_STATUS};
    int code = trp_asking_driver(a, &q, ret, err);
    a->log_ns = 0;
    return code == TRP_ENOENT ? of_log(a, ret, err) : code;
}
