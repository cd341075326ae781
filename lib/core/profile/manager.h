/*
 * The profile manager: every profile of a run, by id; what a profile inherits; which
 * profiles a cluster manager supports; merging. Semantics sections 1 to 3 and 5.
 *
 * Ids count from 0 in the order of adding; 0 is the default profile, always there; a
 * builder that is refused uses no id (semantics, difference 13). Profiles are never
 * removed.
 */
#ifndef TRP_CORE_PROFILE_MANAGER_H
#define TRP_CORE_PROFILE_MANAGER_H

#include "core/profile/profile.h"

/* How executors come: contract of scenario files ("manager"). */
enum trp_manager_kind {
    TRP_MANAGER_ELASTIC, /* executors acquired per profile (dynamic allocation on) */
    TRP_MANAGER_STATIC,  /* a fixed set of executors of the default profile */
    TRP_MANAGER_LOCAL,   /* one process, default profile only */
};

/* A custom resource of the default profile, from `executor.resource.R.amount` and
 * `task.resource.R.amount`. */
struct trp_default_resource {
    char name[TRP_RESOURCE_NAME_MAX];
    int64_t executor; /* 0: omitted */
    trp_amount task;  /* 0: omitted */
};

/* What profiles are made with. Which option has which member, with its default and its
 * bounds: conf/options_table.c. */
struct trp_profile_defaults {
    enum trp_manager_kind kind;
    int64_t executor_cores;
    bool cores_configured; /* somebody wrote executor.cores, or cores in `default:`;
                            * else executors of an elastic task-only profile grow to
                            * the cpus of one task */
    int64_t task_cpus;     /* > 0 */
    int64_t memory_mib;
    int64_t overhead_mib; /* -1: by the factor and the minimum */
    int64_t pyspark_mib;  /* -1: none of its own */
    int64_t offheap_mib;
    double overhead_factor;
    int64_t overhead_min_mib;
    bool merge_conflicts; /* several profiles of a stage are merged, not an error */
    struct trp_default_resource resources[TRP_PROFILE_RESOURCES];
    uint32_t nresources;
};

typedef struct trp_profiles trp_profiles;

enum {
    TRP_PROFILES_MAX = 65536, /* profiles in one run */
};

/* Builds the default profile (id 0, name "default") from `d`. `override` (may be NULL)
 * is a `default:` section whose requests win over the options. TRP_EINVAL for an
 * impossible default. Free with trp_profiles_free. */
int trp_profiles_new(const struct trp_profile_defaults *d,
                     const struct trp_profile_builder *override,
                     trp_profiles **ret_profiles, trp_error *err);
void trp_profiles_free(trp_profiles *p);

/* Validates, computes slots and limiting resource, gives an id. Full profiles: every
 * task amount <= 0.5 or whole. TRP_EINVAL names the resource, what is wanted and what
 * there is ("task cpus 8 above executor cores 4", "no executor resource for task
 * resource gpu", "task gpu 2 above executor gpu 1", …). A profile whose requests equal
 * a stored one's is stored again under its own id (stages may name both). */
int trp_profiles_add(trp_profiles *p, const struct trp_profile_builder *b,
                     trp_profile_id *ret_id, trp_error *err);

/* The profile, valid as long as the manager; NULL for an unknown id. */
const struct trp_resource_profile *trp_profiles_get(const trp_profiles *p,
                                                    trp_profile_id id);
const struct trp_resource_profile *trp_profiles_by_name(const trp_profiles *p,
                                                        const char *name);
uint32_t trp_profiles_count(const trp_profiles *p);

/* The options that the profiles were made with. cores_configured is as it came out. */
const struct trp_profile_defaults *trp_profiles_defaults(const trp_profiles *p);

/* The builder that makes such a profile again: its requests as written. */
void trp_profile_written(const struct trp_resource_profile *p,
                         struct trp_profile_builder *ret_builder);

/* The stored profile with the same requests, or NULL (Spark's getEquivalent). */
const struct trp_resource_profile *
trp_profiles_equivalent(const trp_profiles *p, const struct trp_resource_profile *like);

/* Section 3's table: 0, or TRP_EINVAL with the reason. */
int trp_profiles_supported(const trp_profiles *p, trp_profile_id id, trp_error *err);

/* What an executor of profile `id` has more of than its slots can use, as one line into
 * buf: "gpu limits an executor to 4 tasks: cores 30 would take 30". Returns whether
 * there is any such waste; buf is "" when there is none. Never an error. */
bool trp_profiles_waste(const trp_profiles *p, trp_profile_id id, char *buf,
                        size_t size);

/* canBeScheduled: may a task of `task` run on an executor of profile `executor`? */
bool trp_profiles_may_run(const trp_profiles *p, trp_profile_id task,
                          trp_profile_id executor);

/* Merges by the larger amount per name (section 5) into a builder. */
void trp_profiles_merge(const struct trp_resource_profile *const *v, size_t n,
                        struct trp_profile_builder *ret_builder);

/* The merged profile of `n` >= 1 stored ones: a stored profile with the same requests,
 * else it is added. TRP_EINVAL: what comes out is impossible. */
int trp_profiles_merged(trp_profiles *p, const trp_profile_id *v, size_t n,
                        trp_profile_id *ret_id, trp_error *err);

/* The profile of a stage whose pipelined chain carries the explicit profiles `v` (may
 * hold the same id more than once): none → default, one → it, several → TRP_EINVAL
 * ("one stage has several profiles, …") or, with merge_conflicts, the
 * merged one, reusing an equivalent profile's id or adding it. */
int trp_profiles_of_stage(trp_profiles *p, const trp_profile_id *v, size_t n,
                          trp_profile_id *ret_id, trp_error *err);

#endif
