/*
 * The findings about the site file: what it names has to be in the cluster, its routes
 * to be of use, and its profiles to have room. What a profile becomes is asked of the
 * same functions as in a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/check/check_parts.h"
#include "cluster/slurm/shared/driver_share.h"
#include "conf/site_request.h"
#include "conf/wording.h"
#include "core/profile/manager.h"

enum { WHERE = 512, WORD = TRP_SITE_WORD_MAX + 1 };

struct where {
    char text[WHERE];
};

static struct where at(const struct trp_slurm_checking *c, struct trp_mark mark)
{
    struct where w = {""};
    if (mark.line)
        snprintf(w.text, sizeof w.text, "%s:%u:%u", c->site->file, mark.line,
                 mark.column);
    return w;
}

/* The next word of `*list` between characters of `between`, or NULL. */
static const char *next_word(const char **list, const char *between, char word[WORD])
{
    *list += strspn(*list, between);
    size_t n = strcspn(*list, between);
    if (!n)
        return NULL;
    snprintf(word, WORD, "%.*s", (int)n, *list);
    *list += n;
    return word;
}

/* A text of ours that says what to do behind the first "; ". */
static void tell_split(struct trp_slurm_checking *c, enum trp_slurm_severity severity,
                       struct trp_mark mark, const char *prefix, const char *text)
{
    const char *todo = strstr(text, "; ");
    trp_slurm_tell(c, severity, at(c, mark).text,
                   todo ? todo + 2 : "change it in the site file", "%s%.*s", prefix,
                   (int)(todo ? (size_t)(todo - text) : strlen(text)), text);
}

/* Names that Slurm has, and the one that was meant. */
struct names {
    struct trp_nearest near;
    struct trp_name_list all;
};

/* `name` has to outlive them. */
static void names_add(struct names *v, const char *name)
{
    const char *list = v->all.text;
    char word[WORD];
    while (next_word(&list, ", ", word)) {
        if (strcmp(word, name) == 0)
            return;
    }
    trp_nearest_try(&v->near, name);
    trp_name_list_add(&v->all, name);
}

/* An error: `wanted` is none of them. */
static void tell_unknown(struct trp_slurm_checking *c, struct trp_mark mark,
                         const char *what, const char *wanted, const struct names *v)
{
    char todo[512];
    if (v->near.best)
        snprintf(todo, sizeof todo, "did you mean %s?", v->near.best);
    else if (*v->all.text)
        snprintf(todo, sizeof todo, "there are: %s", v->all.text);
    else
        snprintf(todo, sizeof todo,
                 "there are none: add it to Slurm, or remove it here");
    trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, mark).text, todo, "%s %s", what, wanted);
}

/* ---- partitions ---- */

static void check_partition(struct trp_slurm_checking *c, struct trp_mark mark,
                            const char *name)
{
    const struct trp_slurm_offers *o = &c->f->offers;
    const struct trp_slurm_partition *p = trp_slurm_offers_partition(o, name);
    struct names v = {.near = trp_nearest_of(name)};
    char todo[256];
    if (!p) {
        for (uint32_t i = 0; i < o->npartitions; i++)
            names_add(&v, o->partitions[i].name);
        tell_unknown(c, mark, "Slurm has no partition", name, &v);
    } else if (!p->is_up) {
        snprintf(todo, sizeof todo, "scontrol update PartitionName=%s State=UP", name);
        trp_slurm_tell(c, TRP_SLURM_WARNING, at(c, mark).text, todo,
                       "partition %s is not up: no job starts there", name);
    }
}

/* `names`: "a,b", or NULL: Slurm's default. */
static void check_partitions_of(struct trp_slurm_checking *c, struct trp_mark mark,
                                const char *names, const char *who)
{
    char word[WORD];
    if (!names && !trp_slurm_offers_partition(&c->f->offers, ""))
        trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, mark).text,
                       "name one, or give one Default=YES in slurm.conf",
                       "%s to no partition by name, and Slurm has no default one", who);
    while (names && next_word(&names, ",", word))
        check_partition(c, mark, word);
}

static void check_partitions(struct trp_slurm_checking *c)
{
    const trp_site *s = c->site;
    const struct trp_site_driver *d = &s->driver;
    trp_slurm_about(c, "partition");
    for (uint32_t i = 0; i < s->nroutes; i++) {
        const struct trp_site_route *r = &s->routes[i];
        check_partitions_of(c, r->partition ? r->partition_mark : r->mark, r->partition,
                            "a route goes");
    }
    if (s->nroutes == 0)
        check_partitions_of(c, (struct trp_mark){0}, NULL, "profiles go");
    if (s->nroutes > 0 || d->partition)
        check_partitions_of(c, d->partition ? d->partition_mark : d->mark, d->partition,
                            "driver: goes");
    trp_slurm_is_fine(c, "all partitions that are named are there");
}

/* ---- resources ---- */

static void check_gres(struct trp_slurm_checking *c, const struct trp_site_resource *r,
                       const struct trp_slurm_want *w)
{
    const struct trp_slurm_offers *o = &c->f->offers;
    struct names v = {.near = trp_nearest_of(r->target)};
    if (trp_slurm_offers_most_of(o, NULL, w) > 0)
        return;
    for (uint32_t i = 0; i < o->n; i++) {
        for (uint32_t k = 0; k < o->v[i].npools; k++) {
            const struct trp_slurm_pool *p = &o->v[i].pools[k];
            char name[2 * TRP_SLURM_WORD];
            snprintf(name, sizeof name, "%s%s%s", p->name, *p->type ? ":" : "",
                     p->type);
            const char *kept = trp_conf_arena_text(&c->to->arena, name, strlen(name));
            if (kept)
                names_add(&v, kept);
        }
    }
    tell_unknown(c, r->mark, "no node has the GRES", r->target, &v);
}

static const struct trp_slurm_licence *find_licence(const struct trp_slurm_checking *c,
                                                    const char *name)
{
    for (uint32_t i = 0; i < c->f->nlicences; i++) {
        if (strcmp(c->f->licences[i].name, name) == 0)
            return &c->f->licences[i];
    }
    return NULL;
}

static void check_licence(struct trp_slurm_checking *c,
                          const struct trp_site_resource *r)
{
    struct names v = {.near = trp_nearest_of(r->target)};
    if (find_licence(c, r->target))
        return;
    for (uint32_t i = 0; i < c->f->nlicences; i++)
        names_add(&v, c->f->licences[i].name);
    tell_unknown(c, r->mark, "Slurm has no licence", r->target, &v);
}

static void check_feature(struct trp_slurm_checking *c, struct trp_mark mark,
                          const char *name)
{
    const struct trp_slurm_offers *o = &c->f->offers;
    struct trp_slurm_want w = {.kind = TRP_SLURM_FEATURE, .count = 1, .each = 1};
    struct names v = {.near = trp_nearest_of(name)};
    snprintf(w.name, sizeof w.name, "%s", name);
    if (strlen(name) < sizeof w.name && trp_slurm_offers_most_of(o, NULL, &w) > 0)
        return;
    for (uint32_t i = 0; i < o->n; i++) {
        const char *list = o->v[i].features;
        char word[WORD];
        while (next_word(&list, ",", word)) {
            const char *kept = trp_conf_arena_text(&c->to->arena, word, strlen(word));
            if (kept)
                names_add(&v, kept);
        }
    }
    tell_unknown(c, mark, "no node has the feature", name, &v);
}

/* Words of a constraint: "[rack1*2&rack2*4]" has numbers too. */
static void check_features(struct trp_slurm_checking *c, struct trp_mark mark,
                           const char *constraint)
{
    char word[WORD];
    while (constraint && next_word(&constraint, "&|[]()*,", word)) {
        if (word[strspn(word, "0123456789")])
            check_feature(c, mark, word);
    }
}

static void check_resources(struct trp_slurm_checking *c)
{
    static const struct {
        enum trp_site_kind kind;
        const char *about;
    } kinds[] = {
        {TRP_SITE_GRES,       "gres"   },
        {TRP_SITE_LICENSE,    "licence"},
        {TRP_SITE_CONSTRAINT, "feature"}
    };
    const trp_site *s = c->site;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        trp_slurm_about(c, kinds[k].about);
        for (uint32_t i = 0; i < s->nresources; i++) {
            const struct trp_site_resource *r = &s->resources[i];
            struct trp_slurm_want w = {.count = 1, .each = 1};
            if (r->kind != kinds[k].kind)
                continue;
            if (r->kind == TRP_SITE_LICENSE)
                check_licence(c, r);
            else if (r->kind == TRP_SITE_CONSTRAINT)
                check_feature(c, r->mark, r->target);
            else if (trp_slurm_want_map(&w, r, r->name))
                check_gres(c, r, &w);
        }
        for (uint32_t i = 0; kinds[k].kind == TRP_SITE_CONSTRAINT && i < s->nroutes;
             i++)
            check_features(c, s->routes[i].constraint_mark, s->routes[i].constraint);
        trp_slurm_is_fine(c, "every %s that is named is there", kinds[k].about);
    }
}

/* ---- routes ---- */

/* The most that a request can have of it in a partition; INT64_MAX: not known. */
static int64_t most_of(const struct trp_slurm_checking *c,
                       const struct trp_slurm_partition *p, const char *subject)
{
    const struct trp_site_resource *r = trp_site_resource(c->site, subject);
    struct trp_slurm_want w = {.count = 1, .each = 1};
    uint64_t cores;
    int64_t mib;
    trp_slurm_offers_most(&c->f->offers, p, &cores, &mib);
    if (strcmp(subject, "cores") == 0)
        return (int64_t)cores;
    if (strcmp(subject, "memory") == 0)
        return mib;
    if (!r || !r->countable || !trp_slurm_want_map(&w, r, subject))
        return INT64_MAX;
    if (r->kind == TRP_SITE_LICENSE)
        return find_licence(c, r->target) ? find_licence(c, r->target)->total
                                          : INT64_MAX;
    /* That no node has any was told already. */
    return trp_slurm_offers_most_of(&c->f->offers, NULL, &w)
               ? (int64_t)trp_slurm_offers_most_of(&c->f->offers, p, &w)
               : INT64_MAX;
}

/* Who has no more of it: a node, or for licences the cluster. */
static const char *who_has(const struct trp_slurm_checking *c,
                           const struct trp_slurm_partition *p, const char *subject,
                           struct where *w)
{
    const struct trp_site_resource *r = trp_site_resource(c->site, subject);
    if (r && r->kind == TRP_SITE_LICENSE)
        return "the cluster";
    snprintf(w->text, sizeof w->text, "a node%s%s", p ? " of partition " : "",
             p ? p->name : "");
    return w->text;
}

static void check_route(struct trp_slurm_checking *c, const struct trp_site_route *r)
{
    const struct trp_slurm_partition *p =
        trp_slurm_offers_partition(&c->f->offers, r->partition ? r->partition : "");
    for (uint32_t i = 0; i < r->nwhen; i++) {
        const struct trp_site_condition *w = &r->when[i];
        int64_t most = most_of(c, p, w->subject);
        char wanted[32], had[32];
        struct where who;
        if (w->least <= most)
            continue;
        snprintf(wanted, sizeof wanted, "%lld", (long long)w->least);
        snprintf(had, sizeof had, "%lld", (long long)most);
        if (strcmp(w->subject, "memory") == 0) {
            struct trp_memory_pair m = trp_memory_pair(w->least, most);
            snprintf(wanted, sizeof wanted, "%s", m.a);
            snprintf(had, sizeof had, "%s", m.b);
        }
        trp_slurm_tell(c, TRP_SLURM_WARNING, at(c, w->mark).text,
                       "correct its when:, or remove it",
                       "this route can never be used: it wants %s %s or more, and %s "
                       "has %s at most",
                       w->subject, wanted, who_has(c, p, w->subject, &who), had);
        return;
    }
}

static void check_routes(struct trp_slurm_checking *c)
{
    const trp_site *s = c->site;
    trp_slurm_about(c, "route");
    for (uint32_t i = 0; i < s->nwarnings; i++)
        tell_split(c, TRP_SLURM_WARNING, s->warnings[i].mark, "", s->warnings[i].text);
    for (uint32_t i = 0; i < s->nroutes; i++)
        check_route(c, &s->routes[i]);
    trp_slurm_is_fine(c, "every route can be taken");
}

/* ---- profiles ---- */

/* The features of a route's constraint, where all of them are wanted. */
static void add_features(struct trp_slurm_footprint *footprint,
                         const struct trp_site_route *r)
{
    const char *list = r ? r->constraint : NULL;
    char word[WORD];
    if (!list || strpbrk(list, "|[]()*,"))
        return;
    while (footprint->nwants < TRP_PROFILE_RESOURCES && next_word(&list, "&", word)) {
        struct trp_slurm_want *w = &footprint->wants[footprint->nwants];
        *w = (struct trp_slurm_want){.kind = TRP_SLURM_FEATURE, .count = 1, .each = 1};
        snprintf(w->name, sizeof w->name, "%.*s", TRP_SLURM_WORD - 1, word);
        snprintf(w->resource, sizeof w->resource, "%.*s", TRP_RESOURCE_NAME_MAX - 1,
                 word);
        footprint->nwants++;
    }
}

/* Whether one of the partitions "a,b" has a node for it; NULL: Slurm's default. That
 * none of them is there was told already: `all` is then no longer known. */
static bool fits(const struct trp_slurm_checking *c, const char *partitions,
                 const struct trp_slurm_footprint *footprint, bool *all, trp_error *why)
{
    const struct trp_slurm_offers *o = &c->f->offers;
    bool fit = false, known = false;
    char word[WORD] = "";
    const char *list = partitions ? partitions : "";
    do {
        next_word(&list, ",", word);
        known |= trp_slurm_offers_partition(o, word) != NULL;
        fit |= trp_slurm_offers_fit(o, word, footprint, 1, why) > 0;
    } while (*list);
    *all &= known;
    return fit || !known;
}

static void check_licences(struct trp_slurm_checking *c, const char *name,
                           struct trp_mark mark,
                           const struct trp_slurm_footprint *footprint)
{
    for (uint32_t i = 0; i < footprint->nwants; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        const struct trp_slurm_licence *l = find_licence(c, w->name);
        if (w->kind == TRP_SLURM_LICENCE && l && l->total < w->count)
            trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, mark).text, "ask for less",
                           "profile %s can never be had: licence %s wanted %u, Slurm "
                           "has %u",
                           name, l->name, w->count, l->total);
    }
}

/* False: it cannot be said. */
static bool check_profile(struct trp_slurm_checking *c,
                          const struct trp_resource_profile *p, const char *name,
                          struct trp_mark mark)
{
    struct trp_site_request r;
    struct trp_slurm_footprint footprint;
    char prefix[TRP_PROFILE_NAME_MAX + 40];
    bool known = true;
    trp_error why;
    snprintf(prefix, sizeof prefix, "profile %s can never be had: ", name);
    if (trp_site_request_make(c->site, p, 0, &r, &why) < 0 ||
        trp_slurm_footprint_executor(p, c->site, &footprint, &why) < 0) {
        tell_split(c, TRP_SLURM_ERROR, mark, prefix, why.text);
        return true;
    }
    add_features(&footprint, r.route);
    check_licences(c, name, mark, &footprint);
    if (!fits(c, r.partition, &footprint, &known, &why))
        trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, mark).text,
                       "make it smaller, or route it elsewhere", "%s%s", prefix,
                       why.text);
    return known;
}

static void check_profiles(struct trp_slurm_checking *c)
{
    const trp_site *s = c->site;
    struct trp_profile_defaults d;
    trp_profiles *all = NULL;
    trp_error why;
    trp_slurm_about(c, "profile");
    trp_options_profile_defaults(c->options, &d);
    if (trp_profiles_new(&d, NULL, &all, &why) < 0) {
        tell_split(c, TRP_SLURM_ERROR, (struct trp_mark){0},
                   "the default profile: ", why.text);
        return;
    }
    bool known = check_profile(c, trp_profiles_get(all, (trp_profile_id){0}), "default",
                               (struct trp_mark){0});
    for (uint32_t i = 0; i < s->nprofiles; i++) {
        const struct trp_profile_builder *b = &s->profiles[i].builder;
        trp_profile_id id;
        if (trp_profiles_add(all, b, &id, &why) < 0)
            tell_split(c, TRP_SLURM_ERROR, s->profiles[i].mark, "", why.text);
        else
            known &= check_profile(c, trp_profiles_get(all, id), b->name,
                                   s->profiles[i].mark);
    }
    if (known)
        trp_slurm_is_fine(c, "every profile has a node that holds it");
    trp_profiles_free(all);
}

/* ---- the driver's job ---- */

static void check_driver(struct trp_slurm_checking *c)
{
    const struct trp_site_driver *d = &c->site->driver;
    const struct trp_slurm_partition *p =
        trp_slurm_offers_partition(&c->f->offers, d->partition ? d->partition : "");
    struct trp_slurm_footprint footprint = {.cores = d->cores,
                                            .memory_mib = d->memory_mib};
    char minutes[32];
    bool known = true;
    trp_error why;
    trp_slurm_about(c, "driver");
    if (!fits(c, d->partition, &footprint, &known, &why))
        trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, d->mark).text,
                       "make it smaller, or name another partition",
                       "the driver's job can never be had: %s", why.text);
    if (trp_slurm_driver_fits(trp_options_memory_mib(c->options, "driver.memory"),
                              TRP_SLURM_SRUN_MIB, "its job", d->memory_mib, &why) < 0)
        trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, d->mark).text,
                       "give it more memory, or set driver.memory", "%s", why.text);
    trp_slurm_minutes(d->time_ns, minutes, sizeof minutes);
    if (d->time_ns && p && p->minutes && strtoll(minutes, NULL, 10) > p->minutes)
        trp_slurm_tell(c, TRP_SLURM_ERROR, at(c, d->time_mark).text,
                       "write less, or name another partition",
                       "the driver's job wants %s minutes, partition %s gives %lld at "
                       "most",
                       minutes, p->name, (long long)p->minutes);
    if (known)
        trp_slurm_is_fine(c, "the driver's job has a node that holds it");
}

void trp_slurm_check_site(struct trp_slurm_checking *c)
{
    trp_slurm_about(c, "site");
    if (!*c->site->file)
        trp_slurm_tell(
            c, TRP_SLURM_WARNING, "",
            "copy slurm-conf/site.yaml to /etc/troupe/site.yaml and change it",
            "there is no site file: profiles go to Slurm's default partition");
    trp_slurm_is_fine(c, "%s has no errors", c->site->file);
    check_partitions(c);
    check_resources(c);
    check_routes(c);
    check_profiles(c);
    check_driver(c);
}
