/*
 * Profiles of a C program: a builder of core/profile behind an opaque handle.
 *
 * A request that is refused is told at once and remembered, so that a program which
 * checks only trp_profile_build does not run in a shape it did not ask for. Building
 * asks three: the manager whether the profile is possible, the manager whether this
 * kind of run has it at all, and the cluster whether any executor can hold it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "core/base/amount.h"
#include "core/profile/resource_names.h"

static bool name_ok(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0 || n > TRP_PROFILE_NAME_MAX || (s[0] != '_' && !isalnum((uint8_t)s[0])))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!isalnum((uint8_t)s[i]) && !strchr("._-", s[i]))
            return false;
    return true;
}

/* Not by one that was refused: the program may try another shape under that name. */
static bool name_taken(const trp_context *ctx, const char *name)
{
    bool taken = trp_profiles_by_name(ctx->profiles, name) != NULL;
    for (const trp_profile *p = ctx->profile_handles; p; p = p->next) {
        if (strcmp(p->builder.name, name) != 0)
            continue;
        if (p->built)
            return true;
        taken = false;
    }
    return taken;
}

int trp_profile_new(trp_context *ctx, const char *name, trp_profile **ret_profile)
{
    if (!ctx || !ret_profile)
        return TRP_EINVAL;
    *ret_profile = NULL;
    if (!name_ok(name))
        return trp_dataset_fail(ctx, TRP_EINVAL,
                                "profile name '%s': letters, digits and . _ - are "
                                "allowed, 1 to %d, a letter, digit or _ first",
                                name ? name : "", TRP_PROFILE_NAME_MAX);
    if (name_taken(ctx, name))
        return trp_dataset_fail(ctx, TRP_EINVAL, "there is a profile named %s already",
                                name);
    trp_profile *p = calloc(1, sizeof(*p));
    if (!p)
        return trp_dataset_fail(ctx, TRP_ENOMEM, "out of memory for a profile");
    trp_profile_builder_init(&p->builder, name);
    p->context = ctx;
    p->next = ctx->profile_handles;
    ctx->profile_handles = p;
    *ret_profile = p;
    return 0;
}

/* Tells a refusal with the profile's name (the manager puts it in front itself) and
 * remembers the first one. */
static int refuse(trp_profile *p, const trp_error *err)
{
    bool named = strncmp(err->text, "profile ", 8) == 0;
    int rc =
        trp_context_fail(p->context, err->code, "%s%s%s%s", named ? "" : "profile ",
                         named ? "" : p->builder.name, named ? "" : ": ", err->text);
    if (p->error.code == 0)
        p->error = p->context->error;
    return trp_owe(p->context, &p->owed, rc);
}

static int check_open(trp_profile *p)
{
    if (!p->built)
        return 0;
    return trp_dataset_fail(p->context, TRP_ESTATE,
                            "profile %s is built and does not change any more",
                            p->builder.name);
}

/* A slip of a name is told before what is wrong with its amount. */
static int check_request(trp_profile *p, const char *resource, bool executor)
{
    int rc = check_open(p);
    if (rc < 0)
        return rc;
    trp_error err;
    return trp_resource_name_check(resource, executor, &err) < 0 ? refuse(p, &err) : 0;
}

int trp_profile_executor(trp_profile *p, const char *resource, int64_t amount)
{
    if (!p || !resource)
        return TRP_EINVAL;
    int rc = check_request(p, resource, true);
    if (rc < 0)
        return rc;
    trp_error err;
    if (trp_profile_builder_executor(&p->builder, resource, amount, &err) < 0)
        return refuse(p, &err);
    return 0;
}

int trp_profile_executor_text(trp_profile *p, const char *resource, const char *amount)
{
    if (!p || !resource || !amount)
        return TRP_EINVAL;
    int rc = check_request(p, resource, true);
    if (rc < 0)
        return rc;
    trp_error err;
    int64_t value;
    if (trp_resource_is_memory(resource)) {
        if (trp_memory_parse(amount, &value, &err) < 0)
            return refuse(p, &err);
        return trp_profile_executor(p, resource, value);
    }
    char *end;
    errno = 0;
    value = strtoll(amount, &end, 10);
    if (errno || end == amount || *end) {
        trp_error_set(&err, TRP_EINVAL, "executor resource %s: '%s' is no whole number",
                      resource, amount);
        return refuse(p, &err);
    }
    return trp_profile_executor(p, resource, value);
}

static int task_amount(trp_profile *p, const char *resource, trp_amount amount)
{
    trp_error err;
    if (trp_profile_builder_task(&p->builder, resource, amount, &err) < 0)
        return refuse(p, &err);
    return 0;
}

int trp_profile_task(trp_profile *p, const char *resource, double amount)
{
    if (!p || !resource)
        return TRP_EINVAL;
    int rc = check_request(p, resource, false);
    if (rc < 0)
        return rc;
    trp_error err;
    trp_amount a;
    if (trp_amount_from_double(amount, &a, &err) < 0)
        return refuse(p, &err);
    return task_amount(p, resource, a);
}

int trp_profile_task_text(trp_profile *p, const char *resource, const char *amount)
{
    if (!p || !resource || !amount)
        return TRP_EINVAL;
    int rc = check_request(p, resource, false);
    if (rc < 0)
        return rc;
    trp_error err;
    trp_amount a;
    if (trp_amount_parse(amount, &a, &err) < 0)
        return refuse(p, &err);
    return task_amount(p, resource, a);
}

int trp_context_profile_added(trp_context *ctx, trp_profile_id id, trp_error *err)
{
    return ctx->in_line ? 0 : trp_driver_profile_added(ctx->driver, id, err);
}

int trp_profile_build(trp_profile *p)
{
    if (!p)
        return TRP_EINVAL;
    trp_context *ctx = p->context;
    if (p->error.code)
        return trp_context_fail_with(ctx, &p->error);
    int rc = check_open(p);
    if (rc < 0)
        return rc;
    trp_error err;
    if (trp_profiles_add(ctx->profiles, &p->builder, &p->id, &err) < 0)
        return refuse(p, &err);
    if (trp_profiles_supported(ctx->profiles, p->id, &err) < 0 ||
        trp_context_profile_added(ctx, p->id, &err) < 0)
        return refuse(p, &err);
    p->built = true;
    for (trp_profile *q = ctx->profile_handles; q; q = q->next)
        if (strcmp(q->builder.name, p->builder.name) == 0)
            trp_make_good(&q->owed);
    return 0;
}

/* ---- one line ---- */

/* "K=V" words of one side, parted by blanks. */
static int take_words(trp_profile *p, char *words, bool executor)
{
    char *rest;
    for (char *w = strtok_r(words, " \t", &rest); w; w = strtok_r(NULL, " \t", &rest)) {
        char *value = strchr(w, '=');
        if (!value || value == w || !value[1]) {
            trp_error err;
            trp_error_set(&err, TRP_EINVAL, "'%s' is no RESOURCE=AMOUNT", w);
            return refuse(p, &err);
        }
        *value++ = '\0';
        int rc = executor ? trp_profile_executor_text(p, w, value)
                          : trp_profile_task_text(p, w, value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* The slash between the sides stands alone: one within a word is a fraction's. */
static char *find_slash(char *text)
{
    for (char *s = text; (s = strchr(s, '/')); s++)
        if ((s == text || s[-1] == ' ' || s[-1] == '\t') &&
            (!s[1] || s[1] == ' ' || s[1] == '\t'))
            return s;
    return NULL;
}

int trp_profile_from(trp_context *ctx, const char *name, const char *text,
                     trp_profile **ret_profile)
{
    if (!text)
        return TRP_EINVAL;
    int rc = trp_profile_new(ctx, name, ret_profile);
    if (rc < 0)
        return rc;
    char *copy = strdup(text);
    if (!copy)
        return trp_dataset_fail(ctx, TRP_ENOMEM, "out of memory for a profile");
    char *task = find_slash(copy);
    if (task)
        *task++ = '\0';
    rc = take_words(*ret_profile, copy, true);
    if (rc == 0 && task)
        rc = take_words(*ret_profile, task, false);
    free(copy);
    return rc < 0 ? rc : trp_profile_build(*ret_profile);
}
