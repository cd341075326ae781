/*
 * Modules: what few processes need, each a shared object of its own,
 * lib/troupe/NAME.so, with the libraries that it is linked with. One is loaded when it
 * is first used, and stays.
 *
 * A module exports one symbol, `trp_module`, a table of functions that begins with
 * struct trp_module.
 *
 *     const struct trp_munge_calls *munge;
 *     int rc = trp_module_get("munge", (const void **)&munge, err);
 *     if (rc == 0)
 *         rc = munge->seal(…);
 *
 * Safe in any thread.
 */
#ifndef TRP_OS_MODULE_H
#define TRP_OS_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

struct trp_module {
    const char *build; /* TROUPE_VERSION: one of another build of Troupe is not used */
};

/* Before the definition of the table. */
#define TRP_MODULE_TABLE __attribute__((visibility("default")))

/* Where module `name` is: false when it is not installed, or its path is longer than
 * `size`. */
bool trp_module_find(const char *name, char *ret_path, size_t size);

/* Loads the module at `path`; its symbols are there for all objects of the process when
 * it is `global`. *ret_table stays. TRP_ENEVER: it cannot be loaded, or is of another
 * build. */
int trp_module_load(const char *path, bool global, const void **ret_table,
                    trp_error *err);

/* Both, for a module that every installation has. TRP_ENEVER, too, when it is not there.
 */
int trp_module_get(const char *name, const void **ret_table, trp_error *err);

#endif
