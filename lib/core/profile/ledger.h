/*
 * Ledger of one executor's custom resources: which addresses ("0", "1", …) have how
 * much left, and which of them a task gets. Semantics, section 4 and difference 2.
 *
 * Addresses are kept in natural order ("2" before "10"). Whole amounts take entirely
 * free addresses, a fraction takes one address: the first with enough left, or with
 * `pack` the one with the least sufficient amount left. All of a task's resources or
 * none. Cost: O(addresses) of the resources the task asks for.
 */
#ifndef TRP_CORE_PROFILE_LEDGER_H
#define TRP_CORE_PROFILE_LEDGER_H

#include "core/profile/profile.h"

typedef struct trp_ledger trp_ledger;

enum {
    TRP_LEDGER_ADDRESSES_MAX = 65535, /* addresses of one resource on one executor */
};

/* What an executor has of one custom resource; borrowed strings. */
struct trp_resource_addresses {
    const char *name;
    const char *const *addresses; /* naddresses strings, any order, no duplicates */
    uint32_t naddresses;
};

/* One address given to a task. */
struct trp_grant {
    uint16_t resource; /* index for trp_ledger_resource_name */
    uint16_t address;  /* index for trp_ledger_address */
    trp_amount amount; /* at most TRP_ONE */
};

/* Copies what it needs; resources are then in order of name (strcmp). TRP_EINVAL for a
 * duplicate address or name, TRP_ELIMIT for too many. */
int trp_ledger_new(const struct trp_resource_addresses *v, uint32_t n,
                   trp_ledger **ret_ledger, trp_error *err);
void trp_ledger_free(trp_ledger *b);

/* Proposes addresses for one task of `p`. Fills at most `cap` grants, returns how many
 * (0 when the profile's task side has no custom resource), TRP_EWAIT when they do not
 * fit now, TRP_ELIMIT when cap is too small. The ledger stays as they are; what is in
 * ret_grants after a failure is undefined. */
int trp_ledger_propose(const trp_ledger *b, const struct trp_resource_profile *p,
                       bool pack, struct trp_grant *ret_grants, uint32_t cap);

/* Deducts what was proposed; gives it back. TRP_ESTATE when an address would fall below
 * 0 or rise above 1 (nothing is changed). */
int trp_ledger_take(trp_ledger *b, const struct trp_grant *grants, uint32_t n);
int trp_ledger_give(trp_ledger *b, const struct trp_grant *grants, uint32_t n);

/* By index; out of range: NULL, or 0. */
uint32_t trp_ledger_resources(const trp_ledger *b);
const char *trp_ledger_resource_name(const trp_ledger *b, uint32_t resource);
uint32_t trp_ledger_addresses(const trp_ledger *b, uint32_t resource);
const char *trp_ledger_address(const trp_ledger *b, uint32_t resource,
                               uint32_t address);
trp_amount trp_ledger_left(const trp_ledger *b, uint32_t resource, uint32_t address);

/* strcmp in natural order: runs of digits compare as numbers. 0 for equal strings only.
 */
int trp_natural_compare(const char *a, const char *b);
/* The same for qsort, of an array of strings. */
int trp_natural_order(const void *a, const void *b);

#endif
