/*
 * Written beside the file and moved there, so that whoever reads it, at any moment, in
 * slurmctld or in a user's srun, finds the old one or the new one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "site_shape.h"

static const char *kind_word(enum trp_site_kind kind)
{
    return kind == TRP_SITE_GRES      ? "gres"
           : kind == TRP_SITE_LICENSE ? "license"
                                      : "constraint";
}

static void put_resources(FILE *f, const trp_site *site,
                          const struct trp_resource_profile *p)
{
    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        const struct trp_site_resource *r = trp_site_resource(site, c->name);
        if (c->executor > 0 && r)
            fprintf(f, "resource %s %s %" PRId64 " %s\n", c->name, kind_word(r->kind),
                    r->countable ? c->executor : 1, r->env ? r->env : "-");
    }
}

static void put_profile(FILE *f, const struct trp_settings *s,
                        const struct trp_profile_section *section)
{
    struct trp_launcher_shape shape;
    struct trp_site_option v[TRP_SITE_REQUEST_OPTIONS];
    trp_error why;
    fprintf(f, "profile %s\n", section->builder.name);
    if (trp_launcher_shape(s, section, &shape, &why) < 0) {
        fprintf(f, "never %s\n", why.text);
    } else {
        uint32_t n = trp_site_request_options(&shape.request, TRP_SITE_FOR_SHAPE, v);
        for (uint32_t i = 0; i < n; i++)
            fprintf(f, "option %s %s\n", v[i].key, v[i].value);
        put_resources(f, s->site, shape.profile);
    }
    trp_launcher_shape_free(&shape);
}

static void put_limits(FILE *f, const trp_site *site)
{
    char minutes[32];
    if (site->limits.time_ns > 0)
        fprintf(f, "limit time %s\n",
                trp_slurm_minutes(site->limits.time_ns, minutes, sizeof minutes));
    for (uint32_t i = 0; i < site->limits.ndeny; i++) {
        const struct trp_site_resource *r =
            trp_site_resource(site, site->limits.deny[i]);
        if (r && r->target)
            fprintf(f, "limit deny %s %s\n", kind_word(r->kind), r->target);
    }
}

static void put_shapes(FILE *f, const struct trp_settings *s)
{
    fprintf(f, "troupe-shapes 1\n");
    fprintf(f, "# Made by `troupe site-shape --all` from %s; do not edit.\n",
            *s->site->file ? s->site->file : "no site file");
    if (s->site->scratch)
        fprintf(f, "scratch %s\n", s->site->scratch);
    put_limits(f, s->site);
    for (uint32_t i = 0; i < s->site->nprofiles; i++)
        put_profile(f, s, &s->site->profiles[i]);
    fprintf(f, "end\n");
}

static int put_file(const struct trp_settings *s, const char *output, const char *fresh,
                    int fd)
{
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return -1;
    }
    put_shapes(f, s);
    int failed = fflush(f) != 0 || fchmod(fd, 0644) < 0 || fsync(fd) < 0;
    failed |= fclose(f) != 0;
    return failed ? -1 : rename(fresh, output);
}

int trp_launcher_shapes(const struct trp_settings *s, const char *output,
                        trp_error *err)
{
    char *fresh = NULL;
    if (!output) {
        put_shapes(stdout, s);
        return 0;
    }
    if (asprintf(&fresh, "%s.XXXXXX", output) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int fd = mkstemp(fresh);
    int code = 0;
    if (fd < 0 || put_file(s, output, fresh, fd) < 0) {
        code = trp_error_set(err, TRP_ESYSTEM, "%s: cannot be written: %m", output);
        if (fd >= 0)
            unlink(fresh);
    }
    free(fresh);
    return code;
}
