/*
 * A pipeline as a job.
 *
 * Stages that do not run (done, --from, --until) are not in the job at all; what waits
 * for them waits for nothing. Stages stand in the pipeline's order with parents first,
 * `specs.of[i]` says which stage of the pipeline stage i of the job is.
 *
 * A stage's items, STAGE message and preferences are made when it starts and freed when
 * it ends, so a chain of 10,000 stages holds those of the running one. `tasks` and
 * `items` are known from the file and checked before anything starts.
 *
 * Teardown: what reads contents of files, stages, then the tables the job spec points into.
 */
#include "driver/command_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/stage_specs.h"
#include "core/base/array.h"
#include "driver/by.h"
#include "driver/command_env.h"
#include "driver/end_lines.h"
#include "driver/failed_log.h"
#include "driver/file_sums.h"
#include "driver/foreach.h"
#include "driver/group.h"
#include "driver/output_names.h"
#include "driver/task_files.h"
#include "driver/temp_files.h"
#include "events/run_folder.h"
#include "events/task_logs.h"
#include "os/held.h"
#include "os/strings.h"

enum { TOLD_MAX = 20 };

/* A stage while it runs. */
struct running {
    struct trp_items items;
    struct trp_buf columns; /* of the task that was asked for last */
    uint8_t *done;
    struct trp_buf body; /* encoded struct trp_command */
    struct trp_stage_places places;
    bool has_own_outputs; /* some of its patterns belong to tasks */
    const char **to_make; /* those that each task has to make, of the stage's … */
    uint32_t nto_make;
    bool ended;
    bool over;       /* … and what was known of it is freed, but for what is lent */
    bool made;       /* a task of it succeeded, in this start */
    bool kept;       /* what is known of its tasks outlives it, for those below: */
    uint32_t ntasks; /* these … */
    uint32_t
        lent; /* its items outlive it, for so many stages by a column that are to end */
    uint8_t *rows;  /* of each task: the file with its rows was written */
    bool by_above;  /* what is done of it was to be seen when those above had ended */
    bool late;      /* a task ended after it */
    bool unread;    /* what it works on was not there when the run began */
    bool unmatched; /* of a pattern of its inputs it was told that nothing matches */
    struct trp_outputs before; /* what matched the stage's own outputs when it began */
    bool unchanged; /* and all of one of them was so when that was looked at last */
    char *refused;  /* why its tasks could not be told */
    /* The last task that failed and does not run again, for its line. */
    uint32_t task, number, failures;
    char *reason;
    int32_t exit;               /* its exit status; 0: it ended otherwise */
    uint32_t given_up, skipped; /* tasks */
};

struct trp_command_job {
    struct trp_command_job_config c;
    trp_profile_id *ids;
    struct running *running;
    struct trp_stage_specs specs;
    struct trp_job_spec spec;
    struct trp_work work;
    struct trp_strings environ; /* cleaned */
    struct trp_end_lines end;
    trp_file_sums *sums; /* NULL: contents of files are not kept */
    trp_task_files *files;
    trp_temp_files *temps; /* NULL: there are none */
    trp_output_names *names;
    char *log;             /* of the task that was given up last */
    uint32_t *place;       /* of each stage of the pipeline, in the job; or TRP_NONE */
    uint32_t *below_first; /* of each, the stages after it, in … */
    uint32_t *below;       /* … this; NULL: nothing was done before */
    bool *dropped;         /* of each: all its records, since one above it succeeded */
    struct trp_print *drop_ids; /* work memory */
    struct trp_by *links;       /* of the stage that was told last */
    uint32_t drop_ids_cap;
    const char **drop_names;
    bool failed;
    bool blamed;   /* the task that ended the run has its line */
    uint32_t told; /* lines about leftovers */
};

static const struct trp_pipeline_stage *stage_of(const trp_command_job *j, uint32_t i)
{
    return &j->c.pipeline->stages[j->specs.of[i]];
}

static int out_of_memory(const char *stage, trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory for stage %s", stage);
}

/* `context` is a struct running. */
static void values_of_task(void *context, uint32_t task, struct trp_task_values *ret)
{
    struct running *r = context;
    trp_items_values(&r->items, task, &r->columns, ret); /* else without its columns */
}

static bool task_name(void *context, uint32_t stage, uint32_t task, struct trp_buf *b)
{
    trp_command_job *j = context;
    return trp_items_name(&j->running[stage].items, task, b);
}

static const char *word_of(const trp_command_job *j, uint32_t stage, uint32_t task,
                           char buf[TRP_TASK_WORD])
{
    return trp_items_word(&j->running[stage].items, task, buf);
}

static struct trp_print id_of(const trp_command_job *j, uint32_t stage,
                              const struct trp_task_values *v)
{
    return trp_task_id(&j->c.choice[j->specs.of[stage]], stage_of(j, stage)->name,
                       &j->running[stage].items, v);
}

/* ---- a stage starts ---- */

/* The patterns of a task, or (task TRP_NONE) of the stage. */
static void patterns_of(trp_command_job *j, uint32_t stage, uint32_t task,
                        struct trp_strings *ret)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct trp_task_values v;
    values_of_task(&j->running[stage], task, &v);
    for (uint32_t i = 0; i < s->noutputs; i++) {
        bool none, own = trp_output_of_task(s->outputs[i]);
        char *pattern = own == (task != TRP_NONE)
                            ? trp_output_expand(s->outputs[i], &v, &none)
                            : NULL;
        if (pattern)
            trp_strings_take(ret, pattern);
    }
}

/* Whether its tasks have to make it as a whole. */
static bool is_checked(const struct trp_pipeline_stage *s, uint32_t output)
{
    return !s->optional[output] && !trp_output_of_task(s->outputs[output]);
}

/* The files of a pattern of the stage itself, as they are. */
static void find_stage_output(const trp_command_job *j, const char *pattern,
                              struct trp_outputs *ret)
{
    bool none;
    char *p = trp_output_expand(pattern, &(struct trp_task_values){0}, &none);
    if (p)
        trp_outputs_match(ret, j->c.cwd, p, true, NULL);
    free(p);
}

static void look_before(const trp_command_job *j, uint32_t stage)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    for (uint32_t i = 0; i < s->noutputs; i++)
        if (is_checked(s, i))
            find_stage_output(j, s->outputs[i], &r->before);
    trp_outputs_sort(&r->before);
}

/* Holds what is temp of the tasks that were done. */
static void hold_temps(trp_command_job *j, uint32_t i)
{
    struct trp_stage_choice *choice = &j->c.choice[i];
    for (uint32_t k = 0; k < choice->nmade; k++) {
        const struct trp_temp_made *m = &choice->made[k];
        if (!choice->remade || !choice->remade[m->task])
            trp_temp_files_hold(j->temps, i, m->task, &m->files);
    }
    trp_temp_made_free(choice);
}

/* Whether the task is done and runs only to make again what is temp. */
static bool is_remade(const trp_command_job *j, uint32_t stage, uint32_t task)
{
    const uint8_t *remade = j->c.choice[j->specs.of[stage]].remade;
    return remade && remade[task];
}

/* Those of its tasks that were done have made their outputs. */
static void note_made(trp_command_job *j, uint32_t stage)
{
    struct running *r = &j->running[stage];
    struct trp_task_values v;
    char why[TRP_ERROR_TEXT];
    for (uint32_t t = 0; r->done && t < r->items.ntasks; t++) {
        values_of_task(r, t, &v);
        if (!r->done[t])
            continue;
        trp_output_names_stand(j->names, j->specs.of[stage], t, &v, why, sizeof why);
        trp_temp_files_done(j->temps, j->specs.of[stage], t);
    }
}

/* Lends the choice what is known of the tasks of the stages above that are in the job, or
 * takes it back. */
static void lend_above(trp_command_job *j, uint32_t stage, bool lends)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    for (uint32_t a = 0; a < s->nafter; a++) {
        struct trp_stage_choice *c = &j->c.choice[s->after[a].index];
        uint32_t at = j->place[s->after[a].index];
        if (at == TRP_NONE)
            continue;
        c->items = lends ? j->running[at].items : (struct trp_items){0};
        c->items.ntasks = lends ? j->running[at].ntasks : 0;
        c->done = lends ? j->running[at].done : NULL;
    }
}

/* Finds which tasks above its tasks wait for by columns. */
static int find_links(trp_command_job *j, uint32_t stage, trp_error *err)
{
    lend_above(j, stage, true);
    int rc = trp_resume_links(j->c.pipeline, j->c.cwd, j->c.choice, j->specs.of[stage],
                              &j->running[stage].items, err);
    lend_above(j, stage, false);
    return rc;
}

/* Of the stages above that are in the job, which alone the engine is asked for. */
static int tell_links(trp_command_job *j, uint32_t stage, struct trp_stage_tasks *ret,
                      trp_error *err)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct trp_stage_choice *c = &j->c.choice[j->specs.of[stage]];
    uint32_t n = 0;
    free(j->links);
    j->links = calloc((size_t)c->nby + 1, sizeof *j->links);
    if (!j->links)
        return out_of_memory(s->name, err);
    for (uint32_t a = 0; a < s->nafter; a++) {
        if (!s->after[a].by)
            continue;
        if (j->place[s->after[a].index] != TRP_NONE)
            j->links[ret->nby++] = c->by[n].by;
        n++;
    }
    ret->by = j->links;
    return 0;
}

/* Nobody asks the stages above for their items any more on its behalf: who its tasks wait
 * for, or what one is called for which a task of its was skipped. */
static void give_back(trp_command_job *j, uint32_t stage)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    for (uint32_t a = 0; a < s->nafter; a++) {
        uint32_t at = j->place[s->after[a].index];
        if (!s->after[a].by || at == TRP_NONE || --j->running[at].lent ||
            !j->running[at].over)
            continue;
        trp_items_free(&j->running[at].items);
    }
}

/* What the stages above did is known: which of its tasks are done. */
static int choose_late(trp_command_job *j, uint32_t stage, trp_error *err)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct trp_stage_choice *choice = j->c.choice, *own = &choice[j->specs.of[stage]];
    struct running *r = &j->running[stage];
    const char *made = NULL;
    char line[512];
    for (uint32_t a = 0; a < s->nafter; a++) {
        uint32_t at = j->place[s->after[a].index];
        if (at == TRP_NONE)
            continue;
        if (s->after[a].each ? !j->running[at].done : j->running[at].made)
            made = s->after[a].stage; /* or none of it was done */
    }
    lend_above(j, stage, true);
    int rc = trp_resume_late(j->c.request, choice, j->specs.of[stage], made, err);
    lend_above(j, stage, false);
    trp_items_free(&r->items);
    r->items = own->items;
    r->done = own->done;
    own->items = (struct trp_items){0};
    own->done = NULL;
    hold_temps(j, j->specs.of[stage]);
    if (rc == 0 && j->c.say &&
        trp_stage_choice_text(j->c.pipeline, choice, j->specs.of[stage], line,
                              sizeof line))
        j->c.say(j->c.say_context, line);
    return rc;
}

static int stage_tasks(void *context, uint32_t stage, struct trp_stage_tasks *ret,
                       trp_error *err)
{
    trp_command_job *j = context;
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    trp_error why = {0};
    int rc = 0;
    if (j->c.choice[j->specs.of[stage]].late)
        rc = choose_late(j, stage, &why);
    else if (!r->items.known)
        rc = trp_foreach_evaluate(j->c.pipeline, s, j->c.cwd, &r->items, &why);
    if (rc == 0 && r->unread)
        trp_foreach_tell(j->c.pipeline, s, &r->items);
    r->unread = r->unread && rc < 0;
    *ret = (struct trp_stage_tasks){0};
    if (rc == 0)
        rc = find_links(j, stage, &why);
    if (rc == 0)
        rc = tell_links(j, stage, ret, &why);
    if (rc == 0)
        rc = trp_stage_places_make(s, r->items.ntasks, values_of_task, r, &r->places,
                                   &why);
    if (rc == 0)
        rc = trp_output_names_add(j->names, j->specs.of[stage], &r->items, &why);
    if (rc == 0)
        note_made(j, stage);
    if (rc < 0) {
        free(r->refused);
        r->refused = strdup(why.text);
        return trp_error_set(err, rc, "%s", why.text);
    }
    r->ntasks = r->items.ntasks;
    ret->ntasks = r->items.ntasks;
    ret->prefer = r->places.prefer;
    ret->done = r->done;
    return 0;
}

static int make_folder(const char *path, trp_error *err)
{
    if (trp_held_mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    return trp_error_set(err, TRP_ESYSTEM, "cannot make %.600s: %m", path);
}

/* RUN/logs/STAGE, malloc'ed in *ret. */
static int make_log_dir(const trp_command_job *j, const char *stage, char **ret,
                        trp_error *err)
{
    char *dir;
    if (asprintf(&dir, "%s/logs/%s", j->c.run_dir, stage) < 0)
        return out_of_memory(stage, err);
    char *slash = strrchr(dir, '/');
    *slash = '\0';
    int r = make_folder(dir, err);
    *slash = '/';
    if (r == 0)
        r = make_folder(dir, err);
    if (r < 0) {
        free(dir);
        return r;
    }
    *ret = dir;
    return 0;
}

/* Of tasks that have names: the file by which a person, or grep, finds their logs. */
static int put_names(const trp_command_job *j, uint32_t stage, const char *log_dir,
                     trp_error *err)
{
    const struct trp_items *items = &j->running[stage].items;
    char *path, word[TRP_TASK_WORD];
    if (!trp_items_named(items))
        return 0;
    if (asprintf(&path, "%s/" TRP_TASK_LOG_NAMES, log_dir) < 0)
        return out_of_memory(stage_of(j, stage)->name, err);
    FILE *out = trp_held_fopen(path, "w");
    for (uint32_t t = 0; out && t < items->ntasks; t++)
        fprintf(out, "%u\t%s\n", t, trp_items_word(items, t, word));
    int r = out && (fclose(out) == 0)
                ? 0
                : trp_error_set(err, TRP_ESYSTEM, "cannot write %.600s: %m", path);
    free(path);
    return r;
}

/* Removes it again when nothing was printed. */
static void drop_log_dir(const trp_command_job *j, const char *stage)
{
    char *dir, *names = NULL;
    if (asprintf(&dir, "%s/logs/%s", j->c.run_dir, stage) < 0)
        return;
    if (!trp_logs_any(dir) && asprintf(&names, "%s/" TRP_TASK_LOG_NAMES, dir) > 0)
        trp_held_unlink(names, 0);
    trp_held_unlink(dir, AT_REMOVEDIR);
    free(names);
    free(dir);
}

static const char *const *borrowed(const struct trp_strings *s)
{
    return (const char *const *)s->v;
}

/* The working folder as a template. What begins with a value of a task may be absolute:
 * it is joined where the task runs. */
static char *stage_cwd(const trp_command_job *j, const struct trp_pipeline_stage *s)
{
    if (s->cwd && strncmp(s->cwd, "${", 2) == 0 && strncmp(s->cwd, "${}", 3) != 0)
        return strdup(s->cwd);
    char *base = trp_template_escape(j->c.cwd);
    char *cwd = base && s->cwd ? trp_path_join(base, s->cwd) : base;
    if (cwd != base)
        free(base);
    return cwd;
}

/* The words that are no templates as templates; false: out of memory. */
static bool escape_words(const struct trp_pipeline_stage *s, struct trp_strings *argv)
{
    for (uint32_t i = 0; i < argv->n; i++) {
        bool is_template = s->nargv > 0 && i >= s->nwrap;
        char *word = is_template ? argv->v[i] : trp_template_escape(argv->v[i]);
        if (!word)
            return false;
        if (word != argv->v[i])
            free(argv->v[i]);
        argv->v[i] = word;
    }
    return true;
}

static int make_body(trp_command_job *j, uint32_t stage, const char *log_dir,
                     trp_error *err)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct trp_resource_profile *profile =
        trp_profiles_get(j->c.profiles, j->ids[j->specs.of[stage]]);
    struct trp_strings argv = {0}, env = {0}, resources = {0};
    char *cwd = stage_cwd(j, s);
    int r = trp_stage_argv(j->c.pipeline, s, j->c.options, &argv, err);
    if (r == 0 && (!cwd || !escape_words(s, &argv) ||
                   trp_stage_environ(&j->environ, j->c.pipeline, s, &env) < 0 ||
                   trp_stage_resource_env(j->c.site, profile, &resources) < 0))
        r = out_of_memory(s->name, err);
    struct trp_command command = {
        .argv = borrowed(&argv),
        .nargv = (uint32_t)argv.n,
        .env = borrowed(&env),
        .nenv = (uint32_t)env.n,
        .cwd = cwd,
        .base = j->c.cwd,
        .log_dir = log_dir,
        .resource_env = borrowed(&resources),
        .nresource_env = (uint32_t)resources.n,
        .run = j->c.run_name,
        .run_dir = j->c.run_dir,
        .one_log = s->one_log,
        .outputs = j->running[stage].to_make,
        .noutputs = j->running[stage].nto_make,
        .outputs_wait_ns = s->spec.ranks ? j->c.outputs_wait_ns : 0,
    };
    struct trp_buf *body = &j->running[stage].body;
    if (r == 0)
        trp_command_put(body, &command);
    if (r == 0 && body->failed)
        r = out_of_memory(s->name, err);
    trp_strings_free(&argv);
    trp_strings_free(&env);
    trp_strings_free(&resources);
    free(cwd);
    return r;
}

/* What is protected of a task, or (task TRP_NONE) of the stage: before an attempt what it has
 * made before may be written, when it has succeeded nobody may. */
static void set_writable(const trp_command_job *j, uint32_t stage, uint32_t task,
                         bool writable)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct trp_leftovers at = {.base = j->c.cwd, .run_dir = j->c.run_dir};
    struct trp_task_values v;
    values_of_task(&j->running[stage], task, &v);
    for (uint32_t i = 0; i < s->noutputs; i++) {
        struct trp_outputs files = {0};
        bool none, own = trp_output_of_task(s->outputs[i]);
        char *pattern = s->guarded[i] && own == (task != TRP_NONE)
                            ? trp_output_expand(s->outputs[i], &v, &none)
                            : NULL;
        if (pattern)
            trp_outputs_match(&files, j->c.cwd, pattern, true, NULL);
        for (uint32_t k = 0; k < files.n; k++)
            if (files.v[k].size >= 0 &&
                (!writable || trp_task_files_is_of(j->files, j->specs.of[stage], task,
                                                   files.v[k].path)))
                trp_leftovers_set_writable(&at, files.v[k].path, writable);
        trp_outputs_free(&files);
        free(pattern);
    }
}

static int stage_message(void *context, uint32_t stage, struct trp_stage_message *ret,
                         trp_error *err)
{
    trp_command_job *j = context;
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    const struct trp_resource_profile *profile =
        trp_profiles_get(j->c.profiles, j->ids[j->specs.of[stage]]);
    if (!r->body.size) {
        char *log_dir = NULL;
        int rc = make_log_dir(j, s->name, &log_dir, err);
        if (rc == 0)
            rc = put_names(j, stage, log_dir, err);
        if (rc == 0)
            rc = make_body(j, stage, log_dir, err);
        free(log_dir);
        if (rc < 0) {
            trp_buf_free(&r->body);
            return rc;
        }
        set_writable(j, stage, TRP_NONE, true);
        look_before(j, stage);
        struct trp_strings patterns = {0};
        patterns_of(j, stage, TRP_NONE, &patterns);
        trp_task_files_begin(j->files, j->specs.of[stage], TRP_NONE, &patterns, NULL,
                             false, &(struct trp_leftovers){0});
    }
    *ret = (struct trp_stage_message){
        .work = TRP_WORK_COMMAND,
        .ntasks = r->items.ntasks,
        .task_cpus = (uint32_t)profile->task_cpus,
        .timeout_ns = s->timeout_ns,
        .name = s->name,
        .profile = profile->name,
        .body = r->body.data,
        .body_size = r->body.size,
    };
    return 0;
}

/* ---- its tasks ---- */

/* Of the first TOLD_MAX attempts that cannot begin afresh. */
static void tell_leftovers(trp_command_job *j, uint32_t stage, uint32_t task,
                           const struct trp_leftovers *l)
{
    char line[1800], more[64] = "", word[TRP_TASK_WORD];
    if (!l->stay || !j->c.say || j->told++ >= TOLD_MAX)
        return;
    if (l->stay > 1)
        snprintf(more, sizeof more, "; as %s %u more", l->stay == 2 ? "does" : "do",
                 l->stay - 1);
    snprintf(line, sizeof line,
             "stage %s: task %s runs again, its output %s stays: %s%s",
             stage_of(j, stage)->name, word_of(j, stage, task, word), l->first, l->why,
             more);
    j->c.say(j->c.say_context, line);
}

/* What earlier attempts left of the task's own outputs goes. */
static void files_begin(trp_command_job *j, uint32_t stage, uint32_t task,
                        uint32_t number)
{
    struct trp_leftovers l = {0};
    struct trp_strings patterns = {0};
    struct trp_task_values v;
    values_of_task(&j->running[stage], task, &v);
    set_writable(j, stage, task, true);
    patterns_of(j, stage, task, &patterns);
    trp_task_files_begin(j->files, j->specs.of[stage], task, &patterns,
                         trp_done_log_left_by(j->c.log, id_of(j, stage, &v)),
                         number || j->c.earlier_runs, &l);
    tell_leftovers(j, stage, task, &l);
}

/* An attempt has ended. Of a barrier stage one that succeeded fails with the others. */
static void files_end(trp_command_job *j, uint32_t stage,
                      const struct trp_action *verdict)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    enum trp_end_status status = verdict->task_end.status;
    uint32_t task = verdict->task_end.task;
    bool done = status == TRP_END_SUCCESS && !s->spec.barrier;
    bool started = status != TRP_END_START && status != TRP_END_RECALLED &&
                   status != TRP_END_NEVER;
    struct trp_task_values v;
    if (!j->running[stage].has_own_outputs)
        return;
    const struct trp_outputs *left =
        trp_task_files_end(j->files, j->specs.of[stage], task,
                           done      ? TRP_ATTEMPT_SUCCEEDED
                           : started ? TRP_ATTEMPT_FAILED
                                     : TRP_ATTEMPT_UNSTARTED);
    values_of_task(&j->running[stage], task, &v);
    if (left && status != TRP_END_SUCCESS)
        trp_done_log_left(j->c.log, task, id_of(j, stage, &v), left);
}

static void stage_attempt(void *context, uint32_t stage, uint32_t attempt)
{
    const trp_command_job *j = context;
    (void)stage;
    trp_done_log_attempt(j->c.log, attempt);
}

/* The file with the rows of a task, malloc'ed; NULL: it could not be written, which the task
 * will tell. */
static char *rows_file(trp_command_job *j, uint32_t stage, uint32_t task)
{
    struct running *r = &j->running[stage];
    char *path;
    trp_error why;
    if (asprintf(&path, "%s/state/rows/%s/%u.%s", j->c.run_dir,
                 stage_of(j, stage)->name, task, r->items.csv ? "csv" : "tsv") < 0)
        return NULL;
    if (!r->rows)
        r->rows = calloc((size_t)r->items.ntasks + 1, 1);
    if (!r->rows || r->rows[task])
        return path;
    char *file = strrchr(path, '/');
    *file = '\0';
    char *folder = strrchr(path, '/');
    *folder = '\0';
    make_folder(path, &why);
    *folder = '/';
    make_folder(path, &why);
    *file = '/';
    r->rows[task] = trp_group_write(&r->items, task, path, &why) == 0;
    if (!r->rows[task] && j->c.say)
        j->c.say(j->c.say_context, why.text);
    return path;
}

/* What a task of a group has besides its item. */
static void put_rows(trp_command_job *j, uint32_t stage, uint32_t task,
                     struct trp_task_values *v)
{
    struct running *r = &j->running[stage];
    char *path = rows_file(j, stage, task);
    trp_group_put_rows(stage_of(j, stage), &r->items, task, path, &r->columns);
    free(path);
    if (!r->columns.failed) {
        v->item = (const char *)r->columns.data;
        v->item_size = r->columns.size;
    }
}

static void launch(void *context, uint32_t stage, uint32_t task, uint32_t number,
                   struct trp_launch *l)
{
    trp_command_job *j = context;
    struct running *r = &j->running[stage];
    struct trp_task_values v;
    if (r->has_own_outputs)
        files_begin(j, stage, task, number);
    values_of_task(r, task, &v);
    if (is_remade(j, stage, task))
        trp_done_log_again(j->c.log, stage_of(j, stage)->name, id_of(j, stage, &v));
    if (r->items.row)
        put_rows(j, stage, task, &v);
    l->has_item = v.item != NULL;
    l->extra = (const uint8_t *)v.item;
    l->extra_size = (uint32_t)v.item_size;
}

/* Leaves out of the files from `from` on, which are temp, those that are before it, which
 * another pattern keeps. */
static void keep_others(struct trp_outputs *files, uint32_t from)
{
    struct trp_outputs others = {.v = files->v, .n = from};
    uint32_t n = from;
    trp_outputs_sort(&others);
    for (uint32_t i = from; i < files->n; i++)
        if (trp_outputs_find(&others, files->v[i].path))
            free(files->v[i].path);
        else
            files->v[n++] = files->v[i];
    files->n = n;
}

/* Records what there is of the patterns of a task, or (task TRP_NONE) of the stage. A
 * folder that cannot be read leaves its files out: they are then not asked for. */
static void find_outputs(const trp_command_job *j, uint32_t stage, uint32_t task,
                         struct trp_outputs *ret)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct trp_task_values v;
    uint32_t others = 0;
    values_of_task(&j->running[stage], task, &v);
    for (uint32_t i = 0; i < 2 * s->noutputs; i++) { /* those that are temp at last */
        uint32_t k = i % s->noutputs;
        bool none, temp = i >= s->noutputs;
        if (i == s->noutputs)
            others = ret->n;
        if (trp_output_of_task(s->outputs[k]) != (task != TRP_NONE) ||
            s->temp[k] != temp)
            continue;
        char *pattern = trp_output_expand(s->outputs[k], &v, &none);
        if (pattern)
            trp_outputs_match(ret, j->c.cwd, pattern, true, NULL);
        free(pattern);
    }
    for (uint32_t i = others; i < ret->n; i++)
        ret->v[i].temp = true;
    if (others && others < ret->n)
        keep_others(ret, others);
}

/* Of each stage once. */
static void tell_unmatched(trp_command_job *j, uint32_t stage, uint32_t task,
                           const char *pattern)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    char line[1280], word[TRP_TASK_WORD];
    if (!pattern || j->running[stage].unmatched)
        return;
    j->running[stage].unmatched = true;
    snprintf(
        line, sizeof line,
        "%s:%u:%u: warning: stage %s: inputs: no file matches %.300s when task %s has "
        "ended, so --resume does not see a change of what it reads",
        trp_mark_file(j->c.pipeline->file, s->mark), s->mark.line, s->mark.column,
        s->name, pattern, word_of(j, stage, task, word));
    if (j->c.say)
        j->c.say(j->c.say_context, line);
}

static void drop_task(trp_command_job *j, uint32_t i, struct running *b, uint32_t task,
                      struct trp_done_drops *ret)
{
    struct trp_task_values v;
    if (!TRP_ARRAY_GROW(j->drop_ids, ret->nids, j->drop_ids_cap))
        return; /* out of memory for what is only of use to a later start */
    values_of_task(b, task, &v);
    j->drop_ids[ret->nids++] =
        trp_task_id(&j->c.choice[i], j->c.pipeline->stages[i].name, &b->items, &v);
}

/* Of stage `i`, whose k-th parent by a column this is: of each value once, since none of its
 * tasks begins before all that have it are over. */
static void drop_by(trp_command_job *j, uint32_t i, uint32_t k, struct running *b,
                    uint32_t task, struct trp_done_drops *ret)
{
    struct trp_by_tasks *by = &j->c.choice[i].by[k];
    const struct trp_by_task *end, *at = trp_by_of(by, task, &end);
    for (; at < end; at++) {
        uint32_t v = at->value;
        for (uint32_t c = by->first[v]; by->stale[v] < 2 && c < by->first[v + 1]; c++)
            drop_task(j, i, b, by->tasks[c], ret);
        by->stale[v] = 2;
    }
}

/* Of what comes after it: the records that count no more now. A stage of which it is not
 * known what its tasks are is dropped as a whole, and a stage whose tasks wait for all of
 * these, once. */
static void find_drops(trp_command_job *j, uint32_t stage, uint32_t task,
                       struct trp_done_drops *ret)
{
    const trp_pipeline *p = j->c.pipeline;
    uint32_t own = j->specs.of[stage];
    *ret = (struct trp_done_drops){.stages = j->drop_names};
    for (uint32_t k = j->below_first[own]; k < j->below_first[own + 1]; k++) {
        uint32_t i = j->below[k], at = j->place[i];
        struct running *b = at == TRP_NONE ? NULL : &j->running[at];
        bool each = false, by_above = b ? b->by_above : j->c.choice[i].late;
        uint32_t nby = 0, by = TRP_NONE;
        for (uint32_t a = 0; a < p->stages[i].nafter; a++) {
            const struct trp_after *after = &p->stages[i].after[a];
            each = each || (after->index == own && after->each);
            by = after->index == own && after->by ? nby : by;
            nby += after->by != NULL;
        }
        if ((each && !by_above) || j->dropped[i])
            continue; /* its records were dropped before anything ran */
        if (b && by != TRP_NONE && b->items.known && by < j->c.choice[i].nby) {
            drop_by(j, i, by, b, task, ret);
            continue;
        }
        if (b && each && by == TRP_NONE && b->items.known && task < b->items.ntasks) {
            drop_task(j, i, b, task, ret);
            continue;
        }
        j->dropped[i] = true;
        j->drop_names[ret->nstages++] = p->stages[i].name;
    }
    ret->ids = j->drop_ids;
}

static void note_temps(trp_command_job *j, uint32_t stage, uint32_t task,
                       const struct trp_outputs *outputs)
{
    if (j->c.temp_set)
        trp_temp_set_add(j->c.temp_set, stage_of(j, stage)->name, task, outputs);
    trp_temp_files_hold(j->temps, j->specs.of[stage], task, outputs);
}

static void task_succeeded(trp_command_job *j, uint32_t stage, uint32_t task)
{
    struct running *r = &j->running[stage];
    struct trp_task_values v;
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct trp_outputs outputs = {0}, inputs = {0};
    struct trp_print read = {0, 0};
    char *unmatched;
    if (r->has_own_outputs)
        find_outputs(j, stage, task, &outputs);
    values_of_task(r, task, &v);
    const struct trp_stage_choice *choice = &j->c.choice[j->specs.of[stage]];
    struct trp_print id = id_of(j, stage, &v);
    bool reads = trp_task_inputs(s, j->c.cwd, &v, &inputs, &unmatched);
    trp_temp_set_drop(j->c.temp_set, &inputs);
    if (reads)
        read = trp_inputs_print(&inputs);
    tell_unmatched(j, stage, task, unmatched);
    free(unmatched);
    struct trp_done_drops drops = {0};
    bool remade = is_remade(j, stage, task);
    if (remade)
        drops = (struct trp_done_drops){.ids = &id, .nids = 1};
    else if (j->below)
        find_drops(j, stage, task, &drops);
    r->made = r->made || !remade;
    trp_done_log_task(j->c.log, s->name, task, id,
                      trp_task_print(choice, &r->items, &v), read, &outputs, &drops);
    trp_task_files_record(j->files, s->name, task, &outputs);
    set_writable(j, stage, task, false);
    note_temps(j, stage, task, &outputs);
    trp_temp_files_done(j->temps, j->specs.of[stage], task);
    if (j->sums && (outputs.n || inputs.n))
        trp_file_sums_task(j->sums, task, id, &outputs, &inputs);
    trp_outputs_free(&outputs);
    trp_outputs_free(&inputs);
}

/* Not all that it was to do may have been done. */
static void tell_unclear(trp_command_job *j, uint32_t stage,
                         const struct trp_action *verdict, const struct trp_end *end)
{
    char line[768], word[TRP_TASK_WORD];
    if (!end || !end->limit_mib || !j->c.say)
        return;
    snprintf(line, sizeof line,
             "warning: stage %s: task %s, attempt %u ended well while a process on its "
             "executor was killed for memory (limit %lld MiB), which may have been its",
             stage_of(j, stage)->name, word_of(j, stage, verdict->task_end.task, word),
             verdict->task_end.number, (long long)end->limit_mib);
    j->c.say(j->c.say_context, line);
}

/* The last one that failed and does not run again. */
static struct trp_failed_attempt failed_attempt(const trp_command_job *j,
                                                uint32_t stage)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct running *r = &j->running[stage];
    return (struct trp_failed_attempt){
        .run_dir = j->c.run_dir,
        .shown = j->end.shown,
        .stage = s,
        .task = r->task,
        .stage_attempt = j->work.first_attempt + (s->spec.barrier ? r->number : 0),
        .number = r->number,
    };
}

/* The words of what failed, which the engine does not know; of a gang that was not
 * started also where those of its launcher are. */
static void platform_failed(trp_command_job *j, uint32_t stage,
                            const struct trp_action *verdict, const struct trp_end *end)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    bool never = verdict->task_end.status == TRP_END_NEVER;
    struct trp_mark mark = never && s->profile_mark.line ? s->profile_mark : s->mark;
    if (r->refused || !end || !end->extra_size)
        return;
    r->task = verdict->task_end.task;
    r->number = verdict->task_end.number;
    struct trp_failed_attempt attempt = failed_attempt(j, stage);
    attempt.no_rank = true;
    char *log = never ? NULL : trp_failed_log(&attempt);
    if (asprintf(&r->refused, "%s:%u:%u: stage %s: %.*s%s%s%s",
                 trp_mark_file(j->c.pipeline->file, mark), mark.line, mark.column,
                 s->name, (int)end->extra_size, (const char *)end->extra,
                 log ? "; see " : "", log ? j->end.shown : "",
                 log ? log + strlen(j->c.run_dir) : "") < 0)
        r->refused = NULL;
    free(log);
}

static bool attempt_check(void *context, uint32_t stage, uint32_t task, char *why,
                          size_t size)
{
    trp_command_job *j = context;
    struct trp_task_values v;
    values_of_task(&j->running[stage], task, &v);
    return trp_output_names_stand(j->names, j->specs.of[stage], task, &v, why, size);
}

static void task_ended(void *context, uint32_t stage, const struct trp_action *verdict,
                       const struct trp_end *end)
{
    trp_command_job *j = context;
    struct running *r = &j->running[stage];
    char reason[TRP_ERROR_TEXT];
    r->late = r->ended;
    files_end(j, stage, verdict);
    if (verdict->task_end.status == TRP_END_SUCCESS) {
        tell_unclear(j, stage, verdict, end);
        task_succeeded(j, stage, verdict->task_end.task);
    } else if (r->ended) {
        return;
    } else if (verdict->task_end.status == TRP_END_PLATFORM ||
               verdict->task_end.status == TRP_END_NEVER) {
        platform_failed(j, stage, verdict, end);
    } else if (verdict->task_end.counted && !verdict->task_end.retried) {
        trp_end_reason(verdict, end, stage_of(j, stage)->timeout_ns, reason,
                       sizeof reason);
        free(r->reason);
        r->reason = strdup(reason);
        r->task = verdict->task_end.task;
        r->number = verdict->task_end.number;
        r->failures = verdict->task_end.failures;
        r->exit = verdict->task_end.status == TRP_END_EXIT ? verdict->task_end.code : 0;
    }
}

/* ---- a stage ends ---- */

/* "; item s4.fq"; "" for none, and where the task has a name. What is no text is a dot. */
static const char *item_text(const trp_command_job *j, uint32_t stage,
                             const struct trp_event_given_up *t, char *buf, size_t size)
{
    buf[0] = '\0';
    if (!t || !t->item || trp_items_named(&j->running[stage].items))
        return buf;
    snprintf(buf, size, "; item %.*s", (int)(t->item_size < 200 ? t->item_size : 200),
             t->item);
    for (char *c = buf; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '.';
    return buf;
}

/* What is easily missed of how a shell ends; "" for nothing. `see`: what it printed. */
static const char *shell_hint(const trp_command_job *j, uint32_t stage, const char *see,
                              char *buf, size_t size)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct running *r = &j->running[stage];
    struct trp_shell shell = trp_stage_shell(j->c.pipeline, s, j->c.options);
    bool bash = shell.kind == TRP_SHELL_BASH;
    buf[0] = '\0';
    if (!s->run || !r->exit || shell.kind == TRP_SHELL_WORDS)
        return buf;
    if (r->exit == 141 && bash)
        snprintf(buf, size,
                 "; SIGPIPE under pipefail: a command read only a part of "
                 "what another one wrote to it");
    else if (!bash && (r->exit == 127 || (see && strstr(see, "yntax error"))))
        snprintf(buf, size, "; the shell is /bin/sh, and shell: bash has bash");
    else if (!see || !*see)
        snprintf(buf, size, "; run stops at the first command that fails");
    return buf;
}

/* The line of the last task that failed; with `t`, what it worked on. */
static void task_line(trp_command_job *j, uint32_t stage, enum trp_end_line_kind kind,
                      const struct trp_event_given_up *t)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct running *r = &j->running[stage];
    char failed[48], of[224], hint[128], word[TRP_TASK_WORD];
    const struct trp_failed_attempt attempt = failed_attempt(j, stage);
    char *see = trp_failed_log_see(&attempt);
    trp_end_line_add(&j->end, kind, "%s:%u:%u: stage %s: task %s %s %s%s%s%s",
                     trp_mark_file(j->c.pipeline->file, s->mark), s->mark.line,
                     s->mark.column, s->name, word_of(j, stage, r->task, word),
                     trp_failed_text(r->failures, r->reason, failed, sizeof failed),
                     r->reason, shell_hint(j, stage, see, hint, sizeof hint),
                     see ? see : "", item_text(j, stage, t, of, sizeof of));
    free(see);
}

/* Did more of its tasks fail for good than it tolerates? */
static bool is_too_many(const trp_command_job *j, uint32_t stage)
{
    const struct running *r = &j->running[stage];
    const struct trp_stage_spec *s = &stage_of(j, stage)->spec;
    uint64_t part = (uint64_t)r->items.ntasks * s->tolerate_ppm / 1000000;
    return r->given_up > s->tolerate && r->given_up > part;
}

static void task_given_up(void *context, uint32_t stage, uint32_t after,
                          struct trp_event_given_up *t)
{
    trp_command_job *j = context;
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    struct trp_task_values v;
    values_of_task(r, t->task, &v);
    char of[224], word[TRP_TASK_WORD], above[TRP_TASK_WORD];
    t->item = v.item;
    t->item_size = v.item ? strnlen(v.item, v.item_size) : 0; /* without columns */
    free(j->log);
    j->log = NULL;
    if (after != TRP_NONE) {
        r->skipped++;
        trp_end_line_add(&j->end, TRP_END_TASK_SKIPPED,
                         "stage %s: task %s was skipped: task %s of stage %s was given "
                         "up%s",
                         s->name, word_of(j, stage, t->task, word),
                         word_of(j, after, t->parent_task, above),
                         stage_of(j, after)->name,
                         item_text(j, stage, t, of, sizeof of));
        return;
    }
    r->given_up++;
    if (!r->reason || r->task != t->task)
        return;
    const struct trp_failed_attempt attempt = failed_attempt(j, stage);
    j->log = trp_failed_log(&attempt);
    t->log = j->log ? j->log + strlen(j->c.run_dir) + 1 : NULL;
    if (!j->c.keep_going && is_too_many(j, stage) && !j->blamed) {
        j->blamed = true; /* it ends the run */
        task_line(j, stage, TRP_END_LAST, NULL);
    } else if (trp_end_lines_room(&j->end, TRP_END_TASK_FAILED))
        task_line(j, stage, TRP_END_TASK_FAILED, t);
    else
        trp_end_line_add(&j->end, TRP_END_TASK_FAILED, "%s", "");
}

/* How many of a stage's tasks were given up, and where their logs are. Of one that
 * failed by a single task that task's line says it all. */
static void losses_line(trp_command_job *j, uint32_t stage, const char *how)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    const struct running *r = &j->running[stage];
    bool failed = strcmp(how, "failed") == 0;
    char lost[96], logs[4300];
    if (r->given_up + r->skipped == 0 || (failed && r->given_up == 1 && !r->skipped))
        return;
    int n =
        snprintf(lost, sizeof lost, "%u of %u task%s %s",
                 r->given_up ? r->given_up : r->skipped, r->items.ntasks,
                 r->items.ntasks == 1 ? "" : "s", r->given_up ? "given up" : "skipped");
    if (r->given_up && r->skipped)
        snprintf(lost + n, sizeof lost - (size_t)n, ", %u skipped", r->skipped);
    snprintf(logs, sizeof logs, "%s/logs/%s", j->c.run_dir, s->name);
    bool see = r->given_up && trp_logs_any(logs);
    trp_end_line_add(&j->end, TRP_END_STAGE_LOST, "stage %s %s: %s%s%s%s%s", s->name,
                     how, lost, see ? "; see " : "", see ? j->end.shown : "",
                     see ? "/logs/" : "", see ? s->name : "");
}

static void stage_failed(trp_command_job *j, uint32_t stage,
                         const struct trp_action *verdict)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    struct trp_mark mark = s->mark;
    j->failed = true;
    losses_line(j, stage, "failed");
    if (r->refused) {
        trp_end_line_add(&j->end, TRP_END_LAST, "%s", r->refused);
    } else if (verdict->stage_ended.code == TRP_EFAILED && verdict->stage_ended.lost &&
               (j->c.keep_going || j->blamed)) {
        return; /* they have lines of their own */
    } else if (r->reason && r->task == verdict->stage_ended.task) {
        task_line(j, stage, TRP_END_LAST, NULL);
    } else {
        if (verdict->stage_ended.code == TRP_ENEVER && s->profile_mark.line)
            mark = s->profile_mark;
        trp_end_line_add(&j->end, TRP_END_LAST, "%s:%u:%u: stage %s: %s",
                         trp_mark_file(j->c.pipeline->file, mark), mark.line,
                         mark.column, s->name, verdict->stage_ended.text);
    }
}

/* What of it is for launches only. */
static void running_end(struct running *r)
{
    if (!r->kept) {
        free(r->done);
        r->done = NULL;
    }
    free(r->to_make);
    r->to_make = NULL;
    r->nto_make = 0;
    trp_buf_free(&r->body);
    trp_stage_places_free(&r->places);
    trp_outputs_free(&r->before);
    free(r->rows);
    r->rows = NULL;
    r->ended = true;
}

static void running_free(struct running *r)
{
    running_end(r);
    if (!r->lent)
        trp_items_free(&r->items);
    trp_buf_free(&r->columns);
    free(r->refused);
    free(r->reason);
    *r = (struct running){.ended = true,
                          .over = true,
                          .lent = r->lent,
                          .items = r->items,
                          .made = r->made,
                          .kept = r->kept,
                          .done = r->done,
                          .ntasks = r->ntasks,
                          .by_above = r->by_above};
}

static void record_stage(trp_command_job *j, uint32_t stage)
{
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct trp_outputs outputs = {0};
    if (!s->noutputs)
        return;
    find_outputs(j, stage, TRP_NONE, &outputs);
    trp_done_log_stage(j->c.log, s->name, &outputs);
    trp_task_files_record(j->files, s->name, TRP_NONE, &outputs);
    note_temps(j, stage, TRP_NONE, &outputs);
    if (j->sums && outputs.n)
        trp_file_sums_stage(j->sums, s->name, &outputs);
    trp_outputs_free(&outputs);
}

/* Whether its tasks have made or changed a file of these. Where tasks were done in an
 * earlier start it may be theirs. */
static bool is_made(const struct running *r, const struct trp_outputs *now)
{
    for (uint32_t i = 0; i < now->n; i++) {
        const struct trp_output *was = trp_outputs_find(&r->before, now->v[i].path);
        if (!was || !trp_output_is_same(was, &now->v[i]))
            return true;
    }
    return now->n && (now->large || r->done);
}

/* The first of the stage's own outputs that has to be made and was not. */
static int stage_check(void *context, uint32_t stage, trp_error *err)
{
    trp_command_job *j = context;
    const struct trp_pipeline_stage *s = stage_of(j, stage);
    struct running *r = &j->running[stage];
    char why[TRP_ERROR_TEXT];
    r->unchanged = false;
    for (uint32_t i = 0; i < s->noutputs; i++) {
        struct trp_outputs now = {0};
        if (!is_checked(s, i))
            continue;
        find_stage_output(j, s->outputs[i], &now);
        bool there = now.n > 0, made = is_made(r, &now);
        trp_outputs_free(&now);
        if (made)
            continue;
        r->unchanged = there;
        return there ? trp_error_set(err, TRP_EWAIT, TRP_OUTPUT_UNCHANGED,
                                     s->outputs[i], s->outputs[i])
                     : trp_error_set(err, TRP_EWAIT, "output %s was not made",
                                     s->outputs[i]);
    }
    return trp_output_names_stand(j->names, j->specs.of[stage], TRP_NONE,
                                  &(struct trp_task_values){0}, why, sizeof why)
               ? 0
               : trp_error_set(err, TRP_EINVAL, "%s", why);
}

static void stage_ended(void *context, uint32_t stage, const struct trp_action *verdict)
{
    trp_command_job *j = context;
    enum trp_outcome outcome = verdict->stage_ended.outcome;
    if (j->running[stage].ended)
        return;
    if (j->running[stage].body.size)
        drop_log_dir(j, stage_of(j, stage)->name);
    trp_task_files_close(j->files, j->specs.of[stage], TRP_NONE);
    if (outcome == TRP_OUTCOME_FAILED)
        stage_failed(j, stage, verdict);
    else if (outcome == TRP_OUTCOME_SUCCEEDED)
        losses_line(j, stage, "succeeded");
    else if (outcome == TRP_OUTCOME_SKIPPED && *verdict->stage_ended.text)
        trp_end_line_add(&j->end, TRP_END_STAGE_SKIPPED, "stage %s was skipped: %s",
                         stage_of(j, stage)->name, verdict->stage_ended.text);
    if (outcome == TRP_OUTCOME_FAILED && j->running[stage].unchanged)
        trp_done_log_drop_stage(j->c.log, stage_of(j, stage)->name); /* not done */
    else if (outcome != TRP_OUTCOME_SKIPPED)
        record_stage(j, stage);
    if (outcome == TRP_OUTCOME_SUCCEEDED) {
        set_writable(j, stage, TRP_NONE, false);
        if (!j->running[stage].given_up && !j->running[stage].skipped)
            trp_temp_files_done(j->temps, j->specs.of[stage], TRP_NONE);
    }
    if (outcome == TRP_OUTCOME_SUCCEEDED || outcome == TRP_OUTCOME_SKIPPED) {
        trp_resume_unlink(&j->c.choice[j->specs.of[stage]]);
        running_free(&j->running[stage]);
    } else
        running_end(&j->running[stage]);
    give_back(j, stage);
}

void trp_command_job_ended(trp_command_job *j)
{
    for (uint32_t i = 0; i < j->spec.nstages; i++)
        if (j->running[i].late) {
            drop_log_dir(j, stage_of(j, i)->name);
            record_stage(j, i);
        }
}

bool trp_command_job_removes(const trp_command_job *j)
{
    return trp_temp_files_left(j->temps) > 0;
}

void trp_command_job_stop_removing(trp_command_job *j)
{
    trp_temp_files_stop(j->temps);
}

uint32_t trp_command_job_removed_of(const trp_command_job *j, uint32_t stage)
{
    return trp_temp_files_removed(j->temps, stage);
}

bool trp_command_job_removed(const trp_command_job *j, char *buf, size_t size)
{
    return trp_temp_files_text(j->temps, buf, size);
}

bool trp_command_job_reads(const trp_command_job *j)
{
    return j->sums && trp_file_sums_left(j->sums);
}

void trp_command_job_stop_reading(trp_command_job *j)
{
    trp_file_sums_close(j->sums);
    j->sums = NULL;
}

/* ---- the job ---- */

/* Takes over what the choice knows of a stage, and checks what the file says of it. */
static int prepare(trp_command_job *j, uint32_t i, trp_error *err)
{
    const struct trp_pipeline_stage *s = stage_of(j, i);
    struct trp_stage_choice *choice = &j->c.choice[j->specs.of[i]];
    struct running *r = &j->running[i];
    struct trp_strings argv = {0};
    r->items = choice->items;
    r->done = choice->done;
    r->by_above = choice->late;
    r->kept = j->below != NULL;
    choice->items = (struct trp_items){0};
    trp_done_log_is(j->c.log, s->name, &choice->parts);
    choice->done = NULL;
    r->to_make = calloc((size_t)s->noutputs + 1, sizeof *r->to_make);
    if (!r->to_make)
        return out_of_memory(s->name, err);
    for (uint32_t k = 0; k < s->noutputs; k++) {
        bool own = trp_output_of_task(s->outputs[k]);
        r->has_own_outputs = r->has_own_outputs || own;
        j->specs.stages[i].checked |= is_checked(s, k);
        if (own && !s->optional[k])
            r->to_make[r->nto_make++] = s->outputs[k];
    }
    int rc = trp_stage_argv(j->c.pipeline, s, j->c.options, &argv, err);
    trp_strings_free(&argv);
    if (rc == 0)
        rc = trp_foreach_check(j->c.pipeline, s, j->c.cwd, err);
    r->unread = rc > 0;
    if (rc >= 0)
        rc = trp_by_check(j->c.pipeline, s, j->c.cwd, err);
    if (rc == 0 && trp_foreach_known(s) && !r->items.known)
        rc = trp_foreach_evaluate(j->c.pipeline, s, j->c.cwd, &r->items, err);
    r->ntasks = r->items.ntasks;
    if (rc == 0 && trp_foreach_known(s) && !r->done && !r->by_above)
        trp_stage_specs_count(&j->specs, i, j->c.pipeline, r->items.ntasks);
    return rc;
}

/* Which stages come after which. */
static bool make_below(trp_command_job *j)
{
    const trp_pipeline *p = j->c.pipeline;
    size_t n = p->nstages, links = 1;
    for (size_t i = 0; i < n; i++)
        links += p->stages[i].nafter;
    j->below_first = calloc(n + 2, sizeof *j->below_first);
    j->below = calloc(links, sizeof *j->below);
    j->dropped = calloc(n + 1, sizeof *j->dropped);
    j->drop_names = calloc(n + 1, sizeof *j->drop_names);
    if (!j->below_first || !j->below || !j->dropped || !j->drop_names)
        return false;
    for (size_t i = 0; i < n; i++) /* how many, two places further on */
        for (uint32_t a = 0; a < p->stages[i].nafter; a++)
            j->below_first[p->stages[i].after[a].index + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        j->below_first[i] += j->below_first[i - 1];
    for (uint32_t i = 0; i < n; i++) /* which moves each to where it begins */
        for (uint32_t a = 0; a < p->stages[i].nafter; a++)
            j->below[j->below_first[p->stages[i].after[a].index + 1]++] = i;
    return true;
}

static int fill(trp_command_job *j, trp_error *err)
{
    const trp_pipeline *p = j->c.pipeline;
    size_t n = (size_t)p->nstages + 1;
    bool *runs = calloc(n, sizeof *runs);
    j->ids = calloc(n, sizeof *j->ids);
    j->running = calloc(n, sizeof *j->running);
    j->place = calloc(n, sizeof *j->place);
    int r = runs && j->ids && j->running && j->place
                ? trp_environ_clean(j->c.environ, j->c.nenviron, &j->environ)
                : TRP_ENOMEM;
    if (r < 0) {
        free(runs);
        return trp_error_set(err, r, "out of memory for %u stages", p->nstages);
    }
    memcpy(j->ids, j->c.ids, p->nstages * sizeof *j->ids);
    if (j->c.earlier_runs && !make_below(j)) {
        free(runs);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages",
                             p->nstages);
    }
    for (uint32_t i = 0; i < p->nstages; i++)
        runs[i] = j->c.choice[i].runs;
    r = trp_stage_specs_make(p, j->ids, j->c.options, runs, &j->specs, err);
    free(runs);
    j->spec = (struct trp_job_spec){.stages = j->specs.stages,
                                    .nstages = j->specs.nstages,
                                    .drains = !j->c.fail_fast};
    for (uint32_t i = 0; i < p->nstages; i++)
        j->place[i] = TRP_NONE;
    for (uint32_t i = 0; r == 0 && i < j->spec.nstages; i++)
        j->place[j->specs.of[i]] = i;
    for (uint32_t i = 0; r == 0 && i < j->spec.nstages; i++)
        for (uint32_t a = 0; a < stage_of(j, i)->nafter; a++) {
            uint32_t at = j->place[stage_of(j, i)->after[a].index];
            if (stage_of(j, i)->after[a].by && at != TRP_NONE)
                j->running[at].lent++;
        }
    for (uint32_t i = 0; i < j->spec.nstages && r == 0; i++)
        r = prepare(j, i, err);
    return r;
}

/* What earlier starts have left to go. */
static void begin_temps(trp_command_job *j)
{
    for (uint32_t i = 0; i < j->c.pipeline->nstages; i++) {
        const struct trp_outputs *left =
            trp_done_log_stage_outputs(j->c.log, j->c.pipeline->stages[i].name);
        if (left)
            trp_temp_files_hold(j->temps, i, TRP_NONE, left);
        hold_temps(j, i);
    }
    for (uint32_t i = 0; i < j->c.pipeline->nstages; i++)
        if (j->c.choice[i].complete)
            trp_temp_files_done(j->temps, i, TRP_NONE);
}

int trp_command_job_new(const struct trp_command_job_config *config,
                        trp_command_job **ret, trp_error *err)
{
    trp_command_job *j = calloc(1, sizeof *j);
    char why[TRP_ERROR_TEXT];
    if (!j)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the pipeline");
    j->c = *config;
    j->end.shown = trp_run_shown(j->c.run_dir);
    uint32_t logged = trp_done_log_attempts(config->log);
    j->work = (struct trp_work){
        .context = j,
        .first_attempt = logged > config->earlier_runs ? logged : config->earlier_runs,
        .lasts = true,
        .stage_tasks = stage_tasks,
        .stage_message = stage_message,
        .attempt_check = attempt_check,
        .stage_attempt = stage_attempt,
        .stage_check = stage_check,
        .launch = launch,
        .task_ended = task_ended,
        .task_given_up = task_given_up,
        .task_name = task_name,
        .stage_ended = stage_ended,
    };
    if (j->work.first_attempt)
        trp_done_log_attempt(j->c.log, j->work.first_attempt);
    j->files = trp_task_files_new(j->c.pipeline, j->c.cwd, j->c.run_dir);
    int r = j->files ? fill(j, err)
                     : trp_error_set(err, TRP_ENOMEM, "out of memory for the pipeline");
    if (r == 0)
        r = trp_output_names_new(j->c.pipeline, j->c.cwd, &j->names, err);
    for (uint32_t i = 0; r == 0 && i < j->c.pipeline->nstages; i++)
        if (!j->c.choice[i].runs) /* what it has made is there */
            trp_output_names_stand(j->names, i, TRP_NONE, &(struct trp_task_values){0},
                                   why, sizeof why);
    if (r == 0)
        trp_done_log_each(j->c.log, trp_task_files_record, j->files);
    if (r == 0 && j->c.temp_users)
        r = trp_temp_files_new(j->c.pipeline, j->c.temp_users, j->c.cwd, j->c.run_dir,
                               j->files, &j->temps, err);
    if (r == 0 && j->temps)
        begin_temps(j);
    if (r == 0 && j->c.contents)
        r = trp_file_sums_open(j->c.cwd, j->c.log, &j->sums, err);
    if (r < 0) {
        trp_command_job_free(j);
        return r;
    }
    *ret = j;
    return 0;
}

void trp_command_job_free(trp_command_job *j)
{
    if (!j)
        return;
    trp_command_job_stop_reading(j);
    trp_temp_files_free(j->temps);
    trp_task_files_free(j->files);
    trp_output_names_free(j->names);
    for (uint32_t i = 0; j->running && i < j->spec.nstages; i++) {
        j->running[i].kept = false;
        j->running[i].lent = 0;
        running_free(&j->running[i]);
    }
    free(j->running);
    free(j->place);
    free(j->below_first);
    free(j->below);
    free(j->dropped);
    free(j->drop_ids);
    free(j->drop_names);
    free(j->links);
    trp_stage_specs_free(&j->specs);
    free(j->ids);
    trp_strings_free(&j->environ);
    trp_end_lines_free(&j->end);
    free(j->log);
    free(j);
}

const struct trp_job_spec *trp_command_job_spec(const trp_command_job *j)
{
    return &j->spec;
}

const struct trp_work *trp_command_job_work(const trp_command_job *j)
{
    return &j->work;
}

const char *trp_command_job_line(const trp_command_job *j, uint32_t i)
{
    return trp_end_line(&j->end, i);
}

bool trp_command_job_failed(const trp_command_job *j)
{
    return j->failed;
}
