/*
 * Resource profiles: what an executor has and what a task of it takes.
 *
 * Words. A *built-in* executor resource is one of `cores`, `memory`, `memoryOverhead`,
 * `pyspark.memory`, `offHeap`; the built-in task resource is `cpus`; every other name
 * is *custom* (gpu, fpga, a licence). A *full* profile has an executor side; a
 * *task-only* profile has none and runs on executors of the default shape. *Slots* are
 * how many tasks of the profile one executor runs at once; the *limiting* resource is
 * what bounds them. Semantics sections 1, 2 and 5.
 *
 * A profile is immutable once built. Amounts: executor side whole numbers (memory in
 * MiB), task side exact fractions (amount.h).
 *
 *     struct trp_profile_builder b;
 *     trp_profile_builder_init(&b, "train");
 *     trp_profile_builder_executor(&b, "gpu", 2, &err);
 *     trp_profile_builder_task(&b, "gpu", TRP_ONE / 2, &err);
 *     trp_profiles_add(manager, &b, &id, &err);        // profile/manager.h
 */
#ifndef TRP_CORE_PROFILE_PROFILE_H
#define TRP_CORE_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/amount.h"
#include "core/base/error.h"
#include "core/base/ids.h"

enum {
    TRP_PROFILE_NAME_MAX = 64,  /* [A-Za-z0-9_][A-Za-z0-9._-]{0,63} */
    TRP_RESOURCE_NAME_MAX = 48, /* [A-Za-z_][A-Za-z0-9._-]* */
    TRP_PROFILE_RESOURCES = 16, /* custom resources in one profile, and in one run */
    TRP_PROFILE_SLOTS_MAX = 1048576, /* tasks at once on one executor */
    TRP_TASK_ADDRESSES_MAX = 255,    /* addresses one task gets, of all resources */
};

/* The most that an executor may have of anything (memory in MiB). */
#define TRP_EXECUTOR_AMOUNT_MAX INT64_C(1000000000000)

/* One custom resource of a profile. */
struct trp_custom {
    char name[TRP_RESOURCE_NAME_MAX];
    int64_t executor; /* whole units an executor has; 0: not on the executor side */
    trp_amount task;  /* what a task takes; 0: not on the task side */
    bool on_executor; /* written on the executor side (an amount of 0 may be) */
    bool on_task;
};

/* The built-in executor resources; -1 means "not written in this profile". */
struct trp_builtins {
    int64_t cores;
    int64_t memory_mib;
    int64_t overhead_mib;
    int64_t pyspark_mib;
    int64_t offheap_mib;
};

struct trp_profile_builder {
    char name[TRP_PROFILE_NAME_MAX + 1];
    struct trp_builtins executor;
    int64_t cpus;                                    /* -1: not written */
    struct trp_custom custom[TRP_PROFILE_RESOURCES]; /* in order of name */
    uint32_t ncustom;
    bool has_executor; /* any executor request made */
    bool has_task;
};

struct trp_resource_profile {
    trp_profile_id id;
    char name[TRP_PROFILE_NAME_MAX + 1];
    bool task_only;
    struct trp_builtins executor; /* as written; -1 where not written */
    int64_t cpus;                 /* as written; -1 where not written */
    struct trp_custom custom[TRP_PROFILE_RESOURCES]; /* as written, in order of name */
    uint32_t ncustom;

    /* What it means once the default profile's values are filled in (custom resources
     * are never inherited; a task-only profile has the default's executor side). */
    int64_t cores;      /* cores of an executor */
    int64_t task_cpus;  /* cpus a task takes */
    int64_t memory_mib; /* heap: what `memory` says */
    int64_t overhead_mib;
    int64_t offheap_mib;
    int64_t total_mib; /* memory + overhead + offHeap (+ pyspark where written): the
                        * limit that is enforced on an executor */
    uint32_t slots;    /* tasks at once on an executor, >= 1 */
    char limiting[TRP_RESOURCE_NAME_MAX]; /* "cpus", a custom resource, or "" */
};

/* Bytes that a task of the profile may use for what it shuffles: its share of offHeap,
 * or of `fraction` (memory.fraction) of memory. */
uint64_t trp_profile_task_memory(const struct trp_resource_profile *p, double fraction);

/* An empty builder. `name` (may be "") is copied; longer names are cut. */
void trp_profile_builder_init(struct trp_profile_builder *b, const char *name);

/* Asks for `amount` of `resource` for an executor (memory in MiB). Asking again
 * replaces the first request. TRP_EINVAL: a bad name, `amount` < 0; TRP_ELIMIT: too
 * many custom resources or an amount above
 * TRP_EXECUTOR_AMOUNT_MAX. */
int trp_profile_builder_executor(struct trp_profile_builder *b, const char *resource,
                                 int64_t amount, trp_error *err);

/* Asks for `amount` of `resource` for a task: <= 1 or whole, `cpus` whole. TRP_EINVAL
 * ("task resource gpu: 1.5 is neither a whole number nor at most 1"). */
int trp_profile_builder_task(struct trp_profile_builder *b, const char *resource,
                             trp_amount amount, trp_error *err);

/* Parses a memory amount to MiB: "4g" 4096, "2000m" 2000, "512000k" 500, "1t", "256"
 * (MiB), also with a trailing "b" or "ib", any case. TRP_EINVAL otherwise. A positive
 * amount below 1 MiB becomes 1. */
int trp_memory_parse(const char *text, int64_t *ret_mib, trp_error *err);

/* "512 MiB", "4 GiB" (whole GiB only) into buf; returns buf. */
char *trp_memory_format(int64_t mib, char *buf, size_t size);

/* Two amounts that are told side by side, in one unit. */
struct trp_memory_pair {
    char a[32], b[32];
};
struct trp_memory_pair trp_memory_pair(int64_t a_mib, int64_t b_mib);

/* Same kind (task-only or full) and the same requests; ids and names do not count. */
bool trp_profile_resources_equal(const struct trp_resource_profile *a,
                                 const struct trp_resource_profile *b);

/* Executors of `a` and of `b` have the same shape once defaults are filled in: the same
 * cores, enforced memory parts and custom executor resources (alloc.reuse=exact). */
bool trp_profile_same_executor(const struct trp_resource_profile *a,
                               const struct trp_resource_profile *b);

/* An executor of shape `have` covers what `want` asks of an executor and a task
 * (alloc.reuse=fit). */
bool trp_profile_covers(const struct trp_resource_profile *have,
                        const struct trp_resource_profile *want);

/* The custom resource of that name, or NULL. */
const struct trp_custom *trp_profile_custom(const struct trp_resource_profile *p,
                                            const char *name);

#endif
