/*
 * Where programs lie: our own, and the one a user named.
 */
#ifndef TRP_LAUNCHER_PROGRAMS_H
#define TRP_LAUNCHER_PROGRAMS_H

#include "core/base/error.h"

/* Absolute path of one of our own programs, such as "troupe-rank": beside this one (a
 * build folder) or where it is installed. malloc'ed. TRP_ESYSTEM: it was not built, or
 * is not installed. */
int trp_program_own(const char *name, char **ret_path, trp_error *err);

/* Absolute path of APP: as a path, or found in PATH. malloc'ed. TRP_EINVAL when it is
 * not there or cannot be run. */
int trp_program_find(const char *app, char **ret_path, trp_error *err);

#endif
