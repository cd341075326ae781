/*
 * Three steps: what the profile has (collect), which rule takes it (find_route), and
 * the texts of it. The texts are kept in the request, so that a list of options only
 * points to them.
 */
#include "conf/site_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/amount.h"
#include "core/profile/footprint.h"

#define MINUTE_NS INT64_C(60000000000)

struct making {
    const trp_site *s;
    const struct trp_resource_profile *p;
    struct trp_profile_footprint need; /* of an executor, or of a rank */
    struct trp_site_request *r;
    trp_error *err;
};

/* ---- what it has ---- */

static struct trp_site_amount *find_amount(struct trp_site_amount *v, uint32_t *n,
                                           const char *name)
{
    uint32_t i = 0;
    while (i < *n && strcmp(v[i].name, name) != 0)
        i++;
    if (i == *n) {
        v[i] = (struct trp_site_amount){.name = name, .sharing = 1};
        ++*n;
    }
    return &v[i];
}

/* Two resources may be the same to Slurm: then it is asked for both together. */
static void add_amount(const struct making *m, struct trp_site_amount *v, uint32_t *n,
                       const struct trp_site_resource *to,
                       struct trp_profile_amount amount)
{
    struct trp_site_amount *a = find_amount(v, n, to->target);
    if (!to->countable) {
        a->count = a->each = 1;
        return;
    }
    a->each += amount.n;
    a->count += trp_profile_amount_of(amount, m->r->ranks ? m->r->ranks : 1);
    a->sharing = amount.share > 1 ? amount.share : a->sharing;
}

/* A choice stands in brackets, so that what follows holds for all of it. */
static void add_constraint(struct trp_site_request *r, const char *feature)
{
    size_t n = strlen(r->constraint);
    bool choice = strchr(feature, '|') != NULL;
    snprintf(r->constraint + n, sizeof(r->constraint) - n, "%s%s%s%s", n ? "&" : "",
             choice ? "(" : "", feature, choice ? ")" : "");
}

static int collect_one(struct making *m, const struct trp_custom *c,
                       struct trp_profile_amount amount)
{
    const struct trp_site_resource *to = trp_site_resource(m->s, c->name);
    struct trp_site_request *r = m->r;
    if (trp_site_denies(m->s, c->name))
        return trp_error_set(m->err, TRP_ENEVER,
                             "resource %s is denied at %s:%u:%u; ask for another one",
                             c->name, m->s->file, m->s->limits.deny_mark.line,
                             m->s->limits.deny_mark.column);
    if (!r->ranks && trp_site_is_scripted(m->s, c->name))
        return 0;
    if (!to || !to->target)
        return trp_error_set(
            m->err, TRP_ENEVER,
            "resource %s is nothing that Slurm can be asked for; add it under "
            "resources: in %s",
            c->name, *m->s->file ? m->s->file : "a site file");
    if (to->kind == TRP_SITE_GRES)
        add_amount(m, r->gres, &r->ngres, to, amount);
    else if (to->kind == TRP_SITE_LICENSE)
        add_amount(m, r->licenses, &r->nlicenses, to, amount);
    else
        add_constraint(r, to->target);
    return 0;
}

static int collect(struct making *m)
{
    const struct trp_resource_profile *p = m->p;
    struct trp_site_request *r = m->r;
    const struct trp_profile_amount *amounts = m->need.custom;
    r->cpus = m->need.cores;
    r->memory_mib = trp_profile_amount_of(m->need.memory_mib, 1);
    for (uint32_t i = 0; i < p->ncustom; i++) {
        int code = amounts[i].n > 0 ? collect_one(m, &p->custom[i], amounts[i]) : 0;
        if (code < 0)
            return code;
    }
    return 0;
}

/* ---- where it goes ---- */

static int64_t value_of(const struct making *m, const char *subject)
{
    if (!strcmp(subject, "cores"))
        return m->r->cpus;
    if (!strcmp(subject, "memory"))
        return m->r->memory_mib;
    const struct trp_custom *c = trp_profile_custom(m->p, subject);
    return c ? m->need.custom[c - m->p->custom].n : 0;
}

static bool matches(const struct making *m, const struct trp_site_route *route)
{
    for (uint32_t i = 0; i < route->nwhen; i++) {
        int64_t n = value_of(m, route->when[i].subject);
        if (n < route->when[i].least || n > route->when[i].most)
            return false;
    }
    return true;
}

static int no_route(const struct making *m)
{
    char has[256], memory[32];
    size_t n =
        (size_t)snprintf(has, sizeof(has), "cores %" PRId64 ", memory %s", m->r->cpus,
                         trp_memory_format(m->r->memory_mib, memory, sizeof(memory)));
    for (uint32_t i = 0; i < m->p->ncustom && n < sizeof(has); i++) {
        int64_t amount = m->need.custom[i].n;
        if (amount > 0)
            n += (size_t)snprintf(has + n, sizeof(has) - n, ", %s %" PRId64,
                                  m->p->custom[i].name, amount);
    }
    return trp_error_set(
        m->err, TRP_ENEVER,
        "no route at %s:%u:%u takes it (%s); change the profile, or add "
        "a route without when:",
        m->s->file, m->s->routes_mark.line, m->s->routes_mark.column, has);
}

static int find_route(struct making *m)
{
    struct trp_site_request *r = m->r;
    uint32_t i = 0;
    if (m->s->nroutes == 0)
        return 0;
    while (i < m->s->nroutes && !matches(m, &m->s->routes[i]))
        i++;
    if (i == m->s->nroutes)
        return no_route(m);
    r->route = &m->s->routes[i];
    r->partition = r->route->partition;
    r->qos = r->route->qos;
    r->account = r->route->account;
    r->reservation = r->route->reservation;
    if (r->route->constraint)
        add_constraint(r, r->route->constraint);
    return 0;
}

/* ---- texts ---- */

static bool is_gpu(const char *gres)
{
    return !strcmp(gres, "gpu") || !strncmp(gres, "gpu:", 4);
}

/* Whether Slurm can count the gang's GRES by the task: whole GPUs; or one untyped GPU
 * that ranks share, and nothing else. */
static bool by_task(const struct trp_site_request *r)
{
    for (uint32_t i = 0; i < r->ngres; i++) {
        const struct trp_site_amount *a = &r->gres[i];
        if (!is_gpu(a->name))
            return false;
        if (a->sharing > 1 &&
            (r->ngres > 1 || a->each > 1 || strcmp(a->name, "gpu") != 0))
            return false;
    }
    return true;
}

static void add_item(char *text, size_t size, const char *name, int64_t count)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s:%" PRId64, n ? "," : "", name, count);
}

static void write_gres(struct trp_site_request *r)
{
    r->one_node = r->ranks > 0 && !by_task(r);
    for (uint32_t i = 0; i < r->ngres; i++) {
        const struct trp_site_amount *a = &r->gres[i];
        const char *type = strchr(a->name, ':');
        if (r->ranks == 0 || r->one_node)
            add_item(r->gres_text, sizeof(r->gres_text), a->name, a->count);
        else if (a->sharing > 1)
            snprintf(r->sharing_text, sizeof(r->sharing_text), "%" PRId64, a->sharing);
        else if (type)
            add_item(r->gpus_text, sizeof(r->gpus_text), type + 1, a->each);
        else
            snprintf(r->gpus_text, sizeof(r->gpus_text), "%" PRId64, a->each);
    }
}

static void write_texts(struct trp_site_request *r)
{
    int64_t cpus = r->cpus > 0 ? r->cpus : 1;
    snprintf(r->ranks_text, sizeof(r->ranks_text), "%" PRIu32, r->ranks ? r->ranks : 1);
    snprintf(r->cpus_text, sizeof(r->cpus_text), "%" PRId64, r->cpus);
    snprintf(r->memory_text, sizeof(r->memory_text), "%" PRId64 "M",
             r->ranks ? (r->memory_mib + cpus - 1) / cpus : r->memory_mib);
    write_gres(r);
    for (uint32_t i = 0; i < r->nlicenses; i++)
        add_item(r->licenses_text, sizeof(r->licenses_text), r->licenses[i].name,
                 r->licenses[i].count);
}

/* ---- the whole ---- */

int trp_site_request_make(const trp_site *s, const struct trp_resource_profile *p,
                          uint32_t ranks, struct trp_site_request *ret, trp_error *err)
{
    struct trp_site_request r = {
        .ranks = ranks, .time_ns = s->limits.time_ns, .exclusive = s->exclusive};
    struct making m = {.s = s,
                       .p = p,
                       .need = trp_profile_footprint(p, ranks > 0),
                       .r = &r,
                       .err = err};
    int code = collect(&m);
    if (code == 0)
        code = find_route(&m);
    if (code < 0)
        return code;
    write_texts(&r);
    *ret = r;
    return 0;
}

uint32_t trp_site_request_options(const struct trp_site_request *r,
                                  enum trp_site_for what,
                                  struct trp_site_option *ret_options)
{
    bool job = what != TRP_SITE_FOR_STEP, own = what == TRP_SITE_FOR_SHAPE;
    bool node = r->ranks == 0 || r->one_node;
    const struct {
        const char *key, *value; /* "" and NULL: left out */
        bool flag;
    } all[] = {
        {"nodes",                          node && !own ? "1" : NULL,               false},
        {"ntasks",                         own ? NULL : r->ranks_text,              false},
        {"cpus-per-task",                  r->cpus_text,                            false},
        {r->ranks ? "mem-per-cpu" : "mem", r->memory_text,                          false},
        {"gres",                           r->gres_text,                            false},
        {"gpus-per-task",                  r->gpus_text,                            false},
        {"ntasks-per-gpu",                 r->sharing_text,                         false},
        {"licenses",                       job ? r->licenses_text : NULL,           false},
        {"constraint",                     job ? r->constraint : NULL,              false},
        {"partition",                      job ? r->partition : NULL,               false},
        {"qos",                            job ? r->qos : NULL,                     false},
        {"account",                        job ? r->account : NULL,                 false},
        {"reservation",                    job ? r->reservation : NULL,             false},
        {"exclusive",                      job && !own && r->exclusive ? "" : NULL, true },
    };
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].value && (*all[i].value || all[i].flag))
            ret_options[n++] = (struct trp_site_option){all[i].key, all[i].value};
    }
    return n;
}

char *trp_site_request_text(const struct trp_site_request *r, enum trp_site_for what,
                            char *buf, size_t size)
{
    struct trp_site_option v[TRP_SITE_REQUEST_OPTIONS];
    uint32_t count = trp_site_request_options(r, what, v);
    size_t n = 0;
    *buf = '\0';
    for (uint32_t i = 0; i < count && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s--%s%s%s", i ? " " : "", v[i].key,
                              *v[i].value ? "=" : "", v[i].value);
    return buf;
}

char *trp_slurm_minutes(int64_t ns, char *buf, size_t size)
{
    snprintf(buf, size, "%" PRId64, ns > 0 ? (ns - 1) / MINUTE_NS + 1 : 1);
    return buf;
}
