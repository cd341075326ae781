/*
 * `troupe run`: everything is read and checked before anything is made; then the run
 * folder with what the driver works from (run_make.c), then the driver under
 * supervision (supervise.c).
 *
 * --resume takes from the earlier call what this one does not say: the pipeline, params,
 * --set and --local, and the folder it was called in, so that the same tasks are
 * recognised as done. The pipeline is read again where it was; its stored copy is for
 * --as-it-was and for a job that Slurm has started again, whose user has not asked for
 * anything new.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choice_lines.h"
#include "commands.h"
#include "conf/wording.h"
#include "core/base/utf8.h"
#include "driver/done_log.h"
#include "driver/fit.h"
#include "driver/kept_lists.h"
#include "driver/pipeline_settings.h"
#include "driver/plan_print.h"
#include "driver/resume.h"
#include "events/log_past.h"
#include "needs.h"
#include "notify.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "os/strings.h"
#include "programs.h"
#include "report_page.h"
#include "requeue.h"
#include "run_call.h"
#include "run_make.h"

/* Everything that one call of `troupe run` holds. */
struct run {
    struct trp_run_call call;
    struct trp_settings settings;
    struct trp_cluster_where where;
    struct trp_run_spec *earlier; /* of the resumed run */
    trp_run_folder *folder;
    char *called_in;  /* where this call was made */
    char *cwd;        /* where relative paths begin */
    char *runs;       /* the folder of runs */
    char *stored;     /* path of the stored pipeline */
    char *site;       /* absolute path of the site file, NULL: none */
    char *again;      /* the run's name in a job that was started again */
    char *rank, *app; /* troupe-rank; the application's path */
    char **kept;      /* "KEY=VALUE" taken from the earlier call */
    uint32_t nkept;
    struct trp_name_list unnamed; /* params that have changed, which no stage names … */
    char *one_unnamed;            /* … the first of them; NULL: there is none */
    struct trp_kept_lists kept_lists; /* with --as-it-was */
    struct trp_carried carried;
    bool plan, json; /* troupe plan --resume */
    bool explains;   /* troupe explain: what would run again … */
    enum trp_plan_form form;
    const char *of; /* … of this stage; NULL: of all */
    struct trp_supervisor supervisor;
};

/* ---- --resume ---- */

/* The earlier call's settings come first, so that this call's win. */
static int keep_first(struct run *r, const char **list, uint32_t *n, const char *option,
                      const char *key, const char *value, trp_error *err)
{
    char *word;
    int code = trp_settings_word(list, n, option, "", err);
    if (code < 0)
        return code;
    if (asprintf(&word, "%s=%s", key, value) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    r->kept[r->nkept++] = word;
    memmove(list + 1, list, (*n - 1) * sizeof *list);
    list[0] = word;
    return 0;
}

static int keep_settings(struct run *r, trp_error *err)
{
    struct trp_settings_request *q = &r->call.settings;
    const struct trp_run_spec *e = r->earlier;
    r->kept = calloc((size_t)e->nparams + e->noptions + 1, sizeof *r->kept);
    if (!r->kept)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code = 0;
    for (uint32_t i = e->nparams; i > 0 && code == 0; i--)
        code = keep_first(r, q->params, &q->nparams, "param", e->params[i - 1].key,
                          e->params[i - 1].value, err);
    for (uint32_t i = e->noptions; i > 0 && code == 0; i--) {
        if (e->options[i - 1].origin == TRP_ORIGIN_COMMAND_LINE)
            code = keep_first(r, q->sets, &q->nsets, "set", e->options[i - 1].key,
                              e->options[i - 1].value, err);
    }
    if (!q->local)
        q->cores = e->local_cores;
    if (!q->site && e->site && *e->site && !getenv("TROUPE_SITE"))
        q->site = e->site;
    return code;
}

/* A job of Slurm's that was started again. */
static bool was_requeued(void)
{
    const char *again = getenv("SLURM_RESTART_COUNT");
    return again && strcmp(again, "0") != 0 && getenv("SLURM_JOB_ID");
}

static bool takes_stored(const struct run *r)
{
    return r->call.as_it_was || was_requeued();
}

/* The pipeline of a resumed run, when none is given. */
static int find_pipeline(struct run *r, trp_error *err)
{
    const char *file = r->earlier->pipeline;
    if (takes_stored(r)) {
        char stored[4300], name[4300];
        snprintf(stored, sizeof stored, "%s/state/pipeline.yaml", r->folder->path);
        if (trp_held_name(stored, name, sizeof name))
            r->stored = strdup(name);
    } else {
        r->stored = trp_path_join(r->earlier->cwd, file);
        if (r->stored && access(r->stored, F_OK) < 0)
            return trp_error_set(err, TRP_EINVAL,
                                 "%s: the pipeline of %s is not there any more (%s); "
                                 "name the file, or --as-it-was takes it as it was",
                                 file, r->folder->shown, strerror(errno));
    }
    return r->stored ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* Notes the params that are others than in the earlier start, for which nothing runs
 * again. */
static void note_unnamed(struct run *r, const trp_pipeline *was)
{
    const trp_pipeline *now = r->settings.pipeline;
    for (uint32_t i = 0; i < now->nparams; i++) {
        const struct trp_pair *p = &now->params[i];
        uint32_t k = 0;
        while (k < was->nparams && strcmp(was->params[k].key, p->key) != 0)
            k++;
        if (k == was->nparams || strcmp(was->params[k].value, p->value) == 0 ||
            trp_param_is_named(now, i))
            continue;
        trp_name_list_add(&r->unnamed, p->key);
        r->one_unnamed = r->one_unnamed ? r->one_unnamed : p->key;
    }
}

static void print_unnamed(const struct run *r, FILE *to, const char *lead)
{
    if (r->one_unnamed)
        fprintf(to,
                "%sno stage names these params, which have changed: %s (a script that "
                "reads TROUPE_PARAM_%s by itself: list it in params)\n",
                lead, r->unnamed.text, r->one_unnamed);
}

/* Has it the name of the earlier one, or a stage of it? What was stored and cannot be
 * read is no reason to refuse anything. */
static int check_same(struct run *r, trp_error *err)
{
    const trp_pipeline *now = r->settings.pipeline;
    trp_pipeline *was = NULL;
    bool same = trp_pipeline_stored(r->earlier, &was, NULL) < 0 ||
                strcmp(was->name, now->name) == 0;
    for (uint32_t i = 0; !same && i < now->nstages; i++)
        for (uint32_t k = 0; !same && k < was->nstages; k++)
            same = strcmp(now->stages[i].name, was->stages[k].name) == 0;
    int code = same ? 0
                    : trp_error_set(err, TRP_EINVAL,
                                    "%s: %s is another pipeline than that of %s, which "
                                    "is %s: they have no stage in common; run it "
                                    "without --resume",
                                    now->file, now->name, r->folder->shown, was->name);
    if (code == 0 && was)
        note_unnamed(r, was);
    trp_pipeline_free(was);
    return code;
}

/* What lay below the folder `from` lies below `to` now. False: no memory for that. */
static bool move_path(char **path, const char *from, const char *to)
{
    size_t n = strlen(from);
    char *moved;
    if (!*path || strncmp(*path, from, n) != 0 || (*path)[n] != '/')
        return true;
    if (asprintf(&moved, "%s%s", to, *path + n) < 0)
        return false;
    free(*path);
    *path = moved;
    return true;
}

/* With --here relative paths start in the present folder; else that where the run was
 * called is there still. */
static int settle_cwd(struct run *r, trp_error *err)
{
    struct trp_run_spec *e = r->earlier;
    if (!r->call.here) {
        if (access(e->cwd, X_OK) == 0)
            return 0;
        return trp_error_set(err, TRP_EINVAL,
                             "%s was called in %s, which cannot be entered (%s); "
                             "--here goes on in the present folder instead, as after "
                             "moving it",
                             r->folder->shown, e->cwd, strerror(errno));
    }
    char *here = strdup(r->cwd);
    if (!here || !move_path(&e->pipeline, e->cwd, here) ||
        !move_path(&e->site, e->cwd, here)) {
        free(here);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    free(e->cwd);
    e->cwd = here;
    return 0;
}

static int open_earlier(struct run *r, trp_error *err)
{
    struct trp_run_call *c = &r->call;
    int code = trp_run_folder_open(r->runs, c->resume, &r->folder, err);
    if (code == 0 && !r->plan && !c->dry_run)
        code = trp_run_folder_newest(r->folder, err);
    if (code == 0)
        code = trp_run_spec_load(r->folder->path, &r->earlier, err);
    if (code < 0)
        return code;
    if (r->earlier->napp)
        return trp_error_set(err, TRP_EINVAL,
                             "%s ran a program; only pipelines can be resumed",
                             r->folder->shown);
    code = settle_cwd(r, err);
    if (code == 0 && !c->settings.pipeline) {
        code = find_pipeline(r, err);
        c->settings.pipeline = r->stored;
        c->settings.shown = r->earlier->pipeline;
        c->settings.cwd = r->earlier->cwd;
        c->settings.stored = takes_stored(r);
    }
    return code < 0 ? code : keep_settings(r, err);
}

/* A resumed run goes on where it was called first; its pipeline, when given, was read
 * before. */
static int enter_cwd(struct run *r, trp_error *err)
{
    if (!r->earlier || strcmp(r->earlier->cwd, r->cwd) == 0)
        return 0;
    trp_run_read_in(r->called_in);
    free(r->cwd);
    r->cwd = strdup(r->earlier->cwd);
    if (!r->cwd)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (chdir(r->cwd) < 0)
        return trp_error_set(err, TRP_EINVAL,
                             "the run was called in %s, which cannot be entered: %m",
                             r->cwd);
    return 0;
}

/* ---- checks ---- */

static int check_stage(const trp_pipeline *p, const char *option, const char *name,
                       trp_error *err)
{
    const struct trp_pipeline_stage *s = p->stages;
    uint32_t i = 0, all = p->nstages + p->nabsent;
    while (name && i < all && strcmp(s[i].name, name) != 0)
        i++;
    if (!name || i < p->nstages)
        return 0;
    if (i < all)
        return trp_error_set(err, TRP_EINVAL,
                             "%s:%u:%u: --%s %s: this when leaves the stage out",
                             trp_mark_file(p->file, s[i].when), s[i].when.line,
                             s[i].when.column, option, name);
    return trp_error_set(err, TRP_EINVAL, "--%s %s: %s has no such stage", option, name,
                         p->file);
}

static int check_names(const struct run *r, trp_error *err)
{
    const trp_pipeline *p = r->settings.pipeline;
    int code = check_stage(p, "from", r->call.from, err);
    if (code == 0)
        code = check_stage(p, "until", r->call.until, err);
    if (code == 0 && !r->call.nforce)
        code = trp_resume_check(p, r->call.from, r->call.until, err);
    for (uint32_t i = 0; i < r->call.nforce && code == 0; i++)
        code = check_stage(p, "force", r->call.force[i], err);
    return code;
}

/* Lists and tables of the stages that are to run are there, or can be made. */
static int check_lists(const trp_pipeline *p, const char *until, trp_error *err)
{
    bool *wanted = calloc((size_t)p->nstages + 1, sizeof *wanted);
    int code = wanted ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (uint32_t i = p->nstages; i-- > 0 && wanted;) {
        const struct trp_pipeline_stage *s = &p->stages[p->order[i]];
        wanted[p->order[i]] |= !until || strcmp(s->name, until) == 0;
        for (uint32_t k = 0; k < s->nafter; k++)
            wanted[s->after[k].index] |= wanted[p->order[i]];
    }
    for (uint32_t i = 0; i < p->nstages && code >= 0; i++)
        if (wanted[p->order[i]])
            code = trp_foreach_check(p, &p->stages[p->order[i]], NULL, err);
    free(wanted);
    return code < 0 ? code : 0;
}

/* Every profile is possible, every stage fits here. */
static int check_fit(const struct run *r, trp_error *err)
{
    const struct trp_settings *s = &r->settings;
    const trp_pipeline *p = s->pipeline;
    trp_profiles *profiles = NULL;
    trp_fit *fit = NULL;
    trp_profile_id *ids = calloc((size_t)p->nstages + 1, sizeof *ids);
    if (!ids)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code = trp_pipeline_profiles(p, s->options, s->site, &profiles, ids, err);
    if (code == 0)
        code = trp_fit_open(s->options, s->site, &r->where, &fit, err);
    for (uint32_t i = 0; i < p->nstages && code == 0; i++) {
        uint32_t stage = p->order[i];
        code = trp_fit_stage(fit, p, s->site, &p->stages[stage],
                             trp_profiles_get(profiles, ids[stage]), err);
    }
    trp_fit_close(fit);
    trp_profiles_free(profiles);
    free(ids);
    return code;
}

static int prepare(struct run *r, trp_error *err)
{
    struct trp_run_call *c = &r->call;
    r->cwd = getcwd(NULL, 0);
    if (!r->cwd)
        return trp_error_set(err, TRP_ESYSTEM, "no working folder: %m");
    r->called_in = strdup(r->cwd);
    if (!r->called_in)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code = trp_runs_dir(c->runs, &r->runs, err);
    if (code == 0)
        code = trp_requeue_settle(c, r->runs, &r->again, err);
    if (code == 0 && c->resume)
        code = open_earlier(r, err);
    if (code == 0)
        code = trp_settings_load(&c->settings, &r->settings, err);
    if (code == 0 && r->earlier)
        code = check_same(r, err);
    if (code == 0 && c->settings.stored) {
        r->kept_lists =
            (struct trp_kept_lists){.run_dir = r->folder->path, .takes = true};
        r->settings.pipeline->kept_lists = &r->kept_lists;
    }
    if (code == 0 && !r->plan)
        trp_settings_missing(&r->settings);
    if (code == 0 && !r->plan && !c->dry_run && !c->quiet)
        print_unnamed(r, stderr, "troupe: ");
    if (code == 0 && *r->settings.site->file)
        r->site = realpath(r->settings.site->file, NULL);
    if (code == 0)
        code = enter_cwd(r, err);
    if (code == 0)
        code = trp_settings_where(&c->settings, &r->settings, &r->where, err);
    if (code == 0 && r->plan && !r->explains)
        trp_settings_outside(&c->settings, NULL, true, &r->where);
    if (code == 0)
        code = trp_settings_step(&r->where, err);
    if (code == 0 && r->settings.pipeline) {
        code = check_names(r, err);
        if (code == 0)
            code = trp_settings_pools(&r->settings, err);
        if (code == 0 && !r->plan)
            code = check_fit(r, err);
        if (code == 0 && !r->plan)
            code = check_lists(r->settings.pipeline, c->until, err);
    } else if (code == 0) {
        code = trp_program_find(c->app[0], &r->app, err);
    }
    return code == 0 ? trp_program_own("troupe-rank", &r->rank, err) : code;
}

/* ---- --dry-run ---- */

static int copy_file(const char *from, const char *to)
{
    char buf[1 << 16];
    int in = trp_held_open(from, O_RDONLY, 0);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = in < 0 || out < 0 ? -1 : 0;
    while (n >= 0 && (n = read(in, buf, sizeof buf)) > 0) {
        if (write(out, buf, (size_t)n) != n)
            n = -1;
    }
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return n < 0 ? -1 : 0;
}

/* What is done is looked up in a copy, since looking it up writes. */
static int open_done_copy(const struct run *r, char folder[TRP_PRIVATE_FOLDER],
                          trp_done_log **ret, trp_error *err)
{
    char from[4300], to[128];
    if (trp_private_folder("", folder, err) < 0)
        return TRP_ESYSTEM;
    snprintf(to, sizeof to, "%s/state", folder);
    snprintf(from, sizeof from, "%s/state/done.jsonl", r->folder->path);
    bool copied = mkdir(to, 0700) == 0;
    snprintf(to, sizeof to, "%s/state/done.jsonl", folder);
    struct stat st;
    if (copied && trp_held_stat(from, &st) == 0)
        copied = copy_file(from, to) == 0;
    if (!copied)
        return trp_error_set(err, TRP_ESYSTEM, "cannot copy %s: %m", from);
    return trp_done_log_open(folder, true, ret, err);
}

static int print_choices(const struct run *r, trp_done_log *log, trp_error *err)
{
    const struct trp_settings *s = &r->settings;
    const trp_pipeline *p = s->pipeline;
    struct trp_stage_choice *choices = NULL;
    struct trp_temp_users users = {0};
    trp_temp_set *set = NULL;
    int code = trp_temp_users_make(p, &users, err);
    if (code == 0)
        code = trp_temp_set_new(r->cwd, log, &set, err);
    const struct trp_resume_request q = {
        .pipeline = p,
        .options = s->options,
        .cwd = r->cwd,
        .from = r->call.from,
        .until = r->call.until,
        .force = (char *const *)(uintptr_t)r->call.force,
        .nforce = r->call.nforce,
        .log = log,
        .contents = trp_resume_checks_contents(s->options),
        .run_dir = r->folder ? r->folder->path : NULL,
        .temp_users = &users,
        .temp_set = set,
    };
    if (code == 0)
        code = trp_resume_choose(&q, &choices, err);
    if (r->plan && !r->explains && code == 0)
        code = trp_plan_print(p, s->options, s->site, &s->pools, r->carried.text,
                              &r->where, choices, r->form, stdout, err);
    if (r->plan && !r->explains && !r->json)
        printf("\nof %s:\n", r->folder->shown);
    if (code == 0 && !r->json) {
        const struct trp_choice_lines how = {.lead =
                                                 r->explains ? "with --resume, " : "",
                                             .of = r->of,
                                             .each = r->form == TRP_PLAN_ALL};
        trp_choice_lines_print(p, choices, &how);
    }
    if (code == 0 && !r->json && !r->explains)
        print_unnamed(r, stdout, "");
    if (choices)
        trp_stage_choices_free(choices, p->nstages);
    trp_temp_users_free(&users);
    trp_temp_set_free(set);
    return code;
}

static int dry_run(const struct run *r, trp_error *err)
{
    const struct trp_settings *s = &r->settings;
    trp_done_log *log = NULL;
    char folder[TRP_PRIVATE_FOLDER] = "";
    int code =
        r->plan ? 0 : trp_dry_run_print(s->pipeline, s->options, s->site, stdout, err);
    if (code == 0 && r->earlier)
        code = open_done_copy(r, folder, &log, err);
    if (code == 0 && (r->earlier || r->call.from || r->call.until))
        code = print_choices(r, log, err);
    if (log)
        trp_done_log_close(log, NULL);
    if (folder[0])
        trp_private_folder_remove(folder);
    return code;
}

/* ---- running ---- */

static const char *status_word(int status)
{
    switch (status) {
    case 0:
        return "succeeded";
    case 75:
        return "stopped";
    case 130:
        return "cancelled";
    default:
        return "failed";
    }
}

/* What stage attempts of this start are numbered from: above those of earlier starts,
 * each of which may have had several. */
static uint32_t earlier_runs(const struct run *r)
{
    char file[PATH_MAX];
    struct trp_log_past past;
    if (!r->earlier)
        return 0;
    uint32_t n = r->earlier->earlier_runs + 1;
    int size = snprintf(file, sizeof file, "%s/events.jsonl", r->folder->path);
    if (size >= (int)sizeof file || trp_log_past_read(file, &past, NULL) < 0)
        return n;
    return past.next.stage_attempt > n ? past.next.stage_attempt : n;
}

/* The application's argv, with its absolute path in front. */
static char **app_argv(const struct run *r)
{
    size_t n = 0;
    while (r->call.app[n])
        n++;
    char **argv = calloc(n + 1, sizeof *argv);
    if (!argv)
        return NULL;
    memcpy(argv, r->call.app, n * sizeof *argv);
    argv[0] = r->app;
    return argv;
}

static int start(struct run *r, const struct trp_run_make *make,
                 const struct trp_supervised *what)
{
    trp_error err;
    int status;
    if (trp_supervisor_open(&r->supervisor, r->carried.sockets, &err) < 0)
        return trp_launcher_fail(&err);
    if (trp_run_make(make, &err) < 0)
        status = trp_launcher_fail(&err);
    else
        status = trp_supervise(&r->supervisor, r->folder, what);
    trp_supervisor_close(&r->supervisor);
    return status;
}

/* Whether they write the same files nobody knows: their params may differ. */
static void warn_of_other(const struct run *r, const char *app_name)
{
    char *other = r->call.quiet ? NULL : trp_run_folder_other(r->folder, app_name);
    if (other)
        fprintf(stderr,
                "troupe: warning: run %s of this pipeline goes on in this folder, too; "
                "see that they do not write the same files\n",
                other);
    free(other);
}

static int supervise(struct run *r, const char *app_name, char **app)
{
    const char *const driver[] = {r->rank, "driver", r->folder->path, NULL};
    struct trp_supervised what = {.argv = app ? (const char *const *)app : driver,
                                  .is_program = app != NULL,
                                  .resumes = r->earlier != NULL,
                                  .helper = r->where.helper};
    trp_error err;
    struct trp_run_make make = {.call = &r->call,
                                .settings = &r->settings,
                                .supervisor = &r->supervisor,
                                .carried = r->carried.text,
                                .folder = r->folder,
                                .where = &r->where,
                                .earlier_runs = earlier_runs(r),
                                .called_in = r->called_in,
                                .cwd = r->cwd,
                                .site = r->site ? r->site : "",
                                .app_name = app_name,
                                .rank = r->rank,
                                .app = app};
    if (r->earlier && trp_run_folder_state(r->folder, app_name, "running", 0, &err) < 0)
        return trp_launcher_fail(&err);
    if (r->settings.pipeline)
        warn_of_other(r, app_name);
    int status = start(r, &make, &what);
    if (trp_run_folder_state(r->folder, app_name, status_word(status), status, &err) <
            0 &&
        status != trp_error_exit_status(TRP_ESYSTEM)) { /* else the driver has told */
        int failed = trp_launcher_fail(&err);
        status = status > 1 ? status : failed;
    }
    if (trp_options_bool(r->settings.options, "report.html"))
        trp_report_page_of_run(r->folder->path, status);
    if (r->settings.pipeline && r->settings.pipeline->notify)
        trp_notify(r->settings.pipeline->notify, r->folder, status);
    return status;
}

static int run(struct run *r, trp_error *err)
{
    const trp_pipeline *p = r->settings.pipeline;
    char program[NAME_MAX + 1]; /* as it is shown */
    const char *name = p ? p->name : program;
    snprintf(program, sizeof program, "%s", p ? "" : strrchr(r->app, '/') + 1);
    trp_utf8_plain(program, '?');
    char **app = p ? NULL : app_argv(r);
    if (!p && !app)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code = trp_needs_check(err);
    if (code == 0)
        code = trp_needs_transport(r->settings.options, r->app, &r->carried, err);
    if (code == 0 && !r->folder)
        code = trp_run_folder_new(r->runs, name, r->call.run_name, &r->folder, err);
    int status = code < 0 ? code : supervise(r, name, app);
    free(app);
    return status;
}

static void free_run(struct run *r)
{
    trp_settings_free(&r->settings);
    trp_settings_where_free(&r->where);
    trp_run_spec_free(r->earlier);
    if (r->folder)
        trp_run_folder_free(r->folder);
    for (uint32_t i = 0; i < r->nkept; i++)
        free(r->kept[i]);
    free(r->kept);
    free(r->called_in);
    free(r->cwd);
    free(r->runs);
    free(r->stored);
    free(r->again);
    free(r->site);
    free(r->rank);
    free(r->app);
}

/* The program is all that there is: it reads its options from the environment. */
static int run_inline(const struct trp_run_call *c, trp_error *err)
{
    char *app;
    int code = setenv("TROUPE_INLINE", "1", 1);
    if (c->settings.site)
        code |= setenv("TROUPE_SITE", c->settings.site, 1);
    for (uint32_t i = 0; i < c->settings.nsets; i++) {
        const char *value = strchr(c->settings.sets[i], '=');
        char *name;
        if (!value)
            return trp_error_set(err, TRP_EINVAL, "--set %s: KEY=VALUE is wanted",
                                 c->settings.sets[i]);
        int n = asprintf(&name, "TROUPE_OPT_%.*s", (int)(value - c->settings.sets[i]),
                         c->settings.sets[i]);
        if (n < 0)
            return trp_error_set(err, TRP_ENOMEM, "out of memory");
        for (char *dot = name; (dot = strchr(dot, '.'));)
            *dot = '_';
        code |= setenv(name, value + 1, 1);
        free(name);
    }
    if (code)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    code = trp_program_find(c->app[0], &app, err);
    if (code < 0)
        return code;
    execv(app, c->app);
    code = trp_error_set(err, TRP_EINVAL, "cannot start %s: %m", app);
    free(app);
    return code;
}

int trp_run_plan(const struct trp_run_call *call, enum trp_plan_form form)
{
    static struct run r;
    trp_error err;
    r.call = *call;
    r.plan = true;
    r.json = form == TRP_PLAN_JSON;
    r.form = form;
    int code = prepare(&r, &err);
    if (code == 0)
        trp_settings_warn(&r.settings);
    if (code == 0)
        code = trp_needs_transport(r.settings.options, NULL, &r.carried, &err);
    if (code == 0)
        code = dry_run(&r, &err);
    int status = trp_launcher_printed(0);
    if (code < 0)
        status = trp_launcher_fail(&err);
    free_run(&r);
    return status;
}

void trp_run_again(const struct trp_run_call *call, const char *stage, bool each)
{
    static struct run r;
    trp_error err;
    r.call = *call;
    r.plan = r.explains = true;
    r.of = stage;
    r.form = each ? TRP_PLAN_ALL : TRP_PLAN_TEXT;
    putchar('\n');
    int code = prepare(&r, &err);
    if (code == 0)
        code = dry_run(&r, &err);
    if (code < 0)
        printf("with --resume: %s\n", err.text);
    free_run(&r);
}

int trp_launcher_run(void)
{
    static struct run r;
    trp_error err;
    int code = trp_run_call_take(&r.call, &err);
    if (code == 0 && r.call.in_line)
        code = run_inline(&r.call, &err);
    if (code == 0)
        code = prepare(&r, &err);
    if (code == 0 && r.call.dry_run)
        code = trp_needs_transport(r.settings.options, r.app, &r.carried, &err);
    if (code == 0)
        code = r.call.dry_run ? dry_run(&r, &err) : run(&r, &err);
    if (code >= 0)
        code = trp_launcher_printed(code);
    else
        code = trp_launcher_fail(&err);
    free_run(&r);
    return code;
}
