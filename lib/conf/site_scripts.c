/*
 * Discovery scripts beside what the site file says of resources: options, but asked for
 * wherever devices are, which is where the site is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/site_load.h"

struct adding {
    struct trp_site_loading *l;
    const char *cwd;
};

/* Below the folder, in the site's arena. */
static char *absolute(struct adding *a, const char *path)
{
    bool relative = *path != '/';
    char *text = NULL, *kept = NULL;
    int n =
        asprintf(&text, "%s%s%s", relative ? a->cwd : "", relative ? "/" : "", path);
    if (n >= 0)
        kept = trp_conf_arena_text(&a->l->arena, text, (size_t)n);
    free(n < 0 ? NULL : text);
    return kept;
}

static int add_script(void *context, const struct trp_option_view *v)
{
    struct adding *a = context;
    trp_site *s = &a->l->site;
    char name[TRP_RESOURCE_NAME_MAX];
    if (!*v->value ||
        !trp_option_resource(v, "executor.resource.*.discoveryScript", name))
        return 0;
    struct trp_site_script *script = &s->scripts[s->nscripts++];
    script->resource = trp_conf_arena_text(&a->l->arena, name, strlen(name));
    script->path = absolute(a, v->value);
    return script->resource && script->path ? 0 : TRP_ENOMEM;
}

int trp_site_take_scripts(trp_site *s, const trp_options *o, const char *cwd,
                          trp_error *err)
{
    char *own = cwd ? NULL : getcwd(NULL, 0);
    struct adding a = {.l = (struct trp_site_loading *)s, .cwd = cwd ? cwd : own};
    s->nscripts = 0;
    if (!a.cwd)
        return trp_error_set(err, TRP_ESYSTEM, "no working folder: %m");
    int rc = trp_options_each(o, add_script, &a);
    free(own);
    return rc < 0 ? trp_error_set(err, TRP_ENOMEM, "out of memory for options") : 0;
}

const char *trp_site_script(const trp_site *s, const char *resource)
{
    for (uint32_t i = 0; s && i < s->nscripts; i++)
        if (!strcmp(s->scripts[i].resource, resource))
            return s->scripts[i].path;
    return NULL;
}

bool trp_site_is_scripted(const trp_site *s, const char *resource)
{
    const struct trp_site_resource *r = trp_site_resource(s, resource);
    return (!r || !r->target) && trp_site_script(s, resource);
}
