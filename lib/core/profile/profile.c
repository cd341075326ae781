/*
 * One profile: building it request by request, and comparing it.
 *
 * Requests for custom resources are kept in an array ordered by name, filled by
 * insertion: there are at most sixteen, two profiles with the same requests are then
 * equal entry by entry, and the ledger (ledger.c) can walk it beside its own. A map was
 * rejected: it would cost an allocation a profile for nothing.
 *
 * A builder checks what can be said of one request alone; what a profile means as a
 * whole (defaults, slots) is worked out by the manager (manager.c).
 */
#include "core/profile/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MIB_PER_GIB = 1024, KIB_PER_MIB = 1024 };

/* ---- building ------------------------------------------------------------------- */

void trp_profile_builder_init(struct trp_profile_builder *b, const char *name)
{
    memset(b, 0, sizeof(*b));
    snprintf(b->name, sizeof(b->name), "%s", name);
    b->executor = (struct trp_builtins){-1, -1, -1, -1, -1};
    b->cpus = -1;
}

/* The place of a built-in executor resource; false for a custom one. */
static bool find_builtin(struct trp_builtins *v, const char *resource,
                         int64_t **ret_place)
{
    if (strcmp(resource, "cores") == 0)
        *ret_place = &v->cores;
    else if (strcmp(resource, "memory") == 0)
        *ret_place = &v->memory_mib;
    else if (strcmp(resource, "memoryOverhead") == 0)
        *ret_place = &v->overhead_mib;
    else if (strcmp(resource, "pyspark.memory") == 0)
        *ret_place = &v->pyspark_mib;
    else if (strcmp(resource, "offHeap") == 0)
        *ret_place = &v->offheap_mib;
    else
        return false;
    return true;
}

/* isalnum() would ask the locale. */
static bool name_char(char c, bool first)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
        return true;
    return !first && ((c >= '0' && c <= '9') || c == '.' || c == '-');
}

static int check_name(const char *resource, trp_error *err)
{
    size_t n = 0;

    while (resource[n] && name_char(resource[n], n == 0))
        n++;
    if (n == 0 || resource[n])
        return trp_error_set(err, TRP_EINVAL,
                             "'%.60s' is not a name for a resource; use letters, "
                             "digits, '_', '.' and '-', a letter or '_' first",
                             resource);
    if (n >= TRP_RESOURCE_NAME_MAX)
        return trp_error_set(
            err, TRP_EINVAL,
            "resource name %.60s is too long; the most is %d characters", resource,
            TRP_RESOURCE_NAME_MAX - 1);
    return TRP_OK;
}

/* The entry of a custom resource, made when it is new; NULL when there is no room. */
static struct trp_custom *custom_entry(struct trp_profile_builder *b,
                                       const char *resource)
{
    uint32_t at = 0;

    while (at < b->ncustom && strcmp(b->custom[at].name, resource) < 0)
        at++;
    if (at < b->ncustom && strcmp(b->custom[at].name, resource) == 0)
        return &b->custom[at];
    if (b->ncustom == TRP_PROFILE_RESOURCES)
        return NULL;
    memmove(&b->custom[at + 1], &b->custom[at],
            (b->ncustom - at) * sizeof(b->custom[0]));
    memset(&b->custom[at], 0, sizeof(b->custom[at]));
    memcpy(b->custom[at].name, resource, strlen(resource) + 1);
    b->ncustom++;
    return &b->custom[at];
}

static int too_many_resources(trp_error *err, const char *resource)
{
    return trp_error_set(err, TRP_ELIMIT,
                         "resource %s is one too many; a profile has at most %d custom "
                         "resources",
                         resource, TRP_PROFILE_RESOURCES);
}

int trp_profile_builder_executor(struct trp_profile_builder *b, const char *resource,
                                 int64_t amount, trp_error *err)
{
    int64_t *place = NULL;
    int rc = check_name(resource, err);

    if (rc < 0)
        return rc;
    if (strcmp(resource, "cpus") == 0)
        return trp_error_set(err, TRP_EINVAL,
                             "cpus is what a task takes; an executor has cores");
    if (amount < 0)
        return trp_error_set(err, TRP_EINVAL,
                             "executor resource %s: %" PRId64 " is negative", resource,
                             amount);
    if (amount > TRP_EXECUTOR_AMOUNT_MAX)
        return trp_error_set(err, TRP_ELIMIT,
                             "executor resource %s: %" PRId64
                             " is too large; the most is %" PRId64,
                             resource, amount, TRP_EXECUTOR_AMOUNT_MAX);

    if (find_builtin(&b->executor, resource, &place)) {
        *place = amount;
    } else {
        struct trp_custom *c = custom_entry(b, resource);
        if (!c)
            return too_many_resources(err, resource);
        c->executor = amount;
        c->on_executor = true;
    }
    b->has_executor = true;
    return TRP_OK;
}

int trp_profile_builder_task(struct trp_profile_builder *b, const char *resource,
                             trp_amount amount, trp_error *err)
{
    bool is_cpus = strcmp(resource, "cpus") == 0;
    int64_t *place = NULL;
    char text[32];
    int rc = check_name(resource, err);

    if (rc < 0)
        return rc;
    trp_amount_format(amount, text, sizeof(text));
    if (find_builtin(&b->executor, resource, &place))
        return trp_error_set(err, TRP_EINVAL,
                             "%s is what an executor has; a task takes cpus and custom "
                             "resources",
                             resource);
    if (amount < 0)
        return trp_error_set(err, TRP_EINVAL, "task resource %s: %s is negative",
                             resource, text);
    if (amount > TRP_AMOUNT_MAX)
        return trp_error_set(err, TRP_ELIMIT,
                             "task resource %s: %s is too large; the most is %" PRId64,
                             resource, text, TRP_AMOUNT_MAX / TRP_ONE);
    if (is_cpus && !trp_amount_is_whole(amount))
        return trp_error_set(err, TRP_EINVAL, "task resource cpus: %s is not whole",
                             text);
    if (amount > TRP_ONE && !trp_amount_is_whole(amount))
        return trp_error_set(err, TRP_EINVAL,
                             "task resource %s: %s is neither a whole number nor at "
                             "most 1",
                             resource, text);

    if (is_cpus) {
        b->cpus = amount / TRP_ONE;
    } else {
        struct trp_custom *c = custom_entry(b, resource);
        if (!c)
            return too_many_resources(err, resource);
        c->task = amount;
        c->on_task = true;
    }
    b->has_task = true;
    return TRP_OK;
}

/* ---- memory --------------------------------------------------------------------- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* "g", "GB", "gib", "" (MiB) as KiB; 0 when it is no unit. */
static int64_t unit_kib(const char *s)
{
    int64_t kib = 0;

    switch (lower(*s)) {
    case '\0':
        return KIB_PER_MIB;
    case 'k':
        kib = 1;
        break;
    case 'm':
        kib = KIB_PER_MIB;
        break;
    case 'g':
        kib = INT64_C(1) << 20;
        break;
    case 't':
        kib = INT64_C(1) << 30;
        break;
    default:
        return 0;
    }
    s++;
    if (lower(s[0]) == 'i' && lower(s[1]) == 'b')
        s += 2;
    else if (lower(s[0]) == 'b')
        s++;
    return *s ? 0 : kib;
}

int trp_memory_parse(const char *text, int64_t *ret_mib, trp_error *err)
{
    int64_t value = 0;
    size_t n = 0;
    bool large = false;

    for (; text[n] >= '0' && text[n] <= '9'; n++) {
        if (value < TRP_EXECUTOR_AMOUNT_MAX * KIB_PER_MIB)
            value = value * 10 + (text[n] - '0');
        else
            large = true;
    }
    int64_t kib = n > 0 ? unit_kib(text + n) : 0;
    if (kib == 0)
        return trp_error_set(err, TRP_EINVAL,
                             "'%.60s' is not an amount of memory; write a whole number "
                             "of MiB or one with k, m, g or t, like 512m or 4g",
                             text);
    if (large || value > TRP_EXECUTOR_AMOUNT_MAX * KIB_PER_MIB / kib)
        return trp_error_set(err, TRP_EINVAL,
                             "memory %.60s is too large; the most is %" PRId64 " MiB",
                             text, TRP_EXECUTOR_AMOUNT_MAX);
    int64_t mib = value * kib / KIB_PER_MIB;
    *ret_mib = mib == 0 && value > 0 ? 1 : mib;
    return TRP_OK;
}

static bool is_whole_gib(int64_t mib)
{
    return mib != 0 && mib % MIB_PER_GIB == 0;
}

static void format_memory(int64_t mib, bool gib, char *buf, size_t size)
{
    if (gib)
        snprintf(buf, size, "%" PRId64 " GiB", mib / MIB_PER_GIB);
    else
        snprintf(buf, size, "%" PRId64 " MiB", mib);
}

uint64_t trp_profile_task_memory(const struct trp_resource_profile *p, double fraction)
{
    int64_t mib = p->offheap_mib > 0 ? p->offheap_mib
                                     : (int64_t)((double)p->memory_mib * fraction);
    return ((uint64_t)mib << 20) / (p->slots ? p->slots : 1);
}

char *trp_memory_format(int64_t mib, char *buf, size_t size)
{
    format_memory(mib, is_whole_gib(mib), buf, size);
    return buf;
}

struct trp_memory_pair trp_memory_pair(int64_t a_mib, int64_t b_mib)
{
    struct trp_memory_pair v;
    bool gib = is_whole_gib(a_mib) && is_whole_gib(b_mib);
    format_memory(a_mib, gib, v.a, sizeof v.a);
    format_memory(b_mib, gib, v.b, sizeof v.b);
    return v;
}

/* ---- comparing ------------------------------------------------------------------ */

static bool custom_equal(const struct trp_custom *a, const struct trp_custom *b)
{
    return a->executor == b->executor && a->task == b->task &&
           a->on_executor == b->on_executor && a->on_task == b->on_task &&
           strcmp(a->name, b->name) == 0;
}

bool trp_profile_resources_equal(const struct trp_resource_profile *a,
                                 const struct trp_resource_profile *b)
{
    const struct trp_builtins *x = &a->executor, *y = &b->executor;

    if (a->task_only != b->task_only || a->cpus != b->cpus || a->ncustom != b->ncustom)
        return false;
    if (x->cores != y->cores || x->memory_mib != y->memory_mib ||
        x->overhead_mib != y->overhead_mib || x->pyspark_mib != y->pyspark_mib ||
        x->offheap_mib != y->offheap_mib)
        return false;
    for (uint32_t i = 0; i < a->ncustom; i++)
        if (!custom_equal(&a->custom[i], &b->custom[i]))
            return false;
    return true;
}

const struct trp_custom *trp_profile_custom(const struct trp_resource_profile *p,
                                            const char *name)
{
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (strcmp(p->custom[i].name, name) == 0)
            return &p->custom[i];
    return NULL;
}

static int64_t executor_has(const struct trp_resource_profile *p, const char *name)
{
    const struct trp_custom *c = trp_profile_custom(p, name);

    return c ? c->executor : 0;
}

/* Executors of `a` have at least the custom resources that those of `b` have. */
static bool custom_at_least(const struct trp_resource_profile *a,
                            const struct trp_resource_profile *b)
{
    for (uint32_t i = 0; i < b->ncustom; i++)
        if (executor_has(a, b->custom[i].name) < b->custom[i].executor)
            return false;
    return true;
}

bool trp_profile_same_executor(const struct trp_resource_profile *a,
                               const struct trp_resource_profile *b)
{
    return a->cores == b->cores && a->memory_mib == b->memory_mib &&
           a->overhead_mib == b->overhead_mib && a->offheap_mib == b->offheap_mib &&
           a->total_mib == b->total_mib && custom_at_least(a, b) &&
           custom_at_least(b, a);
}

bool trp_profile_covers(const struct trp_resource_profile *have,
                        const struct trp_resource_profile *want)
{
    if (have->cores < want->cores || have->cores < want->task_cpus ||
        have->memory_mib < want->memory_mib ||
        have->overhead_mib < want->overhead_mib ||
        have->offheap_mib < want->offheap_mib || have->total_mib < want->total_mib)
        return false;
    for (uint32_t i = 0; i < want->ncustom; i++) {
        const struct trp_custom *c = &want->custom[i];
        if (executor_has(have, c->name) < trp_amount_units(c->task))
            return false;
    }
    return custom_at_least(have, want);
}
