/*
 * `troupe submit`: checks what can be checked here, makes the job's script and has
 * sbatch submit it.
 *
 * The run's folder is made before the job, since Slurm opens a job's output before the
 * job runs and makes no folders; `troupe run` takes it over (events/run_folder.h). When
 * the job is refused it is removed again.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/slurm/shared/driver_share.h"
#include "commands.h"
#include "conf/site_request.h"
#include "conf/yaml.h"
#include "driver/fit.h"
#include "events/run_folder.h"
#include "programs.h"
#include "sbatch.h"
#include "submit_call.h"
#include "submit_script.h"

struct submit {
    struct trp_submit_call call;
    struct trp_settings settings;
    char *runs, *troupe, *app;
    char *reserved; /* name of the folder that was made, or NULL */
    char *resume;   /* run to go on with, as the job is told it */
    char *shown;    /* the run, for the user */
    char *output;   /* of the job; NULL: Slurm's default */
    bool taken;     /* the job was */
};

/* ---- checks ---- */

/* Whether Slurm can be asked for what a stage needs. */
static int check_stage(const struct submit *s, const trp_profiles *profiles,
                       const trp_profile_id *ids, uint32_t i, trp_error *err)
{
    const trp_pipeline *p = s->settings.pipeline;
    const struct trp_resource_profile *profile = trp_profiles_get(profiles, ids[i]);
    struct trp_site_request r;
    trp_error why;
    const char *file = p->file;
    int code = trp_site_request_make(s->settings.site, profile, p->stages[i].spec.ranks,
                                     &r, &why);
    if (code == 0)
        return 0;
    const struct trp_profile_section *section =
        trp_fit_section(p, s->settings.site, profile->name, &file);
    return trp_error_at(err, code, section ? file : p->file,
                        section ? section->mark : p->stages[i].mark,
                        "profile %s cannot be had from Slurm: %s", profile->name,
                        why.text);
}

/* Whether the cluster, when it can be asked, ever has room for the stages. */
static int check_room(const struct submit *s, const trp_profiles *profiles,
                      const trp_profile_id *ids, trp_error *err)
{
    const trp_pipeline *p = s->settings.pipeline;
    const char *partition = trp_submit_sbatch(&s->call, "partition");
    struct trp_cluster_where where = {0};
    trp_fit *fit = NULL;
    int code = 0;
    if (partition && strchr(partition, ','))
        partition = NULL;
    if (!trp_submit_sbatch(&s->call, "clusters"))
        trp_settings_outside(&s->call.settings, partition, false, &where);
    if (where.batch)
        code = trp_fit_open(s->settings.options, s->settings.site, &where, &fit, err);
    for (uint32_t i = 0; fit && i < p->nstages && code == 0; i++)
        code = trp_fit_stage(fit, p, s->settings.site, &p->stages[i],
                             trp_profiles_get(profiles, ids[i]), err);
    trp_fit_close(fit);
    trp_settings_where_free(&where);
    return code;
}

static int check_pipeline(const struct submit *s, trp_error *err)
{
    const trp_pipeline *p = s->settings.pipeline;
    trp_profiles *profiles = NULL;
    trp_profile_id *ids = calloc((size_t)p->nstages + 1, sizeof *ids);
    if (!ids)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int code = trp_pipeline_profiles(p, s->settings.options, s->settings.site,
                                     &profiles, ids, err);
    for (uint32_t i = 0; i < p->nstages && code == 0 && !s->call.local; i++)
        code = check_stage(s, profiles, ids, i, err);
    if (code == 0 && !s->call.local)
        code = check_room(s, profiles, ids, err);
    trp_profiles_free(profiles);
    free(ids);
    return code;
}

/* The program that runs now, for the job. */
static int find_troupe(struct submit *s, trp_error *err)
{
    s->troupe = realpath("/proc/self/exe", NULL);
    return s->troupe ? 0 : trp_error_set(err, TRP_ESYSTEM, "/proc/self/exe: %m");
}

/* sbatch's --chdir is where the job runs, and so where its files are. */
static int enter_folder(struct submit *s, trp_error *err)
{
    const char *folder = trp_submit_sbatch(&s->call, "chdir");
    if (folder && chdir(folder) < 0)
        return trp_error_set(err, TRP_EINVAL, "--chdir=%s: %m", folder);
    int code = trp_runs_dir(s->call.runs, &s->runs, err);
    if (code == 0 && (s->call.runs || getenv("TROUPE_RUNS")) &&
        trp_strings_format(&s->call.run, "--runs-dir=%s", s->runs) < 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    return code;
}

/* "512", "512M", "1G"; -1: it is something else, for sbatch to judge. */
static int64_t mib_of(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : units + 1;
    if (end == text || n <= 0 || !unit || (*end && end[1]) || n > INT32_MAX)
        return -1; /* 0: all there is */
    return unit == units ? n / 1024 : n << 10 * (unit - units - 1);
}

/* What has less would wait for ever when it runs. */
static int check_memory(const struct submit *s, trp_error *err)
{
    const char *mem = trp_submit_sbatch(&s->call, "mem");
    int64_t mib = mem ? mib_of(mem) : s->settings.site->driver.memory_mib;
    int64_t own = trp_options_memory_mib(s->settings.options, "driver.memory");
    trp_error less;
    if (mib < 0 || s->call.local ||
        trp_slurm_driver_fits(own, TRP_SLURM_SRUN_MIB, "its job", mib, &less) == 0)
        return 0;
    return trp_error_set(err, TRP_EINVAL,
                         "%s%s: %s; give it more, or set driver.memory",
                         mem ? "--mem=" : "driver: memory", mem ? mem : "", less.text);
}

static int prepare(struct submit *s, trp_error *err)
{
    int code = enter_folder(s, err);
    if (code == 0)
        code = trp_settings_load(&s->call.settings, &s->settings, err);
    if (code == 0)
        trp_settings_warn(&s->settings);
    if (code == 0 && s->settings.pipeline)
        code = trp_settings_pools(&s->settings, err);
    if (code == 0 && s->settings.pipeline)
        code = check_pipeline(s, err);
    else if (code == 0 && s->call.app)
        code = trp_program_find(s->call.app[0], &s->app, err);
    if (code == 0)
        code = check_memory(s, err);
    return code == 0 ? find_troupe(s, err) : code;
}

/* ---- the run's folder ---- */

/* FOLDER/job-JOBID.out as Slurm writes it: % stands for itself when doubled. */
static char *output_in(const char *folder)
{
    size_t n = 0;
    char *text = malloc(2 * strlen(folder) + 16);
    for (; text && *folder; folder++) {
        text[n++] = *folder;
        if (*folder == '%')
            text[n++] = '%';
    }
    if (text)
        strcpy(text + n, "/job-%j.out");
    return text;
}

/* An earlier run: in the folder of runs by its name, elsewhere by its path. */
static int find_earlier(struct submit *s, char **ret_folder, trp_error *err)
{
    int code = trp_run_folder_find(s->runs, s->call.resume, ret_folder, err);
    if (code < 0)
        return code;
    char *name = strrchr(*ret_folder, '/') + 1;
    size_t n = strlen(s->runs);
    bool here = strncmp(*ret_folder, s->runs, n) == 0 && name == *ret_folder + n + 1;
    s->resume = strdup(here ? name : *ret_folder);
    s->shown = s->resume ? strdup(s->resume) : NULL;
    return s->shown ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

static const char *app_name(const struct submit *s)
{
    if (s->settings.pipeline)
        return s->settings.pipeline->name;
    return s->app ? strrchr(s->app, '/') + 1 : s->shown;
}

/* With --print none is made; with --resume it is that of the earlier run. */
static int find_folder(struct submit *s, trp_error *err)
{
    char *folder = NULL;
    int code = 0;
    if (s->call.resume) {
        code = find_earlier(s, &folder, err);
    } else if (!s->call.print) {
        code = trp_run_folder_reserve(s->runs, app_name(s), s->call.run_name,
                                      &s->reserved, err);
        if (code == 0) {
            s->shown = strdup(s->reserved);
            if (asprintf(&folder, "%s/%s", s->runs, s->reserved) < 0)
                folder = NULL;
        }
    }
    if (code == 0 && (s->resume || s->reserved)) {
        s->output = folder ? output_in(folder) : NULL;
        if (!s->output || !s->shown)
            code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    free(folder);
    return code;
}

/* ---- the job ---- */

static void on_submitted(void *context, const char *job)
{
    struct submit *s = context;
    const char *output = trp_submit_sbatch(&s->call, "output");
    s->taken = true;
    if (output)
        fprintf(stderr, "troupe: run %s is job %s; its output goes to %s\n", s->shown,
                job, output);
    else
        fprintf(stderr,
                "troupe: run %s is job %s; follow it by tail -F %.*s%s.out, end it by "
                "scancel %s\n",
                s->shown, job, (int)(strlen(s->output) - strlen("%j.out")), s->output,
                job, job);
}

static int submit(struct submit *s, const char *script, size_t size, trp_error *err)
{
    bool components = trp_submit_sbatch(&s->call, ":") != NULL;
    /* On the command line, too: SBATCH_* variables override what a script says. */
    size_t n = components ? 0 : s->call.sbatch_words.n;
    return trp_sbatch(s->call.sbatch_words.v, n, script, size, on_submitted, s, err);
}

static int make_job(struct submit *s, trp_error *err)
{
    char *script = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&script, &size);
    struct trp_submit_script what = {.call = &s->call,
                                     .site = s->settings.site,
                                     .troupe = s->troupe,
                                     .job_name = app_name(s),
                                     .run =
                                         s->reserved ? s->reserved : s->call.run_name,
                                     .resume = s->resume,
                                     .output = s->output};
    int code = f ? trp_submit_script_print(&what, f, err) : 0;
    if (!f || fclose(f) != 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (code == 0 && s->call.print)
        fwrite(script, 1, size, stdout);
    else if (code == 0)
        code = submit(s, script, size, err);
    if (!s->taken && s->reserved) /* refused, or --test-only */
        trp_run_folder_unreserve(s->runs, s->reserved);
    free(script);
    return code;
}

static void free_submit(struct submit *s)
{
    trp_submit_call_free(&s->call);
    trp_settings_free(&s->settings);
    free(s->runs);
    free(s->troupe);
    free(s->app);
    free(s->reserved);
    free(s->resume);
    free(s->shown);
    free(s->output);
}

int trp_launcher_submit(void)
{
    static struct submit s;
    trp_error err;
    s.call = trp_submit_call_take();
    int code = prepare(&s, &err);
    if (code == 0)
        code = find_folder(&s, &err);
    if (code == 0)
        code = make_job(&s, &err);
    free_submit(&s);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(code);
}
