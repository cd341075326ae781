/*
 * Environment and arguments of commands.
 *
 * The names that a launcher leaves behind are two small tables. The environment of
 * `troupe` is cleaned once a run; a stage's is a copy of it, in which `env:` replaces
 * what is there (an entry that stands twice could be read either way). A search through
 * the copy per `env:` key costs less than a hash table would for the few that there
 * are.
 */
#include "driver/command_env.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/template.h"

static const char *const launcher_prefixes[] = {"OMPI_", "PMIX_", "PMI_", "SLURM_"};
static const char root_prefix[] = "OMPI_ALLOW_RUN_AS_ROOT";
static const char *const slurm_kept[] = {"SLURM_JOB_ID", "SLURM_JOB_NAME",
                                         "SLURM_SUBMIT_DIR", "SLURM_CONF"};
/* Set for one task, or between processes of one run: nothing for a task of this one. */
static const char *const own_names[] = {
    "TROUPE_RUN",     "TROUPE_RUN_DIR",  "TROUPE_STAGE",   "TROUPE_STAGE_ATTEMPT",
    "TROUPE_TASK",    "TROUPE_TASKS",    "TROUPE_ITEM",    "TROUPE_ATTEMPT",
    "TROUPE_PROFILE", "TROUPE_EXECUTOR", "TROUPE_CPUS",    "TROUPE_SCRATCH",
    "TROUPE_RANK",    "TROUPE_RANKS",    "TROUPE_TOKEN",   "TROUPE_CONTROL",
    "TROUPE_DRIVER",  "TROUPE_RUN_ID",   "TROUPE_MPI_TMP", "TROUPE_ROWS",
};
static const char *const own_prefixes[] = {"TROUPE_RESOURCE_", "TROUPE_PARAM_"};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_variable(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool any_prefix(const char *entry, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (starts(entry, v[i]))
            return true;
    return false;
}

static bool any_name(const char *entry, const char *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_variable(entry, v[i]))
            return true;
    return false;
}

static bool passes(const char *entry)
{
    if (!strchr(entry, '='))
        return false;
    if (any_prefix(entry, launcher_prefixes, COUNT(launcher_prefixes)))
        return starts(entry, root_prefix) ||
               any_name(entry, slurm_kept, COUNT(slurm_kept));
    return !any_name(entry, own_names, COUNT(own_names)) &&
           !any_prefix(entry, own_prefixes, COUNT(own_prefixes));
}

int trp_environ_clean(char *const *environ, uint32_t n, struct trp_strings *ret)
{
    bool in_slurm = false, has_ras = false;
    int r = 0;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        in_slurm = in_slurm || is_variable(environ[i], "SLURM_JOB_ID");
        has_ras = has_ras || is_variable(environ[i], "PRTE_MCA_ras");
        if (passes(environ[i]))
            r = trp_strings_add(ret, environ[i]);
    }
    if (r == 0 && in_slurm)
        r = trp_strings_add(ret, "SLURM_OVERLAP=1");
    /* Open MPI 6's mpirun takes the job's number for an allocation, and fails without
     * the rest of what Slurm says of one. */
    if (r == 0 && in_slurm && !has_ras)
        r = trp_strings_add(ret, "PRTE_MCA_ras=^slurm");
    return r;
}

/* Sets NAME=VALUE in place of what is there, or at the end. */
static int set_variable(struct trp_strings *s, const char *prefix, const char *key,
                        const char *value)
{
    size_t n = strlen(prefix), k = strlen(key);
    for (size_t i = 0; i < s->n; i++) {
        const char *e = s->v[i];
        if (strncmp(e, prefix, n) != 0 || strncmp(e + n, key, k) != 0 ||
            e[n + k] != '=')
            continue;
        free(s->v[i]); /* its place is filled from the end */
        s->v[i] = s->v[--s->n];
        break;
    }
    return trp_strings_format(s, "%s%s=%s", prefix, key, value);
}

int trp_stage_environ(const struct trp_strings *clean, const trp_pipeline *p,
                      const struct trp_pipeline_stage *s, struct trp_strings *ret)
{
    int r = 0;
    for (size_t i = 0; i < clean->n && r == 0; i++)
        r = trp_strings_take(ret, trp_template_escape(clean->v[i]));
    for (uint32_t i = 0; i < s->nenv && r == 0; i++)
        r = set_variable(ret, "", s->env[i].key, s->env[i].value);
    for (uint32_t i = 0; i < p->nparams && r == 0; i++) {
        char *value = trp_template_escape(p->params[i].value);
        r = value ? set_variable(ret, "TROUPE_PARAM_", p->params[i].key, value)
                  : TRP_ENOMEM;
        free(value);
    }
    return r;
}

static int check_length(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                        const struct trp_strings *argv, trp_error *err)
{
    for (size_t i = 0; i < argv->n; i++) {
        size_t n = strlen(argv->v[i]);
        if (n > TRP_ARGUMENT_MAX)
            return trp_error_set(err, TRP_EINVAL,
                                 "%s:%u:%u: stage %s: its command has a text of %zu "
                                 "bytes, Linux takes %d; put it into a script",
                                 trp_mark_file(p->file, s->mark), s->mark.line,
                                 s->mark.column, s->name, n, TRP_ARGUMENT_MAX);
    }
    return 0;
}

struct trp_shell trp_stage_shell(const trp_pipeline *p,
                                 const struct trp_pipeline_stage *s,
                                 const trp_options *o)
{
    const char *option = o ? trp_options_text(o, "run.shell") : "sh";
    struct trp_shell by_option = {.kind = strcmp(option, "bash") == 0 ? TRP_SHELL_BASH
                                                                      : TRP_SHELL_SH};
    if (s->shell.kind)
        return s->shell;
    return p->shell.kind ? p->shell : by_option;
}

/* The shell and its text. Modules and conda read names that are not set: -u of bash
 * begins after the prelude. */
static int add_shell(const struct trp_shell *shell, const struct trp_pipeline_stage *s,
                     struct trp_strings *ret)
{
    static const char *const sh[] = {"/bin/sh", "-e", "-c", NULL},
                             *const bash[] = {"bash", "-euo", "pipefail", "-c", NULL},
                             *const lax[] = {"bash", "-eo", "pipefail", "-c", NULL};
    bool is_bash = shell->kind == TRP_SHELL_BASH;
    const char *const *words = !is_bash ? sh : s->prelude ? lax : bash;
    int r = 0;
    if (shell->kind == TRP_SHELL_WORDS)
        for (uint32_t i = 0; i < shell->nwords && r == 0; i++)
            r = trp_strings_add(ret, shell->words[i]);
    else
        for (; *words && r == 0; words++)
            r = trp_strings_add(ret, *words);
    if (r < 0)
        return r;
    return s->prelude ? trp_strings_format(ret, "%s\n%s%s", s->prelude,
                                           is_bash ? "set -u\n" : "", s->run)
                      : trp_strings_add(ret, s->run);
}

int trp_stage_argv(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                   const trp_options *o, struct trp_strings *ret, trp_error *err)
{
    const struct trp_shell shell = trp_stage_shell(p, s, o);
    int r = 0;
    for (uint32_t i = 0; i < s->nwrap && r == 0; i++)
        r = trp_strings_add(ret, s->wrap[i]);
    for (uint32_t i = 0; i < s->nargv && r == 0; i++)
        r = trp_strings_add(ret, s->argv[i]);
    if (r == 0 && s->run)
        r = add_shell(&shell, s, ret);
    if (r == 0)
        r = check_length(p, s, ret, err);
    else
        trp_error_set(err, r, "out of memory for stage %s", s->name);
    return r;
}

static bool asked(const struct trp_resource_profile *r, const char *resource)
{
    const struct trp_custom *c = trp_profile_custom(r, resource);
    return c && c->task > 0;
}

static bool has_variable(const struct trp_strings *pairs, const char *variable)
{
    for (size_t i = 1; i < pairs->n; i += 2)
        if (strcmp(pairs->v[i], variable) == 0)
            return true;
    return false;
}

static int add_pair(struct trp_strings *s, const char *resource, const char *variable)
{
    int r = trp_strings_add(s, resource);
    return r < 0 ? r : trp_strings_add(s, variable);
}

int trp_stage_resource_env(const trp_site *site, const struct trp_resource_profile *r,
                           struct trp_strings *ret)
{
    static const struct trp_site none;
    const char *gpu = site ? trp_site_variable(site, "gpu") : "CUDA_VISIBLE_DEVICES";
    int rc = 0;
    if (!site)
        site = &none;
    if (gpu && asked(r, "gpu"))
        rc = add_pair(ret, "gpu", gpu);
    for (int others = 0; others < 2; others++) /* those asked for come first */
        for (uint32_t i = 0; i < site->nresources && rc == 0; i++) {
            const struct trp_site_resource *s = &site->resources[i];
            if (!s->env || strcmp(s->name, "gpu") == 0 ||
                (others ? has_variable(ret, s->env) : !asked(r, s->name)))
                continue;
            rc = add_pair(ret, s->name, s->env);
        }
    if (rc == 0 && gpu && !has_variable(ret, gpu))
        rc = add_pair(ret, "gpu", gpu);
    return rc;
}
