/*
 * The profile manager: an array of profiles by id, and what they mean.
 *
 * Each profile is an allocation of its own, so that a pointer to it stays good while
 * the array grows; the array gives the lookup by id in one step. All else (by name, by
 * content) walks the array: it happens when a stage is declared, never when a task is
 * launched.
 *
 * A profile is worked out once (resolve.c), when it is added. It gets its id last, so a
 * refused one uses none.
 *
 * Teardown: the profiles, then the array.
 */
#include "core/profile/manager.h"
#include "core/base/array.h"
#include "core/profile/resolve.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trp_profiles {
    struct trp_profile_defaults defaults;
    struct trp_resolve_rules rules;
    struct trp_resource_profile **v;
    uint32_t n, capacity;
    /* Every custom resource that a profile of this run names. */
    char resources[TRP_PROFILE_RESOURCES][TRP_RESOURCE_NAME_MAX];
    uint32_t nresources;
};

/* ---- adding --------------------------------------------------------------------- */

static bool resource_known(const trp_profiles *m, const char *name)
{
    for (uint32_t i = 0; i < m->nresources; i++)
        if (strcmp(m->resources[i], name) == 0)
            return true;
    return false;
}

/* So many, that even a profile merged of all others has room for its resources. */
static int check_run_resources(const trp_profiles *m,
                               const struct trp_resource_profile *p, trp_error *err)
{
    uint32_t n = m->nresources;

    for (uint32_t i = 0; i < p->ncustom; i++) {
        if (resource_known(m, p->custom[i].name))
            continue;
        if (++n > TRP_PROFILE_RESOURCES)
            return trp_resolve_refuse(
                p->name, TRP_ELIMIT, err,
                "resource %s is one too many; a run has at most %d custom "
                "resources",
                p->custom[i].name, TRP_PROFILE_RESOURCES);
    }
    return TRP_OK;
}

static int make_room(trp_profiles *m, trp_error *err)
{
    if (m->n >= TRP_PROFILES_MAX)
        return trp_error_set(err, TRP_ELIMIT, "too many profiles; a run has at most %d",
                             TRP_PROFILES_MAX);
    return TRP_ARRAY_GROW(m->v, m->n, m->capacity)
               ? TRP_OK
               : trp_error_set(err, TRP_ENOMEM, "no memory for another profile");
}

/* A profile that is worked out and checked, but has no id yet; NULL with the code. */
static struct trp_resource_profile *make_profile(const trp_profiles *m,
                                                 const struct trp_profile_builder *b,
                                                 int *ret_code, trp_error *err)
{
    struct trp_resource_profile *p = calloc(1, sizeof(*p));

    if (!p) {
        *ret_code = trp_error_set(err, TRP_ENOMEM, "no memory for another profile");
        return NULL;
    }
    memcpy(p->name, b->name, sizeof(p->name));
    p->task_only = !b->has_executor;
    p->executor = b->executor;
    p->cpus = b->cpus;
    p->ncustom = b->ncustom;
    memcpy(p->custom, b->custom, b->ncustom * sizeof(p->custom[0]));

    *ret_code = trp_resolve(&m->rules, p, err);
    if (*ret_code == 0)
        *ret_code = check_run_resources(m, p, err);
    if (*ret_code < 0) {
        free(p);
        return NULL;
    }
    return p;
}

/* Gives `take_p` its id and takes it over, also when there is no room for it. */
static int store_profile(trp_profiles *m, struct trp_resource_profile *take_p,
                         trp_profile_id *ret_id, trp_error *err)
{
    int rc = make_room(m, err);

    if (rc < 0) {
        free(take_p);
        return rc;
    }
    for (uint32_t i = 0; i < take_p->ncustom; i++)
        if (!resource_known(m, take_p->custom[i].name))
            memcpy(m->resources[m->nresources++], take_p->custom[i].name,
                   sizeof(m->resources[0]));
    take_p->id = (trp_profile_id){m->n};
    m->v[m->n++] = take_p;
    *ret_id = take_p->id;
    return TRP_OK;
}

int trp_profiles_add(trp_profiles *m, const struct trp_profile_builder *b,
                     trp_profile_id *ret_id, trp_error *err)
{
    int rc = TRP_OK;
    struct trp_resource_profile *p = make_profile(m, b, &rc, err);

    return p ? store_profile(m, p, ret_id, err) : rc;
}

/* ---- the default profile -------------------------------------------------------- */

static int add_default_resources(struct trp_profile_builder *b,
                                 const struct trp_profile_defaults *d, trp_error *err)
{
    int rc = TRP_OK;

    for (uint32_t i = 0; rc == 0 && i < d->nresources; i++) {
        const struct trp_default_resource *r = &d->resources[i];
        if (r->executor != 0)
            rc = trp_profile_builder_executor(b, r->name, r->executor, err);
        if (rc == 0 && r->task != 0)
            rc = trp_profile_builder_task(b, r->name, r->task, err);
    }
    return rc;
}

/* Puts the requests of `over` above those of `b`. */
static int override_requests(struct trp_profile_builder *b,
                             const struct trp_profile_builder *over, trp_error *err)
{
    const struct trp_builtins *v = &over->executor;
    struct trp_builtins *w = &b->executor;
    int rc = TRP_OK;

    w->cores = trp_written_or(v->cores, w->cores);
    w->memory_mib = trp_written_or(v->memory_mib, w->memory_mib);
    w->overhead_mib = trp_written_or(v->overhead_mib, w->overhead_mib);
    w->pyspark_mib = trp_written_or(v->pyspark_mib, w->pyspark_mib);
    w->offheap_mib = trp_written_or(v->offheap_mib, w->offheap_mib);
    b->cpus = trp_written_or(over->cpus, b->cpus);
    for (uint32_t i = 0; rc == 0 && i < over->ncustom; i++) {
        const struct trp_custom *c = &over->custom[i];
        if (c->on_executor)
            rc = trp_profile_builder_executor(b, c->name, c->executor, err);
        if (rc == 0 && c->on_task)
            rc = trp_profile_builder_task(b, c->name, c->task, err);
    }
    return rc;
}

static int add_default(trp_profiles *m, const struct trp_profile_builder *override,
                       trp_error *err)
{
    const struct trp_profile_defaults *d = &m->defaults;
    struct trp_profile_builder b;
    trp_profile_id id;

    if (!(d->overhead_factor >= 0 && d->overhead_factor <= 1000))
        return trp_error_set(err, TRP_EINVAL,
                             "executor.memoryOverheadFactor is not between 0 and 1000");
    if (d->overhead_min_mib < 0 || d->overhead_min_mib > TRP_EXECUTOR_AMOUNT_MAX)
        return trp_error_set(err, TRP_EINVAL,
                             "executor.minMemoryOverhead %" PRId64
                             " is not between 0 and %" PRId64,
                             d->overhead_min_mib, TRP_EXECUTOR_AMOUNT_MAX);
    if (d->nresources > TRP_PROFILE_RESOURCES)
        return trp_error_set(err, TRP_ELIMIT,
                             "a run has at most %d custom resources, not %" PRIu32,
                             TRP_PROFILE_RESOURCES, d->nresources);
    trp_profile_builder_init(&b, "default");
    int rc = trp_profile_builder_executor(&b, "cores", d->executor_cores, err);
    if (rc == 0)
        rc = trp_profile_builder_executor(&b, "memory", d->memory_mib, err);
    if (rc == 0)
        rc = trp_profile_builder_executor(&b, "offHeap", d->offheap_mib, err);
    if (rc == 0 && d->overhead_mib >= 0)
        rc = trp_profile_builder_executor(&b, "memoryOverhead", d->overhead_mib, err);
    if (rc == 0 && d->pyspark_mib >= 0)
        rc = trp_profile_builder_executor(&b, "pyspark.memory", d->pyspark_mib, err);
    if (rc == 0)
        rc = add_default_resources(&b, d, err);
    if (rc < 0)
        return rc;
    b.cpus = d->task_cpus;
    b.has_task = true;
    if (override)
        rc = override_requests(&b, override, err);
    if (override && override->executor.cores >= 0)
        m->defaults.cores_configured = true;
    return rc < 0 ? rc : trp_profiles_add(m, &b, &id, err);
}

int trp_profiles_new(const struct trp_profile_defaults *d,
                     const struct trp_profile_builder *override,
                     trp_profiles **ret_profiles, trp_error *err)
{
    trp_profiles *m = calloc(1, sizeof(*m));

    if (!m)
        return trp_error_set(err, TRP_ENOMEM, "no memory for profiles");
    m->defaults = *d;
    m->rules.defaults = &m->defaults;
    int rc = add_default(m, override, err);
    if (rc < 0) {
        trp_profiles_free(m);
        return rc;
    }
    m->rules.base = m->v[0];
    *ret_profiles = m;
    return TRP_OK;
}

void trp_profiles_free(trp_profiles *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n; i++)
        free(m->v[i]);
    free(m->v);
    free(m);
}

/* ---- asking --------------------------------------------------------------------- */

const struct trp_resource_profile *trp_profiles_get(const trp_profiles *m,
                                                    trp_profile_id id)
{
    return id.n < m->n ? m->v[id.n] : NULL;
}

const struct trp_resource_profile *trp_profiles_by_name(const trp_profiles *m,
                                                        const char *name)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i]->name, name) == 0)
            return m->v[i];
    return NULL;
}

uint32_t trp_profiles_count(const trp_profiles *m)
{
    return m->n;
}

const struct trp_profile_defaults *trp_profiles_defaults(const trp_profiles *m)
{
    return &m->defaults;
}

void trp_profile_written(const struct trp_resource_profile *p,
                         struct trp_profile_builder *ret_builder)
{
    trp_profile_builder_init(ret_builder, p->name);
    ret_builder->executor = p->executor;
    ret_builder->cpus = p->cpus;
    ret_builder->ncustom = p->ncustom;
    memcpy(ret_builder->custom, p->custom, p->ncustom * sizeof(p->custom[0]));
    ret_builder->has_executor = !p->task_only;
    ret_builder->has_task = p->cpus >= 0;
    for (uint32_t i = 0; i < p->ncustom; i++)
        ret_builder->has_task = ret_builder->has_task || p->custom[i].on_task;
}

const struct trp_resource_profile *
trp_profiles_equivalent(const trp_profiles *m, const struct trp_resource_profile *like)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (trp_profile_resources_equal(m->v[i], like))
            return m->v[i];
    return NULL;
}

static int unknown_profile(trp_profile_id id, trp_error *err)
{
    return trp_error_set(err, TRP_EINVAL, "there is no profile with id %" PRIu32, id.n);
}

int trp_profiles_supported(const trp_profiles *m, trp_profile_id id, trp_error *err)
{
    const struct trp_resource_profile *p = trp_profiles_get(m, id);

    if (!p)
        return unknown_profile(id, err);
    if (id.n == 0 || m->defaults.kind == TRP_MANAGER_ELASTIC)
        return TRP_OK;
    if (m->defaults.kind == TRP_MANAGER_LOCAL)
        return trp_resolve_refuse(
            p->name, TRP_EINVAL, err,
            "only the default profile can run in one process; use executors");
    if (p->task_only)
        return TRP_OK;
    return trp_resolve_refuse(
        p->name, TRP_EINVAL, err,
        "it asks for executors of its own, but the executors of this run are "
        "fixed; leave out its executor section or use an elastic run");
}

bool trp_profiles_may_run(const trp_profiles *m, trp_profile_id task,
                          trp_profile_id executor)
{
    if (task.n >= m->n || executor.n >= m->n)
        return false;
    if (task.n == executor.n)
        return true;
    return m->defaults.kind != TRP_MANAGER_ELASTIC && m->v[task.n]->task_only;
}

bool trp_profiles_waste(const trp_profiles *m, trp_profile_id id, char *buf,
                        size_t size)
{
    const struct trp_resource_profile *p = trp_profiles_get(m, id);

    if (size > 0)
        buf[0] = '\0';
    return p && trp_resolve_waste(&m->rules, p, buf, size);
}

/* ---- merging -------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void merge_custom(struct trp_profile_builder *b, const struct trp_custom *c)
{
    struct trp_custom have = {0};
    int rc = TRP_OK;

    for (uint32_t i = 0; i < b->ncustom; i++)
        if (strcmp(b->custom[i].name, c->name) == 0)
            have = b->custom[i];
    if (c->on_executor)
        rc = trp_profile_builder_executor(b, c->name,
                                          larger(have.executor, c->executor), NULL);
    assert(rc == 0); /* the limit on a run's resources is that of a profile */
    if (c->on_task)
        rc = trp_profile_builder_task(b, c->name, larger(have.task, c->task), NULL);
    assert(rc == 0);
}

void trp_profiles_merge(const struct trp_resource_profile *const *v, size_t n,
                        struct trp_profile_builder *ret_builder)
{
    struct trp_profile_builder *b = ret_builder;
    struct trp_builtins *w = &b->executor;

    trp_profile_builder_init(b, "");
    for (size_t i = 0; i < n; i++) {
        const struct trp_builtins *x = &v[i]->executor;
        size_t used = strlen(b->name);
        snprintf(b->name + used, sizeof(b->name) - used, "%s%s", i > 0 ? "+" : "",
                 v[i]->name);
        w->cores = larger(w->cores, x->cores);
        w->memory_mib = larger(w->memory_mib, x->memory_mib);
        w->overhead_mib = larger(w->overhead_mib, x->overhead_mib);
        w->pyspark_mib = larger(w->pyspark_mib, x->pyspark_mib);
        w->offheap_mib = larger(w->offheap_mib, x->offheap_mib);
        b->cpus = larger(b->cpus, v[i]->cpus);
        for (uint32_t k = 0; k < v[i]->ncustom; k++)
            merge_custom(b, &v[i]->custom[k]);
        b->has_executor = b->has_executor || !v[i]->task_only;
    }
    b->has_task = b->cpus >= 0;
    for (uint32_t i = 0; i < b->ncustom; i++)
        b->has_task = b->has_task || b->custom[i].on_task;
}

static int compare_ids(const void *a, const void *b)
{
    const struct trp_resource_profile *const *x = a, *const *y = b;

    return ((*x)->id.n > (*y)->id.n) - ((*x)->id.n < (*y)->id.n);
}

int trp_profiles_merged(trp_profiles *m, const trp_profile_id *v, size_t n,
                        trp_profile_id *ret_id, trp_error *err)
{
    const size_t size = sizeof(struct trp_resource_profile *);
    const struct trp_resource_profile **chain = calloc(n, size);
    struct trp_profile_builder b;
    size_t distinct = 0;
    int rc = TRP_OK;

    if (!chain)
        return trp_error_set(err, TRP_ENOMEM, "no memory to merge profiles");
    for (size_t i = 0; i < n; i++)
        chain[i] = m->v[v[i].n];
    qsort(chain, n, size, compare_ids);
    for (size_t i = 0; i < n; i++)
        if (distinct == 0 || chain[distinct - 1] != chain[i])
            chain[distinct++] = chain[i];
    trp_profiles_merge(chain, distinct, &b);
    free(chain);

    struct trp_resource_profile *merged = make_profile(m, &b, &rc, err);
    if (!merged)
        return rc;
    const struct trp_resource_profile *same = trp_profiles_equivalent(m, merged);
    if (!same)
        return store_profile(m, merged, ret_id, err);
    free(merged);
    *ret_id = same->id;
    return TRP_OK;
}

int trp_profiles_of_stage(trp_profiles *m, const trp_profile_id *v, size_t n,
                          trp_profile_id *ret_id, trp_error *err)
{
    size_t other = 0;

    for (size_t i = 0; i < n; i++) {
        if (!trp_profiles_get(m, v[i]))
            return unknown_profile(v[i], err);
        if (other == 0 && v[i].n != v[0].n)
            other = i;
    }
    if (other == 0) {
        *ret_id = n > 0 ? v[0] : (trp_profile_id){0};
        return TRP_OK;
    }
    if (!m->defaults.merge_conflicts)
        return trp_error_set(err, TRP_EINVAL,
                             "one stage has several profiles, %s and %s; use one, or "
                             "set scheduler.resource.profileMergeConflicts=true",
                             m->v[v[0].n]->name, m->v[v[other].n]->name);
    return trp_profiles_merged(m, v, n, ret_id, err);
}
