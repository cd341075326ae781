/*
 * Profiles for tests in one line: "cores 4, gpu 2 | cpus 1, gpu 1/2". Left of the bar
 * is the executor side, right of it the task side; without a bar all is the task side.
 */
#ifndef TRP_TESTS_PROFILE_MAKER_H
#define TRP_TESTS_PROFILE_MAKER_H

#include "conf/options.h"
#include "core/profile/manager.h"

#include <glib.h>
#include <string.h>

#define assert_contains(text, part)                                                    \
    do {                                                                               \
        if (!strstr(text, part))                                                       \
            g_error("line %d: wanted '%s' in '%s'", __LINE__, part, text);             \
    } while (0)

static inline int make_request(struct trp_profile_builder *b, gboolean task,
                               const char *name, const char *amount, trp_error *err)
{
    const char *memory[] = {"memory", "memoryOverhead", "pyspark.memory", "offHeap",
                            NULL};
    trp_amount value = 0;
    int64_t whole = 0;
    int rc;

    if (!task && g_strv_contains(memory, name)) {
        rc = trp_memory_parse(amount, &whole, err);
        return rc < 0 ? rc : trp_profile_builder_executor(b, name, whole, err);
    }
    if (!task)
        return trp_profile_builder_executor(b, name, g_ascii_strtoll(amount, NULL, 10),
                                            err);
    rc = trp_amount_parse(amount, &value, err);
    return rc < 0 ? rc : trp_profile_builder_task(b, name, value, err);
}

static inline int make_side(struct trp_profile_builder *b, gboolean task,
                            const char *text, trp_error *err)
{
    char **requests = g_strsplit(text, ",", -1);
    int rc = 0;

    for (char **r = requests; rc == 0 && *r; r++) {
        char **words = g_strsplit(g_strstrip(*r), " ", 2);
        if (words[0])
            rc = make_request(b, task, words[0], words[1], err);
        g_strfreev(words);
    }
    g_strfreev(requests);
    return rc;
}

/* 0, or what the builder said. */
static inline int make_builder(struct trp_profile_builder *b, const char *name,
                               const char *text, trp_error *err)
{
    char **sides = g_strsplit(text, "|", 2);
    int rc = 0;

    trp_profile_builder_init(b, name);
    if (sides[0] && sides[1])
        rc = make_side(b, FALSE, sides[0], err);
    if (rc == 0 && sides[0])
        rc = make_side(b, TRUE, sides[1] ? sides[1] : sides[0], err);
    g_strfreev(sides);
    return rc;
}

/* A profile that must be fine. */
static inline trp_profile_id make_profile(trp_profiles *m, const char *name,
                                          const char *text)
{
    struct trp_profile_builder b;
    trp_profile_id id = {TRP_NONE};
    trp_error err = {0};

    if (make_builder(&b, name, text, &err) < 0 ||
        trp_profiles_add(m, &b, &id, &err) < 0)
        g_error("%s: %s", text, err.text);
    return id;
}

/* Devices of the default profile, as options give them. */
static inline void add_default_resource(struct trp_profile_defaults *d,
                                        const char *name, int64_t executor,
                                        trp_amount task)
{
    struct trp_default_resource *r = &d->resources[d->nresources++];

    g_strlcpy(r->name, name, sizeof(r->name));
    r->executor = executor;
    r->task = task;
}

static inline trp_profiles *manager_of(const struct trp_profile_defaults *d)
{
    trp_profiles *m = NULL;
    trp_error err = {0};

    if (trp_profiles_new(d, NULL, &m, &err) < 0)
        g_error("%s", err.text);
    return m;
}

/* A manager with nothing configured but how executors come. */
static inline trp_profiles *make_manager(enum trp_manager_kind kind)
{
    struct trp_profile_defaults d;

    trp_options_profile_defaults(NULL, &d);
    d.kind = kind;
    return manager_of(&d);
}

#endif
