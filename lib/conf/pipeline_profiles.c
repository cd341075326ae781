/*
 * From sections of files to the run's profiles. Places are looked up only when
 * something is wrong. Of several wrong profiles and names, the first in the pipeline
 * file is told; profiles of the site come last.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/profile_section.h"
#include "conf/site.h"
#include "conf/wording.h"

/* The options that shape the default profile, for the place of an error about it. */
static int strongest_place(void *context, const struct trp_option_view *v)
{
    struct trp_option_view *best = context;
    bool shapes = !strncmp(v->key, "executor.", strlen("executor.")) ||
                  !strncmp(v->key, "task.", strlen("task.")) ||
                  !strncmp(v->key, "memory.", strlen("memory."));
    if (shapes && v->origin > best->origin)
        *best = *v;
    return 0;
}

static int make_default(const trp_pipeline *p, const trp_options *o, trp_profiles **ret,
                        trp_error *err)
{
    struct trp_profile_defaults defaults;
    struct trp_option_view best = {.origin = TRP_ORIGIN_DEFAULT};
    trp_error why;
    trp_options_profile_defaults(o, &defaults);
    int code = trp_profiles_new(&defaults, p->fallback ? &p->fallback->builder : NULL,
                                ret, &why);
    if (code == 0)
        return 0;
    if (p->fallback && code != TRP_ENOMEM)
        return trp_error_at(err, TRP_EINVAL, p->file, p->fallback->mark, "%s",
                            why.text);
    trp_options_each(o, strongest_place, &best);
    if (best.key && code != TRP_ENOMEM)
        return trp_error_set(err, TRP_EINVAL, "%s: %s", trp_options_where(o, best.key),
                             why.text);
    return trp_error_set(err, code, "%s", why.text);
}

/* The first wrong thing by place; `code` 0: none yet. */
struct finding {
    int code;
    const char *file;
    struct trp_mark at;
    trp_error text;
};

static trp_error *finding_room(struct finding *f, const char *file, struct trp_mark at)
{
    if (f->code && !(f->file == file && trp_mark_before(at, f->at)))
        return NULL;
    f->file = file;
    f->at = at;
    return &f->text;
}

static void add_section(trp_profiles *m, const char *file,
                        const struct trp_profile_section *s, struct finding *f)
{
    trp_profile_id id;
    trp_error why;
    int code = trp_profiles_add(m, &s->builder, &id, &why);
    trp_error *room = code < 0 ? finding_room(f, file, s->mark) : NULL;
    if (room)
        f->code = trp_error_at(room, code == TRP_ENOMEM ? code : TRP_EINVAL, file,
                               s->mark, "%s", why.text);
}

static void unknown_profile(const trp_pipeline *p, const struct trp_site *site,
                            const struct trp_pipeline_stage *s, struct finding *f)
{
    struct trp_nearest near = trp_nearest_of(s->profile);
    struct trp_name_list all = {0};
    trp_error *room = finding_room(f, p->file, s->profile_mark);
    if (!room)
        return;
    trp_name_list_add(&all, "default");
    for (uint32_t i = 0; i < p->nprofiles; i++) {
        trp_nearest_try(&near, p->profiles[i].builder.name);
        trp_name_list_add(&all, p->profiles[i].builder.name);
    }
    for (uint32_t i = 0; site && i < site->nprofiles; i++) {
        trp_nearest_try(&near, site->profiles[i].builder.name);
        trp_name_list_add(&all, site->profiles[i].builder.name);
    }
    f->code = trp_error_at(room, TRP_EINVAL, p->file, s->profile_mark,
                           "unknown profile \"%s\"%s%s there are: %s",
                           trp_show(s->profile).text, trp_did_you_mean(&near).text,
                           near.best ? "" : ";", all.text);
}

/* A stage's profile: the file's, or the site's, which is added when first named. */
static void find_profile(const trp_pipeline *p, const struct trp_site *site,
                         const struct trp_pipeline_stage *s, trp_profiles *m,
                         struct finding *f)
{
    const struct trp_profile_section *section;
    bool known = !s->profile || trp_profiles_by_name(m, s->profile) ||
                 trp_profile_section_find(p->profiles, p->nprofiles, s->profile);
    if (known) /* or wrong and told already */
        return;
    section =
        site ? trp_profile_section_find(site->profiles, site->nprofiles, s->profile)
             : NULL;
    if (section)
        add_section(m, site->file, section, f);
    else
        unknown_profile(p, site, s, f);
}

int trp_pipeline_profiles(const trp_pipeline *p, const trp_options *o,
                          const struct trp_site *site, trp_profiles **ret,
                          trp_profile_id *ret_ids, trp_error *err)
{
    struct finding f = {0};
    trp_profiles *m;
    int code = make_default(p, o, &m, err);
    if (code < 0)
        return code;
    for (uint32_t i = 0; i < p->nprofiles; i++)
        add_section(m, p->file, &p->profiles[i], &f);
    for (uint32_t i = 0; i < p->nstages; i++)
        find_profile(p, site, &p->stages[i], m, &f);
    if (f.code < 0) {
        trp_profiles_free(m);
        return trp_error_set(err, f.code, "%s", f.text.text);
    }
    for (uint32_t i = 0; i < p->nstages; i++) {
        const char *name = p->stages[i].profile;
        ret_ids[i] = name ? trp_profiles_by_name(m, name)->id : (trp_profile_id){0};
    }
    *ret = m;
    return 0;
}
