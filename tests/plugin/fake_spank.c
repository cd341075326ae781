#include "fake_spank.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct spank_handle {
    int unused;
};
static struct spank_handle handle;
struct fake_spank fake;

#pragma GCC visibility push(default)
extern slurm_conf_t slurm_conf;
slurm_conf_t slurm_conf;
#pragma GCC visibility pop

void fake_filters(const char *plugins)
{
    free(slurm_conf.cli_filter_plugins);
    slurm_conf.cli_filter_plugins = plugins ? strdup(plugins) : NULL;
}

void fake_reset(spank_context_t context)
{
    static char major[8], minor[8];
    for (int i = 0; i < fake.nvariables; i++)
        free(fake.variables[i]);
    snprintf(major, sizeof major, "%d", SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER));
    snprintf(minor, sizeof minor, "%02d", SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER));
    fake = (struct fake_spank){.context = context,
                               .major = major,
                               .minor = minor,
                               .step = 0,
                               .cpus_per_task = 1};
    fake_filters("lua");
}

spank_t fake_handle(void)
{
    return &handle;
}

static int find(const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < fake.nvariables; i++) {
        if (strncmp(fake.variables[i], name, n) == 0 && fake.variables[i][n] == '=')
            return i;
    }
    return -1;
}

static void drop(int i)
{
    free(fake.variables[i]);
    fake.variables[i] = fake.variables[--fake.nvariables];
}

void fake_put(const char *name, const char *value)
{
    int i = find(name);
    if (i >= 0)
        drop(i);
    if (fake.nvariables == FAKE_VARIABLES ||
        asprintf(&fake.variables[fake.nvariables], "%s=%s", name, value) < 0)
        abort();
    fake.nvariables++;
}

const char *fake_get(const char *name)
{
    int i = find(name);
    return i < 0 ? NULL : fake.variables[i] + strlen(name) + 1;
}

int fake_option(const char *name, const char *value, int remote)
{
    for (int i = 0; i < fake.noptions; i++) {
        struct spank_option *o = &fake.options[i];
        if (strcmp(o->name, name) == 0)
            return o->cb(o->val, value, remote);
    }
    return -1000;
}

/* ---- SPANK ---- */

spank_context_t spank_context(void)
{
    return fake.context;
}

const char *spank_strerror(spank_err_t err)
{
    static char text[32];
    snprintf(text, sizeof text, "error %d", (int)err);
    return text;
}

spank_err_t spank_option_register(spank_t sp, struct spank_option *opt)
{
    if (sp != &handle || !opt->name || !opt->usage || fake.noptions == FAKE_OPTIONS)
        return ESPANK_BAD_ARG;
    if (fake.register_result != ESPANK_SUCCESS)
        return fake.register_result;
    fake.options[fake.noptions++] = *opt;
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t sp, spank_item_t item, ...)
{
    va_list list;
    spank_err_t rc = sp == &handle ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
    va_start(list, item);
    if (item == S_SLURM_VERSION_MAJOR)
        *va_arg(list, char **) = fake.major;
    else if (item == S_SLURM_VERSION_MINOR)
        *va_arg(list, char **) = fake.minor;
    else if (item == S_JOB_ID && fake.job)
        *va_arg(list, uint32_t *) = fake.job;
    else if (item == S_JOB_UID && fake.job)
        *va_arg(list, uid_t *) = geteuid();
    else if (item == S_JOB_GID && fake.job)
        *va_arg(list, gid_t *) = getegid();
    else if (fake.context != S_CTX_REMOTE)
        rc = ESPANK_NOT_REMOTE;
    else if (item == S_JOB_STEPID)
        *va_arg(list, uint32_t *) = fake.step;
    else if (item == S_STEP_CPUS_PER_TASK && fake.cpus_per_task)
        *va_arg(list, uint32_t *) = fake.cpus_per_task;
    else
        rc = ESPANK_NOT_AVAIL;
    va_end(list);
    return rc;
}

spank_err_t spank_getenv(spank_t sp, const char *var, char *buf, int len)
{
    const char *value = fake_get(var);
    if (sp != &handle || fake.context != S_CTX_REMOTE)
        return ESPANK_NOT_REMOTE;
    if (!value)
        return ESPANK_ENV_NOEXIST;
    return snprintf(buf, (size_t)len, "%s", value) < len ? ESPANK_SUCCESS
                                                         : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t sp, const char *var, const char *val, int overwrite)
{
    if (sp != &handle || fake.context != S_CTX_REMOTE)
        return ESPANK_NOT_REMOTE;
    if (fake.setenv_result == ESPANK_SUCCESS && (overwrite || !fake_get(var)))
        fake_put(var, val);
    return fake.setenv_result;
}

spank_err_t spank_unsetenv(spank_t sp, const char *var)
{
    int i = find(var);
    if (sp != &handle || fake.context != S_CTX_REMOTE)
        return ESPANK_NOT_REMOTE;
    if (i >= 0)
        drop(i);
    return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
    size_t n = strlen(fake.log);
    va_list list;
    va_start(list, format);
    vsnprintf(fake.log + n, sizeof fake.log - n - 1, format, list);
    va_end(list);
    strcat(fake.log, "\n");
}
