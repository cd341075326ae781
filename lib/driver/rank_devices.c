/*
 * In a Slurm step the site's variable comes first: it has the numbers with which a task
 * can say which device it means, as in elastic runs
 * (cluster/slurm/steps/step_messages.c). SLURM_STEP_GPUS has the node's own numbers and
 * is taken where the variable is empty. `local:` is not asked in Slurm: there devices
 * are Slurm's to give.
 *
 * With --gpus-per-task Slurm binds each task of the step to devices of its own, and may
 * number them from 0 for each: such a rank keeps what it was given.
 *
 * A discovery script is run by each rank where none of these says anything, and before
 * the variable is believed outside of Slurm: who set the option meant it.
 */
#include "driver/rank_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile/ledger.h"
#include "executor/discover.h"

/* A variable's value, NULL where it names no device. */
static const char *value_of(const char *variable)
{
    static const char *const none[] = {"NoDevFiles", "none", "-1"};
    const char *value = variable ? getenv(variable) : NULL;
    for (size_t i = 0; value && i < sizeof none / sizeof *none; i++)
        if (strcmp(value, none[i]) == 0)
            return NULL;
    return value && *value && !strpbrk(value, "\t\n") ? value : NULL;
}

static bool in_slurm(void)
{
    return getenv("SLURM_JOB_ID") || getenv("SLURM_STEP_GPUS");
}

static bool is_bound(void)
{
    const char *bind = getenv("SLURM_TRES_BIND");
    return getenv("SLURM_GPUS_PER_TASK") || (bind && strstr(bind, "per_task"));
}

static void put_devices(FILE *out, const char *resource, bool own, const char *source,
                        const char *list)
{
    fprintf(out, "%s\t%s\t%s\t%s\n", resource, own ? "own" : "shared", source, list);
}

static bool put_local(FILE *out, const char *resource, const struct trp_site *site)
{
    for (uint32_t i = 0; site && i < site->nlocal; i++) {
        const struct trp_resource_addresses *r = &site->local[i];
        if (strcmp(r->name, resource) != 0)
            continue;
        fprintf(out, "%s\tshared\t`local:` of %s\t", resource,
                strpbrk(site->file, "\t\n") ? "the site file" : site->file);
        for (uint32_t k = 0; k < r->naddresses; k++)
            fprintf(out, "%s%s", k ? "," : "", r->addresses[k]);
        fputc('\n', out);
        return true;
    }
    return false;
}

static int put_script(FILE *out, const struct trp_custom *c, const char *script,
                      trp_error *err)
{
    struct trp_discovery q = {.resource = c->name, .script = script};
    char *list;
    q.amount = c->executor > UINT32_MAX ? UINT32_MAX : (uint32_t)c->executor;
    int rc = trp_discover(&q, &list, err);
    if (rc < 0)
        return rc;
    put_devices(out, c->name, false, script, list);
    free(list);
    return 0;
}

static int put_resource(FILE *out, const struct trp_custom *c,
                        const struct trp_site *site, trp_error *err)
{
    const char *resource = c->name;
    static const char step[] = "SLURM_STEP_GPUS";
    const struct trp_site_resource *to = trp_site_resource(site, resource);
    const char *variable = trp_site_variable(site, resource);
    const char *list = value_of(variable);
    bool gres = to && to->kind == TRP_SITE_GRES;
    if (in_slurm() && gres && list)
        put_devices(out, resource, is_bound(), variable, list);
    else if (in_slurm() && gres && strncmp(to->target, "gpu", 3) == 0 && value_of(step))
        put_devices(out, resource, false, step, value_of(step));
    else if (!in_slurm() && put_local(out, resource, site))
        return 0;
    else if (trp_site_script(site, resource))
        return put_script(out, c, trp_site_script(site, resource), err);
    else if (!in_slurm() && list)
        put_devices(out, resource, false, variable, list);
    return 0;
}

int trp_rank_devices(const struct trp_resource_profile *profile,
                     const struct trp_site *site, char **ret_text, trp_error *err)
{
    size_t size;
    FILE *out = open_memstream(ret_text, &size);
    if (!out)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int rc = 0;
    for (uint32_t i = 0; i < profile->ncustom && rc == 0; i++)
        if (profile->custom[i].executor > 0)
            rc = put_resource(out, &profile->custom[i], site, err);
    bool bad = ferror(out);
    if ((fclose(out) != 0 || bad) && rc == 0)
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (rc < 0) {
        free(*ret_text);
        *ret_text = NULL;
    }
    return rc;
}

/* ---- reading ---- */

/* Takes "0,1,2" apart; empty words and repetitions are left out. */
static int read_list(const char *list, size_t size, struct trp_rank_device *d)
{
    char *copy = strndup(list, size), *save = NULL;
    d->addresses = calloc(size + 1, sizeof *d->addresses);
    int rc = copy && d->addresses ? 0 : TRP_ENOMEM;
    for (char *w = rc == 0 ? strtok_r(copy, ", ", &save) : NULL; w && rc == 0;
         w = strtok_r(NULL, ", ", &save)) {
        if ((d->addresses[d->naddresses] = strdup(w)))
            d->naddresses++;
        else
            rc = TRP_ENOMEM;
    }
    free(copy);
    if (d->naddresses)
        qsort(d->addresses, d->naddresses, sizeof *d->addresses, trp_natural_order);
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->naddresses; i++) {
        if (n && strcmp(d->addresses[n - 1], d->addresses[i]) == 0)
            free(d->addresses[i]);
        else
            d->addresses[n++] = d->addresses[i];
    }
    d->naddresses = n;
    return rc;
}

/* The line of a resource, behind its name; NULL: it has none. */
static const char *line_of(const char *text, const char *resource)
{
    size_t n = strlen(resource);
    while (text && *text && (strncmp(text, resource, n) != 0 || text[n] != '\t')) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text && *text ? text + n + 1 : NULL;
}

int trp_rank_device_read(const char *text, const char *resource,
                         struct trp_rank_device *ret, trp_error *err)
{
    *ret = (struct trp_rank_device){0};
    const char *kind = line_of(text, resource);
    const char *source = kind ? strchr(kind, '\t') : NULL;
    const char *list = source ? strchr(source + 1, '\t') : NULL;
    if (!list)
        return 0;
    struct trp_rank_device d = {.own = strncmp(kind, "own", 3) == 0};
    d.source = strndup(source + 1, (size_t)(list - source) - 1);
    if (d.source && read_list(list + 1, strcspn(list + 1, "\n"), &d) == 0) {
        *ret = d;
        return 0;
    }
    trp_rank_device_free(&d);
    return trp_error_set(err, TRP_ENOMEM, "out of memory");
}

void trp_rank_device_free(struct trp_rank_device *d)
{
    for (uint32_t i = 0; i < d->naddresses; i++)
        free(d->addresses[i]);
    free(d->addresses);
    free(d->source);
    *d = (struct trp_rank_device){0};
}
