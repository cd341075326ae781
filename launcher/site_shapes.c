/*
 * Written beside the file and moved there, so that whoever reads it, at any moment, in
 * slurmctld or in a user's srun, finds the old one or the new one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/wording.h"
#include "os/whole_file.h"
#include "site_shape.h"

struct shapes {
    FILE *f;
    int code;
    trp_error *err;
};

/* One line. */
__attribute__((format(printf, 2, 3))) static void put(struct shapes *o, const char *fmt,
                                                      ...)
{
    char *line;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(&line, fmt, args);
    va_end(args);
    if (n < 0) {
        o->code = trp_error_set(o->err, TRP_ENOMEM, "out of memory");
        return;
    }
    fprintf(o->f, "%s\n", line);
    if (!trp_is_in_line(line))
        o->code =
            trp_error_set(o->err, TRP_EINVAL,
                          "site-shape: \"%s\" has a line break or another control "
                          "character; the site file has to have it in one line",
                          trp_show(line).text);
    free(line);
}

static const char *kind_word(enum trp_site_kind kind)
{
    return kind == TRP_SITE_GRES      ? "gres"
           : kind == TRP_SITE_LICENSE ? "license"
                                      : "constraint";
}

static void put_resources(struct shapes *o, const trp_site *site,
                          const struct trp_resource_profile *p)
{
    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        const struct trp_site_resource *r = trp_site_resource(site, c->name);
        if (c->executor > 0 && r)
            put(o, "resource %s %s %" PRId64 " %s", c->name, kind_word(r->kind),
                r->countable ? c->executor : 1, r->env ? r->env : "-");
    }
}

static void put_profile(struct shapes *o, const struct trp_settings *s,
                        const struct trp_profile_section *section)
{
    struct trp_launcher_shape shape;
    struct trp_site_option v[TRP_SITE_REQUEST_OPTIONS];
    trp_error why;
    put(o, "profile %s", section->builder.name);
    if (trp_launcher_shape(s, section, &shape, &why) < 0) {
        put(o, "never %s", why.text);
    } else {
        uint32_t n = trp_site_request_options(&shape.request, TRP_SITE_FOR_SHAPE, v);
        for (uint32_t i = 0; i < n; i++)
            put(o, "option %s %s", v[i].key, v[i].value);
        put_resources(o, s->site, shape.profile);
    }
    trp_launcher_shape_free(&shape);
}

static void put_limits(struct shapes *o, const trp_site *site)
{
    char minutes[32];
    if (site->limits.time_ns > 0)
        put(o, "limit time %s",
            trp_slurm_minutes(site->limits.time_ns, minutes, sizeof minutes));
    for (uint32_t i = 0; i < site->limits.ndeny; i++) {
        const struct trp_site_resource *r =
            trp_site_resource(site, site->limits.deny[i]);
        if (r && r->target)
            put(o, "limit deny %s %s", kind_word(r->kind), r->target);
    }
}

static void put_shapes(struct shapes *o, const struct trp_settings *s)
{
    put(o, "troupe-shapes 1");
    put(o, "# Made by `troupe site-shape --all` from %s; do not edit.",
        *s->site->file ? s->site->file : "no site file");
    if (s->site->scratch)
        put(o, "scratch %s", s->site->scratch);
    put_limits(o, s->site);
    for (uint32_t i = 0; i < s->site->nprofiles; i++)
        put_profile(o, s, &s->site->profiles[i]);
    put(o, "end");
}

static int make_shapes(const struct trp_settings *s, char **ret, size_t *ret_size,
                       trp_error *err)
{
    struct shapes o = {.f = open_memstream(ret, ret_size), .err = err};
    if (!o.f)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    put_shapes(&o, s);
    if (fclose(o.f) != 0)
        o.code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    return o.code;
}

/* 0, or -1 with errno. */
static int put_file(const char *text, size_t size, const char *output)
{
    char *fresh = NULL;
    if (asprintf(&fresh, "%s.XXXXXX", output) < 0)
        return -1;
    int fd = mkstemp(fresh);
    int failed = fd < 0 || trp_file_write(fd, text, size) < 0 || fchmod(fd, 0644) < 0 ||
                 fsync(fd) < 0 || rename(fresh, output) < 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && failed)
        unlink(fresh);
    free(fresh);
    errno = why;
    return failed ? -1 : 0;
}

int trp_launcher_shapes(const struct trp_settings *s, const char *output,
                        trp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    int code = make_shapes(s, &text, &size, err);
    if (code == 0 && !output)
        fwrite(text, 1, size, stdout);
    else if (code == 0 && put_file(text, size, output) < 0)
        code = trp_error_set(err, TRP_ESYSTEM, "%s: cannot be written: %m", output);
    free(text);
    return code;
}
