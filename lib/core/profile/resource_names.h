/*
 * Names of resources as people write them, in a pipeline file or in a C program.
 */
#ifndef TRP_CORE_PROFILE_RESOURCE_NAMES_H
#define TRP_CORE_PROFILE_RESOURCE_NAMES_H

#include <stdbool.h>

#include "core/base/error.h"

/* Is it one of the resources of an executor that are memory? */
bool trp_resource_is_memory(const char *name);

/* Whether the executor side of a profile, or its task side, may ask for `name`. TRP_EINVAL:
 * it belongs to the other side, or is a slip of a name that there is (`"core" in executor;
 * did you mean "cores"?`). Which characters a name may have is the builder's matter. */
int trp_resource_name_check(const char *name, bool executor, trp_error *err);

#endif
